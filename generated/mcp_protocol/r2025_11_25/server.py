"""What a server of 2025-11-25 answers and asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from .._faces import HandlersBase, SessionBase
from ..errors import MethodNotFoundError

if TYPE_CHECKING:
    from ..exchange import Exchange
    from . import models


class ServerHandlers(HandlersBase):
    """What a client of 2025-11-25 may ask and tell a server.

    Override what the server can do; the capabilities it declares follow from that.
    """

    revision: ClassVar[str] = "2025-11-25"
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
    ) -> models.CallToolResult | models.CreateTaskResult | Mapping[str, Any]:
        """Runs a tool. An unknown tool is error -32602; a failure inside the tool is a result with
        `isError`.

        Source: server/tools.
        """
        raise MethodNotFoundError("tools/call")

    async def get_task(
        self, params: models.GetTaskRequestParams, ctx: Exchange
    ) -> models.GetTaskResult | Mapping[str, Any]:
        """Asks how a task stands.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/get")

    async def get_task_payload(
        self, params: models.GetTaskPayloadRequestParams, ctx: Exchange
    ) -> models.CallToolResult | Mapping[str, Any]:
        """Fetches the real result of a task; the answer waits until the task has ended.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/result")

    async def cancel_task(
        self, params: models.CancelTaskRequestParams, ctx: Exchange
    ) -> models.CancelTaskResult | Mapping[str, Any]:
        """Stops a task; one that has already ended is error -32602.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/cancel")

    async def list_tasks(
        self, params: models.PaginatedRequestParams | None, ctx: Exchange
    ) -> models.ListTasksResult | Mapping[str, Any]:
        """Asks for a page of the peer's tasks.

        Source: basic/utilities/tasks.
        """
        raise MethodNotFoundError("tasks/list")

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
        """The sender gives up a request it made. The receiver stops work on it; `initialize` and
        tasks cannot be cancelled this way.

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

    async def task_status(self, params: models.TaskStatusNotificationParams, ctx: Exchange) -> None:
        """The status of a task has changed. It may never come, so keep polling.

        Source: basic/utilities/tasks.
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

    async def get_task(
        self,
        task_id: str,
        *,
        timeout: float | None = None,
    ) -> models.GetTaskResult:
        """Asks how a task stands.

        Args:
            task_id: Identifier of the task.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "task_id": task_id,
        }
        result: models.GetTaskResult = await self._request("tasks/get", fields, timeout)
        return result

    async def get_task_payload(
        self,
        task_id: str,
        *,
        timeout: float | None = None,
    ) -> models.CreateMessageResult | models.ElicitResult:
        """Fetches the real result of a task; the answer waits until the task has ended.

        Args:
            task_id: Identifier of the task.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "task_id": task_id,
        }
        result: models.CreateMessageResult | models.ElicitResult = await self._request(
            "tasks/result", fields, timeout
        )
        return result

    async def cancel_task(
        self,
        task_id: str,
        *,
        timeout: float | None = None,
    ) -> models.CancelTaskResult:
        """Stops a task; one that has already ended is error -32602.

        Args:
            task_id: Identifier of the task.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "task_id": task_id,
        }
        result: models.CancelTaskResult = await self._request("tasks/cancel", fields, timeout)
        return result

    async def list_tasks(
        self,
        cursor: str | None = None,
        *,
        timeout: float | None = None,
    ) -> models.ListTasksResult:
        """Asks for a page of the peer's tasks.

        Follows the pages to the last, and returns the items of all.

        Source: basic/utilities/tasks.
        """
        fields: dict[str, Any] = {
            "cursor": cursor,
        }
        result: models.ListTasksResult = await self._request("tasks/list", fields, timeout)
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
        tool_choice: models.ToolChoice | Mapping[str, Any] | None = None,
        tools: Sequence[models.Tool | Mapping[str, Any]] | None = None,
        *,
        timeout: float | None = None,
    ) -> models.CreateMessageResult:
        """Asks the client to run a model. The client picks the model, and its user should see and
        approve the exchange.

        Args:
            max_tokens: Most tokens to generate; the client may stop sooner.
            messages: The conversation so far, oldest first.
            include_context: Whose context to add; default `none`. The other values are being phased
                out and need the `sampling.context` capability.
            metadata: Parameters for the model's provider, in its own format.
            model_preferences: Which model would suit; advice only.
            stop_sequences: Texts at which generation ends.
            system_prompt: Instructions for the model; the client may change or drop them.
            temperature: Randomness of the model, on the scale of its provider; absent leaves it to
                the client.
            tool_choice: Whether the model may or must use tools (default `auto`); an error unless
                the client declared `sampling.tools`.
            tools: Tools the model may use; an error unless the client declared `sampling.tools`.

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
            "tool_choice": tool_choice,
            "tools": tools,
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
        params: models.ElicitRequestParams | Mapping[str, Any],
        *,
        timeout: float | None = None,
    ) -> models.ElicitResult:
        """Asks the client's user for something: data in a form, or an act on a web page.

        Args:
            params: Params of `elicitation/create`, in form mode or URL mode; without `mode` it is
                form mode.

        Source: client/elicitation.
        """
        result: models.ElicitResult = await self._request_whole(
            "elicitation/create", params, timeout
        )
        return result

    async def cancelled(
        self,
        reason: str | None = None,
        request_id: models.RequestId | None = None,
    ) -> None:
        """The sender gives up a request it made. The receiver stops work on it; `initialize` and
        tasks cannot be cancelled this way.

        Args:
            reason: Why, for logs or people.
            request_id: Id of a request that the sender issued earlier; never that of a task, for
                which `tasks/cancel` exists.

        Source: basic/utilities/cancellation.
        """
        fields: dict[str, Any] = {
            "reason": reason,
            "request_id": request_id,
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
        await self._notify("notifications/tasks/status", fields)

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

    async def elicitation_complete(
        self,
        elicitation_id: str,
    ) -> None:
        """What a user was sent to do on a web page is done; the client may retry what waited for
        it.

        Args:
            elicitation_id: Identifier from the request; unknown ones are ignored.

        Source: client/elicitation.
        """
        fields: dict[str, Any] = {
            "elicitation_id": elicitation_id,
        }
        await self._notify("notifications/elicitation/complete", fields)
