"""What a server of 2026-07-28 answers and asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .._faces import HandlersBase, SessionBase
from ..errors import MethodNotFoundError

if TYPE_CHECKING:
    from ..exchange import Exchange
    from . import models


class ServerHandlers(HandlersBase):
    """What a client of 2026-07-28 may ask and tell a server.

    Override what the server can do; the capabilities it declares follow from that.
    """

    revision: ClassVar[str] = "2026-07-28"
    mcp_stubs: ClassVar[bool] = True

    async def discover(
        self, params: models.RequestParams, ctx: Exchange
    ) -> models.DiscoverResult | Mapping[str, Any]:
        """Asks which revisions and features a server has. Every server answers it; no client must
        send it.

        Source: server/discover.
        """
        raise MethodNotFoundError("server/discover")

    async def list_resources(
        self, params: models.PaginatedRequestParams, ctx: Exchange
    ) -> models.ListResourcesResult | Mapping[str, Any]:
        """Asks for a page of the server's resources.

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/list")

    async def list_resource_templates(
        self, params: models.PaginatedRequestParams, ctx: Exchange
    ) -> models.ListResourceTemplatesResult | Mapping[str, Any]:
        """Asks for a page of the server's resource templates.

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/templates/list")

    async def read_resource(
        self, params: models.ReadResourceRequestParams, ctx: Exchange
    ) -> models.InputRequiredResult | models.ReadResourceResult | Mapping[str, Any]:
        """Reads one resource. An unknown URI is error -32602 (servers of earlier revisions answer
        -32002).

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/read")

    async def subscriptions_listen(
        self, params: models.SubscriptionsListenRequestParams, ctx: Exchange
    ) -> models.SubscriptionsListenResult | Mapping[str, Any]:
        """Opens a stream of notifications that lasts until either side ends it.

        Source: basic/patterns/subscriptions.
        """
        raise MethodNotFoundError("subscriptions/listen")

    async def list_prompts(
        self, params: models.PaginatedRequestParams, ctx: Exchange
    ) -> models.ListPromptsResult | Mapping[str, Any]:
        """Asks for a page of the server's prompts.

        Source: server/prompts.
        """
        raise MethodNotFoundError("prompts/list")

    async def get_prompt(
        self, params: models.GetPromptRequestParams, ctx: Exchange
    ) -> models.InputRequiredResult | models.GetPromptResult | Mapping[str, Any]:
        """Fetches a prompt, filled in. An unknown prompt or a missing argument is error -32602.

        Source: server/prompts.
        """
        raise MethodNotFoundError("prompts/get")

    async def list_tools(
        self, params: models.PaginatedRequestParams, ctx: Exchange
    ) -> models.ListToolsResult | Mapping[str, Any]:
        """Asks for a page of the server's tools.

        Source: server/tools.
        """
        raise MethodNotFoundError("tools/list")

    async def call_tool(
        self, params: models.CallToolRequestParams, ctx: Exchange
    ) -> models.InputRequiredResult | models.CallToolResult | Mapping[str, Any]:
        """Runs a tool. An unknown tool is error -32602; a failure inside the tool is a result with
        `isError`.

        Source: server/tools.
        """
        raise MethodNotFoundError("tools/call")

    async def complete(
        self, params: models.CompleteRequestParams, ctx: Exchange
    ) -> models.CompleteResult | Mapping[str, Any]:
        """Asks for values that could complete what a user has typed so far.

        Source: server/utilities/completion.
        """
        raise MethodNotFoundError("completion/complete")

    async def cancelled(self, params: models.CancelledNotificationParams, ctx: Exchange) -> None:
        """The client gives up a request it made, or (stdio) the server ends a
        `subscriptions/listen` stream. Over HTTP, closing the stream says the same.

        Source: basic/patterns/cancellation.
        """


class ServerSession(SessionBase):
    """What a server may ask and tell its client while it handles a message."""

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
        await self._notify("notifications/cancelled", fields)

    async def progress(
        self,
        progress: int | float,
        progress_token: models.ProgressToken,
        message: str | None = None,
        total: int | float | None = None,
    ) -> None:
        """Reports how far a request has come whose sender supplied a progress token.

        Args:
            progress: Amount done so far, in any unit; every notification has a higher value than
                the one before.
            progress_token: Token from the metadata of the request that this is about.
            message: What is happening right now, for people.
            total: Amount at completion, in the unit of `progress`; absent means unknown.

        Source: basic/patterns/progress.
        """
        fields: dict[str, Any] = {
            "progress": progress,
            "progress_token": progress_token,
            "message": message,
            "total": total,
        }
        await self._notify("notifications/progress", fields)

    async def resource_list_changed(
        self,
    ) -> None:
        """The server's resources have changed; list them again. It comes only on a subscription
        with `resourcesListChanged`.

        Source: server/resources.
        """
        fields: dict[str, Any] = {}
        await self._notify("notifications/resources/list_changed", fields)

    async def subscriptions_acknowledged(
        self,
        notifications: models.SubscriptionFilter | Mapping[str, Any],
    ) -> None:
        """First message of a subscription: the server says what it will deliver.

        Args:
            notifications: The kinds of notification granted; those the server lacks are left out.

        Source: basic/patterns/subscriptions.
        """
        fields: dict[str, Any] = {
            "notifications": notifications,
        }
        await self._notify("notifications/subscriptions/acknowledged", fields)

    async def resource_updated(
        self,
        uri: str,
    ) -> None:
        """A resource named in `resourceSubscriptions` has changed; read it again.

        Args:
            uri: Address of what changed; possibly a part of the resource subscribed to.

        Source: server/resources.
        """
        fields: dict[str, Any] = {
            "uri": uri,
        }
        await self._notify("notifications/resources/updated", fields)

    async def prompt_list_changed(
        self,
    ) -> None:
        """The server's prompts have changed; list them again. It comes only on a subscription with
        `promptsListChanged`.

        Source: server/prompts.
        """
        fields: dict[str, Any] = {}
        await self._notify("notifications/prompts/list_changed", fields)

    async def tool_list_changed(
        self,
    ) -> None:
        """The server's tools have changed; list them again. It comes only on a subscription with
        `toolsListChanged`.

        Source: server/tools.
        """
        fields: dict[str, Any] = {}
        await self._notify("notifications/tools/list_changed", fields)

    async def logging_message(
        self,
        data: Any,
        level: models.LoggingLevel,
        logger: str | None = None,
    ) -> None:
        """Deprecated in this revision. A log message about one request, sent only if the metadata
        of that request sets a log level.

        Args:
            data: What is logged: any JSON value; it must hold no secrets.
            level: Severity of the message.
            logger: Name of the part of the server that speaks.

        Source: server/utilities/logging.
        """
        fields: dict[str, Any] = {
            "data": data,
            "level": level,
            "logger": logger,
        }
        await self._notify("notifications/message", fields)
