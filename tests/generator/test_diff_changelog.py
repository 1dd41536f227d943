"""The specification's own lists of changes, against the changes that `mcpgen diff` shows."""

from __future__ import annotations

import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mcpgen import diff, schema

REVISIONS = tuple(row.name for row in schema.revisions())
STEPS = tuple(pairwise(REVISIONS))
BATCHES, OUTPUT, TASKS, STATELESS = STEPS
STEP_TO = {step[1]: step for step in STEPS}
LISTED: dict[str, list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("specification_changes.toml").read_text("utf-8")
)
ITEMS = LISTED["item"]
COUNTS = {"2025-03-26": 7, "2025-06-18": 12, "2025-11-25": 24, "2026-07-28": 28}
"""Items of each list."""


@cache
def changes(step: tuple[str, str], *, errata: bool = True) -> tuple[diff.Change, ...]:
    return diff.compare(*diff.load(*step, errata=errata)).changes


def matching_changes(pattern: str, step: tuple[str, str]) -> list[diff.Change]:
    """The changes that a line of the list is about."""
    rule, place, *words = pattern.split(" | ")
    return [
        change
        for change in changes(step)
        if change.rule.id == rule
        and fnmatchcase(change.place, place)
        and all(word in change.sentence for word in words)
    ]


def test_every_item_of_the_lists_is_here() -> None:
    assert Counter(item["revision"] for item in ITEMS) == COUNTS
    sections = [(item["revision"], item["section"]) for item in ITEMS]
    assert len(sections) == len(set(sections))


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item['revision']} {item['section']}")
def test_the_diff_shows_what_the_list_of_changes_names(item: dict[str, Any]) -> None:
    assert ("shown" in item) != ("not" in item)
    step = STEP_TO[item["revision"]]
    assert [line for line in item.get("shown", ()) if not matching_changes(line, step)] == []


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[1])
def test_the_diff_invents_no_change(step: tuple[str, str]) -> None:
    rows = [row for rows in LISTED.values() for row in rows if row["revision"] == step[1]]
    lines = [line for row in rows for line in row.get("shown", ())]
    assert [line for line in lines if not matching_changes(line, step)] == []
    named = {change for line in lines for change in matching_changes(line, step)}
    assert [(c.rule.id, c.place, c.sentence) for c in changes(step) if c not in named] == []
