"""Decides whether every value of one schema is a value of another.

Both sides are split into shapes (see `shapes`). A shape of the first side has to lie within one of
the second, or within several of them after it was cut: by the values of a member, or at bounds of
numbers and lengths. Members and items are compared in the same way; a pair of terms that is met
again below itself is taken for true, as recursive schemas require, and taken back if it fails.

"Not included" is said only with a value that the judge of values (`jsonschema`) accepts for the
first side and refuses for the second. Whatever has neither a proof nor such a value is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from math import ceil, floor
from typing import Literal, TypeAlias

from mcpgen.contract.candidates import Candidates
from mcpgen.contract.schema_document import (
    ANY,
    KNOWN_FORMATS,
    Document,
    Term,
    UndecidedError,
    allows,
    pointer_of,
)
from mcpgen.contract.shapes import (
    Arrays,
    Numbers,
    Objects,
    Shape,
    Strings,
    Values,
    is_empty,
    is_nothing,
)
from mcpgen.json_types import Json

MOST_STEPS = 4000
"""Limit of the pairs of terms that one question compares."""

_MOST_CANDIDATES = 400
_MOST_WHOLE_NUMBERS = 64
_DEEPEST_CUTS = 4
_WHOLE: Mapping[bool, frozenset[Fraction]] = {True: frozenset({Fraction(1)}), False: frozenset()}
"""The step of whole numbers, by whether numbers are whole."""

Verdict: TypeAlias = Literal["included", "excluded", "undecided"]


@dataclass(frozen=True)
class Inclusion:
    """The answer for two schemas.

    Attributes:
        verdict: Whether the first schema's values are all values of the second.
        witness: For `excluded`, a value of the first that the second refuses, in a list of one.
        old: JSON pointer of the place in the first schema that decides, or that can't be decided.
        new: The place in the second.
        reason: For `undecided`, why.
    """

    verdict: Verdict
    witness: tuple[Json, ...] = ()
    old: str = ""
    new: str = ""
    reason: str = ""


def terms_included(old: Term, new: Term, *, named_only: bool = False) -> Inclusion:
    """Whether every value of a part of a schema is a value of a part of another.

    Formats count as constraints.

    Args:
        old: The first part.
        new: The second.
        named_only: Whether objects of the first part whose members are named have no others, even
            if its schema allows them: nobody sends what is not described.
    """
    old_place, new_place = pointer_of(old), pointer_of(new)
    try:
        for place in (*old, *new):
            place.document.check()
        failure = _Decision(named_only=named_only).terms(old, new)
    except UndecidedError as error:
        at = error.place
        if at is not None and at.document in {each.document for each in new}:
            new_place = at.pointer
        elif at is not None:
            old_place = at.pointer
        return Inclusion("undecided", (), old_place, new_place, error.reason)
    except RecursionError:
        return Inclusion("undecided", (), old_place, new_place, "nested too deep")
    if failure is None:
        return Inclusion("included")
    if failure.witness:
        return Inclusion("excluded", failure.witness, failure.old, failure.new)
    return Inclusion("undecided", (), failure.old, failure.new, failure.reason)


@dataclass(frozen=True)
class _Failure:
    """A pair of terms that was not proven.

    Attributes:
        witness: A value that shows that it isn't so, confirmed by the judge; or none.
    """

    old: str
    new: str
    reason: str
    witness: tuple[Json, ...] = ()


class _Decision:
    """One question, with the pairs of terms that were assumed or proven on the way.

    Args:
        named_only: As for `terms_included`.
    """

    def __init__(self, *, named_only: bool) -> None:
        self._taken: dict[tuple[Term, Term], None] = {}
        self._steps = 0
        self._named_only = named_only
        self._candidates = Candidates(named_only=named_only)

    def terms(self, old: Term, new: Term) -> _Failure | None:
        """Why the values of a term are not all values of another; `None` if they are."""
        pair = (old, new)
        if new <= old or pair in self._taken:
            return None
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise UndecidedError("too many steps")
        before = len(self._taken)
        self._taken[pair] = None
        failure = self._failure(old, new)
        if failure is not None:
            for each in [*self._taken][before:]:
                del self._taken[each]
        return failure

    def _failure(self, old: Term, new: Term) -> _Failure | None:
        theirs = self._candidates.shapes(new)
        for kind, shape in self._candidates.shapes(old):
            if self._is_void(shape):
                continue
            fitting = [other for other_kind, other in theirs if other_kind == kind]
            failure = self._shape(shape, fitting, new, _DEEPEST_CUTS)
            if failure is not None:
                return self._with_witness(failure, shape, fitting, old, new)
        return None

    def _is_void(self, shape: Shape, depth: int = 6) -> bool:
        """Whether a shape allows nothing since a required member does."""
        if is_empty(shape):
            return True
        if isinstance(shape, Objects):
            parts = [shape.member(name) for name in sorted(shape.required)]
        elif isinstance(shape, Arrays):
            parts = [shape.item(index) for index in range(min(shape.least, len(shape.first) + 1))]
        else:
            parts = []
        return depth > 0 and any(
            all(self._is_void(each, depth - 1) for _, each in self._candidates.shapes(part))
            for part in parts
            if part
        )

    def _shape(
        self, shape: Shape, others: Sequence[Shape], new: Term, cuts: int
    ) -> _Failure | None:
        """Why a shape does not lie within the alternatives of a term."""
        if isinstance(shape, Values):
            for value in shape.values:
                if not allows(new, value):
                    return _Failure("", "", "named values", (value,))
            return None
        failures: list[_Failure] = []
        for other in others:
            failure = self._within(shape, other)
            if failure is None:
                return None
            failures.append(failure)
        if len(others) > 1 and cuts:
            for pieces in self._cuts(shape, others):
                left = [
                    self._shape(each, others, new, cuts - 1)
                    for each in pieces
                    if not self._is_void(each)
                ]
                if not any(left):
                    return None
                failures += [each for each in left if each is not None]
        if not others:
            return _Failure("", "", "no alternative of its type")
        witnesses = tuple(value for each in failures for value in each.witness)
        return replace(failures[0], witness=witnesses)

    # One shape within another

    def _within(self, shape: Shape, other: Shape) -> _Failure | None:
        if isinstance(other, Values):
            return self._within_values(shape, other)
        if other.opaque - shape.opaque:
            keyword = min(other.opaque - shape.opaque).partition('"')[2].partition('"')[0]
            return _Failure("", "", f"the keyword {keyword}")
        match shape, other:
            case Numbers(), Numbers():
                return self._numbers(shape, other)
            case Strings(), Strings():
                return self._strings(shape, other)
            case Arrays(), Arrays():
                return self._arrays(shape, other)
            case Objects(), Objects():
                return self._objects(shape, other)
            case _:
                raise AssertionError(f"shapes of two types: {shape}, {other}")

    def _within_values(self, shape: Shape, other: Values) -> _Failure | None:
        """Whole numbers between two bounds may all be named."""
        whole = _whole_numbers(shape) if isinstance(shape, Numbers) else None
        if whole is not None and {*whole} <= set(other.values):
            return None
        return _Failure("", "", "named values")

    def _numbers(self, shape: Numbers, other: Numbers) -> _Failure | None:
        shape = _with_closed_bounds(shape) if shape.is_integer else shape
        is_low = other.low is None or (
            shape.low is not None
            and (shape.low, shape.is_low_open) >= (other.low, other.is_low_open)
        )
        is_high = other.high is None or (
            shape.high is not None
            and (-shape.high, shape.is_high_open) >= (-other.high, other.is_high_open)
        )
        steps = shape.steps | _WHOLE[shape.is_integer]
        wanted = other.steps | _WHOLE[other.is_integer]
        if (
            is_low
            and is_high
            and all(any((own / step).denominator == 1 for own in steps) for step in wanted)
        ):
            return None
        whole = _whole_numbers(shape)
        if whole is not None and all(_is_within(Fraction(each), other) for each in whole):
            return None
        return _Failure("", "", "numbers")

    def _strings(self, shape: Strings, other: Strings) -> _Failure | None:
        is_short = other.most is None or (shape.most is not None and shape.most <= other.most)
        if shape.least < other.least or not is_short:
            return _Failure("", "", "lengths of strings")
        if other.patterns - shape.patterns:
            return _Failure("", "", "the keyword pattern")
        if other.formats - shape.formats:
            unknown = other.formats - shape.formats - KNOWN_FORMATS
            return _Failure(
                "", "", f"the format {min(unknown)}" if unknown else "the keyword format"
            )
        return None

    def _arrays(self, shape: Arrays, other: Arrays) -> _Failure | None:
        is_short = other.most is None or (shape.most is not None and shape.most <= other.most)
        if shape.least < other.least or not is_short:
            return _Failure("", "", "lengths of arrays")
        most = shape.most
        if other.is_unique and not shape.is_unique and (most is None or most > 1):
            return _Failure("", "", "the keyword uniqueItems")
        count = max(len(shape.first), len(other.first)) + 1
        if most is not None:
            count = min(count, most)
        for index in range(count):
            item = shape.item(index)
            if is_nothing(item):
                return None
            failure = self.terms(item, other.item(index))
            if failure is not None:
                witness = self._candidates.arrays_with(shape, index, failure.witness)
                return replace(failure, witness=(*islice(witness, _MOST_CANDIDATES),))
        return None

    def _objects(self, shape: Objects, other: Objects) -> _Failure | None:
        if other.required - shape.required:
            return _Failure("", "", "required members")
        if max(shape.least, len(shape.required)) < other.least:
            return _Failure("", "", "number of members")
        most = shape.most
        if shape.is_closed:
            most = min(len(shape.members), len(shape.members) if most is None else most)
        if other.most is not None and (most is None or most > other.most):
            return _Failure("", "", "number of members")
        is_named = self._named_only and shape.lists_members
        names = {*shape.by_name, *shape.required}
        for name in sorted(names if is_named else names | other.by_name.keys()):
            failure = self._member(shape, name, shape.member(name), other.member(name))
            if failure is not None:
                return failure
        failure = None if is_named else self._other_members(shape, other)
        return failure or self._names(shape, other)

    def _member(self, shape: Objects, name: str, old: Term, new: Term) -> _Failure | None:
        if shape.names != ANY and not allows(shape.names, name):
            return None
        failure = self.terms(old, new)
        if failure is None:
            return None
        witness = self._candidates.objects_with(shape, name, failure.witness)
        return replace(failure, witness=(*islice(witness, _MOST_CANDIDATES),))

    def _other_members(self, shape: Objects, other: Objects) -> _Failure | None:
        """Compare what covers names that neither side lists."""
        patterns = dict(shape.patterns)
        for pattern, wanted in other.patterns:
            sources = [shape.additional, *(t for p, t in shape.patterns if p != pattern)]
            if pattern in patterns:
                sources = [patterns[pattern]]
            for source in sources:
                if self.terms(source, wanted) is not None:
                    return _Failure(pointer_of(source), pointer_of(wanted), "patterns of names")
        theirs = {pattern for pattern, _ in other.patterns}
        for pattern, source in shape.patterns:
            if pattern in theirs:
                continue
            failure = self.terms(source, other.additional)
            if failure is not None:
                return _Failure(
                    pointer_of(source), pointer_of(other.additional), "patterns of names"
                )
        failure = self.terms(shape.additional, other.additional)
        if failure is None:
            return None
        name = self._candidates.new_name(shape, other)
        witness = self._candidates.objects_with(shape, name, failure.witness)
        return replace(failure, witness=(*islice(witness, _MOST_CANDIDATES),))

    def _names(self, shape: Objects, other: Objects) -> _Failure | None:
        if other.names <= shape.names:
            return None
        if shape.is_closed:
            refused = [name for name in shape.by_name if not allows(other.names, name)]
            return _Failure("", "", "names of members") if refused else None
        failure = self.terms(shape.names, other.names)
        return failure and replace(failure, witness=(), reason="names of members")

    # Cuts

    def _cuts(self, shape: Shape, others: Sequence[Shape]) -> Iterator[list[Shape]]:
        """Ways to cut a shape into pieces that together are the shape."""
        match shape:
            case Numbers():
                for bound, is_open in _bounds([o for o in others if isinstance(o, Numbers)]):
                    below = replace(shape, high=bound, is_high_open=is_open)
                    above = replace(shape, low=bound, is_low_open=not is_open)
                    if _is_inside(bound, shape):
                        yield [below, above]
            case Strings() | Arrays():
                lengths = {each.least for each in others if isinstance(each, Strings | Arrays)}
                for length in sorted(lengths):
                    if shape.least < length and (shape.most is None or length <= shape.most):
                        yield [replace(shape, most=length - 1), replace(shape, least=length)]
            case Objects():
                yield from self._cut_objects(shape, [o for o in others if isinstance(o, Objects)])
            case Values():
                pass

    def _cut_objects(self, shape: Objects, others: Sequence[Objects]) -> Iterator[list[Shape]]:
        """Cut by the alternatives of a member, and by whether it is there."""
        for name in sorted({each for other in others for each in other.by_name}):
            term = shape.member(name)
            if name not in shape.required:
                if any(name in other.required for other in others) or term != ANY:
                    absent = replace(shape, members=(*_without(shape, name), (name, _NOTHING)))
                    yield [replace(shape, required=shape.required | {name}), absent]
                continue
            if term == ANY:
                continue
            pieces = self._candidates.alternatives(term)
            if len(pieces) > 1:
                yield [
                    replace(shape, members=(*_without(shape, name), (name, piece)))
                    for piece in pieces
                ]

    # Witnesses

    def _with_witness(
        self, failure: _Failure, shape: Shape, others: Sequence[Shape], old: Term, new: Term
    ) -> _Failure:
        """The failure with a value that the judge confirms, where one is found."""
        tried = [*failure.witness]
        near = self._candidates.near(shape, others, old, new)
        for value in (*tried, *islice(near, _MOST_CANDIDATES)):
            if allows(old, value) and not allows(new, value):
                return _Failure(
                    failure.old or pointer_of(old),
                    failure.new or pointer_of(new),
                    failure.reason,
                    (value,),
                )
        return _Failure(
            failure.old or pointer_of(old), failure.new or pointer_of(new), failure.reason
        )


_NOTHING: Term = Document(False).root


def _without(shape: Objects, name: str) -> tuple[tuple[str, Term], ...]:
    return tuple(row for row in shape.members if row[0] != name)


def _whole_numbers(shape: Numbers) -> list[int] | None:
    """The values of a shape of whole numbers between two close bounds."""
    if not shape.is_integer or shape.low is None or shape.high is None:
        return None
    if shape.high - shape.low > _MOST_WHOLE_NUMBERS:
        return None
    numbers = range(int(shape.low // 1), int(shape.high // 1) + 1)
    return [each for each in numbers if _is_within(Fraction(each), shape)]


def _with_closed_bounds(shape: Numbers) -> Numbers:
    """Whole numbers with bounds that are whole numbers of the shape."""
    low, high = shape.low, shape.high
    if low is not None:
        low = Fraction(floor(low) + 1 if shape.is_low_open else ceil(low))
    if high is not None:
        high = Fraction(ceil(high) - 1 if shape.is_high_open else floor(high))
    return replace(shape, low=low, high=high, is_low_open=False, is_high_open=False)


def _is_within(value: Fraction, shape: Numbers) -> bool:
    return (
        (shape.low is None or value > shape.low or (value == shape.low and not shape.is_low_open))
        and (
            shape.high is None
            or value < shape.high
            or (value == shape.high and not shape.is_high_open)
        )
        and (not shape.is_integer or value.denominator == 1)
        and all((value / step).denominator == 1 for step in shape.steps)
    )


def _is_inside(bound: Fraction, shape: Numbers) -> bool:
    """Whether a bound cuts a shape into two parts."""
    return (shape.low is None or bound >= shape.low) and (shape.high is None or bound <= shape.high)


def _bounds(others: Sequence[Numbers]) -> list[tuple[Fraction, bool]]:
    """Bounds to cut at, and whether the lower piece is without the bound."""
    lows = {(each.low, not each.is_low_open) for each in others if each.low is not None}
    highs = {(each.high, each.is_high_open) for each in others if each.high is not None}
    return sorted(lows | highs)
