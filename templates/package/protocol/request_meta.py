"""`_meta` of requests and results, and members that the type of a revision does not have.

A request with per-request `_meta` does not depend on the session. Any other request belongs to the
session, if there was a handshake.

Values are converted between the types of revisions; extra members of objects are kept. An object
without extra members is an instance of its Struct; see `_extra_members` for the others.

Source: basic/index#meta, basic/versioning (2026-07-28).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from .._structs import EXTRA, builtins_with_extra, builtins_without_extra, replace
from .._wire import (
    STRUCTS,
    UNREADABLE,
    UNSET,
    convert,
    decoder,
    error_text,
    is_object,
    to_builtins,
    with_kept_members,
)
from ..errors import InvalidParamsError, LocalProtocolError
from ..facts import meta_name
from ..foreign_text import safe_repr
from .lifecycle import CAPABILITY

if TYPE_CHECKING:
    from ..revision_facts import Facts

NO_META: Mapping[str, Any] = {}

_OFFICIAL_PREFIX = "io.modelcontextprotocol/"
_OFFICIAL = ("enterprise-managed-authorization", "oauth-client-credentials", "tasks", "ui")
"""The extensions that the organization of the specification has published."""

_logger = logging.getLogger(__name__)

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


class _WithMeta(msgspec.Struct, gc=False):
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


_decode = decoder(_WithMeta)


def read_meta(params: Raw | None) -> Mapping[str, Any]:
    """The `_meta` of params; empty if absent.

    Raises:
        InvalidParamsError: `params` or `_meta` is not an object.
    """
    if params is None:
        return NO_META
    raw = bytes(params)
    if b'"_meta"' not in raw and raw[:1] == b"{":
        return NO_META
    try:
        return _decode(raw).meta or NO_META
    except UNREADABLE as error:
        raise InvalidParamsError(f"params: {error_text(error)}") from None


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
    """Check `_meta` of the user by the rules of a revision.

    Keys that the revision defines are allowed, since gateways pass them on.

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


def check_extensions(capabilities: Mapping[str, Any], facts: Facts) -> None:
    """Check the extensions that a side is about to declare.

    Raises:
        ValueError: An identifier is malformed, or has a prefix that is reserved for the protocol;
            or its settings are no object.
    """
    declared = capabilities.get(CAPABILITY, {})
    if not is_object(declared):
        raise ValueError(f"capabilities.extensions: expected an object, got {safe_repr(declared)}")
    for identifier, settings in declared.items():
        if "/" not in identifier or identifier.endswith("/") or not is_valid_key(identifier):
            raise ValueError(f"extension {identifier!r}: expected a dotted prefix, '/' and a name")
        if not is_object(settings):
            raise ValueError(
                f"extension {identifier!r}: expected an object of settings, "
                f"got {safe_repr(settings)}"
            )
        if not identifier.startswith(_OFFICIAL_PREFIX):
            if is_reserved_key(identifier, facts):
                text = f"extension {identifier!r}: its prefix is reserved for the protocol"
                raise ValueError(text)
        elif identifier.removeprefix(_OFFICIAL_PREFIX) not in _OFFICIAL:
            _logger.warning("extension %r is no official one that is known here", identifier)


def with_meta(params: Any, added: Mapping[str, Any], encoded: Any) -> Any:
    """Add members to the `_meta` of params of any form.

    Args:
        params: A Struct, a wire object, raw JSON, or `None`.
        added: The members to add to `_meta`.
        encoded: The same members, possibly as JSON, for params without `_meta`.

    Returns:
        The params to encode; UNSET if there are none.
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


def recast(value: Any, kind: Any) -> Any:
    """Convert a Struct, or JSON data with Structs in it, into a type of any revision.

    Members that the type does not have are dropped, except the extra members of an object.

    Raises:
        UNWRITABLE: The value has no JSON form.
        ValidationError: The value does not fit the type; the text has the path.
    """
    try:
        return convert(builtins_without_extra(value), kind)
    except TypeError:  # there may be extra members
        wire = builtins_with_extra(value)
        return with_kept_members(convert(to_builtins(value), kind), wire, _kept_members)


def _kept_members(_: object, wire: Mapping[str, Any]) -> Mapping[str, Any]:
    kept: Mapping[str, Any] = wire.get(EXTRA, {})
    return kept
