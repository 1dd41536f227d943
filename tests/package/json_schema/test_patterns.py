"""Regular expressions of others: what they match, and that no text makes them slow."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpgen_runtime.json_schema.patterns import Pattern, PatternError

MANY = 20_000


@pytest.fixture(params=["with re2", "without re2"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both environments in which a package may run."""
    if request.param == "without re2":
        monkeypatch.setitem(sys.modules, "re2", None)
    else:
        pytest.importorskip("re2")
    return str(request.param)


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)


def search(pattern: str, text: str) -> bool:
    """Whether a pattern is found; too many steps fail the test."""
    left = 20_000

    def take(steps: int) -> None:
        nonlocal left
        left -= steps
        assert left >= 0, "too many steps"

    return Pattern(pattern).search(text, take)


FOUND = [
    ("", "", True),
    ("b", "abc", True),
    ("^b", "abc", False),
    ("^a.c$", "abc", True),
    ("c$", "abc\n", False),
    ("^(a|b)*$", "abab", True),
    ("^(a)b$", "ab", True),
    ("^(a)b$", "a", False),
    ("^(?:ab|c){2,3}$", "abcab", True),
    ("^(?:ab|c){2,3}$", "abcabc", False),
    ("^[a-f0-9]{8}$", "0123abcd", True),
    (r"^\d+$", "12", True),
    (r"^\d+$", "\u0663", False),
    (r"^\w+$", "\u00e9", False),
    (r"^\/[\w.\-]+$", "/a.b-c", True),
    (r"^[\u0041-\u0043]+$", "ABC", True),
    (r"^\u00e9\x41$", "\u00e9A", True),
    ("[]", "a", False),
    ("^[^]$", "\n", True),
    ("^[[a&&~~||]$", "|", True),
    (r"^(?<year>\d{4})-\d\d$", "2026-01", True),
    (r"^(a)\1$", "aa", True),
    (r"^(?<a>b)\k<a>$", "bb", True),
    (r"\bfoo\b", "a foo b", True),
    (r"^(?=.*\d)(?=.*[a-z]).{8,}$", "abcdefg1", True),
    (r"^(?!admin).*$", "admin1", False),
    ("^x{2}{", "xx{", True),
    ("(^|,)b(,|$)", "a,b", True),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), FOUND)
def test_a_pattern_means_what_ecma_262_says(
    pattern: str, text: str, expected: bool, engine: str
) -> None:
    assert search(pattern, text) is expected


SLOW = [
    ("^(a+)+$", "a" * 40 + "!", False),
    ("^(a+)+$", "a" * MANY, True),
    ("^(a|a)*$", "a" * 40 + "!", False),
    ("(x+x+)+y", "x" * 40, False),
    ("(a?){30}a{30}", "a" * 29, False),
    ("^[a-z]+(-[a-z]+)*$", "my-slug-" * 1000 + "!", False),
    (r"^[^@]+@[^@]+\.[^@]+$", "a" * MANY, False),
    ("a*a*a*a*b", "a" * 1000, False),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 50, False),
    (".*.*=.*", "x" * 2000, False),
    (r"^([\u0041\-]+\u0042?)+$", "A-" * MANY, True),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), SLOW)
def test_a_slow_pattern_is_searched_by_re2_in_linear_time(
    pattern: str, text: str, expected: bool
) -> None:
    pytest.importorskip("re2")
    assert search(pattern, text) is expected


@pytest.mark.parametrize(("pattern", "text"), [(pattern, text) for pattern, text, _ in SLOW])
def test_a_slow_pattern_is_refused_without_re2(pattern: str, text: str, without_re2: None) -> None:
    with pytest.raises(PatternError, match=r"linear time.*pip install google-re2"):
        search(pattern, text)


SEPARATED = [
    ("^[a-z]+(-[a-z]+)*$", "a-long-slug" * 10, True),
    ("^[a-z]+(-[a-z]+)*$", "a-long-slug-" * 10, False),
    (r"^(\w+\.)+\w+$", "pkg.module.name" * 10, True),
    (r"^([^,]*,)*x$", "a,b,,c," * 20 + "x", True),
    (r"^[^@]+@[^@]+\.[^@]+$", "somebody.with.a.name@mail.example.com", True),
    (r"^(\/[^\/]+)+$", "/usr/share/doc" * 10, True),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), SEPARATED)
