"""An event that wakes one waiting task, once, at the least cost on the running event loop."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import anyio

if TYPE_CHECKING:
    import asyncio


class OneShotEvent(Protocol):
    """One task waits for it once; others may set it any number of times."""

    def set(self) -> None:
        """Wake the task that waits, now or later."""
        ...

    def wait(self) -> Awaitable[object]:
        """Wait until `set` is called."""
        ...


class _BareFuture:
    """The event under asyncio: a bare future, cheaper than `asyncio.Event`."""

    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[None]) -> None:
        self._future = future

    def set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def wait(self) -> Awaitable[None]:
        return self._future


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
                new_future = asyncio.get_running_loop().create_future
                return lambda: _BareFuture(new_future())
        except RuntimeError:
            pass
    return anyio.Event
