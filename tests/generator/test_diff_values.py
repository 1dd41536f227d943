"""The reports of `mcpgen diff` about pairs of values, word by word, and the numbers behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.diff_schemas import changes, message, protocol
from generator.schemas import COUNT, TEXT, any_of, const, obj, ref
from generator.tables import table
from generator.test_diff_rules import ASKED, BRUSH, PAIRS, ROLLER, WET, field, params
from mcpgen import schema
from mcpgen.diff import Change, load, report
from mcpgen.diff.compare import Diff

BOTH = {"Brush": BRUSH, "Roller": ROLLER}
PAD = obj("kind width", kind=const("pad"), width=COUNT)
CLOSED = {"additionalProperties": False}
OPENED: dict[str, Any] = {"additionalProperties": {}}
AB = obj("a", a=TEXT, b=COUNT)
FLAG = {"type": "boolean"}
TEXTS, COUNTS = ({"type": "array", "items": item} for item in (TEXT, COUNT))


SIZES: dict[str, list[Any]] = table("value_changes")
"""Types of a field before and after."""

VALUES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{case: (field(old), field(new)) for case, (old, new) in SIZES.items()},
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
    "metadata of fewer members": (params(_meta=AB), params(_meta={**obj("a", a=TEXT), **OPENED})),
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
    cases |= {
        f"{pair.rule} {pair.place}": (protocol("A", **pair.old), protocol("B", **pair.new))
        for pair in PAIRS
    }
    rows = {
        case: {"there": [*map(word, changes(old, new))], "back": [*map(word, changes(new, old))]}
        for case, (old, new) in cases.items()
    }
    assert rows == snapshot


@pytest.mark.parametrize("new", ["2025-11-25", "2026-07-28"])
def test_published_revisions_differ_in_these_words(new: str, snapshot: SnapshotAssertion) -> None:
    names = [row.name for row in schema.revisions()]
    sides = load(names[names.index(new) - 1], new, errata=True)
    assert [*map(word, changes(*sides))] == snapshot


@pytest.mark.parametrize(("name", "confidence"), [("sizes", 0.89), ("caption", 0.5)])
def test_a_renaming_says_how_sure_it_is(name: str, confidence: float) -> None:
    comparison = Diff(
        "A", "B", changes(protocol(**field(COUNT)), protocol(**params("color", **{name: COUNT})))
    )
    (change,) = report.record(comparison)["changes"]
    assert (change["rule"], change["confidence"]) == ("FIELD_RENAMED", confidence)
    assert f"field renamed from size ({confidence:.0%} sure)" in report.text(comparison)


def test_lines_of_a_report_have_100_columns_at_most() -> None:
    old = protocol("A", **field({"enum": [f"a{'x' * (number % 7)}-b" for number in range(60)]}))
    lines = report.text(Diff("A", "B", changes(old, protocol("B")))).splitlines()
    assert max(map(len, lines)) == 100
    assert [line for line in lines if line.endswith("-")] == []


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
