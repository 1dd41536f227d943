"""The values of a term as alternatives of one shape for each type of JSON.

Members and items stay terms, so schemas that contain themselves end. A constraint that has no form
here is kept as a text (`others`): only the same text in another shape implies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from mcpgen.contract.schema_document import (
    ANY,
    NOTHING,
    Place,
    Term,
    UndecidedError,
    allows,
    canonical,
    distinct,
    pointer_of,
)
from mcpgen.json_types import Json, Node, is_array, is_object

_MOST_ALTERNATIVES = 96
_DEEPEST_DISJOINT = 3


@dataclass(frozen=True)
class Values:
    """Some values, each named.

    Attributes:
        values: The values.
    """

    values: tuple[Json, ...]
    opaque: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Numbers:
    """Numbers between two bounds.

    Attributes:
        low: The least; `None` without a bound.
        high: The greatest.
        is_low_open: Whether the bound itself is left out.
        is_high_open: Whether the bound itself is left out.
        is_integer: Whether only whole numbers are meant.
        steps: Numbers of which each value is a multiple.
    """

    low: Fraction | None = None
    high: Fraction | None = None
    is_low_open: bool = False
    is_high_open: bool = False
    is_integer: bool = False
    steps: frozenset[Fraction] = frozenset()
    opaque: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Strings:
    """Strings between two lengths, in code points."""

    least: int = 0
    most: int | None = None
    patterns: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Arrays:
    """Arrays between two lengths.

    Attributes:
        first: Terms of the first items.
        rest: Term of the items after them.
        is_unique: Whether no two items are equal.
    """

    least: int = 0
    most: int | None = None
    first: tuple[Term, ...] = ()
    rest: Term = ANY
    is_unique: bool = False
    opaque: frozenset[str] = frozenset()

    def item(self, index: int) -> Term:
        """The term of an item."""
        return self.first[index] if index < len(self.first) else self.rest


@dataclass(frozen=True)
class Objects:
    """Objects.

    Attributes:
        least: Least number of members.
        most: Greatest number of members.
        required: Names that are always there.
        members: Terms of members by name; patterns are not merged into them.
        patterns: Terms of members by a pattern of their names.
        additional: Term of members that neither a name nor a pattern covers.
        names: Term of the names.
        opaque: The keywords without a form.
        is_listed: Whether a schema lists the members; none, if a tool has no arguments.
    """

    least: int = 0
    most: int | None = None
    required: frozenset[str] = frozenset()
    members: tuple[tuple[str, Term], ...] = ()
    patterns: tuple[tuple[str, Term], ...] = ()
    additional: Term = ANY
    names: Term = ANY
    opaque: frozenset[str] = frozenset()
    is_listed: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Term]:
        """Terms of members by name."""
        return dict(self.members)

    @property
    def is_closed(self) -> bool:
        """Whether only named members are allowed."""
        return not self.patterns and is_nothing(self.additional)

    @property
    def lists_members(self) -> bool:
        """Whether members are named, and nothing is said of others."""
        return self.is_listed and not self.patterns and self.additional == ANY

    def member(self, name: str) -> Term:
        """The term of a member; of additional ones if no name covers it.

        Raises:
            UndecidedError: A pattern might cover the name.
        """
        known = self.by_name.get(name)
        covering = [term for pattern, term in self.patterns if matches(pattern, name)]
        if known is None and not covering:
            return self.additional
        return (known or ANY).union(*covering)


Shape: TypeAlias = Values | Numbers | Strings | Arrays | Objects
Form: TypeAlias = Mapping[str, Shape]
"""The shapes of one alternative by type; a missing type is not allowed."""

_EVERYTHING: Form = {
    "null": Values((None,)),
    "boolean": Values((False, True)),
    "number": Numbers(),
    "string": Strings(),
    "array": Arrays(),
    "object": Objects(),
}
TYPES = (*_EVERYTHING,)
"""The types of JSON values; `integer` is one of numbers."""

_OPAQUE: Mapping[str, tuple[str, ...]] = {
    "not": TYPES,
    "if": TYPES,
    "contains": ("array",),
    "unevaluatedItems": ("array",),
    "unevaluatedProperties": ("object",),
    "dependentRequired": ("object",),
    "dependentSchemas": ("object",),
    "dependencies": ("object",),
    "$dynamicRef": TYPES,
    "$recursiveRef": TYPES,
}
"""Keywords that have no form here, by the types that they restrict."""

_TOGETHER = {"if": ("then", "else"), "contains": ("minContains", "maxContains")}


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of a schema is found in a text.

    Raises:
        UndecidedError: Python does not read the pattern.
    """
    import re

    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise UndecidedError("a pattern that Python does not read") from error


