"""Whether every value of one schema is a value of another: examples, and made-up pairs."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from generator.schema_pairs import Schema, pairs, values
from generator.schemas import COUNT, TEXT, obj
from mcpgen.contract.inclusion import Inclusion, inclusion_of

NUMBER: dict[str, Any] = {"type": "number"}
LIST: dict[str, Any] = {"type": "array"}
OBJECT: dict[str, Any] = {"type": "object"}
NONE = {"allOf": [TEXT, COUNT]}
HARD = {**TEXT, "pattern": "^[ab]{40}$"}
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
FORMATS = jsonschema.FormatChecker()


def judge(schema: Schema) -> Any:
    """The judge of the values of a schema."""
    draft = jsonschema.Draft202012Validator
    return validator_for(schema, draft)(schema, format_checker=FORMATS)


def closed(required: str = "", **members: Schema) -> dict[str, Any]:
    """The schema of an object without other members."""
    return {**obj(required, **members), "additionalProperties": False}


def within(levels: int, inner: Schema) -> Schema:
    """The schema of an object that needs an object, and so on, down to some schema."""
    return obj("a", a=within(levels - 1, inner)) if levels else inner


def one_of(*schemas: Schema, keyword: str = "oneOf") -> dict[str, Any]:
    """One of some schemas."""
    return {keyword: [*schemas]}


def texts(count: int) -> dict[str, Any]:
    """Any of some values."""
    return one_of(*({"const": f"{number}"} for number in range(count)), keyword="anyOf")


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
    "equal lengths": (
        one_of({**TEXT, "maxLength": 2}, {**LIST, "maxItems": 2}, keyword="anyOf"),
        {"maxLength": 2, "maxItems": 2},
    ),
    "lengths of two alternatives": (
        {"type": ["string", "array"], "maxLength": 4, "maxItems": 4},
        one_of({"maxLength": 3, "maxItems": 3}, {"minLength": 4, "minItems": 4}, keyword="anyOf"),
    ),
    "whole numbers between bounds, named": (
        {**COUNT, "exclusiveMinimum": 0, "maximum": 3.5},
        {"enum": [1, 2, 3]},
    ),
    "multiples between bounds, named": (
        {**NUMBER, "type": "integer", "minimum": 1, "exclusiveMaximum": 6, "multipleOf": 2},
        {"enum": [2, 4]},
    ),
    "65 whole numbers, named": (
        {**COUNT, "minimum": 0, "maximum": 64},
        {"enum": [*range(65)]},
    ),
    "multiples between bounds": (
        {**COUNT, "minimum": 2, "maximum": 4, "multipleOf": 3},
        {**NUMBER, "minimum": 3, "maximum": 3, "multipleOf": 1.5},
    ),
    "whole numbers beside bounds": (
        {**COUNT, "exclusiveMinimum": 0.5, "exclusiveMaximum": 2.5},
        {**COUNT, "minimum": 1, "maximum": 2},
    ),
    "whole numbers beside open bounds": (
        {**COUNT, "exclusiveMinimum": 0, "exclusiveMaximum": 9},
        {**COUNT, "minimum": 1, "maximum": 8},
    ),
    "tenths": ({"multipleOf": 0.2}, {"multipleOf": 0.1}),
    "a bound and one below it": (
        {"maximum": 5, "exclusiveMaximum": 4, "minimum": 1, "exclusiveMinimum": 2},
        {"exclusiveMaximum": 4, "exclusiveMinimum": 2},
    ),
    "as many members as are named": (closed(a=TEXT, b=TEXT), {"maxProperties": 2}),
    "fewer members than are named": (
        {**closed(a=TEXT, b=TEXT), "maxProperties": 1},
        {"maxProperties": 1},
    ),
    "equal numbers of members": (
        {**OBJECT, "minProperties": 1, "maxProperties": 2},
        {"minProperties": 1, "maxProperties": 2},
    ),
    "as many members as are required": (obj("a b"), {"minProperties": 2}),
    "shorter names": (
        {**OBJECT, "propertyNames": {"maxLength": 3}},
        {"propertyNames": {"maxLength": 5}},
    ),
    "names of a closed object": (closed(abc=TEXT), {"propertyNames": {"maxLength": 3}}),
    "a member whose name is refused": (
        {**obj(abcd=COUNT), "propertyNames": {"maxLength": 3}, "additionalProperties": TEXT},
        {"additionalProperties": TEXT},
    ),
    "a member that is refused": (obj(a=False), {**OBJECT, "properties": {"a": COUNT}}),
    "a member that a pattern covers": (
        {**obj(xa=NUMBER), "patternProperties": {"^x": COUNT}},
        obj(xa=COUNT),
    ),
    "only names of a pattern": (
        {**closed(), "patternProperties": {"^x": COUNT}},
        {**OBJECT, "additionalProperties": NUMBER},
    ),
    "names of two patterns": (
        {**closed(), "patternProperties": {"^x": COUNT, "^y": TEXT, "^z": False}},
        {**closed(), "patternProperties": {"^x": NUMBER, "^y": TEXT}},
    ),
    "other members for names of a pattern": (
        {**OBJECT, "additionalProperties": COUNT, "patternProperties": {"^y": COUNT}},
        {**OBJECT, "patternProperties": {"^x": NUMBER}},
    ),
    "the same names of a pattern, twice": (
        one_of({"$ref": "#/$defs/A"}, obj(xa=COUNT), keyword="allOf")
        | {"$defs": {"A": {**closed(), "patternProperties": {"^x": NUMBER}}}},
        {**closed(), "patternProperties": {"^x": NUMBER}},
    ),
    "values of three members, each with an object": (
        obj("a b c d", **{name: {"enum": [1, 2]} for name in "abc"}, d=COUNT),
        one_of(
            *(
                obj(a={"const": a}, b={"const": b}, c={"const": c}, d=NUMBER)
                for a, b, c in itertools.product((1, 2), repeat=3)
            ),
            keyword="anyOf",
        ),
    ),
    "a member that is there or not": (
        obj(a=TEXT),
        one_of(obj("a", a=TEXT), obj(a=False), keyword="anyOf"),
    ),
    "any member that is there or not": (
        OBJECT,
        one_of({"required": ["a"]}, obj(a=False), keyword="anyOf"),
    ),
    "values of a member that may lack": (
        obj(a={"enum": ["x", "y"]}),
        one_of(*(obj(a={"const": tag}) for tag in "xy"), keyword="anyOf"),
    ),
    "a range and its ends": (
        {**NUMBER, "minimum": 1, "maximum": 2},
        one_of(
            {"maximum": 1},
            {"exclusiveMinimum": 1, "exclusiveMaximum": 2},
            {"minimum": 2},
            keyword="anyOf",
        ),
    ),
    "nothing, as a member has no value": (obj("a", a=NONE), TEXT),
    "nothing, far down": (within(6, NONE), TEXT),
    "nothing, as an item has no value": ({**LIST, "minItems": 1, "items": NONE}, TEXT),
    "nothing, as the second item has no value": (
        {**LIST, "minItems": 2, "prefixItems": [TEXT], "items": NONE},
        TEXT,
    ),
    "nothing, as bounds do not meet": (
        {
            "minimum": 2,
            "maximum": 1,
            "minLength": 2,
            "maxLength": 1,
            "minItems": 2,
            "maxItems": 1,
            "required": ["a", "b"],
            "maxProperties": 1,
        },
        {"type": ["null", "boolean"]},
    ),
    "nothing, as a bound is left out": (
        one_of(
            {**NUMBER, "minimum": 1, "exclusiveMaximum": 1},
            {**NUMBER, "maximum": 1, "exclusiveMinimum": 1},
            keyword="anyOf",
        ),
        TEXT,
    ),
    "true and false as schemas": (
        one_of(False, TEXT, keyword="anyOf"),
        one_of(True, TEXT, keyword="anyOf"),
    ),
    "values of two lists": (
        one_of(
            {"enum": ["a", "b"]},
            {"enum": ["b", 1]},
            {"type": ["string", "number"]},
            keyword="allOf",
        ),
        {"const": "b"},
    ),
    "every type but one": (
        {"type": ["null", "boolean", "number", "string", "array"]},
        one_of(
            {"enum": [None, True, False]}, {"type": ["number", "string", "array"]}, keyword="anyOf"
        ),
    ),
    "lists and objects, named": ({"enum": [[], {}]}, one_of(LIST, OBJECT)),
    "keywords beside a reference": (
        {"$ref": "#/$defs/A", "minLength": 3, "$defs": {"A": TEXT}},
        {**TEXT, "minLength": 3},
    ),
    "a reference beside no other keyword of an old dialect": (
        {**TEXT, "minLength": 1},
        {"$schema": DRAFT_7, "$ref": "#/definitions/A", "minLength": 3, "definitions": {"A": TEXT}},
    ),
    "an open bound of an old dialect": (
        {"$schema": DRAFT_4, **COUNT, "minimum": 1, "exclusiveMinimum": True},
        {**COUNT, "minimum": 2},
    ),
    "a refused schema on both sides": (
        {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": TEXT}},
        {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": TEXT}},
    ),
    "a refused schema beside other definitions": (
        {"not": TEXT, "$defs": {"A": TEXT}},
        {"not": TEXT},
    ),
    "96 alternatives": (one_of(texts(8), texts(12), keyword="allOf"), TEXT),
    "one of two ranges": (
        {**NUMBER, "minimum": 6},
        one_of({**NUMBER, "minimum": 5}, {**NUMBER, "exclusiveMaximum": 5}),
    ),
    "one of two lists of values": ({"type": "boolean"}, one_of({"const": True}, {"const": False})),
    "one of objects, the first without others": (
        obj("b", b=TEXT),
        one_of(closed(a=TEXT), obj("b", b=TEXT)),
    ),
    "one of objects, the last without others": (
        obj("b", b=TEXT),
        one_of(obj("b", b=TEXT), closed(a=TEXT)),
    ),
    "one of objects told apart three levels down": (
        within(3, {"const": "x"}),
        one_of(within(3, {"const": "x"}), within(3, {"const": "y"})),
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
    "a whole number at an open bound": (
        {**COUNT, "minimum": 1, "maximum": 1},
        {**COUNT, "exclusiveMinimum": 1},
    ),
    "a number at an open bound": (
        {**NUMBER, "minimum": 1, "maximum": 1},
        {**NUMBER, "exclusiveMaximum": 1},
    ),
    "one more than the named whole numbers": (
        {**COUNT, "minimum": 1, "maximum": 4},
        {"enum": [1, 2, 3]},
    ),
    "a number at an open bound of an old dialect": (
        {**NUMBER, "minimum": 1},
        {"$schema": DRAFT_4, **NUMBER, "minimum": 1, "exclusiveMinimum": True},
    ),
    "a number at the upper open bound of an old dialect": (
        {**NUMBER, "maximum": 1},
        {"$schema": DRAFT_4, **NUMBER, "maximum": 1, "exclusiveMaximum": True},
    ),
    "a gap of lengths": (
        TEXT,
        one_of({"maxLength": 2}, {"minLength": 4}, keyword="anyOf"),
    ),
    "a whole number above an open bound": ({**COUNT, "exclusiveMinimum": 0}, {"minimum": 2}),
    "a whole number below an open bound": ({**COUNT, "exclusiveMaximum": 9}, {"maximum": 7}),
    "nothing of a length": (TEXT, {"minLength": 1}),
    "no items": (LIST, {"minItems": 1}),
    "no members": (OBJECT, {"minProperties": 1}),
    "no required member": (obj(a=TEXT), obj("a", a=TEXT)),
    "too many members": (OBJECT, {"maxProperties": 2}),
    "more members than named": (obj(a=TEXT), {"maxProperties": 1}),
    "other members that may be anything": (
        {**OBJECT, "additionalProperties": True},
        {**OBJECT, "additionalProperties": False},
    ),
    "longer names": (OBJECT, {"propertyNames": {"maxLength": 3}}),
    "a longer name of a closed object": (closed(abcd=TEXT), {"propertyNames": {"maxLength": 3}}),
    "a member whose name is allowed": (
        {**obj(abc=COUNT), "propertyNames": {"maxLength": 3}, "additionalProperties": TEXT},
        {"additionalProperties": TEXT},
    ),
    "an item, but no second": ({**LIST, "minItems": 1, "prefixItems": [TEXT], "items": NONE}, TEXT),
    "the second item": (
        {**LIST, "items": NUMBER},
        {**LIST, "prefixItems": [NUMBER], "items": COUNT},
    ),
    "two alternatives with the same narrower member": (
        obj("a kind", a=NUMBER, kind={"enum": ["x", "y"]}),
        one_of(*(obj(a=COUNT, kind={"const": tag}) for tag in "xy"), keyword="anyOf"),
    ),
    "a reference alone, in an old dialect": (
        {"$schema": DRAFT_7, "$ref": "#/definitions/A", "minLength": 3, "definitions": {"A": TEXT}},
        {**TEXT, "minLength": 3},
    ),
    "a refused schema of another definition": (
        {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": TEXT}},
        {"not": {"$ref": "#/$defs/A"}, "$defs": {"A": COUNT}},
    ),
    "two of two ranges": (
        {**NUMBER, "minimum": 6},
        one_of({**NUMBER, "minimum": 5}, {**NUMBER, "minimum": 0}),
    ),
    "two of two lengths": (
        {**TEXT, "minLength": 2, "maxLength": 3},
        one_of({**TEXT, "maxLength": 3}, {**TEXT, "minLength": 2}),
    ),
    "two of two objects": (
        obj("a b", a=TEXT, b=TEXT),
        one_of(obj("a", a=TEXT), {**closed("b", b=TEXT), "additionalProperties": TEXT}),
    ),
    "two of two members": (obj("v", v=TEXT), one_of(obj("v"), obj("v", v=TEXT))),
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
    "66 whole numbers, named": (
        {**COUNT, "minimum": 0, "maximum": 65},
        {"enum": [*range(66)]},
        "named values",
    ),
    "104 alternatives": (
        one_of(texts(8), texts(13), keyword="allOf"),
        TEXT,
        "too many alternatives",
    ),
    "nothing, too far down": (within(7, NONE), TEXT, "no alternative of its type"),
    "an object that needs itself": (
        obj("a", a={"$ref": "#"}),
        TEXT,
        "no alternative of its type",
    ),
    "too deep": (within(300, NUMBER), within(300, COUNT), "a schema that can't be checked"),
    "patterns of two schemas": (
        one_of(
            {**closed(), "patternProperties": {"^x": TEXT}},
            {"patternProperties": {"^y": TEXT}},
            keyword="allOf",
        ),
        TEXT,
        "patterns of names beside additional members, in two schemas",
    ),
    "a pattern of ECMA-262": (
        {"$schema": DRAFT_4, **OBJECT, "required": ["a"], "patternProperties": {"\\p{L}": TEXT}},
        TEXT,
        "a pattern that Python does not read",
    ),
}
REASONS: dict[str, list[tuple[Schema, Schema]]] = {
    "no alternative of its type": [(TEXT, COUNT)],
    "named values": [(TEXT, {"const": "a"}), ({"enum": [1, 2]}, {"const": 1})],
    "numbers": [(NUMBER, COUNT), (NUMBER, {"maximum": 1}), (NUMBER, {"minimum": 1})],
    "lengths of strings": [(TEXT, {"minLength": 1}), (TEXT, {"maxLength": 1})],
    "lengths of arrays": [(LIST, {"minItems": 1}), (LIST, {"maxItems": 1})],
    "the keyword uniqueItems": [
        (LIST, {"uniqueItems": True}),
        ({**LIST, "maxItems": 2}, {"uniqueItems": True}),
    ],
    "the keyword format": [(TEXT, {"format": "date"})],
    "the keyword oneOf": [
        (TEXT, one_of({"minLength": 2}, {"maxLength": 3})),
        (within(4, {"const": "x"}), one_of(*(within(4, {"const": tag}) for tag in "xy"))),
    ],
    "the keyword if": [(OBJECT, {"if": {"required": ["a"]}, "then": False})],
    "required members": [(OBJECT, {"required": ["a"]})],
    "number of members": [(OBJECT, {"minProperties": 1}), (OBJECT, {"maxProperties": 1})],
    "names of members": [(closed(a=TEXT), {"propertyNames": {"maxLength": 0}})],
}
"""Pairs of schemas by why the second can't be shown to allow what the first does."""


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


