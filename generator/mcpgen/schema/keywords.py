"""The keywords of JSON Schema, by their treatment in a package.

A keyword is expressed by a type, limits a type, or annotates. Keywords in none of the tables,
unknown ones included, are noted with their pointers when a schema is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.schema.structure import ANNOTATIONS as _PROSE

ANNOTATIONS = _PROSE | {
    *("$schema", "$id", "$anchor", "$vocabulary", "format", "deprecated", "readOnly", "writeOnly"),
    *("contentEncoding", "contentMediaType", "contentSchema"),
}
"""Keywords that allow every value: descriptions, which become docstrings, and other notes."""

OF_OBJECT = frozenset({"properties", "required", "additionalProperties"})
"""Keywords that a type with members, or a map, expresses."""

_IMPLYING: Mapping[str, frozenset[str]] = {
    "object": OF_OBJECT | {"patternProperties", "propertyNames", "minProperties", "maxProperties"},
    "array": frozenset({"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"}),
}
"""Keywords that imply the type of a schema without one."""

_BOUNDS: Mapping[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "integer": frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    ),
    "array": frozenset({"minItems", "maxItems"}),
    "object": frozenset({"minProperties", "maxProperties"}),
}
"""Keywords that limit the values of a type; numbers are checked by their object."""

_EITHER = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
"""Pairs of keywords of which a type expresses one."""

_LARGEST = 2**63
"""The exclusive limit of integer bounds in a type."""


def bounds(kind: str, node: Node) -> dict[str, Json]:
    """The keywords of a schema that a type of a kind expresses as bounds."""
    carried = {
        key: node[key] for key in sorted(_BOUNDS.get(kind, ())) if key in node and _fits(node[key])
    }
    for first, second in _EITHER:
        if first in carried:
            carried.pop(second, None)
    return carried


def _fits(value: Json) -> bool:
    return isinstance(value, str) or -_LARGEST < value < _LARGEST


def types(node: Node) -> list[str]:
    """The types in the keyword `type` of a schema."""
    named: Json = node.get("type", [])
    return [named] if isinstance(named, str) else named


def has_bounds(node: Node) -> bool:
    """Whether the type for a schema is written with bounds."""
    return any(bounds(kind, node) for kind in types(node))


def implied_type(node: Node) -> str | None:
    """The implied type of a schema without `type`; `None` for any type."""
    return next((kind for kind, keys in _IMPLYING.items() if keys & node.keys()), None)


def binds(node: Node) -> Set[str]:
    """The keywords of a schema that restrict values."""
    return frozenset(key for key, value in node.items() if not _allows_all(key, value))


def lost_keywords(node: Node, carried: Collection[str]) -> list[str]:
    """The restricting keywords of a schema that a type does not express, in its order."""
    binding = binds(node)
    return [key for key in node if key in binding and key not in carried]


def _allows_all(key: str, value: Json) -> bool:
    """Whether a keyword with a value allows every JSON value."""
    if key in ANNOTATIONS or (key == "uniqueItems" and value is False):
        return True
    return key in ("additionalProperties", "items") and (value is True or value == {})


def is_impossible(node: Json) -> bool:
    """Whether no value is valid by a schema: `false`, or `{"not": {}}`."""
    if not is_object(node):
        return node is False
    refused: Json = node.get("not")
    return refused is True or (is_object(refused) and not refused)


def is_literal(value: Json) -> bool:
    """Whether a `Literal` can hold a constant."""
    return value is None or isinstance(value, str) or type(value) is int


def type_of(value: Json) -> Node:
    """The type of a constant that no `Literal` can hold."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, float | int):
        return {"type": "number"}
    return {"type": "array"} if is_array(value) else {"type": "object"}
