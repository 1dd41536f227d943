"""What HTTP has to know of a message that leaves: its kind, its revision, what it is about.

The body is the truth, and the header fields repeat parts of it.

Source: basic/transports/streamable-http (2026-07-28: request metadata).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ..._wire import decoder, is_object
from ...channel import RequestId
from ...facts import Lifecycle, Revision, Revisions
from ...framing.http_headers import encode_value
from ...revision_facts import Facts

_ARGUMENTS = "arguments"

ParamHeaders: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, str]]
"""The fields that repeat arguments of a tool, encoded, given the tool's name and the arguments."""


class Outgoing(msgspec.Struct, frozen=True):
    """One message of ours, read as far as HTTP needs it.

    Attributes:
        body: The message.
        id: Its id; `None` for a notification.
        method: Its method; `None` for a response.
        params: Its params as they are written, if it has any.
        revision: The revision that it names itself, in `_meta`.
    """

    body: bytes
    id: RequestId | None
    method: str | None
    params: Raw | None
    revision: Revision | None

    @property
    def is_request(self) -> bool:
        """Whether it wants an answer."""
        return self.id is not None and self.method is not None

    @property
    def what(self) -> str:
        """What it is called in errors."""
        return self.method or "an answer"


class _Message(msgspec.Struct, gc=False):
    id: RequestId | None = None
    method: str | None = None
    params: Raw | UnsetType = UNSET


class _Meta(msgspec.Struct, gc=False):
    meta: dict[str, Raw] | UnsetType = msgspec.field(name="_meta", default=UNSET)


_decode_message = msgspec.json.Decoder(_Message).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_meta = msgspec.json.Decoder(_Meta).decode
_decode_name = decoder(str)
_decode_any = decoder(Any)


class OutgoingReader:
    """Reads the messages of a client that speaks `revisions`."""

    def __init__(self, revisions: Revisions) -> None:
        self._modern = revisions.of(Lifecycle.PER_REQUEST)
        self._key = self._modern.newest().facts.meta.protocol_version if self._modern else None

    def read(self, body: bytes) -> Outgoing:
        """Read one message of this side's own making."""
        message = _decode_message(body)
        params = None if isinstance(message.params, UnsetType) else message.params
        revision = None
        if self._key is not None and params is not None and b'"_meta"' in bytes(params):
            meta = _decode_meta(params).meta
            if not isinstance(meta, UnsetType) and self._key in meta:
                revision = self._modern.get(_decode_name(meta[self._key]))
        return Outgoing(body, message.id, message.method, params, revision)


def request_fields(
    message: Outgoing, facts: Facts, param_headers: ParamHeaders | None
) -> dict[str, str]:
    """The fields that repeat what a message is about, in revisions that have such.

    Raises:
        ProtocolError: An argument of a tool has no form in which a header could carry it.
    """
    headers = facts.headers
    fields: dict[str, str] = {}
    if headers.method is None or message.method is None:
        return fields
    fields[headers.method] = message.method
    stated = facts.method(message.method)
    if headers.name is None or stated.named_by is None or message.params is None:
        return fields
    params = _decode_members(message.params)
    named = _member(params, stated.named_by)
    if isinstance(named, str):
        fields[headers.name] = encode_value(named)
        if stated.param_headers and headers.param_prefix is not None and param_headers is not None:
            arguments = _member(params, _ARGUMENTS)
            if is_object(arguments):
                fields.update(param_headers(named, arguments))
    return fields


def _member(params: Mapping[str, Raw], name: str) -> Any:
    """A member of params; `None` if they do not have it."""
    return _decode_any(params[name]) if name in params else None
