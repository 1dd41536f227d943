"""Regular expressions of JSON Schemas: searched in linear time, or refused.

A backtracking engine can take exponential time for a short pattern and a short text, and that of
Python holds the interpreter's lock meanwhile. So a pattern is parsed here first. A text is searched

1. by `re`, if the number of steps is small in the worst case;
2. by `re2` (the package google-re2), if it is installed and supports the pattern;
3. by an automaton of this module, if the pattern has no lookaround, backreference or `\\b`.

The syntax is that of ECMA-262; `\\d`, `\\w` and `\\s` match ASCII alone. Where `re2` is installed,
its own syntax is accepted too.

Source: JSON Schema 2020-12, core, section 6.4 (regular expressions).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias

PATTERN_CHARACTERS = 10_000
"""Most characters of a pattern."""

PATTERN_POSITIONS = 10_000
"""Most positions of an automaton: characters, classes and anchors, repeated ones repeatedly."""

BACKTRACKING_STEPS = 100_000
"""Most steps of `re` in the worst case, a few milliseconds, beyond the length of the text."""

_RE2_WORK = 200_000_000  # characters times the pattern's size; about two seconds in the worst case
_CACHED_POSITIONS = 10_000  # in all cached states of one automaton
_ENDLESS = 10**15  # more steps than any search may take
_BEGIN, _END = "begin", "end"  # positions that match no character

Take: TypeAlias = Callable[[int], None]
"""Counts steps of some microseconds before they are run; may raise."""


class PatternError(Exception):
    """Not a regular expression, or one that can't be searched in linear time."""


class _Effort(NamedTuple):
    """The cost of backtracking, at most.

    Attributes:
        ways: Number of ways in which a part can match.
        steps: Steps to try all ways.
    """

    ways: int
    steps: int


class _Node(Protocol):
    """A part of a pattern."""

    def text(self, end: str) -> str:
        """The part in the syntax of `re` and `re2`; `end` matches the end of the text."""
        ...

    def effort(self, length: int) -> _Effort:
        """The cost of matching the part in a text of this length."""
        ...

    def size(self) -> int:
        """Number of positions of the part in an automaton."""
        ...

    def add_to(self, automaton: _Automaton) -> _Span:
        """Add the positions of the part to an automaton."""
        ...


class _Span(NamedTuple):
    """The positions of a part in an automaton.

    Attributes:
        empty: Whether the part matches the empty text.
        first: Positions where a match can start.
        last: Positions where a match can end.
    """

    empty: bool
    first: list[int]
    last: list[int]


@dataclass(frozen=True)
class _Atom:
    """One character: a literal, a class or an escape, in the syntax of `re`."""

    pattern: str

    def text(self, end: str) -> str:
        return self.pattern

    def effort(self, length: int) -> _Effort:
        return _Effort(1, 1)

    def size(self) -> int:
        return 1

    def add_to(self, automaton: _Automaton) -> _Span:
        return automaton.position(self.pattern)


@dataclass(frozen=True)
class _Anchor:
    """The start of the text (`^`) or its end (`$`)."""

    sign: str

    def text(self, end: str) -> str:
        return end if self.sign == "$" else "^"

    def effort(self, length: int) -> _Effort:
        return _Effort(1, 1)

    def size(self) -> int:
        return 1

    def add_to(self, automaton: _Automaton) -> _Span:
        return automaton.position(_END if self.sign == "$" else _BEGIN)


@dataclass(frozen=True)
class _Irregular:
    """A part that an automaton can't match: a backreference, or `\\b`."""

    pattern: str

    def text(self, end: str) -> str:
        return self.pattern

    def effort(self, length: int) -> _Effort:
        return _Effort(1, length)

    def size(self) -> int:
        return 1

    def add_to(self, automaton: _Automaton) -> _Span:
        raise PatternError(f"it has {self.pattern}")


@dataclass(frozen=True)
class _Sequence:
    parts: Sequence[_Node]

    def text(self, end: str) -> str:
        return "".join(part.text(end) for part in self.parts)

    def effort(self, length: int) -> _Effort:
        ways, steps = 1, 1
        for part in self.parts:
            each = part.effort(length)
            steps = min(steps + ways * each.steps, _ENDLESS)
            ways = min(ways * each.ways, _ENDLESS)
        return _Effort(ways, steps)

    def size(self) -> int:
        return sum(part.size() for part in self.parts)

    def add_to(self, automaton: _Automaton) -> _Span:
        return automaton.joined(part.add_to(automaton) for part in self.parts)


