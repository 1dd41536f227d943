"""Unions whose members have no tag: which member a JSON value is. Knows no library of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

_TEXT = 300  # characters of a peer's text that an error shows


class Variant(NamedTuple):
    """One member of an untagged union, and what a JSON object must hold to be it.

    Attributes:
        type: The member.
        required: Wire names that must be present.
        consts: Wire name to the values it may have; an absent name fails the test.
        inner: Wire name to what the object under it must hold.
    """

    type: Any
    required: tuple[str, ...] = ()
    consts: Mapping[str, tuple[Any, ...]] = {}
    inner: Mapping[str, tuple[str, ...]] = {}

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


class UntaggedType(type):
    """The type of unions without a tag: it decides which member a value is."""

    variants: tuple[Variant, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether a value is a member."""
        return any(
            isinstance(instance, variant.type)
            for variant in cls.variants
            if isinstance(variant.type, type)
        )

    def choose(cls, value: Any) -> Variant:
        """The member that a decoded JSON value is.

        Raises:
            ValueError: It fits none.
        """
        if is_object(value):
            for variant in cls.variants:
                if variant.fits(value):
                    return variant
        raise ValueError(f"Expected one of {cls.names()}, got {_shape(value)}")

    def names(cls) -> str:
        """The members by name, for error texts."""
        return ", ".join(cls.member_names())

    def member_names(cls) -> list[str]:
        """The name of each member."""
        return [getattr(v.type, "__name__", str(v.type)) for v in cls.variants]


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
