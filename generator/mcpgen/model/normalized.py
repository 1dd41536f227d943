"""The plain form of a schema: every object and union of objects is a definition with a name.

So a property of a definition is a reference, a scalar, a list, a map or any value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mcpgen.json_types import Json, Node
from mcpgen.schema import Note, Schema
from mcpgen.schema.structure import unescape

ANY_MAP: Node = {"type": "object", "additionalProperties": {}}
"""A map with any members."""

OWN_DEFAULT = "x-own-default"
"""Marks a default of one type only, which distinguishes the type from others."""


@dataclass(frozen=True)
class Fixed:
    """A member whose value is a JSON Schema with one keyword fixed.

    Attributes:
        wire: The member.
        keyword: The keyword.
        value: The value that it must have.
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
        node: Its schema; schemas below `properties` are not nested.
        pointer: Its place in the source; properties lie below.
        tag: The property and value that distinguish it in a union.
        checks: Further checks of its values.
        demanded: The properties that the schema requires, those with a default among them.
        object_types: Properties that are open objects and kept as maps, each with the definition
            that has the members which the schema knows.
    """

    name: str
    node: Node
    pointer: str
    tag: tuple[str, str] | None = None
    checks: tuple[Check, ...] = ()
    demanded: tuple[str, ...] = ()
    object_types: tuple[tuple[str, str], ...] = ()

    @property
    def is_object(self) -> bool:
        """Whether the definition is an object with properties."""
        return "properties" in self.node

    @property
    def properties(self) -> Mapping[str, Node]:
        """The properties of an object; empty for other definitions."""
        properties: Mapping[str, Node] = self.node.get("properties", {})
        return properties

    @property
    def required(self) -> Sequence[str]:
        """The required properties."""
        required: Sequence[str] = self.node.get("required", ())
        return required

    @property
    def members(self) -> Sequence[Node]:
        """The variants of a union, unresolved; empty for other definitions."""
        members: Sequence[Node] = self.node.get("anyOf", ())
        return members


@dataclass(frozen=True)
class NormalizedSchema:
    """A schema in plain form.

    Attributes:
        schema: The published schema.
        definitions: All types by name: those of the source in its order, each followed by its
            inline types.
        notes: The deviations from the published schema.
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
        """The definition with a name, through references; `None` if the name is `None`."""
        return None if name is None else self.resolve(reference(name))

    def reachable(self, names: Iterable[str]) -> Iterator[Definition]:
        """The definitions with some names, and all that they refer to, each once."""
        pending, seen = list(names), set[str]()
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                yield self.definitions[name]
                pending += targets(self.definitions[name].node)

    def allows_null(self, node: Node) -> bool:
        """Whether null is a value of a node, so that absence needs another value."""
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
