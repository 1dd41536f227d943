"""Rules of elicitation, sampling and roots that the types of their messages do not state.

A server checks its requests and the responses; a client checks the answers of its user and its
model. Values were decoded by the types of the revision before. A form of an elicitation is a flat
schema of fields; messages of sampling have a prescribed order; a root is a file.

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
    """The error of the values of a form; `None` if they are valid.

    Values of fields that the form does not have are allowed, as in JSON Schema.
    """
    for name in schema.get("required", ()):
        if name not in content:
            return f"{safe_text(name)}: expected a value, got none"
    for name, field in schema.get("properties", {}).items():
        if name in content and (wrong := field_complaint(field, content[name])):
            return f"{safe_text(name)}: {wrong}"
    return None


def field_complaint(field: Schema, value: Any) -> str | None:
    """The error of the value of one field; `None` if it is valid."""
    check = _CHECKS.get(field.get("type", ""))
    return None if check is None else check(field, value)


def _check_text(field: Schema, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"expected text, got {safe_repr(value)}"
    choices = _choices(field)
    if choices is not None:
        return _check_choice(choices, value)
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


def _check_number(field: Schema, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or _is_infinite(value):
        return f"expected a number, got {safe_repr(value)}"
    if value < field.get("minimum", value):
        return f"expected at least {safe_repr(field['minimum'])}, got {safe_repr(value)}"
    if value > field.get("maximum", value):
        return f"expected at most {safe_repr(field['maximum'])}, got {safe_repr(value)}"
    return None


def _is_infinite(value: float) -> bool:
    """Whether a number is NaN or infinite; integers of any size are finite."""
    return isinstance(value, float) and not math.isfinite(value)


def _check_integer(field: Schema, value: Any) -> str | None:
    if isinstance(value, float) and not value.is_integer():
        return f"expected an integer, got {safe_repr(value)}"
    return _check_number(field, value)


def _check_boolean(field: Schema, value: Any) -> str | None:
    return None if isinstance(value, bool) else f"expected true or false, got {safe_repr(value)}"


def _check_list(field: Schema, value: Any) -> str | None:
    if not is_many(value):
        return f"expected a list, got {safe_repr(value)}"
    count = len(value)
    if count < field.get("minItems", 0):
        return f"expected at least {field['minItems']} of the choices, got {count}"
    if count > field.get("maxItems", count):
        return f"expected at most {field['maxItems']} of the choices, got {count}"
    choices = _choices(field["items"]) or []
    return next((wrong for item in value if (wrong := _check_choice(choices, item))), None)


def _choices(field: Schema) -> Sequence[Any] | None:
    """The allowed values of a field; `None` if the field is not a choice."""
    if "enum" in field:
        listed: Sequence[Any] = field["enum"]
        return listed
    titled = field.get("oneOf", field.get("anyOf"))
    return None if titled is None else [each["const"] for each in titled if is_object(each)]


def _check_choice(choices: Sequence[Any], value: Any) -> str | None:
    if value in choices:
        return None
    return f"expected one of {safe_list([str(each) for each in choices])}, got {safe_repr(value)}"


def _is_date(text: str) -> bool:
    return bool(_DATE.fullmatch(text)) and _can_parse(datetime.date.fromisoformat, text)


def _is_date_time(text: str) -> bool:
    return bool(_DATE_TIME.fullmatch(text)) and _can_parse(datetime.datetime.fromisoformat, text)


def _can_parse(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text.upper())
    except ValueError:
        return False
    return True


_CHECKS: Mapping[str, Callable[[Schema, Any], str | None]] = {
    "string": _check_text,
    "number": _check_number,
    "integer": _check_integer,
    "boolean": _check_boolean,
    "array": _check_list,
}

_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "email": lambda text: bool(_EMAIL.fullmatch(text)),
    "uri": is_uri,
    "date": _is_date,
    "date-time": _is_date_time,
}
FORMATS = frozenset(_FORMATS)
"""Formats that a field of text may have."""


def blocks_of(message: Message) -> Sequence[Mapping[str, Any]]:
    """The content blocks of a message; a single block counts as a list of one."""
    content: object = message["content"]
    return content if is_many(content) else [message["content"]]


def messages_complaint(messages: Sequence[Message]) -> str | None:
    """The error of the messages of a sampling request; `None` if they are valid.

    Args:
        messages: Wire objects, oldest first.
    """
    due: set[str] = set()
    for at, message in enumerate(messages):
        blocks = blocks_of(message)
        wrong = message_complaint(message) or _results_complaint(due, blocks)
        if wrong:
            return f"messages[{at}]: {wrong}"
        due = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return f"the last message leaves {_format_ids(due)} without a result" if due else None


def message_complaint(message: Message) -> str | None:
    """The error of one message, regardless of the others; `None` if it is valid."""
    role: str = message["role"]
    kinds = {block["type"] for block in blocks_of(message)}
    for kind in kinds & _SPEAKER.keys():
        if role != _SPEAKER[kind]:
            return f"expected {kind} from the {_SPEAKER[kind]}, got it from the {role}"
    if "tool_result" in kinds and kinds != {"tool_result"}:
        return f"expected results of tools alone, got {safe_list(sorted(kinds))}"
    return None


def _results_complaint(due: set[str], blocks: Sequence[Mapping[str, Any]]) -> str | None:
    results = [block["toolUseId"] for block in blocks if block["type"] == "tool_result"]
    if missing := due - set(results):
        return f"expected a result for {_format_ids(missing)} first"
    if unknown := set(results) - due:
        return f"there is no use of a tool just before for the result of {_format_ids(unknown)}"
    if len(results) > len(due):
        return "expected one result for each use of a tool, got more"
    return None


def _format_ids(ids: set[str]) -> str:
    return safe_list([safe_repr(each) for each in sorted(ids)])


def root_complaint(uri: str) -> str | None:
    """The error of the URI of a root; `None` if it is valid."""
    if uri[:7].lower() != "file://" or not is_uri(uri):
        return f"expected a file:// URI, got {safe_repr(uri)}"
    if has_parent_segment(uri):
        return f"expected a path without '..', got {safe_repr(uri)}"
    return None
