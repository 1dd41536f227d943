"""An event that wakes one waiting task, once, at the least cost on the running event loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import Any, Protocol

import anyio


class OneShotEvent(Protocol):
    """An awaitable for one task; a future of asyncio is one."""

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
    """The event on any other event loop."""

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

    Each message wakes several tasks. `anyio.Event` detects the loop each time, which doubles the
    cost of a message.
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
