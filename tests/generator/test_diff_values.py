"""The reports of `mcpgen diff` about pairs of values, word by word, and the numbers behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.diff_schemas import changes, protocol
from generator.schemas import COUNT
from generator.tables import table
from generator.test_diff_rules import PAIRS, field, params
from mcpgen import schema
from mcpgen.diff import Change, load, report
from mcpgen.diff.compare import Diff

SIZES: dict[str, list[Any]] = table("value_changes")
"""Types of a field before and after."""

VALUES: dict[str, Any] = {
    **{case: (field(old), field(new)) for case, (old, new) in SIZES.items()},
    **table("definition_changes"),
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
