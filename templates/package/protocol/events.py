"""What a `Connection` makes of a message: things that happened, and bytes that are to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from ..channel import RequestId
from ..errors import McpError
from ..facts import Method, Revision


class Send(msgspec.Struct, frozen=True):
    """The connection answered by itself: send this.

    Attributes:
        message: Encoded message.
        about: The received request it belongs to.
        opens: Whether it is a message by which the session is opened: if it can't be sent,
            `Connection.opening_refused` is to be told.
    """

    message: bytes
    about: RequestId | None = None
    opens: bool = False


class RequestReceived(msgspec.Struct, frozen=True):
    """The peer asks; exactly one `respond` or `fail` has to follow, unless it is cancelled.

    Attributes:
        id: The request's id.
        method: Its row in the method table.
        params: Typed params, or `None`.
        raw_params: The same as they came, with all that no type knows.
        meta: `_meta` of the request, empty if absent.
        revision: The revision it is judged by.
        peer_info: How the peer calls itself, as wire object, if it said so.
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
    """The peer tells something that the connection does not handle itself.

    Attributes:
        method: Its row in the method table.
        params: Typed params, or `None`.
        raw_params: The same as they came.
        meta: `_meta` of the notification, empty if absent.
        revision: The revision it is judged by.
        subscription: Id of our open request that it is sent for, if it names one.
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
        raw: The same as it came.
    """

    id: RequestId
    result: Any
    raw: Raw


class RequestFailed(msgspec.Struct, frozen=True):
    """One of our requests failed: the peer said so, or its answer broke a rule."""

    id: RequestId
    error: McpError


class ProgressReceived(msgspec.Struct, frozen=True):
    """Progress of one of our requests; its deadline may have moved."""

    id: RequestId
    progress: float
    total: float | None
    message: str | None


class CancelReceived(msgspec.Struct, frozen=True):
    """The peer takes a request back. Stop working on it; it gets no answer."""

    id: RequestId
    reason: str | None


class Opened(msgspec.Struct, frozen=True):
    """Revision and capabilities are agreed; requests may go out."""

    revision: Revision


class OpenFailed(msgspec.Struct, frozen=True):
    """No agreement came about; the transport is of no further use."""

    error: McpError


class Ignored(msgspec.Struct, frozen=True):
    """Something that could not be used and is not worth an answer; for the log."""

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
