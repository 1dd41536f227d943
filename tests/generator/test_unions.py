"""Unions without a tag: tests that tell their members apart, or a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import TEXT, any_of, const, facts_of, normal_of, obj, ref
from mcpgen.errors import SchemaError
from mcpgen.normalized import NormalizedSchema
from mcpgen.unions import Variant, decide, member_names, untagged


def decided(**definitions: Any) -> tuple[Variant, ...]:
    """The tests for the union `U`, which a message holds."""
    normal = normal_of(**definitions, Message=obj(content=ref("U")))
    return untagged(normal).get("U", ())


def test_tags_need_no_tests() -> None:
    a, b = obj("kind", kind=const("a")), obj("kind", kind=const("b"))
    assert decided(A=a, B=b, U=any_of("A", "B")) == ()


def test_one_object_among_other_values_needs_no_tests() -> None:
    assert decided(A=obj("x", x=TEXT), U={"anyOf": [ref("A"), TEXT]}) == ()


def test_members_are_told_by_what_only_they_require() -> None:
    text, blob = obj("uri text", uri=TEXT, text=TEXT), obj("uri blob", uri=TEXT, blob=TEXT)
    assert decided(A=text, B=blob, U=any_of("A", "B")) == (
        Variant("A", required=("text",)),
        Variant("B", required=("blob",)),
    )


def test_the_member_that_requires_more_comes_first() -> None:
    less, more = obj("a", a=TEXT), obj("a b", a=TEXT, b=TEXT)
    assert decided(Less=less, More=more, U=any_of("Less", "More")) == (
        Variant("More", required=("b",)),
        Variant("Less"),
    )


def test_members_are_told_by_the_values_of_a_member() -> None:
    number = obj("type", type={"enum": ["integer", "number"]}, least=TEXT)
    text = obj("type", type=const("string"), longest=TEXT)
    assert decided(Number=number, Text=text, U=any_of("Number", "Text")) == (
        Variant("Number", consts=(("type", ("integer", "number")),)),
        Variant("Text", consts=(("type", ("string",)),)),
    )


def test_a_const_that_may_be_missing_tells_nothing_of_its_own_member() -> None:
    form, link = obj("ask", ask=TEXT, mode=const("form")), obj("mode", mode=const("url"))
    assert decided(Form=form, Link=link, U=any_of("Form", "Link")) == (
        Variant("Form", required=("ask",)),
        Variant("Link"),
    )


def test_members_are_told_by_what_an_object_in_them_holds() -> None:
    plain = obj("items", items=obj("enum", enum=TEXT))
    titled = obj("items", items=obj("anyOf", anyOf=TEXT))
    assert decided(Plain=plain, Titled=titled, U=any_of("Plain", "Titled")) == (
        Variant("Plain", inner=(("items", ("enum",)),)),
        Variant("Titled", inner=(("items", ("anyOf",)),)),
    )


def test_a_member_with_one_option_more_is_told_by_that_option() -> None:
    old, new = obj("enum", enum=TEXT, names=TEXT), obj("enum", enum=TEXT)
    assert decided(Old=old, New=new, U=any_of("New", "Old")) == (
        Variant("Old", required=("names",)),
        Variant("New"),
    )


def test_a_default_of_its_own_tells_a_result_from_others() -> None:
    facts = facts_of(defaults={"*": {"type": "done"}, "Asking": {"type": "asking"}})
    normal = normal_of(
        facts=facts,
        Done=obj("type", type=TEXT, text=TEXT),
        Asking=obj("type", type=TEXT, asked=TEXT),
    )
    assert decide(normal, ["Done", "Asking"], "/$defs/X") == (
        Variant("Asking", consts=(("type", ("asking",)),)),
        Variant("Done"),
    )


def test_members_of_the_very_same_shape_are_one() -> None:
    same = obj("a", a=TEXT)
    assert decided(A=same, B=same, C=obj("c", c=TEXT), U=any_of("A", "B", "C")) == (
        Variant("A", required=("a",)),
        Variant("C", required=("c",)),
    )


def test_unions_in_unions_are_laid_out() -> None:
    normal = normal_of(
        A=obj("a", a=TEXT),
        B=obj("b", b=TEXT),
        C=obj("c", c=TEXT),
        Inner=any_of("A", "B"),
        U=any_of("Inner", "C"),
        Message=obj(content=ref("U")),
    )
    assert [variant.type for variant in untagged(normal)["U"]] == ["A", "B", "C"]
    assert member_names(normal, normal.definitions["U"]) == ("A", "B", "C")


UNDECIDED = {"A": obj(a=TEXT), "B": obj(b=TEXT), "U": any_of("A", "B")}


def test_a_union_in_use_whose_members_nothing_tells_apart_is_refused() -> None:
    with pytest.raises(SchemaError, match="tells apart, got A and B") as caught:
        decided(**UNDECIDED)
    assert caught.value.pointer == "/$defs/U"


def test_a_union_that_nothing_refers_to_may_stay_undecided() -> None:
    normal: NormalizedSchema = normal_of(**UNDECIDED)
    assert untagged(normal) == {}


def test_an_untagged_union_of_objects_and_other_values_is_refused() -> None:
    with pytest.raises(SchemaError, match="objects only"):
        decided(A=obj("a", a=TEXT), B=obj("b", b=TEXT), U={"anyOf": [ref("A"), ref("B"), TEXT]})


def test_members_that_each_hide_the_other_are_refused() -> None:
    """A goes before B, B before C, and C before A: there is no order."""
    definitions = {
        "A": obj("x", x=TEXT, z=TEXT),
        "B": obj("y", y=TEXT, x=TEXT),
        "C": obj("z", z=TEXT, y=TEXT),
    }
    with pytest.raises(SchemaError, match="tells apart"):
        decided(**definitions, U=any_of("A", "B", "C"))
