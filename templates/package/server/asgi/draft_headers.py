"""Header fields of a draft that never became a revision, where a client sends them in a session.

Clients of the revision itself send none of them. So none is asked for, and what a client does send
has to say what its message says.

Source: the draft between 2025-11-25 and 2026-07-28 (standard MCP request headers).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import UNSET

from ..._wire import UNREADABLE, decoder
from ...foreign_text import safe_repr
from ...framing import http_headers as http_fields
from ...protocol import jsonrpc
from ...protocol.param_headers import MarksOf, value_at
from ...revision_facts import Facts
from .request import Incoming
from .responses import Reply, refusal

_decode = decoder(dict[str, Any])


def check_draft(
    facts: Facts, incoming: Incoming, message: jsonrpc.Message | None, marks_of: MarksOf
) -> Reply | None:
    """What refuses a message for a header field that says something else; `None` if none does.

    Args:
        facts: What the revision of the session states: what the fields are called.
        incoming: The POST.
        message: What it brought; `None` for a batch.
        marks_of: Which arguments of a tool header fields repeat.

    Whoever follows the draft names the method, so a message without these fields costs nothing.
    """
    if not isinstance(message, (jsonrpc.Request, jsonrpc.Notification)):
        return None
    draft = facts.draft
    method = incoming.field(draft.method)
    name = incoming.field(draft.name)
    if method is None and name is None:
        return None
    fields: list[tuple[str | None, str | None, Any]] = [(draft.method, method, message.method)]
    stated = facts.method(message.method)
    if stated.named_by is not None:
        params = _params(message)
        fields.append((draft.name, name, params.get(stated.named_by)))
        if stated.param_headers and draft.param_prefix is not None:
            marks = marks_of(str(params.get(stated.named_by)))
            for path, mark in marks.items():
                field = f"{draft.param_prefix}{mark}"
                value = incoming.field(field)
                fields.append((field, value, value_at(params.get("arguments"), path)))
    for called, value, wanted in fields:
        if value is not None and not _says(value, wanted):
            text = f"{called}: the header says {safe_repr(value, 80)}, "
            text += f"the body {safe_repr(wanted, 80)}"
            identifier = message.id if isinstance(message, jsonrpc.Request) else UNSET
            return refusal(
                facts.http.rejected, text, code=draft.header_mismatch or 0, id=identifier
            )
    return None


def _says(value: str, wanted: Any) -> bool:
    try:
        return value == wanted or http_fields.says(value, wanted)
    except ValueError:
        return False


def _params(message: jsonrpc.Request | jsonrpc.Notification) -> Mapping[str, Any]:
    """Params as an object; empty if they are none, which the body is refused for."""
    params: Mapping[str, Any] = {}
    if message.params is not None:
        with suppress(*UNREADABLE):
            params = _decode(message.params)
    return params