def is_nothing(term: Term) -> bool:
    """Whether a term is `false` as written; others may be empty too."""
    return any(place.schema is False for place in term)


def kind_of(value: Json) -> str:
    """The type of a JSON value, among `TYPES`."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if is_array(value) else "object"


def shapes(term: Term) -> list[tuple[str, Shape]]:
    """The alternatives of a term, with their types; values that the term refuses are left out.

    Raises:
        UndecidedError: There are too many, or a reference can't be followed.
    """
    alternatives: list[tuple[str, Shape]] = []
    for form in _forms_of(term, frozenset()):
        for kind, shape in form.items():
            if isinstance(shape, Values):
                kept = tuple(value for value in shape.values if allows(term, value))
                shape = replace(shape, values=kept, opaque=frozenset())
            if not is_empty(shape) and (kind, shape) not in alternatives:
                alternatives.append((kind, shape))
    return alternatives


def _forms_of(term: Term, seen: frozenset[Place]) -> list[Form]:
    forms: list[Form] = [_EVERYTHING]
    for place in sorted(term, key=lambda each: each.pointer):
        forms = _both(forms, _forms(place, seen))
    return forms


def _forms(place: Place, seen: frozenset[Place]) -> list[Form]:
    """The alternatives of one place: its own keywords, and what its applicators add."""
    if place in seen:
        raise UndecidedError("a schema that refers to itself and nothing else", place)
    seen |= {place}
    schema = place.schema
    if not is_object(schema):
        return [_EVERYTHING] if schema is True else []
    forms: list[Form] = [_EVERYTHING]
    if "$ref" in schema:
        target = place.document.target(schema["$ref"], place.pointer)
        forms = _forms(target, seen)
        if not place.document.follows_siblings:
            return forms
    forms = _both(forms, [_own(place, schema)])
    for number in range(len(_array_at(schema, "allOf"))):
        forms = _both(forms, _forms(place.below("allOf", number), seen))
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            branches = [
                _forms(place.below(keyword, number), seen)
                for number in range(len(_array_at(schema, keyword)))
            ]
            union = [form for branch in branches for form in branch]
            if keyword == "oneOf" and not _are_disjoint(branches):
                union = [_with_mark(form, TYPES, _text(place, schema, keyword)) for form in union]
            forms = _both(forms, union)
    return forms


def _array_at(schema: Node, keyword: str) -> Sequence[Json]:
    value = schema.get(keyword, [])
    return value if is_array(value) else []


def _own(place: Place, schema: Node) -> Form:
    """The values that the keywords of one schema object allow, without its applicators."""
    named = schema.get("type", list(TYPES))
    types = {each for each in (named if is_array(named) else [named]) if isinstance(each, str)}
    numbers = _numbers(schema)
    if "integer" in types and "number" not in types:
        numbers = replace(numbers, is_integer=True)
        types.add("number")
    form: dict[str, Shape] = {
        **_EVERYTHING,
        "number": numbers,
        "string": _strings(schema),
        "array": _arrays(place, schema),
        "object": _objects(place, schema),
    }
    form = {kind: shape for kind, shape in form.items() if kind in types}
    listed = schema["enum"] if is_array(schema.get("enum")) else None
    if "const" in schema:
        listed = [schema["const"]]
    if listed is not None:
        by_type: dict[str, list[Json]] = {}
        for value in distinct(listed):
            by_type.setdefault(kind_of(value), []).append(value)
        form = {kind: Values(tuple(by_type[kind])) for kind in form if kind in by_type}
    for keyword, restricted in _OPAQUE.items():
        if keyword in schema:
            form = dict(_with_mark(form, restricted, _text(place, schema, keyword)))
    return form


def _text(place: Place, schema: Node, keyword: str) -> str:
    """A constraint as text: equal texts restrict alike, since the definitions belong to them."""
    words = (keyword, *_TOGETHER.get(keyword, ()))
    beside = ("properties", "patternProperties", "additionalProperties", "prefixItems", "items")
    if keyword.startswith("unevaluated"):
        words = (*words, *beside, "allOf", "anyOf", "oneOf", "$ref")
    text = canonical({word: schema[word] for word in words if word in schema})
    if "$ref" not in text and "Ref" not in text:
        return text
    root = place.document.schema
    return text + canonical([root.get("$defs"), root.get("definitions")])


def _with_mark(form: Form, types: Sequence[str], text: str) -> Form:
    return {
        kind: replace(shape, opaque=shape.opaque | {text}) if kind in types else shape
        for kind, shape in form.items()
    }


def _numbers(schema: Node) -> Numbers:
    low, high = _number(schema.get("minimum")), _number(schema.get("maximum"))
    open_low, open_high = _number(schema.get("exclusiveMinimum")), None
    open_high = _number(schema.get("exclusiveMaximum"))
    numbers = Numbers(
        low, high, schema.get("exclusiveMinimum") is True, schema.get("exclusiveMaximum") is True
    )
    if open_low is not None:
        numbers = _both_numbers(numbers, Numbers(low=open_low, is_low_open=True))
    if open_high is not None:
        numbers = _both_numbers(numbers, Numbers(high=open_high, is_high_open=True))
    step = _number(schema.get("multipleOf"))
    return replace(numbers, steps=frozenset({step} if step else ()))


def _number(value: Json) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def _length(schema: Node, keyword: str) -> int | None:
    value = _number(schema.get(keyword))
    return None if value is None else int(value)


def _strings(schema: Node) -> Strings:
    texts = {
        keyword: frozenset({schema[keyword]} if isinstance(schema.get(keyword), str) else ())
        for keyword in ("pattern", "format")
    }
    least, most = _length(schema, "minLength") or 0, _length(schema, "maxLength")
    return Strings(least, most, texts["pattern"], texts["format"])


def _arrays(place: Place, schema: Node) -> Arrays:
    first, rest = _array_at(schema, "prefixItems"), "items"
    words = "prefixItems"
    if is_array(schema.get("items")):
        first, words, rest = schema["items"], "items", "additionalItems"
    return Arrays(
        _length(schema, "minItems") or 0,
        _length(schema, "maxItems"),
        tuple(frozenset({place.below(words, number)}) for number in range(len(first))),
        frozenset({place.below(rest)}) if rest in schema else ANY,
        schema.get("uniqueItems") is True,
    )


def _objects(place: Place, schema: Node) -> Objects:
    def terms(keyword: str) -> tuple[tuple[str, Term], ...]:
        listed = schema.get(keyword)
        names = sorted(listed) if is_object(listed) else ()
        return tuple((name, frozenset({place.below(keyword, name)})) for name in names)

    def one(keyword: str) -> Term:
        if schema.get(keyword) is False:
            return NOTHING
        return frozenset({place.below(keyword)}) if keyword in schema else ANY

    return Objects(
        _length(schema, "minProperties") or 0,
        _length(schema, "maxProperties"),
        frozenset(each for each in _array_at(schema, "required") if isinstance(each, str)),
        terms("properties"),
        terms("patternProperties"),
        one("additionalProperties"),
        one("propertyNames"),
        is_listed="properties" in schema,
    )


# Both of two


def _both(ours: Sequence[Form], theirs: Sequence[Form]) -> list[Form]:
    """The alternatives of what two lists of alternatives allow."""
    if len(ours) * len(theirs) > _MOST_ALTERNATIVES:
        raise UndecidedError("too many alternatives")
    met = [
        {kind: _meet(shape, other[kind]) for kind, shape in one.items() if kind in other}
        for one in ours
        for other in theirs
    ]
    return [form for form in met if form]


def _meet(one: Shape, other: Shape) -> Shape:
    opaque = one.opaque | other.opaque
    match one, other:
        case Values(), Values():
            known = {canonical(value) for value in other.values}
            return Values(tuple(v for v in one.values if canonical(v) in known), opaque)
        case Values(), _:  # values that the whole term refuses are taken out at the end
            return replace(one, opaque=opaque)
        case _, Values():
            return replace(other, opaque=opaque)
        case Numbers(), Numbers():
            return replace(_both_numbers(one, other), opaque=opaque)
        case Strings(), Strings():
            return Strings(
                max(one.least, other.least),
                _least(one.most, other.most),
                one.patterns | other.patterns,
                one.formats | other.formats,
                opaque,
            )
        case Arrays(), Arrays():
            count = max(len(one.first), len(other.first))
            return Arrays(
                max(one.least, other.least),
                _least(one.most, other.most),
                tuple(one.item(index) | other.item(index) for index in range(count)),
                one.rest | other.rest,
                one.is_unique or other.is_unique,
                opaque,
            )
        case Objects(), Objects():
            return _both_objects(one, other, opaque)
        case _:
            raise AssertionError(f"shapes of two types: {one}, {other}")


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _both_numbers(one: Numbers, other: Numbers) -> Numbers:
    lows = [(each.low, each.is_low_open) for each in (one, other) if each.low is not None]
    highs = [(each.high, not each.is_high_open) for each in (one, other) if each.high is not None]
    low, is_low_open = max(lows, default=(None, False))
    high, is_high_closed = min(highs, default=(None, True))
    is_integer = one.is_integer or other.is_integer
    return Numbers(low, high, is_low_open, not is_high_closed, is_integer, one.steps | other.steps)


def _both_objects(one: Objects, other: Objects, opaque: frozenset[str]) -> Objects:
    """Both of two objects: patterns and additional members of each count for names of the other."""
    names = sorted({*one.by_name, *other.by_name})
    patterns = sorted({pattern for pattern, _ in (*one.patterns, *other.patterns)})
    for ours, theirs in ((one, other), (other, one)):
        if ours.additional != ANY and dict(theirs.patterns).keys() - dict(ours.patterns).keys():
            raise UndecidedError("patterns of names beside additional members, in two schemas")
    return Objects(
        max(one.least, other.least),
        _least(one.most, other.most),
        one.required | other.required,
        tuple((name, _own_member(one, name) | _own_member(other, name)) for name in names),
        tuple(
            (each, dict(one.patterns).get(each, ANY) | dict(other.patterns).get(each, ANY))
            for each in patterns
        ),
        one.additional | other.additional,
        one.names | other.names,
        opaque,
        one.is_listed or other.is_listed,
    )


def _own_member(objects: Objects, name: str) -> Term:
    """The term of a name without the patterns, which stay beside it."""
    known = objects.by_name.get(name)
    if known is not None:
        return known
    covered = any(matches(pattern, name) for pattern, _ in objects.patterns)
    return ANY if covered else objects.additional


# Empty, disjoint


def is_empty(shape: Shape) -> bool:
    """Whether a shape plainly allows nothing; one that isn't may still be empty."""
    match shape:
        case Values():
            return not shape.values
        case Numbers(low=low, high=high):
            if low is None or high is None:
                return False
            return low > high or (low == high and (shape.is_low_open or shape.is_high_open))
        case Strings() | Arrays():
            return shape.most is not None and shape.least > shape.most
        case Objects():
            too_many = shape.most is not None and max(shape.least, len(shape.required)) > shape.most
            return too_many or any(is_nothing(shape.member(name)) for name in shape.required)


