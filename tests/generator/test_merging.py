"""Merged types: what several revisions have under one name, as one class or alias."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import COUNT, OPEN, TEXT, any_of, const, facts_of, normal_of, obj, ref
from mcpgen.model import imports, merging
from mcpgen.model.docstrings import Texts
from mcpgen.model.merging import Class, Merged
from mcpgen.schema.docs import Docs

LIST = {"type": "array", "items": TEXT}
OLD, NEW = "2030-01-01", "2031-01-01"


def merge_definitions(defaults: Any = None, **revisions: dict[str, Any]) -> Merged:
    """The merged types of `old`, `middle` and `new` definitions, as far as they are given."""
    names = {"old": OLD, "middle": "2030-06-01", "new": NEW}
    sources = []
    for key, definitions in revisions.items():
        normal = normal_of(facts=facts_of(defaults=defaults), **definitions)
        sources.append(merging.Source(names[key], normal, Texts(normal.schema, Docs())))
    return merging.merge(sources)


def thing(old: Any, new: Any) -> Class:
    """The class of `Thing`, which has these forms."""
    result = merge_definitions(old={"Thing": old}, new={"Thing": new})
    return next(each for each in result.classes if each.name == "Thing")


def show_members(merged_class: Class) -> dict[str, str]:
    """The members of a class, as they are written."""
    return {
        member.name: f"{member.type} = {member.default}" if member.default else member.type
        for member in merged_class.members
    }


def aliases(result: Merged) -> dict[str, str]:
    return {alias.name: alias.type for alias in result.aliases}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (obj("x", x=TEXT), obj("x", x=TEXT), {"x": "str"}),
        (obj("x", x=TEXT), obj("x", x=COUNT), {"x": "int | str"}),
        (obj("x", x=TEXT), obj(x=TEXT), {"x": "str | None = None"}),
        (obj(y=TEXT), obj("x", x=TEXT), {"x": "str | None = None"}),
        (obj("x", x=TEXT), obj(y=TEXT), {"x": "str | None = None"}),
        (obj("x", x=OPEN), obj(x={}), {"x": "Any | UnsetType | None = UNSET"}),
        (obj("x", x=OPEN), obj("x", x={}), {"x": "Any"}),
        (obj(y=TEXT), obj("x", x={}), {"x": "Any = None"}),
        (obj("x", x=LIST), obj("x", x={"type": "array", "items": COUNT}), {"x": "list[int | str]"}),
        (
            obj("x", x=OPEN),
            obj("x", x={"type": "object", "additionalProperties": TEXT}),
            {"x": "dict[str, Any]"},
        ),
        (
            *(obj("x", x={"enum": ["a", "b"]}), obj("x", x={"enum": ["b", "c"]})),
            {"x": "Literal['b', 'c', 'a']"},
        ),
        (obj("x", x={"type": ["integer", "null"]}), obj("x", x=COUNT), {"x": "int | None"}),
        (
            obj("x", x={"type": "array", "items": {"type": ["string", "null"]}}),
            obj(x={"type": "array", "items": {"type": ["string", "null"]}}),
            {"x": "list[str | None] | None = None"},
        ),
        (obj("x", x=const(2)), obj("x", x=const(2)), {"x": "Literal[2] = 2"}),
        (obj("a", a=TEXT, b=TEXT), obj("b", a=TEXT, b=TEXT), {"a": "str | None = None"}),
        (obj("x", x=const("a")), obj("x", x={"enum": ["b"]}), {"x": "Literal['b', 'a'] = 'a'"}),
        (obj("x", x=LIST), obj("x", x=TEXT), {"x": "str | list[str]"}),
        (
            obj("x", x={"type": "object", "additionalProperties": COUNT}),
            obj("x", x={"type": "object", "additionalProperties": TEXT}),
            {"x": "dict[str, str | int]"},
        ),
        (
            obj("x", x={"anyOf": [LIST, {"type": "object", "additionalProperties": COUNT}]}),
            obj("x", x={"type": "array", "items": COUNT}),
            {"x": "list[int | str] | dict[str, int]"},
        ),
        (obj(mimeType=TEXT), obj(mimeType=TEXT), {"mime_type": "str | None = None"}),
    ],
)
def test_a_member_has_what_any_revision_allows(old: Any, new: Any, expected: Any) -> None:
    members = show_members(thing(old, new))
    assert {name: members[name] for name in expected} == expected


def test_members_that_must_be_given_come_first() -> None:
    merged_class = thing(obj("z", a=TEXT, z=TEXT), obj("z", a=TEXT, b=TEXT, z=TEXT))
    assert list(show_members(merged_class)) == ["z", "a", "b"]


def test_a_default_is_what_a_member_has_unless_it_is_given() -> None:
    mode, other = obj("mode", mode=TEXT), obj(x=TEXT)
    result = merge_definitions(
        defaults={"*": {"mode": "plain"}},
        old={"Both": mode, "Newer": other},
        new={"Both": mode, "Newer": mode},
    )
    both, newer = result.classes
    assert show_members(both) == {"mode": "str = 'plain'"}
    assert show_members(newer) == {"mode": "str | None = None", "x": "str | None = None"}


def test_a_tag_of_all_revisions_has_its_value_as_default() -> None:
    block = {"anyOf": [ref("Text"), ref("Image")]}
    kinds = {
        "Text": obj("type", type=const("text")),
        "Image": obj("type", type=const("image")),
        "Block": block,
        "Message": obj("block", block=ref("Block")),
    }
    result = merge_definitions(old=kinds, new=kinds)
    text = next(each for each in result.classes if each.name == "Text")
    assert show_members(text) == {"type": "Literal['text'] = 'text'"}
    assert aliases(result) == {"Block": "Text | Image"}
    assert imports.of_merged(result).typing == "ClassVar, Literal, TypeAlias"


def test_a_revision_is_told_which_members_it_lacks() -> None:
    result = merge_definitions(
        old={"A": obj(x=TEXT), "Same": obj(x=TEXT)},
        middle={"A": obj(y=TEXT), "Same": obj(x=TEXT)},
        new={"A": obj(y=TEXT, z=TEXT), "Same": obj(x=TEXT)},
    )
    assert result.lacking == {
        OLD: {"A": ("y", "z")},
        "2030-06-01": {"A": ("z", "x")},
        NEW: {"A": ("x",)},
    }


def test_docstrings_say_which_revisions_have_a_type_or_a_member() -> None:
    old = {"A": obj(x=TEXT)}
    new = {
        "A": obj(x=TEXT, y={**TEXT, "description": "More."}),
        "B": {**obj(x=TEXT), "description": "A new type."},
    }
    classes = {each.name: each for each in merge_definitions(old=old, new=new).classes}
    assert f"Only in {NEW}." in classes["B"].doc
    assert "Only in" not in classes["A"].doc


def test_unions_have_the_members_of_all_revisions() -> None:
    parts = {name: obj("kind", kind=const(name), x=TEXT) for name in ("A", "B", "C")}
    result = merge_definitions(
        old={**parts, "Either": any_of("A", "B"), "Id": {"type": ["string", "integer"]}},
        new={**parts, "Either": any_of("B", "C"), "Id": TEXT},
    )
    assert aliases(result) == {"Either": "B | C | A", "Id": "str | int"}


def test_an_alias_follows_those_that_it_refers_to() -> None:
    parts = {name: obj("kind", kind=const(name), x=TEXT) for name in ("A", "B")}
    definitions = {"All": {"type": "array", "items": ref("Each")}, "Each": any_of("A", "B")}
    result = merge_definitions(old={**parts, **definitions}, new={**parts, **definitions})
    assert list(aliases(result)) == ["Each", "All"]


FORM = obj("message form", message=TEXT, form=OPEN)
URL = obj("message url", message=TEXT, url=TEXT)


def test_an_object_that_became_a_union_is_its_member_by_shape() -> None:
    newer = {**FORM, "properties": {**FORM["properties"], "mode": TEXT}}
    result = merge_definitions(
        old={"Ask": FORM},
        new={"Ask": any_of("AskForm", "AskUrl"), "AskForm": newer, "AskUrl": URL},
    )
    assert aliases(result) == {"Ask": "AskForm | AskUrl"}
    form = next(each for each in result.classes if each.name == "AskForm")
    assert form.other_names == ("Ask",)
    assert show_members(form) == {
        "message": "str",
        "form": "dict[str, Any]",
        "mode": "str | None = None",
    }
    assert result.lacking == {OLD: {"Ask": ("mode",)}}
    assert imports.of_merged(result).typing == "Any, ClassVar, TypeAlias"


@pytest.mark.parametrize(
    "union",
    [
        {"Ask": any_of("AskUrl", "AskMore"), "AskUrl": URL, "AskMore": obj("more", more=TEXT)},
        {"Ask": OPEN},
    ],
)
def test_an_object_of_no_members_shape_has_a_class_of_its_own(union: Any) -> None:
    result = merge_definitions(old={"Ask": FORM, "AskObject": obj(x=TEXT)}, new=union)
    own = next(each for each in result.classes if each.other_names)
    assert (own.name, own.other_names) == ("AskObjectObject", ("Ask",))
    assert "AskObjectObject" in aliases(result)["Ask"].split(" | ")


def test_aliases_in_a_circle_are_opened() -> None:
    old = {"A": {"type": "array", "items": ref("B")}, "B": TEXT}
    new = {"A": TEXT, "B": {"type": "array", "items": ref("A")}}
    types = aliases(merge_definitions(old=old, new=new))
    assert types == {"A": "Any", "B": "str | list[A]"}


def test_a_class_has_a_value_if_it_has_one_in_each_revision() -> None:
    sources = [
        merging.Source(name, normal, Texts(normal.schema, Docs()), frozenset(values))
        for name, values in ((OLD, {"A"}), (NEW, {"A", "B"}))
        if (normal := normal_of(A=obj(x=TEXT), B=obj(x=TEXT)))
    ]
    classes = merging.merge(sources).classes
    assert [(each.name, each.has_value) for each in classes] == [("A", True), ("B", False)]
