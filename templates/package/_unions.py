"""Decoding of JSON by types: members of unions without a tag, and integers such as `1.0`.

Does not depend on the library of models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeGuard, Union, get_args, get_origin

_TEXT = 300  # characters of a peer's text that an error quotes


class Variant(NamedTuple):
    """One member of an untagged union, and the tests that a JSON object of this member passes.

    Attributes:
        type: The member.
        required: Wire names that must be present.
        consts: Wire name to the allowed values; an absent name fails the test.
        inner: Wire name to the names that the object under it must have.
        decides: Whether an object that passes the tests belongs to no other member.
        nullable: Those of `required` for which null is a value; elsewhere null is absence.
    """

    type: Any
    required: tuple[str, ...] = ()
    consts: Mapping[str, tuple[Any, ...]] = {}
    inner: Mapping[str, tuple[str, ...]] = {}
    decides: bool = True
    nullable: tuple[str, ...] = ()

    @property
    def takes_scalars(self) -> bool:
        """Whether scalars and arrays can be values of the member."""
        return not (self.decides or self.required)

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Whether the object has all that the schema requires of this member."""
        for name in self.required:
            if value.get(name) is None and not (name in self.nullable and name in value):
                return False
        for name, allowed in self.consts.items():
            if value.get(name) not in allowed:
                return False
        for name, names in self.inner.items():
            inner: Any = value.get(name)
            if not is_object(inner) or not all(each in inner for each in names):
                return False
        return True


def _class_of(kind: Any) -> Any:
    """A class for `isinstance`, of a type that may be a named alias or have arguments."""
    if not isinstance(kind, type):
        kind = getattr(kind, "__value__", kind)
    return get_origin(kind) or kind


class UntaggedType(type):
    """The metaclass of unions without a tag; selects the member that a value belongs to."""

    variants: tuple[Variant, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether a value belongs to a member; the contents of maps and lists are not checked."""
        return any(isinstance(instance, _class_of(variant.type)) for variant in cls.variants)

    def decode(cls, value: Any, decode_as: Callable[[Any, Any], Any]) -> Any:
        """Decode a JSON value as the first member whose tests it passes.

        Members that do not decide are tried in turn; the error is that of the first of them.

        Args:
            value: The value.
            decode_as: Converts decoded JSON to a type, or raises ValueError.

        Raises:
            ValueError: The value belongs to no member.
        """
        failed: ValueError | None = None
        for variant in cls.variants:
            if not (variant.fits(value) if is_object(value) else variant.takes_scalars):
                continue
            try:
                return decode_as(value, variant.type)
            except ValueError as error:
                if variant.decides:
                    raise
                if variant.required:
                    failed = failed or error
        if failed is not None:
            raise failed
        raise ValueError(
            f"Expected one of {', '.join(cls.member_names())}, got {_describe_shape(value)}"
        )

    def member_names(cls) -> list[str]:
        """The name of each member."""
        return [getattr(v.type, "__name__", str(v.type)) for v in cls.variants]


def is_tolerant(kind: Any, members: Callable[[Any], Mapping[str, Any] | None]) -> bool:
    """Whether `with_integers` or `without_null` can turn JSON into a value of a type.

    They can if the type has integers within, or maps of anything but `Any`.

    Args:
        kind: The type.
        members: Returns the type of each member by wire name; `None` for a type that is no model.
    """
    left, seen = [kind], list[Any]()
    while left:
        kind = left.pop()
        if int in (kind, type(kind)):  # the type, or a value of a Literal
            return True
        if get_origin(kind) is dict and get_args(kind)[1] is not Any:
            return True
        if kind not in seen:
            seen.append(kind)
            if isinstance(kind, UntaggedType):
                left += (variant.type for variant in kind.variants)
            elif hasattr(kind, "__value__"):  # a named alias
                left.append(kind.__value__)
            elif get_origin(kind) is Annotated:
                left.append(get_args(kind)[0])
            else:
                left += (members(kind) or {}).values() or get_args(kind)
    return False


def with_integers(value: Any) -> Any:
    """Decoded JSON with an integer in place of each float such as `1.0` (see JSON Schema)."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if is_many(value):
        return [with_integers(each) for each in value]
    if is_object(value):
        return {name: with_integers(each) for name, each in value.items()}
    return value


def without_null(
    value: Any, kind: Any, members: Callable[[Any, Mapping[str, Any]], Mapping[str, Any] | None]
) -> Any:
    """Decoded JSON without null in maps whose values cannot be null: there null is absence.

    Args:
        value: The JSON value.
        kind: Its type.
        members: Returns the type of each member of a model by wire name; `None` for a model that
            the JSON object is not, and for a type that is no model.
    """
    for each in _alternatives(kind, value):
        arguments = get_args(each)
        if is_many(value) and get_origin(each) is list:
            return [without_null(item, arguments[0], members) for item in value]
        if not is_object(value):
            continue
        if get_origin(each) is dict:
            takes_null = {Any, NoneType} & {*_alternatives(arguments[1], None)}
            return {
                name: without_null(item, arguments[1], members)
                for name, item in value.items()
                if item is not None or takes_null
            }
        if (types := members(each, value)) is not None:
            return {
                name: without_null(item, types.get(name, Any), members)
                for name, item in value.items()
            }
    return value


def _alternatives(kind: Any, value: Any) -> Iterator[Any]:
    """The types, none of them a union or a named alias, that a value of a type may have."""
    if hasattr(kind, "__value__"):  # a named alias
        yield from _alternatives(kind.__value__, value)
    elif isinstance(kind, UntaggedType):
        for variant in kind.variants:
            if not is_object(value) or variant.fits(value):
                yield from _alternatives(variant.type, value)
    elif get_origin(kind) is Annotated:
        yield from _alternatives(get_args(kind)[0], value)
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _alternatives(each, value)
    else:
        yield kind


def _describe_shape(value: Any) -> str:
    if is_object(value):
        return "an object with " + (format_text(", ".join(sorted(value))) or "no members")
    return "`null`" if value is None else f"`{type(value).__name__}`"


def format_text(text: str) -> str:
    """A text on one line, shortened. (A package with types alone has no `foreign_text`.)"""
    cut = text[:_TEXT]
    safe = cut if cut.isprintable() else ascii(cut)[1:-1]
    return safe if len(text) <= _TEXT else f"{safe}... ({len(text)} characters)"


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether decoded JSON is an object."""
    return isinstance(value, (dict, Mapping))  # `dict`, the usual type, first: faster


def is_many(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)
