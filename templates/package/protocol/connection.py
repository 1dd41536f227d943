"""One connection without its I/O: received bytes become events, calls become messages to send.

`Connection` matches responses with requests and checks messages. It opens nothing, waits for
nothing and reads no clock: the caller passes the time. A message is read by the agreed revision of
the session, or by the revision that the request states in its `_meta`. Revisions are tables; a
message that is in none of them is refused or ignored. A malformed message raises nothing: it gets
an error response, is ignored, or fails the request that it belongs to.

Source: basic/index, basic/lifecycle, basic/versioning; basic/utilities or basic/patterns
(cancellation, progress), server/utilities/logging.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from .._wire import UNREADABLE, UNWRITABLE, ValidationError, decoder, error_text
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    InvalidParamsError,
    InvalidRequestError,
    LocalProtocolError,
    McpError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
)
from ..facts import Lifecycle, Method, Revision
from ..foreign_text import safe_repr, safe_text
from . import jsonrpc
from .lifecycle import RequestMetadata, Session, is_declared, needs_session
from .request_meta import NO_META, read_meta, with_meta
from .requests import (
    CANCELLED,
    LOG_LEVELS,
    MESSAGE,
    OBJECTS,
    PROGRESS,
    PROGRESS_TOKEN,
    SUBSCRIBE,
    UNSUBSCRIBE,
    ConnectionState,
    InboundRequest,
    OutboundRequest,
    cancellation,
    check_params,
    check_result_type,
    decode_params,
    encode_response,
    error_response,
    is_log_level,
    notification,
)
from .states import INITIALIZE, PING, State


class Send(msgspec.Struct, frozen=True):
    """The connection has a message of its own to send.

    `opens` marks a message of the negotiation. If it can't be sent, call
    `ClientConnection.opening_refused`.
    """

    message: OutgoingMessage
    opens: bool = False


class RequestReceived(msgspec.Struct, frozen=True):
    """A request of the peer: call `respond` or `fail` once, unless the request is cancelled.

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

MOST_ADMITTED = 200
"""Most rows of requests that are kept as checked; a proxy admits methods of any name."""


