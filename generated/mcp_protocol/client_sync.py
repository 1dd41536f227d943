"""The client for code without an event loop: `connect_sync`, and a method per request."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ._faces import HandlersBase
from .client import Client, connect
from .client_side.base import Handlers
from .client_side.blocking import (
    Backend,
    SessionThread,
    SyncClientBase,
    ThreadedHandlers,
    in_thread,
)
from .client_side.caching import Caching
from .client_side.connecting import HeaderSource, HttpAuth, HttpClient, Target, Timeouts, Transport
from .errors import MethodNotFoundError
from .peer import CONCURRENT_REQUESTS

if TYPE_CHECKING:
    from . import models
    from .exchange import Exchange
    from .waiting import OnProgress


class SyncClient(SyncClientBase):
    """An open session with a server, in whichever revision was agreed.

    A message that the revision does not have raises MethodNotFoundError, and a field that it does
    not have InvalidParamsError; nothing is sent then. `with` closes it in the end.
    """

    def __init__(self, thread: SessionThread[Any]) -> None:
        self._client: Client = thread.opened.seen_as(Client)
        super().__init__(thread, self._client)

    def discover(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.discover(
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def list_resources(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.Resource]:
        """Asks for a page of the server's resources.

        Follows the pages to the last, and returns the items of all.

        Source: server/resources.
        """
        return self._thread.run(
            lambda: self._client.list_resources(
                meta=meta,
                timeout=timeout,
            )
        )

    def list_resources_page(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.list_resources_page(
                cursor=cursor,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def list_resource_templates(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.ResourceTemplate]:
        """Asks for a page of the server's resource templates.

        Follows the pages to the last, and returns the items of all.

        Source: server/resources.
        """
        return self._thread.run(
            lambda: self._client.list_resource_templates(
                meta=meta,
                timeout=timeout,
            )
        )

    def list_resource_templates_page(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.list_resource_templates_page(
                cursor=cursor,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def read_resource(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.read_resource(
                uri=uri,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def subscriptions_listen(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.subscriptions_listen(
                notifications=notifications,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def list_prompts(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.Prompt]:
        """Asks for a page of the server's prompts.

        Follows the pages to the last, and returns the items of all.

        Source: server/prompts.
        """
        return self._thread.run(
            lambda: self._client.list_prompts(
                meta=meta,
                timeout=timeout,
            )
        )

    def list_prompts_page(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.list_prompts_page(
                cursor=cursor,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def get_prompt(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.get_prompt(
                name=name,
                arguments=arguments,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def list_tools(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> list[models.Tool]:
        """Asks for a page of the server's tools.

        Follows the pages to the last, and returns the items of all.

        Source: server/tools.
        """
        return self._thread.run(
            lambda: self._client.list_tools(
                meta=meta,
                timeout=timeout,
            )
        )

    def list_tools_page(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.list_tools_page(
                cursor=cursor,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def call_tool(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.call_tool(
                name=name,
                arguments=arguments,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def complete(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.complete(
                argument=argument,
                ref=ref,
                context=context,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def initialize(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.initialize(
                capabilities=capabilities,
                client_info=client_info,
                protocol_version=protocol_version,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def ping(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.ping(
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def subscribe(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.subscribe(
                uri=uri,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def unsubscribe(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.unsubscribe(
                uri=uri,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def get_task(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.get_task(
                task_id=task_id,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def get_task_payload(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.get_task_payload(
                task_id=task_id,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def cancel_task(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.cancel_task(
                task_id=task_id,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def list_tasks(
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
        return self._thread.run(
            lambda: self._client.list_tasks(
                meta=meta,
                timeout=timeout,
            )
        )

    def list_tasks_page(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.list_tasks_page(
                cursor=cursor,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def set_level(
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
        told = in_thread(on_progress)
        return self._thread.run(
            lambda: self._client.set_level(
                level=level,
                meta=meta,
                timeout=timeout,
                on_progress=told,
            )
        )

    def cancelled(
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
        self._thread.run(
            lambda: self._client.cancelled(
                request_id=request_id,
                reason=reason,
            )
        )

    def initialized(
        self,
    ) -> None:
        """The client has finished the handshake; normal requests may begin.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Source: basic/lifecycle.
        """
        self._thread.run(lambda: self._client.initialized())

    def progress(
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
        self._thread.run(
            lambda: self._client.progress(
                progress=progress,
                progress_token=progress_token,
                message=message,
                total=total,
            )
        )

    def task_status(
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
        self._thread.run(
            lambda: self._client.task_status(
                created_at=created_at,
                last_updated_at=last_updated_at,
                status=status,
                task_id=task_id,
                ttl=ttl,
                poll_interval=poll_interval,
                status_message=status_message,
            )
        )

    def roots_list_changed(
        self,
    ) -> None:
        """The client's roots have changed; ask for them again.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Source: client/roots.
        """
        self._thread.run(lambda: self._client.roots_list_changed())


class SyncClientHandlers(HandlersBase):
    """What servers may ask and tell a client, in any of the revisions.

    Override what the client can do, by plain functions or by coroutine functions; the capabilities
    it declares follow from that.
    """

    mcp_stubs: ClassVar[bool] = True

    def create_message(
        self, params: models.CreateMessageRequestParams, ctx: Exchange
    ) -> (
        models.CreateMessageResult
        | models.CreateTaskResult
        | Mapping[str, Any]
        | Awaitable[models.CreateMessageResult | models.CreateTaskResult | Mapping[str, Any]]
    ):
        """Deprecated in this revision. Asks the client to run a model, with its user's approval;
        travels inside an `InputRequiredResult`, without an id.

        Source: client/sampling.
        """
        raise MethodNotFoundError("sampling/createMessage")

    def list_roots(
        self, params: models.ListRootsRequestParams | models.RequestParams | None, ctx: Exchange
    ) -> (
        models.ListRootsResult
        | Mapping[str, Any]
        | Awaitable[models.ListRootsResult | Mapping[str, Any]]
    ):
        """Deprecated in this revision. Asks the client for its roots; travels inside an
        `InputRequiredResult`, without an id.

        Source: client/roots.
        """
        raise MethodNotFoundError("roots/list")

    def elicit(
        self, params: models.ElicitRequestParams, ctx: Exchange
    ) -> (
        models.ElicitResult
        | models.CreateTaskResult
        | Mapping[str, Any]
        | Awaitable[models.ElicitResult | models.CreateTaskResult | Mapping[str, Any]]
    ):
        """Asks the client's user for data in a form or an act on a web page; travels inside an
        `InputRequiredResult`, without an id.

        Only in 2025-06-18, 2025-11-25, 2026-07-28.

        Source: client/elicitation.
        """
        raise MethodNotFoundError("elicitation/create")

    def ping(
        self, params: models.RequestParams | None, ctx: Exchange
    ) -> models.EmptyResult | Mapping[str, Any] | Awaitable[models.EmptyResult | Mapping[str, Any]]:
        """Asks either peer for a sign of life; it is answered at once with an empty result.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

        Source: basic/utilities/ping.
        """
        raise MethodNotFoundError("ping")

    def get_task(
        self, params: models.GetTaskRequestParams, ctx: Exchange
    ) -> (
        models.GetTaskResult
        | Mapping[str, Any]
        | Awaitable[models.GetTaskResult | Mapping[str, Any]]
    ):
        """Asks how a task stands.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/get")

    def get_task_payload(
        self, params: models.GetTaskPayloadRequestParams, ctx: Exchange
    ) -> (
        models.CreateMessageResult
        | models.ElicitResult
        | Mapping[str, Any]
        | Awaitable[models.CreateMessageResult | models.ElicitResult | Mapping[str, Any]]
    ):
        """Fetches the real result of a task; the answer waits until the task has ended.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/result")

    def cancel_task(
        self, params: models.CancelTaskRequestParams, ctx: Exchange
    ) -> (
        models.CancelTaskResult
        | Mapping[str, Any]
        | Awaitable[models.CancelTaskResult | Mapping[str, Any]]
    ):
        """Stops a task; one that has already ended is error -32602.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/cancel")

    def list_tasks(
        self, params: models.PaginatedRequestParams | None, ctx: Exchange
    ) -> (
        models.ListTasksResult
        | Mapping[str, Any]
        | Awaitable[models.ListTasksResult | Mapping[str, Any]]
    ):
        """Asks for a page of the peer's tasks.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/list")

    def cancelled(
        self, params: models.CancelledNotificationParams, ctx: Exchange
    ) -> Awaitable[None] | None:
        """The client gives up a request it made, or (stdio) the server ends a
        `subscriptions/listen` stream. Over HTTP, closing the stream says the same.

        Source: basic/patterns/cancellation.
        """
        return None

    def progress(
        self, params: models.ProgressNotificationParams, ctx: Exchange
    ) -> Awaitable[None] | None:
        """Reports how far a request has come whose sender supplied a progress token.

        Source: basic/patterns/progress.
        """
        return None

    def resource_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> Awaitable[None] | None:
        """The server's resources have changed; list them again. It comes only on a subscription
        with `resourcesListChanged`.

        Source: server/resources.
        """
        return None

    def subscriptions_acknowledged(
        self, params: models.SubscriptionsAcknowledgedNotificationParams, ctx: Exchange
    ) -> Awaitable[None] | None:
        """First message of a subscription: the server says what it will deliver.

        Only in 2026-07-28.

        Source: basic/patterns/subscriptions.
        """
        return None

    def resource_updated(
        self, params: models.ResourceUpdatedNotificationParams, ctx: Exchange
    ) -> Awaitable[None] | None:
        """A resource named in `resourceSubscriptions` has changed; read it again.

        Source: server/resources.
        """
        return None

    def prompt_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> Awaitable[None] | None:
        """The server's prompts have changed; list them again. It comes only on a subscription with
        `promptsListChanged`.

        Source: server/prompts.
        """
        return None

    def tool_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> Awaitable[None] | None:
        """The server's tools have changed; list them again. It comes only on a subscription with
        `toolsListChanged`.

        Source: server/tools.
        """
        return None

    def logging_message(
        self, params: models.LoggingMessageNotificationParams, ctx: Exchange
    ) -> Awaitable[None] | None:
        """Deprecated in this revision. A log message about one request, sent only if the metadata
        of that request sets a log level.

        Source: server/utilities/logging.
        """
        return None

    def task_status(
        self, params: models.TaskStatusNotificationParams, ctx: Exchange
    ) -> Awaitable[None] | None:
        """The status of a task has changed. It may never come, so keep polling.

        Only in 2025-11-25.

        Source: basic/utilities/tasks.
        """
        return None

    def elicitation_complete(
        self, params: models.ElicitationCompleteNotificationParams, ctx: Exchange
    ) -> Awaitable[None] | None:
        """What a user was sent to do on a web page is done; the client may retry what waited for
        it.

        Only in 2025-11-25.

        Source: client/elicitation.
        """
        return None


def connect_sync(
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
    backend: Backend = "asyncio",
) -> SyncClient:
    """Open a session with a server, for code without an event loop.

        with connect_sync(["python", "weather.py"]) as client:
            result = client.call_tool("forecast", {"city": "Oslo"})

    It lives in a thread of its own until it is closed. Methods may be called by several threads.

    Args:
        target: As for `connect`, like all that follows, unless said otherwise.
        revision: The one to speak, or `handshake` for any with a session.
        handlers: What the client can do for the server: a `SyncClientHandlers` or a
            `ClientHandlers`. Plain functions run in threads of their own.
        name: How the client calls itself.
        version: Its version.
        title: Its name for people.
        info: What else it says of itself, as wire object.
        capabilities: What it declares beyond what the handlers show, as wire object.
        env: Environment of the server's process.
        cwd: Its working directory.
        transport: The one to use over HTTP.
        headers: Header fields for each HTTP request, or what makes them each time, which runs in
            the session's thread.
        auth: An authentication of httpx2's for HTTP requests.
        http_client: A client of httpx2's for coroutines; only the session's thread may use it.
        timeouts: How long the opening may take.
        cache: How many results are kept.
        max_concurrent_requests: How many handlers may be waiting at a time.
        backend: The kind of event loop that the thread runs.

    Raises:
        McpError: It could not be opened; see `connect`.
    """
    opening = connect(
        target,
        revision=revision,
        handlers=None if handlers is None else ThreadedHandlers(handlers),
        name=name,
        version=version,
        title=title,
        info=info,
        capabilities=capabilities,
        env=env,
        cwd=cwd,
        transport=transport,
        headers=headers,
        auth=auth,
        http_client=http_client,
        timeouts=timeouts,
        cache=cache,
        max_concurrent_requests=max_concurrent_requests,
    )
    return SyncClient(SessionThread(opening, backend))
