"""JSON-RPC 2.0 envelopes: one message in or out, its params and result left as raw JSON.

What arrives is sorted into one of five kinds. A message that is none of them becomes a `Malformed`
that knows what the sender is to be told, if anything; nothing here raises on what a peer sent.

Source: basic/index (messages).
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._wire import UNREADABLE, encode
from ..channel import RequestId
from ..errors import NO_DATA, InvalidRequestError, ParseError, ProtocolError

JSONRPC = "2.0"
_BRACE = ord("{")


class Request(msgspec.Struct, frozen=True, gc=False):
    """A message that wants an answer."""

    id: RequestId
    method: str
    params: Raw | None


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A message that is never answered."""

    method: str
    params: Raw | None


class Result(msgspec.Struct, frozen=True, gc=False):
    """The answer to a request that succeeded."""

    id: RequestId
    result: Raw


class Failure(msgspec.Struct, frozen=True, gc=False):
    """The answer to a request that failed. Without an id it speaks of the connection."""

    id: RequestId | None
    code: int
    message: str
    data: Any


class Malformed(msgspec.Struct, frozen=True):
    """A message that breaks the rules of the envelope.

    Attributes:
        id: The id, as far as it could be read.
        error: What is wrong with it.
        answerable: Whether it looks like a request, and so gets an error as its answer.
        response: Whether it looks like a response: the call with that id has failed.
    """

    id: RequestId | None
    error: ProtocolError
    answerable: bool
    response: bool = False


Message: TypeAlias = Request | Notification | Result | Failure | Malformed


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: Any = UNSET
    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Error(msgspec.Struct, gc=False):
    code: int
    message: str = ""
    data: Any = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_error = msgspec.json.Decoder(_Error).decode
_check_syntax = msgspec.json.Decoder(Raw).decode


def parse(data: bytes | Raw) -> Message:
    """Sort one message; a JSON array is malformed (`parse_batch` takes those)."""
    try:
        envelope = _decode_envelope(data)
    except msgspec.ValidationError:
        return _no_object(data)
    except UNREADABLE as broken:
        return Malformed(None, ParseError(f"expected JSON: {broken}"), True)
    identifier = envelope.id
    readable = type(identifier) is int or type(identifier) is str
    if envelope.jsonrpc == JSONRPC and type(envelope.method) is str:
        params = None if envelope.params is UNSET else envelope.params
        if readable:
            return Request(identifier, envelope.method, params)
        if identifier is UNSET:
            return Notification(envelope.method, params)
    elif envelope.jsonrpc == JSONRPC and readable and envelope.method is UNSET:
        result, error = envelope.result, envelope.error
        if not isinstance(result, UnsetType) and error is UNSET:
            return _result(identifier, result)
        if not isinstance(error, UnsetType) and result is UNSET:
            return _failure(identifier, error)
    return _malformed(envelope, identifier if readable else None)


def is_batch(data: bytes) -> bool:
    """Whether the text is a JSON array, judged by its first byte that is not white space."""
    return data[:1] != b"{" and data[:16].lstrip(b" \t\r\n")[:1] == b"["


def parse_batch(data: bytes) -> list[Message]:
    """Sort the messages of a JSON array. An empty one is a single malformed message.

    Source: basic/index#batching (2025-03-26).
    """
    try:
        parts = _decode_list(data)
    except UNREADABLE as error:
        return [Malformed(None, ParseError(f"expected JSON: {error}"), True)]
    if not parts:
        return [Malformed(None, InvalidRequestError("expected messages, got an empty array"), True)]
    return [parse(part) for part in parts]


def _no_object(data: bytes | Raw) -> Malformed:
    """What is no object may be no JSON either: the decoder stops at the first sign of it."""
    try:
        _check_syntax(data)
    except UNREADABLE as broken:
        return Malformed(None, ParseError(f"expected JSON: {broken}"), True)
    return Malformed(None, InvalidRequestError("expected a JSON object as message"), True)


def _result(identifier: RequestId, result: Raw) -> Result | Malformed:
    if memoryview(result)[0] == _BRACE:
        return Result(identifier, result)
    error = InvalidRequestError("expected an object as result")
    return Malformed(identifier, error, False, response=True)


