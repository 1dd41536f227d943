"""JSON Schemas of tools: made from types, or handed in and then looked over.

Source: server/tools (Tool), basic/index#json-schema-usage.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..._wire import is_many, is_object


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
