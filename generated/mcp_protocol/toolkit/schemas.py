"""JSON Schemas of tools: made from types, or handed in and then looked over.

Source: server/tools (Tool), basic/index#json-schema-usage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..json_schema import JsonSchema
from .kinds import is_many, is_object

HEADER_MARK = "x-mcp-header"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type, its root not a reference unless it is recursive.

    Raises:
        TypeError: The type has no JSON form, or a union could not be told apart when decoded.
    """
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    components: dict[str, Any] = dict(parts)
    reference = root.get("$ref", "")
    name = reference.rpartition("/")[2]
    if set(root) == {"$ref"} and not _mentions([components[name], parts], reference):
        root = components.pop(name)
    return {**root, "$defs": components} if components else dict(root)


def _mentions(value: object, reference: str) -> bool:
    if is_object(value):
        return value.get("$ref") == reference or any(
            _mentions(inner, reference) for inner in value.values()
        )
    return is_many(value) and any(_mentions(inner, reference) for inner in value)


def check_object_root(schema: object, what: str) -> dict[str, Any]:
    """The schema as a dict.

    Raises:
        ValueError: Not an object, or its root has not `type: "object"`.
    """
    root = schema.get("type") if is_object(schema) else None
    if not is_object(schema) or root != "object":
        got = f"type {root!r}" if root is not None else repr(schema)
        raise ValueError(f'{what}: expected a JSON Schema with type "object", got {got}')
    return dict(schema)


def check_header_marks(schema: JsonSchema) -> None:
    """Check the parameters marked to be mirrored into HTTP headers.

    Source: server/tools#x-mcp-header (2026-07-28).

    Raises:
        ValueError: A mark is malformed, used twice, or where it may not be.
    """
    seen: dict[str, str] = {}
    reachable: list[int] = []
    for path, part in _reachable(schema, ""):
        reachable.append(id(part))
        if HEADER_MARK in part:
            _check_mark(path, part, seen)
    for part in _objects(schema):
        if HEADER_MARK in part and id(part) not in reachable:
            raise ValueError(
                f"{HEADER_MARK} {part[HEADER_MARK]!r}: expected on a property reached through "
                "`properties` alone"
            )


def _check_mark(path: str, part: JsonSchema, seen: dict[str, str]) -> None:
    name = part[HEADER_MARK]
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"{path}: {HEADER_MARK}: expected an HTTP token, got {name!r}")
    if part.get("type") not in ("integer", "string", "boolean"):
        raise ValueError(
            f"{path}: {HEADER_MARK}: expected type integer, string or boolean, "
            f"got {part.get('type')!r}"
        )
    if name.lower() in seen:
        raise ValueError(f"{path}: {HEADER_MARK} {name!r} is also on {seen[name.lower()]}")
    seen[name.lower()] = path


def _reachable(schema: JsonSchema, path: str) -> Iterator[tuple[str, JsonSchema]]:
    """Property schemas that a chain of `properties` leads to, with their paths."""
    properties: object = schema.get("properties")
    for name, part in properties.items() if is_object(properties) else ():
        if is_object(part):
            yield f"{path}{name}", part
            yield from _reachable(part, f"{path}{name}.")


def _objects(value: object) -> Iterator[JsonSchema]:
    """Every JSON object in a value, the value included."""
    if is_object(value):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif is_many(value):
        for inner in value:
            yield from _objects(inner)
