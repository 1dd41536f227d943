"""The interface between a transport and the running peer: whole messages in both directions."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from .errors import INVALID_REQUEST, FrameError
from .facts import Revision

RequestId: TypeAlias = int | str
"""Id of a request on the wire: a string or an integer, kept as received."""

MessageKind: TypeAlias = Literal["request", "notification", "response", "error"]
"""The kinds of JSON-RPC messages; `response` is a success response."""

logger = logging.getLogger(__name__.partition(".")[0])
"""The logger of the package."""

MESSAGE_LIMIT = 64 * 1024 * 1024
"""Longest message accepted by default, in bytes: room for a large blob in Base64."""

OPEN_REQUESTS = 500
"""Requests that a client has open at a server over HTTP by default; further ones wait."""


class OutgoingMessage(msgspec.Struct, frozen=True):
    """An encoded message with the metadata that transports need.

    Attributes:
        data: The JSON text, without raw newlines.
        kind: The JSON-RPC kind.
        id: Id of the request, or of the request that a response answers; `None` if there is none.
        method: Method of the request or notification; empty for responses.
        revision: The revision in whose shape the message was encoded.
        related_request_id: Id of the received request that the message belongs to: the message is
            the response, a progress or log message, or a request on its behalf. Transports with
            one stream per request route by this id.
        params: The params before encoding: a Struct, an object or raw JSON.
        error_code: JSON-RPC code of an error response.
    """

    data: bytes
    kind: MessageKind = "notification"
    id: RequestId | None = None
    method: str = ""
    revision: Revision | None = None
    related_request_id: RequestId | None = None
    params: Any = None
    error_code: int | None = None

    @property
    def is_response(self) -> bool:
        """Whether the message answers a request, with a result or with an error."""
        return self.kind == "response" or self.kind == "error"


class MessageSender(Protocol):
    """Sends messages to one peer. Implementations inherit from this class.

    Attributes:
        transport: Name of the transport, such as `stdio`; empty for the name of the class.
        session_id: Id of the session, where the transport has one.
    """

    __slots__ = ()

    transport: str = ""
    session_id: str | None = None

    @abstractmethod
    async def send(self, message: OutgoingMessage) -> None:
        """Send one message whole.

        Raises:
            ConnectionClosedError: Nothing more can be sent.
            McpError: This message could not be delivered, or was refused; others may be.
        """
        ...

    @abstractmethod
    async def close(self) -> None:
        """Release the transport. Idempotent."""
        ...

    def close_request_stream(self, identifier: RequestId) -> bool:
        """Close the stream of one request of this side whose response is no longer awaited.

        Does not block; an unknown id is no error.

        Returns:
            Whether each request has a stream of its own, whose end may stand for the cancellation.
            `False` if all messages share one stream; then nothing was closed.
        """
        return False

    async def close_sse_stream(self, identifier: RequestId) -> bool:
        """Close the connection on which a request of the peer is being answered.

        Returns:
            Whether a connection was closed, and the peer can reconnect for the response.
        """
        return False


class Channel(MessageSender, Protocol):
    """One peer at the other end of a transport. Implementations inherit from this class.

    A channel frames messages; it decodes no JSON and applies no rule of the protocol. One task
    receives; any number of tasks send. After `close`, `receive` raises `EndOfChannel`.

    Source: basic/transports (custom transports).
    """

    __slots__ = ()

    @abstractmethod
    async def receive(self) -> bytes:
        """Wait for the next message, whole and without its frame.

        Raises:
            EndOfChannel: The peer is gone.
            FrameError: One frame was unusable, for example too long; receive again.
            RequestLost: One request of this side will not be answered; receive again.
        """
        ...

    def settle_by(self, take: Callable[[bytes], bool]) -> None:  # most channels ignore it
        """Pass each message to a function on arrival, if that costs less than `receive`.

        Args:
            take: Returns whether it handled the message; `receive` then skips the message. Does not
                block.
        """
        return


@dataclass(frozen=True)
class TooLong:
    """A placeholder for a message over the limit, whose bytes were dropped.

    Attributes:
        limit: The limit that was exceeded, in bytes.
    """

    limit: int

    def error(self) -> FrameError:
        """The error for the receiver."""
        return FrameError(
            f"expected a message of at most {self.limit} bytes, came a longer one; it was dropped",
            INVALID_REQUEST,
        )
