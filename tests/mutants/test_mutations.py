"""Mutants: which changes a module can have, and when each of them runs."""

from __future__ import annotations

import pytest

from mutants.mutations import Mutant, mutants_of

pytestmark = pytest.mark.lengthy


def changes(text: str) -> set[tuple[str, str]]:
    """The kinds of the mutants of a module, each with the whole text after it."""
    return {(mutant.kind, mutant.apply(text)) for mutant in mutants_of("a.py", text)}


@pytest.mark.parametrize(
    ("text", "kind", "mutated"),
    [
        ("if a:\n    b = a", "negated condition", "if not (a):\n    b = a"),
        ("b = 'c' if a else 'd'", "negated condition", "b = 'c' if not (a) else 'd'"),
        ("b = [c for c in a if c]", "negated condition", "b = [c for c in a if (not (c))]"),
        ("b = a and c", "and/or", "b = ((a) or (c))"),
        ("b = a < c", "off by one", "b = a <= c"),
        ("b = a >= c", "off by one", "b = a > c"),
        ("LIMIT = 10  # bytes", "constant", "LIMIT = 11  # bytes"),
        ("b = f(sorted=True)", "constant", "b = f(sorted=False)"),
        ("f(a)", "dropped statement", "pass"),
        ("async def f():\n    a = await b", "lost await", "async def f():\n    a = b"),
    ],
)
def test_each_kind_of_mistake_is_one_change(text: str, kind: str, mutated: str) -> None:
    assert changes(text) == {(kind, mutated)}


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring."""',
        "a = 'text'",
        "a: Literal[1] = b",
        "def f(a: Literal[1], *, b: Literal[False] = c): return a",
        "def f():\n    return a",
        "@dataclass(frozen=True)\nclass A:\n    a: int",
        "a = f'{b:>4}'",
        "if TYPE_CHECKING:\n    f(a)",
        "if sys.platform == 'win32':\n    f(a)",
        "@overload\ndef f(a=1): ...",
        "logger.debug('a', 1)",
        "_CHUNK = 64 * 1024",
        "a = b.iter_chunked(64 * 1024)",
    ],
)
def test_code_without_observable_effect_is_not_mutated(text: str) -> None:
    assert changes(text) == set()


def only(text: str) -> Mutant:
    """The one mutant of a module."""
    (mutant,) = mutants_of("a.py", text)
    return mutant


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("LIMIT = 10", None),
        ("class A:\n    limit = 10", None),
        ("def f():\n    a(\n        b\n    )", {2, 3, 4}),
        ("def f():\n    if (\n        a\n    ):\n        b = a", {2, 3, 4}),
        ("def f(a=1):\n    b = a\n    return b", {2, 3}),
    ],
)
def test_a_mutant_is_reached_by_the_lines_that_run_it(text: str, lines: set[int] | None) -> None:
    assert only(text).reached_by == lines


def test_a_mutant_is_shown_with_its_line_and_both_texts() -> None:
    text = "def f():\n    return (\n        a\n        < b\n    )"
    assert only(text).describe(text) == "a.py:3: off by one: a < b -> a <= b"