class Connection:
    """The protocol of one side of a connection; each side has a class derived from it.

    Args:
        state: The session, and the open requests of both sides.
    """

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._handshakes = state.revisions.of(Lifecycle.HANDSHAKE)

    @property
    def state(self) -> ConnectionState:
        """The session, and the open requests of both sides."""
        return self._state

    @property
    def session(self) -> Session | None:
        """The agreed session; `None` before the handshake, and where there is none."""
        return self._state.session

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self._state.revision

    def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: bool = False,
        related_request_id: RequestId | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        now: float = 0.0,
        reads_result: bool = True,
    ) -> tuple[RequestId, OutgoingMessage]:
        """Begin a request; returns its id and the message.

        Args:
            name: The method.
            params: Typed params, a wire object, raw JSON, which is sent unchecked, or `None`.
            meta: Members that the user adds to `_meta`.
            progress: Whether to ask for progress.
            related_request_id: The received request on whose behalf this request is made, if any.
            timeout: Seconds until the request is lost; progress restarts them.
            limit: Seconds until the request is lost despite progress.
            now: The current time, on the caller's clock.
            reads_result: Whether the result is decoded and checked, or only kept as JSON.

        Raises:
            MethodNotFoundError: The agreed revision has no such request for this side.
            MissingCapabilityError: The peer did not declare a required capability.
            LocalProtocolError: It must not be sent now, `meta` breaks a rule, or the params do not
                fit the revision.
        """
        state = self._state
        revision, method = state.request_target(name, params, related_request_id)
        is_typed = type(params) in method.params_structs
        if not (is_typed or params is None or isinstance(params, OBJECTS)):
            got = safe_repr(params)
            raise LocalProtocolError(f"{name}: expected an object as params, got {got}")
        request = OutboundRequest(method, revision, progress, timeout, reads_result=reads_result)
        if limit is not None:
            request.deadline = request.limit = now + limit
        if timeout is not None:
            request.extend(now)
        added = state.request_meta(revision, meta)
        identifier = state.outbound.add(request)
        try:
            if progress:
                added = {**added, PROGRESS_TOKEN: identifier}
            encoded: Any = added
            if (session := state.session) is not None and added is session.own_meta:
                encoded = session.encoded_meta
            shaped = with_meta(params, added, encoded)
            if not (is_typed or isinstance(params, Raw)):
                check_params(method, shaped)
            data = jsonrpc.encode_request(identifier, name, shaped)
        except ValidationError as error:
            state.outbound.pop(identifier)
            raise LocalProtocolError(f"{name}: params: {error_text(error)}") from None
        except UNWRITABLE as error:
            state.outbound.pop(identifier)
            text = f"{name}: params: no JSON form: {error_text(error)}"
            raise LocalProtocolError(text) from error
        return identifier, OutgoingMessage(
            data, "request", identifier, name, revision, related_request_id, params
        )

    def respond(self, identifier: RequestId, result: Any = None) -> OutgoingMessage | None:
        """Answer a request; `None` if the request is no longer open.

        Args:
            identifier: The id of the request.
            result: The typed result, or a wire object, which is converted: members that the
                revision does not have are dropped. `None` for a result without members.

        Raises:
            InternalError: The result does not fit the method or has no JSON form; call `fail` then.
            MissingCapabilityError: The client did not declare a capability that an input request
                requires.
        """
        state = self._state
        request = state.inbound.get(identifier)
        if request is None:
            return None
        data = self._encode_result(identifier, request, result)
        del state.inbound[identifier]
        if state.session is not None:
            if request.method.name == SUBSCRIBE:
                state.session.subscriptions.add(request.params.uri)
            elif request.method.name == UNSUBSCRIBE:
                state.session.subscriptions.discard(request.params.uri)
        return OutgoingMessage(data, "response", identifier, "", request.revision, identifier)

    def _encode_result(self, identifier: RequestId, request: InboundRequest, result: Any) -> bytes:
        """The JSON of a success response; see `respond`."""
        return encode_response(identifier, result, request.method)

    def fail(self, identifier: RequestId, error: ProtocolError) -> OutgoingMessage | None:
        """Answer a request with an error; `None` if the request is no longer open."""
        request = self._state.inbound.get(identifier)
        if request is None:
            return None
        message = error_response(identifier, error, request.revision)
        del self._state.inbound[identifier]
        return message

    def cancel(self, identifier: RequestId, reason: str | None = None) -> OutgoingMessage | None:
        """Cancel a request of this side; `None` if it is not open, or cannot be cancelled."""
        request = self._state.outbound.pop(identifier)
        if request is None or not request.method.facts.cancellable:
            return None
        if CANCELLED not in request.revision.notifications_from(self._state.role):
            return None
        params: dict[str, Any] = {"requestId": identifier}
        if reason is not None:
            params["reason"] = reason
        return cancellation(request.revision, params)

    def cancel_by_stream(self, identifier: RequestId) -> OutgoingMessage | None:
        """Cancel a request whose stream was closed; `None` also if that cancels the request.

        Source: basic/patterns/cancellation (2026-07-28: transport-specific cancellation).
        """
        request = self._state.outbound.get(identifier)
        if request is not None and request.revision.facts.http.cancellation == "close":
            self._state.outbound.pop(identifier)
            return None
        return self.cancel(identifier)

    def progress(
        self,
        identifier: RequestId,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> OutgoingMessage | None:
        """Report progress of an inbound request.

        `None` if the peer wants none, the request is not open, or the value is not more than the
        last one.

        Raises:
            LocalProtocolError: The value is no finite number, or an argument has a wrong type.
        """
        request = self._state.inbound.get(identifier)
        if request is None or request.progress_token is None:
            return None
        is_finite = isinstance(progress, float) and math.isfinite(progress)
        if not (is_finite or isinstance(progress, int)):
            raise LocalProtocolError(
                f"progress: expected a finite number, got {safe_repr(progress)}"
            )
        if not request.advance(progress):
            return None
        params: dict[str, Any] = {PROGRESS_TOKEN: request.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        return notification(self._state.role, request.revision, PROGRESS, params, identifier)

    def log(
        self,
        identifier: RequestId | None,
        level: str,
        data: Any,
        logger: str | None = None,
        meta: Mapping[str, Any] = NO_META,
    ) -> OutgoingMessage | None:
        """Send a log message to the client; `None` if the client does not want the message.

        Args:
            identifier: The request that the message belongs to; `None` for the whole session.
            level: One of `LOG_LEVELS`, or another level that the revision has.
            data: Any JSON value.
            logger: Name of the logger.
            meta: `_meta` of the notification.

        Raises:
            LocalProtocolError: There is no such level.
        """
        request = None if identifier is None else self._state.inbound.get(identifier)
        revision = request.revision if request is not None else self._state.revision
        if not is_log_level(level, revision):
            raise LocalProtocolError(
                f"log level: expected one of {', '.join(LOG_LEVELS)}, got {safe_repr(level)}"
            )
        if request is None and (identifier is not None or self._state.session is None):
            return None
        if not is_declared(self._state.own_capabilities(revision), ("logging",)):
            return None
        if not self._state.wants_log(level, revision, request):
            return None
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        if meta:
            params["_meta"] = meta
        return notification(self._state.role, revision, MESSAGE, params, identifier)

    def notify(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        related_request_id: RequestId | None = None,
    ) -> list[OutgoingMessage]:
        """Make the messages of a notification, one for each session or stream that receives it.

        There are none for a change without declared capability or without subscription, nor for
        progress and log messages that the peer does not want.

        Args:
            name: The notification.
            params: The params as wire object.
            related_request_id: The received request on whose behalf the notification is sent.

        Raises:
            MethodNotFoundError: No revision in use has such a notification for this side.
            LocalProtocolError: The params do not fit; or the notification is a cancellation, which
                only `cancel` sends; or a revision without sessions needs a request for it.
        """
        wire = dict(params or {})
        state = self._state
        revisions = state.candidate_revisions()
        defined = any(name in revision.notifications_from(state.role) for revision in revisions)
        if not defined and name not in state.extensions:
            raise MethodNotFoundError(name)
        if name == CANCELLED:
            raise LocalProtocolError(f"{name}: is sent by giving up the request itself")
        if name == PROGRESS:
            return self._notify_progress(wire)
        return self._notifications(name, wire, related_request_id)

    def _notifications(
        self, name: str, wire: Mapping[str, Any], related_request_id: RequestId | None
    ) -> list[OutgoingMessage]:
        state = self._state
        session = state.session
        if session is None or not state.session_wants(session, name):
            return []
        return [notification(state.role, session.revision, name, wire)]

    def is_subscribed(self, uri: str) -> bool:
        """Whether the peer subscribed to a resource."""
        return False

    def subscribed_uris(self) -> set[str]:
        """The resources that the peer subscribed to."""
        return set()

    def has_subscriber(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether a subscription stream admits a notification."""
        return False

    def close_streams(self) -> list[OutgoingMessage]:
        """End all subscription streams; returns the messages to send."""
        return []

    def request_lost(self, identifier: RequestId, error: McpError) -> list[Event]:
        """The transport reports that a request of this side gets no response, and the error."""
        if self._state.outbound.pop(identifier) is None:
            return [Ignored(f"{safe_repr(identifier)}, which is no open request: {error}")]
        return [RequestFailed(identifier, error)]

    def closed(self) -> list[RequestId]:
        """The transport ended: drop all open requests; returns the ids of those of this side."""
        self._state.inbound.clear()
        return self._state.outbound.drain()

    def _notify_progress(self, params: Mapping[str, Any]) -> list[OutgoingMessage]:
        token = params.get(PROGRESS_TOKEN)
        for identifier, request in self._state.inbound.items():
            own = request.progress_token
            if own == token and type(own) is type(token):
                report = self.progress(
                    identifier, params["progress"], params.get("total"), params.get("message")
                )
                return [] if report is None else [report]
        return []

    def result_decoder(self, method: Method) -> Callable[[bytes | Raw], Any]:
        """The decoder for results of a method."""
        return decoder(method.result)

    def receive(self, data: bytes, now: float = 0.0) -> list[Event]:
        """Receive one message without frame, or a batch in a revision with batches.

        `now` is the current time, on the clock that `request` was given.
        """
        session = self._state.session
        batching = session is not None and session.revision.batching and jsonrpc.is_batch(data)
        messages: Sequence[jsonrpc.Message]
        if isinstance(data, jsonrpc.ParsedMessage) and data.is_batch == batching:
            messages = data.messages
        elif batching:
            messages = jsonrpc.parse_batch(data)
        else:
            return self.receive_message(jsonrpc.parse(data), now)
        return (
            self.receive_batch(messages, now)
            if batching
            else self.receive_message(messages[0], now)
        )

    def receive_batch(self, messages: Sequence[jsonrpc.Message], now: float = 0.0) -> list[Event]:
        """Receive the parsed messages of a batch, in which `initialize` is not allowed."""
        events: list[Event] = []
        for each in messages:
            if isinstance(each, jsonrpc.Request) and each.method == INITIALIZE:
                error = InvalidRequestError(
                    "initialize: expected a message of its own, got a batch"
                )
                events.append(_refusal(each.id, error, self._state.revision))
            else:
                events += self.receive_message(each, now)
        return events

    def unreadable(self, error: ProtocolError) -> list[Event]:
        """Receive a frame that could not be read as a message."""
        return self._receive_invalid(jsonrpc.InvalidMessage(None, error, True, response=True))

    def _drop(self, identifier: RequestId) -> None:
        """Remove an inbound request, which gets no response."""
        del self._state.inbound[identifier]

    def receive_message(self, message: jsonrpc.Message, now: float = 0.0) -> list[Event]:
        """Receive one parsed message."""
        match message:
            case jsonrpc.Request():
                return self._receive_request(message)
            case jsonrpc.Result():
                return self._receive_result(message)
            case jsonrpc.Notification():
                return self._receive_notification(message, now)
            case jsonrpc.Failure():
                return self._receive_failure(message)
            case jsonrpc.InvalidMessage():
                return self._receive_invalid(message)

    def _receive_request(self, message: jsonrpc.Request) -> list[Event]:
        try:
            event, stated = self.read_request(message)
        except ProtocolError as error:
            return [self.refuse(message, error)]
        self.register(event, stated)
        return self.handle_request(event)

    def read_request(self, message: jsonrpc.Request) -> tuple[RequestReceived, RequestMetadata]:
        """Read a request, and its metadata. Changes no open requests.

        Raises:
            ProtocolError: The request is refused.
        """
        try:
            meta, stated = self._read_metadata(message)
            if message.id in self._state.inbound:
                raise InvalidRequestError(f"id {safe_repr(message.id)} belongs to an open request")
            return self._decode_request(message, meta, stated), stated
        except RecursionError as error:
            text = f"{safe_text(message.method)}: {error_text(error)}"
            raise InvalidRequestError(text) from None

    def handle_request(self, event: RequestReceived) -> list[Event]:
        """Answer a registered request that the connection handles itself; pass on any other."""
        reason: ProtocolError
        try:
            return self._handle_request(event)
        except RecursionError as error:
            reason = InvalidParamsError(f"{event.method.name}: params: {error_text(error)}")
        except ProtocolError as error:
            reason = error
        self._drop(event.id)
        return [_refusal(event.id, reason, event.revision)]

    def refuse(self, message: jsonrpc.Request, error: ProtocolError) -> Send:
        """The refusal of a request that `read_request` refused."""
        try:
            revision = self._read_metadata(message)[1].revision
        except (ProtocolError, RecursionError):
            revision = self._session_revision()
        return _refusal(message.id, error, revision)

    def _handle_request(self, event: RequestReceived) -> list[Event]:
        """Respond to a request that the connection handles itself; pass on any other."""
        return self._answer(event) if event.method.name == PING else [event]

    def _read_metadata(self, message: jsonrpc.Request) -> tuple[Mapping[str, Any], RequestMetadata]:
        """The `_meta` of a request, and its metadata; refuses what is not allowed now."""
        return read_meta(message.params), self._session_metadata(message.method)

    def _session_metadata(self, method: str) -> RequestMetadata:
        """The metadata of the session, for a request that states none itself."""
        session = self._state.session
        if session is None:
            return RequestMetadata(self._session_revision(), NO_META, None, None)
        return session.metadata

    def register(self, event: RequestReceived, stated: RequestMetadata) -> None:
        """Add a request of the peer, with its metadata, to the open requests."""
        token = event.meta.get(PROGRESS_TOKEN)
        self._state.inbound[event.id] = InboundRequest(
            event.method,
            event.revision,
            event.params,
            None if token is None else jsonrpc.read_id(token),
            stated.log_level,
            stated.peer_capabilities,
        )

    def _session_revision(self) -> Revision:
        """The agreed revision; before that, the newest revision with a handshake."""
        session = self._state.session
        return self._first_revision() if session is None else session.revision

    def _first_revision(self) -> Revision:
        """The newest revision with a handshake, or the newest of all if none has one."""
        return (self._handshakes or self._state.revisions).newest()

    def _decode_request(
        self, message: jsonrpc.Request, meta: Mapping[str, Any], stated: RequestMetadata
    ) -> RequestReceived:
        """Decode the params of a request by its row in the method table."""
        session, revision, name = self._state.session, stated.revision, message.method
        in_session = session is not None and stated is session.metadata
        method = session.admitted.get(name) if session and in_session else None
        if method is None:
            method = self._declared_row(revision, name)
            if method is None:
                raise self._undeclared_error(revision, name)
            has_room = session is not None and len(session.admitted) < MOST_ADMITTED
            if session and in_session and session.state is State.READY and has_room:
                session.admitted[name] = method
        return RequestReceived(
            message.id,
            method,
            decode_params(method, message.params),
            message.params,
            meta,
            revision,
            stated.peer_info,
            stated.peer_capabilities,
        )

    def _declared_row(self, revision: Revision, name: str) -> Method | None:
        """The row of a request, if this side declared the capability that it belongs to."""
        method = self._state.inbound_method(revision, name)
        if method is None or not method.capability:
            return method
        own = self._state.own_capabilities(revision)
        return method if is_declared(own, method.capability) else None

    def _undeclared_error(self, revision: Revision, name: str) -> MethodNotFoundError:
        method, session = self._state.inbound_method(revision, name), self._state.session
        if method and session and session.lacks and needs_session(method.capability):
            return MethodNotFoundError(name, f"{name}: needs {session.lacks}")
        return MethodNotFoundError(name)

    def _receive_notification(self, message: jsonrpc.Notification, now: float) -> list[Event]:
        revision = self._state.revision
        if not self._is_in_turn(message.method):
            return [Ignored(f"{safe_text(message.method)}: not expected now")]
        method = self._notification_method(message.method)
        if method is None:
            return [Ignored(f"unknown notification {safe_text(message.method)}")]
        try:
            meta = read_meta(message.params)
            params = decode_params(method, message.params)
        except ProtocolError as error:
            return [Ignored(f"{message.method}: {error.message}")]
        stream = meta.get(revision.facts.meta.subscription_id or "")
        if stream is not None and not self._may_belong_to(stream):
            return [Ignored(f"{message.method}: {safe_repr(stream)} is no open subscription")]
        event = NotificationReceived(method, params, message.params, meta, revision, stream)
        if message.method == PROGRESS:
            return self._handle_progress(event, now)
        return self._handle_notification(event)

    def _is_in_turn(self, name: str) -> bool:
        """Whether the peer may send a notification now."""
        return True

    def _may_belong_to(self, stream: Any) -> bool:
        return True

    def _handle_notification(self, event: NotificationReceived) -> list[Event]:
        """Handle a notification that is for the connection itself; pass on any other."""
        return self._handle_cancelled(event) if event.method.name == CANCELLED else [event]

    def _notification_method(self, name: str) -> Method | None:
        for revision in self._state.candidate_revisions():
            method = revision.notifications_from(self._state.peer_role).get(name)
            if method is not None:
                return method
        return self._state.extensions.get(name)

    def _receive_result(self, message: jsonrpc.Result) -> list[Event]:
        request = self._state.outbound.pop(message.id)
        if request is None:
            self._state.outbound.strays += 1
            return self._receive_stray(message.id, f"result for {safe_repr(message.id)}")
        if not request.reads_result:
            return [ResponseReceived(message.id, None, message.result)]
        try:
            result = self.result_decoder(request.method)(message.result)
            check_result_type(request, result)
        except UNREADABLE as error:
            failure = RemoteProtocolError(f"{request.method.name}: result: {error_text(error)}")
            return [RequestFailed(message.id, failure)]
        except RemoteProtocolError as failure:
            return [RequestFailed(message.id, failure)]
        return [ResponseReceived(message.id, result, message.result)]

    def _receive_failure(self, message: jsonrpc.Failure) -> list[Event]:
        request = None if message.id is None else self._state.outbound.pop(message.id)
        if request is None or message.id is None:
            subject = "the connection" if message.id is None else safe_repr(message.id)
            text = f"error {message.code} about {subject}: {safe_text(message.message)}"
            return self._receive_stray(message.id, text)
        error = RemoteError(message.code, message.message, message.data, request.method.name)
        return [RequestFailed(message.id, error)]

    def _receive_stray(self, identifier: RequestId | None, what: str) -> list[Event]:
        """Receive a response that belongs to no open request."""
        outbound = self._state.outbound
        if identifier is None:
            return self._receive_unmatched(what)
        if outbound.was_sent(identifier):
            return [Ignored(f"{what}, which is no open request any more")]
        similar = outbound.similar(identifier)
        request = None if similar is None else outbound.pop(similar)
        if request is None or similar is None:
            return self._receive_unmatched(f"{what}, which is no open request")
        came = safe_repr(identifier)
        text = f"{request.method.name}: expected {similar!r} as id of the response, came {came}"
        return [RequestFailed(similar, RemoteProtocolError(text))]

    def _receive_unmatched(self, reason: str) -> list[Event]:
        """Receive what may be the response to any open request."""
        ids = self._state.outbound.awaited()
        return [UnmatchedResponse(reason, ids) if ids else Ignored(reason)]

    def _receive_invalid(self, message: jsonrpc.InvalidMessage) -> list[Event]:
        events: list[Event] = [Ignored(message.error.message)]
        if message.response and message.id is not None:
            request = self._state.outbound.pop(message.id)
            if request is not None:
                failure = RemoteProtocolError(f"{request.method.name}: {message.error.message}")
                return [RequestFailed(message.id, failure)]
        if message.response and (message.id is None or not message.answerable):
            events = self._receive_stray(message.id, message.error.message)
        if message.answerable and not self._is_noise(message):
            refusal = _refusal(message.id, message.error, self._state.revision)
            events = [*(each for each in events if not isinstance(each, Ignored)), refusal]
        return events

    def _is_noise(self, message: jsonrpc.InvalidMessage) -> bool:
        """Whether an invalid message is dropped without a response."""
        return False

    def _answer(self, event: RequestReceived, result: Any = None) -> list[Event]:
        message: OutgoingMessage | None
        try:
            message = self.respond(event.id, result)
        except ProtocolError as error:
            revision = self._state.inbound.pop(event.id).revision
            message = error_response(event.id, error, revision)
        return [] if message is None else [Send(message)]

    def _handle_cancelled(self, event: NotificationReceived) -> list[Event]:
        identifier = event.params.request_id
        request = self._state.inbound.get(identifier)
        if request is None:
            return [Ignored(f"cancelled: {safe_repr(identifier)} is no open request")]
        self._drop(identifier)
        return [CancelReceived(identifier, event.params.reason)]

    def _handle_progress(self, event: NotificationReceived, now: float) -> list[Event]:
        params = event.params
        request = self._state.outbound.get(params.progress_token)
        if request is None or not request.wants_progress:
            if event.revision.facts.meta.related_task in event.meta:
                return [event]  # of a task, whose request was answered
            token = safe_repr(params.progress_token)
            return [Ignored(f"progress for {token}, which nobody asked for")]
        request.extend(now)
        message = getattr(params, "message", None)
        return [ProgressReceived(params.progress_token, params.progress, params.total, message)]


def _refusal(identifier: RequestId | None, error: ProtocolError, revision: Revision) -> Send:
    return Send(error_response(identifier, error, revision))
