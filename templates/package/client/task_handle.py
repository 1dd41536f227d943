"""Tasks of a server, for clients: of 2025-11-25, and io.modelcontextprotocol/tasks.

    task = await client.call_tool("report", {"year": 2025}, task=True)
    async for update in task:
        print(update.status, update.progress)
    result = await task.result()

In 2025-11-25 a client asks for a task by `params.task`, gets the result by `tasks/result`, and
serves what the task asks by requests while that is open. In the extension the server decides; its
answer to `tasks/get` has the result, and what the task asks. In both, a handle polls while someone
waits in one of its methods, and not otherwise.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import inspect
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import msgspec
from msgspec import Raw

from .._wire import is_object, to_builtins
from ..errors import (
    LocalProtocolError,
    McpError,
    MethodNotFoundError,
    MissingCapabilityError,
    RemoteError,
    RemoteProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
)
from ..foreign_text import safe_repr, safe_text
from ..protocol.lifecycle import CAPABILITY, Session, declared, settings_of
from ..protocol.requests import PROGRESS
from ..runtime.pending_requests import NOTIFICATIONS, PARTING_SECONDS, OnProgress
from .callbacks import StartedCall
from .server_state import TOOLS_LIST

if TYPE_CHECKING:  # it loads this module for the first task
    from .pipeline import RequestPipeline

IDENTIFIER = "io.modelcontextprotocol/tasks"
CALL, GET, UPDATE, CANCEL = "tools/call", "tasks/get", "tasks/update", "tasks/cancel"
RESULT, STATUS_CHANGED = "tasks/result", "notifications/tasks/status"
AUGMENTED = ("tasks", "requests", "tools", "call")
"""The capability of a server of 2025-11-25 whose tools may be called as tasks."""

POLL_SECONDS = 1.0
"""Seconds between polls if the server names none."""

_SHORTEST, _LONGEST = 0.05, 300.0  # seconds between polls, whatever the server names
_TERMINAL = frozenset({"completed", "failed", "cancelled"})

Report: TypeAlias = tuple[float, float | None, str | None]
"""Progress, total and message."""


class TaskUpdate(msgspec.Struct, frozen=True):
    """News of a task.

    Attributes:
        status: Its status.
        message: The server's description of it, if there is one.
        progress: The progress; `None` for a change of the status or its description.
        total: The final value of the progress, if known.
    """

    status: str
    message: str | None = None
    progress: float | None = None
    total: float | None = None


class TaskHandle:
    """A task of a server, or the result of a call that the server answered without one.

    The iteration gives changes of the status, and progress where the server sends some, to the end
    of the task.

    Args:
        requests: The requests of the session.
        task_id: The id of the task; `None` without a task.
        answer: What the server said of it last, or the result.
        method: The request that it belongs to.
        tool: The tool that was called, if known.
        meta: Members to add to `_meta` of each request.
        on_progress: Called with progress in the task that waits for the result.
        read: Reads the result as the type that the caller named.

    Attributes:
        task_id: As passed. `client.task(task_id)` gives the handle of it later.
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
        on_progress: OnProgress | None = None,
        read: Callable[[Any], Any] | None = None,
    ) -> None:
        self.task_id = task_id
        self._requests = requests
        self._method = method
        self._tool = tool
        self._meta = meta
        self._on_progress = on_progress
        self._read = read
        self._state: Any = answer
        self._is_whole = task_id is None  # a created task has neither result nor input requests
        self._is_core = _is_core(requests)
        self._answered: set[str] = set()
        self._rounds = 0
        self._began = anyio.current_time()
        self._next_poll = 0.0
        self._payload: StartedCall[Raw] | None = None  # `tasks/result`, while input is required
        self._reports: deque[Report] = deque(maxlen=NOTIFICATIONS)
        self._news = anyio.Event()
        if answer is not None and task_id is not None:
            self._next_poll = self._began + self._interval()

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
        """The text in which the server describes the state; `None` for none."""
        message: str | None = getattr(self._state, "status_message", None)
        return message

    async def refresh(self, *, timeout: float | None = None) -> Any:
        """Get the task as it is now, as the typed result of `tasks/get`.

        Raises:
            RemoteError: The server does not have the task any more (-32602).
        """
        if self.task_id is not None:
            params = {"taskId": self.task_id}
            self._set_state(await self._requests.send(GET, params, self._meta, timeout))
            self._is_whole = True
        return self._state

    async def wait(self, *, timeout: float | None = None) -> str:
        """Wait until the task has ended, and return its status.

        The handlers of the client answer what the server asks for meanwhile, each question once.

        Args:
            timeout: Seconds to wait for each response; `None` for no limit.

        Raises:
            RemoteError: The server does not have the task any more (-32602).
            RequestTimeoutError: No response in time, or the task has outlived its time to live.
            RemoteProtocolError: The server asks too often, or for what this client does not have.
        """
        try:
            while self.status not in _TERMINAL:
                await self._advance(timeout)
                await self._report_progress()
        except BaseException:
            self._withdraw()
            raise
        return self.status or ""

    async def result(self, *, timeout: float | None = None) -> Any:
        """Wait until the task has ended, as `wait` does, and return the result of the tool.

        Args:
            timeout: Seconds to wait for each response; `None` for no limit.

        Returns:
            A `CallToolResult` of the revision, or the type that the caller named.

        Raises:
            RemoteError: The call failed, or the server does not have the task any more (-32602).
            RequestCancelledError: The task was cancelled.
            RequestTimeoutError: No response in time, or the task has outlived its time to live.
            RemoteProtocolError: The server asks too often, or for what this client does not have.
        """
        if self.task_id is None:
            wire = to_builtins(self._state)
        else:
            await self.wait(timeout=timeout)
            if self.status == "cancelled":
                raise RequestCancelledError(f"{self._method}: the task was cancelled")
            wire = await (self._core_result() if self._is_core else self._extension_result())
        result = await self._requests.late_result(self._method, wire, self._tool, timeout)
        return result if self._read is None else self._read(result)

    async def answer(self, responses: Mapping[str, Any], *, timeout: float | None = None) -> None:
        """Answer input requests, by their keys. `result` and `wait` answer the others.

        Raises:
            RemoteError: The server refused the answers.
            LocalProtocolError: In 2025-11-25, where the handlers of the client answer requests.
        """
        if self._is_core:
            raise LocalProtocolError(f"{UPDATE}: handlers of the client answer what the task asks")
        self._answered.update(responses)
        params = {"taskId": self.task_id, "inputResponses": dict(responses)}
        await self._requests.send(UPDATE, params, self._meta, timeout)

    async def cancel(self, *, timeout: float | None = None) -> None:
        """Ask the server to cancel the task. One that has ended stays as it is.

        Raises:
            RemoteError: The server does not have the task any more (-32602).
            MissingCapabilityError: The server has no `tasks/cancel`.
        """
        if self.task_id is None or (self._is_core and self.status in _TERMINAL):
            return
        params = {"taskId": self.task_id}
        try:
            cancelled = await self._requests.send(CANCEL, params, self._meta, timeout)
        except RemoteError:
            if not self._is_core:
                raise
            await self.refresh(timeout=timeout)  # it may have ended meanwhile
            if self.status not in _TERMINAL:
                raise
            return
        if self._is_core:
            self._set_state(cancelled)

    async def __aiter__(self) -> AsyncIterator[TaskUpdate]:
        """The news of the task, from its present state to its end; see `wait` for errors."""
        shown: TaskUpdate | None = None
        while True:
            if self._state is None:
                await self.refresh()
            now = self._news_of_status()
            while self._reports:
                progress, total, message = self._reports.popleft()
                yield TaskUpdate(now.status, message, progress, total)
            if now != shown:
                shown = now
                yield now
            if now.status in _TERMINAL:
                return
            if now == self._news_of_status():  # else there are others since these were taken
                await self._advance(None)

    def changed(self, state: Any) -> None:
        """Take over the state in a notification of the server."""
        if self.status not in _TERMINAL:
            self._set_state(state)

    def progressed(self, *reports: Report) -> None:
        """Take over reports of progress."""
        self._reports.extend(reports)
        self._wake()

    def _news_of_status(self) -> TaskUpdate:
        return TaskUpdate(self.status or "", self.message)

    def _set_state(self, state: Any) -> None:
        self._state = state
        self._next_poll = anyio.current_time() + self._interval()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def _interval(self) -> float:
        """Seconds between polls, as the server asks for them within bounds."""
        name = "poll_interval" if self._is_core else "poll_interval_ms"
        milliseconds: float | None = getattr(self._state, name, None)
        seconds = POLL_SECONDS if milliseconds is None else milliseconds / 1000
        return min(max(seconds, _SHORTEST), _LONGEST)

    async def _advance(self, timeout: float | None) -> None:
        """Wait for news of a task that has not ended, poll when it is time, and answer questions.

        Raises:
            RequestTimeoutError: The time to live of the task is over.
        """
        if self._state is None or not (self._is_core or self._is_whole or self._is_working()):
            await self.refresh(timeout=timeout)
            return
        if self.status == "input_required" and not self._is_core:
            await self._answer_new(timeout)
        elif self.status == "input_required" and self._payload is None:
            self._payload = StartedCall(self._fetch(), self._requests.peer.start_soon)
        news = self._news
        if self._reports or await self._is_answered():
            return
        now = anyio.current_time()
        with anyio.move_on_after(min(self._next_poll, self._end()) - now):
            await news.wait()
            return
        if anyio.current_time() >= self._end():
            raise RequestTimeoutError(self._method, self._end() - self._began)
        await self.refresh(timeout=timeout)

    def _is_working(self) -> bool:
        return self.status == "working"

    def _end(self) -> float:
        """When the time to live of the task is over, on the clock of the event loop."""
        ttl: float | None = getattr(self._state, "ttl" if self._is_core else "ttl_ms", None)
        return float("inf") if ttl is None else self._began + ttl / 1000

    async def _is_answered(self) -> bool:
        """Whether `tasks/result` was answered, so that the task has ended; gets its status."""
        if self._payload is None or not self._payload.done:
            return False
        await self.refresh()
        if self.status not in _TERMINAL:
            payload, self._payload = self._payload, None
            self._count_round()
            with suppress(RemoteError):  # the next one may tell more
                await payload
        return True

    async def _fetch(self) -> Raw:
        """The answer to `tasks/result`."""
        try:
            return await self._requests.send_raw(RESULT, {"taskId": self.task_id}, self._meta)
        finally:
            self._wake()

    async def _core_result(self) -> Raw:
        payload, self._payload = self._payload, None
        return await (self._fetch() if payload is None else payload)

    async def _extension_result(self) -> Any:
        if not self._is_whole:
            await self.refresh()
        if self.status == "failed":
            error = self._state.error
            data = getattr(error, "data", None)
            raise RemoteError(error.code, error.message, data, self._method)
        return self._state.result

    def _withdraw(self) -> None:
        """Wait for the result no more."""
        if self._payload is not None:
            self._payload.cancel()
            self._payload = None

    async def _report_progress(self) -> None:
        """Call the caller's function with the reports of progress that wait."""
        while self._reports and self._on_progress is not None:
            handled = self._on_progress(*self._reports.popleft())
            if inspect.isawaitable(handled):
                await handled
        self._reports.clear()

    async def _answer_new(self, timeout: float | None) -> None:
        """Answer the input requests that were not answered before."""
        new = {
            key: request
            for key, request in self._state.input_requests.items()
            if key not in self._answered
        }
        if not new:
            return
        responses = {
            key: await self._requests.input_response(self._method, request)
            for key, request in new.items()
        }
        await self.answer(responses, timeout=timeout)
        self._count_round()

    def _count_round(self) -> None:
        """Bound how often the server asks for input.

        Raises:
            RemoteProtocolError: It has asked too often.
        """
        self._rounds += 1
        if self._rounds > self._requests.rounds:
            raise RemoteProtocolError(
                f"{self._method}: the server asked for input {self._rounds} times"
            )


