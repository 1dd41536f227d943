"""Stores for the events of streams, for clients that resume after their connection broke.

`resumable_stream` has the streams and their sessions.

Events are stored by session and stream. The process that serves the requests of a stream writes the
stream. Any process may read it: a reader waits for further events by the id of the last event.
A stream ends once. Later additions are refused: if another process has ended the stream of a writer
that seemed dead, the writer adds nothing more.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Protocol

import anyio
import msgspec

from ...channel import RequestId

WAIT_SECONDS = 1.0
"""Seconds for which `EventStore.wait` waits before it returns without events."""

_OVERHEAD = 200  # estimated bytes of an event besides its message
_NUMBER_DIGITS = 18


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a stream.

    Attributes:
        id: The event id, unique over all streams.
        message: The message; empty for an event with an id only.
    """

    id: str
    message: bytes


class StoredEvents(msgspec.Struct, frozen=True):
    """The events of a stream after one of them.

    Attributes:
        stream: Name of the stream.
        events: The events.
        cursor: The argument of `wait` for further events: an event id, perhaps of an event that no
            client received.
        over: Whether the stream has ended with these events.
        requests: Ids of the requests without response; none for a stream opened by GET.
    """

    stream: str
    events: Sequence[StoredEvent]
    cursor: str
    over: bool = False
    requests: Sequence[RequestId] = ()


class EventStore(Protocol):
    """A store for the events of streams.

    The package makes the names of streams: unique, of visible ASCII characters, as in event ids.
    Sessions are named by the session ids that clients send.
    """

    async def add(
        self, session: str, stream: str, message: bytes, requests: Sequence[RequestId] = ()
    ) -> str | None:
        """Store an event of a stream.

        Args:
            session: The session that the stream belongs to.
            stream: The stream; the first event creates the stream.
            message: The message; empty for an event with an id only.
            requests: Ids of the requests that the stream has to answer after this event.

        Returns:
            The event id: one line of text, unique over all streams, never used twice, from which
            `after` finds the stream. `None`, and nothing was stored, if the stream has ended.
        """
        ...

    async def after(self, session: str, event: str) -> StoredEvents | None:
        """The stream that an event belongs to, and all later events of that stream.

        Args:
            session: The session of the client.
            event: The event id from a client; may be any text.

        Returns:
            `None` if the event is unknown, or of another session, or a later event was dropped.
        """
        ...

    async def wait(self, session: str, cursor: str) -> StoredEvents | None:
        """Like `after`, but wait for an event or the end, for `WAIT_SECONDS` at most.

        Args:
            session: The session.
            cursor: The `cursor` of the previous result.
        """
        ...

    async def finish(self, session: str, stream: str, message: bytes = b"") -> str | None:
        """Store the last event of a stream, and end it.

        Returns:
            The event id. `None`, and nothing was stored, if the stream has already ended.
        """
        ...

    async def discard(self, session: str, stream: str | None = None) -> None:
        """Delete the events of a stream, or of a whole session, if they exist."""
        ...


class _StoredStream(msgspec.Struct):
    """The stored events of one stream.

    Attributes:
        events: Numbers and messages of the newest events.
        edge: Number of the last dropped event, if any.
        size: Bytes of the events.
        over: Whether the stream has ended.
        requests: Ids of the requests without response.
    """

    events: deque[tuple[int, bytes]]
    edge: int | None = None
    size: int = 0
    over: bool = False
    requests: Sequence[RequestId] = ()


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
        self._streams: OrderedDict[tuple[str, str], _StoredStream] = OrderedDict()
        self._names: dict[str, dict[str, None]] = {}  # of the streams of a session, in order
        self._news: anyio.Event | None = None  # exists while a task waits

    def __len__(self) -> int:
        """Number of streams."""
        return len(self._streams)

    async def add(
        self, session: str, stream: str, message: bytes, requests: Sequence[RequestId] = ()
    ) -> str | None:
        """Store an event; its id is the name of the stream and a unique number."""
        place = session, stream
        stored = self._streams.get(place)
        if stored is None:
            stored = self._streams[place] = _StoredStream(deque())
            self._names.setdefault(session, {})[stream] = None
        elif stored.over:
            return None
        stored.requests = requests
        self._last = number = self._last + 1
        stored.events.append((number, message))
        size = len(message) + _OVERHEAD
        stored.size += size
        self._size += size
        if len(stored.events) > self._most:
            self._drop_first(stored)
        self._streams.move_to_end(place)
        if self._size > self._limit:
            self._make_room(stored)
        if self._news is not None:
            self._news.set()
            self._news = None
        return f"{stream}-{number}"

    async def after(self, session: str, event: str) -> StoredEvents | None:
        """The stream of an event, and its later events."""
        stream, number = split_event_id(event)
        stored = self._streams.get((session, stream))
        if stored is None or number is None:
            return None
        if number != stored.edge and all(number != each for each, _ in stored.events):
            return None
        rest = [
            StoredEvent(f"{stream}-{each}", message)
            for each, message in stored.events
            if each > number
        ]
        cursor = rest[-1].id if rest else event
        return StoredEvents(stream, rest, cursor, stored.over, stored.requests)

    async def wait(self, session: str, cursor: str) -> StoredEvents | None:
        """Wait for later events, or the end."""
        with anyio.move_on_after(WAIT_SECONDS):
            while True:
                stored = await self.after(session, cursor)
                if stored is None or stored.events or stored.over:
                    return stored
                self._news = self._news or anyio.Event()
                await self._news.wait()
        return await self.after(session, cursor)

    async def finish(self, session: str, stream: str, message: bytes = b"") -> str | None:
        """Store the last event."""
        event = await self.add(session, stream, message)
        stored = self._streams.get((session, stream))
        if stored is not None:
            stored.over = True
        return event

    async def discard(self, session: str, stream: str | None = None) -> None:
        """Delete events."""
        for name in [*self._names.get(session, ())] if stream is None else [stream]:
            stored = self._streams.pop((session, name), None)
            if stored is not None:
                self._size -= stored.size
                self._forget_name(session, name)

    def _forget_name(self, session: str, stream: str) -> None:
        names = self._names[session]
        del names[stream]
        if not names:
            del self._names[session]

    def _drop_first(self, stored: _StoredStream) -> None:
        stored.edge, message = stored.events.popleft()
        stored.size -= len(message) + _OVERHEAD
        self._size -= len(message) + _OVERHEAD

    def _make_room(self, newest: _StoredStream) -> None:
        while self._size > self._limit and len(self._streams) > 1:
            place, oldest = self._streams.popitem(last=False)
            self._size -= oldest.size
            self._forget_name(*place)
        while self._size > self._limit and len(newest.events) > 1:
            self._drop_first(newest)


def split_event_id(event: str) -> tuple[str, int | None]:
    """The stream and the number in an event id; no number in other text."""
    stream, _, text = event.rpartition("-")
    is_number = text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS
    return stream, int(text) if is_number else None
