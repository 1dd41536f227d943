"""The alternatives that a schema allows at one place, however the schema is written.

References, names of types, the order of members and the nesting of unions do not affect the
alternatives, so rewriting a schema does not change them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from mcpgen.json_types import Json, Node, is_object
from mcpgen.model.normalized import ANY_MAP, Definition, NormalizedSchema, target
from mcpgen.model.schema_queries import META, canonical
from mcpgen.schema.structure import BOUNDS, escape, resolve

_MAX_ALIASES = 100
"""Limit of the references that are followed in a row."""


@dataclass(frozen=True)
class Scalar:
    """Any value of a JSON type other than object and array; `any` is every JSON value.

    Attributes:
        type: The type: `string`, `integer`, `number`, `boolean`, `null` or `any`.
        bounds: Keywords that limit the values, such as `minLength`.
    """

    type: str
    bounds: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def key(self) -> str:
        """A key that is equal for equal scalars."""
        return f"{self.type} {canonical(dict(self.bounds))}"

    def __str__(self) -> str:
        return self.type


@dataclass(frozen=True)
class Literal:
    """One fixed value, as JSON text."""

    text: str

    @property
    def key(self) -> str:
        """A key that is equal for equal values."""
        return f"= {self.text}"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Array:
    """An array.

    Attributes:
        items: The schema of its items.
        bounds: Keywords that limit the number of items.
    """

    items: Node
    bounds: Mapping[str, Json]

    @property
    def key(self) -> str:
        """A key that is equal for arrays with equal schemas."""
        return f"array {canonical(self.items)} {canonical(dict(self.bounds))}"

    def __str__(self) -> str:
        return "array"


@dataclass(frozen=True)
class Object:
    """An object.

    Attributes:
        name: Its name, if the schema gives it one.
        key: Equal for equal objects: the name of the type, or the schema as text.
        fields: Schemas of its members.
        required: Names of the required members.
        rest: The schema of all other members; `None` if no others are allowed.
        open: Whether the schema explicitly allows any other member.
    """

    name: str | None
    key: str
    fields: Mapping[str, Node]
    required: frozenset[str]
    rest: Node | None
    open: bool

    def __str__(self) -> str:
        return self.name or "object"


Alternative: TypeAlias = Scalar | Literal | Array | Object
"""One alternative of the values at a place."""

ANY = Scalar("any")
EMPTY = Object(None, "{}", {}, frozenset(), {}, open=False)
"""An object about which the schema says nothing."""


class Alternatives:
    """The alternatives at each place of one schema.

    The plain form of a schema replaces objects that generated code need not know by maps; for these
    objects, the published schema is read.

    Args:
        normal: The schema in plain form.
    """

    def __init__(self, normal: NormalizedSchema) -> None:
        self._normal = normal
        self._published: Node = {"$defs": dict(normal.schema.definitions)}
        self._objects: dict[str, Object | None] = {}

    @cached_property
    def _meta_types(self) -> Mapping[str, str]:
        """Names of the types for inline `_meta` objects, by the object's schema."""
        return {
            canonical(self._at(definition.pointer)): name
            for name, definition in self._normal.definitions.items()
            if definition.pointer.endswith(f"/{META}")
        }

    def of(self, node: Json) -> tuple[Alternative, ...]:
        """The alternatives of a schema, each once."""
        by_key = {alternative.key: alternative for alternative in self._alternatives(node, 0)}
        return (ANY,) if ANY.key in by_key else tuple(by_key.values())

    def object(self, name: str) -> Object | None:
        """The object type with a name; `None` for other types."""
        if name not in self._objects:
            definition = self._normal.resolve({"$ref": f"#/$defs/{name}"})
            self._objects[name] = None if definition is None else self._named_object(definition)
        return self._objects[name]

    def _named_object(self, definition: Definition) -> Object | None:
        if definition.is_object:
            fields = {wire: self._field(definition, wire) for wire in definition.properties}
            published = self._at(definition.pointer)
            return self._build(definition, fields, definition.required, published)
        node = self._node(definition)
        if is_object(node.get("properties")):
            return self._build(definition, node["properties"], node.get("required", ()), node)
        return None

    def _build(
        self,
        definition: Definition | None,
        fields: Mapping[str, Node],
        required: Sequence[str],
        node: Node,
    ) -> Object:
        rest: Json = node.get("additionalProperties", {})
        is_open = "additionalProperties" in node and rest in ({}, True)
        name = definition.name if definition is not None else None
        return Object(
            name=name if name in self._normal.schema.definitions else None,
            key=name or canonical(node),
            fields=fields,
            required=frozenset(required) & fields.keys(),
            rest=None if rest is False else rest if is_object(rest) else {},
            open=is_open,
        )

    def _field(self, definition: Definition, wire: str) -> Node:
        node = definition.properties[wire]
        checked = wire in {check.wire for check in definition.checks}
        if node != ANY_MAP and not checked:
            return node
        published = self._at(f"{definition.pointer}/properties/{escape(wire)}")
        return published or node

    def _node(self, definition: Definition) -> Node:
        """The schema of a definition; the published one if the plain form has none."""
        if definition.node != ANY_MAP:
            return definition.node
        return self._at(definition.pointer) or definition.node

    def _at(self, pointer: str) -> Node:
        try:
            node = resolve(self._published, pointer)
        except (LookupError, TypeError):
            return {}  # made from several places, or by mcpgen itself
        return node if is_object(node) else {}

    def _alternatives(self, node: Json, depth: int) -> Iterator[Alternative]:
        if not is_object(node) or depth > _MAX_ALIASES:
            yield ANY
        elif "$ref" in node:
            yield from self._behind_reference(target(node), depth)
        elif "const" in node:
            yield Literal(canonical(node["const"]))
        elif "enum" in node:
            yield from (Literal(canonical(value)) for value in node["enum"])
        elif variants := node.get("anyOf", node.get("oneOf")):
            for variant in variants:
                yield from self._alternatives(variant, depth + 1)
        else:
            types: Json = node.get("type", [])
            kinds = [types] if isinstance(types, str) else types
            if not kinds:
                kinds = ["object"] if "properties" in node else ["any"]
            for kind in kinds:
                yield from self._of_type(kind, node)

    def _behind_reference(self, name: str, depth: int) -> Iterator[Alternative]:
        definition = self._normal.definitions.get(name)
        if definition is None:
            yield ANY
        elif (named := self.object(name)) is not None:
            yield named
        else:
            yield from self._alternatives(self._node(definition), depth + 1)

    def _of_type(self, kind: str, node: Node) -> Iterator[Alternative]:
        bounds = {key: node[key] for key in BOUNDS if key in node}
        if kind == "array":
            items: Json = node.get("items", {})
            yield Array(items if is_object(items) else {}, bounds)
        elif kind == "number":  # the plain form says both
            yield Scalar("integer", bounds)
            yield Scalar("number", bounds)
        elif kind != "object":
            yield Scalar(kind, bounds)
        elif (name := self._meta_types.get(canonical(node))) and node.get("properties"):
            yield from self._behind_reference(name, 0)
        else:
            yield self._build(None, node.get("properties", {}), node.get("required", ()), node)


def describe(alternatives: Sequence[Alternative]) -> str:
    """Alternatives in words: `integer | string`, `TextContent | ImageContent`, `array`."""
    texts = list(dict.fromkeys(map(str, alternatives)))
    if "number" in texts and "integer" in texts:
        texts.remove("integer")
    return " | ".join(sorted(texts)) or "nothing"
