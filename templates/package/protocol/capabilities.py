"""Capabilities: which ones a request requires, and the extensions declared among them.

Some params may only be sent to a client that declared a part of the capability: a mode of
elicitation, tools for sampling. This holds for requests and for input requests alike. Extensions
are declared under identifiers that have the form of `_meta` keys, each with an object of settings.

Source: client/elicitation#capabilities, client/sampling#capabilities,
basic/versioning#extension-negotiation (2026-07-28).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from .._wire import STRUCTS, UNWRITABLE, Raw, error_text, is_object, to_builtins
from ..errors import LocalProtocolError
from ..facts import Method
from ..foreign_text import safe_repr
from .lifecycle import declared
from .request_meta import is_reserved_key, is_valid_key

if TYPE_CHECKING:
    from ..revision_facts import Facts

Path: TypeAlias = tuple[str, ...]

CAPABILITY = "extensions"

OFFICIAL_PREFIX = "io.modelcontextprotocol/"
OFFICIAL = frozenset(
    {
        f"{OFFICIAL_PREFIX}enterprise-managed-authorization",
        f"{OFFICIAL_PREFIX}oauth-client-credentials",
        f"{OFFICIAL_PREFIX}tasks",
        f"{OFFICIAL_PREFIX}ui",
    }
)
"""The extensions that the specification's own organization had published when this was written."""

_logger = logging.getLogger(__name__)

_OF_SESSIONS = frozenset({"listChanged", "logging", "subscribe"})
# What a client subscribes to, and the level of log messages, is state of its session.

_ELICITATION, _SAMPLING = "elicitation", "sampling"
_FORM, _URL = "form", "url"


def missing(method: Method, params: Any, capabilities: Mapping[str, Any]) -> Path | None:
    """The first capability that a request requires and that was not declared, or `None`.

    Args:
        method: The request.
        params: Its params: typed, as wire object, or raw JSON.
        capabilities: What the receiver declared.

    Raises:
        LocalProtocolError: The params have no JSON form.
    """
    if method.capability and not declared(capabilities, method.capability):
        return method.capability
    parts = _PARTS.get(method.name)
    return None if parts is None else parts(_wire(params), capabilities)


def _wire(params: Any) -> Mapping[str, Any]:
    plain: Any = params
    try:
        if isinstance(params, Raw):
            plain = msgspec.json.decode(params)
        elif isinstance(params, STRUCTS):
            plain = to_builtins(params)
    except UNWRITABLE as error:
        raise LocalProtocolError(f"params: {error_text(error)}") from error
    return plain if is_object(plain) else {}


def _elicitation(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    """Without `mode` it is a form; a client that names no mode declared forms."""
    mode = params.get("mode", _FORM)
    if mode not in (_FORM, _URL):
        return None  # no mode at all: what the params are read as says so
    named = capabilities.get(_ELICITATION)
    if mode == _FORM and is_object(named) and named.get(_URL) is None:
        return None
    return _lacking(capabilities, (_ELICITATION, mode))


def _sampling(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    if "tools" in params or "toolChoice" in params:
        return _lacking(capabilities, (_SAMPLING, "tools"))
    return None


def _lacking(capabilities: Mapping[str, Any], path: Path) -> Path | None:
    return None if declared(capabilities, path) else path


_PARTS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Path | None]] = {
    "elicitation/create": _elicitation,
    "sampling/createMessage": _sampling,
}


def check_extensions(capabilities: Mapping[str, Any], facts: Facts) -> None:
    """Check the extensions that a side is about to declare.

    Raises:
        ValueError: An identifier has no valid form, or a prefix that is kept for the
            protocol; or its settings are no object.
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
        if is_reserved_key(identifier, facts) and identifier not in OFFICIAL:
            if not identifier.startswith(OFFICIAL_PREFIX):
                raise ValueError(
                    f"extension {identifier!r}: its prefix is reserved for the protocol"
                )
            _logger.warning("extension %r is no official one that is known here", identifier)


def without_session(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities of a server that keeps no sessions: those that need no session."""
    return {
        name: (
            {flag: value for flag, value in members.items() if flag not in _OF_SESSIONS}
            if is_object(members)
            else members
        )
        for name, members in capabilities.items()
        if name not in _OF_SESSIONS
    }


def needs_session(capability: Path) -> bool:
    """Whether a server can have a capability only with sessions."""
    return not _OF_SESSIONS.isdisjoint(capability)


def settings_of(capabilities: Mapping[str, Any], identifier: str) -> Mapping[str, Any] | None:
    """The settings by which a side declares an extension; `None` if it does not."""
    declared = capabilities.get(CAPABILITY)
    settings = declared.get(identifier) if is_object(declared) else None
    return settings if is_object(settings) else None


def merged_objects(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one, merged recursively."""
    merged = dict(base)
    for name, value in more.items():
        old = merged.get(name)
        merged[name] = merged_objects(old, value) if is_object(old) and is_object(value) else value
    return merged
