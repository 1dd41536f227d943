"""Unions without a tag: tests that tell their members apart, any JSON value, or a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from generator.schemas import COUNT, TEXT, any_of, normal_of, obj, ref
from generator.tables import table
from mcpgen.errors import SchemaError
from mcpgen.model.unions import Variant, decide_all


def chosen_tests(**definitions: Any) -> tuple[Variant, ...]:
    """The tests for the union `U`, which a message holds."""
    outcome = decide_all(normal_of(**definitions, Message=obj(content=ref("U"))))
    assert outcome.types.notes == ()
    return outcome.tests.get("U", ())


DECIDED: dict[str, Any] = table("unions")
"""Two objects, with the tests that tell them apart: a type and the members it requires."""


@pytest.mark.parametrize(("a", "b", "tests"), DECIDED.values(), ids=DECIDED)
def test_two_objects_are_told_by_one_test_each(
    a: dict[str, Any], b: dict[str, Any], tests: list[list[str]]
) -> None:
    expected = tuple(Variant(type, required=tuple(required)) for type, *required in tests)
    assert chosen_tests(A=a, B=b, U=any_of("A", "B")) == expected


def test_an_open_map_is_tried_after_all_objects() -> None:
    definitions = {"Open": TEXT_MAP, "Free": obj(x=TEXT), "A": A}
    normal = normal_of(**definitions, U=any_of("Open", "Free", "A"))
    order = [variant.type for variant in decide_all(normal).tests["U"]]
    assert order == ["A", "Free", "Open"]


def test_members_of_the_very_same_shape_are_one() -> None:
    same = obj("a", a=TEXT)
    assert chosen_tests(A=same, B=same, C=obj("c", c=TEXT), U=any_of("A", "B", "C")) == (
        Variant("A", required=("a",)),
        Variant("C", required=("c",)),
    )


A, B = obj("a", a=TEXT), obj("b", b=TEXT)
TEXTS, COUNTS = ({"type": "array", "items": item} for item in (TEXT, COUNT))
TEXT_MAP, COUNT_MAP = ({"type": "object", "additionalProperties": item} for item in (TEXT, COUNT))
MORE = obj("a", a=TEXT, b=TEXT)
CYCLE = {  # A goes before B, B before C, and C before A
    "A": obj("x", x=TEXT, z=TEXT),
    "B": obj("y", y=TEXT, x=TEXT),
    "C": obj("z", z=TEXT, y=TEXT),
}

UNDECIDED: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "objects that require nothing": ({"A": obj(a=TEXT), "B": obj(b=TEXT)}, [], "A and B"),
    "two optional members more": ({"A": obj("a", a=TEXT, b=TEXT, c=TEXT), "B": A}, [], "A and B"),
    "one more, of another type": (
        {"A": MORE, "B": obj("a", a=COUNT)},
        [],
        "A and B",
    ),
    "one more, and one more required": (
        *({"A": obj("a b", a=TEXT, b=TEXT, c=TEXT), "B": MORE}, []),
        "A and B",
    ),
    "each hides the next": (CYCLE, [], "A and B"),
    "objects and a scalar": ({"A": A, "B": B}, [TEXT], '["A", "B"]'),
    "an object and a map": ({"A": A}, [TEXT_MAP], "objects with members and maps"),
    "two maps": ({}, [TEXT_MAP, COUNT_MAP], "2 kinds of map"),
    "two arrays by name": ({"A": TEXTS, "B": COUNTS, "C": ref("B")}, [], "2 kinds of array"),
}
"""Definitions that are members of a union, others beside them, and what cannot be told apart."""


@pytest.mark.parametrize("case", UNDECIDED)
def test_an_undecided_member_is_json_and_noted_and_a_result_refused(case: str) -> None:
    definitions, others, why = UNDECIDED[case]
    definitions = {**definitions, "U": {"anyOf": [*map(ref, definitions), *others]}}
    outcome = decide_all(normal_of(**definitions, Message=obj(content=ref("U"))))
    assert outcome.types.definitions["U"].node == {}
    assert outcome.tests == {}
    (note,) = outcome.types.notes
    assert note.pointer == "/$defs/U"
    assert note.text == f"a union that nothing decides ({why}), taken as any JSON value"
    with pytest.raises(SchemaError) as caught:
        decide_all(normal_of(**definitions, PaintResult=ref("U")), ["PaintResult"])
    assert (caught.value.pointer, caught.value.came) == ("/$defs/U", why)


def test_requiring_what_most_members_have_tells_none_apart() -> None:
    normal = normal_of(
        Ended=obj("_meta", _meta=TEXT),
        Prompts=obj("prompts", prompts=TEXT, _meta=TEXT),
        Tools=obj("tools", tools=TEXT, _meta=TEXT),
        Empty=obj("", _meta=TEXT),
        Other=obj("", _meta=TEXT, x=TEXT),
        U=any_of("Ended", "Empty", "Other", "Prompts", "Tools"),
        Half=obj("x", x=TEXT),
        InHalf=any_of("Empty", "Other", "Half", "A"),
        A=obj(a=TEXT),
        Mixed={"anyOf": [ref("Empty"), ref("A"), TEXT]},
    )
    outcome = decide_all(normal)
    order = [variant.type for variant in outcome.tests["U"]]
    assert order.index("Ended") > max(order.index("Prompts"), order.index("Tools"))
    order = [variant.type for variant in outcome.tests["InHalf"]]
    assert order == ["Half", "Empty", "Other", "A"]
    assert outcome.types.definitions["Mixed"].node == {}


def test_unions_nest_to_the_limits_and_no_further() -> None:
    def chain(levels: int) -> dict[str, Any]:
        return {"R1": A, **{f"R{at}": ref(f"R{at - 1}") for at in range(2, levels + 1)}}

    def ways(more: int) -> dict[str, Any]:
        below = [f"A{at}" for at in range(5)]
        definitions = {name: obj(name, **{name: TEXT}) for name in below}
        for level, copies in enumerate((5, 5, 2, 2, 2, 2)):  # 5, 25, 125, 250, 500, 1000 ways each
            names = [f"U{level}{at}" for at in range(copies)]
            definitions |= {name: any_of(*below) for name in names}
            below = names
        return {**definitions, "U": any_of(*below, *["A0"] * more)}

    for sound in (chain(64), ways(0)):
        decide_all(normal_of(**sound))
    for wrong in (chain(65), ways(1)):
        with pytest.raises(SchemaError, match="at most 64 levels, with at most 2000 ways down"):
            decide_all(normal_of(**wrong))


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
        [ref("A"), TEXT],
        [TEXT, COUNT, {"type": "boolean"}, TEXTS, TEXT_MAP],
        [TEXTS, TEXTS, ref("Texts")],
        [ref("A"), TEXTS, {"type": "null"}],
        [{}, ref("A"), TEXT_MAP],
    ],
    ids=["an object and a text", "one of each kind", "the same array", "one object", "anything"],
)
def test_members_of_different_kinds_need_no_tests(members: list[Any]) -> None:
    assert chosen_tests(A=A, Texts=TEXTS, U={"anyOf": members}) == ()
