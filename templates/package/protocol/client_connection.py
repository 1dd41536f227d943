"""A client's connection: version negotiation, and decoding of results.

The steps of the negotiation form a table. A client of both lifecycles sends `server/discover`
first. After a result, or an error that only per-request servers send, it uses the per-request
lifecycle; after any other error or a timeout, it sends `initialize`. A client of one lifecycle has
one step. If the server cannot be reached, requires credentials, or says when to come back,
negotiation fails.

Source: basic/lifecycle (to 2025-11-25); 2026-07-28: basic/versioning, basic/transports/stdio and
basic/transports/streamable-http (backward compatibility).
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias, TypeGuard, get_args

import msgspec
from msgspec import Raw, UnsetType

from .._decoding import convert as convert_members
from .._decoding import decoder as decoder_of_members
from .._wire import (
    UNREADABLE,
    ValidationError,
    convert,
    decoder,
    error_text,
    fields,
    is_object,
    replace,
    to_builtins,
)
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    AuthorizationError,
    ConnectFailedError,
    LocalProtocolError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestCancelledError,
    RevisionError,
    TransportError,
    refusal_of,
)
from ..facts import TTL, Lifecycle, Method, Revision, Revisions, structs_of
from ..foreign_text import safe_text
from . import jsonrpc
from .connection import Connection
from .lifecycle import (
    DISCOVER,
    INITIALIZE,
    INITIALIZED,
    Description,
    Session,
    State,
    newest_common,
    optional_member,
    sent_capabilities,
    with_extensions,
    without_malformed_extensions,
)
from .receiver import (
    Event,
    Ignored,
    NotificationReceived,
    Opened,
    OpenFailed,
    Receiver,
    RequestFailed,
    ResponseReceived,
    Send,
)
from .request_meta import MetaCache, with_meta
from .requests import ConnectionState, OutboundRequest, notification


class ClientReceiver(Receiver):
    """Turns a server's messages into events."""

    def result_decoder(self, method: Method) -> Callable[[bytes | Raw], Any]:
        """The decoder for results of a method."""
        return (extra_result_decoder if self._state.extra else result_decoder)(method)

    def _receive_request(self, message: jsonrpc.Request) -> list[Event]:
        revision = self._session_revision()
        if not revision.server_requests:
            return [
                Ignored(f"request {safe_text(message.method)} from a server of {revision.name}")
            ]
        return super()._receive_request(message)

    def _is_noise(self, message: jsonrpc.InvalidMessage) -> bool:
        """Some servers print log lines to their output; these get no response."""
        return message.id is None or not self._session_revision().server_requests

    def _may_belong_to(self, stream: Any) -> bool:
        """Whether an id is that of an open subscription stream; `True` and `1.0` are not `1`."""
        request = self._state.outbound.get(stream) if type(stream) in (int, str) else None
        return (
            request is not None and request.method.name == request.revision.facts.behaviour.listen
        )

    def _handle_cancelled(self, event: NotificationReceived) -> list[Event]:
        identifier = event.params.request_id
        if self._may_belong_to(identifier):
            self._state.outbound.pop(identifier)
            error = RequestCancelledError("the server ended the subscription")
            return [RequestFailed(identifier, error)]
        return super()._handle_cancelled(event)


