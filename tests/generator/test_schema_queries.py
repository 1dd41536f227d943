"""Queries on published schemas, each with schemas on both sides of its answer."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import COUNT, OPEN, TEXT, const, obj, ref
from mcpgen.model import schema_queries
from mcpgen.model.normalized import Range

NULL = {"type": "null"}


def test_equal_schemas_have_one_text_whatever_the_order_of_keys() -> None:
    one, other = {"b": 1, "a": {"d": 1, "c": 2}}, {"a": {"c": 2, "d": 1}, "b": 1}
    assert schema_queries.canonical(one) == schema_queries.canonical(other)
    assert schema_queries.canonical([1, 2]) != schema_queries.canonical([2, 1])


@pytest.mark.parametrize(
    ("query", "yes", "no"),
    [
        ("is_number", [COUNT, {"type": "number"}], [TEXT, {}, 5, {"type": ["integer", "null"]}]),
        (
            "only_demands",
            [{}, {"required": ["a"]}, {"not": {}}],
            [TEXT, [], {"required": 1, "x": 1}],
        ),
        ("is_inline", [obj(x=TEXT)], [{"type": "object"}, {**obj(x=TEXT), **ref("A")}, True]),
        (
            "is_open",
            [OPEN, {"additionalProperties": True}],
            [{}, {"additionalProperties": False}, {"additionalProperties": TEXT}],
        ),
        (
            "says_nothing",
            [OPEN, {**OPEN, "properties": {"_meta": {}}}],
            [obj(_meta=OPEN), {**OPEN, "properties": {"_meta": {}, "x": TEXT}}],
        ),
        (
            "is_json_schema",
            [obj(type=const("object")), {"properties": {"$schema": TEXT}}],
            [
                obj(type=const("text")),
                obj(x=TEXT),
                {"properties": {"$schema": TEXT, "x": ref("A")}},
                obj(type=const("object"), x=ref("A")),
            ],
        ),
        (
            "is_json_value",
            [
                {"anyOf": [TEXT, COUNT, {"type": "boolean"}]},
                {"oneOf": [{"type": ["string", "boolean"]}, {"type": "number"}]},
            ],
            [
                {"anyOf": [TEXT, {"type": "boolean"}]},
                {"anyOf": [TEXT, COUNT]},
                {"anyOf": [COUNT, {"type": "boolean"}]},
                TEXT,
            ],
        ),
    ],
)
def test_a_query_tells_schemas_of_a_kind_from_others(
    query: str, yes: list[Any], no: list[Any]
) -> None:
    answers = [getattr(schema_queries, query)(node) for node in (*yes, *no)]
    assert answers == [True] * len(yes) + [False] * len(no)


def test_members_of_a_union_are_flat_and_distinct() -> None:
    inner = {"anyOf": [TEXT, COUNT]}
    assert schema_queries.flat([COUNT, inner, NULL, TEXT]) == [COUNT, TEXT, NULL]
    assert schema_queries.variants({"oneOf": [TEXT]}) == [TEXT]
    assert schema_queries.variants({"anyOf": [COUNT], "oneOf": [TEXT]}) == [COUNT]
    assert schema_queries.variants([TEXT]) == schema_queries.variants(TEXT) == ()
    assert schema_queries.union_keyword({"oneOf": []}) == "oneOf"


def test_a_reference_to_an_open_object_is_found() -> None:
    definitions = {"Open": OPEN, "Closed": obj(x=TEXT)}
    assert schema_queries.refers_to_open(ref("Open"), definitions)
    assert not schema_queries.refers_to_open(ref("Closed"), definitions)
    assert not schema_queries.refers_to_open(OPEN, definitions)
    assert not schema_queries.refers_to_open([], definitions)


def test_a_json_schema_has_the_type_that_it_must_have() -> None:
    fixed = schema_queries.fixed_type
    assert fixed(obj("type", type=const("object"))) == "object"
    assert fixed(obj("other", type=const("object"))) is None
    assert fixed(obj("type", type=const(1))) is None
    assert fixed({"properties": {"type": const("object")}}) is None


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "number", "minimum": 0}, (0, None, ("minimum",))),
        ({"type": "number", "exclusiveMaximum": 1}, (None, 1, ("exclusiveMaximum",))),
        (
            {"type": "number", "exclusiveMinimum": 0, "maximum": 2},
            (0, 2, ("exclusiveMinimum", "maximum")),
        ),
        ({"type": "number"}, None),
        ({"type": "integer", "minimum": 0}, None),
        (True, None),
    ],
)
def test_bounds_are_those_of_any_number_alone(node: Any, expected: Any) -> None:
    span = schema_queries.bounds("x", node)
    assert span == (None if expected is None else Range("x", *expected))


@pytest.mark.parametrize(
    ("node", "leads_back"),
    [
        (ref("A"), True),
        ({"anyOf": [TEXT, {"type": "array", "items": ref("A")}]}, True),
        ({"additionalProperties": ref("B")}, True),
        ({"allOf": [TEXT, ref("B")]}, True),
        (obj(x=ref("A")), False),
        ({"anyOf": [ref("C"), TEXT]}, False),
        (ref("D"), False),
        ({"items": True, "additionalProperties": False}, False),
    ],
)
def test_a_schema_leads_back_through_all_but_properties(node: Any, leads_back: bool) -> None:
    definitions = {"A": TEXT, "B": ref("A"), "C": obj(a=ref("A")), "D": ref("E"), "E": ref("D")}
    assert schema_queries.holds(definitions, "A", node) is leads_back


def test_nested_schemas_have_the_path_of_their_properties() -> None:
    leaf = obj(z=TEXT)
    node = obj(x={"type": "array", "items": leaf}, y={"additionalProperties": COUNT}, n=5)
    union = {"anyOf": [leaf]}
    assert [*schema_queries.below(node)] == [
        ((), node),
        (("x",), node["properties"]["x"]),
        (("x",), leaf),
        (("x", "z"), TEXT),
        (("y",), node["properties"]["y"]),
        (("y",), COUNT),
    ]
    assert [*schema_queries.below(union)] == [((), union)]
