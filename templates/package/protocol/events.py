"""The input and output of a connection without I/O, as values.

`Connection.send` takes a command and returns the messages to pass to the transport.
`Connection.receive` takes what the transport received and returns events for the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from ..channel import OutgoingMessage, RequestId
from ..errors import FrameError, McpError, ProtocolError, RequestLost
from ..facts import Method, Revision
from . import jsonrpc
from .request_meta import NO_META


class SendRequest(msgspec.Struct, frozen=True, gc=False):
    """Send a request; the message has its id.

    Attributes:
        name: The method.
        params: Typed params, a wire object, raw JSON, which is sent unchecked, or `None`.
        meta: Members that the user adds to `_meta`.
        progress: Whether to ask for progress.
        related_request_id: The received request on whose behalf this request is made, if any.
        timeout: Seconds until the request is lost; progress restarts them.
        limit: Seconds until the request is lost despite progress.
        reads_result: Whether the result is decoded and checked, or only kept as JSON.
    """

    name: str
    params: Any = None
    meta: Mapping[str, Any] | None = None
    progress: bool = False
    related_request_id: RequestId | None = None
    timeout: float | None = None
    limit: float | None = None
    reads_result: bool = True


class SendNotification(msgspec.Struct, frozen=True, gc=False):
    """Send a notification: a message for each session or stream that receives it.

    There are none for a change without declared capability or without subscription, nor for
    progress and log messages that the peer does not want.

    Attributes:
        name: The notification.
        params: The params as wire object.
        related_request_id: The received request on whose behalf the notification is sent.
    """

    name: str
    params: Mapping[str, Any] | None = None
    related_request_id: RequestId | None = None


class SendResponse(msgspec.Struct, frozen=True, gc=False):
    """Answer a request; no message if the request is no longer open.

    Attributes:
        id: The id of the request.
        result: The typed result, or a wire object, which is converted: members that the revision
            does not have are dropped. `None` for a result without members.
    """

    id: RequestId
    result: Any = None


class SendError(msgspec.Struct, frozen=True, gc=False):
    """Answer a request with an error; no message if the request is no longer open."""

    id: RequestId
    error: ProtocolError


class CancelRequest(msgspec.Struct, frozen=True, gc=False):
    """Cancel a request of this side; no message if it is not open, or cannot be cancelled.

    Attributes:
        id: The id of the request.
        reason: A text for the peer.
        stream_closed: Whether the stream of the request was closed, which cancels it in some
            revisions (basic/patterns/cancellation: transport-specific cancellation).
    """

    id: RequestId
    reason: str | None = None
    stream_closed: bool = False


class ReportProgress(msgspec.Struct, frozen=True, gc=False):
    """Report progress of a received request.

    No message if the peer wants none, the request is not open, or the value is not more than the
    last one.
    """

    id: RequestId
    progress: float
    total: float | None = None
    message: str | None = None


class SendLog(msgspec.Struct, frozen=True, gc=False):
    """Send a log message to the client; no message if the client does not want it.

    Attributes:
        id: The request that the message belongs to; `None` for the whole session.
        level: One of `LOG_LEVELS`, or another level that the revision has.
        data: Any JSON value.
        logger: Name of the logger.
        meta: `_meta` of the notification.
    """

    id: RequestId | None
    level: str
    data: Any
    logger: str | None = None
    meta: Mapping[str, Any] = NO_META


class OpenSession(msgspec.Struct, frozen=True, gc=False):
    """Begin version negotiation, as a client; `Opened` or `OpenFailed` follows."""


class CloseStreams(msgspec.Struct, frozen=True, gc=False):
    """End all subscription streams of the client, as a server."""


Command: TypeAlias = (
    SendRequest
    | SendNotification
    | SendResponse
    | SendError
    | CancelRequest
    | ReportProgress
    | SendLog
    | OpenSession
    | CloseStreams
)


class StepTimedOut(msgspec.Struct, frozen=True, gc=False):
    """The request of the current step of version negotiation got no response in time.

    A late response, from a server that starts slowly, is still accepted.
    """


Received: TypeAlias = bytes | jsonrpc.Message | FrameError | RequestLost | StepTimedOut
"""Input of a connection: a message without frame, parsed or not, or a report of the transport."""


class Send(msgspec.Struct, frozen=True):
    """The connection has a message of its own to send.

    `opens` marks a message of the negotiation. A request that can't be sent is lost: pass a
    `RequestLost` to `receive`.
    """

    message: OutgoingMessage
    opens: bool = False


class RequestReceived(msgspec.Struct, frozen=True):
    """A request of the peer: send one response, unless the request is cancelled.

    Attributes:
        params: Typed params, or `None`.
        raw_params: The params as received, unknown members included.
        meta: `_meta` of the request, empty if absent.
        revision: The revision that applies.
        peer_info: The peer's implementation info as wire object, if stated.
        peer_capabilities: The capabilities that the peer declared, as wire object.
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
    """A notification that the connection does not handle itself; see `RequestReceived`.

    `subscription` is the id of the subscription that the notification names, if any.
    """

    method: Method
    params: Any
    raw_params: Raw | None
    meta: Mapping[str, Any]
    revision: Revision
    subscription: RequestId | None = None


class ResponseReceived(msgspec.Struct, frozen=True):
    """A request of this side succeeded; `result` is `None` if it does not read its result."""

    id: RequestId
    result: Any
    raw: Raw


class RequestFailed(msgspec.Struct, frozen=True):
    """A request of this side failed, by an error response or an invalid response."""

    id: RequestId
    error: McpError


class ProgressReceived(msgspec.Struct, frozen=True):
    """Progress of a request of this side, whose deadline may have moved."""

    id: RequestId
    progress: float
    total: float | None
    message: str | None


class CancelReceived(msgspec.Struct, frozen=True):
    """The peer cancelled a request. Stop its handler; no response may be sent."""

    id: RequestId
    reason: str | None


class Opened(msgspec.Struct, frozen=True):
    """Revision and capabilities are agreed; requests may be sent."""

    revision: Revision


class OpenFailed(msgspec.Struct, frozen=True):
    """Version negotiation failed; the transport is of no further use."""

    error: McpError


class UnmatchedResponse(msgspec.Struct, frozen=True):
    """A message that may be the response to any of the open requests `ids` of this side."""

    reason: str
    ids: tuple[RequestId, ...]


class Ignored(msgspec.Struct, frozen=True):
    """A message was dropped without response; the reason is for the log."""

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
    | UnmatchedResponse
    | Ignored
)
