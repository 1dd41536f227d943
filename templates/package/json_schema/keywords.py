"""JSON Schema keywords with bounded cost, in place of those of the library `jsonschema`.

The keywords take linear time and count their work in advance: values are compared by canonical
texts, and `patterns` searches patterns. Values and schemas are copied first, into containers with a
bounded `repr`, since the library writes the value into each error.

Source: JSON Schema 2020-12, core and validation; the same keywords of older dialects.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from .._wire import is_many, is_object
from ..foreign_text import SHOWN_TEXT, safe_repr
from .patterns import PatternError, Take, pattern_of

MULTIPLE_BITS = 8192
"""Most bits of a number that `multipleOf` is applied to."""

ID_CHARACTERS = 20_000
"""Most characters of all identifiers in a schema together: nested identifiers are joined."""

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[Any] | None]
"""Takes validator, value of the keyword, instance and schema; returns errors."""

_LARGE = 1 << 4 * SHOWN_TEXT
_IDS = ("$id", "id")
_ANNOTATIONS = frozenset({"type", "title", "description", "default", "examples", "$comment"})
_NUMBERS: Mapping[str, frozenset[type]] = {
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
}
_SCALARS: Mapping[str, frozenset[type]] = {
    **_NUMBERS,
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
    "string": frozenset({str}),
}


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return safe_repr(self)


class _Integer(int):
    __slots__ = ()

    def __repr__(self) -> str:
        return safe_repr(self)


class _Array(list[Any]):
    """An array; for an `enum`, with the canonical texts of its values, created at first use."""

    __slots__ = ("keys",)
    keys: frozenset[str]

    def __repr__(self) -> str:
        return safe_repr(self)


class _Object(dict[str, Any]):
    """An object; for a schema, with the canonical text of its `const`, created at first use."""

    __slots__ = ("const_key",)
    const_key: str

    def __repr__(self) -> str:
        return safe_repr(self)


class Copier:
    """Copies decoded JSON into containers with a bounded `repr`.

    Args:
        count: Called before a container is copied, with the number of parts so far; may raise.

    Attributes:
        parts: Number of parts: objects, arrays, and their members and items.
        id_characters: Number of characters in the members `$id` and `id`.
    """

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self.parts = 1
        self.id_characters = 0

    def copy(self, value: Any) -> Any:
        """Copy a value; an object that is not JSON is returned unchanged.

        Raises:
            RecursionError: The value is nested too deep.
        """
        if type(value) is str:
            return value if len(value) <= SHOWN_TEXT else _Text(value)
        if type(value) is int:
            return value if -_LARGE < value < _LARGE else _Integer(value)
        if is_object(value):
            self._add(len(value))
            for name in _IDS:
                if isinstance(value.get(name), str):
                    self.id_characters += len(value[name])
            copy = self.copy
            return _Object({copy(name): copy(member) for name, member in value.items()})
        if is_many(value):
            self._add(len(value))
            copy = self.copy
            return _Array([item if type(item) is float else copy(item) for item in value])
        return value

    def _add(self, parts: int) -> None:
        self.parts += parts
        self._count(self.parts)


def key_of(value: Any, take: Take) -> str:
    """The canonical text of a JSON value, equal only for equal values.

    Numbers are compared mathematically: `1` equals `1.0`. Texts are safe in a set: their hashes are
    unpredictable, unlike hashes of numbers.

    Raises:
        RecursionError: The value is nested too deep.
    """
    if isinstance(value, str):
        take(1 + len(value) // 1000)
        return f"{len(value)}'{value}"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return hex(int(value)) if value.is_integer() else value.hex()
    if isinstance(value, int):
        return hex(value)
    if is_object(value):
        take(1 + len(value) // 5)
        members = sorted(
            f"{len(name)}'{name}:{key_of(member, take)}" for name, member in value.items()
        )
        return f"{{{','.join(members)}}}"
    if is_many(value):
        take(1 + len(value) // 10)
        return f"[{','.join([key_of(item, take) for item in value])}]"
    return safe_repr(value)


class Keywords:
    """The replaced keywords.

    Args:
        error: The library's class of errors.
        take: Counts steps before they are executed.
    """

    def __init__(self, error: Callable[[str], Any], take: Take) -> None:
        self._error = error
        self._take = take

    def implementation(self, name: str, original: Keyword) -> Keyword:
        """The implementation of a keyword; it may call the original."""
        if name == "items":
            return self._items(original)
        replaced: Mapping[str, Keyword] = {
            "additionalProperties": self._additional_properties,
            "const": self._const,
            "divisibleBy": self._multiple_of,
            "enum": self._enum,
            "multipleOf": self._multiple_of,
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "unevaluatedItems": self._unevaluated_items,
            "unevaluatedProperties": self._unevaluated_properties,
            "uniqueItems": self._unique_items,
        }
        return replaced.get(name, original)

    def _matches(self, pattern: str, text: str) -> bool:
        try:
            return pattern_of(pattern).search(text, self._take)
        except PatternError as error:
            raise PatternError(f"pattern {safe_repr(pattern)}: {error}") from None

    def _pattern(self, validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not self._matches(pattern, instance):
            yield self._error(f"{instance!r} does not match {pattern!r}")

    def _pattern_properties(
        self, validator: Any, patterns: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not is_object(instance):
            return
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if self._matches(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)

    def _additional_properties(
        self, validator: Any, allowed: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not is_object(instance):
            return
        extras = [name for name in instance if not self._is_named(name, schema)]
        if is_object(allowed):
            for name in extras:
                yield from validator.descend(instance[name], allowed, path=name)
        elif not allowed and extras:
            verb = "was" if len(extras) == 1 else "were"
            shown = safe_repr(extras)[1:-1]
            message = f"Additional properties are not allowed ({shown} {verb} unexpected)"
            yield self._error(message)

    def _is_named(self, name: str, schema: Mapping[str, Any]) -> bool:
        """Whether `properties` or `patternProperties` apply to a property."""
        return name in schema.get("properties", ()) or any(
            self._matches(pattern, name) for pattern in schema.get("patternProperties", ())
        )

    def _const(self, validator: Any, const: Any, instance: Any, schema: Any) -> Iterator[Any]:
        key = getattr(schema, "const_key", None)
        if key is None:
            key = key_of(const, self._take)
            if isinstance(schema, _Object):
                schema.const_key = key
        if key_of(instance, self._take) != key:
            yield self._error(f"{const!r} was expected")

    def _enum(self, validator: Any, enum: Any, instance: Any, schema: Any) -> Iterator[Any]:
        keys = getattr(enum, "keys", None)
        if keys is None:
            keys = frozenset(key_of(value, self._take) for value in enum)
            if isinstance(enum, _Array):
                enum.keys = keys
        if key_of(instance, self._take) not in keys:
            yield self._error(f"{instance!r} is not one of {enum!r}")

    def _unique_items(
        self, validator: Any, unique: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not unique or not is_many(instance):
            return
        seen: set[str] = set()
        for item in instance:
            self._take(1)
            key = key_of(item, self._take)
            if key in seen:
                yield self._error(f"{instance!r} has non-unique elements")
                return
            seen.add(key)

    def _multiple_of(
        self, validator: Any, factor: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not validator.is_type(instance, "number"):
            return
        for number in (instance, factor):
            if isinstance(number, int) and number.bit_length() > MULTIPLE_BITS:
                yield self._error(
                    f"{number!r}: multipleOf is judged for at most {MULTIPLE_BITS} bits"
                )
                return
        (value, value_exponent), (unit, unit_exponent) = _decimal(instance), _decimal(factor)
        least = min(value_exponent, unit_exponent)
        if value * 10 ** (value_exponent - least) % (unit * 10 ** (unit_exponent - least)):
            yield self._error(f"{instance!r} is not a multiple of {factor!r}")

    def _items(self, original: Keyword) -> Keyword:
        def items(
            validator: Any, subschema: Any, instance: Any, schema: Any
        ) -> Iterable[Any] | None:
            fits = None
            if is_many(instance) and "prefixItems" not in schema:
                fits = _simple_test(subschema)
            if fits is None:
                return original(validator, subschema, instance, schema)
            return (
                error
                for index, item in enumerate(instance)
                if not fits(item)
                for error in validator.descend(item, subschema, path=index)
            )

        return items

    def _unevaluated_items(
        self, validator: Any, unevaluated: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not is_many(instance):
            return
        evaluated = self._evaluated_items(validator, instance, schema, inner=False)
        unexpected = [
            item
            for index, item in enumerate(instance)
            if index not in evaluated and not validator.evolve(schema=unevaluated).is_valid(item)
        ]
        if unexpected:
            verb = "was" if len(unexpected) == 1 else "were"
            shown = safe_repr(unexpected)[1:-1]
            yield self._error(f"Unevaluated items are not allowed ({shown} {verb} unexpected)")

    def _unevaluated_properties(
        self, validator: Any, unevaluated: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not is_object(instance):
            return
        evaluated = self._evaluated_properties(validator, instance, schema, inner=False)
        unexpected = [
            name
            for name, value in instance.items()
            if name not in evaluated and not validator.evolve(schema=unevaluated).is_valid(value)
        ]
        if unexpected:
            verb = "was" if len(unexpected) == 1 else "were"
            shown = safe_repr(unexpected)[1:-1]
            yield self._error(f"Unevaluated properties are not allowed ({shown} {verb} unexpected)")

    def _evaluated_items(
        self, validator: Any, instance: Sequence[Any], schema: Any, *, inner: bool = True
    ) -> set[int]:
        """Indexes of the items that other keywords of a schema evaluate."""
        every = set(range(len(instance)))
        if not is_object(schema):
            return set()
        self._take(1 + len(instance) // 20)
        items = schema.get("items")
        if "items" in schema and (not is_many(items) or "additionalItems" in schema):
            return every
        if inner and "unevaluatedItems" in schema:
            return every
        evaluated = set(range(max(len(items or ()), len(schema.get("prefixItems", ())))))
        if "contains" in schema:
            contains = validator.evolve(schema=schema["contains"])
            evaluated |= {index for index in every if contains.is_valid(instance[index])}
        for applied, part in self._in_place(validator, instance, schema):
            evaluated |= self._evaluated_items(applied, instance, part)
        return evaluated

    def _evaluated_properties(
        self, validator: Any, instance: Mapping[str, Any], schema: Any, *, inner: bool = True
    ) -> set[str]:
        """Names of the properties that other keywords of a schema evaluate."""
        if not is_object(schema):
            return set()
        self._take(1 + len(instance) // 20)
        if "additionalProperties" in schema or (inner and "unevaluatedProperties" in schema):
            return set(instance)
        evaluated = {name for name in instance if self._is_named(name, schema)}
        for applied, part in self._in_place(validator, instance, schema):
            evaluated |= self._evaluated_properties(applied, instance, part)
        for name, part in schema.get("dependentSchemas", {}).items():
            if name in instance:
                evaluated |= self._evaluated_properties(validator, instance, part)
        return evaluated

    def _in_place(
        self, validator: Any, instance: Any, schema: Mapping[str, Any]
    ) -> Iterator[tuple[Any, Any]]:
        """The subschemas that apply to the same value, each with its validator."""
        for resolved in _references(validator, schema):
            applied = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            yield applied, resolved.contents
        for keyword in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(keyword, ()):
                if next(iter(validator.descend(instance, part)), None) is None:
                    yield validator, part
        if "if" in schema:
            holds = validator.evolve(schema=schema["if"]).is_valid(instance)
            if holds:
                yield validator, schema["if"]
            branch = "then" if holds else "else"
            if branch in schema:
                yield validator, schema[branch]


def _references(validator: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that a schema refers to, resolved by the library `referencing`."""
    keywords = validator.VALIDATORS.keys() & schema.keys()
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in keywords:
            yield validator._resolver.lookup(schema[keyword])
    if "$recursiveRef" in keywords:
        library: Any = importlib.import_module("referencing.jsonschema")
        yield library.lookup_recursive_ref(validator._resolver)


def _decimal(number: float) -> tuple[int, int]:
    """A number as an integer and a power of ten, as in its decimal text."""
    if isinstance(number, int):
        return number, 0
    digits, _, exponent = repr(number).partition("e")
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction), int(exponent or 0) - len(fraction)


def _simple_test(schema: Any) -> Callable[[Any], bool] | None:
    """A test that accepts only valid scalars; `None` if the schema needs more than a type test."""
    if not is_object(schema):
        return None
    kind = schema.get("type")
    kinds = _SCALARS.get(kind) if isinstance(kind, str) else None
    rest = schema.keys() - _ANNOTATIONS
    if kinds is None:
        return None
    if not rest:
        return lambda item: type(item) in kinds
    bounds = [schema.get(name, default) for name, default in _BOUNDS.items()]
    numeric = all(type(bound) in (int, float) for bound in bounds)
    if kind not in _NUMBERS or rest - _BOUNDS.keys() or not numeric:
        return None
    low, high = bounds
    return lambda item: type(item) in kinds and low <= item <= high


_BOUNDS: Mapping[str, float] = {"minimum": float("-inf"), "maximum": float("inf")}