class ClientConnection(Connection):
    """The protocol of a client; call `open` before sending anything else.

    Args:
        revisions: The revisions to speak.
        describe: The client's implementation info and capabilities, by revision.
        extensions: Methods besides those of the revisions, by wire name; both sides may send them.
        extra: Whether the objects of results keep the members that their schemas do not have.
    """

    def __init__(
        self,
        revisions: Revisions,
        describe: Callable[[Revision], Description],
        extensions: Mapping[str, Method] | None = None,
        *,
        extra: bool = False,
    ) -> None:
        meta = MetaCache()
        state = ConnectionState("client", revisions, describe, extensions or {}, meta, extra)
        super().__init__(state, ClientReceiver(state))
        self._negotiation: VersionNegotiation | None = None
        self._negotiation_id: RequestId | None = None
        self._probe_id: RequestId | None = None
        self._without_probe: Revisions | None = None

    @property
    def probing(self) -> bool:
        """Whether a probe is open, and a missing response would mean a server with a handshake."""
        negotiation = self._negotiation
        return (
            negotiation is not None
            and negotiation.step is Step.PROBING
            and negotiation.may_fall_back
        )

    @property
    def without_probe(self) -> Revisions | None:
        """The revisions to offer without a probe, after a restart of the server.

        Some servers exit, or stop responding, if another message precedes `initialize`. `None` if
        the probe can't be the cause: none was sent, negotiation has ended, or this client has no
        revision with a handshake.
        """
        return self._without_probe

    def with_same_revision(self) -> ClientConnection:
        """A new connection, without session, of the agreed revision alone."""
        state = self._state
        return ClientConnection(state.revisions.only(state.revision.name), state.describe)

    def peer_replaced(self) -> None:
        """Another server took the place of the server: drop the open requests of the old one."""
        self._state.inbound.clear()

    def open(self) -> OutgoingMessage:
        """Begin a client's session.

        Returns:
            The first message: a probe or `initialize`. `Opened` or `OpenFailed` follows.
        """
        self._negotiation = VersionNegotiation(self._state.revisions, self._state.describe)
        self._without_probe = self._negotiation.without_probe
        return self._next_step(self._negotiation)

    def awaits(self, identifier: RequestId | None) -> bool:
        """Whether a request is that of the current step of the negotiation."""
        return identifier is not None and identifier == self._negotiation_id

    def opening_timed_out(self) -> list[Event]:
        """The probe of `open` got no response in time: continue with the next step.

        A late response, from a server that starts slowly, is still accepted.

        Returns:
            The next message to send, or `OpenFailed`.
        """
        negotiation = self._negotiation
        if negotiation is None or not self.probing:
            return []
        self._probe_id = self._negotiation_id
        return self._step_failed(negotiation, None)

    def opening_refused(self, identifier: RequestId | None, error: McpError) -> list[Event]:
        """A message of the negotiation could not be delivered, or was refused.

        Args:
            identifier: The id of the message; `None` for `notifications/initialized`.
            error: The failure.

        Returns:
            The next message to send, or `OpenFailed`.
        """
        return [OpenFailed(error)] if identifier is None else self.request_lost(identifier, error)

    def receive(self, data: bytes, now: float = 0.0) -> list[Event]:
        """Receive one message, which may belong to the negotiation; see `Connection.receive`."""
        return self._with_negotiation(super().receive(data, now))

    def request_lost(self, identifier: RequestId, error: McpError) -> list[Event]:
        """The transport reports that a request of this side gets no response, and the error."""
        return self._with_negotiation(super().request_lost(identifier, error))

    def closed(self) -> list[RequestId]:
        """The transport ended; see `Connection.closed`."""
        self._negotiation = self._negotiation_id = None
        return super().closed()

    def _next_step(self, negotiation: VersionNegotiation) -> OutgoingMessage:
        """The next request of the negotiation."""
        state = self._state
        revision, name, params = negotiation.request()
        method = revision.client_requests[name]
        identifier = state.outbound.add(OutboundRequest(method, revision))
        own = state.meta.own_meta("client", revision, state.describe)
        shaped = with_meta(params or None, own, own)
        if name == INITIALIZE:
            shaped = with_extensions(method.params, params)
        if not isinstance(shaped, (UnsetType, Raw)) and method.params is not None:
            shaped = convert(shaped, method.params)
        self._negotiation_id = identifier
        data = jsonrpc.encode_request(identifier, name, shaped)
        return OutgoingMessage(data, "request", identifier, name, revision, None, params)

    def _with_negotiation(self, events: list[Event]) -> list[Event]:
        """Handle the events of the requests of the negotiation; pass on any others."""
        if self._negotiation is None:
            return events
        return [after for event in events for after in self._negotiate(self._negotiation, event)]

    def _negotiate(self, negotiation: VersionNegotiation, event: Event) -> list[Event]:
        """Handle an event of a request of the negotiation; pass on any other."""
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
            session = negotiation.receive_result(event.result, event.raw)
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
            negotiation.receive_error(error)
        except McpError as reason:
            return self._give_up(reason)
        return [Send(self._next_step(negotiation), opens=True)]

    def _give_up(self, error: McpError) -> list[Event]:
        self._negotiation = self._negotiation_id = None
        if not isinstance(error, TransportError):
            self._without_probe = None  # the server itself refused
        return [OpenFailed(error)]

    def _forget(self, identifier: RequestId | None) -> None:
        """Drop a request of the negotiation, if it is open: its response is no longer needed."""
        if identifier is not None:
            self._state.outbound.pop(identifier)


