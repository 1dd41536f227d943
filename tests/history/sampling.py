"""A value of each definition of a schema, with as many of its members as it may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import jsonschema

Json: TypeAlias = Any
Node: TypeAlias = Mapping[str, Any]

ABSENT = object()
"""Stands for a schema that has no value."""

DEPTH = 7
"""Levels below which optional members are left out."""

_TEXTS = ("text", "ab", "a", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
_NUMBERS = (1, 5, 10, 0, 0.5, 2, 1.5, 3, 100, -1)
_ANY: tuple[Json, ...] = (*_TEXTS, *_NUMBERS, True, False, None, {"a": "b"}, ["a"], {}, [])


class Samples:
    """Values of the definitions of one schema."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def of(self, node: Json, depth: int = 0) -> Json:
        """A value that a schema describes, or `ABSENT`."""
        judge = jsonschema.Draft202012Validator({**self._rest(), "allOf": [node]})
        return next(
            (each for each in self._candidates(node, depth) if judge.is_valid(each)), ABSENT
        )

    def member(self, node: Node, name: str) -> Json:
        """A value of a member of an object; empty where it has no such member."""
        members = self._whole(node).get("properties", {})
        value = self.of(members.get(name, False))
        return {} if value is ABSENT else value

    def _rest(self) -> dict[str, Any]:
        return {
            key: self._document[key] for key in ("$defs", "definitions") if key in self._document
        }

    def _whole(self, node: Node) -> Node:
        """A schema with what it refers to, and what it takes in, as one object of keywords."""
        parts = [*node.get("allOf", ())]
        if "$ref" in node:
            parts.append(self._document["$defs"][node["$ref"].rpartition("/")[2]])
        whole: dict[str, Any] = {}
        for part in (*map(self._whole, parts), node):
            members = {**whole.get("properties", {}), **part.get("properties", {})}
            required = [*whole.get("required", ()), *part.get("required", ())]
            whole |= part
            if members:
                whole |= {"properties": members, "required": required}
        return whole

    def _candidates(self, node: Json, depth: int) -> Iterator[Json]:
        if node is True or node is False:
            yield from _ANY
            return
        whole = self._whole(node)
        if "const" in whole:
            yield whole["const"]
        yield from reversed(whole.get("enum", ()))
        parts = [*whole.get("anyOf", ()), *whole.get("oneOf", ())]
        for part in parts if depth > DEPTH else reversed(parts):
            value = self.of(part, depth + 1)
            rest = self._object(whole, depth) if "properties" in whole else None
            if isinstance(value, dict) and rest is not None:
                yield {**rest, **value}
            elif value is not ABSENT:
                yield value
        if "properties" in whole or whole.get("type") == "object":
            yield self._object(whole, depth)
            yield self._object(whole, DEPTH)
        if whole.get("type") == "array" or "items" in whole:
            firsts = [self.of(each, depth + 1) for each in whole.get("prefixItems", ())]
            items = self._alternatives(whole.get("items", True), depth + 1)
            yield [*firsts, *items]
            yield [*firsts, *items[:1]]
            yield firsts
            yield []
        if whole.get("format") == "uri":
            yield "file:///a"
        yield from _ANY

    def _alternatives(self, node: Json, depth: int) -> list[Json]:
        """A value of each alternative of a union."""
        whole = self._whole(node) if isinstance(node, dict) else {}
        parts = [*whole.get("anyOf", ()), *whole.get("oneOf", ())] if depth < DEPTH else []
        values = [self.of(part, depth) for part in parts or [node]]
        return [value for value in values if value is not ABSENT]

    def _object(self, whole: Node, depth: int) -> dict[str, Json]:
        required = whole.get("required", ())
        value: dict[str, Json] = {}
        for name, member in whole.get("properties", {}).items():
            if name in required or (depth < DEPTH and name != "_meta"):
                child = self.of(member, depth + 1)
                if child is not ABSENT:
                    value[name] = child
        for name in required:
            value.setdefault(name, "text")
        extra = whole.get("additionalProperties")
        is_map = isinstance(extra, dict) and not whole.get("properties")
        if is_map and depth < DEPTH:  # notes say that other objects have their named members
            child = self.of(extra, depth + 1)
            if child is not ABSENT:
                value["another"] = child
        return value
