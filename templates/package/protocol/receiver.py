"""The receiving half of a connection: a message in, events out.

Each kind of message has one function. None raises on a malformed message, which gets an error
response, is ignored, or fails the request that it belongs to. Clients and servers override some
functions, in `client_connection`, `handshake` and `server_connection`.

Source: basic/index, basic/lifecycle, basic/versioning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from .._wire import UNREADABLE, decoder, error_text
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    InvalidParamsError,
    InvalidRequestError,
    McpError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
)
from ..facts import Lifecycle, Method, Revision
from ..foreign_text import safe_repr, safe_text
from . import jsonrpc
from .jsonrpc import read_id
from .lifecycle import Description, RequestMetadata, is_declared, needs_session
from .request_meta import NO_META, read_meta
from .requests import (
    CANCELLED,
    PROGRESS,
    PROGRESS_TOKEN,
    ConnectionState,
    InboundRequest,
    OutboundRequest,
    error_response,
    success_response,
)
from .states import INITIALIZE, PING, State


class Send(msgspec.Struct, frozen=True):
    """The connection has a message of its own to send.

    Attributes:
        message: The message.
        opens: Whether the message is part of opening the session. If it can't be sent, call
            `ClientConnection.opening_refused`.
    """

    message: OutgoingMessage
    opens: bool = False


class RequestReceived(msgspec.Struct, frozen=True):
    """A request of the peer: call `respond` or `fail` once, unless the request is cancelled.

    Attributes:
        id: The request's id.
        method: Its row in the method table.
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
    """A notification that the connection does not handle itself.

    Attributes:
        method: Its row in the method table.
        params: Typed params, or `None`.
        raw_params: The params as received.
        meta: `_meta` of the notification, empty if absent.
        revision: The revision that applies.
        subscription: Id of the subscription that the notification names, if it names one.
    """

    method: Method
    params: Any
    raw_params: Raw | None
    meta: Mapping[str, Any]
    revision: Revision
    subscription: RequestId | None = None


class ResponseReceived(msgspec.Struct, frozen=True):
    """A request of this side succeeded.

    Attributes:
        id: The request's id.
        result: Typed result; `None` if the request does not read its result.
        raw: The result as received.
    """

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
    """A message that may be the response to any open request of this side.

    Attributes:
        reason: What is wrong with it.
        ids: The requests of this side whose response it may be.
    """

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

_MOST_ADMITTED = 200  # a proxy admits custom methods under any name