class Step(enum.Enum):
    """The step of the negotiation."""

    PROBING = "probing"
    INITIALIZING = "initializing"


class VersionNegotiation:
    """Decides the steps of version negotiation; `ClientConnection` sends and receives.

    Args:
        revisions: The revisions that the client offers.
        describe: The client's implementation info and capabilities, by revision.
    """

    def __init__(self, revisions: Revisions, describe: Callable[[Revision], Description]) -> None:
        self._all = revisions
        self._describe = describe
        self._modern = revisions.of(Lifecycle.PER_REQUEST)
        self._legacy = revisions.of(Lifecycle.HANDSHAKE)
        self._tried: set[str] = set()
        self._insisted = False
        self.step = Step.PROBING if self._modern else Step.INITIALIZING
        self.shook_hands = False
        """Whether a handshake opened the session; the client has to confirm it."""
        self.revision = (self._modern or self._legacy).newest()

    @property
    def may_fall_back(self) -> bool:
        """Whether the client can try a handshake after a failed probe."""
        return bool(self._legacy)

    @property
    def without_probe(self) -> Revisions | None:
        """The revisions to offer without a probe; `None` if the client has one lifecycle alone."""
        return self._legacy if self._modern and self._legacy else None

    def request(self) -> tuple[Revision, str, dict[str, Any]]:
        """The request of this step: revision, method, and params without `_meta`."""
        self._tried.add(self.revision.name)
        if self.step is Step.PROBING:
            return self.revision, DISCOVER, {}
        own = self._describe(self.revision)
        params = {
            "protocolVersion": self.revision.name,
            "capabilities": own.capabilities,
            "clientInfo": own.info,
        }
        return self.revision, INITIALIZE, params

    def receive_result(self, result: Any, raw: Raw) -> Session | None:
        """Receive the result of the request of this step, typed and as JSON.

        Returns:
            The session; `None` if another `request` has to be sent.

        Raises:
            RevisionError: No revision in common.
        """
        if self.step is Step.INITIALIZING:
            return self._complete_handshake(result, sent_capabilities(raw))
        offered = tuple(result.supported_versions)
        common = newest_common(self._modern, offered)
        if common is None:
            self._choose_offered(offered)
            return None
        meta: Mapping[str, Any] = optional_member(result, "meta") or {}
        info = meta.get(common.facts.meta.server_info or "")
        if info is None:  # some revisions have it as a member of the result
            info = to_builtins(optional_member(result, "server_info"))
        return Session(
            revision=common,
            own_capabilities=self._describe(common).capabilities,
            peer_capabilities=sent_capabilities(raw),
            peer_info=info if is_object(info) else None,
            instructions=optional_member(result, "instructions"),
            supported=offered,
        )

    def receive_error(self, error: McpError | None) -> None:
        """The step's request failed, or got no response (`None`).

        `request` is then the next request to send.

        Raises:
            RevisionError: No revision in common, or none of the server's lifecycle.
            McpError: `error`: a per-request server or the handshake refused, or the server cannot
                be reached.
        """
        if self.step is Step.INITIALIZING:
            self._initialize_refused(error)
        elif _is_final(error) or (isinstance(error, TransportError) and not self._legacy):
            raise error
        elif isinstance(error, RemoteError) and self._is_modern(error):
            offered = _names_in_data(error, "supported")
            if not offered:
                raise error
            unknown = error.code == self.revision.facts.errors.unsupported_revision
            if not (unknown and self._insist(offered)):
                self._choose_offered(offered)
        elif not self._legacy:
            reason = f": {error}" if error is not None else ""
            raise RevisionError(f"the server speaks no per-request revision{reason}", self._names())
        else:
            self._begin_handshake(self._legacy.newest())

    def _begin_handshake(self, revision: Revision) -> None:
        self.step = Step.INITIALIZING
        self.revision = revision

    def _complete_handshake(self, result: Any, capabilities: Mapping[str, Any]) -> Session:
        revision = self._legacy.get(result.protocol_version)
        if revision is None:
            raise RevisionError(
                "the server chose a revision that was not offered",
                self._names(),
                (result.protocol_version,),
            )
        self.shook_hands = True
        return Session(
            revision=revision,
            own_capabilities=self._describe(revision).capabilities,
            peer_capabilities=capabilities,
            peer_info=to_builtins(result.server_info),
            instructions=optional_member(result, "instructions"),
            state=State.READY,
        )

    def _choose_offered(self, offered: tuple[str, ...]) -> None:
        """Choose the newest offered revision that was not tried yet."""
        untried = tuple(name for name in offered if name not in self._tried)
        revision = newest_common(self._all, untried)
        if revision is None:
            raise RevisionError("no revision in common", self._names(), offered)
        if revision.lifecycle is Lifecycle.HANDSHAKE:
            self._begin_handshake(revision)
        self.revision = revision

    def _insist(self, offered: tuple[str, ...]) -> bool:
        """Whether to try a revision once more that the server refused, yet listed as supported."""
        untried = tuple(name for name in offered if name not in self._tried)
        if self._insisted or newest_common(self._all, untried) is not None:
            return False
        self._insisted = True
        return newest_common(self._modern, offered) is self.revision

    def _initialize_refused(self, error: McpError | None) -> None:
        """`initialize` was refused: try the newest of the revisions that the error lists."""
        offered = _names_in_data(error, "supported") if isinstance(error, RemoteError) else ()
        if not offered:
            raise error or RemoteProtocolError("initialize: no answer")
        untried = tuple(name for name in offered if name not in self._tried)
        revision = newest_common(self._legacy, untried)
        if revision is None:
            raise RevisionError("no revision in common", self._names(), offered) from error
        self.revision = revision

    def _is_modern(self, error: RemoteError) -> bool:
        codes = self.revision.facts.errors.defined
        return codes is not None and error.code in codes

    def _names(self) -> tuple[str, ...]:
        return tuple(self._all)


