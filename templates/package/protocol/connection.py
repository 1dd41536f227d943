"""One connection without its I/O: commands become messages, received messages become events.

`Connection` matches responses with requests and checks messages. It opens nothing, waits for
nothing and reads no clock: the caller passes the time. Its verbs are `send`, `receive` and
`closed`; `events` has the values that they take and return. A message is read by the agreed
revision of the session, or by the revision that the request states in its `_meta`. Revisions are
tables; a message that is in none of them is refused or ignored. A malformed message raises nothing:
it gets an error response, is ignored, or fails the request that it belongs to.

Source: basic/index, basic/lifecycle, basic/versioning; basic/utilities or basic/patterns
(cancellation, progress), server/utilities/logging.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from msgspec import Raw

from .._wire import UNREADABLE, UNWRITABLE, ValidationError, error_text
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    FrameError,
    InvalidParamsError,
    InvalidRequestError,
    LocalProtocolError,
    McpError,
    MethodNotFoundError,
    ParseError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
    RequestLost,
)
from ..facts import Lifecycle, Method, Revision
from ..foreign_text import safe_repr, safe_text
from . import jsonrpc
from .events import (
    CancelReceived,
    CancelRequest,
    CloseStreams,
    Command,
    Event,
    Ignored,
    NotificationReceived,
    ProgressReceived,
    Received,
    ReportProgress,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
    SendError,
    SendLog,
    SendNotification,
    SendRequest,
    SendResponse,
    UnmatchedResponse,
)
from .lifecycle import PING, RequestMetadata, Session, State, is_declared, needs_session
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

OwnHandler: TypeAlias = Callable[[Any, RequestReceived], list[Event]]
"""Handles a request that is not for the application; takes the connection first."""

MOST_ADMITTED = 200
"""Most rows of requests that are kept as checked; a proxy admits methods of any name."""


class Connection:
    """The protocol of one side of a connection; each side has a class derived from it.

    Args:
        state: The session, and the open requests of both sides.

    Attributes:
        state: As passed.
    """

    def __init__(self, state: ConnectionState) -> None:
        self.state = state
        self._handshakes = state.revisions.of(Lifecycle.HANDSHAKE)

    @property
    def session(self) -> Session | None:
        """The agreed session; `None` before the handshake, and where there is none."""
        return self.state.session

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self.state.revision

    def send(self, command: Command, now: float = 0.0) -> Sequence[OutgoingMessage]:
        """The messages of a command, which the transport is to send; see each command.

        Args:
            command: The command.
            now: The current time on the caller's clock, for the timeouts of a `SendRequest`.

        Raises:
            MethodNotFoundError: No revision in use has such a message of this side.
            MissingCapabilityError: The peer did not declare a required capability.
            LocalProtocolError: It must not be sent now, breaks a rule, or does not fit the
                revision.
            InternalError: A result does not fit the method or has no JSON form; send an
                `SendError` then.
        """
        if type(command) is SendRequest:
            return self._request(command, now)
        return self._SENDERS[type(command)](self, command)

    def receive(self, received: Received, now: float = 0.0) -> list[Event]:
        """The events of a message, or of a report of the transport.

        Args:
            received: A message without frame, or parsed, or a batch in a revision with batches; a
                frame that could not be read; a request that gets no response.
            now: The current time, on the clock that `send` was given.
        """
        message: Any = received
        if isinstance(received, bytes):
            parse_batch, session = self.state.parse_batch, self.state.session
            if parse_batch is not None and received[:1] != b"{":
                batches = session is not None and session.revision.batching
                if batches and (batch := parse_batch(received)) is not None:
                    return [event for each in batch for event in self.receive(each, now)]
            if isinstance(received, jsonrpc.ParsedMessage) and not received.is_batch:
                message = received.messages[0]
            else:
                message = jsonrpc.parse(received)
        match message:
            case jsonrpc.Request():
                try:
                    event, stated = self.read_request(message)
                except ProtocolError as error:
                    return [self._refuse(message, error)]
                return self.register(event, stated)
            case jsonrpc.Result():
                return self._receive_result(message)
            case jsonrpc.Notification():
                return self._receive_notification(message, now)
            case jsonrpc.Failure():
                return self._receive_failure(message)
            case RequestLost():
                return self._lose_request(message.id, message.error)
            case FrameError():
                broken = ParseError(str(message), code=message.code)
                message = jsonrpc.InvalidMessage(None, broken, True, response=True)
                return self._receive_invalid(message)
            case _:
                return self._receive_invalid(message)

    def closed(self) -> list[RequestId]:
        """The transport ended: drop all open requests; returns the ids of those of this side."""
        self.state.inbound.clear()
        return self.state.outbound.drain()

    def has_subscriber(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether the peer subscribed to a notification; `params` name its subject."""
        return False

    def subscribed_uris(self) -> set[str]:
        """The resources that the peer subscribed to."""
        return set()

    def read_request(self, message: jsonrpc.Request) -> tuple[RequestReceived, RequestMetadata]:
        """Read a request, and its metadata. Changes no open requests.

        Raises:
            ProtocolError: The request is refused.
        """
        try:
            meta, stated = self._read_metadata(message)
            if message.id in self.state.inbound:
                raise InvalidRequestError(f"id {safe_repr(message.id)} belongs to an open request")
            return self._decode_request(message, meta, stated), stated
        except RecursionError as error:
            text = f"{safe_text(message.method)}: {error_text(error)}"
            raise InvalidRequestError(text) from None

    def register(self, event: RequestReceived, stated: RequestMetadata) -> list[Event]:
        """Add a request that was read to the open requests.

        Returns:
            The request; or the answer to a request that the connection handles itself.
        """
        token = event.meta.get(PROGRESS_TOKEN)
        self.state.inbound[event.id] = InboundRequest(
            event.method,
            event.revision,
            event.params,
            None if token is None else jsonrpc.read_id(token),
            stated.log_level,
            stated.peer_capabilities,
        )
        handler = self._own_handlers.get(event.method.name)
        if handler is None:
            return [event]
        reason: ProtocolError
        try:
            return handler(self, event)
        except RecursionError as error:
            reason = InvalidParamsError(f"{event.method.name}: params: {error_text(error)}")
        except ProtocolError as error:
            reason = error
        self._drop(event.id)
        return [Send(error_response(event.id, reason, event.revision))]

    # Commands.

    def _request(self, command: SendRequest, now: float) -> Sequence[OutgoingMessage]:
        name, params = command.name, command.params
        state, timeout, limit = self.state, command.timeout, command.limit
        revision, method = state.request_target(name, params, command.related_request_id)
        is_typed = type(params) in method.params_structs
        if not (is_typed or params is None or isinstance(params, OBJECTS)):
            got = safe_repr(params)
            raise LocalProtocolError(f"{name}: expected an object as params, got {got}")
        request = OutboundRequest(
            method, revision, command.progress, timeout, reads_result=command.reads_result
        )
        if limit is not None:
            request.deadline = request.limit = now + limit
        if timeout is not None:
            request.extend(now)
        added = state.request_meta(revision, command.meta)
        identifier = state.outbound.add(request)
        try:
            if command.progress:
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
        related = command.related_request_id
        return (OutgoingMessage(data, "request", identifier, name, revision, related, params),)

    def _respond(self, command: SendResponse) -> Sequence[OutgoingMessage]:
        state, identifier = self.state, command.id
        request = state.inbound.get(identifier)
        if request is None:
            return ()
        data = self._encode_result(identifier, command.result, request)
        del state.inbound[identifier]
        if state.session is not None:
            if request.method.name == SUBSCRIBE:
                state.session.subscriptions.add(request.params.uri)
            elif request.method.name == UNSUBSCRIBE:
                state.session.subscriptions.discard(request.params.uri)
        return (OutgoingMessage(data, "response", identifier, "", request.revision, identifier),)

    _encode_result: ClassVar[Callable[..., bytes]] = staticmethod(encode_response)

    def _fail(self, command: SendError) -> Sequence[OutgoingMessage]:
        request = self.state.inbound.get(command.id)
        if request is None:
            return ()
        message = error_response(command.id, command.error, request.revision)
        del self.state.inbound[command.id]
        return (message,)

    def _cancel(self, command: CancelRequest) -> Sequence[OutgoingMessage]:
        request = self.state.outbound.pop(command.id)
        if request is None or not request.method.facts.cancellable:
            return ()
        revision = request.revision
        if command.stream_closed and revision.facts.http.cancellation == "close":
            return ()
        if CANCELLED not in revision.notifications_from(self.state.role):  # as in some drafts
            return ()
        params: dict[str, Any] = {"requestId": command.id}
        if command.reason is not None:
            params["reason"] = command.reason
        return (cancellation(revision, params),)

    def _progress(self, command: ReportProgress) -> Sequence[OutgoingMessage]:
        request, value = self.state.inbound.get(command.id), command.progress
        if request is None or request.progress_token is None:
            return ()
        is_finite = isinstance(value, float) and math.isfinite(value)
        if not (is_finite or isinstance(value, int)):
            raise LocalProtocolError(f"progress: expected a finite number, got {safe_repr(value)}")
        if not request.advance(value):
            return ()
        params: dict[str, Any] = {PROGRESS_TOKEN: request.progress_token, "progress": value}
        if command.total is not None:
            params["total"] = command.total
        if command.message is not None:
            params["message"] = command.message
        return (notification(self.state.role, request.revision, PROGRESS, params, command.id),)

    def _log(self, command: SendLog) -> Sequence[OutgoingMessage]:
        state, identifier, level = self.state, command.id, command.level
        request = None if identifier is None else state.inbound.get(identifier)
        revision = request.revision if request is not None else state.revision
        if not is_log_level(level, revision):
            raise LocalProtocolError(
                f"log level: expected one of {', '.join(LOG_LEVELS)}, got {safe_repr(level)}"
            )
        if request is None and (identifier is not None or state.session is None):
            return ()
        if not is_declared(state.own_capabilities(revision), ("logging",)):
            return ()
        if not state.wants_log(level, revision, request):
            return ()
        params: dict[str, Any] = {"level": level, "data": command.data}
        if command.logger is not None:
            params["logger"] = command.logger
        if command.meta:
            params["_meta"] = command.meta
        return (notification(state.role, revision, MESSAGE, params, identifier),)

    def _notify(self, command: SendNotification) -> Sequence[OutgoingMessage]:
        name, wire, state = command.name, dict(command.params or {}), self.state
        revisions = state.candidate_revisions()
        defined = any(name in revision.notifications_from(state.role) for revision in revisions)
        if not defined and name not in state.extensions:
            raise MethodNotFoundError(name)
        if name == CANCELLED:
            raise LocalProtocolError(f"{name}: is sent by giving up the request itself")
        if name == PROGRESS:
            return self._notify_progress(wire)
        return self._notifications(name, wire, command.related_request_id)

    def _notifications(
        self, name: str, wire: Mapping[str, Any], related_request_id: RequestId | None
    ) -> Sequence[OutgoingMessage]:
        state, session = self.state, self.state.session
        if session is None or not state.session_wants(session, name):
            return ()
        return (notification(state.role, session.revision, name, wire),)

    def _notify_progress(self, params: Mapping[str, Any]) -> Sequence[OutgoingMessage]:
        token = params.get(PROGRESS_TOKEN)
        for identifier, request in self.state.inbound.items():
            own = request.progress_token
            if own == token and type(own) is type(token):
                total, text = params.get("total"), params.get("message")
                return self._progress(ReportProgress(identifier, params["progress"], total, text))
        return ()

    def _close_streams(self, _: CloseStreams) -> Sequence[OutgoingMessage]:
        return ()

    _SENDERS: ClassVar[Mapping[type, Callable[[Any, Any], Sequence[OutgoingMessage]]]] = {
        SendResponse: _respond,
        SendError: _fail,
        CancelRequest: _cancel,
        ReportProgress: _progress,
        SendLog: _log,
        SendNotification: _notify,
        CloseStreams: _close_streams,
    }

    # Requests of the peer.

    def _refuse(self, message: jsonrpc.Request, error: ProtocolError) -> Event:
        try:
            revision = self._read_metadata(message)[1].revision
        except (ProtocolError, RecursionError):
            revision = self._session_revision()
        return Send(error_response(message.id, error, revision))

    def _read_metadata(self, message: jsonrpc.Request) -> tuple[Mapping[str, Any], RequestMetadata]:
        """The `_meta` of a request, and its metadata; refuses what is not allowed now."""
        return read_meta(message.params), self._session_metadata(message.method)

    def _session_metadata(self, method: str) -> RequestMetadata:
        """The metadata of the session, for a request that states none itself."""
        session = self.state.session
        if session is None:
            return RequestMetadata(self._session_revision(), NO_META, None, None)
        return session.metadata

    def _session_revision(self) -> Revision:
        """The agreed revision; before that, the newest revision with a handshake."""
        session = self.state.session
        return self._first_revision() if session is None else session.revision

    def _first_revision(self) -> Revision:
        """The newest revision with a handshake, or the newest of all if none has one."""
        return (self._handshakes or self.state.revisions).newest()

    def _decode_request(
        self, message: jsonrpc.Request, meta: Mapping[str, Any], stated: RequestMetadata
    ) -> RequestReceived:
        """Decode the params of a request by its row in the method table."""
        session, revision, name = self.state.session, stated.revision, message.method
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
        method = self.state.inbound_method(revision, name)
        if method is None or not method.capability:
            return method
        own = self.state.own_capabilities(revision)
        return method if is_declared(own, method.capability) else None

    def _undeclared_error(self, revision: Revision, name: str) -> MethodNotFoundError:
        method, session = self.state.inbound_method(revision, name), self.state.session
        if method and session and session.lacks and needs_session(method.capability):
            return MethodNotFoundError(name, f"{name}: needs {session.lacks}")
        return MethodNotFoundError(name)

    def _answer(self, event: RequestReceived, result: Any = None) -> list[Event]:
        try:
            return [Send(message) for message in self._respond(SendResponse(event.id, result))]
        except ProtocolError as error:
            revision = self.state.inbound.pop(event.id).revision
            return [Send(error_response(event.id, error, revision))]

    _own_handlers: Mapping[str, OwnHandler] = {PING: _answer}
    """Handlers of requests that are not for the application, by wire name."""

    def _drop(self, identifier: RequestId) -> None:
        """Remove an inbound request, which gets no response."""
        del self.state.inbound[identifier]

    # Notifications of the peer.

    def _receive_notification(self, message: jsonrpc.Notification, now: float) -> list[Event]:
        revision = self.state.revision
        if not self._is_in_turn(message.method):
            return [Ignored(f"{safe_text(message.method)}: not expected now")]
        method = self._notification_method(message.method)
        if method is None:
            return [Ignored(f"unknown notification {safe_text(message.method)}")]
        try:
            meta = read_meta(message.params)
            params = decode_params(method, message.params)
        except ProtocolError as error:
            place = f"{message.method}: "
            return [Ignored(place + error.message.removeprefix(place))]
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

    def _notification_method(self, name: str) -> Method | None:
        for revision in self.state.candidate_revisions():
            method = revision.notifications_from(self.state.peer_role).get(name)
            if method is not None:
                return method
        return self.state.extensions.get(name)

    def _handle_notification(self, event: NotificationReceived) -> list[Event]:
        """Handle a notification that is for the connection itself; pass on any other."""
        return self._handle_cancelled(event) if event.method.name == CANCELLED else [event]

    def _handle_cancelled(self, event: NotificationReceived) -> list[Event]:
        identifier = event.params.request_id
        if identifier not in self.state.inbound:
            return [Ignored(f"cancelled: {safe_repr(identifier)} is no open request")]
        self._drop(identifier)
        return [CancelReceived(identifier, event.params.reason)]

    def _handle_progress(self, event: NotificationReceived, now: float) -> list[Event]:
        params = event.params
        request = self.state.outbound.get(params.progress_token)
        if request is None or not request.wants_progress:
            if event.revision.facts.meta.related_task in event.meta:
                return [event]  # of a task, whose request was answered
            token = safe_repr(params.progress_token)
            return [Ignored(f"progress for {token}, which nobody asked for")]
        request.extend(now)
        message = getattr(params, "message", None)
        return [ProgressReceived(params.progress_token, params.progress, params.total, message)]

    # Responses to requests of this side.

    def _receive_result(self, message: jsonrpc.Result) -> list[Event]:
        outbound = self.state.outbound
        request = outbound.pop(message.id)
        if request is None:
            outbound.has_strays = True
            return self._receive_stray(message.id, f"result for {safe_repr(message.id)}")
        if not request.reads_result:
            return [ResponseReceived(message.id, None, message.result)]
        try:
            result = self.state.result_decoder(request.method)(message.result)
            check_result_type(request, result)
        except UNREADABLE as error:
            failure = RemoteProtocolError(f"{request.method.name}: result: {error_text(error)}")
            return [RequestFailed(message.id, failure)]
        except RemoteProtocolError as failure:
            return [RequestFailed(message.id, failure)]
        return [ResponseReceived(message.id, result, message.result)]

    def _receive_failure(self, message: jsonrpc.Failure) -> list[Event]:
        request = None if message.id is None else self.state.outbound.pop(message.id)
        if request is None or message.id is None:
            subject = "the connection" if message.id is None else safe_repr(message.id)
            text = f"error {message.code} about {subject}: {safe_text(message.message)}"
            return self._receive_stray(message.id, text)
        error = RemoteError(message.code, message.message, message.data, request.method.name)
        return [RequestFailed(message.id, error)]

    def _lose_request(self, identifier: RequestId, error: McpError) -> list[Event]:
        """The events of a request of this side that gets no response."""
        if self.state.outbound.pop(identifier) is None:
            return [Ignored(f"{safe_repr(identifier)}, which is no open request: {error}")]
        return [RequestFailed(identifier, error)]

    def _receive_stray(self, identifier: RequestId | None, what: str) -> list[Event]:
        """Receive a response that belongs to no open request."""
        outbound = self.state.outbound
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
        ids = self.state.outbound.awaited()
        return [UnmatchedResponse(reason, ids) if ids else Ignored(reason)]

    def _receive_invalid(self, message: jsonrpc.InvalidMessage) -> list[Event]:
        events: list[Event] = [Ignored(message.error.message)]
        if message.response and message.id is not None:
            request = self.state.outbound.pop(message.id)
            if request is not None:
                failure = RemoteProtocolError(f"{request.method.name}: {message.error.message}")
                return [RequestFailed(message.id, failure)]
        if message.response and (message.id is None or not message.answerable):
            events = self._receive_stray(message.id, message.error.message)
        if message.answerable and not self._is_noise(message):
            refusal = Send(error_response(message.id, message.error, self.state.revision))
            events = [*(each for each in events if not isinstance(each, Ignored)), refusal]
        return events

    def _is_noise(self, message: jsonrpc.InvalidMessage) -> bool:
        """Whether an invalid message is dropped without a response."""
        return False
