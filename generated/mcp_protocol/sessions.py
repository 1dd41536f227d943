"""What a server may ask and tell its client, in whichever revision was agreed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._faces import SessionBase

if TYPE_CHECKING:
    from . import models


class ServerSession(SessionBase):
    """What a server may ask and tell its client while it handles a message.

    A message that the revision does not have raises MethodNotFoundError, and a field that it does
    not have InvalidParamsError; nothing is sent then.
    """

    async def ping(
        self,
        *,
        timeout: float | None = None,
    ) -> models.EmptyResult:
        """Asks either peer for a sign of life; it is answered at once with an empty result.

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

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

        Only in 2025-11-25.

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

        Only in 2025-11-25.

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

        Only in 2025-11-25.

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

        Only in 2025-11-25.

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

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

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

        Only in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.

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

        Only in 2025-06-18, 2025-11-25.

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

        Only in 2026-07-28.

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
        await self._notify("notifications/tasks/status", fields)

    async def elicitation_complete(
        self,
        elicitation_id: str,
    ) -> None:
        """What a user was sent to do on a web page is done; the client may retry what waited for
        it.

        Only in 2025-11-25.

        Args:
            elicitation_id: Identifier from the request; unknown ones are ignored.

        Source: client/elicitation.
        """
        fields: dict[str, Any] = {
            "elicitation_id": elicitation_id,
        }
        await self._notify("notifications/elicitation/complete", fields)
