"""The plain form of a schema: every object and union of objects is a definition with a name.

A property of a definition is then a reference, a scalar, a list, a map or anything at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mcpgen.json_types import Json, Node
from mcpgen.schema import Note, Schema
from mcpgen.schema.structure import unescape

ANY_MAP: Node = {"type": "object", "additionalProperties": {}}
"""A map that keeps whatever it gets."""

OWN_DEFAULT = "x-own-default"
"""Marks a default that is one type's alone, and so tells it from others."""


@dataclass(frozen=True)
class Fixed:
    """A member whose value is a JSON Schema with one keyword fixed.

    Attributes:
        wire: The member.
        keyword: The keyword.
        value: What it must be.
    """

    wire: str
    keyword: str
    value: str


@dataclass(frozen=True)
class Range:
    """A member that is a number within bounds.

    Attributes:
        wire: The member.
        least: The lower bound; `None` for none.
        most: The upper one.
        keywords: The keywords that state the bounds.
    """

    wire: str
    least: float | None
    most: float | None
    keywords: tuple[str, ...] = ("minimum", "maximum")

    @property
    def before(self) -> str:
        """The operator between the lower bound and a value."""
        return "<" if "exclusiveMinimum" in self.keywords else "<="

    @property
    def after(self) -> str:
        """The operator between a value and the upper bound."""
        return "<" if "exclusiveMaximum" in self.keywords else "<="


@dataclass(frozen=True)
class Constant:
    """A member with one value that no `Literal` can hold.

    Attributes:
        wire: The member.
        value: The value.
    """

    wire: str
    value: Json


Check: TypeAlias = Fixed | Range | Constant
"""A check of a member that its type cannot express."""


@dataclass(frozen=True)
class Definition:
    """One named type.

    Attributes:
        name: Its name.
        node: Its schema; below `properties` nothing has a structure of its own.
        pointer: Where the source has it; properties lie below.
        tag: Property and value that tell it from the other members of a union.
        checks: What else its values must hold.
    """

    name: str
    node: Node
    pointer: str
    tag: tuple[str, str] | None = None
    checks: tuple[Check, ...] = ()

    @property
    def is_object(self) -> bool:
        """Whether it is a type of its own, with properties."""
        return "properties" in self.node

    @property
    def properties(self) -> Mapping[str, Node]:
        """The properties of an object; empty for anything else."""
        properties: Mapping[str, Node] = self.node.get("properties", {})
        return properties

    @property
    def required(self) -> Sequence[str]:
        """The properties that must be there."""
        required: Sequence[str] = self.node.get("required", ())
        return required

    @property
    def members(self) -> Sequence[Node]:
        """The variants of a union, as they stand; empty for anything else."""
        members: Sequence[Node] = self.node.get("anyOf", ())
        return members


@dataclass(frozen=True)
class NormalizedSchema:
    """A schema in plain form.

    Attributes:
        schema: What it was made from.
        definitions: All types by name: the source's in its order, each followed by the inline
            ones it holds.
        notes: What of the schema was read as something else than it says.
    """

    schema: Schema
    definitions: Mapping[str, Definition]
    notes: tuple[Note, ...] = ()

    def resolve(self, node: Node) -> Definition | None:
        """The definition that a node refers to, through references to references."""
        seen: Definition | None = None
        while "$ref" in node:
            seen = self.definitions[target(node)]
            node = seen.node
        return seen

    def definition(self, name: str | None) -> Definition | None:
        """The definition under a name, through references; `None` for no name."""
        return None if name is None else self.resolve(reference(name))

    def reachable(self, names: Iterable[str]) -> Iterator[Definition]:
        """The definitions under some names, and those that they refer to, each once."""
        pending, seen = list(names), set[str]()
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                yield self.definitions[name]
                pending += targets(self.definitions[name].node)

    def allows_null(self, node: Node) -> bool:
        """Whether null is a value that a node describes: then absence has to be told from it."""
        pending, seen = [node], set[str]()
        while pending:
            node = pending.pop()
            if "$ref" in node:
                name = target(node)
                if name not in seen:
                    pending.append(self.definitions[name].node)
                seen.add(name)
            elif "anyOf" in node:
                pending += node["anyOf"]
            elif "const" in node or "enum" in node:
                if None in node.get("enum", [node.get("const", "")]):
                    return True
            elif node.get("type", "null") == "null":
                return True
        return False


def targets(node: Node) -> Iterator[str]:
    """The names that a node refers to."""
    if "$ref" in node:
        yield target(node)
    below = (node.get("items"), node.get("additionalProperties"))
    for child in (*node.get("properties", {}).values(), *node.get("anyOf", ()), *below):
        if child:
            yield from targets(child)


def target(node: Node) -> str:
    """The name that a reference refers to, in either dialect."""
    where: str = node["$ref"]
    return unescape(where.rpartition("/")[2])


def reference(name: str) -> Node:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}
