"""Concurrency that anyio does not have: eager execution and one-shot events.

Most handlers finish without suspending. A task for each handler would cost more than the handler,
so the reading task runs it (eager execution), and a new task continues to read only if the handler
suspends. A coroutine stays in one task from start to end, so the state of asyncio, trio and anyio
for each task (cancel scopes, timeouts, locks) works as usual.

A one-shot event wakes one waiting task at the least cost on the running event loop.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from operator import call
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import anyio

from ..channel import logger
from ..errors import InternalError, ProtocolError

if TYPE_CHECKING:
    from ..protocol.connection import RequestReceived

Result = TypeVar("Result")
_Step: TypeAlias = Callable[..., Any]


def run_eagerly(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object]
) -> Awaitable[Result]:
    """Run a coroutine in a copy of the context; call `on_wait` once when it first suspends."""
    return _run_steps(coroutine, on_wait, copy_context().run)


def run_eagerly_here(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object]
) -> Awaitable[Result]:
    """Run a coroutine of this package as `run_eagerly` does, in the context of this task."""
    return _run_steps(coroutine, on_wait, call)


@types.coroutine
def _run_steps(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object], step: _Step
) -> Generator[Any, Any, Result]:
    """Run a coroutine to its end; `step` calls each step."""
    try:
        awaited = step(coroutine.send, None)
    except StopIteration as end:
        result: Result = end.value
        return result
    on_wait()
    result = yield from _resume(coroutine, awaited, step)
    return result


@types.coroutine
def resume(coroutine: Coroutine[Any, Any, Result], awaited: Any) -> Generator[Any, Any, Result]:
    """Run a coroutine to its end that was started in this task and has suspended.

    Args:
        coroutine: The coroutine.
        awaited: The object that it yielded.
    """
    result = yield from _resume(coroutine, awaited, call)
    return result


def _resume(
    coroutine: Coroutine[Any, Any, Result], awaited: Any, step: _Step
) -> Generator[Any, Any, Result]:
    while True:
        thrown: BaseException | None = None
        value: Any = None
        try:
            value = yield awaited
        except GeneratorExit:
            step(coroutine.close)
            raise
        except BaseException as error:  # a cancellation, for the coroutine to handle
            thrown = error
        try:
            awaited = (
                step(coroutine.send, value) if thrown is None else step(coroutine.throw, thrown)
            )
        except StopIteration as end:
            result: Result = end.value
            return result


async def outcome(value: Any, error: BaseException | None = None) -> Any:
    """Return the result of a call that has ended, or raise its exception."""
    if error is not None:
        raise error
    return value


async def check_own_failure(error: BaseException) -> None:
    """Raise `error` if it ends the task; return if it is a failure of the handler.

    A handler may raise the exception of a cancellation without being cancelled, for example when
    it awaited a task that was cancelled.
    """
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, anyio.get_cancelled_exc_class()) and _is_cancelled_by_loop():
        raise error
    from anyio.lowlevel import checkpoint_if_cancelled  # loaded with the event loop

    await checkpoint_if_cancelled()


async def failure_of(event: RequestReceived, error: BaseException) -> ProtocolError:
    """The error for the response to a request whose handler failed; raises a cancellation."""
    if isinstance(error, ProtocolError):
        if isinstance(error, InternalError):
            logger.error("%s", error)
        return error
    await check_own_failure(error)
    logger.error("%s failed", event.method.name, exc_info=error)
    return InternalError("internal error")


def _is_cancelled_by_loop() -> bool:
    """Whether asyncio itself cancelled this task, which anyio does not report."""
    import asyncio  # already loaded if it runs the loop

    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0


class OneShotEvent(Protocol):
    """An event that is set once and awaited by one task; a future of asyncio is one."""

    def done(self) -> bool:
        """Whether the event was set, or the waiting task was cancelled."""
        ...

    def set_result(self, _result: None, /) -> None:
        """Wake the task that awaits the event, now or later; only once."""
        ...

    def __await__(self) -> Generator[Any, Any, object]:
        """Wait until the event is set."""
        ...


class _AnyioEvent:
    """The event on event loops other than asyncio's."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = anyio.Event()

    def done(self) -> bool:
        return self._event.is_set()

    def set_result(self, _result: None, /) -> None:
        self._event.set()

    def __await__(self) -> Generator[Any, Any, object]:
        return self._event.wait().__await__()


class Turns:
    """Lets tasks use something one after the other; costs nothing while a single task does.

    `if not turns.take(): await turns.wait()`, and `turns.pass_on()` at the end.
    """

    __slots__ = ("_is_taken", "_waiting")

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: deque[OneShotEvent] | None = None

    def take(self) -> bool:
        """Take the turn if no other task has it."""
        if self._is_taken:
            return False
        self._is_taken = True
        return True

    async def wait(self) -> None:
        """Wait for the turn."""
        if self._waiting is None:
            self._waiting = deque()
        event = event_type()()
        self._waiting.append(event)
        try:
            await event
        except BaseException:
            if event in self._waiting:
                self._waiting.remove(event)
            else:  # the turn came and is not used
                self.pass_on()
            raise

    def pass_on(self) -> None:
        """Give the turn to the task that has waited longest."""
        while self._waiting:
            event = self._waiting.popleft()
            if not event.done():
                event.set_result(None)
                return
        self._is_taken = False

    async def __aenter__(self) -> None:
        if self._is_taken:
            await self.wait()
        self._is_taken = True

    async def __aexit__(self, *_: object) -> None:
        if self._waiting:
            self.pass_on()
        else:
            self._is_taken = False


def event_type() -> Callable[[], OneShotEvent]:
    """A factory of events for the running event loop.

    Each message wakes several tasks. `anyio.Event` detects the event loop each time, which doubles
    the cost of a message.
    """
    if "asyncio" in sys.modules:
        import asyncio

        try:
            # With trio in guest mode there is an asyncio loop, but no asyncio task.
            if asyncio.current_task() is not None:
                return asyncio.get_running_loop().create_future
        except RuntimeError:
            pass
    return _AnyioEvent
