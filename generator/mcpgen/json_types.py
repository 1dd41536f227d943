"""Types of JSON values, and two checks that narrow them for type checkers."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = Any
"""A JSON value as `json.loads` or `tomllib` gives it."""

Node: TypeAlias = dict[str, Any]
"""A JSON object."""


def is_object(value: Json) -> TypeGuard[Node]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Json) -> TypeGuard[list[Json]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)
