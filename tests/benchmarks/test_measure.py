"""Targets of the benchmark: what reaches them, and how a row shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.measure import (
    FASTMCP,
    FLOOR,
    OURS,
    SDK,
    TYPESCRIPT,
    AtMost,
    Line,
    Near,
    RateOf,
    Target,
    Within,
    medians,
    table,
)


@pytest.mark.parametrize(
    ("target", "ours", "other", "met"),
    [
        (AtMost(SDK, 1 / 9), 1.0, 9.0, True),
        (AtMost(SDK, 1 / 9), 1.0, 8.9, False),
        (AtMost(FLOOR, 2.2), 2.2, 1.0, True),
        (AtMost(FLOOR, 2.2), 2.3, 1.0, False),
        (RateOf(FLOOR, 0.55), 1.8, 1.0, True),
        (RateOf(FLOOR, 0.55), 1.9, 1.0, False),
        (Near(FLOOR, 0.25), 0.75, 1.0, True),
        (Near(FLOOR, 0.25), 0.74, 1.0, False),
        (Near(FLOOR, 0.25), 1.25, 1.0, True),
        (Near(FLOOR, 0.25), 1.26, 1.0, False),
        (Within(4), 4.0, 0.0, True),
        (Within(4), 4.1, 0.0, False),
    ],
)
def test_a_target_is_met_up_to_its_bound(
    target: Target, ours: float, other: float, met: bool
) -> None:
    line = Line("work", {OURS: ours, SDK: other, FLOOR: other}, (target,))
    assert line.met is met
    assert ("MISSED" in line.cells()[-1]) is not met


def test_a_row_names_the_target_that_was_missed_with_its_reason() -> None:
    times = {OURS: 2e-3, SDK: 10e-3, FLOOR: 1e-3}
    why = AtMost(FLOOR, 1.3, "the floor checks nothing")
    line = Line("work", times, (AtMost(SDK, 1 / 4, "none"), why, RateOf(FLOOR, 0.55)))
    assert table([line]).splitlines()[-1] == (
        "| work | 2 ms | 10 ms (5.0x ours) |  | 1 ms (ours 2.00x) | official SDK: 4x as fast; "
        "floor: at most 1.3x MISSED: the floor checks nothing; "
        "floor: 0.55 of its calls per second MISSED |"
    )


def test_the_published_table_has_a_reason_for_each_missed_target() -> None:
    table = (Path(__file__).parents[2] / "docs" / "figures.md").read_text("utf-8")
    assert re.findall("MISSED(?!: ).*", table) == []


def test_a_rival_without_a_column_stands_in_the_first_one() -> None:
    line = Line("work", {OURS: 1e-3, TYPESCRIPT: 8e-3}, (AtMost(TYPESCRIPT, 1 / 8),))
    assert line.cells()[2:] == [
        "TypeScript SDK: 8 ms (8.0x ours)",
        "",
        "",
        "TypeScript SDK: 8x as fast",
    ]


def test_a_target_is_not_judged_without_its_contender() -> None:
    assert Line("work", {OURS: 1.0, FASTMCP: 1.0}, (AtMost(SDK, 1 / 9),)).met


def test_contenders_alternate_and_the_median_round_counts() -> None:
    turns: list[str] = []
    times = {"a": iter([1.0, 50.0, 3.0]), "b": iter([9.0, 7.0, 8.0])}

    def timed(name: str) -> float:
        turns.append(name)
        return next(times[name])

    contenders = {"a": lambda: timed("a"), "b": lambda: timed("b")}
    assert medians(contenders, 3) == {"a": 3.0, "b": 8.0}
    assert "".join(turns) == "ababab"