def _are_disjoint(branches: Sequence[Sequence[Form]]) -> bool:
    """Whether no value is allowed by two branches; `False` also if that is not plain."""
    try:
        return all(
            _are_apart(one, other, _DEEPEST_DISJOINT)
            for number, branch in enumerate(branches)
            for later in branches[number + 1 :]
            for one in branch
            for other in later
        )
    except UndecidedError:
        return False


def _are_apart(one: Form, other: Form, depth: int) -> bool:
    return all(
        _are_shapes_apart(shape, other[kind], depth) for kind, shape in one.items() if kind in other
    )


def _are_shapes_apart(one: Shape, other: Shape, depth: int) -> bool:
    match one, other:
        case Values(), Values():
            known = {canonical(value) for value in other.values}
            return not any(canonical(value) in known for value in one.values)
        case Objects(), Objects():
            if _lacks(one, other) or _lacks(other, one):
                return True
            if not depth:
                return False
            return any(
                _are_terms_apart(one.member(name), other.member(name), depth - 1)
                for name in one.required & other.required
            )
        case _:
            return type(one) is type(other) and is_empty(_meet(one, other))


def _lacks(one: Objects, other: Objects) -> bool:
    """Whether the first has no place for a member that the second requires."""
    return one.is_closed and bool(other.required - one.by_name.keys())


def _are_terms_apart(one: Term, other: Term, depth: int) -> bool:
    return all(
        kind != other_kind or _are_shapes_apart(shape, other_shape, depth)
        for kind, shape in shapes(one)
        for other_kind, other_shape in shapes(other)
    )


__all__ = [
    "TYPES",
    "Arrays",
    "Numbers",
    "Objects",
    "Shape",
    "Strings",
    "Values",
    "is_empty",
    "is_nothing",
    "kind_of",
    "matches",
    "pointer_of",
    "shapes",
]
