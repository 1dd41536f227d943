"""The parts of a type, and what completes the schemas of msgspec and pydantic."""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import annotated_types
import attrs
import msgspec
import pytest
from pydantic import BaseModel, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from mcpgen_runtime.values.value_types import TypeParts, accepts, complete, has_fields


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Model(BaseModel):
    a: int


@pydantic_dataclass
class Checked:
    a: int


@dataclass
class Plain:
    color: Color
    at: datetime | None = None


class Row(msgspec.Struct, rename={"inner": "in"}):
    inner: Plain
    size: Literal[2, Color.RED]


@attrs.define
class Attributes:
    a: int


class Options(TypedDict):
    a: int


class Pair(NamedTuple):
    a: int


@dataclass
class Broken:
    a: Unknown  # type: ignore[name-defined]  # noqa: F821 - a name that there is not


class Schematic:
    """A type of pydantic's protocol."""

    __get_pydantic_core_schema__ = None


Item = TypeVar("Item")


@dataclass
class Box(Generic[Item]):
    item: Item


Named = NewType("Named", Plain)


@pytest.mark.parametrize(
    ("kind", "pydantic", "choices", "classes"),
    [
        (int, False, [], {}),
        (Model, True, [], {}),
        (Checked, True, [], {}),
        (Schematic, True, [], {}),
        (list[Model | None], True, [], {}),
        (Annotated[int, Field(ge=1)], True, [], {}),
        (Annotated[int, Schematic()], True, [], {}),
        (Annotated[int, annotated_types.Gt], True, [], {}),
        (Annotated[int, "a note"], False, [], {}),
        (Color, False, [["red", "blue"]], {}),
        (Literal["b", Color.RED, 1], False, [["b", "red", 1]], {}),
        (Plain, False, [["red", "blue"]], {"Plain": ["color", "at"]}),
        (
            dict[str, Row],
            False,
            [["red", "blue"], [2, "red"]],
            {"Row": ["in", "size"], "Plain": ["color", "at"]},
        ),
        (tuple[Plain, Plain], False, [["red", "blue"]], {"Plain": ["color", "at"]}),
        (Annotated[Plain, "a note"], False, [["red", "blue"]], {"Plain": ["color", "at"]}),
        (Attributes, False, [], {"Attributes": ["a"]}),
        (Options, False, [], {"Options": ["a"]}),
        (Pair, False, [], {"Pair": ["a"]}),
        (Broken, False, [], {"Broken": []}),
        (Named, False, [["red", "blue"]], {"Plain": ["color", "at"]}),
        (Box[Model], True, [], {"Box": ["item"]}),
    ],
)
def test_the_parts_of_a_type_are_collected(
    kind: Any, pydantic: bool, choices: list[Any], classes: Mapping[str, list[str]]
) -> None:
    parts = TypeParts()
    parts.add(kind)
    assert parts.pydantic is pydantic
    assert parts.choices == choices
    assert {each.__name__: list(fields) for each, fields in parts.classes.items()} == classes


def test_constraints_belong_to_pydantic_or_to_msgspec() -> None:
    parts, meta, field = TypeParts(), msgspec.Meta(ge=1), Field(ge=1)
    parts.add(Annotated[int, meta, field, "a note"])
    parts.add(Row)
    parts.add(Attributes)
    assert parts.of_msgspec == [meta, Row, Attributes]
    assert parts.pydantic_constraints == [field]


def test_without_pydantic_nothing_belongs_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pydantic")
    parts = TypeParts()
    parts.add(Model)
    parts.add(Annotated[int, annotated_types.Gt(1)])
    assert (parts.pydantic, parts.pydantic_constraints) == (False, [])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *((kind, True) for kind in (Plain, Options, Attributes, Row, Box[int])),
        *((kind, False) for kind in (int, Model, Color, Plain | None, dict[str, int])),
    ],
)
def test_a_class_with_fields_is_one_of_four_kinds(kind: Any, expected: bool) -> None:
    assert has_fields(kind) is expected


REF: Any = {"$ref": "#/$defs/A"}
DEFINITIONS: Any = {
    "A": {"type": "object"},
    "B": {"anyOf": [REF, {"type": "null"}]},
    "C": {"anyOf": [{}, {"type": "null"}]},
}


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({}, set()),
        ({"type": "string"}, {"string"}),
        (REF, {"object"}),
        ({"$ref": "#/$defs/B"}, {"object", "null"}),
        ({"$ref": "#/$defs/C"}, set()),
        ({"anyOf": [{"$ref": "#/$defs/B"}, {"type": "integer"}]}, {"object", "null", "integer"}),
    ],
)
def test_the_types_that_a_schema_accepts_are_those_of_its_root(schema: Any, types: Any) -> None:
    assert accepts(schema, DEFINITIONS) == types


def completed(schema: Any, *kinds: Any) -> Any:
    """A schema, completed by the parts of some types."""
    parts = TypeParts()
    for kind in kinds:
        parts.add(kind)
    return complete({"$defs": {}, **schema}, parts)


