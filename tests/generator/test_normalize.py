"""The plain form: names for all that has none, maps for what is open, tags, and checks."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import (
    COUNT,
    OPEN,
    TEXT,
    any_of,
    const,
    facts_of,
    normal_of,
    obj,
    plain,
    ref,
)
from mcpgen.errors import SchemaError
from mcpgen.model.normalized import ANY_MAP, OWN_DEFAULT, Range

NUMBER = {"type": "number"}


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"type": "integer", "minimum": 0, "default": 3}, {"type": "integer", "minimum": 0}),
        ({"type": "number"}, {"anyOf": [COUNT, NUMBER]}),
        ({"type": ["string", "null"]}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"type": ["integer", "number"]}, {"anyOf": [COUNT, NUMBER]}),
        ({"enum": ["a", "b"], "type": "string"}, {"type": "string", "enum": ["a", "b"]}),
        ({"const": 3, "type": "integer"}, {"const": 3}),
        (
            {"type": "array", "items": TEXT, "maxItems": 3},
            {"type": "array", "items": TEXT, "maxItems": 3},
        ),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "object"}, ANY_MAP),
        ({"type": "object", "properties": {}, "additionalProperties": True}, ANY_MAP),
        (
            {"type": "object", "additionalProperties": COUNT},
            {"type": "object", "additionalProperties": COUNT},
        ),
        ({}, {}),
        (True, {}),
        (
            {"type": "integer", "minimum": 2**63 - 1, "maximum": 2**63},
            {**COUNT, "minimum": 2**63 - 1},
        ),
        ({"type": "integer", "minimum": -(2**63)}, COUNT),
        ({"type": "integer", "maximum": 1 - 2**63}, {**COUNT, "maximum": 1 - 2**63}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": 1}, {**COUNT, "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 1}, {**COUNT, "exclusiveMaximum": 1}),
        ({**TEXT, "minLength": 1, "pattern": "a"}, {**TEXT, "minLength": 1, "pattern": "a"}),
        ({"enum": [1, 2.5]}, {"anyOf": [COUNT, NUMBER]}),
        ({"enum": [True]}, {"type": "boolean"}),
        ({"enum": ["a", True]}, {"anyOf": [{"enum": ["a"]}, {"type": "boolean"}]}),
        ({"type": "array", "items": {"not": {}}}, {"type": "array", "items": {}, "maxItems": 0}),
        ({"type": "array", "prefixItems": [TEXT]}, {"type": "array", "items": {}}),
        ({"type": "array", "items": [TEXT]}, {"type": "array", "items": {}}),
        ({"allOf": [obj(a=TEXT), {"enum": ["x"]}]}, {}),
        ({**obj(a=TEXT), "anyOf": [obj(b=TEXT), obj(c=TEXT)]}, {}),
        ({"not": TEXT}, {}),
        ({**TEXT, "contains": {}}, TEXT),
        ({"const": 1.5}, {"anyOf": [COUNT, {"type": "number"}]}),
        ({"const": []}, {"type": "array", "items": {}}),
        ({"const": {}}, ANY_MAP),
    ],
)
def test_a_property_keeps_what_binds_and_loses_what_only_tells(
    published: Any, expected: Any
) -> None:
    assert plain(published) == expected


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        pytest.param(
            {"Tool": obj(box=obj(lid=obj(color=TEXT)))},
            "Tool ToolBox ToolBoxLid",
            id="an inline object after the way to it",
        ),
        pytest.param(
            {
                "Tool": obj(
                    parts={"type": "array", "items": obj(a=TEXT)},
                    marks={"type": "object", "additionalProperties": obj(b=TEXT)},
                )
            },
            "Tool ToolParts ToolMarks",
            id="lists and maps add nothing",
        ),
        pytest.param(
            {"Place": {"oneOf": [obj(kind=const("far")), obj("near", near=TEXT), TEXT]}},
            "Place PlaceFar PlaceNear",
            id="an inline variant after its const or what it requires",
        ),
        pytest.param(
            {"Place": {"anyOf": [TEXT, obj(near=TEXT, far=TEXT)]}},
            "Place PlaceNear",
            id="an optional inline variant after a member",
        ),
    ],
)
def test_what_has_no_name_is_named(definitions: dict[str, Any], expected: str) -> None:
    assert list(normal_of(**definitions).definitions) == expected.split()


def test_the_nearest_later_revision_names_unnamed_types() -> None:
    near = {"CallRequest": obj(params=ref("CallParams")), "CallParams": obj(to=TEXT)}
    far = {"CallRequest": obj(params=ref("Other")), "Other": obj(to=TEXT)}
    normal = normal_of(later=(near, far), CallRequest=obj(params=obj(to=obj(name=TEXT))))
    assert list(normal.definitions) == ["CallRequest", "CallParams", "CallParamsTo"]


def test_two_structures_never_share_a_name() -> None:
    later = {name: obj(params=ref("Params")) for name in ("A", "B")} | {"Params": obj(x=TEXT)}
    normal = normal_of(later=(later,), A=obj(params=obj(x=TEXT)), B=obj(params=obj(y=TEXT)))
    assert normal.definitions["A"].properties["params"] == ref("Params")
    assert normal.definitions["B"].properties["params"] == ref("BParams")


def test_a_name_that_is_taken_by_something_else_gets_a_number() -> None:
    normal = normal_of(
        ToolBox=obj(a=TEXT), Tool=obj(box=obj(b=TEXT)), Too=obj(lBox=obj(c=TEXT), lBox2=TEXT)
    )
    assert normal.definitions["Tool"].properties["box"] == ref("ToolBox2")
    assert list(normal.definitions["ToolBox2"].properties) == ["b"]
    assert list(normal.definitions["ToolBox"].properties) == ["a"]


def test_a_union_and_the_union_of_its_items_have_two_names() -> None:
    inner = any_of("Text", "Blob")
    outer = {"anyOf": [ref("Text"), {"type": "array", "items": inner}]}
    normal = normal_of(Text=obj("a", a=TEXT), Blob=obj("b", b=TEXT), Message=obj(content=outer))
    assert normal.definitions["Message"].properties["content"] == ref("MessageContent")
    _, items = normal.definitions["MessageContent"].members
    assert items["items"] == ref("MessageContentItem")


def test_an_all_of_one_reference_is_the_reference() -> None:
    normal = normal_of(A=obj(a=TEXT), B=obj(a={"allOf": [ref("A")], "default": None}))
    assert normal.definitions["B"].properties["a"] == ref("A")


def test_the_number_of_a_version_may_also_be_a_text() -> None:
    normal = normal_of(Hello=obj("protocolVersion", protocolVersion=COUNT))
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert normal.definitions["Hello"].properties["protocolVersion"] == either
    [note] = normal.notes
    assert note.text == "the number of a version, taken as a number or a text: it may be a date"


def test_an_inner_union_gets_a_name_and_an_official_one_keeps_it() -> None:
    normal = normal_of(
        Text=obj(text=TEXT),
        Blob=obj(blob=TEXT),
        Block=any_of("Text", "Blob"),
        Message=obj(content=any_of("Text", "Blob"), extra=any_of("Blob", "Text")),
    )
    message = normal.definitions["Message"]
    assert message.properties["content"] == ref("Block")
    assert message.properties["extra"] == ref("MessageExtra")


def test_all_parts_of_an_all_of_become_one_object() -> None:
    normal = normal_of(
        Base=obj("id", id=TEXT, kind=TEXT),
        Task={"allOf": [ref("Base"), obj("kind", kind=const("task"))]},
    )
    assert normal.definitions["Task"].properties == {"id": TEXT, "kind": {"const": "task"}}
    assert list(normal.definitions["Task"].required) == ["id", "kind"]


def test_an_all_of_with_a_union_is_a_json_value_and_noted() -> None:
    normal = normal_of(A={"anyOf": [TEXT]}, Task={"allOf": [obj(x=TEXT), ref("A")]})
    assert normal.definitions["Task"].node == {}
    assert [note.pointer for note in normal.notes] == ["/$defs/Task"]


def test_a_schema_with_types_of_its_own_is_an_object() -> None:
    form = obj("type", type=const("object"), properties={"additionalProperties": ref("Part")})
    normal = normal_of(Part=obj(a=TEXT), Ask=obj(form=form))
    assert normal.definitions["AskForm"].tag == ("type", "object")


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ({"minimum": 0, "maximum": 1}, (Range("share", 0, 1),)),
        ({"minimum": 0}, (Range("share", 0, None, ("minimum",)),)),
        (
            {"exclusiveMinimum": 0, "maximum": 1},
            (Range("share", 0, 1, ("exclusiveMinimum", "maximum")),),
        ),
        ({}, ()),
    ],
)
def test_bounds_of_a_number_are_checked_beside_its_type(span: Any, expected: Any) -> None:
    thing = normal_of(Thing=obj(share={"type": "number", **span})).definitions["Thing"]
    assert thing.properties["share"] == {"anyOf": [COUNT, NUMBER]}
    assert thing.checks == expected


def test_a_union_of_itself_in_lists_and_maps_is_anything() -> None:
    normal = normal_of(
        Value={"anyOf": [ref("Object"), {"type": "array", "items": ref("Value")}, TEXT]},
        Object={"type": "object", "additionalProperties": ref("Value")},
    )
    assert normal.definitions["Value"].node == {}
    assert normal.definitions["Object"].node == ANY_MAP


def test_the_const_that_differs_most_is_the_tag() -> None:
    normal = normal_of(
        A=obj("rpc method", rpc=const("2.0"), method=const("a")),
        B=obj("rpc method", rpc=const("2.0"), method=const("b")),
        C=obj("rpc", rpc=const("2.0"), mode=const("c")),
        D=obj(x=TEXT),
    )
    tags = [definition.tag for definition in normal.definitions.values()]
    assert tags == [("method", "a"), ("method", "b"), ("rpc", "2.0"), None]


def test_a_default_takes_the_place_of_required() -> None:
    facts = facts_of(defaults={"*": {"kind": "done"}, "Asking": {"kind": "asking"}})
    result = obj("kind", kind=TEXT)
    normal = normal_of(facts=facts, Done=result, Asking=result)
    assert normal.definitions["Done"].required == []
    assert normal.definitions["Done"].properties["kind"]["default"] == "done"
    assert normal.definitions["Asking"].properties["kind"]["default"] == "asking"


@pytest.mark.parametrize(("value", "tells"), [("asking", True), (0, False), (False, False)])
def test_a_default_of_its_own_tells_a_definition_if_it_is_a_text(value: Any, tells: bool) -> None:
    facts = facts_of(defaults={"Asking": {"kind": value}})
    normal = normal_of(facts=facts, Asking=obj("kind", kind={}))
    member = normal.definitions["Asking"].properties["kind"]
    assert member["default"] == value
    assert (OWN_DEFAULT in member) is tells


@pytest.mark.parametrize("name", ["my-type", "ValueError", "class"])
def test_a_name_that_python_cannot_use_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="a name that Python can use"):
        normal_of(**{name: obj(a=TEXT)})


def test_a_property_that_is_no_schema_is_refused() -> None:
    with pytest.raises(SchemaError, match="a schema that is an object, got 3"):
        plain(3)


@pytest.mark.parametrize("impossible", [False, {"not": {}}, {"not": True}])
def test_a_member_without_valid_values_is_left_out_and_noted(impossible: Any) -> None:
    normal = normal_of(Thing=obj("b", a=impossible, b=impossible))
    assert normal.definitions["Thing"].properties == {"b": {}}
    texts = {note.pointer.rpartition("/")[2]: note.text for note in normal.notes}
    assert texts == {
        "a": "no value is valid, left out",
        "b": "no value is valid, taken as any JSON value",
    }


def test_members_beside_a_reference_are_those_of_one_object() -> None:
    both = {**ref("A"), "properties": {"b": TEXT}, "required": ["b"]}
    normal = normal_of(A=obj("a", a=TEXT), B=both)
    assert normal.definitions["B"].node == obj("a b", a=TEXT, b=TEXT)


def test_a_member_that_is_only_required_is_any_value() -> None:
    normal = normal_of(A={**obj(a=TEXT), "required": ["late"]})
    assert normal.definitions["A"].node == {**obj("late", a=TEXT, late={})}


def test_notes_of_an_all_of_point_at_the_part_they_are_about() -> None:
    part = obj(b={"type": "array", "uniqueItems": True})
    normal = normal_of(A=obj(a=TEXT), B={"allOf": [ref("A"), part]})
    (note,) = normal.notes
    assert note.pointer == "/$defs/B/allOf/1/properties/b/uniqueItems"


DECLARED = "declares further members, kept as a map of JSON values"
LOST = "not checked"
TUPLE = "a tuple, taken as a list of JSON values"
UNLISTED = "values that no type lists, not checked"


@pytest.mark.parametrize(
    ("node", "notes"),
    [
        ({"not": {}}, {"": "no value is valid, left out"}),
        ({"not": TEXT}, {"/not": LOST}),
        ({**TEXT, "contains": {}}, {"/contains": LOST}),
        ({**TEXT, "uniqueItems": False}, {}),
        ({"type": "array", "uniqueItems": True, "items": True}, {"/uniqueItems": LOST}),
        (
            {"allOf": [obj(a=TEXT), {"enum": ["x"]}]},
            {"": "an allOf of what is no object, taken as any JSON value"},
        ),
        ({**TEXT, "if": {}, "minLength": 1}, {"/if": LOST}),
        ({"type": "number", "minimum": 0, "multipleOf": 2}, {"/multipleOf": LOST}),
        ({"type": "number", "minimum": 0}, {}),
        ({"const": True, "minimum": 1}, {"/minimum": LOST}),
        (ref("Open"), {"": "declared open, kept as a map of JSON values, which Open can read"}),
        (ref("Empty"), {}),
        (
            {"oneOf": [TEXT, COUNT, {"not": {}}]},
            {"/oneOf": "taken as anyOf", "/oneOf/2": "no value is valid, left out"},
        ),
        ({**TEXT, "anyOf": [TEXT, ref("Word")]}, {}),
        ({"type": ["string", "integer"], "anyOf": [TEXT]}, {}),
        ({**TEXT, "anyOf": [TEXT, COUNT]}, {"/type": LOST}),
        (
            {**TEXT, "anyOf": [TEXT, {"minLength": 1}]},
            {"/type": LOST, "/anyOf/1/minLength": LOST},
        ),
        ({"enum": ["a"], "minLength": 3}, {"/minLength": LOST}),
        ({"enum": [1, 2.5]}, {"/enum": UNLISTED}),
        ({"enum": [True, False]}, {}),
        ({"enum": [True]}, {"/enum": UNLISTED}),
        ({"enum": [True, "a"]}, {"/enum": UNLISTED}),
        ({"enum": [{"a": 1}, {"b": 1}]}, {"/enum": UNLISTED}),
        ({"enum": ["a", None]}, {}),
        ({"items": TEXT}, {"": "no type, taken as array"}),
        ({"properties": {"q": TEXT}}, {"": "no type, taken as object"}),
        ({"type": "array", "prefixItems": [TEXT]}, {"/prefixItems": LOST, "/items": TUPLE}),
        ({"type": "array", "items": [TEXT]}, {"/items": TUPLE}),
        ({"type": "array", "items": {"not": {}}}, {}),
        (
            obj(type=const("object"), q=TEXT),
            {"": "a JSON Schema as a value, taken as a map of JSON values"},
        ),
        ({"type": "object", "required": ["a"]}, {"/required": LOST}),
        ({"type": "object", "additionalProperties": False}, {"/additionalProperties": LOST}),
        ({"type": "object", "additionalProperties": True}, {}),
        ({**obj(a=TEXT), "additionalProperties": TEXT}, {"": DECLARED}),
        (
            {"type": "array", "items": {**obj(a=TEXT), "additionalProperties": TEXT}},
            {"/items": DECLARED},
        ),
        ({"type": "object", "maxProperties": 2}, {}),
        (
            {"type": "array", "items": {"type": "object", "maxProperties": 2}},
            {"/items/maxProperties": LOST},
        ),
        ({"allOf": [ref("Word")], "minLength": 1}, {"/minLength": LOST}),
        (
            {"allOf": [{**obj(a=TEXT), "minProperties": 1}, obj(a=COUNT, b=TEXT)]},
            {
                "/allOf/0/minProperties": LOST,
                "/allOf/0/properties/a": "another part of the allOf replaces it",
            },
        ),
        ({"allOf": [obj(a={"type": ["string", "null"]}), obj(a=TEXT)]}, {}),
        (
            {"allOf": [obj(a={"type": ["string", "null"]}), obj(a={"type": ["string", "array"]})]},
            {"/allOf/0/properties/a": "another part of the allOf replaces it"},
        ),
        (
            {"allOf": [obj(a=TEXT), obj(a={"type": ["string", "null"]})]},
            {"/allOf/0/properties/a": "another part of the allOf replaces it"},
        ),
        (
            {**obj(p=TEXT), "anyOf": [TEXT]},
            {"": "an object and a union in one, taken as any JSON value"},
        ),
        (
            {**obj(p=TEXT), "anyOf": [{"required": ["p"]}]},
            {"/anyOf": "alternatives of an object, not checked"},
        ),
        (
            {**obj(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"/anyOf": "alternatives of an object, not checked"},
        ),
    ],
)
def test_each_deviation_from_a_schema_is_noted_at_its_place(
    node: Any, notes: dict[str, str]
) -> None:
    normal = normal_of(
        A=obj(x=node), Open={**obj(a=TEXT), "additionalProperties": {}}, Empty=OPEN, Word=TEXT
    )
    actual = {note.pointer: note for note in normal.notes}
    expected = {f"/$defs/A/properties/x{below}": text for below, text in notes.items()}
    assert {pointer: note.text for pointer, note in actual.items()} == expected
    without_loss = ("taken as anyOf", "no type, ")
    for note in normal.notes:
        assert note.is_lossy is not note.text.startswith(without_loss)


def test_declared_further_members_are_kept_in_received_objects() -> None:
    some = {**obj(a=TEXT), "additionalProperties": TEXT}
    normal = normal_of(
        Some=some,
        Tool=some,
        A=obj(one=ref("Some"), all={"type": "array", "items": ref("Some")}, tool=ref("Tool")),
        AskRequest=obj("method", method=const("ask"), params=ref("Some")),
    )
    members = normal.definitions["A"].properties
    assert members["one"] == ANY_MAP
    assert members["all"] == {"type": "array", "items": ANY_MAP}
    assert members["tool"] == ref("Tool")
    assert normal.definitions["AskRequest"].properties["params"] == ref("Some")
    texts = {note.pointer: note.text for note in normal.notes}
    assert texts == {
        "/$defs/Some/additionalProperties": "further members, dropped unless extra=True is given",
        "/$defs/Tool/additionalProperties": "further members, dropped unless extra=True is given",
        "/$defs/A/properties/one": f"{DECLARED}, which Some can read",
        "/$defs/A/properties/all/items": f"{DECLARED}, which Some can read",
    }


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({"type": "object"}, None),
        (ref("Empty"), None),
        ({"type": "object", "additionalProperties": TEXT}, "_meta, kept as a map of JSON values"),
        (obj(k=TEXT), "the members of _meta, kept as a map of JSON values"),
        (
            {**obj(k=TEXT), "additionalProperties": {}},
            "the members of _meta, kept as a map of JSON values",
        ),
    ],
)
def test_meta_is_always_a_map_and_what_the_schema_says_of_it_noted(
    meta: Any, text: str | None
) -> None:
    normal = normal_of(A=obj(_meta=meta), Empty=OPEN)
    assert normal.definitions["A"].properties["_meta"] == ANY_MAP
    texts = [note.text for note in normal.notes if note.pointer == "/$defs/A/properties/_meta"]
    assert texts == ([] if text is None else [text])


def test_a_union_that_is_another_one_has_the_same_notes() -> None:
    union = {"anyOf": [TEXT, {"type": "array", "uniqueItems": True}]}
    other = {"anyOf": [COUNT, {"type": "array", "uniqueItems": True}]}
    normal = normal_of(U=union, U2=other, A=obj(x=union), B={"type": "array", "items": union})
    assert normal.definitions["A"].properties["x"] == ref("U")
    places = ("A/properties/x", "B/items", "U", "U2")
    assert {note.pointer for note in normal.notes} == {
        f"/$defs/{place}/anyOf/1/uniqueItems" for place in places
    }


@pytest.mark.parametrize("wire", ['a"b', "a\\b", "a\nb"])
@pytest.mark.parametrize("required", [[], ["c"], ["c", "wire"]])
def test_a_member_that_no_field_can_have_is_left_out_and_noted(
    wire: str, required: list[str]
) -> None:
    node = obj("", **{wire: TEXT, "c": TEXT})
    node["required"] = [wire if name == "wire" else name for name in required]
    normal = normal_of(A=node)
    assert normal.definitions["A"].node == obj("c" if required else "", c=TEXT)
    [note] = normal.notes
    assert note.pointer == f"/$defs/A/properties/{wire}"
    assert note.text == "a name that no field can have, left out: encoding drops the member"
