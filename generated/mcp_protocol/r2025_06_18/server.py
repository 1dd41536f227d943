"""What a server of 2025-06-18 answers and asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from .._faces import HandlersBase, SessionBase
from ..errors import MethodNotFoundError

if TYPE_CHECKING:
    from ..exchange import Exchange
    from . import models


class ServerHandlers(HandlersBase):
    """What a client of 2025-06-18 may ask and tell a server.

    Override what the server can do; the capabilities it declares follow from that.
    """

    revision: ClassVar[str] = "2025-06-18"
    mcp_stubs: ClassVar[bool] = True

    async def initialize(
        self, params: models.InitializeRequestParams, ctx: Exchange
    ) -> models.InitializeResult | Mapping[str, Any]:
        """First request of a client: it proposes a revision and says what the client can do.

        Source: basic/lifecycle.
        """
        raise MethodNotFoundError("initialize")

    async def ping(
        self, params: models.RequestParams | None, ctx: Exchange
    ) -> models.EmptyResult | Mapping[str, Any]:
        """Asks either peer for a sign of life; it is answered at once with an empty result.

        Source: basic/utilities/ping.
        """
        raise MethodNotFoundError("ping")

    async def list_resources(
        self, params: models.PaginatedRequestParams | None, ctx: Exchange
    ) -> models.ListResourcesResult | Mapping[str, Any]:
        """Asks for a page of the server's resources.

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/list")

    async def list_resource_templates(
        self, params: models.PaginatedRequestParams | None, ctx: Exchange
    ) -> models.ListResourceTemplatesResult | Mapping[str, Any]:
        """Asks for a page of the server's resource templates.

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/templates/list")

    async def read_resource(
        self, params: models.ReadResourceRequestParams, ctx: Exchange
    ) -> models.ReadResourceResult | Mapping[str, Any]:
        """Reads one resource. An unknown URI is error -32002.

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/read")

    async def subscribe(
        self, params: models.SubscribeRequestParams, ctx: Exchange
    ) -> models.EmptyResult | Mapping[str, Any]:
        """Asks to be told when one resource changes; needs the `subscribe` capability.

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/subscribe")

    async def unsubscribe(
        self, params: models.UnsubscribeRequestParams, ctx: Exchange
    ) -> models.EmptyResult | Mapping[str, Any]:
        """Ends a subscription to one resource.

        Source: server/resources.
        """
        raise MethodNotFoundError("resources/unsubscribe")

    async def list_prompts(
        self, params: models.PaginatedRequestParams | None, ctx: Exchange
    ) -> models.ListPromptsResult | Mapping[str, Any]:
        """Asks for a page of the server's prompts.

        Source: server/prompts.
        """
        raise MethodNotFoundError("prompts/list")

    async def get_prompt(
        self, params: models.GetPromptRequestParams, ctx: Exchange
    ) -> models.GetPromptResult | Mapping[str, Any]:
        """Fetches a prompt, filled in. An unknown prompt or a missing argument is error -32602.

        Source: server/prompts.
        """
        raise MethodNotFoundError("prompts/get")

    async def list_tools(
        self, params: models.PaginatedRequestParams | None, ctx: Exchange
    ) -> models.ListToolsResult | Mapping[str, Any]:
        """Asks for a page of the server's tools.

        Source: server/tools.
        """
        raise MethodNotFoundError("tools/list")

    async def call_tool(
        self, params: models.CallToolRequestParams, ctx: Exchange
    ) -> models.CallToolResult | Mapping[str, Any]:
        """Runs a tool. An unknown tool is error -32602; a failure inside the tool is a result with
        `isError`.

        Source: server/tools.
        """
        raise MethodNotFoundError("tools/call")

    async def set_level(
        self, params: models.SetLevelRequestParams, ctx: Exchange
    ) -> models.EmptyResult | Mapping[str, Any]:
        """Sets the lowest severity of log messages that the client wants.

        Source: server/utilities/logging.
        """
        raise MethodNotFoundError("logging/setLevel")

    async def complete(
        self, params: models.CompleteRequestParams, ctx: Exchange
    ) -> models.CompleteResult | Mapping[str, Any]:
        """Asks for values that could complete what a user has typed so far.

        Source: server/utilities/completion.
        """
        raise MethodNotFoundError("completion/complete")

    async def cancelled(self, params: models.CancelledNotificationParams, ctx: Exchange) -> None:
        """The sender gives up a request it made. The receiver stops work on it and need not answer;
        `initialize` cannot be cancelled.

        Source: basic/utilities/cancellation.
        """

    async def initialized(self, params: models.NotificationParams | None, ctx: Exchange) -> None:
        """The client has finished the handshake; normal requests may begin.

        Source: basic/lifecycle.
        """

    async def progress(self, params: models.ProgressNotificationParams, ctx: Exchange) -> None:
        """Reports how far a request has come whose sender supplied a progress token.

        Source: basic/utilities/progress.
        """

    async def roots_list_changed(
        self, params: models.NotificationParams | None, ctx: Exchange
    ) -> None:
        """The client's roots have changed; ask for them again.

        Source: client/roots.
        """


class ServerSession(SessionBase):
    """What a server may ask and tell its client while it handles a message."""

    async def ping(
        self,
        *,
        timeout: float | None = None,
    ) -> models.EmptyResult:
        """Asks either peer for a sign of life; it is answered at once with an empty result.

        Source: basic/utilities/ping.
        """
        fields: dict[str, Any] = {}
        result: models.EmptyResult = await self._request("ping", fields, timeout)
        return result

    async def create_message(
        self,
        max_tokens: int,
        messages: Sequence[models.SamplingMessage | Mapping[str, Any]],
        include_context: Literal["allServers", "none", "thisServer"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        model_preferences: models.ModelPreferences | Mapping[str, Any] | None = None,
        stop_sequences: Sequence[str] | None = None,
        system_prompt: str | None = None,
        temperature: int | float | None = None,
        *,
        timeout: float | None = None,
    ) -> models.CreateMessageResult:
        """Asks the client to run a model. The client picks the model, and its user should see and
        approve the exchange.

        Args:
            max_tokens: Most tokens to generate; the client may stop sooner.
            messages: The conversation so far, oldest first.
            include_context: Whose context to add: `none`, `thisServer` or `allServers`; the client
                may disregard it.
            metadata: Parameters for the model's provider, in its own format.
            model_preferences: Which model would suit; advice only.
            stop_sequences: Texts at which generation ends.
            system_prompt: Instructions for the model; the client may change or drop them.
            temperature: Randomness of the model, on the scale of its provider; absent leaves it to
                the client.

        Source: client/sampling.
        """
        fields: dict[str, Any] = {
            "max_tokens": max_tokens,
            "messages": messages,
            "include_context": include_context,
            "metadata": metadata,
            "model_preferences": model_preferences,
            "stop_sequences": stop_sequences,
            "system_prompt": system_prompt,
            "temperature": temperature,
        }
        result: models.CreateMessageResult = await self._request(
            "sampling/createMessage", fields, timeout
        )
        return result

    async def list_roots(
        self,
        *,
        timeout: float | None = None,
    ) -> models.ListRootsResult:
        """Asks the client for its roots.

        Source: client/roots.
        """
        fields: dict[str, Any] = {}
        result: models.ListRootsResult = await self._request("roots/list", fields, timeout)
        return result

    async def elicit(
        self,
        message: str,
        requested_schema: models.ElicitRequestParamsRequestedSchema | Mapping[str, Any],
        *,
        timeout: float | None = None,
    ) -> models.ElicitResult:
        """Asks the client's user for data in a form; never for secrets.

        Args:
            message: What is asked and why, for the user.
            requested_schema: The form: a flat JSON Schema object.

        Source: client/elicitation.
        """
        fields: dict[str, Any] = {
            "message": message,
            "requested_schema": requested_schema,
        }
        result: models.ElicitResult = await self._request("elicitation/create", fields, timeout)
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

        Source: basic/utilities/progress.
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
        """The server's resources have changed; list them again. It comes unasked if `listChanged`
        was declared.

        Source: server/resources.
        """
        fields: dict[str, Any] = {}
        await self._notify("notifications/resources/list_changed", fields)

    async def resource_updated(
        self,
        uri: str,
    ) -> None:
        """A resource that the client subscribed to has changed; read it again.

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
        """The server's prompts have changed; list them again. It comes unasked if `listChanged` was
        declared.

        Source: server/prompts.
        """
        fields: dict[str, Any] = {}
        await self._notify("notifications/prompts/list_changed", fields)

    async def tool_list_changed(
        self,
    ) -> None:
        """The server's tools have changed; list them again. It comes unasked if `listChanged` was
        declared.

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
        """A log message of the server. Before the client sets a level, the server decides what to
        send.

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
