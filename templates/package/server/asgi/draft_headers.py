"""Header fields of a draft that never became a revision, in sessions.

Clients of published revisions send none of these fields. So no field is required, but a field that
is present has to agree with the body.

Source: the draft between 2025-11-25 and 2026-07-28 (standard MCP request headers).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from ..._wire import UNREADABLE, decoder
from ...foreign_text import safe_repr
from ...framing import header_values
from ...protocol import jsonrpc
from ...protocol.param_headers import ParamHeadersOf, value_at
from ...revision_facts import Facts
from .http_response import Refused, refusal
from .request import HttpRequest
from .settings import HttpSettings

_decode = decoder(dict[str, Any])


def check_draft(
    facts: Facts,
    request: HttpRequest,
    message: jsonrpc.Message | None,
    param_headers_of: ParamHeadersOf,
) -> None:
    """Check that the header fields of a message agree with its body.

    Clients of the draft name the method in a header field, so messages without one are not parsed.

    Args:
        facts: The facts of the session's revision, which name the fields.
        request: The POST.
        message: The message; `None` for a batch.
        param_headers_of: Returns the arguments of a tool that header fields repeat.

    Raises:
        Refused: They differ.
    """
    if not isinstance(message, (jsonrpc.Request, jsonrpc.Notification)):
        return
    draft = facts.draft
    method = request.field(draft.method)
    name = request.field(draft.name)
    if method is None and name is None:
        return
    fields: list[tuple[str | None, str | None, Any]] = [(draft.method, method, message.method)]
    method_facts = facts.method(message.method)
    if method_facts.named_by is not None:
        params = _params(message)
        fields.append((draft.name, name, params.get(method_facts.named_by)))
        if method_facts.param_headers and draft.param_prefix is not None:
            param_headers = param_headers_of(str(params.get(method_facts.named_by)))
            for path, header in param_headers.items():
                field = f"{draft.param_prefix}{header}"
                value = request.field(field)
                fields.append((field, value, value_at(params.get("arguments"), path)))
    for field_name, value, expected in fields:
        if value is not None and not _agrees(value, expected):
            text = f"{field_name}: the header says {safe_repr(value, 80)}, "
            text += f"the body {safe_repr(expected, 80)}"
            identifier = message.id if isinstance(message, jsonrpc.Request) else UNSET
            assert draft.header_mismatch is not None  # as there are header fields
            status, code = facts.http.rejected, draft.header_mismatch
            raise Refused(refusal(status, text, code=code, id=identifier))


@dataclass(frozen=True)
class DraftSettings(HttpSettings):
    """Has the check of the draft in packages of revisions with it; a base of the settings."""

    draft_check = staticmethod(check_draft)


def _agrees(value: str, expected: Any) -> bool:
    try:
        return value == expected or header_values.equals_body_value(value, expected)
    except ValueError:
        return False


def _params(message: jsonrpc.Request | jsonrpc.Notification) -> Mapping[str, Any]:
    """Params as an object; empty for another type, since the body is refused later."""
    params: Mapping[str, Any] = {}
    if message.params is not None:
        with suppress(*UNREADABLE):
            params = _decode(message.params)
    return params
