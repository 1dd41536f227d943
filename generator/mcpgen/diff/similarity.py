"""How alike two names or two objects are: from 0 for nothing in common to 1 for the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from typing import TypeVar

from mcpgen.diff.alternatives import Alternatives, Object, describe

Thing = TypeVar("Thing")

ENOUGH = 0.6
"""The least similarity of one thing under two names."""


_MOST_PAIRS = 10_000
"""Candidates of one side times those of the other. Published revisions have some 200."""


def of_names(old: str, new: str) -> float:
    """How alike two names are, whatever their case and separators."""
    one, other = ("".join(filter(str.isalnum, name)).lower() for name in (old, new))
    if one > other:  # the matcher depends on the order
        one, other = other, one
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def of_objects(
    old: Object, new: Object, old_alternatives: Alternatives, new_alternatives: Alternatives
) -> float:
    """How many members of two objects have the same name and type, of all that either has."""
    every = old.fields.keys() | new.fields.keys()
    if not every:
        return 1.0 if (old.rest is None) == (new.rest is None) else 0.0
    shared = 0.0
    for wire in old.fields.keys() & new.fields.keys():
        one = describe(old_alternatives.of(old.fields[wire]))
        other = describe(new_alternatives.of(new.fields[wire]))
        shared += 1.0 if one == other else 0.5
    return shared / len(every)


def pairs(
    old: Iterable[Thing],
    new: Iterable[Thing],
    alike: Callable[[Thing, Thing], float],
    name: Callable[[Thing], str],
    least: float = ENOUGH,
) -> list[tuple[Thing, Thing, float]]:
    """Things that are likely the same, best matches first, none twice.

    Args:
        old: The candidates of the old revision.
        new: Those of the new one.
        alike: How alike two of them are.
        name: What orders equally good matches, so that the way back finds the same pairs.
        least: How alike they must be at least.

    Returns:
        The matches; none where there are too many candidates to compare each with each.
    """
    old, new = list(old), list(new)
    if len(old) * len(new) > _MOST_PAIRS:
        return []
    scored = [(alike(one, other), one, other) for one in old for other in new]
    scored.sort(key=lambda row: (-row[0], *sorted((name(row[1]), name(row[2])))))
    matches: list[tuple[Thing, Thing, float]] = []
    taken_old, taken_new = set[str](), set[str]()
    for score, one, other in scored:
        if score < least or name(one) in taken_old or name(other) in taken_new:
            continue
        taken_old.add(name(one))
        taken_new.add(name(other))
        matches.append((one, other, score))
    return matches
