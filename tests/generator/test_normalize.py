"""The plain form: names for all that has none, maps for what is open, tags, and checks."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import (
    COUNT,
    OPEN,
    TEXT,
    const,
    facts_of,
    normal_of,
    obj,
    ref,
)
from generator.tables import table
from mcpgen.errors import SchemaError
from mcpgen.model.normalized import ANY_MAP, OWN_DEFAULT, Range

NUMBER: dict[str, Any] = {"anyOf": [COUNT, {"type": "number"}]}
DECLARED = "declares further members, kept as a map of JSON values"
MORE: dict[str, Any] = {**obj(a=TEXT), "additionalProperties": TEXT}
NORMALIZED: dict[str, Any] = table("normalized")
"""Schemas of members, their plain forms, and the notes by their places."""


@pytest.mark.parametrize(("node", "plain", "notes"), NORMALIZED.values(), ids=NORMALIZED)
def test_a_member_keeps_what_binds_and_each_deviation_is_noted_at_its_place(
    node: Any, plain: Any, notes: dict[str, str]
) -> None:
    normal = normal_of(
        A=obj(x=node), Open={**obj(a=TEXT), "additionalProperties": {}}, Empty=OPEN, Word=TEXT
    )
    assert normal.definitions["A"].properties.get("x") == plain
    expected = {f"/$defs/A/properties/x{below}": text for below, text in notes.items()}
    assert {note.pointer: note.text for note in normal.notes} == expected
    without_loss = {note.text for note in normal.notes if not note.is_lossy}
    assert without_loss == {t for t in notes.values() if t.startswith(("taken as any", "no type,"))}


def test_an_object_without_a_type_is_noted_where_it_is_defined() -> None:
    node = {"properties": {"q": TEXT}}
    normal = normal_of(A=node, B={"anyOf": [node, COUNT]})
    noted = [note for note in normal.notes if note.text == "no type, taken as object"]
    assert [note.pointer for note in noted] == ["/$defs/A", "/$defs/B/anyOf/0"]
    assert not any(note.is_lossy for note in noted)


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
    inner = {"anyOf": [ref("Text"), ref("Blob")]}
    outer = {"anyOf": [ref("Text"), {"type": "array", "items": inner}]}
    normal = normal_of(Text=obj("a", a=TEXT), Blob=obj("b", b=TEXT), Message=obj(content=outer))
    assert normal.definitions["Message"].properties["content"] == ref("MessageContent")
    _, items = normal.definitions["MessageContent"].members
    assert items["items"] == ref("MessageContentItem")


def test_an_inline_variant_is_named_after_its_const_or_a_member() -> None:
    objects = (obj("c a", c=TEXT, a=TEXT), obj("b", b=TEXT, mode=const("fast")), obj(d=TEXT))
    normal = normal_of(Key={"anyOf": [TEXT, *objects]})
    assert list(normal.definitions) == ["Key", "KeyC", "KeyFast", "KeyD"]


def test_a_union_of_itself_is_any_value_and_a_message_alone_is_that_message() -> None:
    ping = obj("method", method=const("ping"))
    tree = {"anyOf": [TEXT, {"type": "array", "items": ref("Tree")}]}
    lists = {"type": "array", "items": ref("Json")}
    json = {"anyOf": [*(TEXT, COUNT, {"type": "boolean"}), lists]}
    messages = {"ClientRequest": ping, "PingRequest": ping}
    normal = normal_of(Tree=tree, Json=json, A=obj(x=ref("Tree")), **messages)
    assert normal.definitions["A"].properties["x"] == {}
    assert normal.definitions["ClientRequest"].node == ref("PingRequest")
    [note] = normal.notes
    assert (note.pointer, note.text) == (
        "/$defs/Tree",
        "a union of itself, taken as any JSON value",
    )


def test_the_number_of_a_version_may_also_be_a_text() -> None:
    normal = normal_of(Hello=obj("protocolVersion", protocolVersion=COUNT))
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert normal.definitions["Hello"].properties["protocolVersion"] == either
    [note] = normal.notes
    assert note.text == "the number of a version, taken as a number or a text: it may be a date"


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
    assert thing.properties["share"] == NUMBER
    assert thing.checks == expected


@pytest.mark.parametrize(("value", "tells"), [("asking", True), (0, False), (False, False)])
def test_a_default_of_its_own_tells_a_definition_if_it_is_a_text(value: Any, tells: bool) -> None:
    facts = facts_of(defaults={"Asking": {"kind": value, "more": "x"}})
    normal = normal_of(facts=facts, Asking=obj("kind", kind={}, more=TEXT))
    assert normal.definitions["Asking"].properties["more"]["default"] == "x"
    member = normal.definitions["Asking"].properties["kind"]
    assert member["default"] == value
    assert (OWN_DEFAULT in member) is tells


@pytest.mark.parametrize("name", ["my-type", "ValueError", "class"])
def test_a_name_that_python_cannot_use_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="a name that Python can use"):
        normal_of(**{name: obj(a=TEXT)})


def test_a_property_that_is_no_schema_is_refused() -> None:
    with pytest.raises(SchemaError, match="a schema that is an object, got 3"):
        normal_of(A=obj(a=3))


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
    both = {**ref("A"), "properties": {"b": TEXT}, "required": ["b", "a"]}
    more = {"allOf": [ref("Alias"), obj("c", c=TEXT)]}
    normal = normal_of(A=obj("a", a=TEXT), B=both, Alias={"allOf": [ref("B")]}, C=more)
    assert normal.definitions["B"].node == obj("a b", a=TEXT, b=TEXT)
    assert normal.definitions["C"].node == obj("a b c", a=TEXT, b=TEXT, c=TEXT)


def test_a_member_that_is_only_required_is_any_value() -> None:
    normal = normal_of(A={**obj(a=TEXT), "required": ["late"]})
    assert normal.definitions["A"].node == {**obj("late", a=TEXT, late={})}


def test_declared_further_members_are_kept_in_received_objects() -> None:
    normal = normal_of(
        Some=MORE,
        Tool=MORE,
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
