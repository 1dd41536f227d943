"""JSON of authorization servers and of tokens, whose numbers and depth have no bound.

Documents may hold integers that no float represents, and arrays that no parser can nest. Neither
raises anything here: the reader of a document decides about the error.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .._wire import is_object


def parse_object(data: bytes | str) -> dict[str, Any] | None:
    """A JSON object; `None` for other JSON, malformed text, and text that is nested too deep."""
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return dict(value) if is_object(value) else None


def finite_number(value: object) -> float | None:
    """A JSON number as a float; `None` for other values, and for integers beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
