"""A clock of asyncio that only tests move: time passes as soon as nothing else happens.

What is tested then does not depend on how busy the machine is. On trio, `MockClock` does the same.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _SelectorThatSkips(selectors.DefaultSelector):
    """Selects without waiting; counts the seconds that it was to wait."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout == 0:  # callbacks are ready: descriptors are looked at once these have run
            return []
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout:
            self.skipped += timeout
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop that skips the time for which it has nothing to do."""

    def __init__(self) -> None:
        self._skipping = _SelectorThatSkips()
        super().__init__(self._skipping)

    def time(self) -> float:
        """The seconds that were skipped."""
        return self._skipping.skipped


ASYNCIO = "asyncio", {"loop_factory": VirtualClockLoop}
"""The backend with this clock, for the fixture `anyio_backend`."""
