"""What a request to a client needs it to have declared, beyond the method's own capability.

Some params may only be sent to a client that declared a part of the capability: a mode of
elicitation, tools for sampling. That holds for requests and for input requests alike.

Source: client/elicitation#capabilities, client/sampling#capabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from .._wire import UNWRITABLE, Raw, error_text, is_object, to_builtins
from ..errors import LocalProtocolError
from ..facts import Method
from .lifecycle import declared

Path: TypeAlias = tuple[str, ...]

_ELICITATION, _SAMPLING = "elicitation", "sampling"
_FORM, _URL = "form", "url"


def missing(method: Method, params: Any, capabilities: Mapping[str, Any]) -> Path | None:
    """The first capability that a request needs and that was not declared, or `None`.

    Args:
        method: What is asked.
        params: Its params: typed, as wire object, or raw JSON.
        capabilities: What the receiver declared.

    Raises:
        LocalProtocolError: The params have no JSON form.
    """
    if method.capability and not declared(capabilities, method.capability):
        return method.capability
    parts = _PARTS.get(method.name)
    return None if parts is None else parts(_wire(params), capabilities)


def _wire(params: Any) -> Mapping[str, Any]:
    plain: Any = params
    try:
        if isinstance(params, Raw):
            plain = msgspec.json.decode(params)
        elif isinstance(params, msgspec.Struct):
            plain = to_builtins(params)
    except UNWRITABLE as error:
        raise LocalProtocolError(f"params: {error_text(error)}") from error
    return plain if is_object(plain) else {}


def _elicitation(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    """Without `mode` it is a form; a client that names no mode declared forms."""
    mode = params.get("mode", _FORM)
    if mode not in (_FORM, _URL):
        return None  # no mode at all: what the params are read as says so
    named = capabilities.get(_ELICITATION)
    if mode == _FORM and is_object(named) and named.get(_URL) is None:
        return None
    return _lacking(capabilities, (_ELICITATION, mode))


def _sampling(params: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Path | None:
    if "tools" in params or "toolChoice" in params:
        return _lacking(capabilities, (_SAMPLING, "tools"))
    return None


def _lacking(capabilities: Mapping[str, Any], path: Path) -> Path | None:
    return None if declared(capabilities, path) else path


_PARTS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Path | None]] = {
    "elicitation/create": _elicitation,
    "sampling/createMessage": _sampling,
}
