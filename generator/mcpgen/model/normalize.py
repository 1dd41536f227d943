"""Brings a published schema into its plain form.

The name of an inline object or union is that of its owner plus the properties that lead to it. If a
later revision refers to an official definition at the same place, earlier revisions use that name
too.

Objects that a schema does not restrict become maps, so that no member is lost: `_meta`, JSON
Schemas as values, and open objects.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TypeAlias

from mcpgen import names
from mcpgen.errors import format_value
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.model import schema_queries
from mcpgen.model.core_names import core_names
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
from mcpgen.model.schema_queries import META, canonical
from mcpgen.schema import Note, Schema, keywords
from mcpgen.schema.facts import Facts
from mcpgen.schema.structure import escape

DIRECTIONS = ("ClientRequest", "ClientNotification", "ServerRequest", "ServerNotification")
"""The unions that tell the sender of each message."""

_VERSION, _PARAMS = "protocolVersion", "params"
_REST = "additionalProperties"
_NO_FIELD = re.compile(r'[\x00-\x1f"\\]')
"""Characters that msgspec refuses in the name of a field."""
_SCALARS = frozenset({"string", "integer", "boolean", "null"})
_NO_OBJECT = frozenset({"anyOf", "oneOf", "enum", "const", "items"})
"""Keywords of schemas that cannot be merged into one object."""
_SHAPE = _NO_OBJECT | keywords.OF_OBJECT | {"$ref"}
_WITH_MEMBERS = ("type", "properties", "required")
"""Keywords that a type with members expresses."""

_Spot: TypeAlias = tuple[str, tuple[str, ...]]
"""A definition, and the properties that lead from it to a place."""

_ROLE_NAMES = {
    "implementation": "Implementation",
    "client_capabilities": "ClientCapabilities",
    "server_capabilities": "ServerCapabilities",
    "meta": "RequestMetaObject",
}
_ROLE_MEMBERS: Mapping[str, Sequence[tuple[str, str]]] = {
    "implementation": (
        ("InitializeRequestParams", "clientInfo"),
        ("RequestMetaObject", "io.modelcontextprotocol/clientInfo"),
    ),
    "client_capabilities": (
        ("InitializeRequestParams", "capabilities"),
        ("RequestMetaObject", "io.modelcontextprotocol/clientCapabilities"),
    ),
    "server_capabilities": (
        ("InitializeResult", "capabilities"),
        ("DiscoverResult", "capabilities"),
    ),
    "meta": (("RequestParams", META),),
}
_EMPTY_OBJECT: Node = {"type": "object", "properties": {}, "required": []}


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
    walk = _Walk(schema, facts, _Naming(schema, facts, newer_definitions), for_python)
    definitions = _add_tags(walk.run())
    return NormalizedSchema(schema, definitions, (*schema.notes, *walk.notes.values()))


@dataclass(frozen=True)
class _Place:
    """The place of a schema: a definition, the properties below it, and a pointer for messages."""

    owner: str
    path: tuple[str, ...]
    pointer: str

    def member(self, wire: str) -> _Place:
        pointer = f"{self.pointer}/properties/{escape(wire)}"
        return _Place(self.owner, (*self.path, wire), pointer)

    def below(self, part: str) -> _Place:
        return _Place(self.owner, self.path, f"{self.pointer}/{part}")

    @property
    def name(self) -> str:
        return self.owner + "".join(names.pascal(wire) for wire in self.path)

    @property
    def is_published(self) -> bool:
        """Whether the place is a published definition, not a schema within one."""
        return self.pointer.count("/") == len(("", "$defs"))

    @property
    def has_bounds(self) -> bool:
        """Whether a map at this place is written with bounds: as a definition or a member."""
        return self.is_published or self.pointer.rpartition("/")[0].endswith("/properties")


class _Naming:
    """Names for inline schemas."""

    def __init__(
        self, schema: Schema, facts: Facts, newer_definitions: Sequence[Mapping[str, Node]]
    ) -> None:
        self._schema = schema
        self._renamed = facts.renamed
        self._later = [_references(definitions) for definitions in newer_definitions]
        self._shared: dict[tuple[str, str], str] = {}
        self._taken = {name: canonical(node) for name, node in schema.definitions.items()}
        for name, node in schema.definitions.items():
            for path, child in schema_queries.below(node):
                official = self.official(name, path) if schema_queries.is_inline(child) else None
                if official is not None:
                    self._shared.setdefault((path[-1], canonical(child)), official)

    def official(self, owner: str, path: tuple[str, ...]) -> str | None:
        """The definition that the nearest later revision refers to at a place."""
        owners = [name for name in (self._renamed.get(owner), owner) if name]
        for spots in self._later:
            for name in owners:
                if path and (name, path) in spots:
                    return spots[name, path]
        return None

    def choose(self, place: _Place, node: Node) -> tuple[str, bool]:
        """The name for an inline schema, and whether the name is official.

        A name that another schema has gets the suffix `Item` for items, else a number.
        """
        text = canonical(node)
        last = place.path[-1] if place.path else ""
        official = self.official(place.owner, place.path) or self._shared.get((last, text))
        if official is not None and self._taken.setdefault(official, text) == text:
            return official, True
        name = place.name if place.path else f"{place.owner}Item"
        if self._taken.get(name, text) != text and place.pointer.endswith("/items"):
            name = f"{name}Item"
        others = {taken for taken, other in self._taken.items() if other != text}
        name = names.free_name(name, others)
        self._taken[name] = text
        return name, False


@dataclass
class _Walk:
    schema: Schema
    facts: Facts
    naming: _Naming
    for_python: bool
    definitions: dict[str, Definition] = field(default_factory=dict[str, Definition])
    whole: dict[str, tuple[Node, _Place]] = field(default_factory=dict[str, "tuple[Node, _Place]"])
    notes: dict[str, Note] = field(default_factory=dict[str, Note])
    origins: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Pointers of members from an `allOf`, by the pointer of the merged object and their name."""
    object_types: dict[str, str] = field(default_factory=dict[str, str])
    """Definitions with the known members of open objects, by the pointer of the object."""
    repeats: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Pointers of schemas, each with the pointer of an inline schema that shares its type."""

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
                self.any_value(_whole(name), "a union of itself")
        for name, node in published.items():
            place = _whole(name)
            if not names.is_class_name(name):
                raise self.schema.error(
                    place.pointer, "a name that Python can use", format_value(name)
                )
            self.define(
                name, {} if name in self.anything else self.refer_to_twin(name, node), place
            )
        self.repeat_notes()
        return self.definitions

    def define(self, name: str, node: Node, place: _Place) -> None:
        """Add a definition, its name before its body, since it may refer to itself."""
        if name in self.definitions:
            if self.definitions[name].pointer != place.pointer:
                self.repeats.append((self.definitions[name].pointer, place.pointer))
            return
        self.definitions[name] = Definition(name, {}, place.pointer)
        if keywords.binds(node) == {"$ref"}:
            self.definitions[name] = Definition(name, reference(target(node)), place.pointer)
            return
        node = self.shape(node, place)
        if "$ref" not in node and schema_queries.variants(node):
            self.definitions[name] = Definition(name, self.union(node, place), place.pointer)
        elif schema_queries.properties(node) and not (
            schema_queries.says_nothing(node) and place.is_published
        ):
            self.definitions[name] = self.object(node, place, name)
        else:
            self.definitions[name] = Definition(name, self.plain(node, place), place.pointer)

    def repeat_notes(self) -> None:
        """Repeat the notes about a schema for inline schemas that share its type."""
        notes = sorted(self.notes.items(), key=itemgetter(0))
        for first, again in self.repeats:
            at = bisect_left(notes, first, key=itemgetter(0))
            while at < len(notes) and notes[at][0].startswith(first):
                pointer, note = notes[at]
                rest = pointer.removeprefix(first)
                if rest[:1] in ("", "/"):
                    self.notes.setdefault(again + rest, replace(note, pointer=again + rest))
                at += 1

    def refer_to_twin(self, name: str, node: Node) -> Node:
        """A reference in place of a direction union that is equal to another definition."""
        if name in DIRECTIONS and schema_queries.properties(node):
            for other, candidate in self.schema.definitions.items():
                if other != name and candidate == node:
                    return reference(other)
        return node

    def object(self, node: Node, place: _Place, name: str) -> Definition:
        self.account_members(node, place)
        checks: list[Check] = []
        members: dict[str, Node] = {}
        required: list[str] = []
        object_types: dict[str, str] = {}
        demanded: Sequence[str] = node.get("required", ())
        for wire, child in schema_queries.properties(node).items():
            at = self.member(place, wire)
            if keywords.is_impossible(child) and wire not in demanded:
                self.note(at, "no value is valid, left out")
                continue
            if self.lacks_field(wire):
                self.note(at, "a name that no field can have, left out: encoding drops the member")
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

    def member_type(self, child: Node, at: _Place, checks: list[Check]) -> Node:
        """The type of a member; adds checks for keywords that the type cannot express."""
        wire = at.path[-1]
        span = schema_queries.bounds(wire, child)
        if span is not None:
            checks.append(span)
            self.account(child, at, "type", *span.keywords)
            child = {"type": "number"}
        elif is_object(child) and "const" in child and not keywords.is_literal(child["const"]):
            self.account(child, at, "type", "const")
            checks.append(Constant(wire, child["const"]))
            if isinstance(child["const"], bool):
                return {"const": child["const"]}
            child = keywords.type_of(child["const"])
        plain = self.property(child, at)
        fixed = schema_queries.fixed_type(child) if plain == ANY_MAP else None
        if fixed is not None:
            checks.append(Fixed(wire, "type", fixed))
        return plain

    def member(self, place: _Place, wire: str) -> _Place:
        """The place of a member, which an `allOf` may have taken in."""
        at = place.member(wire)
        return replace(at, pointer=self.origins.get((place.pointer, wire), at.pointer))

    def default(self, name: str, wire: str) -> Node:
        """The default of a member that peers leave out, or that a package sends."""
        default = self.facts.default(name, wire)
        if default is None:
            return {}
        # a text distinguishes the definition in a union; a number or boolean does not
        own = isinstance(default, str) and wire in self.facts.defaults.get(name, {})
        return {"default": default, OWN_DEFAULT: True} if own else {"default": default}

    def property(self, node: Json, place: _Place) -> Node:
        """The plain form of a property, or a map if any member must be kept."""
        if place.path[-1] == META:
            self.name_meta(node, place)
            return ANY_MAP
        if schema_queries.refers_to_open(node, self.schema.definitions):
            if not schema_queries.says_nothing(self.schema.definitions[target(node)]):
                text = f"declared open, kept as a map of JSON values, which {target(node)} can read"
                self.note(place, text)
                self.object_types[place.pointer] = target(node)
            return ANY_MAP
        if place.path != (_PARAMS,) and (kept := self.with_further_members(node, place)):
            return kept
        if place.path[-1] == _VERSION and schema_queries.is_number(node):
            self.note(
                place, "the number of a version, taken as a number or a text: it may be a date"
            )
            return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        return self.plain(node, place)

    def with_further_members(self, node: Json, place: _Place) -> Node | None:
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
        self.note(place, text)
        return ANY_MAP

    def name_meta(self, node: Json, place: _Place) -> None:
        """Define a type for the keys of a `_meta` object, if there is a name for it."""
        name = self.naming.official(place.owner, place.path)
        if is_object(node) and "$ref" in node:
            self.object_types[place.pointer] = target(node)
        elif name is not None:
            self.object_types[place.pointer] = name
        if not schema_queries.is_inline(node):
            if not keywords.binds(node) <= {"$ref", "type"}:
                self.note(place, "_meta, kept as a map of JSON values")
        elif name is None:
            self.note(place, "the members of _meta, kept as a map of JSON values")
        elif name not in self.schema.definitions:
            self.define(name, node, place)

    def union(self, node: Node, place: _Place) -> Node:
        keyword = schema_queries.union_keyword(node)
        if keyword == "oneOf":
            self.note(place.below(keyword), "taken as anyOf", lossy=False)
        self.account(node, place, keyword, *self.shared_type(node))
        members: list[Node] = []
        for index, variant in enumerate(schema_queries.variants(node)):
            at = place.below(f"{keyword}/{index}")
            if keywords.is_impossible(variant):
                self.note(at, "no value is valid, left out")
            else:
                members.append(self.variant(variant, at))
        return {"anyOf": schema_queries.flat(members)}

    def shared_type(self, node: Node) -> tuple[str, ...]:
        """The keyword `type` if all alternatives of a union imply it."""
        own = set(keywords.types(node))
        variants = schema_queries.variants(node)
        return ("type",) if all(self.kinds(each) <= own for each in variants) else ()

    def kinds(self, node: Node) -> set[str]:
        """The types of JSON values that a schema allows; empty if it names none."""
        seen: set[str] = set()
        while "$ref" in node and target(node) not in seen:
            seen.add(target(node))
            node = self.schema.definitions[target(node)]
        stated = keywords.types(node)
        return set(stated) if stated else {keywords.implied_type(node) or ""}

    def variant(self, node: Node, place: _Place) -> Node:
        if not schema_queries.is_inline(node):
            return self.plain(node, place)
        constants = [
            child["const"] for child in schema_queries.properties(node).values() if "const" in child
        ]
        labels = [*map(str, constants), *node.get("required", ()), *schema_queries.properties(node)]
        return self.name_inline(node, _Place(place.owner, (*place.path, labels[0]), place.pointer))

    def plain(self, published: Json, place: _Place) -> Node:
        """The plain form of a schema below a definition."""
        if published is True:
            return {}
        if keywords.is_impossible(published):
            return self.any_value(place, "no value is valid")
        if not is_object(published):
            raise self.schema.error(
                place.pointer, "a schema that is an object", format_value(published)
            )
        node = self.shape(published, place)
        if "$ref" in node:
            return {} if target(node) in self.anything else reference(target(node))
        if "const" in node or "enum" in node:
            return self.values(node, place)
        twin = self.twins.get(canonical(node))
        if twin is not None and not place.is_published:
            self.repeats.append((_whole(twin).pointer, place.pointer))
            return reference(twin)
        if schema_queries.variants(node):
            return self.name_inline(node, place)
        return self.of_kinds(node, place)

    def values(self, node: Node, place: _Place) -> Node:
        """The schema of a constant, or of values that are listed."""
        keyword = "const" if "const" in node else "enum"
        self.account(node, place, "type", keyword)
        values: list[Json] = [node["const"]] if "const" in node else node["enum"]
        literals = [value for value in values if keywords.is_literal(value)]
        if len(literals) == len(values):
            shape: Node = {key: node[key] for key in ("type", "enum") if key in node}
            return {"const": literals[0]} if keyword == "const" else shape
        kinds = [keywords.type_of(value) for value in values if not keywords.is_literal(value)]
        if literals or not all(isinstance(value, bool) for value in values) or len(values) < 2:
            self.note(place.below(keyword), "values that no type lists, not checked")
        if {"type": "number"} in kinds:
            literals = [value for value in literals if not isinstance(value, int)]
        members = [self.of_kinds(kind, place) for kind in kinds]
        return _any_of([*([{"enum": literals}] if literals else []), *members])

    def of_kinds(self, node: Node, place: _Place) -> Node:
        """The plain form of a schema without union or reference at its top, by its types."""
        kinds = keywords.types(node)
        if not kinds and (implied := keywords.implied_type(node)) is not None:
            self.note(place, f"no type, taken as {implied}", lossy=False)
            kinds = [implied]
        if kinds != ["object"] or not schema_queries.properties(node):
            bounds = (key for kind in kinds for key in self.bounds(kind, node, place))
            shape = {"object": keywords.OF_OBJECT, "array": {"items"}}
            carried = (key for kind in kinds for key in shape.get(kind, ()))
            self.account(node, place, "type", *bounds, *carried)
        return _any_of([self.kind(kind, node, place) for kind in kinds])

    def bounds(self, kind: str, node: Node, place: _Place) -> Node:
        """The bounds that a type expresses at its place."""
        return keywords.bounds(kind, node) if kind != "object" or place.has_bounds else {}

    def kind(self, kind: str, node: Node, place: _Place) -> Node:
        bounds = self.bounds(kind, node, place)
        if kind == "number":  # 1 stays an integer and 1.0 a float
            return {"anyOf": [{"type": "integer"}, {"type": "number"}]}
        if kind in _SCALARS:
            return {"type": kind, **bounds}
        if kind == "array":
            return {**self.array(node, place), **bounds}
        return self.map(node, place)

    def array(self, node: Node, place: _Place) -> Node:
        items: Json = node.get("items", {})
        if "prefixItems" in node or is_array(items):
            self.note(place.below("items"), "a tuple, taken as a list of JSON values")
            return {"type": "array", "items": {}}
        if keywords.is_impossible(items):
            return {"type": "array", "items": {}, "maxItems": 0}
        at = place.below("items")
        return {
            "type": "array",
            "items": self.with_further_members(items, at) or self.plain(items, at),
        }

    def map(self, node: Node, place: _Place) -> Node:
        if schema_queries.properties(node):
            is_map = schema_queries.says_nothing(node) or schema_queries.is_json_schema(node)
            if is_map and self.naming.official(place.owner, place.path) is None:
                if schema_queries.is_json_schema(node):
                    self.note(place, "a JSON Schema as a value, taken as a map of JSON values")
                return ANY_MAP
            return self.name_inline(node, place)
        bounds = self.bounds("object", node, place)
        if node.get("required"):
            self.note(place.below("required"), "not checked")
        extra: Json = node.get("additionalProperties")
        if extra is False:
            self.note(place.below("additionalProperties"), "not checked")
        if not is_object(extra) or not extra:
            return {**ANY_MAP, **bounds}
        at = place.below("additionalProperties")
        inner = self.with_further_members(extra, at) or self.plain(extra, at)
        return {"type": "object", "additionalProperties": inner, **bounds}

    def name_inline(self, node: Node, place: _Place) -> Node:
        """A reference to the definition that an inline object or union becomes."""
        name, official = self.naming.choose(place, node)
        if name not in self.schema.definitions:
            self.define(name, node, _Place(name, (), place.pointer) if official else place)
        return reference(name)

    def shape(self, node: Node, place: _Place) -> Node:
        """A schema in a form that a type can express, without `allOf`."""
        node = self.merge_all_of(node, place)
        if schema_queries.variants(node) and schema_queries.properties(node):
            return self.without_variants(node, place)
        return node

    def without_variants(self, node: Node, place: _Place) -> Node:
        """An object without its alternatives, if these only require some of its members."""
        keyword = schema_queries.union_keyword(node)
        if all(schema_queries.only_demands(variant) for variant in schema_queries.variants(node)):
            self.note(place.below(keyword), "alternatives of an object, not checked")
            return {key: value for key, value in node.items() if key != keyword}
        return self.any_value(place, "an object and a union in one")

    def account(self, node: Node, place: _Place, *carried: str) -> None:
        """Note each restricting keyword of a schema that its type does not express."""
        for key in keywords.lost_keywords(node, carried):
            self.note(place.below(escape(key)), "not checked")

    def account_members(self, node: Node, place: _Place) -> None:
        """Note what a type with members does not express of an object."""
        declared: tuple[str, ...] = ()
        if schema_queries.declares_members(node):
            declared = (_REST,)
            self.note(place.below(_REST), "further members, dropped unless extra=True is given")
        self.account(node, place, *_WITH_MEMBERS, *declared)

    def note(self, place: _Place, text: str, *, lossy: bool = True) -> None:
        """Record a note about a place, once."""
        self.notes.setdefault(place.pointer, Note(place.pointer, text, lossy))

    def any_value(self, place: _Place, what: str) -> Node:
        """Any JSON value, for a schema that no type can express."""
        self.note(place, f"{what}, taken as any JSON value")
        return {}

    def merge_all_of(self, node: Node, place: _Place) -> Node:
        """Merge an `allOf` into one object with the properties of all parts; the last part wins.

        Keywords beside a reference apply too, as in JSON Schema 2020-12.
        """
        if "$ref" in node and keywords.binds(node) != {"$ref"}:
            own = {key: value for key, value in node.items() if key != "$ref"}
            node = {"allOf": [reference(target(node))], **own}
        if "allOf" not in node:
            return node
        own = {key: value for key, value in node.items() if key != "allOf"}
        parts = [(part, place.below(f"allOf/{index}")) for index, part in enumerate(node["allOf"])]
        parts = [(part, at) for part, at in parts if keywords.binds(part)]
        if len(parts) == 1 and not own.keys() & _SHAPE and keywords.binds(parts[0][0]) == {"$ref"}:
            self.account(own, place, *self.shared_type({**own, "anyOf": [parts[0][0]]}))
            return reference(target(parts[0][0]))
        return self.one_object([*parts, (own, place)], place)

    def one_object(self, parts: Sequence[tuple[Node, _Place]], place: _Place) -> Node:
        """The members of several objects in one."""
        members: dict[str, Node] = {}
        required: list[str] = []
        for part, at in parts:
            whole, at = self.take_in(part, at)
            if whole.keys() & _NO_OBJECT or whole.get("type", "object") != "object":
                return self.any_value(place, "an allOf of what is no object")
            self.account_members(whole, at)
            for wire, child in schema_queries.properties(whole).items():
                if not _is_wider(members.get(wire, {}), child):
                    self.note(self.member(place, wire), "another part of the allOf replaces it")
                members[wire] = child
                self.origins[place.pointer, wire] = self.member(at, wire).pointer
            required += [name for name in whole.get("required", ()) if name not in required]
        return {"type": "object", "properties": members, "required": required}

    def take_in(self, part: Node, place: _Place) -> tuple[Node, _Place]:
        """A part of an `allOf` as one object, and its place; definitions are merged once."""
        if keywords.binds(part) != {"$ref"}:
            return self.merge_all_of(part, place), place
        name = target(part)
        if name not in self.whole:
            whole, at = self.take_in(self.schema.definitions[name], _whole(name))
            self.whole[name] = self.take_in(whole, at) if "$ref" in whole else (whole, at)
        return self.whole[name]


def _whole(name: str) -> _Place:
    """The place of a definition."""
    return _Place(name, (), f"/$defs/{escape(name)}")


def _any_of(members: Sequence[Node]) -> Node:
    """A union of schemas, with nested unions flattened; any value for no schema."""
    if len(members) < 2:
        return members[0] if members else {}
    return {"anyOf": schema_queries.flat(members)}


def _is_wider(first: Node, second: Node) -> bool:
    """Whether a schema of a member evidently allows all values of another one."""
    if first == second or not keywords.binds(first):
        return True
    kinds, others = set(keywords.types(first)), set(keywords.types(second))
    return keywords.binds(first) == {"type"} and bool(others) and others <= kinds


def _references(definitions: Mapping[str, Node]) -> dict[_Spot, str]:
    """The definition that each property refers to."""
    return {
        (name, path): target(child)
        for name, node in definitions.items()
        for path, child in schema_queries.below(node)
        if path and "$ref" in child
    }


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


def with_roles(normal: NormalizedSchema) -> tuple[NormalizedSchema, Mapping[str, str]]:
    """The schema with the definitions of all roles, and the name of the definition for each role.

    Roles are used by every connection: the implementation and the capabilities of a side. Their
    definitions have the names of all dated revisions. If a schema lacks a name, the definition is
    the type of the member that holds the role's value; if there is none, an empty object.
    """
    added: dict[str, Definition] = {}
    by_role: dict[str, str] = {}
    for role, name in _ROLE_NAMES.items():
        by_role[role] = _role_type(normal, role) or name
        if name not in normal.definitions and by_role[role] == name:
            added[name] = Definition(name, _EMPTY_OBJECT, "/$defs")
    if not added:
        return normal, by_role
    return replace(normal, definitions={**normal.definitions, **added}), by_role


def _role_type(normal: NormalizedSchema, role: str) -> str | None:
    """The object that a member refers to, if no definition has the name for the role."""
    if _ROLE_NAMES[role] in normal.definitions:
        return None
    for owner, wire in _ROLE_MEMBERS[role]:
        published: Node = normal.schema.definitions.get(owner, {})
        node = schema_queries.properties(published).get(wire, {})
        if "$ref" not in node and owner in normal.definitions:
            node = normal.definitions[owner].properties.get(wire, {})
        definition = normal.definition(target(node)) if "$ref" in node else None
        if definition is not None and definition.is_object:
            return definition.name
    return None