class _Follower:
    """Passes notifications about a task on to its handle, as long as someone has the handle.

    It listens before the task is known, since notifications may come right behind its creation.

    Args:
        requests: The requests of the session.

    Attributes:
        settled: Whether the connection has ended.
    """

    def __init__(self, requests: RequestPipeline) -> None:
        self.settled = False
        self._related = requests.session.revision.facts.meta.related_task
        self._listeners = requests.peer.callers.listeners
        self._early: deque[Any] | None = deque(maxlen=NOTIFICATIONS)
        self._handle: Callable[[], TaskHandle | None] = _no_handle
        self._task_id: str | None = None
        for each in [each for each in self._listeners if isinstance(each, _Follower)]:
            if each.is_unused:
                each.stop()
        self._listeners.add(self)

    @property
    def is_unused(self) -> bool:
        """Whether nobody has the handle any more."""
        return self._early is None and self._handle() is None

    def begin(self, task_id: str, handle: TaskHandle) -> None:
        """Pass on what is about a task, and has been since it was created."""
        self._task_id, self._handle = task_id, weakref.ref(handle)
        early, self._early = self._early, None
        for change in early or ():
            self.tell(change)

    def stop(self) -> None:
        """Listen no more."""
        self._listeners.discard(self)

    def settle(self, response: object = None, failure: object = None) -> None:
        """The connection has ended."""
        self.settled = True

    def tell(self, *arguments: Any) -> None:
        """Pass on a notification, if it is about the task."""
        change = arguments[0]
        name, params = change.method.name, change.params
        if name not in (STATUS_CHANGED, PROGRESS):
            return
        if self._early is not None:
            self._early.append(change)
            return
        handle = self._handle()
        if handle is None:
            return
        if name == STATUS_CHANGED and params.task_id == self._task_id:
            handle.changed(params)
        elif name == PROGRESS and self._names_task(change.meta):
            message = getattr(params, "message", None)
            handle.progressed((params.progress, params.total, message))

    def _names_task(self, meta: Mapping[str, Any]) -> bool:
        task = meta.get(self._related or "")
        return is_object(task) and task.get("taskId") == self._task_id


