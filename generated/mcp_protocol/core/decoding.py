"""Params and results by their rows in the tables: raw JSON in, typed values out."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from .._wire import UNREADABLE, error_text
from ..errors import InvalidParamsError, RemoteProtocolError
from ..facts import Method
from ..foreign_text import safe_repr
from .outgoing import Call


def decode_params(method: Method, params: Raw | None) -> Any:
    """Typed params; those that are absent, though they may be, decode like `{}`."""
    if params is None and method.params_required:
        raise InvalidParamsError(f"{method.name}: expected params, got nothing")
    if method.params is None:
        return None
    try:
        return method.decode_params(b"{}" if params is None else params)
    except UNREADABLE as error:
        if params is not None and bytes(params) == b"null":
            return decode_params(method, None)
        raise InvalidParamsError(f"{method.name}: params: {error_text(error)}") from None


def check_result_type(call: Call, result: Any) -> None:
    """Refuse a result of a kind that this side does not understand."""
    known = call.revision.result_types
    if known and (got := getattr(result, "result_type", None)) not in known:
        expected = ", ".join(sorted(known))
        raise RemoteProtocolError(
            f"{call.method.name}: resultType: expected one of {expected}, got {safe_repr(got)}"
        )
