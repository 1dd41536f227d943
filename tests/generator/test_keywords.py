"""Keywords of JSON Schema: which a type carries, which bind values, which do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen.schema import keywords


@pytest.mark.parametrize(
    ("kind", "node", "bounds"),
    [
        (
            "string",
            {"minLength": 1, "pattern": "a", "minimum": 1},
            {"minLength": 1, "pattern": "a"},
        ),
        ("integer", {"minimum": 2**63 - 1, "maximum": 2**63}, {"minimum": 2**63 - 1}),
        ("integer", {"minimum": -(2**63)}, {}),
        ("integer", {"maximum": 1 - 2**63}, {"maximum": 1 - 2**63}),
        ("integer", {"minimum": 1, "exclusiveMinimum": 1}, {"minimum": 1}),
        ("integer", {"exclusiveMaximum": 1}, {"exclusiveMaximum": 1}),
        ("number", {"minimum": 1}, {}),
        ("array", {"minItems": 1, "items": {}}, {"minItems": 1}),
    ],
)
def test_a_type_carries_the_bounds_of_its_kind(kind: str, node: Any, bounds: Any) -> None:
    assert keywords.bounds(kind, node) == bounds
    assert keywords.has_bounds({**node, "type": ["null", kind]}) is bool(bounds)


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        ({"properties": {}}, "object"),
        ({"maxProperties": 1}, "object"),
        ({"contains": {}}, "array"),
        ({"minLength": 1}, None),
        ({}, None),
    ],
)
def test_keywords_imply_the_type_that_they_are_about(node: Any, kind: str | None) -> None:
    assert keywords.implied_type(node) == kind


@pytest.mark.parametrize(
    ("key", "value", "binds"),
    [
        ("description", "a", False),
        ("format", "uri", False),
        ("uniqueItems", False, False),
        ("uniqueItems", True, True),
        ("minItems", False, True),
        ("items", True, False),
        ("items", {}, False),
        ("items", False, True),
        ("items", {"type": "string"}, True),
        ("additionalProperties", {}, False),
        ("additionalProperties", False, True),
        ("contains", True, True),
        ("properties", {}, True),
    ],
)
def test_a_keyword_binds_unless_it_allows_every_value(key: str, value: Any, binds: bool) -> None:
    assert keywords.binds({key: value}) == ({key} if binds else set())
    assert keywords.lost_keywords({key: value, "x": 1}, ()) == [*([key] if binds else []), "x"]
    assert keywords.lost_keywords({key: value}, {key}) == []


@pytest.mark.parametrize(
    ("schema", "impossible"),
    [
        (False, True),
        (True, False),
        (None, False),
        ({}, False),
        ({"not": {}}, True),
        ({"not": True}, True),
        ({"not": False}, False),
        ({"not": {"type": "string"}}, False),
    ],
)
def test_a_schema_may_allow_no_value(schema: Any, impossible: bool) -> None:
    assert keywords.is_impossible(schema) is impossible


@pytest.mark.parametrize(
    ("value", "literal", "type_"),
    [
        ("a", True, None),
        (1, True, None),
        (None, True, None),
        (True, False, {"type": "boolean"}),
        (1.5, False, {"type": "number"}),
        ([], False, {"type": "array"}),
        ({}, False, {"type": "object"}),
    ],
)
def test_a_constant_is_a_literal_or_has_a_type(value: Any, literal: bool, type_: Any) -> None:
    assert keywords.is_literal(value) is literal
    if type_ is not None:
        assert keywords.type_of(value) == type_