def _failure(identifier: RequestId | None, raw: Raw) -> Failure | Malformed:
    try:
        error = _decode_error(raw)
    except UNREADABLE as reason:
        return Malformed(
            identifier, InvalidRequestError(f"error object: {reason}"), False, response=True
        )
    return Failure(identifier, error.code, error.message, error.data)


def _malformed(envelope: _Envelope, identifier: RequestId | None) -> Message:
    """Say what is wrong with an envelope that is no message, most telling first."""
    has_method = envelope.method is not UNSET
    looks_like_response = not has_method and (
        envelope.result is not UNSET or envelope.error is not UNSET
    )
    if envelope.jsonrpc != JSONRPC:
        got = "nothing" if envelope.jsonrpc is UNSET else repr(envelope.jsonrpc)
        what = f"expected jsonrpc '2.0', got {got}"
    elif identifier is None and not has_method and not isinstance(envelope.error, UnsetType):
        return _failure(None, envelope.error)
    elif looks_like_response:
        what = "expected an id and exactly one of result and error"
    elif not has_method:
        what = "expected method, result or error"
    elif type(envelope.method) is not str:
        what = f"expected a string as method, got {type(envelope.method).__name__}"
    else:
        what = f"expected a string or an integer as id, got {envelope.id!r}"
    is_notification = has_method and envelope.id is UNSET
    answerable = not looks_like_response and not is_notification
    response = not has_method and identifier is not None
    return Malformed(identifier, InvalidRequestError(what), answerable, response)


class _RequestOut(msgspec.Struct, gc=False):
    id: RequestId
    method: str
    params: Any = UNSET
    jsonrpc: str = JSONRPC


class _NotificationOut(msgspec.Struct, gc=False):
    method: str
    params: Any = UNSET
    jsonrpc: str = JSONRPC


class _ResultOut(msgspec.Struct, gc=False):
    id: RequestId
    result: Any
    jsonrpc: str = JSONRPC


class _ErrorOut(msgspec.Struct, gc=False):
    code: int
    message: str
    data: Any = UNSET


class _FailureOut(msgspec.Struct, gc=False):
    error: _ErrorOut
    id: Any = UNSET
    jsonrpc: str = JSONRPC


_ANSWER = re.compile(rb'\{"(?:error"|id":(?:-?\d+|"(?:[^"\\]|\\.)*"),"result")')
_ERROR_CODE = re.compile(rb'\{"error":\{"code":(-?\d+)')


def is_answer(message: bytes) -> bool:
    """Whether one of the messages that are encoded here answers a request."""
    return _ANSWER.match(message) is not None


def is_notification(message: bytes) -> bool:
    """Whether one of the messages that are encoded here is a notification."""
    return message.startswith(b'{"method"')


def error_code(message: bytes) -> int | None:
    """The code of one of the errors that are encoded here; `None` for any other message."""
    found = _ERROR_CODE.match(message)
    return None if found is None else int(found[1])


def encode_request(identifier: RequestId, method: str, params: Any = UNSET) -> bytes:
    """A request; `params` is left out if UNSET."""
    return encode(_RequestOut(identifier, method, params))


def encode_notification(method: str, params: Any = UNSET) -> bytes:
    """A notification; `params` is left out if UNSET."""
    return encode(_NotificationOut(method, params))


def encode_result(identifier: RequestId, result: Any) -> bytes:
    """The answer to a request that succeeded; `result` has to encode as an object."""
    return encode(_ResultOut(identifier, result))


def encode_error(
    identifier: RequestId | UnsetType | None, code: int, message: str, data: Any = NO_DATA
) -> bytes:
    """The answer to a request that failed.

    Args:
        identifier: The request's id; where it could not be read, `None` for a null id or UNSET
            for none.
        code: JSON-RPC error code.
        message: One line.
        data: Left out unless given.
    """
    error = _ErrorOut(code, message, UNSET if data is NO_DATA else data)
    return encode(_FailureOut(error, identifier))
