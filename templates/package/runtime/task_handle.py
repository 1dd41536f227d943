"""Tasks of the peer, for the requesting side: of 2025-11-25, and of the tasks extension.

    task = await client.call_tool("report", {"year": 2025}, task=True)
    async for update in task:
        print(update.status, update.progress)
    result = await task.result()

In 2025-11-25 either side requests a task by `params.task`, and gets the result by `tasks/result`;
while this request is open, the peer may send requests for input. In the extension the server
decides to create a task; its response to `tasks/get` has the result, or the input requests. In
both, a handle polls only while a caller waits in one of its methods.

Source: basic/utilities/tasks (2025-11-25), ext-tasks/specification/draft/tasks.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import anyio
import msgspec

from .._wire import is_object, to_builtins
from ..errors import (
    LocalProtocolError,
    RemoteError,
    RemoteProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
)
from ..facts import Revision
from ..foreign_text import safe_text
from ..protocol.requests import PROGRESS
from .pending_requests import NotificationQueue, OnProgress, PendingRequests
from .task_store import TERMINAL

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # type checkers have it built in

CALL, GET, UPDATE, CANCEL = "tools/call", "tasks/get", "tasks/update", "tasks/cancel"
RESULT, STATUS_CHANGED = "tasks/result", "notifications/tasks/status"

POLL_SECONDS = 1.0
"""Seconds between polls if the peer states no interval."""

_SHORTEST, _LONGEST = 0.05, 300.0  # bounds of the peer's interval, in seconds

if TYPE_CHECKING:
    ResultT = TypeVarWithDefault("ResultT", default=Any)
else:
    ResultT = TypeVar("ResultT")


class TaskUpdate(msgspec.Struct, frozen=True):
    """A change or a progress report of a task.

    Attributes:
        status: The status of the task.
        message: The peer's description of the state, if there is one.
        progress: The progress; `None` for a change of the status or its description.
        total: The final value of the progress, if known.
    """

    status: str
    message: str | None = None
    progress: float | None = None
    total: float | None = None


class TaskRequests(Protocol):
    """Sends the requests that concern a task."""

    @property
    def rounds(self) -> int:
        """Rounds in a row in which the peer may ask for input."""
        ...

    async def send(
        self,
        method: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Send a request, and return its typed result."""
        ...

    async def send_raw(
        self, method: str, params: Any, meta: Mapping[str, Any] | None = None
    ) -> Any:
        """Send a request, and return its result as wire object or raw JSON."""
        ...

    async def late_result(
        self, method: str, wire: Any, tool: str | None, timeout: float | None
    ) -> Any:
        """The typed result of a request whose result arrived in another message."""
        ...

    async def input_response(self, method: str, input_request: Any) -> Any:
        """The response to one input request of the extension."""
        ...


