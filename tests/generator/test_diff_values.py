"""The reports of `mcpgen diff` about pairs of values, word by word, and the numbers behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.diff_schemas import changes, facts_with, message, protocol
from generator.schemas import COUNT, TEXT, any_of, const, obj, ref
from generator.test_diff_rules import ASKED, BRUSH, PAIRS, ROLLER, WET, field, params, sides
from mcpgen.diff import Change, page, report, similarity
from mcpgen.diff.alternatives import Alternative, Array, Object, Scalar, describe
from mcpgen.diff.compare import Diff

BOTH = {"Brush": BRUSH, "Roller": ROLLER}
PAD = obj("kind width", kind=const("pad"), width=COUNT)
CLOSED = {"additionalProperties": False}
OPENED: dict[str, Any] = {"additionalProperties": {}}
AB = obj("a", a=TEXT, b=COUNT)
FLAG = {"type": "boolean"}


def bounds(**limits: Any) -> dict[str, Any]:
    return field({**TEXT, **limits})


VALUES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "anything, then a text": (field({}), field({"anyOf": [TEXT, COUNT]})),
    "a fixed value of a type": (field({"anyOf": [TEXT, const(1)]}), field({"anyOf": [COUNT]})),
    "a fixed object": (field({"const": {"a": 1}}), field({"type": "object"})),
    "a fixed list": (field({"const": [1]}), field({"type": "array"})),
    "fixed values of other types": (
        field({"enum": [True, 1, 1.5, "a", None]}),
        field({"type": ["boolean", "integer", "null"]}),
    ),
    "values and a type": (
        field({"anyOf": [{"enum": ["a", "b"]}, COUNT]}),
        field({"anyOf": [{"enum": ["b", "c"]}, FLAG]}),
    ),
    "values that grow alike": (
        field({"enum": ["paint", "dry"]}),
        field({"enum": ["paints", "painted", "x"]}),
    ),
    "no upper bound": (bounds(maxLength=3), bounds()),
    "a lower bound more": (bounds(maxLength=3), bounds(maxLength=3, minLength=1)),
    "a higher lower bound": (bounds(minLength=1, maxLength=9), bounds(minLength=2, maxLength=8)),
    "a pattern more": (bounds(), bounds(pattern="a")),
    "patterns of two": (
        field({"anyOf": [{**TEXT, "pattern": "b"}, {**TEXT, "pattern": "a"}]}),
        field({**TEXT, "pattern": "c"}),
    ),
    "bounds of two": (
        field(
            {"anyOf": [{**TEXT, "minLength": 2, "maxLength": 5}, {**TEXT, "minLength": 4}, COUNT]}
        ),
        field({"anyOf": [{**TEXT, "minLength": 3}, COUNT]}),
    ),
    "bounds of a list": (
        field({"type": "array", "items": TEXT, "minItems": 1}),
        field({"type": "array", "items": {**TEXT, "minLength": 1}, "maxItems": 3}),
    ),
    "lists of two": (
        field({"anyOf": [{"type": "array", "items": TEXT}, {"type": "array", "items": COUNT}]}),
        field({"type": "array", "items": COUNT}),
    ),
    "a list, then a text": (field({"type": "array", "items": TEXT}), field(TEXT)),
    "one object of other members": (
        {**field(ref("Brush")), "Brush": obj("", **dict.fromkeys("abcdefg", TEXT))},
        {**field(ref("Pad")), "Pad": obj("", **dict.fromkeys("abchijklmn", TEXT))},
    ),
    "one object of three in ten members": (
        {**field(ref("Brush")), "Brush": obj("", **dict.fromkeys("abcdef", TEXT))},
        {**field(ref("Pad")), "Pad": obj("", **dict.fromkeys("abcghij", TEXT))},
    ),
    "one object of many": (
        {**field(any_of("Brush", "Roller")), **BOTH},
        {**field(ref("Brush")), "Brush": BRUSH},
    ),
    "variants of one tag": (
        {**field(any_of("Brush", "Roller")), **BOTH},
        {
            **field(any_of("Comb", "Roller")),
            "Comb": obj("kind", kind=const("brush"), width=COUNT, a=TEXT),
            "Roller": ROLLER,
        },
    ),
    "variants of other tags": (
        {**field(any_of("Brush", "Roller")), **BOTH},
        {**field(any_of("Pad", "Roller")), "Pad": PAD, "Roller": ROLLER},
    ),
    "a named object and an inline one": (
        {**field(ref("Own")), "Own": AB},
        field(obj("a", a=TEXT, b=TEXT)),
    ),
    "an inline object where the type remains": (
        {**params(size=ref("Own"), depth=ref("Own")), "Own": AB},
        {**params(size=obj("", a=TEXT), depth=ref("Own")), "Own": AB},
    ),
    "an open object of fewer members": (
        field({**AB, **CLOSED}),
        field({**obj("", c=TEXT), **OPENED}),
    ),
    "an object opened that names fewer": (field(AB), field({**obj("a", a=TEXT), **OPENED})),
    "an object opened that names none": (field(AB), field({"type": "object", **OPENED})),
    "an object opened that names as many": (field(AB), field({**AB, **OPENED})),
    "an open object that stays open": (
        field({**AB, **OPENED}),
        field({**obj("a", a=TEXT), **OPENED}),
    ),
    "metadata of fewer members": (
        params(_meta=AB),
        params(_meta={**obj("a", a=TEXT), **OPENED}),
    ),
    "values of a map": (
        field({"type": "object", "additionalProperties": TEXT}),
        field({"type": "object", "additionalProperties": COUNT}),
    ),
    "a map of any values": (
        field({"type": "object"}),
        field({**obj(), "additionalProperties": TEXT}),
    ),
    "a closed map": (field({"type": "object"}), field({"type": "object", **CLOSED})),
    "a renamed member of other bounds": (
        field({**TEXT, "maxLength": 4}),
        params(sizes={**TEXT, "maxLength": 5}),
    ),
    "a member renamed with its object": (
        params(size=AB, width=COUNT),
        params(extent=AB, width=COUNT),
    ),
    "members renamed to each other's like": (
        params(first_name=TEXT, last_name=TEXT),
        params(firstName=TEXT, lastName=TEXT),
    ),
    "a member of another type": (params(a=TEXT), params(b=COUNT)),
    "a message of optional parameters": (
        {**WET, "WetNotification": message("notifications/wet", AB, required=False)},
        {**WET, "WetNotification": message("notifications/wet", AB)},
    ),
    "a type that moves to another place": (
        {**params(size=ref("Own")), "Own": AB},
        {"PaintResult": obj("", size=ref("Own")), "Own": obj("a", a=TEXT, b=TEXT)},
    ),
    "a result that goes": (
        {**ASKED, "ServerRequest": any_of("AskRequest")},
        {**ASKED, "ServerRequest": any_of("AskRequest"), "AskResult": obj("text", text=COUNT)},
    ),
}


def word(change: Change) -> str:
    """A change with all that a report has of it."""
    messages = ", ".join(f"{each.sender}: {each.text}" for each in change.messages)
    return (
        f"{change.severity} {change.rule.id} {change.old_place} -> {change.new_place} of "
        f"{change.owner}: {change.old} -> {change.new} = {change.sentence} "
        f"[{', '.join(change.affected_parties)}; {messages}]"
    )


def test_pairs_of_values_differ_in_these_words(snapshot: SnapshotAssertion) -> None:
    cases = {
        case: (protocol("A", **old), protocol("B", **new)) for case, (old, new) in VALUES.items()
    }
    cases |= {f"{pair.rule} {pair.place}": sides(pair) for pair in PAIRS}
    rows = {
        case: {"there": [*map(word, changes(old, new))], "back": [*map(word, changes(new, old))]}
        for case, (old, new) in cases.items()
    }
    assert rows == snapshot


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ("diet", "tide", 0.5),
        ("tide", "diet", 0.5),
        ("fileSize", "file_size", 1.0),
        ("a", "b", 0.0),
        (f"x{'ab' * 150}", "ab" * 150, 600 / 601),
    ],
)
def test_names_are_as_similar_both_ways(one: str, other: str, likeness: float) -> None:
    assert similarity.of_names(one, other) == likeness


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        (obj("", a=TEXT, b=TEXT), obj("", a=TEXT, c=TEXT), 1 / 3),
        (obj("", a=TEXT), obj("a", a=COUNT), 0.5),
        (obj(), obj(), 1.0),
        ({**obj(), **CLOSED}, {**obj(), **CLOSED}, 1.0),
        (obj(), {**obj(), **CLOSED}, 0.0),
        (obj("", a=TEXT), obj(), 0.0),
    ],
)
def test_objects_are_similar_by_their_common_members(one: Any, other: Any, likeness: float) -> None:
    sides = [protocol(**field(ref("Own")), Own=node).alternatives for node in (one, other)]
    ours, theirs = (side.object("Own") for side in sides)
    assert ours is not None
    assert theirs is not None
    assert similarity.of_objects(ours, theirs, *sides) == likeness


@pytest.mark.parametrize(
    ("old", "new", "matches"),
    [
        ("ba", "c", ["ac"]),
        ("a", "cb", ["ab"]),
        ("db", "ca", ["ab", "cd"]),
    ],
)
def test_equal_matches_are_taken_in_the_order_of_names(
    old: str, new: str, matches: list[str]
) -> None:
    pairs = similarity.pairs(old, new, lambda one, other: 1.0, str)
    assert ["".join(sorted((one, other))) for one, other, _ in pairs] == matches


def nest(depth: int) -> dict[str, Any]:
    """A text within some unions of one."""
    node: dict[str, Any] = TEXT
    for _ in range(depth):
        node = {"anyOf": [node]}
    return node


ALIASES: dict[str, Any] = {f"Alias{number}": ref(f"Alias{number + 1}") for number in range(110)}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (nest(100), "string"),
        (nest(101), "any"),
        (ref("Alias11"), "string"),
        (ref("Alias10"), "any"),
        (ref("Nowhere"), "any"),
        (5, "any"),
        ({"properties": {"a": TEXT}}, "object"),
        ({"type": "array", "items": True}, "array"),
        ({"type": "number"}, "number"),
        ({"anyOf": [COUNT, TEXT]}, "integer | string"),
        ({"anyOf": [COUNT, {}]}, "any"),
        ({"enum": []}, "nothing"),
    ],
)
def test_a_place_allows_these_alternatives(node: Any, words: str) -> None:
    side = protocol(**ALIASES, Alias110=TEXT, **field(ref("Alias0")))
    assert describe(side.alternatives.of(node)) == words


def test_equal_alternatives_count_once() -> None:
    side = protocol()
    kinds: list[dict[str, Any]] = [
        *(TEXT, {**TEXT, "minLength": 1}, {"type": "array"}, {"type": "array", "minItems": 1}),
        *({"type": "array", "items": TEXT}, {"const": 1}, {"const": "1"}, obj(), obj("", a=TEXT)),
    ]
    alternatives = side.alternatives.of({"anyOf": [*kinds, *kinds]})
    assert len(alternatives) == len(kinds)
    kinds_of: list[type[Alternative]] = [type(each) for each in alternatives]
    assert [kinds_of.count(kind) for kind in (Scalar, Array, Object)] == [2, 3, 2]


def renaming(length: int = 3) -> Diff:
    """A comparison with one renaming, and a name of some length."""
    name = "s" * length
    old, new = ({each: COUNT} for each in (name, f"{name}e"))
    sides = protocol("A", **params("color", **old)), protocol("B", **params("color", **new))
    return Diff("A", "B", changes(*sides))


def test_a_record_says_how_sure_a_renaming_is_in_hundredths() -> None:
    (change,) = report.record(renaming())["changes"]
    assert (change["rule"], change["confidence"]) == ("FIELD_RENAMED", 0.86)


@pytest.mark.parametrize(("length", "shown"), [(181, 200), (182, 200)])
def test_reports_cut_a_place_after_200_characters(length: int, shown: int) -> None:
    comparison = renaming(length - len("e"))
    place = f"PaintRequestParams.{'s' * (length - 1)}e"
    cut = place if len(place) <= shown else f"{place[:shown]}..."
    assert f"\n  {cut}: field" in report.text(comparison).replace(":\n     ", ":")
    assert f"<code>{cut}</code>" in report.markdown(comparison)


def test_lines_of_a_report_have_100_columns_at_most() -> None:
    old = protocol("A", **field({"enum": [f"a{'x' * (number % 7)}-b" for number in range(60)]}))
    lines = report.text(Diff("A", "B", changes(old, protocol("B")))).splitlines()
    assert max(map(len, lines)) == 100
    assert [line for line in lines if line.endswith("-")] == []


def test_the_page_orders_owners_by_name_in_three_sections() -> None:
    comparison = Diff("A", "B", changes(*sides(PAIRS[0])))
    text = page.html(comparison)
    assert [text.count(f"<h2>{name}") for name in ("Messages", "Types", "Facts")] == [1, 1, 0]


def test_marks_of_schemas_are_deprecations_of_their_senders() -> None:
    old = replace(protocol("A"), marks=frozenset({"PaintResult.area", "DryNotification"}))
    marks = frozenset({"PaintRequestParams.color", "Nowhere", "DryNotification"})
    rows = [
        f"{change.rule.id} {change.place} of {change.owner}: {' + '.join(change.directions)}"
        for change in changes(old, replace(protocol("B"), marks=marks))
    ]
    assert rows == [
        "DEPRECATION_ADDED Nowhere of Nowhere: client to server + server to client",
        "DEPRECATION_ADDED PaintRequestParams.color of PaintRequestParams: client to server",
        "DEPRECATION_REMOVED PaintResult.area of PaintResult: server to client",
    ]


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ({"unknown_method": 404}, {"unknown_method": 400}, "STATUS_CHANGED: 404 -> 400"),
        ({"resumable": True}, {"resumable": 1}, "FACT_CHANGED:  -> 1"),
        ({"resumable": None}, {"resumable": False}, None),
        ({"resumable": ("a", "b")}, {"resumable": ("b", "c")}, "FACT_REMOVED: a -> "),
        ({"resumable": "a"}, {"resumable": "b"}, "FACT_CHANGED: a -> b"),
        ({"resumable": "none"}, {"resumable": "b"}, "FACT_ADDED:  -> b"),
        ({"resumable": "a"}, {"resumable": ""}, "FACT_REMOVED: a -> "),
    ],
)
def test_facts_differ_by_their_values(old: Any, new: Any, row: str | None) -> None:
    before, after = (protocol(facts=facts_with("http", **values)) for values in (old, new))
    rows = [f"{each.rule.id}: {each.old} -> {each.new}" for each in changes(before, after)]
    assert rows[-1:] == ([row] if row else [])
