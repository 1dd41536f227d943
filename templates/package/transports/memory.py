"""A pair of channels within one process: what one sends, the other receives.

Messages pass as bytes, so both ends run the real encoding.
"""

from __future__ import annotations

from ..channel import Channel, OutgoingMessage
from ..errors import ConnectionClosedError
from .message_queue import BUFFERED_MESSAGES, MessageQueue


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
            EndOfChannel: One of the ends was closed, and nothing sent before is left.
        """
        return await self._incoming.get()

    async def send(self, message: OutgoingMessage) -> None:
        """Pass a message to the other end; waits while that has too many unread messages.

        Raises:
            ConnectionClosedError: One of the ends was closed.
        """
        if not await self._outgoing.put(message.data):
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")

    async def close(self) -> None:
        """Close both directions. The other end still receives what was sent before."""
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