class Started(Protocol):
    """A coroutine that runs in a task of the session."""

    @property
    def done(self) -> bool:
        """Whether the coroutine has ended."""
        ...

    def cancel(self) -> None:
        """Cancel the coroutine."""
        ...

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the result."""
        ...


class TaskHandle(Generic[ResultT]):
    """A task of the peer, or the result of a call that a server answered without a task.

    Iteration yields changes of the status, and progress if the peer sends progress, until the task
    ends. Progress that it yields is not passed to `on_progress`.

    Args:
        requests: Sends the requests that concern the task.
        task_id: The id of the task; `None` without a task.
        answer: The last state that the peer sent, or the result.
        method: The method of the request that the task belongs to.
        tool: The tool that was called, if known.
        meta: Members to add to `_meta` of each request.
        on_progress: Called with progress in the task that waits for the result.
        read: Converts the result to the type that the caller passed.
        is_core: Whether tasks are part of the revision, and not of an extension.
        start: Runs a coroutine in a task of the session; without it, a caller who waits for a task
            that requires input waits for the response to `tasks/result`.

    Attributes:
        task_id: As passed. `client.task(task_id)` returns a new handle for it.
    """

    def __init__(
        self,
        requests: TaskRequests,
        task_id: str | None,
        answer: Any,
        *,
        method: str = CALL,
        tool: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        read: Callable[[Any], ResultT] | None = None,
        is_core: bool = True,
        start: Callable[[Coroutine[Any, Any, Any]], Started] | None = None,
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
        self._is_core = is_core
        self._start = start
        self._answered: set[str] = set()
        self._rounds = 0
        self._began = anyio.current_time()
        self._payload: Started | None = None  # `tasks/result`, while input is required
        self._reports = NotificationQueue()
        self._news = anyio.Event()
        self._next_poll = self._began + self._interval()

    def __repr__(self) -> str:
        name = "call without a task" if self.task_id is None else safe_text(self.task_id)
        return f"<TaskHandle of {name}, {self.status or 'not polled yet'}>"

    @property
    def status(self) -> str | None:
        """The status that the peer stated last; `None` before the first poll."""
        if self.task_id is None:
            return "completed"
        status: str | None = getattr(self._state, "status", None)
        return status

    @property
    def message(self) -> str | None:
        """The peer's description of the state; `None` if there is none."""
        message: str | None = getattr(self._state, "status_message", None)
        return message

    async def refresh(self, *, timeout: float | None = None) -> Any:
        """Get the current state of the task: the typed result of `tasks/get`.

        Raises:
            RemoteError: The peer no longer has the task (-32602).
        """
        if self.task_id is not None:
            params = {"taskId": self.task_id}
            self._set_state(await self._requests.send(GET, params, self._meta, timeout))
            self._is_whole = True
        return self._state

    async def wait(self, *, timeout: float | None = None) -> str:
        """Wait until the task has ended, and return its status.

        Meanwhile the handlers of this side answer the peer's input requests, each once.

        Args:
            timeout: Seconds to wait for each response; `None` for no limit.

        Raises:
            RemoteError: The peer no longer has the task (-32602).
            RequestTimeoutError: No response in time, or the task has exceeded its time to live.
            RemoteProtocolError: The peer requests input too often, or input without a handler.
        """
        try:
            await self._report_progress()  # the task may have ended already
            while self.status not in TERMINAL:
                await self._advance(timeout)
                await self._report_progress()
        except BaseException:
            self._withdraw()
            raise
        return str(self.status)

    async def result(self, *, timeout: float | None = None) -> ResultT:
        """Wait until the task has ended, as `wait` does, and return the result of its request.

        Args:
            timeout: Seconds to wait for each response; `None` for no limit.

        Returns:
            For a tool a `CallToolResult` of the revision, or the type that the caller passed; else
            the typed result of the method that requested the task.

        Raises:
            RemoteError: The request failed, or the peer no longer has the task (-32602).
            RequestCancelledError: The task was cancelled.
            RequestTimeoutError: No response in time, or the task has exceeded its time to live.
            RemoteProtocolError: The peer requests input too often, or input without a handler.
        """
        if self.task_id is None:
            wire = to_builtins(self._state)
        else:
            await self.wait(timeout=timeout)
            if self.status == "cancelled":
                raise RequestCancelledError(f"{self._method}: the task was cancelled")
            wire = await (self._core_result() if self._is_core else self._extension_result())
        result = await self._requests.late_result(self._method, wire, self._tool, timeout)
        if self._read is not None:
            return self._read(result)
        typed: ResultT = result
        return typed

    async def answer(self, responses: Mapping[str, Any], *, timeout: float | None = None) -> None:
        """Answer input requests by key. `result` and `wait` answer the remaining requests.

        Raises:
            RemoteError: The server refused the responses.
            LocalProtocolError: In 2025-11-25, where handlers answer input requests.
        """
        if self._is_core:
            raise LocalProtocolError(f"{UPDATE}: handlers answer what the task asks")
        self._answered.update(responses)
        params = {"taskId": self.task_id, "inputResponses": dict(responses)}
        await self._requests.send(UPDATE, params, self._meta, timeout)

    async def cancel(self, *, timeout: float | None = None) -> None:
        """Ask the peer to cancel the task; a task that has ended does not change.

        Raises:
            RemoteError: The peer no longer has the task (-32602).
            MissingCapabilityError: The peer has no `tasks/cancel`.
        """
        if self.task_id is None or (self._is_core and self.status in TERMINAL):
            return
        params = {"taskId": self.task_id}
        try:
            cancelled = await self._requests.send(CANCEL, params, self._meta, timeout)
        except RemoteError:
            if not self._is_core:
                raise
            await self.refresh(timeout=timeout)  # it may have ended meanwhile
            if self.status not in TERMINAL:
                raise
            return
        if self._is_core:
            self._set_state(cancelled)

    async def __aiter__(self) -> AsyncIterator[TaskUpdate]:
        """The updates of the task, from its present state to its end; see `wait` for errors."""
        shown: TaskUpdate | None = None
        while True:
            if self._state is None:
                await self.refresh()
            now = self._news_of_status()
            while self._reports:
                progress, total, message = self._reports.take()
                yield TaskUpdate(now.status, message, progress, total)
            if now != shown:
                shown = now
                yield now
            if now.status in TERMINAL:
                return
            if now == self._news_of_status():  # no further update arrived meanwhile
                await self._advance(None)

    def update_state(self, state: Any) -> None:
        """Update the state from a notification of the peer."""
        if self.status not in TERMINAL:
            self._set_state(state)

    def add_reports(self, *reports: tuple[Any, ...]) -> None:
        """Queue progress reports, and wake the waiting task."""
        for report in reports:
            self._reports.add(report)
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
        """Seconds between polls: the peer's interval within bounds."""
        name = "poll_interval" if self._is_core else "poll_interval_ms"
        milliseconds: float | None = getattr(self._state, name, None)
        seconds = POLL_SECONDS if milliseconds is None else milliseconds / 1000
        return min(max(seconds, _SHORTEST), _LONGEST)

    async def _advance(self, timeout: float | None) -> None:
        """Wait for an update of a running task, poll when due, and answer input requests.

        Raises:
            RequestTimeoutError: The task has exceeded its time to live.
        """
        if self._state is None or not (self._is_core or self._is_whole or self._is_working()):
            await self.refresh(timeout=timeout)
            return
        if self.status == "input_required" and not self._is_core:
            await self._answer_new(timeout)
        elif self.status == "input_required" and self._payload is None:
            if self._start is None:
                with suppress(RemoteError):  # the status shows the failure
                    await self._fetch()
                await self.refresh(timeout=timeout)
                return
            self._payload = self._start(self._fetch())
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
        """The end of the task's time to live, on the clock of the event loop."""
        ttl: float | None = getattr(self._state, "ttl" if self._is_core else "ttl_ms", None)
        return float("inf") if ttl is None else self._began + ttl / 1000

    async def _is_answered(self) -> bool:
        """Whether `tasks/result` was answered; if so, refresh the status."""
        if self._payload is None or not self._payload.done:
            return False
        await self.refresh()
        if self.status not in TERMINAL:
            payload, self._payload = self._payload, None
            self._count_round()
            with suppress(RemoteError):  # the next request may succeed
                await payload
        return True

    async def _fetch(self) -> Any:
        """Request `tasks/result`, and wake the waiting task when the response arrives."""
        try:
            return await self._requests.send_raw(RESULT, {"taskId": self.task_id}, self._meta)
        finally:
            self._wake()

    async def _core_result(self) -> Any:
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
        """Cancel a pending `tasks/result`."""
        if self._payload is not None:
            self._payload.cancel()
            self._payload = None

    async def _report_progress(self) -> None:
        """Call the caller's function with the queued progress reports."""
        while self._reports and self._on_progress is not None:
            handled = self._on_progress(*self._reports.take())
            if inspect.isawaitable(handled):
                await handled
        self._reports.take_all()

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
        """Count one round of input requests.

        Raises:
            RemoteProtocolError: The server requested input too often.
        """
        self._rounds += 1
        if self._rounds > self._requests.rounds:
            raise RemoteProtocolError(
                f"{self._method}: the server asked for input {self._rounds} times"
            )


