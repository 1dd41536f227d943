"""The receiving half of a connection: a message in, events out.

Every kind of message has one function, and so has every request and notification that the
connection handles itself. Whatever a peer sends, nothing raises: it is
answered with an error, ignored, or fails the one call it belongs to.

Source: basic/index, basic/lifecycle, basic/versioning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec import Raw

from .._wire import UNREADABLE, error_text, members_of, to_builtins
from ..channel import RequestId
from ..errors import (
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
    RequestCancelledError,
)
from ..facts import Lifecycle, Method, Revision
from ..foreign_text import safe_repr, safe_text
from . import jsonrpc
from .events import (
    CancelReceived,
    Event,
    Ignored,
    NotificationReceived,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
)
from .lenient import extra_result_decoder, result_decoder
from .lifecycle import (
    INITIALIZE,
    SERVER_MOVES,
    RequestMetadata,
    Session,
    State,
    Trigger,
    declared,
    trigger_of,
)
from .notifications import PROGRESS, Notifier
from .request_meta import Shared, read_meta
from .requests import Call, InboundRequest, token_of
from .sender import Sender, refusal
from .state import ConnectionState
from .subscriptions import ACKNOWLEDGED, check_room, honoured

_E = TypeVar("_E")
_Own: TypeAlias = Callable[[_E], list[Event]]

_EMPTY: Mapping[str, Any] = {}
_SERVER_INFO = "serverInfo"


class Receiver:
    """Turns the peer's messages into events.

    Attributes:
        result_decoder: Makes the decoder for the result of a method.
    """

    def __init__(
        self, state: ConnectionState, sender: Sender, notifier: Notifier, shared: Shared
    ) -> None:
        self._state = state
        self._sender = sender
        self._notifier = notifier
        self._handshakes = state.revisions.of(Lifecycle.HANDSHAKE)
        self._terms = shared.terms
        self.result_decoder = extra_result_decoder if state.extra else result_decoder

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Take one message, or in a revision with batches several."""
        if not jsonrpc.is_batch(data):
            return self.take(jsonrpc.parse(data), now)
        session = self._state.session
        if session is None or not session.revision.batching:
            return self.take(jsonrpc.parse(data), now)
        return self.take_batch(jsonrpc.parse_batch(data), now)

    def take_batch(self, messages: Sequence[jsonrpc.Message], now: float) -> list[Event]:
        """Take the messages of a batch that are sorted already."""
        return [event for each in messages for event in self._take_from_batch(each, now)]

    def _take_from_batch(self, message: jsonrpc.Message, now: float) -> list[Event]:
        """Take one message of a batch, in which none may initialize."""
        if isinstance(message, jsonrpc.Request) and message.method == INITIALIZE:
            error = InvalidRequestError("initialize: expected a message of its own, got a batch")
            return [self._refuse(message.id, error, self._state.revision)]
        return self.take(message, now)

    def unreadable(self, error: ProtocolError) -> list[Event]:
        """A frame that is no message at all."""
        return self._malformed(jsonrpc.InvalidMessage(None, error, True))

    def stream_closed(self, identifier: RequestId) -> list[Event]:
        """The stream of a request was closed by the peer, which may take the request back."""
        serving = self._state.serving.get(identifier)
        if serving is None or serving.revision.facts.http.cancellation != "close":
            return []
        self._drop(identifier)
        return [CancelReceived(identifier, "its stream was closed")]

    def _drop(self, identifier: RequestId) -> None:
        """Forget a request of the peer's that wants no answer any more."""
        del self._state.serving[identifier]
        self._state.streams.close(identifier)

    def take(self, message: jsonrpc.Message, now: float) -> list[Event]:
        """Take one message that is sorted already."""
        match message:
            case jsonrpc.Request():
                return self._request(message)
            case jsonrpc.Result():
                return self._result(message)
            case jsonrpc.Notification():
                return self._notification(message, now)
            case jsonrpc.Failure():
                return self._failure(message)
            case jsonrpc.InvalidMessage():
                return self._malformed(message)

    def _request(self, message: jsonrpc.Request) -> list[Event]:
        revision = self._session_revision()
        if self._state.role == "client" and not revision.server_requests:
            # In this revision a client has nothing to answer: there are no requests to it.
            shown = safe_text(message.method)
            return [Ignored(f"request {shown} from a server of {revision.name}")]
        try:
            if self._state.role == "server":
                meta, stated = self._terms.read(message.params)
            else:
                meta, stated = read_meta(message.params), None
            terms = stated or self._session_terms(message.method)
            revision = terms.revision
            if message.id in self._state.serving:
                raise InvalidRequestError(f"id {safe_repr(message.id)} belongs to an open request")
            event = self._typed(message, meta, terms)
        except ProtocolError as error:
            return [self._refuse(message.id, error, revision)]
        except RecursionError as error:
            deep = InvalidRequestError(f"{safe_text(message.method)}: {error_text(error)}")
            return [self._refuse(message.id, deep, revision)]
        own = self._own_request(message.method, revision)
        self._state.serving[message.id] = InboundRequest(
            event.method,
            revision,
            event.params,
            token_of(meta),
            terms.log_level,
            terms.peer_capabilities,
        )
        if own is None:
            return [event]
        try:
            return own(event)
        except RecursionError as error:
            self._drop(message.id)
            reason = InvalidParamsError(f"{message.method}: params: {error_text(error)}")
            return [self._refuse(message.id, reason, revision)]

    def _session_terms(self, method: str) -> RequestMetadata:
        """What a request that states nothing itself is judged by."""
        session = self._state.session
        if self._state.role == "server":
            state = State.NEW if session is None else session.state
            trigger = trigger_of(method, request=True)
            move = SERVER_MOVES.get((state, trigger))
            if move is None:
                raise self._out_of_turn(method)
            if trigger is Trigger.INITIALIZE:
                # It is read as the first one was; a session stays as it is if it is refused.
                return RequestMetadata(self._first_revision(), _EMPTY, None, None)
            if session is not None:
                session.state = move
        if session is None:
            return RequestMetadata(self._session_revision(), _EMPTY, None, None)
        return RequestMetadata(session.revision, session.peer_capabilities, session.peer_info, None)

    def _out_of_turn(self, method: str) -> ProtocolError:
        method = safe_text(method)
        if modern := ", ".join(self._terms.supported):
            return InvalidParamsError(
                f"{method}: expected initialize first, or params._meta that names one of {modern}"
            )
        return InvalidRequestError(f"expected initialize first, got {method}")

    def _session_revision(self) -> Revision:
        """What is agreed; before that, the newest revision with a handshake."""
        session = self._state.session
        return self._first_revision() if session is None else session.revision

    def _first_revision(self) -> Revision:
        """The newest revision with a handshake, or without one if there is no other."""
        return (self._handshakes or self._state.revisions).newest()

    def _typed(
        self, message: jsonrpc.Request, meta: Mapping[str, Any], terms: RequestMetadata
    ) -> RequestReceived:
        """The request with its params decoded by its row in the table.

        Raises:
            MethodNotFoundError: No such request, or its capability was not declared.
            InvalidParamsError: The params do not fit.
        """
        revision = terms.revision
        method = self._state.incoming_request(revision, message.method)
        if method is None:
            raise MethodNotFoundError(message.method)
        if method.capability:
            own = self._state.own_capabilities(revision)
            if not declared(own, method.capability):
                raise MethodNotFoundError(message.method)
        params = _decode_params(method, message.params)
        check_room(method, params, revision, self._state.session, self._state.streams)
        return RequestReceived(
            message.id,
            method,
            params,
            message.params,
            meta,
            revision,
            terms.peer_info,
            terms.peer_capabilities,
        )

    def _notification(self, message: jsonrpc.Notification, now: float) -> list[Event]:
        revision = self._state.revision
        if self._state.role == "server" and not self._in_turn(message.method):
            return [Ignored(f"{safe_text(message.method)}: not expected now")]
        method = self._incoming_notification(message.method)
        if method is None:
            return [Ignored(f"unknown notification {safe_text(message.method)}")]
        try:
            meta = read_meta(message.params)
            params = _decode_params(method, message.params)
        except ProtocolError as error:
            return [Ignored(f"{message.method}: {error.message}")]
        stream = meta.get(revision.facts.meta.subscription_id or "")
        if stream is not None and self._state.role == "client" and not self._listens(stream):
            return [Ignored(f"{message.method}: {safe_repr(stream)} is no open subscription")]
        event = NotificationReceived(method, params, message.params, meta, revision, stream)
        if message.method == PROGRESS:
            return self._progressed(event, now)
        own = self._own_notification(message.method)
        return [event] if own is None else own(event)

    def _in_turn(self, name: str) -> bool:
        """Whether a client's notification may come now; it may move the handshake on."""
        session = self._state.session
        if session is None:
            return bool(self._terms.supported)  # no handshake precedes those of per-request clients
        move = SERVER_MOVES.get((session.state, trigger_of(name, request=False)))
        if move is not None:
            session.state = move
        return move is not None

    def _incoming_notification(self, name: str) -> Method | None:
        for revision in self._state.spoken():
            method = revision.notifications_from(self._state.peer_role).get(name)
            if method is not None:
                return method
        return self._state.extensions.get(name)

    def _result(self, message: jsonrpc.Result) -> list[Event]:
        call = self._state.calls.pop(message.id)
        if call is None:
            return [Ignored(f"result for {safe_repr(message.id)}, which is no open request")]
        try:
            result = self.result_decoder(call.method)(message.result)
            _check_result_type(call, result)
        except UNREADABLE as error:
            failure = RemoteProtocolError(f"{call.method.name}: result: {error_text(error)}")
            return [RequestFailed(message.id, failure)]
        except RemoteProtocolError as failure:
            return [RequestFailed(message.id, failure)]
        return [ResponseReceived(message.id, result, message.result)]

    def _failure(self, message: jsonrpc.Failure) -> list[Event]:
        call = None if message.id is None else self._state.calls.pop(message.id)
        if call is None or message.id is None:
            what = "the connection" if message.id is None else safe_repr(message.id)
            said = safe_text(message.message)
            return [Ignored(f"error {message.code} about {what}: {said}")]
        error = RemoteError(message.code, message.message, message.data, call.method.name)
        return [RequestFailed(message.id, error)]

    def _malformed(self, message: jsonrpc.InvalidMessage) -> list[Event]:
        if message.response and message.id is not None:
            call = self._state.calls.pop(message.id)
            if call is not None:
                failure = RemoteProtocolError(f"{call.method.name}: {message.error.message}")
                return [RequestFailed(message.id, failure)]
        if not message.answerable or (self._state.role == "client" and self._is_noise(message)):
            return [Ignored(message.error.message)]
        return [self._refuse(message.id, message.error, self._state.revision)]

    def _is_noise(self, message: jsonrpc.InvalidMessage) -> bool:
        """Whether a client is silent about it: a server may print, line after line."""
        return message.id is None or not self._session_revision().server_requests

    def _refuse(
        self, identifier: RequestId | None, error: ProtocolError, revision: Revision
    ) -> Send:
        return Send(refusal(identifier, error, revision), identifier)

    def _answer(self, event: RequestReceived, result: Any = None) -> list[Event]:
        try:
            message = self._sender.respond(event.id, result)
        except ProtocolError as error:
            message = self._sender.fail(event.id, error)
        return [] if message is None else [Send(message, event.id)]

    def _initialize(self, event: RequestReceived) -> list[Event]:
        """Agree with a client, also with one that shares the connection or initializes again.

        What is agreed holds for the requests that follow. Requests that are being served keep
        what they came with, and subscriptions and the log level stay.
        """
        params = event.params
        known = params.protocol_version in self._handshakes
        revision = self._handshakes[params.protocol_version] if known else self._handshakes.newest()
        own = self._state.describe(revision)
        session = Session(
            revision=revision,
            own_capabilities=own.capabilities,
            peer_capabilities=to_builtins(params.capabilities),
            peer_info=to_builtins(params.client_info),
            state=SERVER_MOVES[State.NEW, Trigger.INITIALIZE],
        )
        if (previous := self._state.session) is not None:
            session.log_level = previous.log_level
            session.subscriptions = previous.subscriptions
        self._state.session = session
        self._state.serving[event.id].revision = revision
        self._state.serving[event.id].method = revision.client_requests[INITIALIZE]
        result: dict[str, Any] = {
            "protocolVersion": revision.name,
            "capabilities": own.capabilities,
            _SERVER_INFO: own.info,
        }
        if own.instructions is not None:
            result["instructions"] = own.instructions
        return self._answer(event, result)

    def _discover(self, event: RequestReceived) -> list[Event]:
        own = self._state.describe(event.revision)
        result: dict[str, Any] = {
            **(own.cache or _EMPTY),
            "supportedVersions": self._terms.supported,
            "capabilities": own.capabilities,
        }
        discover = event.revision.client_requests["server/discover"]
        if _SERVER_INFO in members_of(discover.result):  # elsewhere it is in `_meta`
            result[_SERVER_INFO] = own.info
        if own.instructions is not None:
            result["instructions"] = own.instructions
        return self._answer(event, result)

    def _set_level(self, event: RequestReceived) -> list[Event]:
        assert self._state.session is not None
        self._state.session.log_level = event.params.level
        return self._answer(event)

    def _listen(self, event: RequestReceived) -> list[Event]:
        wanted = to_builtins(event.params.notifications)
        agreed = honoured(wanted, self._state.own_capabilities(event.revision), event.revision)
        self._state.streams.open(event.id, agreed, event.revision.facts)
        self._state.serving[event.id].quiet()
        key = event.revision.facts.meta.subscription_id
        params = {"_meta": {key: event.id} if key else {}, "notifications": agreed}
        message = self._notifier.notification(event.revision, ACKNOWLEDGED, params)
        return [Send(message, event.id)]

    def _cancelled(self, event: NotificationReceived) -> list[Event]:
        identifier = event.params.request_id
        if self._state.role == "client" and self._listens(identifier):
            self._state.calls.pop(identifier)
            error = RequestCancelledError("the server ended the subscription")
            return [RequestFailed(identifier, error)]
        serving = self._state.serving.get(identifier)
        if serving is None:
            return [Ignored(f"cancelled: {safe_repr(identifier)} is no open request")]
        self._drop(identifier)
        return [CancelReceived(identifier, event.params.reason)]

    def _listens(self, identifier: Any) -> bool:
        """Whether an id is that of a subscription of ours; `True` and `1.0` are not `1`."""
        call = self._state.calls.get(identifier) if type(identifier) in (int, str) else None
        return call is not None and call.method.name == call.revision.facts.behaviour.listen

    def _initialized(self, event: NotificationReceived) -> list[Event]:
        session = self._state.session
        if session is None or session.confirmed:
            return [Ignored("the handshake was confirmed already")]
        session.confirmed = True
        return [event]

    def _progressed(self, event: NotificationReceived, now: float) -> list[Event]:
        params = event.params
        call = self._state.calls.get(params.progress_token)
        if call is None or not call.wants_progress:
            token = safe_repr(params.progress_token)
            return [Ignored(f"progress for {token}, which nobody asked for")]
        call.extend(now)
        message = getattr(params, "message", None)
        return [ProgressReceived(params.progress_token, params.progress, params.total, message)]

    def _own_request(self, name: str, revision: Revision) -> _Own[RequestReceived] | None:
        """What handles a request that no user has to; nothing if a user has."""
        match name:
            case "ping":
                return self._answer
            case _ if self._state.role == "client":
                return None
            case "initialize":
                return self._initialize
            case "server/discover":
                return self._discover
            case "logging/setLevel":
                return self._set_level
            case _ if name == revision.facts.behaviour.listen:
                return self._listen
            case _:
                return None

    def _own_notification(self, name: str) -> _Own[NotificationReceived] | None:
        """The same for a notification."""
        match name:
            case "notifications/cancelled":
                return self._cancelled
            case "notifications/initialized":
                return self._initialized
            case _:
                return None


def _decode_params(method: Method, params: Raw | None) -> Any:
    """Typed params; those that are absent, though they may be, decode like `{}`."""
    if params is None and method.params_required:
        raise InvalidParamsError(f"{method.name}: expected params, got nothing")
    if method.params is None:
        return None
    try:
        return method.decode_params(b"{}" if params is None else params)
    except UNREADABLE as error:
        if params is not None and bytes(params) == b"null":
            return _decode_params(method, None)
        raise InvalidParamsError(f"{method.name}: params: {error_text(error)}") from None


def _check_result_type(call: Call, result: Any) -> None:
    """Refuse a result of a kind that this side does not understand."""
    known = call.revision.result_types
    if known and (got := getattr(result, "result_type", None)) not in known:
        expected = ", ".join(sorted(known))
        raise RemoteProtocolError(
            f"{call.method.name}: resultType: expected one of {expected}, got {safe_repr(got)}"
        )
