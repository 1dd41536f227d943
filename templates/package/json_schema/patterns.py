"""Regular expressions of JSON Schemas: searched in bounded time, or refused.

A backtracking engine can take exponential time for a short pattern and a short text, and Python's
engine holds the interpreter's lock meanwhile. So a pattern is parsed here first. A text is searched

1. by `re`, if the number of steps is small in the worst case;
2. by `re2` (the package google-re2), if it is installed and supports the pattern.

A pattern that neither engine can search is refused with an error. The syntax is that of ECMA-262;
`\\d`, `\\w` and `\\s` match only ASCII. If `re2` is installed, its own syntax is accepted too.

Source: JSON Schema 2020-12, core, section 6.4 (regular expressions).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

PATTERN_CHARACTERS = 10_000
"""Most characters of a pattern."""

BACKTRACKING_STEPS = 1_000_000
"""Most steps of `re` in the worst case, besides those for the length of the text; about 10 ms."""

_RE2_WORK = 200_000_000  # characters times instructions; about two seconds in the worst case
_ENDLESS = 10**15  # more steps than any search may take

Take: TypeAlias = Callable[[int], None]
"""Counts steps of some microseconds before they are executed; may raise."""


class PatternError(Exception):
    """A pattern is not a regular expression, or can't be searched in bounded time."""


class _Effort(NamedTuple):
    """The maximum cost of backtracking.

    Attributes:
        ways: Number of ways in which a part can match.
        steps: Number of steps to try all ways.
    """

    ways: int
    steps: int


@dataclass(frozen=True)
class _Part:
    """A part of a pattern.

    Attributes:
        text: The part in the syntax of `re` or `re2`.
        effort: Returns the cost of matching the part in a text of a length.
        anchored: Whether the part can match only at the start of the text.
        items: The characters and classes of a sequence, each with whether it is repeated; `None`
            for any other part.
    """

    text: str
    effort: Callable[[int], _Effort]
    anchored: bool = False
    items: Sequence[tuple[str, bool]] | None = None


def _atom(text: str) -> _Part:
    """One character: a literal, a class or an escape."""
    return _Part(text, lambda length: _Effort(1, 1), items=[(text, False)])


def _join_parts(parts: Sequence[_Part]) -> _Part:
    """A sequence of parts."""

    def effort(length: int) -> _Effort:
        ways, steps = 1, 1
        for part in parts:
            each = part.effort(length)
            steps = min(steps + ways * each.steps, _ENDLESS)
            ways = min(ways * each.ways, _ENDLESS)
        return _Effort(ways, steps)

    items: list[tuple[str, bool]] | None = []
    for part in parts:
        items = None if items is None or part.items is None else [*items, *part.items]
    anchored = bool(parts) and parts[0].anchored
    return _Part("".join(part.text for part in parts), effort, anchored, items)


def _choice(parts: Sequence[_Part]) -> _Part:
    """Alternatives."""

    def effort(length: int) -> _Effort:
        efforts = [part.effort(length) for part in parts]
        return _Effort(sum(each.ways for each in efforts), sum(each.steps for each in efforts))

    return _Part("|".join(part.text for part in parts), effort, all(p.anchored for p in parts))


def _lookaround(opening: str, inner: _Part) -> _Part:
    """A group that consumes no characters; after a match no other way is tried."""
    return _Part(f"{opening}{inner.text})", lambda length: _Effort(1, inner.effort(length).steps))


def _repeat_part(inner: _Part, least: int, most: int | None, sign: str) -> _Part:
    """A repeated part; the cost is exponential if one repetition can match in several ways."""
    is_separated = _is_separated(inner.items or ())

    def effort(length: int) -> _Effort:
        each = inner.effort(length)
        rounds = max(length, least) if most is None else min(max(length, least), most)
        if each.ways == 1:
            return _Effort(rounds - min(least, rounds) + 1, rounds * each.steps + 1)
        if is_separated:
            return _Effort(length + 1, 2 * length + 1)
        if rounds * each.ways.bit_length() > _ENDLESS.bit_length() * 2:
            return _Effort(_ENDLESS, _ENDLESS)
        ways = (rounds + 1) * each.ways**rounds
        return _Effort(min(ways, _ENDLESS), min(ways * each.steps, _ENDLESS))

    is_item = inner.items is not None and len(inner.items) == 1 and not inner.items[0][1]
    items = [(inner.text, True)] if is_item else None
    return _Part(inner.text + sign, effort, items=items)


