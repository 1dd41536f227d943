"""The rules for keys in `_meta`: their form, and which are not ours to use.

Source: basic/index#meta.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..errors import LocalProtocolError
from ..foreign_text import safe_repr
from ..revision_facts import Facts

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/(?:{_NAME})?|{_NAME})")
_OWN_LABELS = frozenset({"mcp", "modelcontextprotocol"})

# The forms of W3C Trace Context and W3C Baggage; lists have commas between their members.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_STATE_MEMBER = re.compile(
    r"[a-z0-9][a-z0-9_*/-]{0,255}(@[a-z][a-z0-9_*/-]{0,13})?=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR = re.compile(rf"{_TOKEN}[ \t]*=[ \t]*[!#-+\--:<-\[\]-~]*")
_PROPERTY = re.compile(rf"{_TOKEN}|{_PAIR.pattern}")
_BLANKS = " \t"


def is_valid_key(key: object) -> bool:
    """Whether a key has the prescribed form: an optional prefix and a name."""
    return isinstance(key, str) and _KEY.fullmatch(key) is not None


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
    """Hold what a user puts into `_meta` against the rules of a revision.

    Keys that the revision itself defines may be passed on (a gateway does so).

    Raises:
        LocalProtocolError: A key has no valid form, is kept for the protocol, or is a trace key
            with a value of another format.
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
            return _TRACEPARENT.fullmatch(value) is not None
        case "tracestate":
            return all(_STATE_MEMBER.fullmatch(member) for member in members)
        case _:
            return all(map(_is_baggage, members))


def _is_baggage(member: str) -> bool:
    pair, *properties = (part.strip(_BLANKS) for part in member.split(";"))
    return _PAIR.fullmatch(pair) is not None and all(map(_PROPERTY.fullmatch, properties))
