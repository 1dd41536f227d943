"""Types of Python for schemas in plain form, as the models have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcpgen.jsonvalues import Json, Node
from mcpgen.plain import target

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


@dataclass(frozen=True)
class Containers:
    """What lists and maps are called."""

    array: str
    map: str


GIVEN = Containers("Sequence", "Mapping")
"""For arguments: any list and map will do."""

HELD = Containers("list", "dict")
"""For results: what the models hold."""


def annotation(node: Node, containers: Containers = HELD) -> str:
    """The type of a property, definitions written as `models.Name`; bounds are left out."""
    if "$ref" in node:
        return f"models.{target(node)}"
    if "const" in node:
        return _literal([node["const"]])
    if "enum" in node:
        return _literal(node["enum"])
    if "anyOf" in node:
        return union(annotation(member, containers) for member in node["anyOf"])
    match node.get("type"):
        case "array":
            return f"{containers.array}[{annotation(node['items'], containers)}]"
        case "object":
            inner = annotation(node.get("additionalProperties", {}), containers)
            return f"{containers.map}[str, {inner}]"
        case str() as kind:
            return _SCALARS[kind]
        case _:
            return "Any"


def union(types: Iterable[str]) -> str:
    """Several types as one, each named once."""
    return " | ".join(dict.fromkeys(part for kind in types for part in _parts(kind)))


def _parts(kind: str) -> list[str]:
    """The members of a union that is already written; what is inside brackets stays whole."""
    parts = [""]
    depth = 0
    for token in kind.split(" | "):
        parts[-1] = f"{parts[-1]} | {token}" if depth else token
        depth += token.count("[") - token.count("]")
        if not depth:
            parts.append("")
    return parts[:-1]


def _literal(values: Sequence[Json]) -> str:
    return f"Literal[{', '.join(repr(value) for value in values)}]"
