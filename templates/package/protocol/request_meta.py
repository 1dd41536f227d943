"""`_meta` of requests and results: key rules, what this side states, what a client stated.

A request with per-request `_meta` is self-contained, whatever was agreed on the connection. Any
other request belongs to the session, if a handshake made one.

Source: basic/index#meta, basic/versioning (2026-07-28).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._wire import (
    STRUCTS,
    UNREADABLE,
    ValidationError,
    convert,
    decoder,
    encode,
    error_text,
    is_object,
    replace,
    to_builtins,
)
from ..errors import InvalidParamsError, LocalProtocolError, UnsupportedRevisionError
from ..facts import Lifecycle, Revision, Revisions, Role, meta_name
from ..foreign_text import safe_repr
from .lenient import readable
from .lifecycle import Description, RequestMetadata

if TYPE_CHECKING:
    from ..revision_facts import Facts

NO_META: Mapping[str, Any] = {}
_CACHED_BYTES = 64 * 1024  # longest `_meta` that is kept for comparison with the next request's

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_KEY = rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/(?:{_NAME})?|{_NAME})"
_OWN_LABELS = frozenset({"mcp", "modelcontextprotocol"})

# Compiled when they are first used.
# The forms of W3C Trace Context and W3C Baggage; lists have commas between their members.
_TRACEPARENT = r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_STATE_MEMBER = (
    r"[a-z0-9][a-z0-9_*/-]{0,255}(@[a-z][a-z0-9_*/-]{0,13})?=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR = rf"{_TOKEN}[ \t]*=[ \t]*[!#-+\--:<-\[\]-~]*"
_PROPERTY = rf"{_TOKEN}|{_PAIR}"
_BLANKS = " \t"


class _MetaOnly(msgspec.Struct, gc=False):
    meta: Raw | UnsetType = msgspec.field(name="_meta", default=UNSET)


_find_meta = decoder(_MetaOnly)
_decode_meta = decoder(dict[str, Any])


def read_meta(params: Raw | None) -> Mapping[str, Any]:
    """The `_meta` of params; empty if absent.

    Raises:
        InvalidParamsError: `params` or `_meta` is not an object.
    """
    return _read(_raw_meta(params))


def lacks_meta(params: bytes) -> bool:
    """Whether params are certainly an object without `_meta`."""
    return params[:1] == b"{" and b'"_meta"' not in params


def _raw_meta(params: Raw | None) -> bytes | None:
    """The JSON of `_meta`; `None` if absent."""
    if params is None:
        return None
    raw = bytes(params)
    if raw == b"null" or lacks_meta(raw):
        return None
    try:
        meta = _find_meta(raw).meta
    except UNREADABLE as error:
        raise InvalidParamsError(f"params: {error_text(error)}") from None
    return None if meta is UNSET else bytes(meta)


def _read(raw: bytes | None) -> Mapping[str, Any]:
    if raw is None:
        return NO_META
    try:
        meta: Mapping[str, Any] = _decode_meta(raw)
    except UNREADABLE as error:
        raise InvalidParamsError(f"params._meta: {error_text(error)}") from None
    return meta


def is_valid_key(key: object) -> bool:
    """Whether a key has the prescribed form: an optional prefix and a name."""
    return isinstance(key, str) and re.fullmatch(_KEY, key) is not None


def is_reserved_key(key: str, facts: Facts) -> bool:
    """Whether the prefix of a key belongs to the protocol in this revision."""
    prefix, slash, _ = key.partition("/")
    if not slash:
        return False
    labels = prefix.split(".")
    match facts.meta.reserved_prefix:
        case "second-label":
            return len(labels) > 1 and labels[1] in _OWN_LABELS
        case "before-last-label":
            return any(label in _OWN_LABELS for label in labels[:-1])
        case "none":
            return False


def check_user_meta(meta: Mapping[str, Any], facts: Facts) -> None:
    """Check the `_meta` that a user gives by the rules of a revision.

    Keys that the revision itself defines may be passed on (a gateway does so).

    Raises:
        LocalProtocolError: A key is malformed or reserved, or the value of a trace key has
            another format.
    """
    if not facts.meta.key_rules:
        return
    for key, value in meta.items():
        if not is_valid_key(key):
            raise LocalProtocolError(
                f"_meta key {safe_repr(key)}: expected an optional dotted prefix with '/', "
                "and a name"
            )
        if key not in facts.meta.keys and is_reserved_key(key, facts):
            raise LocalProtocolError(
                f"_meta key {safe_repr(key)}: its prefix is reserved for the protocol"
            )
        if key in facts.meta.trace_keys and not _is_trace(key, value):
            raise LocalProtocolError(
                f"_meta key {key!r}: expected W3C trace context, got {safe_repr(value)}"
            )


def _is_trace(key: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    members = [member.strip(_BLANKS) for member in value.split(",")]
    match key:
        case "traceparent":
            return re.fullmatch(_TRACEPARENT, value) is not None
        case "tracestate":
            return all(re.fullmatch(_STATE_MEMBER, member) for member in members)
        case _:
            return all(map(_is_baggage, members))


def _is_baggage(member: str) -> bool:
    pair, *properties = (part.strip(_BLANKS) for part in member.split(";"))
    return re.fullmatch(_PAIR, pair) is not None and all(
        re.fullmatch(_PROPERTY, each) for each in properties
    )


class RequestMetaReader:
    """Reads `_meta` of requests to a server that speaks `revisions`.

    Attributes:
        last_meta: `_meta` of the last request.
        last: What it states; `None` if that request belonged to a session.
    """

    def __init__(self, revisions: Revisions) -> None:
        self._modern = revisions.of(Lifecycle.PER_REQUEST)
        self.per_request_only = len(self._modern) == len(revisions)
        """Whether none of the revisions has a handshake."""
        self._required_keys: frozenset[str] = frozenset()
        if self._modern:
            self._newest = self._modern.newest()
            keys = self._newest.facts.meta
            required = (keys.protocol_version, keys.client_info, keys.client_capabilities)
            self._required_keys = frozenset(key for key in required if key is not None)
        # Most clients send the same `_meta` each time; the last one is decoded once.
        self._last_json: bytes | None = None
        self.last_meta: Mapping[str, Any] = NO_META
        self.last: RequestMetadata | None = None

    @property
    def supported(self) -> tuple[str, ...]:
        """The per-request revisions, newest first."""
        return tuple(sorted(self._modern, reverse=True))

    def read(self, params: Raw | None) -> tuple[Mapping[str, Any], RequestMetadata | None]:
        """The `_meta` of a request, and what it states; `None` if the request belongs to a session.

        Raises:
            InvalidParamsError: `params` or `_meta` is not an object, or a required key is missing
                or has the wrong type.
            UnsupportedRevisionError: The revision is not one of these.
        """
        raw = _raw_meta(params)
        if raw == self._last_json and not (raw is None and self.per_request_only):
            return dict(self.last_meta), self.last
        meta = _read(raw)
        stated = self._stated(meta)
        if raw is None or len(raw) <= _CACHED_BYTES:
            self._last_json, self.last_meta, self.last = raw, meta, stated
        return dict(meta), stated

    def known(self, raw: bytes) -> RequestMetadata | None:
        """What `_meta` states, if it is that of the last request."""
        return self.last if raw == self._last_json else None

    def _stated(self, meta: Mapping[str, Any]) -> RequestMetadata | None:
        if not self._modern or not (
            self.per_request_only or not self._required_keys.isdisjoint(meta)
        ):
            return None
        return self._check(self._revision(meta), meta)

    def _revision(self, meta: Mapping[str, Any]) -> Revision:
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

    def _check(self, revision: Revision, meta: Mapping[str, Any]) -> RequestMetadata:
        keys = revision.facts.meta
        declared = meta.get(keys.client_capabilities or "", NO_META)
        if is_object(declared) and (usable := readable(declared)) is not declared:
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


class MetaCache:
    """`_meta` that the connections of one client or one server have in common.

    Args:
        revisions: The revisions that they speak.

    Attributes:
        reader: Reads the `_meta` of received requests.
    """

    __slots__ = ("_encoded", "_own", "reader")

    def __init__(self, revisions: Revisions) -> None:
        self.reader = RequestMetaReader(revisions)
        self._own: dict[str, Mapping[str, Any]] = {}
        self._encoded: dict[str, Raw] = {}

    def own(
        self, role: Role, revision: Revision, describe: Callable[[Revision], Description]
    ) -> Mapping[str, Any]:
        """`_meta` of every request of a client, or of every result of a server."""
        own = self._own.get(revision.name)
        if own is None:
            description = describe(revision)
            keys = revision.facts.meta
            pairs: dict[str | None, Any]
            if role == "server":
                pairs = {keys.server_info: description.info}
            else:
                pairs = {
                    keys.protocol_version: revision.name,
                    keys.client_info: description.info,
                    keys.client_capabilities: description.capabilities,
                }
            own = {key: value for key, value in pairs.items() if key is not None}
            self._own[revision.name] = own
        return own

    def of_results(
        self, revision: Revision, describe: Callable[[Revision], Description]
    ) -> tuple[Mapping[str, Any], Any]:
        """`_meta` of every result of a server, empty for none; and the same, as JSON."""
        own = NO_META
        if revision.facts.meta.server_info is not None:
            own = self.own("server", revision, describe)
        return own, self.encoded(revision, own)

    def encoded(self, revision: Revision, meta: Mapping[str, Any]) -> Any:
        """The JSON of `meta` if it is what `own` returned, encoded once; otherwise `meta`."""
        if meta is not self._own.get(revision.name):
            return meta
        encoded = self._encoded.get(revision.name)
        if encoded is None:
            encoded = self._encoded[revision.name] = Raw(encode(meta))
        return encoded


def with_meta(params: Any, added: Mapping[str, Any], encoded: Any) -> Any:
    """Params with `_meta` merged in, whatever their form.

    Args:
        params: A Struct, a wire object, raw JSON, or `None`.
        added: The members to add to `_meta`.
        encoded: The same members, possibly as JSON; for params without `_meta`.

    Returns:
        The params to encode; UNSET for none.
    """
    if not added:
        return UNSET if params is None else params
    if params is None:
        return {"_meta": encoded}
    if isinstance(params, STRUCTS):
        name = meta_name(type(params))
        if name is None:
            return {**to_builtins(params), "_meta": encoded}
        existing: Any = getattr(params, name, None)
        return replace(params, **{name: {**existing, **added} if existing else encoded})
    wire: Mapping[str, Any] = params
    if isinstance(params, Raw):  # the members stay as they are
        wire = msgspec.json.decode(params, type=dict[str, Raw])
    existing = wire.get("_meta")
    if isinstance(existing, Raw):
        existing = msgspec.json.decode(existing)
    return {**wire, "_meta": {**existing, **added} if existing else encoded}
