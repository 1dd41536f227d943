"""Bounds of schemas: each limit holds, one more does not, and the error names the place."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcpgen.errors import SchemaError
from mcpgen.schema import checks
from mcpgen.schema.checks import MAX_CHAIN, MAX_SUBSCHEMAS, MAX_TEXT, target_name

LONG = "x" * MAX_TEXT


def refusal(schema: dict[str, Any], **others: Any) -> str:
    """The error of a document with a definition `A` and some others; empty if there is none."""
    document = {"$defs": {"A": schema, **others}}
    try:
        checks.check_bounds(document, "a.json")
        checks.check(document, "$defs", "a.json")
    except SchemaError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"pattern": LONG}, ""),
        ({"pattern": LONG + "x"}, "/pattern: expected a regular expression of at most 2000"),
        ({"pattern": "("}, "/pattern: expected a regular expression"),
        ({"pattern": "[[a]"}, ""),
        ({"patternProperties": {LONG: {}}}, ""),
        ({"patternProperties": {"a/(": {}}}, "/patternProperties/a~1(: expected a regular"),
        ({"const": LONG}, ""),
        ({"const": LONG + "x"}, "/const: expected a text of at most 2000 characters, got 2001"),
        ({"const": [LONG]}, "/const: expected a text of at most 2000"),
        ({"enum": ["a", LONG]}, ""),
        ({"enum": ["a", LONG + "x"]}, "/enum/1: expected a text of at most 2000"),
        ({"enum": []}, "/enum: expected at least one value, got none"),
        ({"$ref": "#/$defs/A%42"}, "/$ref: expected a reference to a definition, #/$defs/<name>"),
        ({"properties": {"b": {"$ref": "#/$defs/A"}}}, ""),
        ({"$ref": "#/$defs/A"}, ": expected a definition that does not lead back to itself"),
        ({"allOf": [{"$ref": "#/$defs/A"}]}, ": expected a definition that does not lead back"),
    ],
)
def test_a_schema_that_can_not_become_code_is_refused(
    schema: dict[str, Any], expected: str
) -> None:
    assert refusal(schema).startswith(f"a.json#/$defs/A{expected}" if expected else "")
    assert bool(refusal(schema)) == bool(expected)


def test_a_circle_is_shown_by_its_first_definitions() -> None:
    def link(name: str) -> dict[str, str]:
        return {"$ref": f"#/$defs/{name}"}

    assert re.search(r"got \w( to \w){2}$", refusal(link("B"), B=link("A")))
    assert re.search(r"got \w( to \w){3}$", refusal(link("B"), B=link("C"), C=link("A")))
    long = refusal(link("B"), B=link("C"), C=link("D"), D=link("A"))
    assert re.search(r"got \w( to \w){3} \.\.\.$", long)


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
def test_a_chain_and_a_file_have_so_many_schemas(more: int, refused: bool) -> None:
    chain = {f"B{n}": {"$ref": f"#/$defs/B{n + 1}"} for n in range(MAX_CHAIN - 1 + more)}
    ends: dict[str, Any] = {f"B{MAX_CHAIN - 1 + more}": {}}
    assert bool(refusal({}, **chain, **ends)) is refused
    many: dict[str, Any] = {f"C{n}": {} for n in range(MAX_SUBSCHEMAS - 2 + more)}
    assert bool(refusal({}, **many)) is refused


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("#/$defs/A", "A"),
        ("#/definitions/A", "A"),
        ("#/$defs/a~1b", "a/b"),
        ("#/$defs/a%20c", "a c"),
        ("#/$defs/d%25", "d%25"),
        ("#/$defs/A/properties/b", None),
        ("other.json#/$defs/A", None),
    ],
)
def test_a_reference_means_a_definition_in_any_spelling(target: str, name: str | None) -> None:
    assert target_name(target, {"A", "a/b", "a c", "d%25"}) == name