def _no_handle() -> None:
    """No handle yet."""


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
        task: What is asked of the task, such as `ttl`; `True` for nothing.
        meta: Members to add to `_meta`.
        timeout: Seconds to wait for the task; `None` for no limit.
        on_progress: Called with progress in the task that waits for the result.
        read: Reads the result as the type that the caller named.

    Raises:
        MissingCapabilityError: One of the sides does not declare tasks, or the revision has none.
        MethodNotFoundError: The tool must not be called as a task.
        RemoteError: The server refused the call.
        RequestTimeoutError: No response in time.
    """
    if not _is_core(requests):
        check_extension(requests.session, CALL)
        answer = await requests.begin(CALL, fields, meta, timeout)
        task_id: str | None = getattr(answer, "task_id", None)
        return TaskHandle(requests, task_id, answer, tool=fields["name"], meta=meta, read=read)
    await _check_support(requests, fields["name"])
    fields = {**fields, "task": {} if isinstance(task, bool) else dict(task)}
    before: list[Report] = []

    def keep(progress: float, total: float | None, message: str | None) -> None:
        before.append((progress, total, message))

    follower = _Follower(requests)
    try:
        answer = await requests.begin(CALL, fields, meta, timeout, keep)
        created = getattr(answer, "task", None)
        if created is None:
            raise RemoteProtocolError(f"{CALL}: expected a task, got the result of the tool")
    except BaseException:
        follower.stop()
        raise
    handle = TaskHandle(
        requests,
        created.task_id,
        created,
        tool=fields["name"],
        meta=meta,
        on_progress=on_progress,
        read=read,
    )
    handle.progressed(*before)
    follower.begin(created.task_id, handle)
    return handle


def resume_task(requests: RequestPipeline, task_id: str) -> TaskHandle:
    """A task that was started before; nothing is sent.

    Raises:
        MissingCapabilityError: One of the sides does not declare tasks.
    """
    if not _is_core(requests):
        check_extension(requests.session, GET)
    elif not declared(requests.session.peer_capabilities, ("tasks",)):
        raise MissingCapabilityError(("tasks",), GET)
    handle = TaskHandle(requests, task_id, None)
    if _is_core(requests):
        _Follower(requests).begin(task_id, handle)
    return handle


async def call_as_task(
    requests: RequestPipeline,
    params: Any,
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    on_progress: OnProgress | None,
    limit: float | None,
) -> Any:
    """The result of a tool that a server of 2025-11-25 lets be called as a task only.

    If nobody waits for the result any more, the task is cancelled.

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