class Receiver:
    """The receiving half of a `Connection`: turns the peer's messages into events."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._handshakes = state.revisions.of(Lifecycle.HANDSHAKE)
        self._described: Description | None = None
        self._rows: dict[str, Method] = {}

    def result_decoder(self, method: Method) -> Callable[[bytes | Raw], Any]:
        """The decoder for results of a method."""
        return decoder(method.result)

    def receive(self, data: bytes, now: float = 0.0) -> list[Event]:
        """Receive one message, or a batch of messages in a revision with batches.

        Args:
            data: The whole message, without frame.
            now: The current time, on the clock that `Connection.request` was given.

        Returns:
            The events, in order. Never raises on what the peer sent.
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
        if batching:
            return self.receive_batch(messages, now)
        return self.receive_message(messages[0], now)

    def receive_batch(self, messages: Sequence[jsonrpc.Message], now: float = 0.0) -> list[Event]:
        """Receive the parsed messages of a batch."""
        return [event for each in messages for event in self._receive_from_batch(each, now)]

    def _receive_from_batch(self, message: jsonrpc.Message, now: float) -> list[Event]:
        """Receive one message of a batch, in which `initialize` is not allowed."""
        if isinstance(message, jsonrpc.Request) and message.method == INITIALIZE:
            error = InvalidRequestError("initialize: expected a message of its own, got a batch")
            return [self._refuse(message.id, error, self._state.revision)]
        return self.receive_message(message, now)

    def unreadable(self, error: ProtocolError) -> list[Event]:
        """Receive a frame that could not be read as a message."""
        return self._receive_invalid(jsonrpc.InvalidMessage(None, error, True, response=True))

    def stream_closed(self, identifier: RequestId) -> list[Event]:
        """The peer closed the stream for the response to its request.

        Returns:
            The cancellation, in revisions where closing the stream cancels the request.

        Source: basic/transports/streamable-http#cancellation (2026-07-28).
        """
        request = self._state.inbound.get(identifier)
        if request is None or request.revision.facts.http.cancellation != "close":
            return []
        self._drop(identifier)
        return [CancelReceived(identifier, "its stream was closed")]

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
        try:
            return self._handle_request(event)
        except RecursionError as error:
            self._drop(event.id)
            reason = InvalidParamsError(f"{event.method.name}: params: {error_text(error)}")
            return [self._refuse(event.id, reason, event.revision)]
        except ProtocolError as error:
            self._drop(event.id)
            return [self._refuse(event.id, error, event.revision)]

    def refuse(self, message: jsonrpc.Request, error: ProtocolError) -> Send:
        """The refusal of a request that `read_request` refused."""
        return self._refuse(message.id, error, self._refusing_revision(message))

    def _refusing_revision(self, message: jsonrpc.Request) -> Revision:
        """The revision of the refusal: that of the request, as far as it can be told."""
        try:
            return self._read_metadata(message)[1].revision
        except (ProtocolError, RecursionError):
            return self._session_revision()

    def _handle_request(self, event: RequestReceived) -> list[Event]:
        """Respond to a request that the connection handles itself; pass on any other."""
        return self._answer(event) if event.method.name == PING else [event]

    def _read_metadata(self, message: jsonrpc.Request) -> tuple[Mapping[str, Any], RequestMetadata]:
        """The `_meta` of a request, and its metadata.

        Raises:
            ProtocolError: `_meta` is malformed, or the request is not allowed now.
        """
        return read_meta(message.params), self._session_metadata(message.method)

    def _session_metadata(self, method: str) -> RequestMetadata:
        """The metadata of the session, for a request that states none itself."""
        session = self._state.session
        if session is None:
            return RequestMetadata(self._session_revision(), NO_META, None, None)
        return session.metadata

    def register(self, event: RequestReceived, stated: RequestMetadata) -> None:
        """Add a request of the peer to the open requests.

        Args:
            event: The request.
            stated: Its metadata.
        """
        token = event.meta.get(PROGRESS_TOKEN)
        self._state.inbound[event.id] = InboundRequest(
            event.method,
            event.revision,
            event.params,
            None if token is None else read_id(token),
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
        self,
        message: jsonrpc.Request,
        meta: Mapping[str, Any],
        stated: RequestMetadata,
    ) -> RequestReceived:
        """Decode the params of a request by its row in the method table.

        Args:
            message: The request.
            meta: Its `_meta`.
            stated: Its metadata.

        Raises:
            MethodNotFoundError: Unknown request, or its capability was not declared.
            InvalidParamsError: The params do not fit the method.
        """
        state, session, revision = self._state, self._state.session, stated.revision
        in_session = False
        if session is not None and stated is session.metadata:
            in_session, method = True, session.admitted.get(message.method)
        else:
            method = self._declared_row(revision, message.method)
        if method is None:
            method = state.inbound_method(revision, message.method)
            if method is None or not self._has_declared(method, revision):
                text = ""
                if method and session and session.lacks and needs_session(method.capability):
                    text = f"{method.name}: needs {session.lacks}"
                raise MethodNotFoundError(message.method, text)
            has_room = session is not None and len(session.admitted) < _MOST_ADMITTED
            if session and in_session and session.state is State.READY and has_room:
                session.admitted[message.method] = method
        return RequestReceived(
            message.id,
            method,
            _decode_params(method, message.params),
            message.params,
            meta,
            revision,
            stated.peer_info,
            stated.peer_capabilities,
        )

    def _declared_row(self, revision: Revision, name: str) -> Method | None:
        """The row of a request that was declared before, in this description; else `None`."""
        description = self._state.describe(revision)
        if description is not self._described:
            self._described, self._rows = description, {}
        method = self._rows.get(name)
        if method is None:
            method = self._state.inbound_method(revision, name)
            if method is None or not self._has_declared(method, revision):
                return None
            if len(self._rows) < _MOST_ADMITTED:
                self._rows[name] = method
        return method

    def _has_declared(self, method: Method, revision: Revision) -> bool:
        """Whether this side declared the capability that a received request belongs to."""
        path = method.capability
        return not path or is_declared(self._state.own_capabilities(revision), path)

    def _receive_notification(self, message: jsonrpc.Notification, now: float) -> list[Event]:
        revision = self._state.revision
        if not self._is_in_turn(message.method):
            return [Ignored(f"{safe_text(message.method)}: not expected now")]
        method = self._notification_method(message.method)
        if method is None:
            return [Ignored(f"unknown notification {safe_text(message.method)}")]
        try:
            meta = read_meta(message.params)
            params = _decode_params(method, message.params)
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
        """Whether a notification may belong to a subscription stream of an id."""
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
            _check_result_type(request, result)
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
            refusal = self._refuse(message.id, message.error, self._state.revision)
            events = [*(each for each in events if not isinstance(each, Ignored)), refusal]
        return events

    def _is_noise(self, message: jsonrpc.InvalidMessage) -> bool:
        """Whether an invalid message is dropped without a response."""
        return False

    def _refuse(
        self, identifier: RequestId | None, error: ProtocolError, revision: Revision
    ) -> Send:
        return Send(error_response(identifier, error, revision))

    def _answer(self, event: RequestReceived, result: Any = None) -> list[Event]:
        message: OutgoingMessage | None
        try:
            message = success_response(self._state, event.id, result)
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


def _decode_params(method: Method, params: Raw | None) -> Any:
    """Decode params; absent optional params decode like `{}`."""
    if params is None and method.params_required:
        raise InvalidParamsError(f"{method.name}: expected params, got nothing")
    if method.params is None:
        return None
    try:
        return method.decode_params(b"{}" if params is None else params)
    except UNREADABLE as error:
        raise InvalidParamsError(f"{method.name}: params: {error_text(error)}") from None


def _check_result_type(request: OutboundRequest, result: Any) -> None:
    """Check that `resultType` has a value that this side supports, or is absent.

    A draft may have results without this member.
    """
    known = () if request.method.result is Any else request.revision.result_types
    got = getattr(result, "result_type", None)
    if known and got is not None and got not in known:
        added = request.method.facts.extension_results
        if added and any(base.__name__ in added for base in type(result).__mro__):
            return
        expected = ", ".join(sorted(known))
        raise RemoteProtocolError(
            f"{request.method.name}: resultType: expected one of {expected}, got {safe_repr(got)}"
        )
