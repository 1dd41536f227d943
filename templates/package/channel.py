"""What a transport is to the rest: a way for whole messages to come and go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
            RequestLost: One request of ours will not be answered; receive again.
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
            McpError: This message could not be delivered, or was refused; others may be.
        """
        ...

    async def close(self) -> None:
        """Release the transport. Idempotent; `receive` then raises `EndOfChannel`."""
        ...


def transport_of(channel: Channel) -> str:
    """What a channel calls its transport, in its attribute `transport`; else the channel's type."""
    transport: object = getattr(channel, "transport", None)
    return transport if isinstance(transport, str) else type(channel).__name__


def close_request_stream_of(channel: Channel) -> Callable[[RequestId], None] | None:
    """How a channel closes the stream of one request of ours; `None` where requests share one.

    Such a channel has a method `close_request_stream`. The method takes the id of a request whose
    response is no longer awaited; it does not block, and an unknown id is not an error.
    """
    close_request_stream: Callable[[RequestId], None] | None = getattr(
        channel, "close_request_stream", None
    )
    return close_request_stream


def close_sse_stream_of(channel: Channel) -> Callable[[RequestId], Awaitable[None]] | None:
    """How a channel lets go of the connection that a request of the peer's is answered on.

    Such a channel has a method `release`. It is given the id of a request; where the peer can come
    back for the rest of what is said about it the connection is closed, and it does so.
    """
    release: Callable[[RequestId], Awaitable[None]] | None = getattr(channel, "release", None)
    return release
