"""Header fields that repeat parts of a message, where each request states its revision.

Source: basic/transports/streamable-http (2026-07-28: request metadata).
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from ..._wire import STRUCTS, decoder, is_object, to_builtins
from ...channel import OutgoingMessage
from ...facts import Lifecycle, python_names
from ...framing.header_values import encode_value
from .streamable_http import ParamHeaders

_decode_object = decoder(dict[str, Any])


def request_fields(
    message: OutgoingMessage, param_headers: ParamHeaders | None = None
) -> dict[str, str]:
    """The header fields that repeat parts of a message; none for a message of a session.

    Args:
        message: The message.
        param_headers: Returns the parameter headers of a tool call.

    Raises:
        ProtocolError: An argument of a tool cannot be encoded for a header field.

    Source: basic/transports/streamable-http (2026-07-28: request metadata).
    """
    revision = message.revision
    if revision is None or revision.lifecycle is not Lifecycle.PER_REQUEST:
        return {}
    headers = revision.facts.headers
    fields: dict[str, str] = {}
    if headers.protocol_version is not None:
        fields[headers.protocol_version] = revision.name
    if headers.method is None or not message.method:
        return fields
    fields[headers.method] = encode_value(message.method)
    method = revision.facts.method(message.method)
    if headers.name is None or method.named_by is None:
        return fields
    params = message.params
    if isinstance(params, Raw):
        params = _decode_object(params)
    name = _member(params, method.named_by)
    if isinstance(name, str):
        fields[headers.name] = encode_value(name)
        if method.param_headers and headers.param_prefix is not None and param_headers is not None:
            arguments = to_builtins(_member(params, "arguments"))
            if is_object(arguments):
                fields.update(param_headers(name, arguments))
    return fields


def _member(params: Any, name: str) -> Any:
    """A member of params by its wire name; `None` if absent."""
    if isinstance(params, STRUCTS):
        own_name = python_names(type(params)).get(name)
        return None if own_name is None else getattr(params, own_name)
    return params.get(name) if is_object(params) else None
