"""The similarity of two names or objects, from 0 for nothing in common to 1 for equality."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from typing import TypeVar

from mcpgen.diff.alternatives import Alternatives, Object, describe

Thing = TypeVar("Thing")

ENOUGH = 0.6
"""The least similarity of two names or objects that count as the same."""


_MOST_PAIRS = 10_000
"""Limit of the pairs of candidates of both sides. Published revisions have some 200."""


def of_names(old: str, new: str) -> float:
    """The similarity of two names, without regard to case and separators."""
    # The matcher depends on the order.
    one, other = sorted("".join(filter(str.isalnum, name)).lower() for name in (old, new))
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def of_objects(
    old: Object, new: Object, old_alternatives: Alternatives, new_alternatives: Alternatives
) -> float:
    """The share of members with the same name and type among all members of two objects."""
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
    """Match items of two revisions that are likely the same, best matches first, each once.

    Of matches that are equally good, that with the more similar names comes first.

    Args:
        old: The candidates of the old revision.
        new: The candidates of the new revision.
        alike: Returns the similarity of two candidates.
        name: Returns a name. Names order equally good matches, so that both directions match alike.
        least: The least similarity of a match.

    Returns:
        The matches; none if there are too many candidates to compare.
    """
    old, new = list(old), list(new)
    if len(old) * len(new) > _MOST_PAIRS:
        return []
    every = [(alike(one, other), one, other) for one in old for other in new]
    scored = [row for row in every if row[0] >= least]

    def order(row: tuple[float, Thing, Thing]) -> tuple[float, float, list[str]]:
        both = sorted((name(row[1]), name(row[2])))
        return -row[0], -of_names(*both), both

    scored.sort(key=order)
    matches: list[tuple[Thing, Thing, float]] = []
    taken_old, taken_new = set[str](), set[str]()
    for score, one, other in scored:
        if name(one) in taken_old or name(other) in taken_new:
            continue
        taken_old.add(name(one))
        taken_new.add(name(other))
        matches.append((one, other, score))
    return matches
