"""What a transport is to the rest: a way for whole messages to come and go."""

from __future__ import annotations

from typing import Protocol, TypeAlias

RequestId: TypeAlias = int | str
"""Id of a request on the wire: a string or an integer, kept as it came."""


class Channel(Protocol):
    """One peer at the other end of some transport.

    A channel frames; it reads no JSON and knows no rule of the protocol. One task receives; any
    number of tasks send.

    Source: basic/transports (custom transports).
    """

    async def receive(self) -> bytes:
        """Wait for the next message, whole and without its frame.

        Raises:
            EndOfChannel: The peer is gone.
            FrameError: One frame was unusable, for example too long; receive again.
        """
        ...

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        """Send one message whole.

        Args:
            message: JSON without raw newlines.
            about: Id of the received request that the message belongs to (its response, progress
                and log messages, requests made on its behalf); transports with one stream per
                request route by it.

        Raises:
            ConnectionClosedError: Nothing more can be sent.
        """
        ...

    async def close(self) -> None:
        """Release the transport. Idempotent; `receive` then raises `EndOfChannel`."""
        ...
