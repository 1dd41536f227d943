"""Calls of tools as tasks, by the tasks of 2025-11-25 and of io.modelcontextprotocol/tasks.

In 2025-11-25, a client requests a task by `params.task` if the server and the tool allow tasks.
With the extension, the server decides.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from msgspec import Raw

from .._wire import UNREADABLE, encode, error_text
from ..errors import (
    McpError,
    MethodNotFoundError,
    MissingCapabilityError,
    RemoteProtocolError,
    RequestTimeoutError,
)
from ..foreign_text import safe_repr
from ..protocol.lifecycle import CAPABILITY, Session, is_declared, settings_of
from ..runtime.pending_requests import PARTING_SECONDS, OnProgress
from ..runtime.stubs import typed_params
from ..runtime.task_handle import CALL, GET, TaskFollower, TaskHandle, is_core
from ..runtime.task_store import TERMINAL
from .callbacks import StartedCall
from .input_rounds import input_response, provide_input
from .pipeline import RequestOptions, RequestPipeline
from .server_state import TOOLS_LIST

IDENTIFIER = "io.modelcontextprotocol/tasks"
AUGMENTED = ("tasks", "requests", "tools", "call")
"""The path of the server capability for tools as tasks, in 2025-11-25."""


async def start_task(
    requests: RequestPipeline,
    fields: Mapping[str, Any],
    task: Mapping[str, Any] | bool,
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    on_progress: OnProgress | None,
    read: Callable[[Any], Any] | None = None,
) -> TaskHandle:
    """Call a tool as a task, without waiting for its end.

    Args:
        requests: The requests of the session.
        fields: The params of the call, by Python names.
        task: The requested options of the task, such as `ttl`; `True` for none.
        meta: Members to add to `_meta`.
        timeout: Seconds to wait for the task; `None` for no limit.
        on_progress: Called with progress, in the asyncio or trio task that waits for the result.
        read: Reads the result as the type that the caller named.

    Raises:
        MissingCapabilityError: One of the sides does not declare tasks, or the revision has none.
        MethodNotFoundError: The tool does not allow tasks.
        RemoteError: The server refused the call.
        RequestTimeoutError: No response in time.
    """
    if not is_core(requests.session.revision):
        check_extension(requests.session, CALL)
        answer = await _begin(requests, fields, meta, timeout)
        task_id: str | None = getattr(answer, "task_id", None)
        return _handle(requests, task_id, answer, tool=fields["name"], meta=meta, read=read)
    await _check_support(requests, fields["name"])
    fields = {**fields, "task": {} if isinstance(task, bool) else dict(task)}
    follower = TaskFollower(requests.session.revision, requests.peer.callers)
    try:
        answer = await _begin(requests, fields, meta, timeout, follower.keep_report)
        created = getattr(answer, "task", None)
        if created is None:
            raise RemoteProtocolError(f"{CALL}: expected a task, got the result of the tool")
    except BaseException:
        follower.stop()
        raise
    handle = _handle(
        requests,
        created.task_id,
        created,
        tool=fields["name"],
        meta=meta,
        on_progress=on_progress,
        read=read,
    )
    follower.begin(created.task_id, handle)
    return handle


def resume_task(requests: RequestPipeline, task_id: str) -> TaskHandle:
    """The handle of a task that was started before; sends nothing.

    Raises:
        MissingCapabilityError: One of the sides does not declare tasks.
    """
    if not is_core(requests.session.revision):
        check_extension(requests.session, GET)
    elif not is_declared(requests.session.peer_capabilities, ("tasks",)):
        raise MissingCapabilityError(("tasks",), GET)
    handle = _handle(requests, task_id, None)
    if is_core(requests.session.revision):
        TaskFollower(requests.session.revision, requests.peer.callers).begin(task_id, handle)
    return handle


async def call_as_task(
    requests: RequestPipeline,
    params: Any,
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    on_progress: OnProgress | None,
    limit: float | None,
) -> Any:
    """Call a tool that requires a task in 2025-11-25, and wait for the result.

    If waiting is cancelled or times out, the task is cancelled.

    Args:
        requests: The requests of the session.
        params: The typed params of the call.
        meta: Members to add to `_meta` of each request.
        timeout: Seconds for each response; `None` for no limit.
        on_progress: Called with progress.
        limit: Seconds for all of it; `None` for no limit.

    Raises:
        McpError: See `start_task` and `TaskHandle.result`.
    """
    fields = {"name": params.name, "arguments": params.arguments}
    task = await start_task(requests, fields, True, meta, timeout, on_progress)
    return await _result_of(task, CALL, timeout, limit)


async def follow_task(
    requests: RequestPipeline,
    created: Any,
    method: str,
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    limit: float | None,
) -> Any:
    """Wait for the result of a request that the server answered by a task of the extension.

    If waiting is cancelled or times out, the task is cancelled.

    Args:
        requests: The requests of the session.
        created: The task.
        method: The request.
        meta: Members to add to `_meta` of each request.
        timeout: Seconds for each response; `None` for no limit.
        limit: Seconds for all of it; `None` for no limit.

    Raises:
        RemoteProtocolError: One of the sides does not declare the extension.
        McpError: See `TaskHandle.result`.
    """
    try:
        check_extension(requests.session, method)
    except MissingCapabilityError:
        raise RemoteProtocolError(
            f"{method}: expected a result, got a task, and not both sides declare {IDENTIFIER}"
        ) from None
    task = _handle(requests, created.task_id, created, method=method, meta=meta)
    return await _result_of(task, method, timeout, limit)


async def _result_of(
    task: TaskHandle, method: str, timeout: float | None, limit: float | None
) -> Any:
    """Wait for the result of a task; cancel the task on an exception or a timeout."""
    try:
        with anyio.move_on_after(limit):
            return await task.result(timeout=timeout)
        raise RequestTimeoutError(method, limit or 0.0)
    except BaseException:
        if task.status not in TERMINAL:
            with (
                anyio.CancelScope(shield=True),
                anyio.move_on_after(PARTING_SECONDS),
                suppress(McpError),
            ):
                await task.cancel()
        raise


def check_extension(session: Session, method: str) -> None:
    """Check that both sides declare the extension.

    Raises:
        MissingCapabilityError: One of the sides does not declare the extension.
    """
    sides = (session.own_capabilities, session.peer_capabilities)
    if any(settings_of(each, IDENTIFIER) is None for each in sides):
        raise MissingCapabilityError((CAPABILITY, IDENTIFIER), f"{method} as a task")


async def _check_support(requests: RequestPipeline, tool: str) -> None:
    """Check that a tool may be called as a task in 2025-11-25; list the tools if needed.

    Raises:
        MissingCapabilityError: The server does not declare tasks of tools.
        MethodNotFoundError: The tool does not allow tasks.
    """
    if not is_declared(requests.session.peer_capabilities, AUGMENTED):
        raise MissingCapabilityError(AUGMENTED, f"{CALL} as a task")
    support = requests.state.task_support
    if tool not in support:
        await requests.pages(TOOLS_LIST, {}, None, None)
    if tool not in support:
        raise MethodNotFoundError(CALL, f"tool {safe_repr(tool)} must not be called as a task")


async def _begin(
    requests: RequestPipeline,
    fields: Mapping[str, Any],
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    on_progress: OnProgress | None = None,
) -> Any:
    """Call a tool; returns a task if the server responds with one. The result is not validated."""
    row = requests.row(CALL)
    options = RequestOptions(CALL, row.facts, meta, timeout, on_progress)
    params = typed_params(row, fields, requests.session.revision.name)
    result = await requests.send_with(options, params)
    if row.facts.input_required and hasattr(result, "input_requests"):
        result = await provide_input(requests, options, params, result)
    return result


class _TaskRequests:
    """Sends the requests that concern a task; see `task_handle.TaskRequests`."""

    def __init__(self, requests: RequestPipeline) -> None:
        self._requests = requests
        self.rounds = requests.application.settings.limits.input_rounds
        self.send = requests.send

    async def send_raw(
        self, method: str, params: Any, meta: Mapping[str, Any] | None = None
    ) -> Raw:
        """Send a request, and return its result as unchecked JSON."""
        return await self._requests.send_raw(method, params, meta)

    async def late_result(
        self, method: str, wire: Mapping[str, Any] | Raw, tool: str | None, timeout: float | None
    ) -> Any:
        """Decode and validate the result of a request that another message contained.

        Args:
            method: The request.
            wire: The result as wire object or JSON.
            tool: The tool whose output schema validates the result, if any.
            timeout: Seconds for the validation.

        Raises:
            RemoteProtocolError: The value is not a result of the request.
        """
        requests = self._requests
        try:
            decode = requests.connection.state.result_decoder(requests.row(method))
            result = decode(encode(wire))
        except UNREADABLE as error:
            raise RemoteProtocolError(f"{method}: result: {error_text(error)}") from None
        if any(hasattr(result, member) for member in ("task", "task_id", "input_requests")):
            raise RemoteProtocolError(f"{method}: expected the final result, got another request")
        if tool is not None and requests.state.output_schemas.has_schema(tool):
            await requests.state.output_schemas.check(tool, result, timeout)
        return result

    async def input_response(self, method: str, input_request: Any) -> Any:
        """The response of the client's handler to a request for input."""
        return await input_response(self._requests, method, input_request)


def _handle(
    requests: RequestPipeline, task_id: str | None, answer: Any, **options: Any
) -> TaskHandle:
    """The handle of a task; see `TaskHandle`."""
    return TaskHandle(
        _TaskRequests(requests),
        task_id,
        answer,
        is_core=is_core(requests.session.revision),
        start=partial(StartedCall, start_soon=requests.peer.start_soon),
        **options,
    )
