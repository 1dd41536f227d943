"""What all clients of an application take together, counted while they take it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from ...protocol import jsonrpc
from ...protocol.notifications import CANCELLED, PROGRESS
from .settings import Limits

_LIST = _MEMBER = 64  # bytes of a decoded list, and of each of its members besides their text
_OBJECT = 200
_SETTLING = (CANCELLED, PROGRESS)


def decoded_size(body: bytes) -> int:
    """Bytes that a decoded JSON document takes at most, about: its values take more than its text.

    It only counts characters, those within strings too.
    """
    lists, objects, members = body.count(b"["), body.count(b"{"), body.count(b",")
    return len(body) + _LIST * lists + _OBJECT * objects + _MEMBER * members


def starts_work(message: jsonrpc.Message) -> bool:
    """Whether a message asks for more than to settle or to cancel what is open already."""
    if isinstance(message, jsonrpc.Notification):
        return message.method not in _SETTLING
    return isinstance(message, jsonrpc.Request)


class Holder(Struct, eq=False):
    """An open stream that keeps bytes of what its client said.

    Attributes:
        end: Ends the stream.
        size: How many bytes it keeps.
    """

    end: Callable[[], object]
    size: int = 0


class MemoryBudget:
    """Bytes that are kept of what clients said, over all of them.

    Who asks for more than is left gets it from the one that keeps most, if that is more: an idle
    session, or else an open stream, which is ended.

    Args:
        limit: How many there may be.

    Attributes:
        size: How many there are.
        end_idle_session: Has the idle session ended that keeps most, if that is more than so much.
    """

    def __init__(self, limit: int) -> None:
        self.size = 0
        self.end_idle_session: Callable[[int], Awaitable[object]] | None = None
        self._limit = limit
        self._holders: set[Holder] = set()

    async def reserve(self, size: int, holder: Holder | None = None) -> bool:
        """Count bytes; `False` if there is no room for them.

        Args:
            size: How many.
            holder: The stream that keeps them, if it is one that does.
        """
        if self._excess(size) > 0 and self.end_idle_session is not None:
            await self.end_idle_session(self._excess(size))
        if self._excess(size) > 0:
            self.end_largest(self._excess(size), holder)
        if self._excess(size) > 0:
            return False
        self.size += size
        if holder is not None:
            holder.size += size
            self._holders.add(holder)
        return True

    def release(self, size: int, holder: Holder | None = None) -> None:
        """Count bytes no more."""
        if holder is None:
            self.size -= size
        elif holder in self._holders:
            self.size -= size
            holder.size -= size

    def close(self, holder: Holder) -> None:
        """Count nothing of a stream any more."""
        if holder in self._holders:
            self._holders.discard(holder)
            self.size -= holder.size

    def end_largest(self, size: int, asking: Holder | None = None) -> None:
        """End the stream that keeps most, if that is more than so many bytes."""
        others = [each for each in self._holders if each.size > size and each is not asking]
        if others:
            largest = max(others, key=lambda each: each.size)
            self.close(largest)
            largest.end()

    def _excess(self, size: int) -> int:
        return self.size + size - self._limit


class Load:
    """What is counted for one application.

    Args:
        limits: How much there may be.

    Attributes:
        in_flight: Messages being served for clients that are there.
        memory: Bytes kept for sessions and streams.
        relieve: Has places given back by who does not use them.
    """

    def __init__(self, limits: Limits) -> None:
        self.in_flight = 0
        self.memory = MemoryBudget(limits.session_bytes)
        self.relieve: Callable[[], object] | None = None
        self._limit = limits.in_flight

    def has_room(self, messages: int = 1) -> bool:
        """Whether so many more may be served; looks for places to be given back if half are not."""
        wanted = self.in_flight + messages
        if 2 * wanted > self._limit and self.relieve is not None:
            self.relieve()
        return wanted <= self._limit
