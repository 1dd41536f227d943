"""Validation by flat schemas, without a library and in little time.

A flat schema describes an object whose members have only a JSON type, such as the output schema of
a function that returns a `str`. `validation` handles all other schemas, with the feature `schemas`.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from .._wire import is_many, is_object
from ..absence import missing_text
from ..errors import McpError, MissingExtraError
from ..foreign_text import join_errors, safe_repr, safe_text
from . import WRAPPED_MARKER, Complaint, Deadline, JsonSchema

MEMBERS = 50
"""Most members and required names of a flat schema."""

_ROOT = frozenset({"type", "properties", "required", "title", "description", WRAPPED_MARKER})
_MEMBER = frozenset({"type", "title", "description"})


def _is_integer(value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "array": is_many,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": is_object,
    "string": lambda value: isinstance(value, str),
}


def flat_complaint(schema: Mapping[str, Any]) -> Callable[[Any], str | None] | None:
    """The check of values by a flat schema: returns errors in one line; `None` if it is not flat.

    The error texts are those of `validation`.
    """
    if not _is_plain(schema, _ROOT) or schema.get("type") != "object":
        return None
    properties: object = schema.get("properties", {})
    required: object = schema.get("required", [])
    if not (is_object(properties) and is_many(required)):
        return None
    if len(properties) > MEMBERS or len(required) > MEMBERS:
        return None
    if not all(isinstance(name, str) for name in required) or len(set(required)) < len(required):
        return None
    types: dict[str, str] = {}
    for name, member in properties.items():
        kind: object = member.get("type") if is_object(member) else None
        if not isinstance(kind, str) or kind not in _CHECKS or not _is_plain(member, _MEMBER):
            return None
        types[name] = kind
    return partial(_complaint, types, required)


def _is_plain(schema: Mapping[str, Any], keywords: frozenset[str]) -> bool:
    """Whether a schema has no other keywords, and title and description are strings."""
    return keywords.issuperset(schema) and all(
        isinstance(schema.get(name, ""), str) for name in ("title", "description")
    )


def _complaint(types: Mapping[str, str], required: Sequence[str], value: Any) -> str | None:
    if not is_object(value):
        return f"{safe_repr(value)} is not of type 'object'"
    errors = [
        f"{safe_text(name)}: {safe_repr(value[name])} is not of type {kind!r}"
        for name, kind in types.items()
        if name in value and not _CHECKS[kind](value[name])
    ]
    errors += [
        f"{safe_repr(name)} is a required property" for name in required if name not in value
    ]
    return join_errors(errors) or None


class MissingSchemasError(MissingExtraError):
    """The package was generated without the feature that a schema needs."""

    def __init__(self, what: str) -> None:
        McpError.__init__(self, missing_text(what, "schemas"))
        self.package = "jsonschema"


async def validator_in_time(schema: JsonSchema, feature: str, deadline: Deadline) -> Complaint:
    """Raises `MissingSchemasError`: the schema is not flat."""
    raise MissingSchemasError(feature)


async def complaint_in_time(complaint: Complaint, value: Any, deadline: Deadline) -> str | None:
    """The error of a value, or `None`."""
    return complaint(value)
