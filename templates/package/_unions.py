"""How JSON is read by types: members of unions without a tag, and integers such as `1.0`.

Knows no library of models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


def has_integers(kind: Any, members: Callable[[Any], Mapping[str, Any] | None]) -> bool:
    """Whether values of a type may hold integers, other than as any JSON value.

    Args:
        kind: The type.
        members: The type of each member by wire name; `None` for a type that is no model.
    """
    left, seen = [kind], list[Any]()
    while left:
        kind = left.pop()
        if kind is int:
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
    """Decoded JSON with integers for numbers such as `1.0`, which are integers by JSON Schema."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if is_many(value):
        return [with_integers(each) for each in value]
    if is_object(value):
        return {name: with_integers(each) for name, each in value.items()}
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
