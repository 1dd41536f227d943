"""Tasks of a server: io.modelcontextprotocol/tasks, for clients.

A server may answer the call of a tool by a task. `Client.call_tool` then polls the task to its end,
and returns the result of the tool. `TaskClient` gives the task itself.

Source: ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import anyio

from .._wire import to_builtins
from ..errors import (
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
)
from ..foreign_text import safe_text
from ..protocol.lifecycle import Session, settings_of
from ..runtime.pending_requests import PARTING_SECONDS
from .base import ExtensionClient

if TYPE_CHECKING:  # it loads this module for the first task
    from .pipeline import RequestPipeline

IDENTIFIER = "io.modelcontextprotocol/tasks"
CALL, GET, UPDATE, CANCEL = "tools/call", "tasks/get", "tasks/update", "tasks/cancel"

POLL_SECONDS = 1.0
"""Seconds between polls if the server names none."""

_SHORTEST, _LONGEST = 0.05, 300.0  # seconds between polls, whatever the server names


class TaskClient(ExtensionClient):
    """An open session with a server, as calls that may be answered by tasks.

        tasks = client.seen_as(TaskClient)
        task = await tasks.start("report", {"year": 2025})
        ...
        result = await task.result()

    Raises:
        MissingCapabilityError: One of the sides does not declare the extension.
    """

    identifier: ClassVar[str] = IDENTIFIER

    async def start(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> TaskHandle:
        """Call a tool, without waiting for the end of its task.

        Args:
            tool: Its name.
            arguments: Its arguments.
            meta: Members to add to `_meta`.
            timeout: Seconds to wait for the task; `None` for no limit.

        Raises:
            RemoteError: The server refused the call.
            RequestTimeoutError: No response in time.
        """
        fields = {"name": tool, "arguments": arguments}
        answer = await self._requests.begin(CALL, fields, meta, timeout)
        task_id: str | None = getattr(answer, "task_id", None)
        return TaskHandle(self._requests, task_id, answer, tool=tool, meta=meta)

    def resume(self, task_id: str) -> TaskHandle:
        """A task that was started before, perhaps by another process; nothing is sent."""
        return TaskHandle(self._requests, task_id, None)


class TaskHandle:
    """A task of a server, or the result of a call that the server answered without one.

    Args:
        requests: The requests of the session.
        task_id: The id of the task; `None` without a task.
        answer: What the server said of it last, or the result.
        method: The request that it belongs to.
        tool: The tool that was called, if known.
        meta: Members to add to `_meta` of each request.

    Attributes:
        task_id: As passed. `TaskClient.resume` gives the handle of it later.
    """

    def __init__(
        self,
        requests: RequestPipeline,
        task_id: str | None,
        answer: Any,
        *,
        method: str = CALL,
        tool: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.task_id = task_id
        self._requests = requests
        self._method = method
        self._tool = tool
        self._meta = meta
        self._state: Any = answer
        self._is_whole = task_id is None  # a created task has neither result nor input requests
        self._answered: set[str] = set()
        self._began = anyio.current_time()

    def __repr__(self) -> str:
        name = "call without a task" if self.task_id is None else safe_text(self.task_id)
        return f"<TaskHandle of {name}, {self.status or 'not polled yet'}>"

    @property
    def status(self) -> str | None:
        """The status that the server stated last; `None` if it has not been asked yet."""
        if self.task_id is None:
            return "completed"
        status: str | None = getattr(self._state, "status", None)
        return status

    @property
    def message(self) -> str | None:
        """What the server says of the state, if anything."""
        message: str | None = getattr(self._state, "status_message", None)
        return message

    async def refresh(self, *, timeout: float | None = None) -> Any:
        """Get the task as it is now, as the typed result of `tasks/get`.

        Raises:
            RemoteError: The server does not have the task any more (-32602).
        """
        if self.task_id is not None:
            params = {"taskId": self.task_id}
            self._state = await self._requests.send(GET, params, self._meta, timeout)
            self._is_whole = True
        return self._state

    async def result(self, *, timeout: float | None = None) -> Any:
        """Poll until the task has ended, in the interval that the server asks for.

        The handlers of the client answer what the server asks for meanwhile, each question once.

        Args:
            timeout: Seconds to wait for each response; `None` for no limit.

        Returns:
            The result of the tool, a `CallToolResult` of the revision.

        Raises:
            RemoteError: The call failed, or the server does not have the task any more (-32602).
            RequestCancelledError: The task was cancelled.
            RequestTimeoutError: No response in time, or the task has outlived its time to live.
            RemoteProtocolError: The server asks too often, or for what this client does not have.
        """
        if self.task_id is None:
            validated = to_builtins(self._state)
            return await self._requests.late_result(self._method, validated, self._tool, timeout)
        rounds = 0
        if self.status is None or (not self._is_whole and self.status != "working"):
            await self.refresh(timeout=timeout)
        while True:
            match self.status:
                case "completed":
                    return await self._requests.late_result(
                        self._method, self._state.result, self._tool, timeout
                    )
                case "failed":
                    error = self._state.error
                    data = getattr(error, "data", None)
                    raise RemoteError(error.code, error.message, data, self._method)
                case "cancelled":
                    raise RequestCancelledError(f"{self._method}: the task was cancelled")
                case "input_required" if await self._answer_new(timeout):
                    rounds += 1
                    if rounds > self._requests.rounds:
                        raise RemoteProtocolError(
                            f"{self._method}: the server asked for input {rounds} times"
                        )
                case _:
                    pass
            await self._pause()
            await self.refresh(timeout=timeout)

    async def answer(self, responses: Mapping[str, Any], *, timeout: float | None = None) -> None:
        """Answer input requests, by their keys. `result` answers the others.

        Raises:
            RemoteError: The server refused the answers.
        """
        self._answered.update(responses)
        params = {"taskId": self.task_id, "inputResponses": dict(responses)}
        await self._requests.send(UPDATE, params, self._meta, timeout)

    async def cancel(self, *, timeout: float | None = None) -> None:
        """Ask the server to cancel the task, which may end otherwise nevertheless.

        Raises:
            RemoteError: The server does not have the task any more (-32602).
        """
        if self.task_id is not None:
            await self._requests.send(CANCEL, {"taskId": self.task_id}, self._meta, timeout)

    async def _answer_new(self, timeout: float | None) -> bool:
        """Answer the input requests that were not answered before; whether there were any."""
        new = {
            key: request
            for key, request in self._state.input_requests.items()
            if key not in self._answered
        }
        if new:
            responses = {
                key: await self._requests.input_response(self._method, request)
                for key, request in new.items()
            }
            await self.answer(responses, timeout=timeout)
        return bool(new)

    async def _pause(self) -> None:
        """Wait for the time of the next poll.

        Raises:
            RequestTimeoutError: The time to live of the task is over.
        """
        milliseconds = self._state.poll_interval_ms
        seconds = POLL_SECONDS if milliseconds is None else milliseconds / 1000
        seconds = min(max(seconds, _SHORTEST), _LONGEST)
        ttl = self._state.ttl_ms
        if ttl is not None:
            left = self._began + ttl / 1000 - anyio.current_time()
            if left <= 0:
                raise RequestTimeoutError(self._method, ttl / 1000)
            seconds = min(seconds, max(left, _SHORTEST))
        await anyio.sleep(seconds)


async def followed(
    requests: RequestPipeline,
    session: Session,
    created: Any,
    method: str,
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    limit: float | None,
) -> Any:
    """The result of a request that a server answered by a task.

    If nobody waits for the result any more, the task is cancelled.

    Args:
        requests: The requests of the session.
        session: The session.
        created: The task.
        method: The request.
        meta: Members to add to `_meta` of each request.
        timeout: Seconds for each response; `None` for no limit.
        limit: Seconds for all of it; `None` for no limit.

    Raises:
        RemoteProtocolError: One of the sides does not declare the extension.
        McpError: See `TaskHandle.result`.
    """
    sides = (session.own_capabilities, session.peer_capabilities)
    if any(settings_of(each, IDENTIFIER) is None for each in sides):
        raise RemoteProtocolError(
            f"{method}: expected a result, got a task, and not both sides declare {IDENTIFIER}"
        )
    task = TaskHandle(requests, created.task_id, created, method=method, meta=meta)
    try:
        with anyio.move_on_after(limit):
            return await task.result(timeout=timeout)
        raise RequestTimeoutError(method, limit or 0.0)
    except BaseException:
        if task.status not in ("completed", "failed", "cancelled"):
            with (
                anyio.CancelScope(shield=True),
                anyio.move_on_after(PARTING_SECONDS),
                suppress(McpError),
            ):
                await task.cancel()
        raise
