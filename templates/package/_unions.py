"""How JSON is read by types: members of unions without a tag, and integers such as `1.0`.

Knows no library of models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeGuard, get_args, get_origin

_TEXT = 300  # characters of a peer's text that an error shows


class Variant(NamedTuple):
    """One member of an untagged union, and what a JSON object must hold to be it.

    Attributes:
        type: The member.
        required: Wire names that must be present.
        consts: Wire name to the values it may have; an absent name fails the test.
        inner: Wire name to what the object under it must hold.
        decides: Whether an object that passes the tests can be no other member.
    """

    type: Any
    required: tuple[str, ...] = ()
    consts: Mapping[str, tuple[Any, ...]] = {}
    inner: Mapping[str, tuple[str, ...]] = {}
    decides: bool = True

    @property
    def takes_scalars(self) -> bool:
        """Whether its values need not be objects."""
        return not (self.decides or self.required)

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Whether the object has all that the schema requires of this member."""
        for name in self.required:
            if name not in value:
                return False
        for name, allowed in self.consts.items():
            if value.get(name) not in allowed:
                return False
        return all(_holds(value.get(name), names) for name, names in self.inner.items())


def _holds(value: Any, names: tuple[str, ...]) -> bool:
    return is_object(value) and all(name in value for name in names)


def _class_of(kind: Any) -> Any:
    """A class for `isinstance`, of a type that may be a named alias or have arguments."""
    kind = getattr(kind, "__value__", kind)
    return get_origin(kind) or kind


class UntaggedType(type):
    """The type of unions without a tag: it decides which member a value is."""

    variants: tuple[Variant, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether a value is a member; maps and lists are not looked into."""
        return any(isinstance(instance, _class_of(variant.type)) for variant in cls.variants)

    def decode(cls, value: Any, decode_as: Callable[[Any, Any], Any]) -> Any:
        """A decoded JSON value as the first member whose tests it passes.

        Members that do not decide are tried in turn; the error is that of the first one.

        Args:
            value: The value.
            decode_as: Turns decoded JSON into a type, or raises ValueError.

        Raises:
            ValueError: It is none.
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
        raise ValueError(f"Expected one of {cls.names()}, got {_shape(value)}")

    def names(cls) -> str:
        """The members by name, for error texts."""
        return ", ".join(cls.member_names())

    def member_names(cls) -> list[str]:
        """The name of each member."""
        return [getattr(v.type, "__name__", str(v.type)) for v in cls.variants]


class Objects(NamedTuple):
    """Questions about the classes of one library of models.

    Attributes:
        types_of: The type of each member by wire name; `None` for a type that is no such class.
        tag_of: Wire name and value of the constant that tells a class from others, if it has one.
    """

    types_of: Callable[[Any], Mapping[str, Any] | None]
    tag_of: Callable[[Any], tuple[str, str] | None]


def has_integers(kind: Any, objects: Objects) -> bool:
    """Whether values of a type may hold integers, other than as any JSON value."""
    left, seen = [kind], list[Any]()
    while left:
        kind = _plain_type(left.pop())
        if kind is int:
            return True
        if kind not in seen:
            seen.append(kind)
            left += _types_within(kind, objects)
    return False


def _types_within(kind: Any, objects: Objects) -> Iterable[Any]:
    if isinstance(kind, UntaggedType):
        return [variant.type for variant in kind.variants]
    types = objects.types_of(kind)
    return get_args(kind) if types is None else types.values()


def _plain_type(kind: Any) -> Any:
    """What a named or annotated type stands for."""
    if hasattr(kind, "__value__"):
        return _plain_type(kind.__value__)
    return _plain_type(get_args(kind)[0]) if get_origin(kind) is Annotated else kind


def with_integers(value: Any, kind: Any, objects: Objects) -> Any:
    """Decoded JSON with integers for numbers such as `1.0` where a type has integers alone.

    By JSON Schema `1.0` is an integer.
    """
    kind = _plain_type(kind)
    if isinstance(value, float):
        kinds = [_plain_type(each) for each in (kind, *get_args(kind))]
        is_integer = int in kinds and float not in kinds and value.is_integer()
        return int(value) if is_integer else value
    if is_many(value):
        kinds = [_plain_type(each) for each in (kind, *get_args(kind))]
        items = next((get_args(each) for each in kinds if get_origin(each) is list), (Any,))
        return [with_integers(each, items[0], objects) for each in value]
    return _object_with_integers(value, kind, objects) if is_object(value) else value


def _object_with_integers(value: Mapping[str, Any], kind: Any, objects: Objects) -> Any:
    read = partial(with_integers, objects=objects)
    types = objects.types_of(kind)
    if types is not None:
        return {name: read(each, types.get(name, Any)) for name, each in value.items()}
    if isinstance(kind, UntaggedType):
        meant = next((each.type for each in kind.variants if each.fits(value)), Any)
        return read(value, meant)
    if get_origin(kind) is dict:
        return {name: read(each, get_args(kind)[1]) for name, each in value.items()}
    for member in map(_plain_type, get_args(kind)):
        tag = objects.tag_of(member) if objects.types_of(member) is not None else None
        if tag is None or value.get(tag[0]) == tag[1]:
            value = read(value, member)
    return value


def _shape(value: Any) -> str:
    if is_object(value):
        return "an object with " + (shown(", ".join(sorted(value))) or "no members")
    return f"`{type(value).__name__}`"


def shown(text: str) -> str:
    """A text on one line, cut. (`foreign_text` is no part of a package with types alone.)"""
    cut = text[:_TEXT]
    safe = cut if cut.isprintable() else ascii(cut)[1:-1]
    return safe if len(text) <= _TEXT else f"{safe}... ({len(text)} characters)"


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether decoded JSON is an object."""
    return isinstance(value, (dict, Mapping))  # what it nearly always is comes first: it is quicker


def is_many(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a list or a tuple."""
    return isinstance(value, list | tuple)
