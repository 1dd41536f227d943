"""What a client of 2024-11-05 asks and answers."""

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
    """An open session with a server, by the methods of 2024-11-05."""

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

        Source: basic/utilities/ping.
        """
        fields: dict[str, Any] = {}
        result: models.EmptyResult = await self._call("ping", fields, meta, timeout, on_progress)
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
        """Reads one resource. An unknown URI is error -32002.

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

    async def subscribe(
        self,
        uri: str,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.EmptyResult:
        """Asks to be told when one resource changes; needs the `subscribe` capability.

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

    async def set_level(
        self,
        level: models.LoggingLevel,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.EmptyResult:
        """Sets the lowest severity of log messages that the client wants.

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

    async def complete(
        self,
        argument: models.CompleteRequestParamsArgument | Mapping[str, Any],
        ref: models.CompleteRequestParamsRef | Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> models.CompleteResult:
        """Asks for values that could complete what a user has typed so far.

        Args:
            argument: The argument and what was typed so far.
            ref: The prompt or template to which the argument belongs.

        Source: server/utilities/completion.
        """
        fields: dict[str, Any] = {
            "argument": argument,
            "ref": ref,
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
        """The sender gives up a request it made. The receiver stops work on it and need not answer;
        `initialize` cannot be cancelled.

        Args:
            request_id: Id of a request that the sender issued earlier and that is presumably still
                open.
            reason: Why, for logs or people.

        Source: basic/utilities/cancellation.
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
        total: int | float | None = None,
    ) -> None:
        """Reports how far a request has come whose sender supplied a progress token.

        Args:
            progress: Amount done so far, in any unit; every notification has a higher value than
                the one before.
            progress_token: Token from the metadata of the request that this is about.
            total: Amount at completion, in the unit of `progress`; absent means unknown.

        Source: basic/utilities/progress.
        """
        fields: dict[str, Any] = {
            "progress": progress,
            "progress_token": progress_token,
            "total": total,
        }
        rows = self.session.revision.client_notifications
        await self.notify(
            "notifications/progress",
            wire_params(rows, "notifications/progress", fields, self.revision),
        )

    async def roots_list_changed(
        self,
    ) -> None:
        """The client's roots have changed; ask for them again.

        Source: client/roots.
        """
        fields: dict[str, Any] = {}
        rows = self.session.revision.client_notifications
        await self.notify(
            "notifications/roots/list_changed",
            wire_params(rows, "notifications/roots/list_changed", fields, self.revision),
        )


class ClientHandlers(HandlersBase):
    """What a server of 2024-11-05 may ask and tell a client.

    Override what the client can do; the capabilities it declares follow from that.
    """

    revision: ClassVar[str] = "2024-11-05"
    mcp_stubs: ClassVar[bool] = True

    async def ping(
        self, params: models.RequestParams | None, ctx: Exchange
    ) -> models.EmptyResult | Mapping[str, Any]:
        """Asks either peer for a sign of life; it is answered at once with an empty result.

        Source: basic/utilities/ping.
        """
        raise MethodNotFoundError("ping")

    async def create_message(
        self, params: models.CreateMessageRequestParams, ctx: Exchange
    ) -> models.CreateMessageResult | Mapping[str, Any]:
        """Asks the client to run a model. The client picks the model, and its user should see and
        approve the exchange.

        Source: client/sampling.
        """
        raise MethodNotFoundError("sampling/createMessage")

    async def list_roots(
        self, params: models.RequestParams | None, ctx: Exchange
    ) -> models.ListRootsResult | Mapping[str, Any]:
        """Asks the client for its roots.

        Source: client/roots.
        """
        raise MethodNotFoundError("roots/list")

    async def cancelled(self, params: models.CancelledNotificationParams, ctx: Exchange) -> None:
        """The sender gives up a request it made. The receiver stops work on it and need not answer;
        `initialize` cannot be cancelled.

        Source: basic/utilities/cancellation.
        """

    async def progress(self, params: models.ProgressNotificationParams, ctx: Exchange) -> None:
        """Reports how far a request has come whose sender supplied a progress token.

        Source: basic/utilities/progress.
        """

    async def resource_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> None:
        """The server's resources have changed; list them again. It comes unasked if `listChanged`
        was declared.

        Source: server/resources.
        """

    async def resource_updated(
        self, params: models.ResourceUpdatedNotificationParams, ctx: Exchange
    ) -> None:
        """A resource that the client subscribed to has changed; read it again.

        Source: server/resources.
        """

    async def prompt_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> None:
        """The server's prompts have changed; list them again. It comes unasked if `listChanged` was
        declared.

        Source: server/prompts.
        """

    async def tool_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> None:
        """The server's tools have changed; list them again. It comes unasked if `listChanged` was
        declared.

        Source: server/tools.
        """

    async def logging_message(
        self, params: models.LoggingMessageNotificationParams, ctx: Exchange
    ) -> None:
        """A log message of the server. Before the client sets a level, the server decides what to
        send.

        Source: server/utilities/logging.
        """
