"""A pair of channels within one process: what one sends, the other receives.

Bytes pass as they are, so both ends run the real encoding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from anyio import Event

from ..channel import Channel, OutgoingMessage
from ..errors import ConnectionClosedError, EndOfChannel
from ..runtime.one_shot_event import OneShotEvent, event_type

Item = TypeVar("Item")

BUFFERED_MESSAGES = 256
"""Messages that may lie unread in one direction before `send` waits."""


class Pipe(Generic[Item]):
    """One direction: a bounded queue with one reader and any number of writers.

    Args:
        limit: Items that may lie unread before `wait_for_room` waits.

    Attributes:
        queue: What lies unread.
        closed: Whether nothing more is let in.
    """

    __slots__ = ("_limit", "_new_event", "_reader", "_room", "closed", "queue")

    def __init__(self, limit: int = BUFFERED_MESSAGES) -> None:
        self._limit = limit
        self._reader: OneShotEvent | None = None
        self._room: Event | None = None
        self._new_event: Callable[[], OneShotEvent] | None = None  # what fits the reader's loop
        self.queue: deque[Item] = deque()
        self.closed = False

    @property
    def is_full(self) -> bool:
        """Whether a writer has to wait; nobody has for what is closed."""
        return len(self.queue) >= self._limit and not self.closed

    async def wait_for_room(self) -> None:
        """Wait while it is full."""
        while self.is_full:
            if self._room is None:
                self._room = Event()
            await self._room.wait()

    async def wait_for_item(self) -> None:
        """Wait until something is put in, or it is closed."""
        if self._new_event is None:
            self._new_event = event_type()
        self._reader = self._new_event()
        await self._reader.wait()

    def put(self, item: Item) -> None:
        """Add something, full or not.

        Raises:
            ConnectionClosedError: It is closed.
        """
        if self.closed:
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")
        self.queue.append(item)
        if self._reader is not None:
            self._reader.set()
            self._reader = None

    def take(self) -> Item:
        """The oldest of what lies here."""
        item = self.queue.popleft()
        if self._room is not None:
            self._room.set()
            self._room = None
        return item

    def close(self) -> None:
        """Let nothing more in; what lies here can still be read."""
        self.closed = True
        if self._reader is not None:
            self._reader.set()
        if self._room is not None:
            self._room.set()
        self._reader = self._room = None

    def drop(self) -> None:
        """Close, and forget what lies here: its reader is gone."""
        self.queue.clear()
        self.close()


class MemoryChannel(Channel):
    """One end of a pair made by `memory_pair`."""

    __slots__ = ("_incoming", "_outgoing")

    transport = "memory"

    def __init__(self, incoming: Pipe[bytes], outgoing: Pipe[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> bytes:
        """Wait for the next message of the other end.

        Raises:
            EndOfChannel: One of the ends was closed, and nothing sent before is left.
        """
        incoming = self._incoming
        while not incoming.queue:
            if incoming.closed:
                raise EndOfChannel("the other end closed the channel")
            await incoming.wait_for_item()
        return incoming.take()

    async def send(self, message: OutgoingMessage) -> None:
        """Hand a message over; waits while the buffer is full.

        Raises:
            ConnectionClosedError: One of the ends was closed.
        """
        if self._outgoing.is_full:
            await self._outgoing.wait_for_room()
        self._outgoing.put(message.data)

    async def close(self) -> None:
        """Close both directions. The other end still receives what was sent before."""
        self._outgoing.close()
        self._incoming.drop()


def memory_pair(limit: int = BUFFERED_MESSAGES) -> tuple[MemoryChannel, MemoryChannel]:
    """Two connected channels.

    Args:
        limit: Messages that may lie unread in one direction before `send` waits.
    """
    there: Pipe[bytes] = Pipe(limit)
    back: Pipe[bytes] = Pipe(limit)
    return MemoryChannel(back, there), MemoryChannel(there, back)
