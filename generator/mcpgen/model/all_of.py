"""Schemas without `allOf`: the parts of each become one object that a type can express."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcpgen.json_types import Node
from mcpgen.model import places, schema_queries
from mcpgen.model.deviations import Deviations
from mcpgen.model.normalized import reference, target
from mcpgen.model.places import Place
from mcpgen.schema import Schema, keywords

_NO_OBJECT = frozenset({"anyOf", "oneOf", "enum", "const", "items"})
"""Keywords of schemas that cannot be merged into one object."""
_SHAPE = _NO_OBJECT | keywords.OF_OBJECT | {"$ref"}


class AllOf:
    """Merges the parts of `allOf` in one schema; each definition is merged once."""

    def __init__(self, schema: Schema, deviations: Deviations) -> None:
        self._definitions = schema.definitions
        self._deviations = deviations
        self._whole: dict[str, tuple[Node, Place]] = {}
        self._origins: dict[tuple[str, str], str] = {}

    def shape(self, node: Node, place: Place) -> Node:
        """A schema in a form that a type can express, without `allOf`."""
        node = self._merge(node, place)
        if schema_queries.variants(node) and schema_queries.properties(node):
            return self._without_variants(node, place)
        return node

    def member(self, place: Place, wire: str) -> Place:
        """The place of a member, in the part that it comes from."""
        at = place.member(wire)
        return replace(at, pointer=self._origins.get((place.pointer, wire), at.pointer))

    def shared_type(self, node: Node) -> tuple[str, ...]:
        """The keyword `type` if all alternatives of a union imply it."""
        own = set(keywords.types(node))
        variants = schema_queries.variants(node)
        return ("type",) if all(self._kinds(each) <= own for each in variants) else ()

    def _kinds(self, node: Node) -> set[str | None]:
        """The types of JSON values that a schema allows; `None` if it names none."""
        while "$ref" in node:
            node = self._definitions[target(node)]
        return {*keywords.types(node)} or {keywords.implied_type(node)}

    def _without_variants(self, node: Node, place: Place) -> Node:
        """An object without its alternatives, if these only require some of its members."""
        keyword = schema_queries.union_keyword(node)
        if all(schema_queries.only_demands(variant) for variant in schema_queries.variants(node)):
            text = "alternatives of an object, not checked"
            self._deviations.note(place.below(keyword), text)
            return {key: value for key, value in node.items() if key != keyword}
        return self._deviations.any_value(place, "an object and a union in one")

    def _merge(self, node: Node, place: Place) -> Node:
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
            shared = self.shared_type({**own, "anyOf": [parts[0][0]]})
            self._deviations.account(own, place, *shared)
            return reference(target(parts[0][0]))
        return self._one_object([*parts, (own, place)], place)

    def _one_object(self, parts: Sequence[tuple[Node, Place]], place: Place) -> Node:
        """The members of several objects in one."""
        members: dict[str, Node] = {}
        required: list[str] = []
        for part, at in parts:
            whole, at = self._take_in(part, at)
            if whole.keys() & _NO_OBJECT or whole.get("type", "object") != "object":
                return self._deviations.any_value(place, "an allOf of what is no object")
            self._deviations.account_members(whole, at)
            for wire, child in schema_queries.properties(whole).items():
                if not _is_wider(members.get(wire, {}), child):
                    text = "another part of the allOf replaces it"
                    self._deviations.note(self.member(place, wire), text)
                members[wire] = child
                self._origins[place.pointer, wire] = self.member(at, wire).pointer
            required += [name for name in whole.get("required", ()) if name not in required]
        return {"type": "object", "properties": members, "required": required}

    def _take_in(self, part: Node, place: Place) -> tuple[Node, Place]:
        """A part of an `allOf` as one object, and its place; definitions are merged once."""
        if keywords.binds(part) != {"$ref"}:
            return self._merge(part, place), place
        name = target(part)
        if name not in self._whole:
            whole, at = self._take_in(self._definitions[name], places.of_definition(name))
            self._whole[name] = self._take_in(whole, at) if "$ref" in whole else (whole, at)
        return self._whole[name]


def _is_wider(first: Node, second: Node) -> bool:
    """Whether a schema of a member evidently allows all values of another one."""
    if first == second or not keywords.binds(first):
        return True
    kinds, others = set(keywords.types(first)), set(keywords.types(second))
    return keywords.binds(first) == {"type"} and bool(others) and others <= kinds
