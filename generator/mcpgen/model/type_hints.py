"""Python types of schemas in plain form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcpgen.json_types import Json, Node
from mcpgen.literals import Code, literal
from mcpgen.model.normalized import target

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOKEN = re.compile(rf"{_STRING}|(?P<open>\[)|(?P<close>\])|(?P<bar> \| )")
_NAME = re.compile(rf"{_STRING}|(?<![.\w])(?P<name>[^\W\d]\w*)")


@dataclass(frozen=True)
class Containers:
    """The notation of lists, maps and definitions.

    Attributes:
        array: The type of a list.
        map: The type of a map.
        prefix: The prefix of the name of a definition.
        core: Definitions of the revision, where the types of an extension are written.
    """

    array: str
    map: str
    prefix: str = "models."
    core: frozenset[str] = frozenset()

    def type_named(self, name: str) -> Code:
        """The type of a definition."""
        return Code(f"core.{name}" if name in self.core else f"{self.prefix}{name}")


GIVEN = Containers("Sequence", "Mapping")
"""For arguments, which may be any sequence and mapping."""

HELD = Containers("list", "dict")
"""For results, with the types of the models."""

MERGED = Containers("list", "dict", "")
"""For the module of the merged models itself."""


def annotation(node: Node, containers: Containers = HELD) -> Code:
    """The type of a property; bounds are left out."""
    if "$ref" in node:
        return containers.type_named(target(node))
    if "const" in node:
        return _literal([node["const"]])
    if "enum" in node:
        return _literal(node["enum"])
    if "anyOf" in node:
        return union(annotation(member, containers) for member in node["anyOf"])
    match node.get("type"):
        case "array":
            return Code(f"{containers.array}[{annotation(node['items'], containers)}]")
        case "object":
            inner = annotation(node.get("additionalProperties", {}), containers)
            return Code(f"{containers.map}[str, {inner}]")
        case str() as kind:
            return Code(_SCALARS[kind])
        case _:
            return Code("Any")


def union(types: Iterable[str]) -> Code:
    """The union of types, each once, `None` last."""
    parts = dict.fromkeys(part for kind in types for part in _parts(kind))
    return Code(" | ".join(sorted(parts, key=lambda part: part == "None")))


def names_in(kind: str) -> list[str]:
    """The names that a type refers to; only the first part of a dotted name; none of strings."""
    return [match["name"] for match in _NAME.finditer(kind) if match["name"]]


def _parts(kind: str) -> list[str]:
    """The members of a written union; types within brackets are not split."""
    parts: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(kind):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if token["bar"] and not depth:
            parts.append(kind[start : token.start()])
            start = token.end()
    return [*parts, kind[start:]]


def _literal(values: Sequence[Json]) -> Code:
    return Code(f"Literal[{', '.join(literal(value) for value in values)}]")
