"""Keeping what was sent on streams, so that a client whose connection broke can have the rest.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Protocol

import msgspec

_OVERHEAD = 200  # bytes that an event takes besides its message, about


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a stream.

    Attributes:
        id: Names it, over all streams.
        message: The message that it carries; empty for one that only has an id.
    """

    id: str
    message: bytes


class EventStore(Protocol):
    """Where the events of streams are kept.

    Names of streams are made here and are unique; they are visible ASCII, as ids have to be.
    """

    async def add(self, stream: str, message: bytes) -> str:
        """Keep an event of a stream.

        Returns:
            Its id: one line of text, unique over all streams and never given twice, of a form
            that tells the stream.
        """
        ...

    async def after(self, event: str) -> tuple[str, Sequence[StoredEvent]] | None:
        """The stream that an event belongs to, and all that came on it after that event.

        Args:
            event: What a client gave as the id of an event: any text at all.

        Returns:
            `None` if the event, or one after it, is not known any more, or never was.
        """
        ...

    async def discard(self, stream: str) -> None:
        """Forget a stream, known or not: nobody may come back to it."""
        ...


class _Kept(msgspec.Struct):
    """What is left of one stream.

    Attributes:
        events: Numbers and messages of its newest events.
        edge: Number of the last event before those, if one was dropped.
        size: Bytes they take.
    """

    events: deque[tuple[int, bytes]]
    edge: int | None = None
    size: int = 0


class MemoryEventStore:
    """Events in the memory of this process, the oldest streams dropped first.

    Args:
        events: Most events of one stream; of more, the oldest are dropped.
        size: Most bytes in all.

    Raises:
        ValueError: A limit below one.
    """

    def __init__(self, *, events: int = 1000, size: int = 64 * 2**20) -> None:
        if events < 1 or size < 1:
            raise ValueError(f"expected limits of at least 1, got events={events}, size={size}")
        self._most = events
        self._limit = size
        self._size = 0
        self._last = 0
        self._streams: OrderedDict[str, _Kept] = OrderedDict()

    def __len__(self) -> int:
        """How many streams are kept."""
        return len(self._streams)

    async def add(self, stream: str, message: bytes) -> str:
        """Keep an event; its id is the stream's name and a number that no other event has."""
        kept = self._streams.get(stream)
        if kept is None:
            kept = self._streams[stream] = _Kept(deque())
        self._last += 1
        kept.events.append((self._last, message))
        kept.size += len(message) + _OVERHEAD
        self._size += len(message) + _OVERHEAD
        if len(kept.events) > self._most:
            self._drop_first(kept)
        self._streams.move_to_end(stream)
        self._make_room(kept)
        return f"{stream}-{self._last}"

    async def after(self, event: str) -> tuple[str, Sequence[StoredEvent]] | None:
        """What came on the event's stream after it."""
        stream, _, text = event.rpartition("-")
        kept = self._streams.get(stream)
        if kept is None or not text.isascii() or not text.isdecimal() or len(text) > 18:
            return None
        number = int(text)
        if number != kept.edge and all(number != known for known, _ in kept.events):
            return None
        rest = [(known, message) for known, message in kept.events if known > number]
        return stream, [StoredEvent(f"{stream}-{known}", message) for known, message in rest]

    async def discard(self, stream: str) -> None:
        """Forget a stream."""
        kept = self._streams.pop(stream, None)
        if kept is not None:
            self._size -= kept.size

    def _drop_first(self, kept: _Kept) -> None:
        kept.edge, message = kept.events.popleft()
        kept.size -= len(message) + _OVERHEAD
        self._size -= len(message) + _OVERHEAD

    def _make_room(self, newest: _Kept) -> None:
        while self._size > self._limit and len(self._streams) > 1:
            _, oldest = self._streams.popitem(last=False)
            self._size -= oldest.size
        while self._size > self._limit and len(newest.events) > 1:
            self._drop_first(newest)