class TaskFollower:
    """Passes notifications about a task to its handle, as long as the handle is referenced.

    It listens before the task is known, since notifications may follow its creation immediately.

    Args:
        revision: The revision of the session.
        peer: The requests of this side.
    """

    def __init__(self, revision: Revision, peer: PendingRequests) -> None:
        self._related = revision.facts.meta.related_task
        self._listeners = peer.listeners
        self._early: NotificationQueue | None = NotificationQueue()
        self._reports = NotificationQueue()
        self._handle: Callable[[], TaskHandle | None] = _no_handle
        self._task_id: str | None = None
        for each in [each for each in self._listeners if isinstance(each, TaskFollower)]:
            if each.is_unused:
                each.stop()
        self._listeners.add(self)

    @property
    def is_unused(self) -> bool:
        """Whether the handle is no longer referenced."""
        return self._early is None and self._handle() is None

    def keep_report(self, progress: float, total: float | None, message: str | None) -> None:
        """Keep a progress report of the request for the task, which arrives before the handle."""
        self._reports.add((progress, total, message))

    def begin(self, task_id: str, handle: TaskHandle) -> None:
        """Pass notifications about a task to its handle, including those that arrived before."""
        handle.add_reports(*self._reports.take_all())
        self._task_id, self._handle = task_id, weakref.ref(handle)
        early, self._early = self._early, None
        for arguments in early.take_all() if early is not None else ():
            self.deliver(*arguments)

    def stop(self) -> None:
        """Stop listening."""
        self._listeners.discard(self)

    def settle(self, response: object = None, failure: object = None) -> None:
        """Ignore the end of the connection: requests about the task fail by themselves."""

    def deliver(self, *arguments: Any) -> None:
        """Pass a notification to the handle, if it concerns the task."""
        change = arguments[0]
        name, params = change.method.name, change.params
        if name not in (STATUS_CHANGED, PROGRESS):
            return
        if self._early is not None:
            self._early.add(arguments)
            return
        handle = self._handle()
        if handle is None:
            return
        if name == STATUS_CHANGED and params.task_id == self._task_id:
            handle.update_state(params)
        elif name == PROGRESS and self._names_task(change.meta):
            message = getattr(params, "message", None)
            handle.add_reports((params.progress, params.total, message))

    def _names_task(self, meta: Mapping[str, Any]) -> bool:
        task = meta.get(self._related or "")
        return is_object(task) and task.get("taskId") == self._task_id


def _no_handle() -> None:
    """No handle yet."""


def is_core(revision: Revision) -> bool:
    """Whether tasks are part of a revision, and not of an extension."""
    return RESULT in revision.client_requests
