"""Queries on published schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from mcpgen.json_types import Json, Node, is_object
from mcpgen.model.normalized import Range, target
from mcpgen.schema.keywords import types

META = "_meta"
_UNIONS = ("anyOf", "oneOf")


def canonical(node: Json) -> str:
    """A text that is equal for equal schemas, independent of the order of keys."""
    return json.dumps(node, sort_keys=True)


def variants(node: Json) -> Sequence[Node]:
    """The alternatives of a union; empty for anything else."""
    for keyword in _UNIONS:
        if is_object(node) and keyword in node:
            alternatives: Sequence[Node] = node[keyword]
            return alternatives
    return ()


def union_keyword(node: Node) -> str:
    """The keyword under which a union has its alternatives."""
    return next(keyword for keyword in _UNIONS if keyword in node)


def flat(members: Sequence[Node]) -> list[Node]:
    """Members of a union with nested unions flattened, each once."""
    distinct: list[Node] = []
    for member in members:
        parts: Sequence[Node] = member.get("anyOf", [member])
        distinct += [part for part in parts if part not in distinct]
    return distinct


def is_number(node: Json) -> bool:
    """Whether a schema allows any number, or any integer."""
    return is_object(node) and node.get("type") in ("integer", "number")


def only_demands(node: Json) -> bool:
    """Whether a schema only requires members of an object, without a type of its own."""
    return is_object(node) and node.keys() <= {"required", "not"}


def properties(node: Node) -> Mapping[str, Node]:
    """The properties of an object, by name."""
    by_name: Mapping[str, Node] = node.get("properties", {})
    return by_name


def is_inline(node: Json) -> bool:
    """Whether a schema is an object with properties of its own, and no reference."""
    return is_object(node) and "$ref" not in node and bool(node.get("properties"))


def is_open(node: Node) -> bool:
    """Whether an object is declared open."""
    return node.get("additionalProperties") in ({}, True)


def refers_to_open(node: Json, definitions: Mapping[str, Node]) -> bool:
    """Whether a schema is a reference to an object that is declared open."""
    return is_object(node) and "$ref" in node and is_open(definitions[target(node)])


def declares_members(node: Json) -> bool:
    """Whether an object with named members declares what its further members are."""
    if not is_object(node) or not properties(node):
        return False
    return is_object(node.get("additionalProperties")) and not is_open(node)


def says_nothing(node: Node) -> bool:
    """Whether an object is declared open, and has no named member except `_meta`."""
    return is_open(node) and set(properties(node)) <= {META}


def is_json_schema(node: Node) -> bool:
    """Whether the values of an object are JSON Schemas, by its untyped members."""
    known = properties(node)
    speaks = "$schema" in known or known.get("type", {}).get("const") == "object"
    return speaks and "$ref" not in json.dumps(known)


def fixed_type(node: Node) -> str | None:
    """The value that `type` must have in a JSON Schema that is a value; `None` if any."""
    value: Json = properties(node).get("type", {}).get("const")
    return value if isinstance(value, str) and "type" in node.get("required", ()) else None


def bounds(wire: str, node: Json) -> Range | None:
    """The bounds of a number; a type of both integers and floats cannot carry them."""
    if not is_object(node) or node.get("type") != "number":
        return None
    stated = [
        next((key for key in pair if key in node), "")
        for pair in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    ]
    if not any(stated):
        return None
    least, most = (node.get(key) for key in stated)
    return Range(wire, least, most, tuple(key for key in stated if key))


def is_json_value(node: Node) -> bool:
    """Whether a recursive union allows every kind of JSON value."""
    kinds = {kind for variant in variants(node) for kind in types(variant)}
    return {"string", "boolean"} <= kinds and bool({"integer", "number"} & kinds)


def holds(definitions: Mapping[str, Node], name: str, node: Json) -> bool:
    """Whether a schema leads back to a name through references, unions, lists and maps only."""
    left: list[Json] = [node]
    seen: set[str] = set()
    while left:
        part = left.pop()
        if not is_object(part):
            continue
        if "$ref" not in part:
            left += [*variants(part), part.get("items"), part.get("additionalProperties")]
            left += part.get("allOf", ())
        elif (other := target(part)) == name:
            return True
        elif other not in seen:
            seen.add(other)
            left.append(definitions[other])
    return False


def below(node: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """A schema and its nested schemas, each with the path of properties; not through unions."""
    if not is_object(node):
        return
    yield path, node
    for keyword in ("items", "additionalProperties"):
        yield from below(node.get(keyword), path)
    for wire, child in properties(node).items():
        yield from below(child, (*path, wire))
