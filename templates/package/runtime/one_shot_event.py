"""Waking one waiting task, once: by whatever costs the running loop least."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import anyio

if TYPE_CHECKING:
    import asyncio


class OneShotEvent(Protocol):
    """Something one task waits for, once, and others may set, any number of times."""

    def set(self) -> None:
        """Wake the task that waits, or will."""
        ...

    def wait(self) -> Awaitable[object]:
        """Wait until `set` is called."""
        ...


class _BareFuture:
    """A wakeup under asyncio; an event of asyncio's own holds a list of these, and a loop."""

    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[None]) -> None:
        self._future = future

    def set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def wait(self) -> Awaitable[None]:
        return self._future


def wakeup_type() -> Callable[[], OneShotEvent]:
    """What makes wakeups for the task that runs.

    Each message wakes several tasks on its way. `anyio.Event` looks for the loop anew each time,
    which takes as long as all else that a message costs.
    """
    if "asyncio" in sys.modules:
        import asyncio

        try:
            # Under trio as a guest there is a loop, but no task of it.
            if asyncio.current_task() is not None:
                new_future = asyncio.get_running_loop().create_future
                return lambda: _BareFuture(new_future())
        except RuntimeError:
            pass
    return anyio.Event
