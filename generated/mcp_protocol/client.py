"""The client: `connect`, the open session with a typed coroutine per request, and handlers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from ._faces import HandlersBase, wire_params
from .client_side.base import ClientApplication, ClientBase, Handlers, Identity
from .client_side.caching import Caching
from .client_side.connecting import (
    HeaderSource,
    HttpAuth,
    HttpClient,
    HttpOptions,
    Target,
    Timeouts,
    Transport,
    open_client,
)
from .errors import MethodNotFoundError
from .peer import CONCURRENT_REQUESTS
from .revisions import FOLDERS, REVISIONS

if TYPE_CHECKING:
    from . import models
    from .exchange import Exchange
    from .r2024_11_05 import client as r2024_11_05
    from .r2025_03_26 import client as r2025_03_26
    from .r2025_06_18 import client as r2025_06_18
    from .r2025_11_25 import client as r2025_11_25
    from .r2026_07_28 import client as r2026_07_28
    from .waiting import OnProgress


class Client(ClientBase):
    """An open session with a server, in whichever revision was agreed.

    A message that the revision does not have raises MethodNotFoundError, and a field that it does
    not have InvalidParamsError; nothing is sent then.
    """

    async def discover(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.DiscoverResult:
        """Asks which revisions and features a server has. Every server answers it; no client must
        send it.

        Only in 2026-07-28.

        Source: server/discover.
        """
        fields: dict[str, Any] = {}
        result: models.DiscoverResult = await self._call(
            "server/discover", fields, meta, timeout, on_progress
        )
        return result

    async def list_resources(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.Resource]:
        """Asks for a page of the server's resources.

        Follows the pages to the last, and returns the items of all.

        Source: server/resources.
        """
        fields: dict[str, Any] = {}
        return await self._pages("resources/list", fields, meta, timeout)

    async def list_resources_page(
        self,
        cursor: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ListResourcesResult:
        """Asks for a page of the server's resources.

        Args:
            cursor: The `nextCursor` of the preceding page; absent asks for the first page. A bad
                one gives error -32602.

        Source: server/resources.
        """
        fields: dict[str, Any] = {
            "cursor": cursor,
        }
        result: models.ListResourcesResult = await self._call(
            "resources/list", fields, meta, timeout, on_progress
        )
        return result

    async def list_resource_templates(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.ResourceTemplate]:
        """Asks for a page of the server's resource templates.

        Follows the pages to the last, and returns the items of all.

        Source: server/resources.
        """
        fields: dict[str, Any] = {}
        return await self._pages("resources/templates/list", fields, meta, timeout)

    async def list_resource_templates_page(
        self,
        cursor: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ListResourceTemplatesResult:
        """Asks for a page of the server's resource templates.

        Args:
            cursor: The `nextCursor` of the preceding page; absent asks for the first page. A bad
                one gives error -32602.

        Source: server/resources.
        """
        fields: dict[str, Any] = {
            "cursor": cursor,
        }
        result: models.ListResourceTemplatesResult = await self._call(
            "resources/templates/list", fields, meta, timeout, on_progress
        )
        return result

    async def read_resource(
        self,
        uri: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ReadResourceResult:
        """Reads one resource. An unknown URI is error -32602 (servers of earlier revisions answer
        -32002).

        Args:
            uri: Address of the resource, of any scheme; the server decides what it means.

        Source: server/resources.
        """
        fields: dict[str, Any] = {
            "uri": uri,
        }
        result: models.ReadResourceResult = await self._call(
            "resources/read", fields, meta, timeout, on_progress
        )
        return result

    async def subscriptions_listen(
        self,
        notifications: models.SubscriptionFilter | Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.SubscriptionsListenResult:
        """Opens a stream of notifications that lasts until either side ends it.

        Only in 2026-07-28.

        Args:
            notifications: The kinds of notification wanted; no others may be sent.

        Source: basic/patterns/subscriptions.
        """
        fields: dict[str, Any] = {
            "notifications": notifications,
        }
        result: models.SubscriptionsListenResult = await self._call(
            "subscriptions/listen", fields, meta, timeout, on_progress
        )
        return result

    async def list_prompts(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.Prompt]:
        """Asks for a page of the server's prompts.

        Follows the pages to the last, and returns the items of all.

        Source: server/prompts.
        """
        fields: dict[str, Any] = {}
        return await self._pages("prompts/list", fields, meta, timeout)

    async def list_prompts_page(
        self,
        cursor: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ListPromptsResult:
        """Asks for a page of the server's prompts.

        Args:
            cursor: The `nextCursor` of the preceding page; absent asks for the first page. A bad
                one gives error -32602.

        Source: server/prompts.
        """
        fields: dict[str, Any] = {
            "cursor": cursor,
        }
        result: models.ListPromptsResult = await self._call(
            "prompts/list", fields, meta, timeout, on_progress
        )
        return result

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.GetPromptResult:
        """Fetches a prompt, filled in. An unknown prompt or a missing argument is error -32602.

        Args:
            name: Name of the prompt, as listed.
            arguments: Values for the arguments, all strings; absent means none.

        Source: server/prompts.
        """
        fields: dict[str, Any] = {
            "name": name,
            "arguments": arguments,
        }
        result: models.GetPromptResult = await self._call(
            "prompts/get", fields, meta, timeout, on_progress
        )
        return result

    async def list_tools(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.Tool]:
        """Asks for a page of the server's tools.

        Follows the pages to the last, and returns the items of all.

        Source: server/tools.
        """
        fields: dict[str, Any] = {}
        return await self._pages("tools/list", fields, meta, timeout)

    async def list_tools_page(
        self,
        cursor: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ListToolsResult:
        """Asks for a page of the server's tools.

        Args:
            cursor: The `nextCursor` of the preceding page; absent asks for the first page. A bad
                one gives error -32602.

        Source: server/tools.
        """
        fields: dict[str, Any] = {
            "cursor": cursor,
        }
        result: models.ListToolsResult = await self._call(
            "tools/list", fields, meta, timeout, on_progress
        )
        return result

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.CallToolResult:
        """Runs a tool. An unknown tool is error -32602; a failure inside the tool is a result with
        `isError`.

        Args:
            name: Name of the tool, as listed.
            arguments: Arguments as the tool's `inputSchema` wants them; absent means none.

        Source: server/tools.
        """
        fields: dict[str, Any] = {
            "name": name,
            "arguments": arguments,
        }
        result: models.CallToolResult = await self._call(
            "tools/call", fields, meta, timeout, on_progress
        )
        return result

    async def complete(
        self,
        argument: models.CompleteRequestParamsArgument | Mapping[str, Any],
        ref: models.CompleteRequestParamsRef | Mapping[str, Any],
        context: models.CompleteRequestParamsContext | Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.CompleteResult:
        """Asks for values that could complete what a user has typed so far.

        Args:
            argument: The argument and what was typed so far.
            ref: The prompt or template to which the argument belongs.
            context: What is settled already; absent means nothing.

        Source: server/utilities/completion.
        """
        fields: dict[str, Any] = {
            "argument": argument,
            "ref": ref,
            "context": context,
        }
        result: models.CompleteResult = await self._call(
            "completion/complete", fields, meta, timeout, on_progress
        )
        return result

    async def initialize(
        self,
        capabilities: models.ClientCapabilities | Mapping[str, Any],
        client_info: models.Implementation | Mapping[str, Any],
        protocol_version: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.InitializeResult:
        """First request of a client: it proposes a revision and says what the client can do.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Args:
            capabilities: What the client can do, for the whole session.
            client_info: What software the client runs.
            protocol_version: Newest revision that the client speaks; it may speak others.

        Source: basic/lifecycle.
        """
        fields: dict[str, Any] = {
            "capabilities": capabilities,
            "client_info": client_info,
            "protocol_version": protocol_version,
        }
        result: models.InitializeResult = await self._call(
            "initialize", fields, meta, timeout, on_progress
        )
        return result

    async def ping(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.EmptyResult:
        """Asks either peer for a sign of life; it is answered at once with an empty result.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Source: basic/utilities/ping.
        """
        fields: dict[str, Any] = {}
        result: models.EmptyResult = await self._call("ping", fields, meta, timeout, on_progress)
        return result

    async def subscribe(
        self,
        uri: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.EmptyResult:
        """Asks to be told when one resource changes; needs the `subscribe` capability.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Args:
            uri: Address of the resource to watch, of any scheme.

        Source: server/resources.
        """
        fields: dict[str, Any] = {
            "uri": uri,
        }
        result: models.EmptyResult = await self._call(
            "resources/subscribe", fields, meta, timeout, on_progress
        )
        return result

    async def unsubscribe(
        self,
        uri: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.EmptyResult:
        """Ends a subscription to one resource.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Args:
            uri: Address of the resource that is watched.

        Source: server/resources.
        """
        fields: dict[str, Any] = {
            "uri": uri,
        }
        result: models.EmptyResult = await self._call(
            "resources/unsubscribe", fields, meta, timeout, on_progress
        )
        return result

    async def get_task(
        self,
        task_id: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.GetTaskResult:
        """Asks how a task stands.

        Only in 2025-11-25.

        Args:
            task_id: Identifier of the task.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "task_id": task_id,
        }
        result: models.GetTaskResult = await self._call(
            "tasks/get", fields, meta, timeout, on_progress
        )
        return result

    async def get_task_payload(
        self,
        task_id: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.CallToolResult:
        """Fetches the real result of a task; the answer waits until the task has ended.

        Only in 2025-11-25.

        Args:
            task_id: Identifier of the task.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "task_id": task_id,
        }
        result: models.CallToolResult = await self._call(
            "tasks/result", fields, meta, timeout, on_progress
        )
        return result

    async def cancel_task(
        self,
        task_id: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.CancelTaskResult:
        """Stops a task; one that has already ended is error -32602.

        Only in 2025-11-25.

        Args:
            task_id: Identifier of the task.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "task_id": task_id,
        }
        result: models.CancelTaskResult = await self._call(
            "tasks/cancel", fields, meta, timeout, on_progress
        )
        return result

    async def list_tasks(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.Task]:
        """Asks for a page of the peer's tasks.

        Follows the pages to the last, and returns the items of all.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {}
        return await self._pages("tasks/list", fields, meta, timeout)

    async def list_tasks_page(
        self,
        cursor: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.ListTasksResult:
        """Asks for a page of the peer's tasks.

        Only in 2025-11-25.

        Args:
            cursor: The `nextCursor` of the preceding page; absent asks for the first page. A bad
                one gives error -32602.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "cursor": cursor,
        }
        result: models.ListTasksResult = await self._call(
            "tasks/list", fields, meta, timeout, on_progress
        )
        return result

    async def set_level(
        self,
        level: models.LoggingLevel,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.EmptyResult:
        """Sets the lowest severity of log messages that the client wants.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Args:
            level: Lowest severity to send; everything graver is sent too.

        Source: server/utilities/logging.
        """
        fields: dict[str, Any] = {
            "level": level,
        }
        result: models.EmptyResult = await self._call(
            "logging/setLevel", fields, meta, timeout, on_progress
        )
        return result

    async def cancelled(
        self,
        request_id: models.RequestId | None = None,
        reason: str | None = None,
    ) -> None:
        """The client gives up a request it made, or (stdio) the server ends a
        `subscriptions/listen` stream. Over HTTP, closing the stream says the same.

        Args:
            request_id: Id of an open request of the client; from a server, always that of a
                `subscriptions/listen`.
            reason: Why, for logs or people.

        Source: basic/patterns/cancellation.
        """
        fields: dict[str, Any] = {
            "request_id": request_id,
            "reason": reason,
        }
        rows = self.session.revision.client_notifications
        await self.notify(
            "notifications/cancelled",
            wire_params(rows, "notifications/cancelled", fields, self.revision),
        )

    async def initialized(
        self,
    ) -> None:
        """The client has finished the handshake; normal requests may begin.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Source: basic/lifecycle.
        """
        fields: dict[str, Any] = {}
        rows = self.session.revision.client_notifications
        await self.notify(
            "notifications/initialized",
            wire_params(rows, "notifications/initialized", fields, self.revision),
        )

    async def progress(
        self,
        progress: int | float,
        progress_token: models.ProgressToken,
        message: str | None = None,
        total: int | float | None = None,
    ) -> None:
        """Reports how far a request has come whose sender supplied a progress token.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Args:
            progress: Amount done so far, in any unit; every notification has a higher value than
                the one before.
            progress_token: Token from the metadata of the request that this is about.
            message: What is happening right now, for people.
            total: Amount at completion, in the unit of `progress`; absent means unknown.

        Source: basic/utilities/progress.
        """
        fields: dict[str, Any] = {
            "progress": progress,
            "progress_token": progress_token,
            "message": message,
            "total": total,
        }
        rows = self.session.revision.client_notifications
        await self.notify(
            "notifications/progress",
            wire_params(rows, "notifications/progress", fields, self.revision),
        )

    async def task_status(
        self,
        created_at: str,
        last_updated_at: str,
        status: models.TaskStatus,
        task_id: str,
        ttl: int | None,
        poll_interval: int | None = None,
        status_message: str | None = None,
    ) -> None:
        """The status of a task has changed. It may never come, so keep polling.

        Only in 2025-11-25.

        Args:
            created_at: Time of creation, in ISO 8601.
            last_updated_at: Time of the last change, in ISO 8601.
            status: How the task stands.
            task_id: Identifier of the task, chosen by the receiver.
            ttl: Milliseconds, counted from creation, for which the task is kept; null means without
                limit.
            poll_interval: Milliseconds to wait between polls; absent leaves it to the requestor.
            status_message: More about the status, for people, e.g. why it failed.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "created_at": created_at,
            "last_updated_at": last_updated_at,
            "status": status,
            "task_id": task_id,
            "ttl": ttl,
            "poll_interval": poll_interval,
            "status_message": status_message,
        }
        rows = self.session.revision.client_notifications
        await self.notify(
            "notifications/tasks/status",
            wire_params(rows, "notifications/tasks/status", fields, self.revision),
        )

    async def roots_list_changed(
        self,
    ) -> None:
        """The client's roots have changed; ask for them again.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Source: client/roots.
        """
        fields: dict[str, Any] = {}
        rows = self.session.revision.client_notifications
        await self.notify(
            "notifications/roots/list_changed",
            wire_params(rows, "notifications/roots/list_changed", fields, self.revision),
        )


class ClientHandlers(HandlersBase):
    """What servers may ask and tell a client, in any of the revisions.

    Override what the client can do; the capabilities it declares follow from that.
    """

    mcp_stubs: ClassVar[bool] = True

    async def create_message(
        self, params: models.CreateMessageRequestParams, ctx: Exchange
    ) -> models.CreateMessageResult | models.CreateTaskResult | Mapping[str, Any]:
        """Deprecated in this revision. Asks the client to run a model, with its user's approval;
        travels inside an `InputRequiredResult`, without an id.

        Source: client/sampling.
        """
        raise MethodNotFoundError("sampling/createMessage")

    async def list_roots(
        self, params: models.ListRootsRequestParams | models.RequestParams | None, ctx: Exchange
    ) -> models.ListRootsResult | Mapping[str, Any]:
        """Deprecated in this revision. Asks the client for its roots; travels inside an
        `InputRequiredResult`, without an id.

        Source: client/roots.
        """
        raise MethodNotFoundError("roots/list")

    async def elicit(
        self, params: models.ElicitRequestParams, ctx: Exchange
    ) -> models.ElicitResult | models.CreateTaskResult | Mapping[str, Any]:
        """Asks the client's user for data in a form or an act on a web page; travels inside an
        `InputRequiredResult`, without an id.

        Only in 2025-06-18, 2025-11-25, 2026-07-28.

        Source: client/elicitation.
        """
        raise MethodNotFoundError("elicitation/create")

    async def ping(
        self, params: models.RequestParams | None, ctx: Exchange
    ) -> models.EmptyResult | Mapping[str, Any]:
        """Asks either peer for a sign of life; it is answered at once with an empty result.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Source: basic/utilities/ping.
        """
        raise MethodNotFoundError("ping")

    async def get_task(
        self, params: models.GetTaskRequestParams, ctx: Exchange
    ) -> models.GetTaskResult | Mapping[str, Any]:
        """Asks how a task stands.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/get")

    async def get_task_payload(
        self, params: models.GetTaskPayloadRequestParams, ctx: Exchange
    ) -> models.CreateMessageResult | models.ElicitResult | Mapping[str, Any]:
        """Fetches the real result of a task; the answer waits until the task has ended.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/result")

    async def cancel_task(
        self, params: models.CancelTaskRequestParams, ctx: Exchange
    ) -> models.CancelTaskResult | Mapping[str, Any]:
        """Stops a task; one that has already ended is error -32602.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/cancel")

    async def list_tasks(
        self, params: models.PaginatedRequestParams | None, ctx: Exchange
    ) -> models.ListTasksResult | Mapping[str, Any]:
        """Asks for a page of the peer's tasks.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/list")

    async def cancelled(self, params: models.CancelledNotificationParams, ctx: Exchange) -> None:
        """The client gives up a request it made, or (stdio) the server ends a
        `subscriptions/listen` stream. Over HTTP, closing the stream says the same.

        Source: basic/patterns/cancellation.
        """

    async def progress(self, params: models.ProgressNotificationParams, ctx: Exchange) -> None:
        """Reports how far a request has come whose sender supplied a progress token.

        Source: basic/patterns/progress.
        """

    async def resource_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> None:
        """The server's resources have changed; list them again. It comes only on a subscription
        with `resourcesListChanged`.

        Source: server/resources.
        """

    async def subscriptions_acknowledged(
        self, params: models.SubscriptionsAcknowledgedNotificationParams, ctx: Exchange
    ) -> None:
        """First message of a subscription: the server says what it will deliver.

        Only in 2026-07-28.

        Source: basic/patterns/subscriptions.
        """

    async def resource_updated(
        self, params: models.ResourceUpdatedNotificationParams, ctx: Exchange
    ) -> None:
        """A resource named in `resourceSubscriptions` has changed; read it again.

        Source: server/resources.
        """

    async def prompt_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> None:
        """The server's prompts have changed; list them again. It comes only on a subscription with
        `promptsListChanged`.

        Source: server/prompts.
        """

    async def tool_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> None:
        """The server's tools have changed; list them again. It comes only on a subscription with
        `toolsListChanged`.

        Source: server/tools.
        """

    async def logging_message(
        self, params: models.LoggingMessageNotificationParams, ctx: Exchange
    ) -> None:
        """Deprecated in this revision. A log message about one request, sent only if the metadata
        of that request sets a log level.

        Source: server/utilities/logging.
        """

    async def task_status(self, params: models.TaskStatusNotificationParams, ctx: Exchange) -> None:
        """The status of a task has changed. It may never come, so keep polling.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """

    async def elicitation_complete(
        self, params: models.ElicitationCompleteNotificationParams, ctx: Exchange
    ) -> None:
        """What a user was sent to do on a web page is done; the client may retry what waited for
        it.

        Only in 2025-11-25.

        Source: client/elicitation.
        """


@overload
def connect(
    target: Target,
    *,
    revision: Literal["2024-11-05"],
    handlers: r2024_11_05.ClientHandlers | ClientHandlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[r2024_11_05.Client]: ...


@overload
def connect(
    target: Target,
    *,
    revision: Literal["2025-03-26"],
    handlers: r2025_03_26.ClientHandlers | ClientHandlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[r2025_03_26.Client]: ...


@overload
def connect(
    target: Target,
    *,
    revision: Literal["2025-06-18"],
    handlers: r2025_06_18.ClientHandlers | ClientHandlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[r2025_06_18.Client]: ...


@overload
def connect(
    target: Target,
    *,
    revision: Literal["2025-11-25"],
    handlers: r2025_11_25.ClientHandlers | ClientHandlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[r2025_11_25.Client]: ...


@overload
def connect(
    target: Target,
    *,
    revision: Literal["2026-07-28"],
    handlers: r2026_07_28.ClientHandlers | ClientHandlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[r2026_07_28.Client]: ...


@overload
def connect(
    target: Target,
    *,
    revision: Literal["handshake"] | None = None,
    handlers: ClientHandlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[Client]: ...


@overload
def connect(
    target: Target,
    *,
    revision: str | None,
    handlers: Handlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[Any]: ...


def connect(
    target: Target,
    *,
    revision: str | None = None,
    handlers: Handlers | None = None,
    name: str = "mcp_protocol",
    version: str = "0",
    title: str | None = None,
    info: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    transport: Transport | None = None,
    headers: HeaderSource | None = None,
    auth: HttpAuth | None = None,
    http_client: HttpClient | None = None,
    timeouts: Timeouts = Timeouts(),
    cache: Caching | bool = True,
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AbstractAsyncContextManager[Any]:
    """Open a session with a server.

    Args:
        target: The URL of a server over HTTP, a command line, a server of this process, or a
            channel of one's own.
        revision: The one to speak, with the face of that revision; by default the newest is
            offered, and spoken is what both know. `handshake` stands for any revision with a
            session: `initialize` is then the first thing that a server hears.
        handlers: What the client can do for the server, and what it hears of it.
        name: How the client calls itself.
        version: Its version.
        title: Its name for people.
        info: What else it says of itself, as wire object.
        capabilities: What it declares beyond what the handlers show, as wire object.
        env: Environment of the server's process.
        cwd: Its working directory.
        transport: The one to use over HTTP; by default Streamable HTTP, and HTTP+SSE where a server
            knows no more than that.
        headers: Header fields for each HTTP request, or what makes them each time, at once or when
            awaited.
        auth: An authentication of httpx2's for HTTP requests.
        http_client: A client of httpx2's to make them; it is not closed.
        timeouts: How long the opening may take, and parts of it.
        cache: How many results are kept while the server says that they are fresh; `False` for
            none. Private ones are dropped once `headers` gives other fields than before. What
            `auth` and `http_client` send is not seen: open a client for each user, or call
            `client.cache.forget_private()`.
        max_concurrent_requests: How many handlers may be waiting at a time. At the limit nothing
            more is read until one has ended; requests of the server that come while the client
            waits for answers of its own are refused.

    Raises:
        ServerStartError: (on entry) The process ended before it answered.
        ConnectFailedError: (on entry) There is no connection to the URL.
        HttpStatusError: (on entry) The server at the URL refuses.
        RevisionError: (on entry) Client and server have no revision in common.
        RequestTimeoutError: (on entry) No agreement in time.
        MissingExtraError: (on entry) The target is a URL, and httpx2 is not installed.
        ValueError: (on entry) `max_concurrent_requests` is below one.
    """
    face: type[ClientBase] = Client
    chosen = REVISIONS.pinned(revision)
    if revision in FOLDERS:
        face = importlib.import_module(f".{FOLDERS[revision]}.client", __package__).Client
    own = {"name": name, "version": version, **(info or {})}
    if title is not None:
        own["title"] = title
    caching = cache if isinstance(cache, Caching) else Caching() if cache else None
    application = ClientApplication(handlers, Identity(own, capabilities or {}), caching)
    http = HttpOptions(transport, headers, auth, http_client)
    return open_client(
        face,
        target,
        chosen,
        application,
        env=env,
        cwd=cwd,
        http=http,
        timeouts=timeouts,
        max_concurrent_requests=max_concurrent_requests,
    )
