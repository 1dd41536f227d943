"""A server's connection in all revisions: adds those where each request states its revision.

A subscription stream is a request that stays open. Its params filter the changes; each
notification on the stream carries the id of the request.

Source: basic/index, basic/versioning, basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import msgspec
from msgspec import UnsetType

from .._structs import encode_finite, replace
from .._wire import (
    STRUCTS,
    UNREADABLE,
    UNSET,
    UNWRITABLE,
    Raw,
    ValidationError,
    convert,
    decoder,
    encode,
    error_text,
    is_object,
    to_builtins,
)
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    INVALID_PARAMS,
    InternalError,
    InvalidParamsError,
    LocalProtocolError,
    ProtocolError,
)
from ..facts import Lifecycle, Method, Revision, Revisions, members_of, meta_name
from ..foreign_text import SHOWN_TEXT, safe_repr, safe_text
from . import jsonrpc
from .connection import MOST_ADMITTED, Connection, OwnHandler
from .events import CloseStreams, Event, RequestReceived, Send, SendResponse
from .handshake import SERVER_INFO, HandshakeConnection, check_subscriptions
from .lifecycle import (
    DISCOVER,
    Admit,
    Description,
    OnSubscription,
    RequestMetadata,
    is_declared,
    without_malformed_extensions,
)
from .request_meta import NO_META
from .requests import (
    ACKNOWLEDGED,
    MESSAGE,
    PROGRESS_TOKEN,
    ConnectionState,
    InboundRequest,
    cancellation,
    check_required_capabilities,
    notification,
    typed_result,
)
from .subscriptions import (
    SUBSCRIBED_URIS,
    SubscriptionStreams,
    accepted_filter,
    accepted_of_extensions,
)

STREAMS = 100
"""Most subscription streams that a connection may hold open."""

_TOKENS = (int, str)
_CACHED_BYTES = 64 * 1024  # longest `_meta` that is kept for comparison with the next request's


class UnsupportedRevisionError(ProtocolError):
    """A request names a revision that this side does not support.

    `data.requested` repeats the name, cut at 200 characters.

    Source: basic/versioning (2026-07-28).
    """

    default_code = INVALID_PARAMS

    def __init__(self, requested: str, supported: Sequence[str], code: int) -> None:
        super().__init__(
            f"unsupported protocol version {safe_repr(requested)}; "
            f"supported: {', '.join(supported)}",
            code=code,
            data={"supported": list(supported), "requested": requested[:SHOWN_TEXT]},
        )
        self.requested = requested
        self.supported = tuple(supported)


class _MetaOnly(msgspec.Struct, gc=False):
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


_find_meta = decoder(_MetaOnly)
_decode_object = decoder(dict[str, Any])


def lacks_meta(params: bytes) -> bool:
    """Whether params are an object that cannot have `_meta`; `False` if that is unclear."""
    return params.startswith(b"{") and b'"_meta"' not in params


def raw_meta(params: Raw | None) -> bytes | None:
    """The JSON of `_meta`; `None` if it is absent or null."""
    if params is None:
        return None
    raw = bytes(params)
    if lacks_meta(raw):
        return None
    try:
        meta = _find_meta(raw).meta
    except UNREADABLE as error:
        raise InvalidParamsError(f"params: {error_text(error)}") from None
    return None if meta is UNSET or (value := bytes(meta)) == b"null" else value


def decode_meta(raw: bytes | None) -> Mapping[str, Any]:
    """`_meta` from its JSON; empty if absent.

    Raises:
        InvalidParamsError: `_meta` is not an object.
    """
    if raw is None:
        return NO_META
    try:
        meta: Mapping[str, Any] = _decode_object(raw)
    except UNREADABLE as error:
        raise InvalidParamsError(f"params._meta: {error_text(error)}") from None
    return meta


class RequestMetaReader:
    """Reads `_meta` of requests to a server that speaks `revisions`.

    Attributes:
        listen: The request that opens a subscription stream, if there is one.
        last_meta: `_meta` of the last request.
        last: The metadata of the last request; `None` if that request belonged to a session.
    """

    def __init__(self, revisions: Revisions) -> None:
        self._modern = revisions.of(Lifecycle.PER_REQUEST)
        self.per_request_only = len(self._modern) == len(revisions)
        """Whether none of the revisions has a handshake."""
        self._required_keys: frozenset[str] = frozenset()
        self.listen: str | None = None
        if self._modern:
            self._newest = self._modern.newest()
            self.listen = self._newest.facts.behaviour.listen
            keys = self._newest.facts.meta
            required = (keys.protocol_version, keys.client_info, keys.client_capabilities)
            self._required_keys = frozenset(key for key in required if key is not None)
        # Most clients send the same `_meta` each time, but for a progress token.
        self._last_known: Mapping[str, Any] | None = None
        self._last_json: bytes | None = None
        self.last_meta: Mapping[str, Any] = NO_META
        self.last: RequestMetadata | None = None

    @property
    def supported(self) -> tuple[str, ...]:
        """The per-request revisions, newest first."""
        return tuple(sorted(self._modern, reverse=True))

    def read(self, params: Raw | None) -> tuple[Mapping[str, Any], RequestMetadata | None]:
        """The `_meta` of a request, and its metadata; `None` if the request belongs to a session.

        Raises:
            InvalidParamsError: `params` or `_meta` is not an object, or a required key is missing
                or has the wrong type.
            UnsupportedRevisionError: The server does not speak the stated revision.
        """
        raw = raw_meta(params)
        if raw == self._last_json and not (raw is None and self.per_request_only):
            return dict(self.last_meta), self.last
        meta = decode_meta(raw)
        stated = self._read_stated(meta)
        if raw is None or len(raw) <= _CACHED_BYTES:
            self._last_json, self.last_meta, self.last = raw, meta, stated
            self._last_known = {k: v for k, v in meta.items() if k != PROGRESS_TOKEN}
        return dict(meta), stated

    def is_like_last(self, meta: dict[str, Any]) -> bool:
        """Whether `meta` is the `_meta` of the last request, but for a progress token."""
        if PROGRESS_TOKEN in meta:
            meta = meta.copy()
            if type(meta.pop(PROGRESS_TOKEN)) not in _TOKENS:
                return False
        return meta == self._last_known

    def is_stated(self, meta: Mapping[str, Any]) -> bool:
        """Whether a request with this `_meta` states its revision, and belongs to no session."""
        if self.per_request_only:
            return True
        return not self._required_keys.isdisjoint(meta)

    def _read_stated(self, meta: Mapping[str, Any]) -> RequestMetadata | None:
        if not self.is_stated(meta):
            return None
        return self._validate(self._read_revision(meta), meta)

    def _read_revision(self, meta: Mapping[str, Any]) -> Revision:
        key = self._newest.facts.meta.protocol_version
        name = meta.get(key) if key else None
        if not isinstance(name, str):
            supported = ", ".join(self.supported)
            got = "nothing" if name is None else safe_repr(name)
            raise InvalidParamsError(
                f"params._meta: expected {key!r} with one of {supported}, got {got}"
            )
        if name not in self._modern:
            code = self._newest.facts.errors.unsupported_revision
            raise UnsupportedRevisionError(name, self.supported, code)
        return self._modern[name]

    def _validate(self, revision: Revision, meta: Mapping[str, Any]) -> RequestMetadata:
        keys = revision.facts.meta
        declared = meta.get(keys.client_capabilities or "", NO_META)
        if (
            is_object(declared)
            and (usable := without_malformed_extensions(declared)) is not declared
        ):
            declared = usable
            meta = {**meta, keys.client_capabilities or "": usable}
        try:
            convert(meta, revision.meta_type)
        except ValidationError as error:
            raise InvalidParamsError(f"params._meta: {error_text(error)}") from None
        return RequestMetadata(
            revision=revision,
            peer_capabilities=declared,
            peer_info=meta.get(keys.client_info or ""),
            log_level=meta.get(keys.log_level or ""),
        )


class ServerMeta:
    """`_meta` that the connections of one server share.

    Args:
        revisions: The revisions of the server.

    Attributes:
        reader: Reads the `_meta` of received requests.
    """

    __slots__ = ("_own", "reader")

    def __init__(self, revisions: Revisions) -> None:
        self.reader = RequestMetaReader(revisions)
        self._own: dict[str, tuple[Mapping[str, Any], Raw]] = {}

    def of_results(
        self, revision: Revision, describe: Callable[[Revision], Description]
    ) -> tuple[Mapping[str, Any], Raw | None]:
        """The `_meta` of every result, empty for none; and its JSON."""
        own = self._own.get(revision.name)
        if own is None:
            key = revision.facts.meta.server_info
            if key is None:
                return NO_META, None
            meta = {key: describe(revision).info}
            own = self._own[revision.name] = meta, Raw(encode(meta))
        return own


class ServerConnection(HandshakeConnection):
    """The protocol of a server, for one client.

    Args:
        revisions: The revisions to speak.
        describe: The server's implementation info and capabilities, by revision.
        extensions: Methods besides those of the revisions, by wire name; both sides may send them.
        meta: `_meta` shared with other connections of the same server; a new cache by default.
        admit: Selects the subjects of a subscription that the server reports; see `Admit`.
        on_subscription: Called with the URIs of the resources that a new stream subscribes to.
        parse_batch: Parses batches, in revisions that have them.
    """

    def __init__(
        self,
        revisions: Revisions,
        describe: Callable[[Revision], Description],
        extensions: Mapping[str, Method] | None = None,
        meta: ServerMeta | None = None,
        *,
        admit: Admit | None = None,
        on_subscription: OnSubscription | None = None,
        parse_batch: jsonrpc.ParseBatch | None = None,
    ) -> None:
        meta = meta or ServerMeta(revisions)
        own = extensions or {}
        super().__init__(
            ConnectionState("server", revisions, describe, own, parse_batch=parse_batch)
        )
        self._streams = SubscriptionStreams()
        self._described: Description | None = None
        self._rows: dict[str, Method] = {}
        self._meta = meta
        self._reader = meta.reader
        self._admit = admit
        self._on_subscription = on_subscription
        self._own_handlers = self._handlers_with(meta.reader.listen)

    def _drop(self, identifier: RequestId) -> None:
        super()._drop(identifier)
        self._streams.close(identifier)

    def read_request(self, message: jsonrpc.Request) -> tuple[RequestReceived, RequestMetadata]:
        """Read a request; see `Connection`. Most state what the last one stated."""
        last, raw, state = self._reader.last, message.params, self.state
        if state.session is not None:
            event, stated = super().read_request(message)
            if stated is state.session.metadata and self._reader.is_stated(event.meta):
                return Connection.read_request(self, message)
            return event, stated
        if last is None:
            return super().read_request(message)
        method = self._declared_row(last.revision, message.method)
        if method is None or method.params is None or raw is None or message.id in state.inbound:
            return Connection.read_request(self, message)
        try:
            params = method.decode_params(raw)
        except UNREADABLE:
            return Connection.read_request(self, message)  # tells what is wrong
        meta: dict[str, Any] | None = getattr(params, "meta", None)
        if type(meta) is not dict or not self._reader.is_like_last(meta):
            return Connection.read_request(self, message)
        event = RequestReceived(
            message.id,
            method,
            params,
            raw,
            meta,
            last.revision,
            last.peer_info,
            last.peer_capabilities,
        )
        return event, last

    def _encode_result(self, identifier: RequestId, result: Any, request: InboundRequest) -> bytes:
        revision = request.revision
        own = self._meta.of_results(revision, self.state.describe)
        return encode_result(
            identifier, result, request.method, revision, request.peer_capabilities, *own
        )

    def _declared_row(self, revision: Revision, name: str) -> Method | None:
        """The row of a request; those without session are kept until the description changes."""
        if revision.lifecycle is Lifecycle.HANDSHAKE:
            return super()._declared_row(revision, name)
        description = self.state.describe(revision)
        if description is not self._described:
            self._described, self._rows = description, {}
        method = self._rows.get(name)
        if method is None:
            method = super()._declared_row(revision, name)
            if method is not None and len(self._rows) < MOST_ADMITTED:
                self._rows[name] = method
        return method

    def _read_metadata(self, message: jsonrpc.Request) -> tuple[Mapping[str, Any], RequestMetadata]:
        meta, metadata = self._reader.read(message.params)
        return meta, metadata or self._session_metadata(message.method)

    def _out_of_turn_error(self, method: str) -> ProtocolError:
        if not (supported := ", ".join(self._reader.supported)):
            return super()._out_of_turn_error(method)
        return InvalidParamsError(
            f"{safe_text(method)}: expected initialize first, or params._meta that names one of "
            f"{supported}"
        )

    def _is_in_turn(self, name: str) -> bool:
        if self.state.session is None and self._reader.supported:
            return True  # per-request clients make no handshake
        return super()._is_in_turn(name)

    @staticmethod
    @cache
    def _handlers_with(listen: str | None) -> Mapping[str, OwnHandler]:
        """Handlers of requests that are not for the application, by wire name."""
        own = {**HandshakeConnection._own_handlers, DISCOVER: ServerConnection._discover}
        return own if listen is None else {**own, listen: ServerConnection._listen}

    def _discover(self, event: RequestReceived) -> list[Event]:
        own = self.state.describe(event.revision)
        result: dict[str, Any] = {
            **(own.cache or NO_META),
            "supportedVersions": self._reader.supported,
            "capabilities": own.capabilities,
        }
        discover = event.revision.client_requests[DISCOVER]
        if SERVER_INFO in members_of(discover.result):  # otherwise it is in `_meta`
            result[SERVER_INFO] = own.info
        if own.instructions is not None:
            result["instructions"] = own.instructions
        return self._answer(event, result)

    def _listen(self, event: RequestReceived) -> list[Event]:
        """Open a subscription stream and acknowledge its filter."""
        if len(self._streams) >= STREAMS:
            raise InvalidParamsError(f"expected at most {STREAMS} subscription streams at once")
        added_uris = set(event.params.notifications.resource_subscriptions or ())
        check_subscriptions([*self._streams.uris(), *added_uris])
        revision = event.revision
        requested = to_builtins(event.params.notifications)
        own = self.state.own_capabilities(revision)
        accepted = accepted_filter(requested, own, revision)
        added = self._admit_subjects(event, own)
        if self._on_subscription is not None and (uris := accepted.get(SUBSCRIBED_URIS)):
            self._on_subscription(uris)
        self._streams.open(event.id, {**accepted, **added}, revision.facts)
        self.state.inbound[event.id].silence()
        key = revision.facts.meta.subscription_id
        params = {"_meta": {key: event.id} if key else {}, "notifications": accepted}
        message = notification(self.state.role, revision, ACKNOWLEDGED, params, event.id)
        if added:  # the type of the revision has no such members
            params["notifications"] = {**accepted, **added}
            data = jsonrpc.encode_notification(ACKNOWLEDGED, params)
            message = msgspec.structs.replace(message, data=data, params=params)
        return [Send(message)]

    def _admit_subjects(
        self, event: RequestReceived, own: Mapping[str, Any]
    ) -> dict[str, list[str]]:
        """The accepted part of a requested filter that belongs to extensions."""
        if (admit := self._admit) is None:
            return {}
        peer = event.peer_capabilities
        requested = accepted_of_extensions(event.raw_params, event.revision, own, peer)
        admitted = {member: list(admit(name, each)) for name, member, each in requested}
        return {member: subjects for member, subjects in admitted.items() if subjects}

    def subscribed_uris(self) -> set[str]:
        """The resources that the client subscribed to."""
        return super().subscribed_uris().union(self._streams.uris())

    def has_subscriber(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether the client subscribed to a notification, by its session or by a stream."""
        streams = self._streams.subscribed_to(name, params)
        return super().has_subscriber(name, params) or next(streams, None) is not None

    def _close_streams(self, _: CloseStreams) -> Sequence[OutgoingMessage]:
        """Send each stream its result, which marks a graceful end, and then a cancellation.

        Source: basic/patterns/subscriptions, basic/patterns/cancellation (2026-07-28).
        """
        messages: list[OutgoingMessage] = []
        for identifier in self._streams.ids():
            revision = self.state.inbound[identifier].revision
            self._streams.close(identifier)
            key = revision.facts.meta.subscription_id
            messages += self._respond(SendResponse(identifier, {"_meta": {key: identifier}}))
            messages.append(cancellation(revision, {"requestId": identifier}, identifier))
        return messages

    _SENDERS: ClassVar = {**HandshakeConnection._SENDERS, CloseStreams: _close_streams}

    def closed(self) -> list[RequestId]:
        """The transport ended; see `Connection.closed`."""
        self._streams.clear()
        return super().closed()

    def _notifications(
        self, name: str, wire: Mapping[str, Any], related_request_id: RequestId | None
    ) -> Sequence[OutgoingMessage]:
        messages: list[OutgoingMessage] = []
        state = self.state
        for identifier in self._streams.subscribed_to(name, wire):
            revision = state.inbound[identifier].revision
            meta = {**wire.get("_meta", {}), revision.facts.meta.subscription_id: identifier}
            tagged = {**wire, "_meta": meta}
            messages.append(notification(state.role, revision, name, tagged, identifier))
        messages += super()._notifications(name, wire, related_request_id)
        if messages or name == MESSAGE:
            return messages
        return self._notify_in_request(name, wire, related_request_id)

    def _notify_in_request(
        self, name: str, wire: Mapping[str, Any], identifier: RequestId | None
    ) -> Sequence[OutgoingMessage]:
        """Send a notification on the stream of a request, in revisions without sessions.

        Notifications that need a subscription are not sent.

        Raises:
            LocalProtocolError: There is neither a session nor a related request.
        """
        state = self.state
        request = None if identifier is None else state.inbound.get(identifier)
        if request is not None:
            if self._goes_with_request(request.revision, name):
                return (notification(state.role, request.revision, name, wire, identifier),)
        elif identifier is None:
            revisions = state.candidate_revisions()
            if all(self._goes_with_request(revision, name) for revision in revisions):
                raise LocalProtocolError(
                    f"{name}: {revisions[0].name} has no sessions: send it while a request is "
                    "served, on its behalf"
                )
        return ()

    def _goes_with_request(self, revision: Revision, name: str) -> bool:
        """Whether a revision has no sessions, and sends a notification on streams of requests."""
        method = revision.notifications_from(self.state.role).get(name)
        if revision.lifecycle is not Lifecycle.PER_REQUEST or method is None:
            return False
        if name == ACKNOWLEDGED or method.facts.subscription or method.facts.extension:
            return False
        return is_declared(self.state.own_capabilities(revision), method.capability)


