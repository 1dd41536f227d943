"""Schemas in plain form: what a definition refers to, and whether null is a value of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generator.schemas import COUNT, OPEN, TEXT, any_of, const, normal_of, obj, ref
from mcpgen.model.normalized import Definition, targets

NULL = {"type": "null"}
DEFINITIONS: dict[str, Any] = {
    "Text": TEXT,
    "Maybe": {"type": ["string", "null"]},
    "Name": ref("Text"),
    "Other": ref("Name"),
    "Tree": obj(left=ref("Tree"), right={"type": "array", "items": ref("Leaf")}),
    "Leaf": obj(by_name={"type": "object", "additionalProperties": ref("Tree")}, name=ref("Other")),
    "Either": any_of("Tree", "Text"),
}


def test_a_definition_is_resolved_through_references() -> None:
    normal = normal_of(**DEFINITIONS)
    text = normal.definitions["Text"]
    assert normal.resolve(ref("Other")) == normal.definition("Other") == text
    assert normal.resolve(TEXT) is None
    assert normal.definition(None) is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Text"], "Text"),
        (["Other"], "Other Name Text"),
        (["Tree"], "Tree Leaf Other Name Text"),
        (["Either", "Maybe"], "Either Maybe Tree Leaf Other Name Text"),
        ([], ""),
    ],
)
def test_definitions_that_one_refers_to_are_reachable_once(names: list[str], expected: str) -> None:
    reachable = [definition.name for definition in normal_of(**DEFINITIONS).reachable(names)]
    assert sorted(reachable) == sorted(expected.split())


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (NULL, True),
        (TEXT, False),
        ({}, True),
        (OPEN, False),
        (ref("Text"), False),
        (ref("Maybe"), True),
        ({"anyOf": [TEXT, ref("Maybe")]}, True),
        ({"anyOf": [TEXT, ref("Other"), COUNT]}, False),
        ({"const": None}, True),
        (const("a"), False),
        ({"enum": ["a", None]}, True),
        ({"enum": ["a", "b"]}, False),
        ({"anyOf": [const(1), NULL]}, True),
        (ref("Loop"), False),
    ],
)
def test_null_is_a_value_of_what_allows_it(node: Any, expected: bool) -> None:
    loop = Definition("Loop", {"anyOf": [TEXT, ref("Loop")]}, "/$defs/Loop")
    normal = normal_of(**DEFINITIONS)
    normal = replace(normal, definitions={**normal.definitions, "Loop": loop})
    assert normal.allows_null(node) is expected


def test_references_are_found_wherever_they_stand() -> None:
    node = {
        "anyOf": [ref("A"), {"type": "array", "items": ref("B")}],
        "properties": {"x": ref("C"), "y": TEXT},
        "additionalProperties": {"items": {"$ref": "#/$defs/a~1b"}},
    }
    assert sorted(targets(node)) == ["A", "B", "C", "a/b"]
    assert [*targets(ref("A"))] == ["A"]
    assert [*targets({"items": {}, "additionalProperties": False})] == []
