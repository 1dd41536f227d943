"""What a client of 2026-07-28 asks and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .._faces import HandlersBase, wire_params
from ..client_side.base import ClientBase
from ..errors import MethodNotFoundError

if TYPE_CHECKING:
    from ..exchange import Exchange
    from ..waiting import OnProgress
    from . import models


class Client(ClientBase):
    """An open session with a server, by the methods of 2026-07-28."""

    async def discover(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.DiscoverResult:
        """Asks which revisions and features a server has. Every server answers it; no client must
        send it.

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

    async def cancelled(
        self,
        request_id: models.RequestId,
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


class ClientHandlers(HandlersBase):
    """What a server of 2026-07-28 may ask and tell a client.

    Override what the client can do; the capabilities it declares follow from that.
    """

    revision: ClassVar[str] = "2026-07-28"
    mcp_stubs: ClassVar[bool] = True

    async def create_message(
        self, params: models.CreateMessageRequestParams, ctx: Exchange
    ) -> models.CreateMessageResult | Mapping[str, Any]:
        """Deprecated in this revision. Asks the client to run a model, with its user's approval;
        travels inside an `InputRequiredResult`, without an id.

        Source: client/sampling.
        """
        raise MethodNotFoundError("sampling/createMessage")

    async def list_roots(
        self, params: models.ListRootsRequestParams | None, ctx: Exchange
    ) -> models.ListRootsResult | Mapping[str, Any]:
        """Deprecated in this revision. Asks the client for its roots; travels inside an
        `InputRequiredResult`, without an id.

        Source: client/roots.
        """
        raise MethodNotFoundError("roots/list")

    async def elicit(
        self, params: models.ElicitRequestParams, ctx: Exchange
    ) -> models.ElicitResult | Mapping[str, Any]:
        """Asks the client's user for data in a form or an act on a web page; travels inside an
        `InputRequiredResult`, without an id.

        Source: client/elicitation.
        """
        raise MethodNotFoundError("elicitation/create")

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