def encode_result(
    identifier: RequestId,
    result: Any,
    method: Method,
    revision: Revision,
    peer_capabilities: Mapping[str, Any],
    own_meta: Mapping[str, Any],
    encoded_meta: Raw | None,
) -> bytes:
    """The JSON of a success response in any revision; see `encode_response`.

    Args:
        identifier: The request's id.
        result: The typed result, or a wire object; `None` for a result without members.
        method: The row of the request in the method table.
        revision: The revision of the request.
        peer_capabilities: The capabilities that the sender of the request declared.
        own_meta: `_meta` of every result of this side; empty for none.
        encoded_meta: The same `_meta` as JSON.

    Raises:
        InternalError: The result does not fit the method, or has no JSON form.
        MissingCapabilityError: The peer lacks a capability that an input request requires.
    """
    typed: Any = result
    if type(result) not in method.result_structs:
        typed = typed_result(method, result)
        if revision.result_types and not (isinstance(typed, Raw) or hasattr(typed, "result_type")):
            typed = {"resultType": "complete", **to_builtins(typed)}  # of a custom method
    if own_meta:
        typed = _with_own_meta(typed, own_meta, encoded_meta)
    if (input_requests := getattr(typed, "input_requests", None)) is not None:
        _check_input_requests(revision, peer_capabilities, input_requests)
    try:
        return encode_finite(jsonrpc.ResultOut(typed, identifier))
    except UNWRITABLE as error:
        text = f"{method.name}: result: no JSON form: {error_text(error)}"
        raise InternalError(text) from error


def _with_own_meta(result: Any, own: Mapping[str, Any], encoded: Raw | None) -> Any:
    """Add the `_meta` that every result of a server has to a result."""
    name = meta_name(type(result)) if isinstance(result, STRUCTS) else None
    if name is None:
        return result
    existing: Any = getattr(result, name, None)
    return replace(result, **{name: {**own, **existing} if existing else encoded})


def _check_input_requests(
    revision: Revision, peer_capabilities: Mapping[str, Any], input_requests: Mapping[str, Any]
) -> None:
    """Check that the client declared the capabilities that each input request requires.

    Source: basic/patterns/mrtr (2026-07-28).
    """
    for input_request in input_requests.values():
        wire = to_builtins(input_request)
        method = revision.input_requests[wire["method"]]
        check_required_capabilities(method, revision, wire.get("params"), peer_capabilities)
