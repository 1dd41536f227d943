"""Failures of handlers, and one-shot events, which anyio does not have.

A one-shot event wakes one waiting task at the least cost on the running event loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from ..channel import logger
from ..errors import InternalError, ProtocolError

if TYPE_CHECKING:
    from ..protocol.events import RequestReceived


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

    def __await__(self) -> Generator[Any, Any, object]: ...


class AnyioEvent:
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
    return AnyioEvent
