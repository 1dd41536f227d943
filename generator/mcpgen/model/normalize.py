"""The second stage: a published schema in its plain form.

Every inline object and union becomes a type with a name while it is taken out of its owner: whether
an object is a map also depends on a later revision having a name for it.

Objects that a schema does not restrict become maps, so that no member is lost: `_meta`, JSON
Schemas as values, and open objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcpgen import names
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model import places, schema_queries
from mcpgen.model.all_of import AllOf
from mcpgen.model.core_names import core_names
from mcpgen.model.deviations import Deviations
from mcpgen.model.inline_names import InlineNames
from mcpgen.model.normalized import (
    ANY_MAP,
    OWN_DEFAULT,
    Check,
    Constant,
    Definition,
    Fixed,
    NormalizedSchema,
    reference,
    target,
)
from mcpgen.model.places import Place
from mcpgen.model.schema_queries import META, canonical
from mcpgen.schema import Schema, keywords
from mcpgen.schema.facts import Facts

DIRECTIONS = ("ClientRequest", "ClientNotification", "ServerRequest", "ServerNotification")
"""The unions that tell the sender of each message."""

_VERSION, _PARAMS = "protocolVersion", "params"
_NO_FIELD = re.compile(r'[\x00-\x1f"\\]')
"""Characters that msgspec refuses in the name of a field."""
_SCALARS = frozenset({"string", "integer", "boolean", "null"})


def normalize(
    schema: Schema,
    facts: Facts,
    newer_definitions: Sequence[Mapping[str, Node]] = (),
    *,
    for_python: bool = True,
) -> NormalizedSchema:
    """Bring a schema into plain form.

    Args:
        schema: One revision.
        facts: Its facts: defaults, and names that changed later.
        newer_definitions: The definitions of the revisions after it, oldest first, for their names.
        for_python: Whether to leave out members whose names cannot be field names.

    Raises:
        SchemaError: The schema contains something that is no schema.
    """
    deviations = Deviations()
    inline = InlineNames(schema, facts.renamed, newer_definitions)
    walk = _Walk(schema, facts, inline, deviations, AllOf(schema, deviations), for_python)
    definitions = _add_tags(walk.run())
    return NormalizedSchema(schema, definitions, (*schema.notes, *deviations.all()))


@dataclass
class _Walk:
    schema: Schema
    facts: Facts
    naming: InlineNames
    deviations: Deviations
    all_of: AllOf
    for_python: bool
    definitions: dict[str, Definition] = field(default_factory=dict[str, Definition])
    object_types: dict[str, str] = field(default_factory=dict[str, str])
    """Definitions with the known members of open objects, by the pointer of the object."""

    def run(self) -> dict[str, Definition]:
        published = self.schema.definitions
        self.made = frozenset(name for group in core_names().owners.values() for name in group)
        self.anything = frozenset(
            name
            for name, node in published.items()
            if schema_queries.variants(node) and schema_queries.holds(published, name, node)
        )
        self.twins = {
            canonical(node): name
            for name, node in published.items()
            if schema_queries.variants(node) or schema_queries.variants(node.get("items"))
        }
        for name in sorted(self.anything):
            if not schema_queries.is_json_value(published[name]):
                self.deviations.any_value(places.of_definition(name), "a union of itself")
        for name, node in published.items():
            place = places.of_definition(name)
            if not names.is_class_name(name):
                raise self.schema.error(
                    place.pointer, "a name that Python can use", format_value(name)
                )
            self.define(
                name, {} if name in self.anything else self.refer_to_twin(name, node), place
            )
        return self.definitions

    def define(self, name: str, node: Node, place: Place) -> None:
        """Add a definition, its name before its body, since it may refer to itself."""
        if name in self.definitions:
            if self.definitions[name].pointer != place.pointer:
                self.deviations.repeat(self.definitions[name].pointer, place.pointer)
            return
        self.definitions[name] = Definition(name, {}, place.pointer)
        if keywords.binds(node) == {"$ref"}:
            self.definitions[name] = Definition(name, reference(target(node)), place.pointer)
            return
        node = self.all_of.shape(node, place)
        if "$ref" not in node and schema_queries.variants(node):
            self.definitions[name] = Definition(name, self.union(node, place), place.pointer)
        elif schema_queries.properties(node) and not (
            schema_queries.says_nothing(node) and place.is_published
        ):
            self.definitions[name] = self.object(node, place, name)
        else:
            self.definitions[name] = Definition(name, self.plain(node, place), place.pointer)

    def refer_to_twin(self, name: str, node: Node) -> Node:
        """A reference in place of a direction union that is equal to another definition."""
        if name in DIRECTIONS and schema_queries.properties(node):
            for other, candidate in self.schema.definitions.items():
                if other != name and candidate == node:
                    return reference(other)
        return node

    def object(self, node: Node, place: Place, name: str) -> Definition:
        if not keywords.types(node):
            self.deviations.note(place, "no type, taken as object", lossy=False)
        self.deviations.account_members(node, place)
        checks: list[Check] = []
        members: dict[str, Node] = {}
        required: list[str] = []
        object_types: dict[str, str] = {}
        demanded: Sequence[str] = node.get("required", ())
        for wire, child in schema_queries.properties(node).items():
            at = self.all_of.member(place, wire)
            if keywords.is_impossible(child) and wire not in demanded:
                self.deviations.note(at, "no value is valid, left out")
                continue
            if self.lacks_field(wire):
                self.deviations.note(
                    at, "a name that no field can have, left out: encoding drops the member"
                )
                continue
            plain = self.member_type(child, at, checks)
            if at.pointer in self.object_types:
                object_types[wire] = self.object_types[at.pointer]
            has_default = wire in demanded or wire in self.facts.defaults.get(name, {})
            default = self.default(name, wire) if has_default else {}
            if wire in demanded and not default:
                required.append(wire)
            members[wire] = {**plain, **default}
        for wire in demanded:
            if wire not in members and not self.lacks_field(wire):  # a default of any type
                members[wire] = {}
                required.append(wire)
        return Definition(
            name,
            {"type": "object", "properties": members, "required": required},
            place.pointer,
            checks=tuple(checks),
            demanded=tuple(wire for wire in demanded if wire in members),
            object_types=tuple(object_types.items()),
        )

    def lacks_field(self, wire: str) -> bool:
        """Whether no field can have the name of a member."""
        return self.for_python and _NO_FIELD.search(wire) is not None

    def member_type(self, child: Node, at: Place, checks: list[Check]) -> Node:
        """The type of a member; adds checks for keywords that the type cannot express."""
        wire = at.path[-1]
        span = schema_queries.bounds(wire, child)
        if span is not None:
            checks.append(span)
            self.deviations.account(child, at, "type", *span.keywords)
            child = {"type": "number"}
        elif is_object(child) and "const" in child and not keywords.is_literal(child["const"]):
            self.deviations.account(child, at, "type", "const")
            checks.append(Constant(wire, child["const"]))
            if isinstance(child["const"], bool):
                return {"const": child["const"]}
            child = keywords.type_of(child["const"])
        plain = self.property(child, at)
        fixed = schema_queries.fixed_type(child) if plain == ANY_MAP else None
        if fixed is not None:
            checks.append(Fixed(wire, "type", fixed))
        return plain

    def default(self, name: str, wire: str) -> Node:
        """The default of a member that peers leave out, or that a package sends."""
        default = self.facts.default(name, wire)
        if default is None:
            return {}
        # a text distinguishes the definition in a union; a number or boolean does not
        own = isinstance(default, str) and wire in self.facts.defaults.get(name, {})
        return {"default": default, OWN_DEFAULT: True} if own else {"default": default}

    def property(self, node: Json, place: Place) -> Node:
        """The plain form of a property, or a map if any member must be kept."""
        if place.path[-1] == META:
            self.name_meta(node, place)
            return ANY_MAP
        if schema_queries.refers_to_open(node, self.schema.definitions):
            if not schema_queries.says_nothing(self.schema.definitions[target(node)]):
                text = f"declared open, kept as a map of JSON values, which {target(node)} can read"
                self.deviations.note(place, text)
                self.object_types[place.pointer] = target(node)
            return ANY_MAP
        if place.path != (_PARAMS,) and (kept := self.with_further_members(node, place)):
            return kept
        if place.path[-1] == _VERSION and schema_queries.is_number(node):
            self.deviations.note(
                place, "the number of a version, taken as a number or a text: it may be a date"
            )
            return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        return self.plain(node, place)

    def with_further_members(self, node: Json, place: Place) -> Node | None:
        """A map for an object whose further members are data; `None` for any other schema.

        Objects that a package makes itself have types: their further members are dropped.
        """
        name = target(node) if is_object(node) and "$ref" in node else ""
        whole = self.schema.definitions[name] if name else node
        if name in self.made or not schema_queries.declares_members(whole):
            return None
        reader = f", which {name} can read" if name else ""
        if name:
            self.object_types[place.pointer] = name
        text = f"declares further members, kept as a map of JSON values{reader}"
        self.deviations.note(place, text)
        return ANY_MAP

    def name_meta(self, node: Json, place: Place) -> None:
        """Define a type for the keys of a `_meta` object, if there is a name for it."""
        name = self.naming.official(place.owner, place.path)
        if is_object(node) and "$ref" in node:
            self.object_types[place.pointer] = target(node)
        elif name is not None:
            self.object_types[place.pointer] = name
        if not schema_queries.is_inline(node):
            if not keywords.binds(node) <= {"$ref", "type"}:
                self.deviations.note(place, "_meta, kept as a map of JSON values")
        elif name is None:
            self.deviations.note(place, "the members of _meta, kept as a map of JSON values")
        elif name not in self.schema.definitions:
            self.define(name, node, place)

    def union(self, node: Node, place: Place) -> Node:
        keyword = schema_queries.union_keyword(node)
        if keyword == "oneOf":
            self.deviations.note(place.below(keyword), "taken as anyOf", lossy=False)
        self.deviations.account(node, place, keyword, *self.all_of.shared_type(node))
        members: list[Node] = []
        for index, variant in enumerate(schema_queries.variants(node)):
            at = place.below(f"{keyword}/{index}")
            if keywords.is_impossible(variant):
                self.deviations.note(at, "no value is valid, left out")
            else:
                members.append(self.variant(variant, at))
        return {"anyOf": schema_queries.flat(members)}

    def variant(self, node: Node, place: Place) -> Node:
        if not schema_queries.is_inline(node):
            return self.plain(node, place)
        constants = [
            child["const"] for child in schema_queries.properties(node).values() if "const" in child
        ]
        labels = [*map(str, constants), *node.get("required", ()), *schema_queries.properties(node)]
        return self.name_inline(node, Place(place.owner, (*place.path, labels[0]), place.pointer))

    def plain(self, published: Json, place: Place) -> Node:
        """The plain form of a schema below a definition."""
        if published is True:
            return {}
        if keywords.is_impossible(published):
            return self.deviations.any_value(place, "no value is valid")
        if not is_object(published):
            raise self.schema.error(
                place.pointer, "a schema that is an object", format_value(published)
            )
        node = self.all_of.shape(published, place)
        if "$ref" in node:
            return {} if target(node) in self.anything else reference(target(node))
        if "const" in node or "enum" in node:
            return self.values(node, place)
        twin = self.twins.get(canonical(node))
        if twin is not None and not place.is_published:
            self.deviations.repeat(places.of_definition(twin).pointer, place.pointer)
            return reference(twin)
        if schema_queries.variants(node):
            return self.name_inline(node, place)
        return self.of_kinds(node, place)

    def values(self, node: Node, place: Place) -> Node:
        """The schema of a constant, or of values that are listed."""
        keyword = "const" if "const" in node else "enum"
        self.deviations.account(node, place, "type", keyword)
        values: list[Json] = [node["const"]] if "const" in node else node["enum"]
        literals = [value for value in values if keywords.is_literal(value)]
        if len(literals) == len(values):
            shape: Node = {key: node[key] for key in ("type", "enum") if key in node}
            return {"const": literals[0]} if keyword == "const" else shape
        kinds = [keywords.type_of(value) for value in values if not keywords.is_literal(value)]
        if literals or not all(isinstance(value, bool) for value in values) or len(values) < 2:
            self.deviations.note(place.below(keyword), "values that no type lists, not checked")
        if {"type": "number"} in kinds:
            literals = [value for value in literals if not isinstance(value, int)]
        members = [self.of_kinds(kind, place) for kind in kinds]
        return _any_of([*([{"enum": literals}] if literals else []), *members])

    def of_kinds(self, node: Node, place: Place) -> Node:
        """The plain form of a schema without union or reference at its top, by its types."""
        kinds = keywords.types(node)
        if not kinds and (implied := keywords.implied_type(node)) is not None:
            self.deviations.note(place, f"no type, taken as {implied}", lossy=False)
            kinds = [implied]
        if kinds != ["object"] or not schema_queries.properties(node):
            bounds = (key for kind in kinds for key in self.bounds(kind, node, place))
            shape = {"object": keywords.OF_OBJECT, "array": {"items"}}
            carried = (key for kind in kinds for key in shape.get(kind, ()))
            self.deviations.account(node, place, "type", *bounds, *carried)
        return _any_of([self.kind(kind, node, place) for kind in kinds])

    def bounds(self, kind: str, node: Node, place: Place) -> Node:
        """The bounds that a type expresses at its place."""
        return keywords.bounds(kind, node) if kind != "object" or place.has_bounds else {}

    def kind(self, kind: str, node: Node, place: Place) -> Node:
        bounds = self.bounds(kind, node, place)
        if kind == "number":  # 1 stays an integer and 1.0 a float
            return {"anyOf": [{"type": "integer"}, {"type": "number"}]}
        if kind in _SCALARS:
            return {"type": kind, **bounds}
        if kind == "array":
            return {**self.array(node, place), **bounds}
        return self.map(node, place)

    def array(self, node: Node, place: Place) -> Node:
        items: Json = node.get("items", {})
        if "prefixItems" in node or is_array(items):
            self.deviations.note(place.below("items"), "a tuple, taken as a list of JSON values")
            return {"type": "array", "items": {}}
        if keywords.is_impossible(items):
            return {"type": "array", "items": {}, "maxItems": 0}
        at = place.below("items")
        return {
            "type": "array",
            "items": self.with_further_members(items, at) or self.plain(items, at),
        }

    def map(self, node: Node, place: Place) -> Node:
        if schema_queries.properties(node):
            is_map = schema_queries.says_nothing(node) or schema_queries.is_json_schema(node)
            if is_map and self.naming.official(place.owner, place.path) is None:
                if schema_queries.is_json_schema(node):
                    self.deviations.note(
                        place, "a JSON Schema as a value, taken as a map of JSON values"
                    )
                return ANY_MAP
            return self.name_inline(node, place)
        bounds = self.bounds("object", node, place)
        if node.get("required"):
            self.deviations.note(place.below("required"), "not checked")
        extra: Json = node.get("additionalProperties")
        if extra is False:
            self.deviations.note(place.below("additionalProperties"), "not checked")
        if not is_object(extra):
            return {**ANY_MAP, **bounds}
        at = place.below("additionalProperties")
        inner = self.with_further_members(extra, at) or self.plain(extra, at)
        return {"type": "object", "additionalProperties": inner, **bounds}

    def name_inline(self, node: Node, place: Place) -> Node:
        """A reference to the definition that an inline object or union becomes."""
        name, official = self.naming.choose(place, node)
        if name not in self.schema.definitions:
            self.define(name, node, Place(name, (), place.pointer) if official else place)
        return reference(name)


def _any_of(members: Sequence[Node]) -> Node:
    """A union of schemas, with nested unions flattened; any value for no schema."""
    if len(members) < 2:
        return members[0] if members else {}
    return {"anyOf": schema_queries.flat(members)}


def _add_tags(definitions: Mapping[str, Definition]) -> dict[str, Definition]:
    """Choose the tag of each object: the property with a const that has the most values."""
    values: dict[str, set[str]] = {}
    for definition in definitions.values():
        for wire, value in _constant_texts(definition):
            values.setdefault(wire, set()).add(value)
    tagged: dict[str, Definition] = {}
    for name, definition in definitions.items():
        constants = sorted(_constant_texts(definition), key=lambda pair: -len(values[pair[0]]))
        tagged[name] = replace(definition, tag=constants[0] if constants else None)
    return tagged


def _constant_texts(definition: Definition) -> list[tuple[str, str]]:
    """Required properties with one fixed text.

    Only ASCII texts: msgspec refuses tags with other characters.
    """
    return [
        (wire, child["const"])
        for wire, child in definition.properties.items()
        if isinstance(child.get("const"), str) and wire in definition.required
        if wire.isascii() and child["const"].isascii()
    ]