@dataclass(frozen=True)
class _Choice:
    parts: Sequence[_Node]

    def text(self, end: str) -> str:
        return "|".join(part.text(end) for part in self.parts)

    def effort(self, length: int) -> _Effort:
        efforts = [part.effort(length) for part in self.parts]
        return _Effort(sum(each.ways for each in efforts), sum(each.steps for each in efforts))

    def size(self) -> int:
        return sum(part.size() for part in self.parts)

    def add_to(self, automaton: _Automaton) -> _Span:
        spans = [part.add_to(automaton) for part in self.parts]
        return _Span(
            any(span.empty for span in spans),
            [position for span in spans for position in span.first],
            [position for span in spans for position in span.last],
        )


@dataclass(frozen=True)
class _Group:
    opening: str
    inner: _Node

    def text(self, end: str) -> str:
        return f"{self.opening}{self.inner.text(end)})"

    def effort(self, length: int) -> _Effort:
        return self.inner.effort(length)

    def size(self) -> int:
        return self.inner.size()

    def add_to(self, automaton: _Automaton) -> _Span:
        return self.inner.add_to(automaton)


@dataclass(frozen=True)
class _Lookaround(_Group):
    """A group that consumes nothing. After a match no other way is tried."""

    def effort(self, length: int) -> _Effort:
        return _Effort(1, self.inner.effort(length).steps)

    def add_to(self, automaton: _Automaton) -> _Span:
        raise PatternError(f"it has {self.opening}...)")


@dataclass(frozen=True)
class _Repeat:
    inner: _Node
    least: int
    most: int | None
    sign: str

    def text(self, end: str) -> str:
        return self.inner.text(end) + self.sign

    def effort(self, length: int) -> _Effort:
        """The cost is exponential if one repetition can match in several ways."""
        each = self.inner.effort(length)
        rounds = max(length, self.least)
        if self.most is not None:
            rounds = min(rounds, self.most)
        if each.ways == 1:
            return _Effort(rounds - min(self.least, rounds) + 1, rounds * each.steps + 1)
        if rounds * each.ways.bit_length() > _ENDLESS.bit_length() * 2:
            return _Effort(_ENDLESS, _ENDLESS)
        ways = (rounds + 1) * each.ways**rounds
        return _Effort(min(ways, _ENDLESS), min(ways * each.steps, _ENDLESS))

    def size(self) -> int:
        return self.inner.size() * max(self.least if self.most is None else self.most, 1)

    def add_to(self, automaton: _Automaton) -> _Span:
        return automaton.repeated(self)