async def followed(
    requests: RequestPipeline,
    created: Any,
    method: str,
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    limit: float | None,
) -> Any:
    """The result of a request that a server answered by a task of the extension.

    If nobody waits for the result any more, the task is cancelled.

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
    task = TaskHandle(requests, created.task_id, created, method=method, meta=meta)
    return await _result_of(task, method, timeout, limit)


async def _result_of(
    task: TaskHandle, method: str, timeout: float | None, limit: float | None
) -> Any:
    """The result of a task, which is cancelled if nobody waits for the result any more."""
    try:
        with anyio.move_on_after(limit):
            return await task.result(timeout=timeout)
        raise RequestTimeoutError(method, limit or 0.0)
    except BaseException:
        if task.status not in _TERMINAL:
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
        MissingCapabilityError: One of them does not.
    """
    sides = (session.own_capabilities, session.peer_capabilities)
    if any(settings_of(each, IDENTIFIER) is None for each in sides):
        raise MissingCapabilityError((CAPABILITY, IDENTIFIER), f"{method} as a task")


async def _check_support(requests: RequestPipeline, tool: str) -> None:
    """Check that a server of 2025-11-25 lets a tool be called as a task; list its tools if needed.

    Raises:
        MissingCapabilityError: It lets none.
        MethodNotFoundError: It does not let this one.
    """
    if not declared(requests.session.peer_capabilities, AUGMENTED):
        raise MissingCapabilityError(AUGMENTED, f"{CALL} as a task")
    support = requests.state.task_support
    if tool not in support:
        await requests.pages(TOOLS_LIST, {}, None, None)
    if tool not in support:
        raise MethodNotFoundError(CALL, f"tool {safe_repr(tool)} must not be called as a task")


def _is_core(requests: RequestPipeline) -> bool:
    """Whether tasks are part of the revision, and not of an extension."""
    return RESULT in requests.session.revision.client_requests
