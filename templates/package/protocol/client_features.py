"""Rules of elicitation, sampling and roots that the types of their messages do not state.

A server checks what it is about to ask and the answer to it, a client the answers of its user and
its model. What is checked was read as the revision's own type before. A form of an elicitation is a
flat schema of fields; messages of sampling follow one another in a certain order; a root is a file.

Source: client/elicitation#requested-schema, client/sampling#message-content-constraints,
client/roots#root.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .._wire import is_many, is_object
from ..foreign_text import has_parent_segment, is_uri, safe_list, safe_repr, safe_text

Schema: TypeAlias = Mapping[str, Any]
Message: TypeAlias = Mapping[str, Any]

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2})?.*")

_SPEAKER = {"tool_use": "assistant", "tool_result": "user"}


def content_complaint(schema: Schema, content: Mapping[str, Any]) -> str | None:
    """The error of the values of a filled-in form, or `None`.

    Fields that the form does not have are let through, as JSON Schema does it.
    """
    for name in schema.get("required", ()):
        if name not in content:
            return f"{safe_text(name)}: expected a value, got none"
    for name, field in schema.get("properties", {}).items():
        if name in content and (wrong := field_complaint(field, content[name])):
            return f"{safe_text(name)}: {wrong}"
    return None


def field_complaint(field: Schema, value: Any) -> str | None:
    """The error of the value of one field, or `None`."""
    check = _CHECKS.get(field.get("type", ""))
    return None if check is None else check(field, value)


def _text(field: Schema, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"expected text, got {safe_repr(value)}"
    choices = _choices(field)
    if choices is not None:
        return _chosen(choices, value)
    length = len(value)
    if length < field.get("minLength", 0):
        return f"expected at least {field['minLength']} characters, got {length}"
    if length > field.get("maxLength", length):
        return f"expected at most {field['maxLength']} characters, got {length}"
    kind = field.get("format", "")
    fits = _FORMATS.get(kind)
    if fits is not None and not fits(value):
        return f"expected text of the format {kind}, got {safe_repr(value)}"
    return None


def _number(field: Schema, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_endless(value):
        return f"expected a number, got {safe_repr(value)}"
    if value < field.get("minimum", value):
        return f"expected at least {safe_repr(field['minimum'])}, got {safe_repr(value)}"
    if value > field.get("maximum", value):
        return f"expected at most {safe_repr(field['maximum'])}, got {safe_repr(value)}"
    return None


def _is_endless(value: float) -> bool:
    """Whether it is NaN or infinite; integers never are, also those that no float can hold."""
    return isinstance(value, float) and not math.isfinite(value)


def _integer(field: Schema, value: Any) -> str | None:
    if isinstance(value, float) and not value.is_integer():
        return f"expected an integer, got {safe_repr(value)}"
    return _number(field, value)


def _boolean(field: Schema, value: Any) -> str | None:
    return None if isinstance(value, bool) else f"expected true or false, got {safe_repr(value)}"


def _several(field: Schema, value: Any) -> str | None:
    if not is_many(value):
        return f"expected a list, got {safe_repr(value)}"
    count = len(value)
    if count < field.get("minItems", 0):
        return f"expected at least {field['minItems']} of the choices, got {count}"
    if count > field.get("maxItems", count):
        return f"expected at most {field['maxItems']} of the choices, got {count}"
    choices = _choices(field["items"]) or []
    return next((wrong for item in value if (wrong := _chosen(choices, item))), None)


def _choices(field: Schema) -> Sequence[Any] | None:
    """The values that a choice allows; `None` if it is no choice."""
    if "enum" in field:
        listed: Sequence[Any] = field["enum"]
        return listed
    titled = field.get("oneOf", field.get("anyOf"))
    return None if titled is None else [each["const"] for each in titled if is_object(each)]


def _chosen(choices: Sequence[Any], value: Any) -> str | None:
    if value in choices:
        return None
    return f"expected one of {safe_list([str(each) for each in choices])}, got {safe_repr(value)}"


def _is_date(text: str) -> bool:
    return bool(_DATE.fullmatch(text)) and _parses(datetime.date.fromisoformat, text)


def _is_date_time(text: str) -> bool:
    return bool(_DATE_TIME.fullmatch(text)) and _parses(datetime.datetime.fromisoformat, text)


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text.upper())
    except ValueError:
        return False
    return True


_CHECKS: Mapping[str, Callable[[Schema, Any], str | None]] = {
    "string": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "array": _several,
}

_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "email": lambda text: bool(_EMAIL.fullmatch(text)),
    "uri": is_uri,
    "date": _is_date,
    "date-time": _is_date_time,
}
FORMATS = frozenset(_FORMATS)
"""Formats that a field of text may ask for."""


def blocks_of(message: Message) -> Sequence[Mapping[str, Any]]:
    """The content of a message, as a list even if it is one block."""
    content: object = message["content"]
    return content if is_many(content) else [message["content"]]


def messages_complaint(messages: Sequence[Message]) -> str | None:
    """The error of messages in a row, or `None`.

    Args:
        messages: Wire objects, oldest first.
    """
    due: set[str] = set()
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        wrong = message_complaint(message) or _unbalanced(due, blocks)
        if wrong:
            return f"messages[{at}]: {wrong}"
        due = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return f"the last message leaves {_named(due)} without a result" if due else None


def message_complaint(message: Message) -> str | None:
    """The error of a message by itself, or `None`."""
    role: str = message["role"]
    kinds = {block["type"] for block in blocks_of(message)}
    for kind in kinds & _SPEAKER.keys():
        if role != _SPEAKER[kind]:
            return f"expected {kind} from the {_SPEAKER[kind]}, got it from the {role}"
    if "tool_result" in kinds and kinds != {"tool_result"}:
        return f"expected results of tools alone, got {safe_list(sorted(kinds))}"
    return None


def _unbalanced(due: set[str], blocks: Sequence[Mapping[str, Any]]) -> str | None:
    given = [block["toolUseId"] for block in blocks if block["type"] == "tool_result"]
    if missing := due - set(given):
        return f"expected a result for {_named(missing)} first"
    if unasked := set(given) - due:
        return f"there is no use of a tool just before for the result of {_named(unasked)}"
    if len(given) > len(due):
        return "expected one result for each use of a tool, got more"
    return None


def _named(ids: set[str]) -> str:
    return safe_list([safe_repr(each) for each in sorted(ids)])


def root_complaint(uri: str) -> str | None:
    """The error of a URI that can't be that of a root, or `None`."""
    if uri[:7].lower() != "file://" or not is_uri(uri):
        return f"expected a file:// URI, got {safe_repr(uri)}"
    if has_parent_segment(uri):
        return f"expected a path without '..', got {safe_repr(uri)}"
    return None