@pytest.mark.parametrize(
    ("reason", "old", "new"), [(reason, *pair) for reason in REASONS for pair in REASONS[reason]]
)
def test_without_a_value_the_reason_and_the_place_are_told(
    reason: str, old: Schema, new: Schema
) -> None:
    place = "/properties/v"
    inclusion = inclusion_of(obj("hard v", hard=HARD, v=old), obj("v", v=new))
    assert inclusion == Inclusion("undecided", (), place, place, reason)


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        (*EXCLUDED["far down"], ("/properties/a/items/properties/b",) * 2),
        (*EXCLUDED["a member whose name is allowed"], ("/properties/abc", "/additionalProperties")),
        (*EXCLUDED["a closed object"], ("", "")),
        (*UNDECIDED["a schema elsewhere"][:2], ("", "")),
        (obj(a={"$ref": "#/properties/a"}), obj(a=TEXT), ("/properties/a", "")),
        (
            {**OBJECT, "additionalProperties": COUNT, "patternProperties": {"^y": TEXT}},
            {**OBJECT, "patternProperties": {"x": NUMBER}},
            ("/patternProperties/^y", "/patternProperties/x"),
        ),
        (TEXT, {"properties": {"a": {"type": "text"}}}, ("/properties/a/type",) * 2),
        (
            {**OBJECT, "additionalProperties": TEXT},
            {**OBJECT, "patternProperties": {"^x": NUMBER}},
            ("/additionalProperties", "/patternProperties/^x"),
        ),
        (
            {**OBJECT, "patternProperties": {"^x": TEXT}, "additionalProperties": COUNT},
            {**OBJECT, "additionalProperties": NUMBER},
            ("/patternProperties/^x", "/additionalProperties"),
        ),
    ],
)
def test_the_places_that_decide_are_named(
    old: Schema, new: Schema, places: tuple[str, str]
) -> None:
    inclusion = inclusion_of(old, new)
    assert (inclusion.old, inclusion.new) == places


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
