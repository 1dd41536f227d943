"""Values of a schema, tried in the search for one that another schema refuses.

They come from what the schemas name (values, bounds, defaults, examples) and lie at its bounds.
None is believed: the judge of values decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

from mcpgen.contract.schema_document import ANY, Document, Term, canonical, distinct
from mcpgen.contract.shapes import (
    Arrays,
    Numbers,
    Objects,
    Shape,
    Strings,
    Values,
    is_nothing,
    shapes,
)
from mcpgen.json_types import Json, Node, is_array, is_object

_DEEPEST = 5
_SHALLOW = 2
"""Levels of objects and arrays in the parts of a value, where only one part matters."""

_MOST_OF_A_TERM = 12
_MOST_PARTS = 200
_LONGEST = 5000
_TEXTS = (
    *("", "a", "A", "0", "1", "-", "x y", "abc", "ABC", "name", "a/b", "a_b", "a.b", "a-b"),
    *("1999-12-31", "1999-12-31T12:00:00Z", "12:00:00Z", "a@example.com", "example.com"),
    *("https://example.com/a", "127.0.0.1", "::1", "5c1f9c5a-7d09-4a0b-9c1e-2f5d1f0d9a11"),
    *("P1D", "/a", "{a}", "^a$", "123", "12345", "#ffffff", "true", "\u00e9", "\n"),
)
_ANY_VALUES: tuple[Json, ...] = (0, "", None, {}, [])
_WORDS = ("default", "const")


class Candidates:
    """Values by term, and the shapes of terms, each made once.

    Args:
        named_only: Whether objects whose members are named get no others.
    """

    def __init__(self, *, named_only: bool) -> None:
        self._named_only = named_only
        self._shapes: dict[Term, list[tuple[str, Shape]]] = {}
        self._pieces: dict[tuple[Term, str], Term] = {}

    def shapes(self, term: Term) -> list[tuple[str, Shape]]:
        """The alternatives of a term.

        Raises:
            UndecidedError: They can't be told.
        """
        if term not in self._shapes:
            self._shapes[term] = shapes(term)
        return self._shapes[term]

    def alternatives(self, term: Term) -> list[Term]:
        """Terms that together allow what a term allows: one for each value or type."""
        pieces: list[Term] = []
        for kind, shape in self.shapes(term):
            if isinstance(shape, Values):
                pieces += [self._piece(term, {"const": value}) for value in shape.values]
            else:
                pieces.append(self._piece(term, {"type": kind}))
        return list(dict.fromkeys(pieces))

    def _piece(self, term: Term, schema: dict[str, Any]) -> Term:
        key = (term, canonical(schema))
        if key not in self._pieces:
            self._pieces[key] = term | Document(schema).root
        return self._pieces[key]

    def new_name(self, *objects: Objects) -> str:
        """A name that no shape lists."""
        known = {name for each in objects for name in each.by_name}
        return next(
            name for name in ("other", "another", *map(str, range(9999))) if name not in known
        )

    def values(self, term: Term, depth: int = _DEEPEST) -> list[Json]:
        """Some values that a term may allow."""
        values = [*_values_in(term)]
        for kind, shape in self.shapes(term):
            values += islice(self._of(kind, shape, depth), _MOST_OF_A_TERM)
        return distinct(values)[: 2 * _MOST_OF_A_TERM]

    def _of(self, kind: str, shape: Shape, depth: int) -> Iterator[Json]:
        match shape:
            case Values():
                yield from shape.values
            case Numbers():
                yield from _numbers(shape)
            case Strings():
                yield from _strings(shape)
            case Arrays() if depth:
                yield from self._arrays(shape, depth - 1)
            case Objects() if depth:
                yield from self._objects(shape, depth - 1)
            case Arrays():
                yield []
            case Objects():
                yield {}

    def _arrays(self, shape: Arrays, depth: int) -> Iterator[Json]:
        if shape.least > _LONGEST // 10:
            return
        smallest = [self._first(shape.item(index), depth) for index in range(shape.least)]
        yield smallest
        if shape.most is None or shape.most > shape.least:
            for value in self.values(shape.item(shape.least), depth):
                yield [*smallest, value]
                yield [*smallest, value, value]
        for index in range(shape.least):
            for value in self.values(shape.item(index), depth):
                yield [*smallest[:index], value, *smallest[index + 1 :]]

    def _objects(self, shape: Objects, depth: int) -> Iterator[Json]:
        smallest = {name: self._first(shape.member(name), depth) for name in sorted(shape.required)}
        yield smallest
        whole = dict(smallest)
        for name, term in shape.members:
            if name not in smallest and not is_nothing(term):
                whole[name] = self._first(term, depth)
        yield whole
        for name, term in shape.members:
            for value in self.values(term, depth) if depth else ():
                yield {**smallest, name: value}
        if self._has_others(shape):
            yield {**smallest, self.new_name(shape): self._first(shape.additional, depth)}

    def _has_others(self, shape: Objects) -> bool:
        """Whether objects may have members that the shape does not name."""
        return not is_nothing(shape.additional) and not (self._named_only and shape.lists_members)

    def _first(self, term: Term, depth: int) -> Json:
        return next(iter(self.values(term, depth)), None) if term != ANY else None

    def objects_with(self, shape: Objects, name: str, values: Iterable[Json]) -> Iterator[Json]:
        """Objects of a shape in which a member has one of some values."""
        bases = [*islice(self._objects(shape, _SHALLOW), 3)]
        for value in values:
            for base in bases:
                yield {**base, name: value}

    def arrays_with(self, shape: Arrays, index: int, values: Iterable[Json]) -> Iterator[Json]:
        """Arrays of a shape in which an item has one of some values."""
        before = [self._first(shape.item(each), _SHALLOW) for each in range(index)]
        after = [self._first(shape.item(each), _SHALLOW) for each in range(index + 1, shape.least)]
        for value in values:
            yield [*before, value, *after]

    def near(self, shape: Shape, others: Sequence[Shape], old: Term, new: Term) -> Iterator[Json]:
        """Values of a shape that lie at the bounds of others, and any others of two terms."""
        for other in others:
            yield from self._beyond(shape, other)
        kind = next((kind for kind, each in self.shapes(old) if each == shape), "")
        yield from self._of(kind, shape, _DEEPEST)
        yield from _values_in(old)
        yield from _values_in(new)
        if isinstance(shape, Objects) and self._has_others(
            shape
        ):  # a condition may ask for names that no shape lists
            smallest = next(self._objects(shape, _SHALLOW))
            for name in _names(new):
                for value in _ANY_VALUES:
                    yield {**smallest, name: value}

    def _beyond(self, shape: Shape, other: Shape) -> Iterator[Json]:
        """Values beyond the bounds of another shape."""
        match shape, other:
            case Numbers(), Numbers():
                yield from _numbers(other)
                for bound in (other.low, other.high):
                    if bound is not None:
                        for away in (-1, 1, Fraction(-1, 2), Fraction(1, 2)):
                            yield _plain(bound + away)
            case Numbers(), Values():
                for value in other.values:
                    yield from (value - 1, value + 1, value + 0.5)
                yield from _numbers(shape)
            case Strings(), Strings():
                for length in (other.least - 1, (other.most or 0) + 1):
                    if 0 <= length <= _LONGEST:
                        yield "a" * length
            case Arrays(), Arrays():
                for length in (other.least - 1, (other.most or 0) + 1):
                    if shape.least <= length <= _LONGEST // 10:
                        yield [self._first(shape.item(index), _SHALLOW) for index in range(length)]
                count = max(shape.least, 2)
                yield [self._first(shape.item(0), _SHALLOW)] * count
            case Objects(), Objects():
                smallest = next(self._objects(shape, _SHALLOW))
                more = other.by_name.keys() if self._has_others(shape) else ()
                for name in sorted({*shape.by_name, *more} - shape.required):
                    for value in (
                        self.values(shape.member(name), _SHALLOW)
                        if shape.member(name)
                        else (0, "", None)
                    ):
                        yield {**smallest, name: value}
                named = {**smallest}
                for count in range((other.most or 0) + 1):
                    if self._has_others(shape):
                        named[f"other{count}"] = self._first(shape.additional, _SHALLOW)
                yield named
            case _:
                pass


def _parts(term: Term) -> Iterator[Node]:
    """The schema objects of a term and those within them, without references."""
    waiting = [place.schema for place in term]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop(0)
        if is_object(part):
            yield part
            waiting += part.values()
        elif is_array(part):
            waiting += part


def _values_in(term: Term) -> Iterator[Json]:
    """Values that the schemas of a term name."""
    for schema in _parts(term):
        yield from (schema[word] for word in _WORDS if word in schema)
        for word in ("examples", "enum"):
            if is_array(schema.get(word)):
                yield from schema[word]


def _names(term: Term) -> list[str]:
    """Names of members that the schemas of a term require."""
    lists = [schema["required"] for schema in _parts(term) if is_array(schema.get("required"))]
    return list(dict.fromkeys(name for each in lists for name in each if isinstance(name, str)))


def _numbers(shape: Numbers) -> Iterator[Json]:
    step = next(iter(shape.steps), Fraction(1))
    for bound in (shape.low, shape.high):
        if bound is not None:
            near = bound // step * step
            yield from map(_plain, (bound, near, near + step, near - step))
    for factor in (0, 1, -1, 2, 100, -100, 10**7, 10**17):
        yield _plain(step * factor)
    if not shape.is_integer and not shape.steps:
        yield from (0.5, -0.5, 1e300, -1e300)
        if shape.low is not None and shape.high is not None:
            yield _plain((shape.low + shape.high) / 2)


def _plain(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _strings(shape: Strings) -> Iterator[str]:
    for text in _TEXTS:
        if len(text) >= shape.least and (shape.most is None or len(text) <= shape.most):
            yield text
    for length in (shape.least, shape.least + 1, shape.most or 0):
        if length <= _LONGEST:
            yield "a" * length
