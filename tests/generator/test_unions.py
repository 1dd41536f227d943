"""Unions without a tag: tests that tell their members apart, any JSON value, or a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import COUNT, TEXT, any_of, const, facts_of, normal_of, obj, ref
from mcpgen.errors import SchemaError
from mcpgen.model.normalized import NormalizedSchema
from mcpgen.model.unions import Variant, decide, decide_all, member_names


def chosen_tests(**definitions: Any) -> tuple[Variant, ...]:
    """The tests for the union `U`, which a message holds."""
    outcome = decide_all(normal_of(**definitions, Message=obj(content=ref("U"))))
    assert outcome.types.notes == ()
    return outcome.tests.get("U", ())


def test_tags_need_no_tests() -> None:
    a, b = obj("kind", kind=const("a")), obj("kind", kind=const("b"))
    assert chosen_tests(A=a, B=b, U=any_of("A", "B")) == ()


def test_one_object_among_other_values_needs_no_tests() -> None:
    assert chosen_tests(A=obj("x", x=TEXT), U={"anyOf": [ref("A"), TEXT]}) == ()


def test_members_are_told_by_what_only_they_require() -> None:
    text, blob = obj("uri text", uri=TEXT, text=TEXT), obj("uri blob", uri=TEXT, blob=TEXT)
    assert chosen_tests(A=text, B=blob, U=any_of("A", "B")) == (
        Variant("A", required=("text",)),
        Variant("B", required=("blob",)),
    )


def test_the_member_that_requires_more_comes_first() -> None:
    less, more = obj("a", a=TEXT), obj("a b", a=TEXT, b=TEXT)
    assert chosen_tests(Less=less, More=more, U=any_of("Less", "More")) == (
        Variant("More", required=("b",)),
        Variant("Less"),
    )


def test_members_are_told_by_the_values_of_a_member() -> None:
    number = obj("type", type={"enum": ["integer", "number"]}, least=TEXT)
    text = obj("type", type=const("string"), longest=TEXT)
    assert chosen_tests(Number=number, Text=text, U=any_of("Number", "Text")) == (
        Variant("Number", consts=(("type", ("integer", "number")),)),
        Variant("Text", consts=(("type", ("string",)),)),
    )


def test_an_optional_const_does_not_discriminate_its_variant() -> None:
    form, link = obj("ask", ask=TEXT, mode=const("form")), obj("mode", mode=const("url"))
    assert chosen_tests(Form=form, Link=link, U=any_of("Form", "Link")) == (
        Variant("Form", required=("ask",)),
        Variant("Link"),
    )


DECIDED = {
    "tags of two names": (
        (obj("kind", kind=const("a")), obj("type", type=const("a"))),
        (Variant("A", required=("kind",)), Variant("B", required=("type",))),
    ),
    "one tag of two objects": (
        (obj("kind a", kind=const("x"), a=TEXT), obj("kind b", kind=const("x"), b=TEXT)),
        (Variant("A", required=("a",)), Variant("B", required=("b",))),
    ),
    "a tag of one object": (
        (obj("kind a", kind=const("x"), a=TEXT), obj("b", b=TEXT)),
        (Variant("A", required=("kind",)), Variant("B", required=("b",))),
    ),
    "values that are shared": (
        (obj("k a", k={"enum": [1, 2]}, a=TEXT), obj("k b", k={"enum": [2, 3]}, b=TEXT)),
        (Variant("A", required=("a",)), Variant("B", required=("b",))),
    ),
    "an optional set of values": (
        (obj("a", a=TEXT, k={"enum": ["x", "y"]}), obj("k", k=const("z"))),
        (Variant("A", required=("a",)), Variant("B")),
    ),
    "an object beside a text": (
        (obj("i a", i=obj("x", x=TEXT), a=TEXT), obj("i b", i=TEXT, b=TEXT)),
        (Variant("A", required=("a",)), Variant("B", required=("b",))),
    ),
}


@pytest.mark.parametrize("case", DECIDED)
def test_two_objects_are_told_by_one_test_each(case: str) -> None:
    (a, b), expected = DECIDED[case]
    assert chosen_tests(A=a, B=b, U=any_of("A", "B")) == expected


def test_an_open_map_is_tried_after_all_objects() -> None:
    definitions = {"Open": TEXT_MAP, "Free": obj(x=TEXT), "A": A}
    normal = normal_of(**definitions, U=any_of("Open", "Free", "A"))
    order = [variant.type for variant in decide_all(normal).tests["U"]]
    assert order == ["A", "Free", "Open"]


def test_members_are_told_by_what_an_object_in_them_holds() -> None:
    plain = obj("items", items=obj("enum", enum=TEXT))
    titled = obj("items", items=obj("anyOf", anyOf=TEXT))
    assert chosen_tests(Plain=plain, Titled=titled, U=any_of("Plain", "Titled")) == (
        Variant("Plain", inner=(("items", ("enum",)),)),
        Variant("Titled", inner=(("items", ("anyOf",)),)),
    )


def test_a_member_with_one_option_more_is_told_by_that_option() -> None:
    old, new = obj("enum", enum=TEXT, names=TEXT), obj("enum", enum=TEXT)
    assert chosen_tests(Old=old, New=new, U=any_of("New", "Old")) == (
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
    assert chosen_tests(A=same, B=same, C=obj("c", c=TEXT), U=any_of("A", "B", "C")) == (
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
    assert [variant.type for variant in decide_all(normal).tests["U"]] == ["A", "B", "C"]
    assert member_names(normal, normal.definitions["U"]) == ("A", "B", "C")


A, B = obj("a", a=TEXT), obj("b", b=TEXT)
TAGGED = {"A": obj("k", k=const("a")), "B": obj("k", k=const("b"))}
TEXTS, COUNTS = ({"type": "array", "items": item} for item in (TEXT, COUNT))
TEXT_MAP, COUNT_MAP = ({"type": "object", "additionalProperties": item} for item in (TEXT, COUNT))

UNDECIDED: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "objects that require nothing": (
        {"A": obj(a=TEXT), "B": obj(b=TEXT)},
        [ref("A"), ref("B")],
        "A and B",
    ),
    "two optional members more": (
        {"A": obj("a", a=TEXT, b=TEXT, c=TEXT), "B": obj("a", a=TEXT)},
        [ref("A"), ref("B")],
        "A and B",
    ),
    "an optional member more, and another type": (
        {"A": obj("a", a=TEXT, b=TEXT), "B": obj("a", a=COUNT)},
        [ref("A"), ref("B")],
        "A and B",
    ),
    "an optional member more, and one more is required": (
        {"A": obj("a b", a=TEXT, b=TEXT, c=TEXT), "B": obj("a", a=TEXT, b=TEXT)},
        [ref("A"), ref("B")],
        "A and B",
    ),
    "each hides the next": (  # A goes before B, B before C, and C before A
        {
            "A": obj("x", x=TEXT, z=TEXT),
            "B": obj("y", y=TEXT, x=TEXT),
            "C": obj("z", z=TEXT, y=TEXT),
        },
        [ref("A"), ref("B"), ref("C")],
        "A and B",
    ),
    "objects and a scalar": ({"A": A, "B": B}, [ref("A"), ref("B"), TEXT], '["A", "B"]'),
    "objects and null": (
        {"A": A, "B": B},
        [ref("A"), ref("B"), {"type": "null"}],
        '["A", "B"]',
    ),
    "objects and an array": ({"A": A, "B": B}, [ref("A"), ref("B"), TEXTS], '["A", "B"]'),
    "an object and a map": ({"A": A}, [ref("A"), TEXT_MAP], "objects with members and maps"),
    "tags and a map": (TAGGED, [ref("A"), ref("B"), TEXT_MAP], "objects with members and maps"),
    "two maps": ({}, [TEXT_MAP, COUNT_MAP], "2 kinds of map"),
    "two arrays": ({}, [TEXTS, COUNTS], "2 kinds of array"),
    "two arrays by name": (
        {"A": TEXTS, "B": COUNTS, "C": ref("B")},
        [ref("A"), ref("C")],
        "2 kinds of array",
    ),
}


@pytest.mark.parametrize("case", UNDECIDED)
def test_an_undecided_member_is_json_and_its_place_is_noted(case: str) -> None:
    definitions, members, why = UNDECIDED[case]
    normal = normal_of(**definitions, U={"anyOf": members}, Message=obj(content=ref("U")))
    outcome = decide_all(normal)
    assert outcome.types.definitions["U"].node == {}
    assert outcome.tests == {}
    (note,) = outcome.types.notes
    assert note.pointer == "/$defs/U"
    assert note.text == f"a union that nothing decides ({why}), taken as any JSON value"


@pytest.mark.parametrize("case", UNDECIDED)
def test_a_result_that_nothing_decides_is_refused_with_its_place(case: str) -> None:
    definitions, members, why = UNDECIDED[case]
    normal = normal_of(**definitions, U={"anyOf": members}, PaintResult=ref("U"))
    with pytest.raises(SchemaError) as caught:
        decide_all(normal, ["PaintResult"])
    assert (caught.value.pointer, caught.value.came) == ("/$defs/U", why)


@pytest.mark.parametrize("case", UNDECIDED)
def test_a_union_that_nothing_refers_to_may_stay_undecided(case: str) -> None:
    definitions, members, _ = UNDECIDED[case]
    normal: NormalizedSchema = normal_of(**definitions, U={"anyOf": members})
    decision = decide_all(normal)
    assert not any(variant.decides for variant in decision.tests.get("U", ()))
    assert (
        ("U" in decision.tests)
        == all("$ref" in member for member in members)
        == (decision.types == normal)
    )


def test_requiring_what_most_members_have_tells_none_apart() -> None:
    normal = normal_of(
        Ended=obj("_meta", _meta=TEXT),
        Prompts=obj("prompts", prompts=TEXT, _meta=TEXT),
        Tools=obj("tools", tools=TEXT, _meta=TEXT),
        Empty=obj("", _meta=TEXT),
        Other=obj("", _meta=TEXT, x=TEXT),
        U=any_of("Ended", "Empty", "Other", "Prompts", "Tools"),
    )
    order = [variant.type for variant in decide_all(normal).tests["U"]]
    assert order.index("Ended") > max(order.index("Prompts"), order.index("Tools"))


def test_members_that_half_have_tell_those_that_require_them() -> None:
    normal = normal_of(
        Empty=obj("", z=TEXT),
        More=obj("", h=TEXT, y=TEXT),
        Other=obj("", x=TEXT),
        Half=obj("h", h=TEXT),
        U=any_of("Empty", "More", "Other", "Half"),
    )
    order = [variant.type for variant in decide_all(normal).tests["U"]]
    assert order == ["Half", "Empty", "More", "Other"]


@pytest.mark.parametrize("levels", [64, 65])
def test_unions_are_nested_in_sixty_four_levels_at_most(levels: int) -> None:
    references = {f"R{number}": ref(f"R{number - 1}") for number in range(2, levels + 1)}
    normal = normal_of(R1=A, **references, Message=obj(content=ref(f"R{levels}")))
    if levels == 64:
        assert decide_all(normal).types == normal
        return
    with pytest.raises(SchemaError) as caught:
        decide_all(normal)
    assert caught.value.pointer == "/$defs/R65"
    assert caught.value.expected == "unions in at most 64 levels, with at most 2000 ways down"


@pytest.mark.parametrize("more", [0, 1])
def test_a_union_has_two_thousand_ways_down_at_most(more: int) -> None:
    below = [f"A{number}" for number in range(5)]
    definitions = {name: obj(name, **{name: TEXT}) for name in below}
    for level, copies in enumerate((5, 5, 2, 2, 2, 2)):  # 5, 25, 125, 250, 500, 1000 ways each
        names = [f"U{level}{number}" for number in range(copies)]
        definitions |= {name: any_of(*below) for name in names}
        below = names
    normal = normal_of(
        **definitions, U=any_of(*below, *["A0"] * more), Message=obj(content=ref("U"))
    )
    if not more:
        assert set(decide_all(normal).tests) == normal.definitions.keys() - {
            "Message",
            *"ABCDE",
        } - {f"A{number}" for number in range(5)}
        return
    with pytest.raises(SchemaError, match="2000 ways down") as caught:
        decide_all(normal)
    assert caught.value.pointer == "/$defs/U"


def test_a_union_around_an_undecided_one_also_takes_any_json() -> None:
    normal = normal_of(
        Inner={"anyOf": [TEXTS, COUNTS]},
        A=A,
        B=B,
        U={"anyOf": [ref("A"), ref("B"), ref("Inner")]},
        Message=obj(content=ref("U")),
    )
    outcome = decide_all(normal)
    assert [note.pointer for note in outcome.types.notes] == ["/$defs/Inner"]
    assert outcome.tests == {}


@pytest.mark.parametrize(
    "members",
    [
        [TEXT, COUNT, {"type": "boolean"}, TEXTS, TEXT_MAP],
        [TEXTS, TEXTS, ref("Texts")],
        [ref("A"), TEXTS, {"type": "null"}],
        [{}, ref("A"), TEXT_MAP],
    ],
    ids=["one of each kind", "the same array", "one object", "anything"],
)
def test_members_of_different_kinds_need_no_tests(members: list[Any]) -> None:
    assert chosen_tests(A=A, Texts=TEXTS, U={"anyOf": members}) == ()
