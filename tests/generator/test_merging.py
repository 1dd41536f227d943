"""Merged types: what several revisions have under one name, beyond the committed package."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import COUNT, OPEN, TEXT, any_of, array, const, normal_of, obj, ref
from mcpgen.model import merging
from mcpgen.model.docstrings import Texts
from mcpgen.model.merging import Merged
from mcpgen.schema.docs import Docs


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def merge_definitions(*revisions: dict[str, Any]) -> Merged:
    """The merged types of these definitions, oldest first."""
    normals = [normal_of(**definitions) for definitions in revisions]
    return merging.merge(
        [
            merging.Source(f"203{at}-01-01", normal, Texts(normal.schema, Docs()))
            for at, normal in enumerate(normals)
        ]
    )


def aliases(result: Merged) -> dict[str, str]:
    return {alias.name: alias.type for alias in result.aliases}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (TEXT, COUNT, "int | str"),
        (None, {}, "Any = None"),
        (OPEN, {}, "Any"),
        (array(TEXT), array(COUNT), "list[int | str]"),
        (array(TEXT), TEXT, "str | list[str]"),
        (OPEN, map_of(TEXT), "dict[str, Any]"),
        (map_of(COUNT), map_of(TEXT), "dict[str, str | int]"),
        ({"anyOf": [array(TEXT), map_of(COUNT)]}, array(COUNT), "list[int | str] | dict[str, int]"),
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, "Literal['b', 'c', 'a']"),
        ({"type": ["integer", "null"]}, COUNT, "int | None"),
        (const(2), const(2), "Literal[2] = 2"),
        (const("a"), {"enum": ["b"]}, "Literal['b', 'a'] = 'a'"),
    ],
)
def test_a_required_member_has_what_any_revision_allows(old: Any, new: Any, expected: str) -> None:
    before = obj(y=TEXT) if old is None else obj("x", x=old)
    (thing,) = merge_definitions({"Thing": before}, {"Thing": obj("x", x=new)}).classes
    (member,) = (each for each in thing.members if each.name == "x")
    shown = f"{member.type} = {member.default}" if member.default else member.type
    assert shown == expected


FORM = obj("message form", message=TEXT, form=OPEN)
URL = obj("message url", message=TEXT, url=TEXT)


@pytest.mark.parametrize(
    "union",
    [
        {"Ask": any_of("AskUrl", "AskMore"), "AskUrl": URL, "AskMore": obj("more", more=TEXT)},
        {"Ask": any_of("AskUrl", "Few"), "AskUrl": URL, "Few": {**FORM, "required": ["message"]}},
        {"Ask": OPEN},
    ],
)
def test_an_object_of_no_members_shape_has_a_class_of_its_own(union: Any) -> None:
    result = merge_definitions({"Ask": FORM, "AskObject": obj(x=TEXT)}, union)
    own = next(each for each in result.classes if each.other_names)
    assert (own.name, own.other_names) == ("AskObjectObject", ("Ask",))
    assert "AskObjectObject" in aliases(result)["Ask"].split(" | ")


def test_aliases_in_a_circle_are_opened() -> None:
    old = {"A": array(ref("B")), "B": TEXT}
    new = {"A": TEXT, "B": array(ref("A"))}
    assert aliases(merge_definitions(old, new)) == {"A": "Any", "B": "str | list[A]"}