class _Automaton:
    """Searches a regular pattern in one pass; its states are made on first use.

    Each character of the pattern is a position; a state is the set of positions that a match can
    have reached. The start and the end of the text count as characters.

    Raises:
        PatternError: The pattern is not regular, or too large.
    """

    def __init__(self, tree: _Node, take: Take) -> None:
        if tree.size() > PATTERN_POSITIONS:
            raise PatternError(f"it has more than {PATTERN_POSITIONS} characters to match")
        self._take = take
        self._kinds: list[str] = []
        self._follow: list[list[int]] = []
        self._matches: dict[str, re.Pattern[str]] = {}
        span = tree.add_to(self)
        self._empty, self._first = span.empty, span.first
        self._last = frozenset(span.last)
        self._states: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._cached = 0

    def position(self, kind: str) -> _Span:
        """Add a position for one kind of characters: `_BEGIN`, `_END`, or a pattern for `re`."""
        self._take(1)
        self._kinds.append(kind)
        self._follow.append([])
        if kind not in (_BEGIN, _END, *self._matches):
            self._matches[kind] = re.compile(kind, re.ASCII)
        here = [len(self._kinds) - 1]
        return _Span(False, here, here)

    def joined(self, spans: Iterable[_Span]) -> _Span:
        """Concatenate spans."""
        empty, first, last = True, list[int](), list[int]()
        for span in spans:
            self._connect(last, span.first)
            first = first + span.first if empty else first
            last = last + span.last if span.empty else span.last
            empty = empty and span.empty
        return _Span(empty, first, last)

    def repeated(self, repeat: _Repeat) -> _Span:
        """Copy a part for each repetition; the last copy of an unbounded one follows itself."""
        copies = max(repeat.least, 1) if repeat.most is None else repeat.most
        empty, first, last = True, list[int](), list[int]()
        ends: list[int] = []
        for number in range(1, copies + 1):
            span = repeat.inner.add_to(self)
            self._connect(last, span.first)
            first = first + span.first if empty else first
            last = last + span.last if span.empty else span.last
            empty = empty and span.empty
            if number >= repeat.least:
                ends += last if number == repeat.least else span.last
            if repeat.most is None and number == copies:
                self._connect(span.last, span.first)
        return _Span(empty or repeat.least == 0, first, ends)

    def _connect(self, ends: Sequence[int], starts: Sequence[int]) -> None:
        self._take(1 + len(ends) * len(starts) // 10)
        for position in ends:
            self._follow[position] += starts
            if self._kinds[position] in (_BEGIN, _END):
                following = {self._kinds[start] for start in starts}
                if _BEGIN in following or self._kinds[position] in following:
                    raise PatternError("it has several ^ or $ in one place")

    def search(self, text: str, take: Take) -> bool:
        """Whether the pattern matches anywhere in a text."""
        if self._empty:
            return True
        take(1 + len(text) // 50)
        state: frozenset[int] = frozenset()
        for symbol in chain((_BEGIN,), text, (_END,)):
            following = self._states.get((state, symbol))
            state = self._next(state, symbol, take) if following is None else following
            if not state.isdisjoint(self._last):
                return True
        return False

    def _next(self, state: frozenset[int], symbol: str, take: Take) -> frozenset[int]:
        """The state after a character, or after the start or the end of the text."""
        candidates = set(self._first).union(*(self._follow[position] for position in state))
        take(1 + (len(self._first) + len(candidates)) // 10)
        kinds = {kind for kind in {self._kinds[at] for at in candidates} if self._is(kind, symbol)}
        following = frozenset(at for at in candidates if self._kinds[at] in kinds)
        self._cached += 1 + len(following)
        if self._cached > _CACHED_POSITIONS:
            self._states, self._cached = {}, 0
        self._states[state, symbol] = following
        return following

    def _is(self, kind: str, symbol: str) -> bool:
        if kind in (_BEGIN, _END) or len(symbol) > 1:
            return kind == symbol
        return self._matches[kind].match(symbol) is not None


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
    """Parses a pattern into a tree.

    Raises:
        PatternError: The pattern is incomplete, or not of the syntax of ECMA-262.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.tree = self._choice()
        if self._at < len(pattern):
            raise self._wrong()

    def _wrong(self) -> PatternError:
        return PatternError(f"no regular expression from character {self._at + 1} on")

    def _choice(self) -> _Node:
        parts = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _Choice(parts)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            token = _TOKEN.match(self._pattern, self._at)
            if token is None:
                raise self._wrong()
            if token.lastgroup == "repeat":
                if not parts or isinstance(parts[-1], _Anchor | _Repeat):
                    raise self._wrong()
                parts[-1] = self._repeat(parts[-1], token)
            else:
                parts.append(self._part(token))
        return parts[0] if len(parts) == 1 else _Sequence(parts)

    def _repeat(self, inner: _Node, token: re.Match[str]) -> _Node:
        least, most = _SIGNS.get(token[0][0], (int(token["least"] or 0), None))
        if token["least"] is not None and token["most"] is not None:
            most = int(token["most"])
        elif token["least"] is not None and token["comma"] is None:
            most = least
        if most is not None and most < least:
            raise self._wrong()
        self._at = token.end()
        return _Repeat(inner, least, most, token[0])

    def _part(self, token: re.Match[str]) -> _Node:
        text = token[0]
        if token.lastgroup == "group":
            return self._group(text, token.end())
        self._at = token.end()
        if token.lastgroup == "class":
            return _Atom(_class(text))
        if token.lastgroup == "anchor":
            return _Anchor(text)
        if token.lastgroup == "escape":
            return _escape(text)
        return _Atom("." if text == "." else re.escape(text))

    def _group(self, opening: str, end: int) -> _Node:
        start, self._at = self._at, end
        inner = self._choice()
        if not self._pattern.startswith(")", self._at):
            self._at = start
            raise self._wrong()
        self._at += 1
        if opening[-1] in "=!":
            return _Lookaround(opening, inner)
        return _Group(opening.replace("?<", "?P<"), inner)


_SIGNS: Mapping[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def _class(text: str) -> str:
    """A character class in the syntax of `re`: `[]` matches nothing, as in ECMA-262."""
    if text in ("[]", "[^]"):
        return r"[^\s\S]" if text == "[]" else r"[\s\S]"
    opening = 2 if text[1] == "^" else 1
    return text[:opening] + _IN_CLASS.sub(_in_class, text[opening:-1]) + "]"


def _in_class(found: re.Match[str]) -> str:
    text = found[0]
    if len(text) == 1:
        return f"\\{text}"  # `re` warns of characters that may become set operations
    return _character(text) if len(text) == 6 else text


def _character(code: str) -> str:
    """The character of `\\xHH` or `\\uHHHH`, as a literal."""
    return re.escape(chr(int.from_bytes(bytes.fromhex(code[2:]), "big")))


def _escape(text: str) -> _Node:
    if _CODE.fullmatch(text):
        return _Atom(_character(text))
    if text[1] == "k" and len(text) > 2:
        return _Irregular(f"(?P={text[3:-1]})")
    if text[1] in "bB123456789":
        return _Irregular(text)
    return _Atom(text if text[1].isalnum() else re.escape(text[1]))


class Pattern:
    """A compiled pattern.

    Args:
        source: The pattern in the schema.

    Raises:
        PatternError: Not a regular expression for `re` or `re2`, or too long.
    """

    def __init__(self, source: str) -> None:
        if len(source) > PATTERN_CHARACTERS:
            raise PatternError(f"longer than {PATTERN_CHARACTERS} characters")
        self._tree: _Node | None = None
        self._re: re.Pattern[str] | None = None
        self._wrong = ""
        try:
            self._tree = _Parser(source).tree
            self._re = re.compile(self._tree.text(r"\Z"), re.ASCII)
        except (PatternError, re.error, OverflowError) as error:
            self._wrong = str(error)
        self._linear = _linear(source if self._tree is None else self._tree.text(r"\z"))
        if self._re is None and self._linear is None:
            raise PatternError(f"not a regular expression: {self._wrong}{_advice()}")
        self._nodes = 1 + len(source) // 10
        self._efforts: dict[int, int] = {}
        self._automaton: _Automaton | None = None

    def search(self, text: str, take: Take) -> bool:
        """Whether the pattern matches anywhere in a text.

        Args:
            text: The text.
            take: Counts the steps.

        Raises:
            PatternError: The pattern can't be searched in linear time, or is too large.
        """
        if self._re is not None:
            steps = self._backtracking(len(text), take)
            if steps <= BACKTRACKING_STEPS + 20 * len(text):
                take(1 + steps // 5000)
                return self._re.search(text) is not None
        size = PATTERN_CHARACTERS if self._tree is None else self._tree.size()
        if self._linear is not None and size * len(text) <= _RE2_WORK:
            take(1 + len(text) // 500)
            with suppress(UnicodeEncodeError):  # a lone surrogate
                return self._linear.search(text) is not None
        if self._automaton is None:
            self._automaton = self._made(take)
        return self._automaton.search(text, take)

    def _backtracking(self, length: int, take: Take) -> int:
        """Most steps that `re` can take for a text of this length."""
        bits = length.bit_length()
        if bits not in self._efforts and self._tree is not None:
            take(self._nodes)
            steps = self._tree.effort(1 << bits).steps
            self._efforts[bits] = (steps if _is_anchored(self._tree) else steps << bits) + length
        return self._efforts[bits]

    def _made(self, take: Take) -> _Automaton:
        try:
            if self._tree is None:
                raise PatternError("the text is too long")
            return _Automaton(self._tree, take)
        except (PatternError, re.error) as error:
            reason = f"can't be searched for in linear time: {error}"
            raise PatternError(f"{reason}{_advice()}") from None


@lru_cache(maxsize=64)
def pattern_of(source: str) -> Pattern:
    """A compiled pattern from the cache; see `Pattern`."""
    return Pattern(source)


def _is_anchored(node: _Node) -> bool:
    """Whether a match can start only at the start of the text."""
    match node:
        case _Anchor():
            return node.sign == "^"
        case _Sequence(parts):
            return bool(parts) and _is_anchored(parts[0])
        case _Choice(parts):
            return all(map(_is_anchored, parts))
        case _Lookaround():
            return False
        case _Group():
            return _is_anchored(node.inner)
        case _:
            return False


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
