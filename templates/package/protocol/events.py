"""The events that a `Connection` makes of received messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from ..channel import OutgoingMessage, RequestId
from ..errors import McpError
from ..facts import Method, Revision


class Send(msgspec.Struct, frozen=True):
    """The connection has a message to send by itself.

    Attributes:
        message: The message.
        opens: Whether the message is part of opening the session: if it can't be sent,
            `Connection.opening_refused` has to be called.
    """

    message: OutgoingMessage
    opens: bool = False


class RequestReceived(msgspec.Struct, frozen=True):
    """A request; exactly one `respond` or `fail` has to follow, unless the request is cancelled.

    Attributes:
        id: The request's id.
        method: Its row in the method table.
        params: Typed params, or `None`.
        raw_params: The params as received, unknown members included.
        meta: `_meta` of the request, empty if absent.
        revision: The revision that applies.
        peer_info: The peer's implementation info as wire object, if stated.
        peer_capabilities: What the peer declared, as wire object.
    """

    id: RequestId
    method: Method
    params: Any
    raw_params: Raw | None
    meta: Mapping[str, Any]
    revision: Revision
    peer_info: Mapping[str, Any] | None
    peer_capabilities: Mapping[str, Any]


class NotificationReceived(msgspec.Struct, frozen=True):
    """A notification that the connection does not handle itself.

    Attributes:
        method: Its row in the method table.
        params: Typed params, or `None`.
        raw_params: The params as received.
        meta: `_meta` of the notification, empty if absent.
        revision: The revision that applies.
        subscription: Id of the open request of ours that it belongs to, if it names one.
    """

    method: Method
    params: Any
    raw_params: Raw | None
    meta: Mapping[str, Any]
    revision: Revision
    subscription: RequestId | None = None


class ResponseReceived(msgspec.Struct, frozen=True):
    """One of our requests succeeded.

    Attributes:
        id: The request's id.
        result: Typed result.
        raw: The result as received.
    """

    id: RequestId
    result: Any
    raw: Raw


class RequestFailed(msgspec.Struct, frozen=True):
    """One of our requests failed, by an error response or by an invalid response."""

    id: RequestId
    error: McpError


class ProgressReceived(msgspec.Struct, frozen=True):
    """Progress of one of our requests; its deadline may have moved."""

    id: RequestId
    progress: float
    total: float | None
    message: str | None


class CancelReceived(msgspec.Struct, frozen=True):
    """The peer cancelled a request. Stop its handler; no response may be sent."""

    id: RequestId
    reason: str | None


class Opened(msgspec.Struct, frozen=True):
    """Revision and capabilities are agreed; requests may go out."""

    revision: Revision


class OpenFailed(msgspec.Struct, frozen=True):
    """Version negotiation failed; the transport is of no further use."""

    error: McpError


class Ignored(msgspec.Struct, frozen=True):
    """A message was dropped without response; for the log."""

    reason: str


Event: TypeAlias = (
    Send
    | RequestReceived
    | NotificationReceived
    | ResponseReceived
    | RequestFailed
    | ProgressReceived
    | CancelReceived
    | Opened
    | OpenFailed
    | Ignored
)