A: Any = {"type": "object", "properties": {"a": {"type": "integer"}}}
LOOP: Any = {"type": "object", "properties": {"next": REF}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, {"type": "integer"}),
        ({**REF, "$defs": {"A": A}}, A),
        ({**REF, "$defs": {"A": LOOP}}, {**REF, "$defs": {"A": LOOP}}),
        (
            {**REF, "description": "d", "$defs": {"A": A}},
            {**REF, "description": "d", "$defs": {"A": A}},
        ),
        (
            {"items": {**REF, "$defs": {"A": A}}, "$defs": {"A": A}},
            {"items": REF, "$defs": {"A": A}},
        ),
        (
            {
                "prefixItems": [
                    {**REF, "$defs": {"A": {"type": "integer"}}},
                    {**REF, "$defs": {"A": {"type": "string"}}},
                ],
                "$defs": {"A": A},
            },
            {
                "prefixItems": [{"$ref": "#/$defs/A2"}, {"$ref": "#/$defs/A3"}],
                "$defs": {"A": A, "A2": {"type": "integer"}, "A3": {"type": "string"}},
            },
        ),
        (
            {"items": {**REF, "$defs": {"A": LOOP}}, "$defs": {"A": A}},
            {
                "items": {"$ref": "#/$defs/A2"},
                "$defs": {"A": A, "A2": {**LOOP, "properties": {"next": {"$ref": "#/$defs/A2"}}}},
            },
        ),
        (
            {"default": {"$ref": "x", "$defs": {}}, "properties": {"$ref": REF}, "$defs": {"A": A}},
            {"default": {"$ref": "x", "$defs": {}}, "properties": {"$ref": REF}, "$defs": {"A": A}},
        ),
    ],
)
def test_definitions_stand_at_the_root_under_free_names(schema: Any, expected: Any) -> None:
    assert completed(schema) == expected


@pytest.mark.parametrize(
    ("values", "kinds", "expected"),
    [
        (["a", "b"], [Literal["b", "a"]], {"enum": ["b", "a"], "type": "string"}),
        (["a", "b"], [Literal["b", "c"]], {"enum": ["a", "b"], "type": "string"}),
        (["a", "b"], [Literal["b", "a", "c"]], {"enum": ["a", "b"], "type": "string"}),
        (["blue", "red"], [Color], {"enum": ["red", "blue"], "type": "string"}),
        ([1, 2], [Literal["x"], Literal[2, 1]], {"enum": [2, 1], "type": "integer"}),
        ([1, 2], [Literal[2, 1], Literal[1, 2]], {"enum": [2, 1], "type": "integer"}),
        ([True], [], {"enum": [True]}),
        (["a", 1], [], {"enum": ["a", 1]}),
        (["a", None], [], {"enum": ["a", None]}),
    ],
)
def test_choices_have_their_type_and_their_order(values: Any, kinds: Any, expected: Any) -> None:
    assert completed({"enum": values}, *kinds) == expected
    nested: Any = {"properties": {"a": {"anyOf": [{"enum": values}]}}}
    assert completed(nested, *kinds) == {"properties": {"a": {"anyOf": [expected]}}}
    assert completed({"default": {"enum": values}}, *kinds) == {"default": {"enum": values}}


def test_the_type_of_choices_that_is_stated_stays() -> None:
    assert completed({"enum": ["a"], "type": "x"}) == {"enum": ["a"], "type": "x"}


TEXT, NULL = {"type": "string"}, {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"anyOf": [TEXT, NULL]}, NULL]}, {"anyOf": [TEXT, NULL]}),
        (
            {"anyOf": [{"anyOf": [TEXT], "description": "d"}, NULL]},
            {"anyOf": [TEXT, NULL], "description": "d"},
        ),
        (
            {"anyOf": [{"anyOf": [TEXT], "description": "d"}, NULL], "description": "e"},
            {"anyOf": [TEXT, NULL], "description": "e"},
        ),
        (
            {"anyOf": [{"anyOf": [TEXT], "title": "t"}, NULL]},
            {"anyOf": [{"anyOf": [TEXT], "title": "t"}, NULL]},
        ),
        (
            {
                "anyOf": [{**TEXT, "description": "d"}, {**NULL, "description": "e"}, True],
                "description": "d",
            },
            {"anyOf": [TEXT, {**NULL, "description": "e"}, True], "description": "d"},
        ),
    ],
)
def test_alternatives_are_flat_and_described_once(schema: Any, expected: Any) -> None:
    assert completed(schema) == expected


@dataclass
class Meeting:
    """A meeting.

    It has times.
    """

    at: datetime
    end: time | None
    also: list[datetime]
    noted: Annotated[datetime, "a note"]


def test_members_of_a_class_that_are_times_have_a_format() -> None:
    members: Any = {
        "at": dict(TEXT),
        "end": {"anyOf": [dict(TEXT), dict(NULL)]},
        "also": {"type": "array"},
        "noted": dict(TEXT),
        "other": dict(TEXT),
    }
    schema = {"title": "Meeting", "description": Meeting.__doc__, "properties": members}
    result = completed(schema, Meeting)
    assert result["properties"] == {
        "at": {**TEXT, "format": "date-time"},
        "end": {"anyOf": [{**TEXT, "format": "time"}, NULL]},
        "also": {"type": "array"},
        "noted": TEXT,
        "other": TEXT,
    }
    assert result["description"] == "A meeting.\n\nIt has times."
    other = {"title": "Other", "description": "a\n    b", "properties": {"at": dict(TEXT)}}
    assert completed(other, Meeting) == other