def test_words_with_a_separator_need_no_re2(
    pattern: str, text: str, expected: bool, without_re2: None
) -> None:
    assert search(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["^(-[a-z-]+)*$", "^(-[a-z]+[a-z]+)*$", "^([^x]+-)*$"])
def test_a_separator_that_words_may_contain_is_none(pattern: str, without_re2: None) -> None:
    with pytest.raises(PatternError, match="linear time"):
        search(pattern, "-a" * 20)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(a+)+\1$", "a" * 40 + "!"),
        (r"^(?=(a+)+$)", "a" * 40 + "!"),
        ("((a{1000}){1000}){1000}(b*)*", "a" * 40),
    ],
)
def test_patterns_without_linear_time_are_refused(pattern: str, text: str, engine: str) -> None:
    advice = " (`pip install google-re2` may allow it)" if engine == "without re2" else ""
    with pytest.raises(PatternError) as refused:
        search(pattern, text)
    assert str(refused.value) == f"can't be searched for in linear time{advice}"


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        *(("b*c", 511), ("(?=ab*)c", 511), (r"(a*)\1b", 63), ("a{3}a*b", 511)),
        *(("(?:a|b)?c*d", 255), ("(a|b|ab)*c", 3), ("^(?:a|b){1,20}$", 7), ("^(a+)+$", 3)),
        *(("^[a-z]+(-[a-z]+)*$", 511), ("^(a|b)(a|b)(a|b){2}a*b*c*d", 15)),
    ],
)
def test_a_text_is_searched_without_re2_up_to_some_length(
    pattern: str, most: int, without_re2: None
) -> None:
    search(pattern, "a" * most)
    with pytest.raises(PatternError, match="linear time"):
        search(pattern, "a" * (most + 1))


def test_word_boundaries_in_long_texts_are_matched_by_re2() -> None:
    pytest.importorskip("re2")
    assert search(r"(\bfoo\b ?)+$", "foo " * MANY)


INVALID = {
    **dict.fromkeys(("(", ")", "[a", "\\", "*a", "(?", "(?P=x)"), 1),
    **dict.fromkeys(("a)", "a{2,1}", "^*", "x(a"), 2),
    **dict.fromkeys(("a**", "a|(b|(c)"), 3),
    "[z-a]": "bad character range z-a at position 1",
    "(?<=a+)b": "look-behind requires fixed-width pattern",
}
"""Patterns with the character from which on they are none, or with the reason."""


@pytest.mark.parametrize(("pattern", "reason"), INVALID.items())
def test_invalid_regular_expressions_are_refused(
    pattern: str, reason: int | str, without_re2: None
) -> None:
    if isinstance(reason, int):
        reason = f"no regular expression from character {reason} on"
    with pytest.raises(PatternError) as refused:
        Pattern(pattern)
    advice = "(`pip install google-re2` may allow it)"
    assert str(refused.value) == f"not a regular expression: {reason} {advice}"


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [("a", 48), ("^b", 22), ("^a*$", 74), ("(ab|c)d", 205), ("^(-[a-z]+)*$", 101)],
)
def test_a_search_is_charged_by_length_and_pattern(
    pattern: str, steps: int, without_re2: None
) -> None:
    taken = list[int]()
    Pattern(pattern).search("a" * 100_000, taken.append)
    assert sum(taken) == steps


def test_a_lone_surrogate_is_a_character() -> None:
    pytest.importorskip("re2")
    assert search("^(.+)+$", "a" * 50 + "\ud800")


PARTS = st.recursive(
    st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", r"\d"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{1,}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first text makes a table of Unicode
@given(
    pattern=PARTS,
    start=st.sampled_from(["", "^"]),
    end=st.sampled_from(["", "$"]),
    text=st.text("ab1c-", max_size=8),
)
def test_a_pattern_matches_what_re_matches(pattern: str, start: str, end: str, text: str) -> None:
    whole = f"{start}{pattern}{end}"
    assert search(whole, text) is bool(re.search(whole, text))
