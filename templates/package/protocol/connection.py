"""One connection without its I/O: received bytes become events, calls become messages to send.

`Connection` correlates, checks and refuses; it opens nothing, waits for nothing and reads no clock
(the caller passes the time). Each message is read by the revision that applies: within a session
the agreed one, otherwise the one that the request's own `_meta` states. Revisions are tables; a
message that they do not contain is refused or ignored.

    received bytes --> Receiver           --> events            both work on one ConnectionState;
    calls          --> Connection         --> OutgoingMessage   a client adds VersionNegotiation
                                                                until the session is open

Source: basic/index, basic/lifecycle, basic/versioning; basic/utilities or basic/patterns
(cancellation, progress), server/utilities/logging.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Raw, UnsetType

from .._wire import UNWRITABLE, ValidationError, convert, error_text
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    LocalProtocolError,
    McpError,
    MethodNotFoundError,
    ProtocolError,
    RemoteProtocolError,
    TransportError,
)
from ..facts import Method, Revision, Revisions, Role
from ..foreign_text import safe_repr, safe_text
from . import jsonrpc
from .jsonrpc import Message
from .lifecycle import (
    INITIALIZE,
    INITIALIZED,
    Description,
    RequestMetadata,
    Session,
    declared,
)
from .negotiation import Step, VersionNegotiation, with_extensions
from .notifications import (
    CANCELLED,
    LOG_LEVELS,
    MESSAGE,
    PROGRESS,
    RESOURCE_UPDATED,
    cancellation,
    is_log_level,
    notification,
)
from .receiver import (
    Event,
    Ignored,
    Opened,
    OpenFailed,
    Receiver,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
)
from .request_meta import NO_META, MetaCache, with_meta
from .requests import (
    OBJECTS,
    PROGRESS_TOKEN,
    Admit,
    ConnectionState,
    OnSubscription,
    OutboundRequest,
    check_params,
    check_required_capabilities,
    error_response,
    success_response,
)


class Connection:
    """The protocol of one side of a connection, as client or as server.

    Args:
        role: The role of this side.
        revisions: The revisions to speak.
        describe: This side's implementation info and capabilities, by revision.
        extensions: Methods besides those of the revisions, by wire name; both sides may send them.
        meta_cache: `_meta` shared with other connections of the same side; a new cache by default.
        extra: Whether the objects of results keep the members that their schemas do not have.
    """

    def __init__(
        self,
        role: Role,
        revisions: Revisions,
        describe: Callable[[Revision], Description],
        extensions: Mapping[str, Method] | None = None,
        meta_cache: MetaCache | None = None,
        *,
        extra: bool = False,
        admit: Admit | None = None,
        on_subscription: OnSubscription | None = None,
    ) -> None:
        meta = meta_cache or MetaCache(revisions)
        self._state = ConnectionState(
            role, revisions, describe, extensions or {}, meta, extra, admit, on_subscription
        )
        self._receiver = Receiver(self._state)
        self._negotiation: VersionNegotiation | None = None
        self._negotiation_id: RequestId | None = None
        self._probe_id: RequestId | None = None
        self._without_probe: Revisions | None = None

    @property
    def role(self) -> Role:
        """The role of this side."""
        return self._state.role

    @property
    def session(self) -> Session | None:
        """What was agreed; `None` before that, and on a server without handshake."""
        return self._state.session

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self._state.revision

    @property
    def probing(self) -> bool:
        """Whether a missing response means an older server: a probe is open, with a fallback."""
        negotiation = self._negotiation
        return (
            negotiation is not None
            and negotiation.step is Step.PROBING
            and negotiation.may_fall_back
        )

    @property
    def without_probe(self) -> Revisions | None:
        """The revisions to offer, without a probe, to a server that is started anew.

        Some servers exit, or stop responding, when another message precedes `initialize`. `None`
        if the probe can't be the cause: none was sent, negotiation has ended, or there is no
        handshake to fall back to.
        """
        return self._without_probe

    @property
    def open_requests(self) -> int:
        """The number of our requests without response."""
        return len(self._state.outbound)

    @property
    def inbound_requests(self) -> tuple[RequestId, ...]:
        """Ids of the peer's requests without response."""
        return tuple(self._state.inbound)

    @property
    def stray_results(self) -> int:
        """Number of results that belonged to no open request of this side."""
        return self._state.outbound.strays

    @property
    def outbound_requests(self) -> tuple[RequestId, ...]:
        """Ids of our requests without response."""
        return self._state.outbound.ids()

    @property
    def next_request_id(self) -> RequestId:
        """The id of the request that is made next."""
        return self._state.outbound.next_id

    def with_same_revision(self) -> Connection:
        """A client's connection without session, that speaks the agreed revision alone."""
        state = self._state
        return Connection("client", state.revisions.only(state.revision.name), state.describe)

    def peer_replaced(self) -> None:
        """Another peer took the place of this one: nothing that it sent is open any more."""
        self._state.inbound.clear()
        self._state.streams.clear()

    def is_subscribed(self, uri: str) -> bool:
        """Whether the peer subscribed to a resource."""
        session = self._state.session
        if session is not None and uri in session.subscriptions:
            return True
        return self.has_subscriber(RESOURCE_UPDATED, {"uri": uri})

    def has_subscriber(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether a subscription stream admits a notification."""
        return next(self._state.streams.subscribed_to(name, params), None) is not None

    @property
    def log_level(self) -> str | None:
        """The level of log messages that requests ask for; `None` if they ask for none."""
        return self._state.log_level

    def ask_for_logs(self, level: str | None) -> None:
        """Ask for log messages from `level` on in each request, where a revision has that."""
        self._state.log_level = level

    def assume_session(self, revision: Revision) -> None:
        """Receive the next message as if its sender had initialized a session in a revision.

        For servers that keep no sessions. What the client declared is not known then, and
        requests to it are refused.
        """
        own = self._state.describe(revision).capabilities
        self._state.session = Session(revision, own, NO_META, stateless=True)

    def check_answerable(self, name: str) -> None:
        """Check that a response of the peer to a request of ours would reach this connection.

        Raises:
            LocalProtocolError: It would not: this server keeps no sessions.
        """
        self._state.check_answerable(name)

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
    ) -> tuple[int, OutgoingMessage]:
        """Begin a request.

        Args:
            name: The method.
            params: Its typed params, or a wire object, or raw JSON, which is sent unchecked; `None`
                for none.
            meta: What the user adds to `_meta`.
            progress: Whether to ask for progress.
            related_request_id: The received request on whose behalf it is made, if any.
            timeout: Seconds until it is lost; progress restarts them.
            limit: Seconds until it is lost despite progress.
            now: The current time, on the caller's clock.
            reads_result: Whether the result is decoded and checked, or only kept as JSON.

        Returns:
            Its id and the message.

        Raises:
            MethodNotFoundError: The agreed revision has no such request for this side.
            MissingCapabilityError: The peer did not declare a required capability.
            LocalProtocolError: The request must not be sent now, `meta` breaks a rule, or the
                params do not fit the revision or have no JSON form.
        """
        state = self._state
        revision, capabilities = state.request_target(name, related_request_id)
        method = state.outbound_method(revision, name)
        if method is None:
            raise MethodNotFoundError(name, f"{revision.name} has no request {safe_text(name)}")
        is_typed = type(params) in method.params_structs
        if not (is_typed or params is None or isinstance(params, OBJECTS)):
            got = safe_repr(params)
            raise LocalProtocolError(f"{name}: expected an object as params, got {got}")
        check_required_capabilities(method, revision, params, capabilities)
        request = OutboundRequest(method, revision, progress, timeout, reads_result=reads_result)
        if limit is not None:
            request.deadline = request.limit = now + limit
        request.extend(now)
        added = state.request_meta(revision, meta)
        identifier = state.outbound.add(request)
        try:
            if progress:
                added = {**added, PROGRESS_TOKEN: identifier}
            encoded = state.meta.encoded(revision, added) if added else None
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
        """Answer a request.

        Args:
            identifier: Its id.
            result: The typed result, or a wire object that is converted (members that the revision
                does not have are dropped); `None` for a result without members.

        Returns:
            The response, or `None` if the request is no longer open.

        Raises:
            InternalError: The result does not fit the method, or has no JSON form; `fail` has to
                follow.
            MissingCapabilityError: An input request requires what the client did not declare.
        """
        return success_response(self._state, identifier, result)

    def fail(self, identifier: RequestId, error: ProtocolError) -> OutgoingMessage | None:
        """Answer a request with an error; `None` if the request is no longer open."""
        request = self._state.inbound.get(identifier)
        if request is None:
            return None
        message = error_response(identifier, error, request.revision)
        del self._state.inbound[identifier]
        return message

    def cancel(self, identifier: RequestId, reason: str | None = None) -> OutgoingMessage | None:
        """Cancel a request of ours.

        Returns:
            The notification to send; `None` if the request is no longer open, or its method or
            revision allows no cancellation.
        """
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
        """Cancel a request of ours whose stream was closed.

        Returns:
            The notification to send; `None` also where closing the stream is the cancellation.

        Source: basic/patterns/cancellation (2026-07-28: transport-specific cancellation).
        """
        request = self._state.outbound.get(identifier)
        if request is not None and request.revision.facts.http.cancellation == "close":
            self._state.outbound.pop(identifier)
            return None
        return self.cancel(identifier)

    def decode_result(self, method: Method, data: bytes) -> Any:
        """The result of a method from JSON, decoded like a result that is received.

        Raises:
            UNREADABLE: The JSON is not a result of the method.
        """
        return self._receiver.result_decoder(method)(data)

    def close_streams(self) -> list[OutgoingMessage]:
        """End all subscription streams from the server's side.

        Each gets its result, which marks a graceful end, and then the cancellation that the page
        on cancellation requires.

        Source: basic/patterns/subscriptions, basic/patterns/cancellation (2026-07-28).
        """
        messages: list[OutgoingMessage] = []
        for identifier in self._state.streams.ids():
            revision = self._state.inbound[identifier].revision
            self._state.streams.close(identifier)
            key = revision.facts.meta.subscription_id
            response = self.respond(identifier, {"_meta": {key: identifier}})
            if response is not None:
                messages.append(response)
            messages.append(cancellation(revision, {"requestId": identifier}, identifier))
        return messages

    def progress(
        self,
        identifier: RequestId,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> OutgoingMessage | None:
        """Report progress of an inbound request.

        Returns:
            The notification; `None` if none is wanted, the request is no longer open, or the value
            is not more than the last.

        Raises:
            LocalProtocolError: The value is no finite number, or another one has the wrong type.
        """
        request = self._state.inbound.get(identifier)
        if request is None or request.progress_token is None:
            return None
        if not _is_finite(progress):
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
        """Send a log message to the client.

        Args:
            identifier: The request it belongs to; `None` for the session as a whole.
            level: One of `LOG_LEVELS`, or another one that the revision has.
            data: Any JSON value.
            logger: Name of its source.
            meta: `_meta` of the notification.

        Returns:
            The notification; `None` if the client does not want the message.

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
        if not declared(self._state.own_capabilities(revision), ("logging",)):
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
        """Send a notification to all who want it.

        A change without declared capability or without subscription gives no message; nor do
        progress and log messages that are not wanted.

        Args:
            name: The notification.
            params: Its params as wire object.
            related_request_id: The received request on whose behalf it is sent, if any.

        Raises:
            MethodNotFoundError: No revision in use has such a notification for this side.
            LocalProtocolError: The params do not fit; the notification is a cancellation, which
                only `cancel` sends; or it needs a request, without sessions.
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
        if name == MESSAGE:
            level, data, logger = wire.get("level", ""), wire.get("data"), wire.get("logger")
            meta = wire.get("_meta", NO_META)
            log = self.log(related_request_id, level, data, logger, meta)
            return [] if log is None else [log]
        messages: list[OutgoingMessage] = []
        for identifier in state.streams.subscribed_to(name, wire):
            revision = state.inbound[identifier].revision
            meta = {**wire.get("_meta", {}), revision.facts.meta.subscription_id: identifier}
            tagged = {**wire, "_meta": meta}
            messages.append(notification(state.role, revision, name, tagged, identifier))
        session = state.session
        if session is not None and state.session_wants(session, name, wire):
            messages.append(notification(state.role, session.revision, name, wire))
        if not messages and state.role == "server":
            return self._notify_in_request(name, wire, related_request_id)
        return messages

    def _notify_in_request(
        self, name: str, wire: Mapping[str, Any], identifier: RequestId | None
    ) -> list[OutgoingMessage]:
        """Send what no subscription is about on the stream of a request, without sessions.

        Raises:
            LocalProtocolError: There is neither a session nor a request that it belongs to.
        """
        state = self._state
        request = None if identifier is None else state.inbound.get(identifier)
        if request is not None:
            if state.goes_with_request(request.revision, name):
                return [notification(state.role, request.revision, name, wire, identifier)]
        elif identifier is None:
            revisions = state.candidate_revisions()
            if all(state.goes_with_request(revision, name) for revision in revisions):
                raise LocalProtocolError(
                    f"{name}: {revisions[0].name} has no sessions: send it while a request is "
                    "served, on its behalf"
                )
        return []

    def open(self) -> OutgoingMessage:
        """Begin a client's session.

        Returns:
            The first message: a probe or `initialize`. `Opened` or `OpenFailed` follows.
        """
        self._negotiation = VersionNegotiation(self._state.revisions, self._state.describe)
        self._without_probe = self._negotiation.without_probe
        return self._next_step(self._negotiation)

    def opening_timed_out(self) -> list[Event]:
        """No response came to the probe that `open` sent: continue without it.

        A late response, from a server that was slow to start, still counts.

        Returns:
            The next message to send, or `OpenFailed`.
        """
        negotiation = self._negotiation
        if negotiation is None or not self.probing:
            return []
        self._probe_id = self._negotiation_id
        return self._step_failed(negotiation, None)

    def opening_refused(self, identifier: RequestId | None, error: McpError) -> list[Event]:
        """The transport could not deliver a message of the negotiation, or it was refused.

        Args:
            identifier: The id of the message; `None` for `notifications/initialized`.
            error: The failure.

        Returns:
            The next message to send, or `OpenFailed`.
        """
        return [OpenFailed(error)] if identifier is None else self.request_lost(identifier, error)

    def receive(self, data: bytes, now: float = 0.0) -> list[Event]:
        """Receive one message.

        Args:
            data: The whole message, without frame.
            now: The current time, on the clock that `request` was given.

        Returns:
            The events, in order. Never raises on what the peer sent.
        """
        events = self._receiver.receive(data, now)
        return events if self._negotiation is None else self._with_negotiation(events)

    def is_open(self, identifier: RequestId) -> bool:
        """Whether a request of the peer with this id has no response yet."""
        return identifier in self._state.inbound

    def register(self, request: RequestReceived, stated: RequestMetadata) -> None:
        """Make a request of the peer, which was read without this connection, an open one."""
        self._receiver.register(request, stated)

    def receive_message(self, message: Message, now: float = 0.0) -> list[Event]:
        """Receive one message that `jsonrpc.parse` returned; see `receive`."""
        events = self._receiver.receive_message(message, now)
        return events if self._negotiation is None else self._with_negotiation(events)

    def receive_batch(self, messages: Sequence[Message], now: float = 0.0) -> list[Event]:
        """Receive the messages that `jsonrpc.parse_batch` returned; see `receive`."""
        return self._with_negotiation(self._receiver.receive_batch(messages, now))

    def unreadable(self, error: ProtocolError) -> list[Event]:
        """Receive a frame that could not be read as a message."""
        return self._receiver.unreadable(error)

    def stream_closed(self, identifier: RequestId) -> list[Event]:
        """The peer closed the stream on which its request was to be answered.

        Returns:
            The cancellation of the request, in revisions where closing means that; else nothing.

        Source: basic/transports/streamable-http#cancellation (2026-07-28).
        """
        return self._receiver.stream_closed(identifier)

    def request_lost(self, identifier: RequestId, error: McpError) -> list[Event]:
        """The transport reports that a request of ours will not be answered, and why."""
        if self._state.outbound.pop(identifier) is None:
            return [Ignored(f"{safe_repr(identifier)}, which is no open request: {error}")]
        return self._with_negotiation([RequestFailed(identifier, error)])

    def closed(self) -> list[RequestId]:
        """The transport ended: no request can be answered any more, in either direction.

        Returns:
            Our requests that stay without response.
        """
        self._state.inbound.clear()
        self._state.streams.clear()
        self._negotiation = self._negotiation_id = None
        return self._state.outbound.drain()

    def deadline(self, identifier: RequestId) -> float | None:
        """The moment at which a request of ours is lost; progress moves it."""
        request = self._state.outbound.get(identifier)
        return None if request is None else request.deadline

    def next_deadline(self) -> float | None:
        """The earliest of all deadlines."""
        return self._state.outbound.next_deadline()

    def expired(self, now: float) -> list[RequestId]:
        """Our requests whose deadline has passed; they stay open until `cancel`."""
        return self._state.outbound.expired(now)

    def _notify_progress(self, params: Mapping[str, Any]) -> list[OutgoingMessage]:
        """Report progress by the token of a request, given as a wire object."""
        token = params.get(PROGRESS_TOKEN)
        for identifier, request in self._state.inbound.items():
            own = request.progress_token
            if own == token and type(own) is type(token):
                report = self.progress(
                    identifier, params["progress"], params.get("total"), params.get("message")
                )
                return [] if report is None else [report]
        return []

    def _next_step(self, negotiation: VersionNegotiation) -> OutgoingMessage:
        """The next request of the negotiation, sent before anything is agreed."""
        state = self._state
        revision, name, params = negotiation.request()
        method = revision.client_requests[name]
        identifier = state.outbound.add(OutboundRequest(method, revision))
        own = state.meta.own("client", revision, state.describe)
        shaped = with_meta(params or None, own, own)
        if name == INITIALIZE:
            shaped = with_extensions(method.params, params)
        if not isinstance(shaped, (UnsetType, Raw)) and method.params is not None:
            shaped = convert(shaped, method.params)
        self._negotiation_id = identifier
        data = jsonrpc.encode_request(identifier, name, shaped)
        return OutgoingMessage(data, "request", identifier, name, revision, None, params)

    def _with_negotiation(self, events: list[Event]) -> list[Event]:
        """The events, with those of the negotiation's own requests handled."""
        if self._negotiation is None:
            return events
        return [after for event in events for after in self._negotiate(self._negotiation, event)]

    def _negotiate(self, negotiation: VersionNegotiation, event: Event) -> list[Event]:
        """Handle an event of the negotiation's own requests; pass on any other."""
        match event:
            case ResponseReceived(id=identifier) if identifier == self._negotiation_id:
                return self._step_answered(negotiation, event)
            case ResponseReceived(id=identifier) if identifier == self._probe_id:
                self._forget(self._negotiation_id)
                negotiation.step = Step.PROBING
                return self._step_answered(negotiation, event)
            case RequestFailed(id=identifier) if identifier == self._negotiation_id:
                return self._step_failed(negotiation, event.error)
            case RequestFailed(id=identifier) if identifier == self._probe_id:
                return [Ignored("the probe was refused, late")]
            case _:
                return [event]

    def _step_answered(
        self, negotiation: VersionNegotiation, event: ResponseReceived
    ) -> list[Event]:
        try:
            session = negotiation.answered(event.result, event.raw)
        except McpError as error:
            return self._give_up(error)
        except RecursionError as error:
            return self._give_up(RemoteProtocolError(f"capabilities: {error_text(error)}"))
        if session is None:
            return [Send(self._next_step(negotiation), opens=True)]
        self._forget(self._probe_id)
        self._negotiation = self._negotiation_id = self._probe_id = self._without_probe = None
        self._state.session = session
        events: list[Event] = []
        if negotiation.shook_hands:
            message = notification(self._state.role, session.revision, INITIALIZED, {})
            events.append(Send(message, opens=True))
        return [*events, Opened(session.revision)]

    def _step_failed(self, negotiation: VersionNegotiation, error: McpError | None) -> list[Event]:
        try:
            negotiation.failed(error)
        except McpError as reason:
            return self._give_up(reason)
        return [Send(self._next_step(negotiation), opens=True)]

    def _give_up(self, error: McpError) -> list[Event]:
        self._negotiation = self._negotiation_id = None
        if not isinstance(error, TransportError):
            self._without_probe = None  # the server itself refused
        return [OpenFailed(error)]

    def _forget(self, identifier: RequestId | None) -> None:
        """Drop a request of the negotiation whose response is no longer needed."""
        if identifier is not None:
            self._state.outbound.pop(identifier)


def _is_finite(value: object) -> bool:
    """Whether a value is a number that JSON can express."""
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
