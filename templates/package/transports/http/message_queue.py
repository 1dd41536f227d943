"""What came over HTTP and is not received yet, from however many streams."""

from __future__ import annotations

from typing import TypeAlias

from ...errors import EndOfChannel, FrameError, RequestLost
from ..memory import Pipe

Word: TypeAlias = RequestLost | FrameError
"""What the reader is told instead of a message."""


class Inbox:
    """A bounded queue with one reader and any number of writers."""

    def __init__(self) -> None:
        self._pipe: Pipe[bytes | Word] = Pipe()
        self._end = ""

    async def put(self, message: bytes) -> None:
        """Add a message; waits while there is no room. A closed inbox takes nothing."""
        await self._pipe.wait_for_room()
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
        while not self._pipe.queue:
            if self._pipe.closed:
                raise EndOfChannel(self._end)
            await self._pipe.wait_for_item()
        item = self._pipe.take()
        if isinstance(item, bytes):
            return item
        raise item

    def close(self, reason: str) -> None:
        """Let nothing more in; what lies here can still be taken. Idempotent."""
        if not self._pipe.closed:
            self._end = reason
            self._pipe.close()

    def clear(self) -> None:
        """Forget what lies here: nobody will take it."""
        self._pipe.queue.clear()

    def _add(self, item: bytes | Word) -> None:
        if not self._pipe.closed:
            self._pipe.put(item)
