"""JSON of authorization servers and of tokens, with unbounded numbers and depth.

Documents may hold integers beyond all floats, and arrays that are nested too deep for a parser. The
functions return `None` for these; the caller raises the error.
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
