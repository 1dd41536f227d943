"""Channels within one process: a bounded queue of messages, and a pair of channels made of two.

Messages are passed as bytes, so both ends of a pair use the real encoding. Channels whose messages
arrive in other tasks use the queue too: it has one reader and any number of writers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from anyio import Event

from ..channel import Channel, OutgoingMessage
from ..errors import ConnectionClosedError, EndOfChannel, FrameError, RequestLost
from ..runtime.concurrency import OneShotEvent, event_type

BUFFERED_MESSAGES = 256
"""Unread messages at which a writer waits."""

BUFFERED_BYTES = 64 * 1024 * 1024
"""Bytes of unread messages at which a writer waits."""


class MessageQueue:
    """Messages that are not received yet, and errors for the receiver.

    Args:
        limit: Unread messages at which `put` waits; it also waits at `BUFFERED_BYTES`.

    Attributes:
        take: Handles a message that arrives at an empty queue, or returns `False` to queue it.
    """

    __slots__ = ("_end", "_items", "_limit", "_new_event", "_reader", "_room", "_size", "take")

    def __init__(self, limit: int = BUFFERED_MESSAGES) -> None:
        self._limit = limit
        self._items: deque[bytes | RequestLost | FrameError] = deque()
        self._size = 0  # bytes of the messages
        self._end: str | None = None  # the reason of the closing
        self._reader: OneShotEvent | None = None
        self._room: Event | None = None
        self._new_event: Callable[[], OneShotEvent] | None = None  # of the reader's event loop
        self.take: Callable[[bytes], bool] | None = None

    async def put(self, message: bytes) -> bool:
        """Add a message; wait while the queue is full. `False` if the queue is closed."""
        while self._is_full() and self._end is None:
            if self._room is None:
                self._room = Event()
            await self._room.wait()
        if self._end is not None:
            return False
        if self.take is not None and not self._items and self.take(message):
            return True
        self._items.append(message)
        self._size += len(message)
        if self._reader is not None:
            self._wake_reader()
        return True

    def put_error(self, error: RequestLost | FrameError) -> None:
        """Add an error for `get` to raise, even to a full queue; a closed queue drops it."""
        if self._end is None:
            self._items.append(error)
            self._wake_reader()

    async def get(self) -> bytes:
        """Wait for the next message.

        Raises:
            RequestLost: A request of this side will not be answered.
            FrameError: A message was dropped.
            EndOfChannel: The queue is closed and empty.
        """
        while not self._items:
            if self._end is not None:
                raise EndOfChannel(self._end)
            if self._new_event is None:
                self._new_event = event_type()
            self._reader = self._new_event()
            await self._reader
        item = self._items.popleft()
        if self._room is not None:
            self._wake_writers()
        if isinstance(item, bytes):
            self._size -= len(item)
            return item
        raise item

    def close(self, reason: str = "the other end closed the channel") -> None:
        """Refuse further messages; those in the queue can still be read. Idempotent."""
        if self._end is None:
            self._end = reason
            self._wake_reader()
            self._wake_writers()

    def clear(self) -> None:
        """Drop the messages in the queue."""
        self._items.clear()
        self._size = 0

    def _is_full(self) -> bool:
        return len(self._items) >= self._limit or self._size >= BUFFERED_BYTES

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
        self._reader = None

    def _wake_writers(self) -> None:
        if self._room is not None:
            self._room.set()
        self._room = None


class MemoryChannel(Channel):
    """One end of a pair made by `memory_pair`."""

    __slots__ = ("_incoming", "_outgoing")

    transport = "memory"

    def __init__(self, incoming: MessageQueue, outgoing: MessageQueue) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> bytes:
        """Wait for the next message of the other end.

        Raises:
            EndOfChannel: One of the ends was closed, and all earlier messages were received.
        """
        return await self._incoming.get()

    async def send(self, message: OutgoingMessage) -> None:
        """Pass a message to the other end; wait while it has too many unread messages.

        Raises:
            ConnectionClosedError: One of the ends was closed.
        """
        if not await self._outgoing.put(message.data):
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")

    def settle_by(self, take: Callable[[bytes], bool]) -> None:
        """Pass each message to a function on arrival."""
        self._incoming.take = take

    async def close(self) -> None:
        """Close both directions. The other end can still receive messages that were sent before."""
        self._outgoing.close()
        self._incoming.close()
        self._incoming.clear()


def memory_pair(limit: int = BUFFERED_MESSAGES) -> tuple[MemoryChannel, MemoryChannel]:
    """Two connected channels.

    Args:
        limit: Unread messages in one direction at which `send` waits.
    """
    there, back = MessageQueue(limit), MessageQueue(limit)
    return MemoryChannel(back, there), MemoryChannel(there, back)
