"""What came over HTTP and is not received yet, from however many streams."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import anyio

from ...errors import EndOfChannel, FrameError, RequestLost

Word: TypeAlias = RequestLost | FrameError
"""What the reader is told instead of a message."""

WAITING = 256
"""Messages that may lie here before streams are read no further."""


class Inbox:
    """A bounded queue with one reader and any number of writers.

    Args:
        limit: Messages that may lie unread before `put` waits.
    """

    def __init__(self, limit: int = WAITING) -> None:
        self._limit = limit
        self._items: deque[bytes | Word] = deque()
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._end: EndOfChannel | None = None

    async def put(self, message: bytes) -> None:
        """Add a message; waits while there is no room. A closed inbox takes nothing."""
        while len(self._items) >= self._limit and self._end is None:
            if self._room.is_set():  # an event that others wait for is theirs as well
                self._room = anyio.Event()
            await self._room.wait()
        self._add(message)

    def tell(self, word: Word) -> None:
        """Add word of something that will not come: there is always room for that."""
        self._add(word)

    async def take(self) -> bytes:
        """Wait for the next message.

        Raises:
            RequestLost: The next thing is word of a request of ours.
            FrameError: The next thing is word of a message that was dropped.
            EndOfChannel: The inbox was closed, and nothing is left.
        """
        while not self._items:
            if self._end is not None:
                raise EndOfChannel(str(self._end))
            self._news = anyio.Event()
            await self._news.wait()
        item = self._items.popleft()
        self._room.set()
        if isinstance(item, bytes):
            return item
        raise item

    def close(self, reason: str) -> None:
        """Let nothing more in; what lies here can still be taken. Idempotent."""
        if self._end is None:
            self._end = EndOfChannel(reason)
        self._news.set()
        self._room.set()

    def clear(self) -> None:
        """Forget what lies here: nobody will take it."""
        self._items.clear()

    def _add(self, item: bytes | Word) -> None:
        if self._end is None:
            self._items.append(item)
            self._news.set()
