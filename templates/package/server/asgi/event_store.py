"""Stores for the events of streams, so that a client whose connection broke can resume.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Protocol

import msgspec

_OVERHEAD = 200  # estimated bytes of an event besides its message


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a stream.

    Attributes:
        id: The event id, unique over all streams.
        message: The message; empty for an event that only has an id.
    """

    id: str
    message: bytes


class EventStore(Protocol):
    """A store for the events of streams.

    The package makes the names of streams: unique, of visible ASCII characters, as in event ids.
    """

    async def add(self, stream: str, message: bytes) -> str:
        """Store an event of a stream.

        Returns:
            The event id: one line of text, unique over all streams, never used twice, from which
            `after` finds the stream.
        """
        ...

    async def after(self, event: str) -> tuple[str, Sequence[StoredEvent]] | None:
        """The stream that an event belongs to, and all later events of that stream.

        Args:
            event: The event id from a client: any text at all.

        Returns:
            `None` if the event or a later one is unknown or was dropped.
        """
        ...

    async def discard(self, stream: str) -> None:
        """Delete the events of a stream, known or not."""
        ...


class _StoredStream(msgspec.Struct):
    """The stored events of one stream.

    Attributes:
        events: Numbers and messages of the newest events.
        edge: Number of the last dropped event, if any.
        size: Bytes of the events.
    """

    events: deque[tuple[int, bytes]]
    edge: int | None = None
    size: int = 0


class MemoryEventStore:
    """Stores events in the memory of this process; the oldest streams are dropped first.

    Args:
        events: Most events of one stream; the oldest are dropped.
        size: Most bytes of all events.

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
        self._streams: OrderedDict[str, _StoredStream] = OrderedDict()

    def __len__(self) -> int:
        """Number of streams."""
        return len(self._streams)

    async def add(self, stream: str, message: bytes) -> str:
        """Store an event; its id is the name of the stream and a unique number."""
        kept = self._streams.get(stream)
        if kept is None:
            kept = self._streams[stream] = _StoredStream(deque())
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
        """The stream of an event, and its later events."""
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
        """Delete the events of a stream."""
        kept = self._streams.pop(stream, None)
        if kept is not None:
            self._size -= kept.size

    def _drop_first(self, kept: _StoredStream) -> None:
        kept.edge, message = kept.events.popleft()
        kept.size -= len(message) + _OVERHEAD
        self._size -= len(message) + _OVERHEAD

    def _make_room(self, newest: _StoredStream) -> None:
        while self._size > self._limit and len(self._streams) > 1:
            _, oldest = self._streams.popitem(last=False)
            self._size -= oldest.size
        while self._size > self._limit and len(newest.events) > 1:
            self._drop_first(newest)
