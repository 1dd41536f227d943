"""Which kind of JSON value an object is, told so that type checkers understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def is_many(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is a mapping."""
    return isinstance(value, Mapping)