def _is_separated(items: Sequence[tuple[str, bool]]) -> bool:
    """Whether a literal at one end separates the repetitions, as in `(-[a-z]+)*`."""
    variable = [is_repeated for _, is_repeated in items]
    if variable.count(True) != 1 or len(items) < 2:
        return False
    for at in (0, -1):
        separator, is_repeated = items[at]
        others = [text for index, (text, _) in enumerate(items) if index != at % len(items)]
        can_separate = not is_repeated and _LITERAL.fullmatch(separator) is not None
        if can_separate and not any(re.fullmatch(o, separator[-1], re.ASCII) for o in others):
            return True
    return False


_LITERAL = re.compile(r"\\[^0-9A-Za-z]|[^.\[\\]", re.DOTALL)

_TOKEN = re.compile(
    r"""
    (?P<class>\[\^?(?:[^\]\\]|\\.)*\])
  | (?P<group>\((?:\?(?:[:=!]|<[=!]|P?<[A-Za-z_]\w*>))?(?!\?))
  | (?P<repeat>(?:[*+?]|\{(?P<least>\d{1,9})(?P<comma>,(?P<most>\d{1,9})?)?\})\??)
  | (?P<escape>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[1-9]\d*|k<\w+>|[pP]\{\w+\}|.))
  | (?P<anchor>[\^$])
  | (?P<literal>[^\[(\\|)])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_CODE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})")
_IN_CLASS = re.compile(r"\\u[0-9A-Fa-f]{4}|\\.|[\[&~|]", re.DOTALL)


class _Parser:
    """Parses a pattern.

    Args:
        pattern: The pattern.
        end: The anchor for the end of a text.

    Raises:
        PatternError: The pattern is incomplete, or does not have the syntax of ECMA-262.
    """

    def __init__(self, pattern: str, end: str) -> None:
        self._pattern = pattern
        self._anchors = {
            "^": _Part("^", lambda length: _Effort(1, 1), anchored=True),
            "$": _Part(end, lambda length: _Effort(1, 1)),
        }
        self._at = 0
        self.parsed = self._choice()
        if self._at < len(pattern):
            raise self._syntax_error()

    def _syntax_error(self) -> PatternError:
        return PatternError(f"no regular expression from character {self._at + 1} on")

    def _choice(self) -> _Part:
        parts = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _choice(parts)

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        can_repeat = False
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            token = _TOKEN.match(self._pattern, self._at)
            if token is None or (token.lastgroup == "repeat" and not can_repeat):
                raise self._syntax_error()
            if token.lastgroup == "repeat":
                parts[-1] = self._repeat(parts[-1], token)
            else:
                parts.append(self._part(token))
            can_repeat = token.lastgroup not in ("repeat", "anchor")
        return parts[0] if len(parts) == 1 else _join_parts(parts)

    def _repeat(self, inner: _Part, token: re.Match[str]) -> _Part:
        least, most = _SIGNS.get(token[0][0]) or (int(token["least"]), None)
        if token["least"] is not None and token["most"] is not None:
            most = int(token["most"])
        elif token["least"] is not None and token["comma"] is None:
            most = least
        if most is not None and most < least:
            raise self._syntax_error()
        self._at = token.end()
        return _repeat_part(inner, least, most, token[0])

    def _part(self, token: re.Match[str]) -> _Part:
        text = token[0]
        if token.lastgroup == "group":
            return self._group(text, token.end())
        self._at = token.end()
        if token.lastgroup == "class":
            return _atom(_class(text))
        if token.lastgroup == "anchor":
            return self._anchors[text]
        if token.lastgroup == "escape":
            return _escape(text)
        return _atom("." if text == "." else re.escape(text))

    def _group(self, opening: str, end: int) -> _Part:
        start, self._at = self._at, end
        inner = self._choice()
        if not self._pattern.startswith(")", self._at):
            self._at = start
            raise self._syntax_error()
        self._at += 1
        if opening[-1] in "=!":
            return _lookaround(opening, inner)
        return replace(inner, text=f"{opening.replace('?<', '?P<')}{inner.text})")


_SIGNS: Mapping[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def _class(text: str) -> str:
    """A character class in the syntax of `re`: `[]` matches nothing, as in ECMA-262."""
    if text in ("[]", "[^]"):
        return r"[^\s\S]" if text == "[]" else r"[\s\S]"
    opening = 2 if text[1] == "^" else 1
    return text[:opening] + _IN_CLASS.sub(_in_class, text[opening:-1]) + "]"


def _in_class(matched: re.Match[str]) -> str:
    text = matched[0]
    if len(text) == 1:
        return f"\\{text}"  # `re` warns about characters of future set operations
    return _character(text) if len(text) == 6 else text


def _character(code: str) -> str:
    """The character of `\\xHH` or `\\uHHHH`, as a literal."""
    return re.escape(chr(int.from_bytes(bytes.fromhex(code[2:]), "big")))


def _escape(text: str) -> _Part:
    if _CODE.fullmatch(text):
        return _atom(_character(text))
    if text[1] in "bB123456789" or (text[1] == "k" and len(text) > 2):
        irregular = f"(?P={text[3:-1]})" if text[1] == "k" else text
        return _Part(irregular, lambda length: _Effort(1, length))
    return _atom(text if text[1].isalnum() else re.escape(text[1]))


class Pattern:
    """A compiled pattern.

    Args:
        source: The pattern in the schema.

    Raises:
        PatternError: The pattern is too long, or no regular expression of `re` or `re2`.
    """

    def __init__(self, source: str) -> None:
        if len(source) > PATTERN_CHARACTERS:
            raise PatternError(f"longer than {PATTERN_CHARACTERS} characters")
        self._parsed: _Part | None = None
        self._re: re.Pattern[str] | None = None
        wrong, linear = "", source
        try:
            self._parsed = _Parser(source, r"\Z").parsed
            linear = _Parser(source, r"\z").parsed.text
            self._re = re.compile(self._parsed.text, re.ASCII)
        except (PatternError, re.error, OverflowError) as error:
            wrong = str(error)
        self._linear = _linear(linear)
        if self._re is None and self._linear is None:
            raise PatternError(f"not a regular expression: {wrong}{_advice()}")
        self._nodes = 1 + len(source) // 10
        self._steps: dict[int, int] = {}

    def search(self, text: str, take: Take) -> bool:
        """Whether the pattern matches anywhere in a text.

        Args:
            text: The text.
            take: Counts the steps.

        Raises:
            PatternError: The pattern can't be searched in bounded time.
        """
        if self._re is not None and self._parsed is not None:
            steps = self._backtracking_steps(self._parsed, len(text), take)
            if steps <= BACKTRACKING_STEPS + 20 * len(text):
                take(1 + steps // 5000)
                return self._re.search(text) is not None
        if self._linear is None or self._linear.programsize * len(text) > _RE2_WORK:
            raise PatternError(f"can't be searched for in linear time{_advice()}")
        take(1 + len(text) // 500)
        try:
            return self._linear.search(text) is not None
        except UnicodeEncodeError:  # a lone surrogate; U+FFFD takes its place
            readable = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self._linear.search(readable) is not None

    def _backtracking_steps(self, parsed: _Part, length: int, take: Take) -> int:
        """The maximum number of steps of `re` for a text of this length."""
        bits = length.bit_length()
        if bits not in self._steps:
            take(self._nodes)
            steps = parsed.effort(1 << bits).steps
            self._steps[bits] = (steps if parsed.anchored else steps << bits) + length
        return self._steps[bits]


@lru_cache(maxsize=64)
def pattern_of(source: str) -> Pattern:
    """A compiled pattern from the cache; see `Pattern`."""
    return Pattern(source)


def _linear(pattern: str) -> Any:
    """The pattern compiled by `re2`; `None` if `re2` is not installed or does not support it."""
    library = _re2()
    if library is None:
        return None
    options = library.Options()
    options.log_errors, options.never_capture = False, True
    try:
        return library.compile(pattern, options)
    except (library.error, UnicodeEncodeError):
        return None


def _re2() -> Any:
    try:
        return importlib.import_module("re2")
    except ImportError:
        return None


def _advice() -> str:
    return "" if _re2() is not None else " (`pip install google-re2` may allow it)"
