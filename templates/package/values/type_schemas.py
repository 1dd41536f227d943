"""Completion of JSON Schemas that msgspec and pydantic make of types.

The definitions of all parts move to the root. Choices get their type and the order of their source,
times get their format, and nested `anyOf` and repeated descriptions are removed.

Source: basic/index#json-schema-usage.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import Annotated, Any, TypeAlias

from .._wire import is_many, is_object
from .type_parts import TypeParts

Schema: TypeAlias = dict[str, Any]

REFERENCE = "#/$defs/{name}"
"""Where a definition stands, as msgspec takes it."""

FORMATS: Mapping[Any, str] = {datetime: "date-time", time: "time"}
"""Formats that msgspec leaves out, since a time may lack its zone."""

_NO_SUBSCHEMA = frozenset({"default", "const", "enum", "examples", "required"})
_SCHEMA_MAPS = frozenset({"properties", "$defs", "patternProperties"})
_MEMBER_OF_ANY_OF = frozenset({"anyOf", "description"})


def complete(schema: Schema, parts: TypeParts) -> Schema:
    """A schema with its definitions at the root, and with what msgspec leaves out.

    The root is a reference only if the type is recursive.

    Args:
        schema: As msgspec makes it; parts may have `$defs` of their own.
        parts: What the type is made of.
    """
    schema = _hoisted(schema)
    _finish(schema, parts)
    definitions = schema.pop("$defs")
    reference = schema.get("$ref", "")
    name = reference.rpartition("/")[2]
    if set(schema) == {"$ref"} and not _mentions([definitions[name], definitions], reference):
        schema = definitions.pop(name)
    return {**schema, "$defs": definitions} if definitions else schema


def accepts(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> frozenset[str]:
    """The JSON types that a schema made here accepts at its root; empty for every type."""
    if "$ref" in schema:
        return accepts(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        members = [accepts(member, definitions) for member in schema["anyOf"]]
        kinds = [kind for member in members for kind in member]
        return frozenset(kinds if all(members) else ())
    return frozenset({schema["type"]} if "type" in schema else ())


def _hoisted(schema: Schema) -> Schema:
    """A schema whose inner `$defs` are moved to its root; equal names of unequal schemas differ."""
    definitions: Schema = {}

    def definition_name(name: str, definition: Any) -> str:
        number = 1
        free = name
        while free in definitions and definitions[free] != definition:
            number += 1
            free = f"{name}{number}"
        return free

    def visit(node: Any, renamed: Mapping[str, str]) -> Any:
        if is_many(node):
            return [visit(each, renamed) for each in node]
        if not is_object(node):
            return node
        inner: Mapping[str, Any] = node.get("$defs", {})
        renamed = {**renamed, **{name: definition_name(name, inner[name]) for name in inner}}
        definitions.update({renamed[name]: definition for name, definition in inner.items()})
        for name, definition in inner.items():
            definitions[renamed[name]] = visit(definition, renamed)
        plain = {
            name: value if name in _NO_SUBSCHEMA else visit(value, renamed)
            for name, value in node.items()
            if name != "$defs"
        }
        if isinstance(plain.get("$ref"), str):
            name = plain["$ref"].rpartition("/")[2]
            plain["$ref"] = REFERENCE.format(name=renamed.get(name, name))
        return plain

    root: Schema = visit(schema, {})
    return {**root, "$defs": definitions}


def _finish(node: Any, parts: TypeParts) -> None:
    """Add what msgspec leaves out, in place: types and order of choices, formats of times."""
    if is_many(node):
        for each in node:
            _finish(each, parts)
        return
    if not _is_schema(node):
        return
    for name, value in node.items():
        if name in _SCHEMA_MAPS:
            for each in value.values():
                _finish(each, parts)
        elif name not in _NO_SUBSCHEMA:
            _finish(value, parts)
    if "enum" in node:
        _finish_choices(node, parts.choices)
    if "anyOf" in node:
        _flatten(node)
    for kind, hints in parts.classes.items():
        if node.get("title") == kind.__name__ and "properties" in node:
            _add_formats(node["properties"], hints)
            if "description" in node:
                node["description"] = inspect.cleandoc(node["description"])


def _finish_choices(node: Schema, orders: Sequence[Sequence[Any]]) -> None:
    values = node["enum"]
    for order in orders:
        if len(order) == len(values) and all(value in order for value in values):
            node["enum"] = list(order)
            break
    kinds = {"string" if isinstance(each, str) else type(each).__name__ for each in values}
    if kinds in ({"string"}, {"int"}):
        node.setdefault("type", "string" if kinds == {"string"} else "integer")


def _flatten(node: Schema) -> None:
    """Replace members of `anyOf` that are nothing but another `anyOf` by their members."""
    members: list[Any] = []
    for each in node["anyOf"]:
        inner: Sequence[Any] = (each,)
        if is_object(each) and "anyOf" in each and _MEMBER_OF_ANY_OF.issuperset(each):
            inner = each["anyOf"]
            if "description" in each:
                node.setdefault("description", each["description"])
        members += [member for member in inner if member not in members]
    for member in members:
        if _is_schema(member) and member.get("description") == node.get("description"):
            member.pop("description", None)
    node["anyOf"] = members


def _add_formats(properties: Schema, hints: Mapping[str, Any]) -> None:
    for name, hint in hints.items():
        members = typing.get_args(hint) if typing.get_origin(hint) is not Annotated else ()
        for kind in (hint, *members):
            if kind in FORMATS and name in properties:
                options = properties[name].get("anyOf", [properties[name]])
                for option in options:
                    if option.get("type") == "string":
                        option.setdefault("format", FORMATS[kind])


def _is_schema(value: object) -> typing.TypeGuard[Schema]:
    return isinstance(value, dict)


def _mentions(value: object, reference: str) -> bool:
    if is_object(value):
        return value.get("$ref") == reference or any(
            _mentions(inner, reference) for inner in value.values()
        )
    return is_many(value) and any(_mentions(inner, reference) for inner in value)
