"""A list of received items, for tests that wait until an item has arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

DEADLINE = 20.0


class Heard(list[Any]):
    """Received items, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._news = anyio.Event()

    def keep(self, item: Any) -> None:
        """Take one more, and wake whoever waits for it."""
        self.append(item)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """The first that is wanted, once it is there."""
        with anyio.fail_after(DEADLINE):
            while True:
                for item in self:
                    if wanted(item):
                        return item
                await self._news.wait()
