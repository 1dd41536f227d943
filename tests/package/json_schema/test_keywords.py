"""Keywords that are judged in bounded time give the verdicts and the texts of the library."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgen_runtime.json_schema.validation import validator
from package.json_schema.test_costs import DIALECTS
from package.tables import table

LONG = "a" * 5000
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 1.0, 1.5, 0.3, 1e300, 10**300, "", "1", "a", "b", "0x1"),
    *("None", "True", LONG + "a", LONG + "b", [], {}, [1], ["1"], [1, 2], [2, 1], ["a,b"]),
    *(["a", "b"], [[1], 2], [1, [2]], [1, 1.0], [1, True], [{}, []], ["a", 1, "a"], [None, "None"]),
    *({"a": 1}, {"a": "1"}, {"b": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1.0}, {"a": {"b": 1}}),
    *({"x1": 1}, {"x1": "1"}, {"a": 1, "x1": 1, "b": 1}, {"a:1": None}, [{"a": 1}, {"a": 1.0}]),
]
SCHEMAS: list[dict[str, Any]] = table("keyword_schemas")


OTHER_TEXTS = re.compile("regexes|not valid under")
"""Texts of the library that have no counterpart: one text stands for all reasons."""


def verdict(schema: dict[str, Any], value: Any) -> str | None:
    """The first error that the library finds; `None` for a valid value."""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return next((error.message for error in errors), None)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: str(schema)[:40])
def test_a_keyword_gives_the_verdicts_of_the_library(schema: dict[str, Any]) -> None:
    def words(text: str | None) -> set[str]:
        """The words of an error, which names properties in their order, and the library sorted."""
        return {*re.findall(r"[\w'.]+", text or "")}

    complaint = validator(schema, "tests")
    for value in VALUES:
        expected, error = verdict(schema, value), complaint(value)
        assert (error is None) == (expected is None), (schema, value, error, expected)
        if expected is not None and len(expected) < 100 and not OTHER_TEXTS.search(expected):
            assert words(expected) <= words(error)


def test_a_multiple_is_one_in_decimals() -> None:
    assert validator({"multipleOf": 0.1}, "tests")(0.3) is None
    assert validator({"multipleOf": 0.1}, "tests")(0.35) is not None


@pytest.mark.parametrize("keyword", ["const", "enum"])
def test_values_are_equal_where_the_library_says_so(keyword: str) -> None:
    for one, other in product(VALUES, VALUES):
        schema = {keyword: one if keyword == "const" else [one]}
        error = validator(schema, "tests")(other)
        assert (error is None) == (verdict(schema, other) is None), (one, other)


LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["integer", "number", "string", "object", "array", "null", "boolean"]),
    "enum": st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    "const": st.sampled_from(VALUES),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minimum": st.integers(-2, 2),
    "maximum": st.integers(-2, 2),
    "uniqueItems": st.booleans(),
    "pattern": st.sampled_from(["a", "^a", "b$", "^[ab]+$", "-"]),
    "required": st.lists(st.sampled_from("ab"), min_size=1, max_size=1),
    "minItems": st.integers(0, 2),
    "unevaluatedItems": st.just(False),  # the library forbids each item, whatever a schema says
}
ONE = ("items", "contains", "additionalProperties", "propertyNames", "unevaluatedProperties")
NAMED = ("properties", "patternProperties", "dependentSchemas")


def schemas_with(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    named = st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys((*ONE, "not", "if", "then", "else"), inner),
        **dict.fromkeys(("prefixItems", "allOf", "anyOf", "oneOf"), several),
        **dict.fromkeys(NAMED, named),
    }
    return st.fixed_dictionaries({}, optional=LEAVES | keywords)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    dialect=st.sampled_from(DIALECTS),
    schema=schemas_with(
        st.recursive(
            st.booleans() | st.fixed_dictionaries({}, optional=LEAVES), schemas_with, max_leaves=5
        )
    ),
    value=st.recursive(
        st.sampled_from([value for value in VALUES if value not in (LONG + "a", LONG + "b")]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=3)
        ),
        max_leaves=6,
    ),
)
def test_values_are_judged_as_the_library_does(dialect: str, schema: Any, value: Any) -> None:
    whole = {"$schema": dialect, **schema}
    library: Any = jsonschema.validators.validator_for(whole)
    try:
        library.check_schema(whole)
    except jsonschema.SchemaError:
        return
    assert (validator(whole, "tests")(value) is None) is library(whole).is_valid(value)
