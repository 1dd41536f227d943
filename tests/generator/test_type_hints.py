"""Types of Python for schemas in plain form."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import COUNT, OPEN, TEXT, ref
from mcpgen.model.type_hints import GIVEN, annotation, names_in, union


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (TEXT, "str"),
        ({"type": "null"}, "None"),
        ({}, "Any"),
        (ref("Tool"), "models.Tool"),
        ({"const": "a"}, "Literal['a']"),
        ({"enum": ["a", 1]}, "Literal['a', 1]"),
        ({"anyOf": [COUNT, {"type": "number"}, COUNT]}, "int | float"),
        ({"type": "array", "items": ref("Tool")}, "list[models.Tool]"),
        (OPEN, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": TEXT}, "dict[str, str]"),
    ],
)
def test_a_property_has_the_type_that_its_model_has(node: Any, expected: str) -> None:
    assert annotation(node) == expected


def test_texts_in_a_type_are_no_part_of_it() -> None:
    hostile = annotation({"enum": ["a | b", "]", "[", "'\" | \\", "models.Tool"]})
    assert union([hostile, f"{hostile} | None", "str"]) == f"{hostile} | str | None"
    assert names_in(f"{hostile} | models.Tool | Sequence[Any]") == [
        "Literal",
        "models",
        "Sequence",
        "Any",
    ]


def test_an_argument_may_be_any_list_and_any_map() -> None:
    node = {"type": "array", "items": OPEN}
    assert annotation(node, GIVEN) == "Sequence[Mapping[str, Any]]"


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["a", "b"], "a | b"),
        (["a | b", "b | c"], "a | b | c"),
        (["list[a | b]", "a | list[a | b]"], "list[a | b] | a"),
        (["list[a | b]", "dict[c | b]"], "list[a | b] | dict[c | b]"),
        (["list[a | None]", "None", "b"], "list[a | None] | b | None"),
        (["dict[str, a | list[b | c]] | None", "None"], "dict[str, a | list[b | c]] | None"),
        ([], ""),
    ],
)
def test_a_union_names_each_type_once_and_leaves_brackets_whole(
    types: list[str], expected: str
) -> None:
    assert union(types) == expected