def _is_final(error: McpError | None) -> TypeGuard[McpError]:
    """Whether another request would fail in the same way."""
    refusal = None if error is None else refusal_of(error)
    if refusal is not None and (
        refusal.wants_credentials or (refusal.is_outage and refusal.retry_after is not None)
    ):
        return True
    return isinstance(error, AuthorizationError | ConnectFailedError | LocalProtocolError)


def _names_in_data(error: RemoteError, member: str) -> tuple[str, ...]:
    """The strings in a list member of `error.data`; none if there is no such list."""
    names = error.data.get(member) if is_object(error.data) else None
    try:
        return tuple(convert(names, list[str]))
    except ValidationError:
        return ()


NAMED_ITEMS = 10
"""Most invalid items of a page that are logged one by one; further items are counted."""

_SCOPE = "cacheScope"
_SCOPES = ("public", "private")

_logger = logging.getLogger(__name__)

Decode: TypeAlias = Callable[[bytes | Raw], Any]
DecoderOf: TypeAlias = Callable[[Any], Decode]
Convert: TypeAlias = Callable[[Any, Any], Any]


@lru_cache(maxsize=1024)
def result_decoder(method: Method) -> Decode:
    """The decoder for results of a method; cached.

    A page with null as next cursor is the last page. Malformed cache hints and negative times are
    treated as absent. An invalid item is left out of its page, with a warning.

    Source: server/utilities/pagination (2026-07-28: whether a non-null value was provided),
    server/utilities/caching (2026-07-28).
    """
    return _result_decoder(method, decoder, convert)


@lru_cache(maxsize=1024)
def extra_result_decoder(method: Method) -> Decode:
    """As `result_decoder`, with objects that keep their extra members."""
    with_extra = partial(decoder_of_members, extra=True), partial(convert_members, extra=True)
    return _result_decoder(method, *with_extra)


def _result_decoder(method: Method, decoder_of: DecoderOf, convert_to: Convert) -> Decode:
    if method.items is not None:
        return page_decoder(method.name, method.result, method.items, decoder_of, convert_to)
    if method.cacheable:
        return _lenient_decoder(method.result, decoder_of, convert_to)
    return decoder_of(method.result)


