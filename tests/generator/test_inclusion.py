"""Whether every value of one schema is a value of another: examples, and made-up pairs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.schema_pairs import Schema, pairs, values
from generator.schemas import COUNT, TEXT, obj
from mcpgen.contract.inclusion import inclusion_of

FORMATS = jsonschema.FormatChecker()


def judge(schema: Schema) -> Any:
    """The judge of the values of a schema."""
    return jsonschema.Draft202012Validator(schema, format_checker=FORMATS)


def closed(required: str = "", **members: Schema) -> dict[str, Any]:
    """The schema of an object without other members."""
    return {**obj(required, **members), "additionalProperties": False}


def tagged(**members: dict[str, Any]) -> dict[str, Any]:
    """A union of objects told apart by `kind`."""
    return {"oneOf": [obj("kind v", kind={"const": tag}, v=term) for tag, term in members.items()]}


def tree(**members: Schema) -> dict[str, Any]:
    """A schema that contains itself."""
    node = obj("value", children={"type": "array", "items": {"$ref": "#/$defs/Node"}})
    node["properties"] |= {"value": TEXT, **members}
    return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}


INCLUDED: dict[str, tuple[Schema, Schema]] = {
    "whole numbers are numbers": (COUNT, {"type": "number"}),
    "whole numbers beside a bound": (
        {"type": "integer", "exclusiveMaximum": 6},
        {"type": "integer", "maximum": 5},
    ),
    "multiples of multiples": ({"multipleOf": 6}, {"multipleOf": 3}),
    "halves of a range": (
        {"type": "number", "minimum": 0, "maximum": 10},
        {"anyOf": [{"maximum": 5}, {"type": "number", "exclusiveMinimum": 5}]},
    ),
    "a list of types": ({"type": ["string", "null"]}, {"anyOf": [TEXT, {"type": "null"}]}),
    "members that nobody checks": (obj(a=TEXT), {"type": "object"}),
    "the same tags in another order": (tagged(x=TEXT, y=COUNT), tagged(y=COUNT, x=TEXT)),
    "a member of values, each with an object": (
        obj("kind", kind={"enum": ["x", "y"]}),
        {"anyOf": [obj("kind", kind={"const": tag}) for tag in "xy"]},
    ),
    "recursion with a wider member": (tree(size=COUNT), tree(size={"type": "number"})),
    "pairs": (
        {"type": "array", "prefixItems": [TEXT, COUNT], "maxItems": 2},
        {"type": "array", "items": {"type": ["string", "integer"]}},
    ),
    "unlike items of one": (
        {"type": "array", "maxItems": 1},
        {"type": "array", "uniqueItems": True},
    ),
    "names of a pattern": (
        {"type": "object", "patternProperties": {"^x": COUNT}},
        {"type": "object", "patternProperties": {"^x": {"type": "number"}}},
    ),
    "a condition on both sides": (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, **obj(a=TEXT)},
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
    ),
    "an old dialect": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [TEXT], "type": "array"},
        {"type": "array", "prefixItems": [TEXT]},
    ),
}
EXCLUDED: dict[str, tuple[Schema, Schema]] = {
    "a pattern": (TEXT, {**TEXT, "pattern": "^[0-9]{5}$"}),
    "a format": (TEXT, {**TEXT, "format": "ipv4"}),
    "a closed object": (obj(a=TEXT), closed(a=TEXT)),
    "far down": (
        obj("a", a={"type": "array", "items": obj("b", b={"type": "number"})}),
        obj("a", a={"type": "array", "items": obj("b", b=COUNT)}),
    ),
    "recursion with a narrower member": (tree(size={"type": "number"}), tree(size=COUNT)),
    "a gap": (
        {"type": "number"},
        {"anyOf": [{"maximum": 5}, {"type": "number", "exclusiveMinimum": 6}]},
    ),
    "unlike items": ({"type": "array"}, {"type": "array", "uniqueItems": True}),
    "true is not one": ({"enum": [1, True]}, {"const": 1}),
    "a condition": ({"type": "object"}, {"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
}
UNDECIDED: dict[str, tuple[Schema, Schema, str]] = {
    "patterns": (
        {**TEXT, "pattern": "^[ab]{40}$"},
        {**TEXT, "pattern": "^(a|b){40}$"},
        "the keyword pattern",
    ),
    "a schema elsewhere": (
        TEXT,
        {"$ref": "https://example.com/schema.json"},
        "a reference out of the schema",
    ),
    "no schema": (TEXT, {"type": "text"}, "a schema that is not valid"),
    "itself alone": (TEXT, {"$ref": "#"}, "a schema that refers to itself and nothing else"),
    "a format that nobody checks": (
        {**TEXT, "minLength": 1},
        {**TEXT, "format": "phone"},
        "the format phone",
    ),
}


@pytest.mark.parametrize(("old", "new"), INCLUDED.values(), ids=INCLUDED)
def test_every_value_is_a_value_of_the_other(old: Schema, new: Schema) -> None:
    assert inclusion_of(old, new).verdict == "included"


@pytest.mark.parametrize(("old", "new"), EXCLUDED.values(), ids=EXCLUDED)
def test_a_value_shows_that_the_other_is_narrower(old: Schema, new: Schema) -> None:
    inclusion = inclusion_of(old, new)
    assert inclusion.verdict == "excluded"
    (witness,) = inclusion.witness
    assert judge(old).is_valid(witness)
    assert not judge(new).is_valid(witness)


@pytest.mark.parametrize(("old", "new", "reason"), UNDECIDED.values(), ids=UNDECIDED)
def test_neither_proof_nor_value_is_undecided(old: Schema, new: Schema, reason: str) -> None:
    inclusion = inclusion_of(old, new)
    assert (inclusion.verdict, inclusion.reason) == ("undecided", reason)


def test_the_place_of_a_narrower_member_is_named() -> None:
    old, new = EXCLUDED["far down"]
    inclusion = inclusion_of(old, new)
    place = "/properties/a/items/properties/b"
    assert (inclusion.old, inclusion.new) == (place, place)


def test_no_verdict_is_wrong() -> None:
    verdicts: Counter[str] = Counter()

    @settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(pairs(), st.data())
    def check(pair: tuple[Schema, Schema], data: st.DataObject) -> None:
        old, new = pair
        inclusion = inclusion_of(old, new)
        verdicts[inclusion.verdict] += 1
        old_judge, new_judge = judge(old), judge(new)
        if inclusion.verdict == "excluded":
            (witness,) = inclusion.witness
            assert old_judge.is_valid(witness)
            assert not new_judge.is_valid(witness)
        if inclusion.verdict == "included":
            for value in data.draw(st.lists(values(old) | values(new), min_size=10, max_size=10)):
                assert not old_judge.is_valid(value) or new_judge.is_valid(value)

    check()
    assert min(verdicts["included"], verdicts["excluded"]) > verdicts.total() / 10
    assert verdicts["undecided"] < verdicts.total() / 10
