"""The parts of a message that HTTP needs: id, method, params and revision; for a response, its id.

The body of a request is authoritative; header fields repeat parts of it.

Source: basic/transports, basic/index (messages); basic/transports/streamable-http (2026-07-28:
request metadata).
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
from ...protocol import jsonrpc
from ...revision_facts import Facts

ParamHeaders: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, str]]
"""Makes the encoded parameter headers for a tool's name and arguments."""


class Envelope(msgspec.Struct, frozen=True):
    """One outbound message.

    Attributes:
        body: The message.
        id: Its id; `None` for a notification.
        method: Its method; `None` for a response.
        params: Its params in JSON, if it has any.
        revision: The revision that its `_meta` names.
    """

    body: bytes
    id: RequestId | None
    method: str | None
    params: Raw | None
    revision: Revision | None

    @property
    def is_request(self) -> bool:
        """Whether a response is expected."""
        return self.id is not None and self.method is not None


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


class EnvelopeReader:
    """Reads the outbound messages of a client that offers `revisions`."""

    def __init__(self, revisions: Revisions) -> None:
        self._per_request = revisions.of(Lifecycle.PER_REQUEST)
        self._key = ""
        if self._per_request:
            self._key = self._per_request.newest().facts.meta.protocol_version or ""

    def read(self, body: bytes) -> Envelope:
        """Read one message of this side."""
        message = _decode_message(body)
        params = None if isinstance(message.params, UnsetType) else message.params
        revision = None
        if self._key and params is not None and b'"_meta"' in bytes(params):
            meta = _decode_meta(params).meta
            if not isinstance(meta, UnsetType) and self._key in meta:
                revision = self._per_request.get(_decode_name(meta[self._key]))
        return Envelope(body, message.id, message.method, params, revision)


def request_fields(
    message: Envelope, facts: Facts, param_headers: ParamHeaders | None
) -> dict[str, str]:
    """The header fields that repeat parts of a message, in revisions that have them.

    Raises:
        ProtocolError: An argument of a tool has no form that a header can carry.
    """
    headers = facts.headers
    fields: dict[str, str] = {}
    if headers.method is None or message.method is None:
        return fields
    fields[headers.method] = message.method
    method = facts.method(message.method)
    if headers.name is None or method.named_by is None or message.params is None:
        return fields
    params = _decode_members(message.params)
    name = _member(params, method.named_by)
    if isinstance(name, str):
        fields[headers.name] = encode_value(name)
        if method.param_headers and headers.param_prefix is not None and param_headers is not None:
            arguments = _member(params, "arguments")
            if is_object(arguments):
                fields.update(param_headers(name, arguments))
    return fields


def _member(params: Mapping[str, Raw], name: str) -> Any:
    return _decode_any(params[name]) if name in params else None


def results_in(data: bytes, batching: bool) -> dict[RequestId, bytes | None]:
    """The requests that an inbound message answers, or a batch where the revision has those.

    Returns:
        The result by id, in JSON; `None` for an error response and for a malformed response.
    """
    is_batch = batching and jsonrpc.is_batch(data)
    results: dict[RequestId, bytes | None] = {}
    for message in jsonrpc.parse_batch(data) if is_batch else [jsonrpc.parse(data)]:
        match message:
            case jsonrpc.Result(id=identifier, result=result):
                results[identifier] = bytes(result)
            case jsonrpc.Failure(id=str() | int() as identifier):
                results[identifier] = None
            case jsonrpc.InvalidMessage(id=str() | int() as identifier, response=True):
                results[identifier] = None
            case _:
                pass
    return results


def error_response_in(data: bytes) -> jsonrpc.Failure | None:
    """The error response that a body is, with or without id; `None` for any other body."""
    message = jsonrpc.parse(data) if data else None
    return message if isinstance(message, jsonrpc.Failure) else None