def _lenient_decoder(kind: Any, decoder_of: DecoderOf, convert_to: Convert) -> Decode:
    """A decoder for a result whose optional members may be malformed."""
    decode = decoder_of(kind)

    def decode_leniently(data: bytes | Raw) -> Any:
        try:
            return decode(data)
        except ValidationError:
            members = msgspec.json.decode(data, type=dict[str, Any])
            if not drop_malformed_members(members):
                raise
            return convert_to(members, kind)

    return decode_leniently


def drop_malformed_members(members: dict[str, Any]) -> bool:
    """Remove malformed optional members from a result; returns whether there were any."""
    capabilities = members.get("capabilities")
    if is_object(capabilities):
        members["capabilities"] = without_malformed_extensions(capabilities)
    before = len(members)
    ttl = members.get(TTL, 0)
    if isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0:
        del members[TTL]
    if _SCOPE in members and members[_SCOPE] not in _SCOPES:
        del members[_SCOPE]
    return len(members) < before or members.get("capabilities") is not capabilities


def page_decoder(
    name: str,
    page_type: Any,
    items: str,
    decoder_of: DecoderOf = decoder,
    convert_to: Convert = convert,
) -> Decode:
    """A decoder for a page of a list that leaves out invalid items.

    A warning names each item that is left out; the others keep their order. A page without invalid
    items is decoded as a whole.

    Args:
        name: The method, for the warnings.
        page_type: The Struct of the page, or a union with that Struct.
        items: Python name of the list in the Struct.
        decoder_of: Makes the decoder for a type.
        convert_to: Turns decoded JSON into a type.

    Raises:
        ValidationError: (from the decoder) The page without its items does not fit.
        msgspec.DecodeError: (from the decoder) The page is not JSON.
    """
    decode = decoder_of(page_type)
    struct, field = next(
        (struct, each)
        for struct in structs_of(page_type)
        for each in fields(struct)
        if each.name == items
    )
    wire_name = field.encode_name

    def decode_page(data: bytes | Raw) -> Any:
        try:
            return decode(data)
        except UNREADABLE:
            parts: dict[str, Raw] = msgspec.json.decode(data, type=dict[str, Raw])
            raw_items = _elements(parts.get(wire_name))
            if raw_items is not None:
                parts[wire_name] = Raw(b"[]")
            members = {member: _builtins(part) for member, part in parts.items()}
            drop_malformed_members(members)
            page = convert_to(members, page_type)
            if not isinstance(page, struct):
                return page
            decode_item = decoder_of(get_args(field.type)[0])
            good = _good_items(f"{name}: {wire_name}", raw_items or (), decode_item)
            return replace(page, **{items: list(good)})

    return decode_page


def _good_items(place: str, raw_items: Iterable[Raw], decode_item: Decode) -> Iterator[Any]:
    """Decode the valid items; log the others as warnings."""
    bad = 0
    for position, raw in enumerate(raw_items):
        try:
            yield decode_item(raw)
        except UNREADABLE as error:
            bad += 1
            if bad <= NAMED_ITEMS:
                item, reason = f"{place}[{position}]{_label(raw)}", safe_text(str(error))
                _logger.warning("%s is left out: %s", item, reason)
    if bad > NAMED_ITEMS:
        _logger.warning("%s: %d more are left out", place, bad - NAMED_ITEMS)


def _label(raw: Raw) -> str:
    """The name or the URI of an item, quoted for a log line; empty if it has neither."""
    try:
        item = _builtins(raw)
    except UNREADABLE:
        return ""
    texts = [item.get(member) for member in ("name", "uri")] if is_object(item) else []
    return next((f" '{safe_text(text)}'" for text in texts if isinstance(text, str)), "")


def _elements(raw: Raw | None) -> list[Raw] | None:
    """The elements of a JSON array; `None` if the value is not an array."""
    try:
        return None if raw is None else msgspec.json.decode(raw, type=list[Raw])
    except msgspec.ValidationError:
        return None


def _builtins(raw: bytes | Raw) -> Any:
    return msgspec.json.decode(raw)
