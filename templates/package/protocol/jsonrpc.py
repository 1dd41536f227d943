"""JSON-RPC 2.0 messages: parsing and encoding, with params and results as raw JSON.

A received message has one of five types; a malformed message is an `InvalidMessage` with the error
for its sender. Parsing never raises.

Source: basic/index (messages).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .._structs import encode_finite, is_null
from .._wire import (
    UNREADABLE,
    UNWRITABLE,
    decoder,
    encode,
    error_text,
)
from ..channel import RequestId
from ..errors import (
    NO_DATA,
    InvalidRequestError,
    LocalProtocolError,
    ParseError,
    ProtocolError,
)
from ..foreign_text import safe_repr

JSONRPC = "2.0"

ID_CHARACTERS = 1024
"""Most characters of an id or a progress token, which are stored and sent back."""

BROKEN_BYTES = 1024 * 1024
"""Longest message that is not JSON, in bytes, whose id is looked for."""

_BRACE = ord("{")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# What is replaced to read the envelope of a message that is not JSON.
_PLAIN = b" " * 32 + bytes(range(32, 127)) + b"?" * 129
_ESCAPE = re.compile(rb"\\.")
_HALF_PAIR = re.compile(  # msgspec calls it truncated, or whatever comes behind it wrong
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)
_NO_NUMBER = re.compile(rb"(?:NaN|-?Infinity)(?=\s*[,\]}])")
_N = ord("n")  # the first byte of null
_LEAST, _MOST = -(2**128), 2**128  # far beyond any counter


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request."""

    id: RequestId
    method: str
    params: Raw | None


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A notification."""

    method: str
    params: Raw | None


class Result(msgspec.Struct, frozen=True, gc=False):
    """A success response."""

    id: RequestId
    result: Raw


class Failure(msgspec.Struct, frozen=True, gc=False):
    """An error response; without an id it is about the connection."""

    id: RequestId | None
    code: int
    message: str
    data: Any


class InvalidMessage(msgspec.Struct, frozen=True):
    """A message that is not valid JSON-RPC.

    Attributes:
        id: The id, if it could be read.
        error: The error.
        answerable: Whether the message looks like a request, which gets an error response.
        response: Whether the message looks like a response; the request with its id fails then. A
            message that nobody can read may be either.
    """

    id: RequestId | None
    error: ProtocolError
    answerable: bool
    response: bool = False


Message: TypeAlias = Request | Notification | Result | Failure | InvalidMessage

ParseBatch: TypeAlias = Callable[[bytes], Sequence[Message] | None]
"""Parses the messages of a batch; `None` for data that are no batch."""


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: Any = UNSET
    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Error(msgspec.Struct, gc=False):
    code: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    message: str = ""
    data: Any = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_error = decoder(_Error)
_check_syntax = msgspec.json.Decoder(Raw).decode


def parse(data: bytes | Raw) -> Message:
    """Parse one message; a JSON array is an invalid message (see `batch_parsing`)."""
    try:
        envelope = _decode_envelope(data)
    except msgspec.ValidationError:
        return _explain_non_object(data)
    except UNREADABLE as broken:
        if data[:3] == _BYTE_ORDER_MARK != data[3:6]:
            return parse(data[3:])
        return _explain_non_json(bytes(data), error_text(broken))
    return _message(envelope) or _message(_without_null(envelope)) or _explain_malformed(envelope)


def _message(envelope: _Envelope) -> Message | None:
    """The message in an envelope; `None` if its members fit no kind of message."""
    identifier = _whole(envelope.id) if type(envelope.id) is float else envelope.id
    readable = (type(identifier) is int and _LEAST <= identifier <= _MOST) or (
        type(identifier) is str and len(identifier) <= ID_CHARACTERS
    )
    if envelope.jsonrpc == JSONRPC and type(envelope.method) is str:
        raw = envelope.params
        params = None if isinstance(raw, UnsetType) or memoryview(raw)[0] == _N else raw
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
    return None


def _without_null(envelope: _Envelope) -> _Envelope:
    """An envelope in which members that are null, but for the id, are absent."""
    raw = {"result": envelope.result, "error": envelope.error}
    absent: dict[str, Any] = {
        name: UNSET
        for name, value in raw.items()
        if not isinstance(value, UnsetType) and is_null(value)
    }
    if envelope.method is None:
        absent["method"] = UNSET
    return msgspec.structs.replace(envelope, **absent) if absent else envelope


def _whole(number: float) -> Any:
    """Convert a number such as `1.0` to an integer; return any other number unchanged."""
    return int(number) if number.is_integer() else number


def read_id(value: object) -> RequestId | None:
    """An id or a progress token: an integer up to 128 bits, such as `1` or `1.0`, or a short text.

    `None` for anything else.
    """
    if type(value) is float:
        value = _whole(value)
    if type(value) is int:
        return value if _LEAST <= value <= _MOST else None
    return value if type(value) is str and len(value) <= ID_CHARACTERS else None


def is_batch(data: bytes) -> bool:
    """Whether the first byte that is not white space begins a JSON array (within 16 bytes)."""
    return data[:1] != b"{" and data[:16].lstrip(b" \t\r\n")[:1] == b"["


class ParsedMessage(bytes):
    """The bytes of a message that its transport has parsed, with the parsed messages.

    Attributes:
        messages: The message, or the messages of a batch.
        is_batch: Whether the bytes are a batch.
    """

    messages: Sequence[Message]
    is_batch: bool

    @classmethod
    def of(cls, data: bytes, parse_batch: ParseBatch | None = None) -> ParsedMessage:
        """Parse a message; or a batch, if the revision has a function for it."""
        parsed = cls(data)
        batch = None if parse_batch is None else parse_batch(data)
        parsed.is_batch = batch is not None
        parsed.messages = (parse(data),) if batch is None else batch
        return parsed

    def results(self) -> dict[RequestId, bytes | None]:
        """The results of the responses, by the ids of the requests.

        Returns:
            The JSON of each result; `None` for an error response or an invalid response.
        """
        results: dict[RequestId, bytes | None] = {}
        for message in self.messages:
            match message:
                case Result(id=identifier, result=result):
                    results[identifier] = bytes(result)
                case Failure(id=str() | int() as identifier):
                    results[identifier] = None
                case InvalidMessage(id=str() | int() as identifier, response=True):
                    results[identifier] = None
                case _:
                    pass
        return results

    @property
    def has_response(self) -> bool:
        """Whether a message is a response, or is invalid and may be one."""
        return not all(isinstance(each, Request | Notification) for each in self.messages)

    def error_response(self) -> Failure | None:
        """The first message if it is an error response, with or without id; `None` otherwise."""
        message = self.messages[0]
        return message if isinstance(message, Failure) else None


def _explain_non_json(data: bytes, why: str) -> InvalidMessage:
    """The error for a message that is not JSON, with its id if the envelope can be read.

    A peer waits for the response to its request also if a text of the response has half a surrogate
    pair, a control character, a wrong escape or bytes that are no UTF-8, or if a number is `NaN`.
    These are replaced, to read the envelope and nothing else.
    """
    try:
        envelope = _decode_envelope(_plain_text(data) if len(data) <= BROKEN_BYTES else b"")
    except UNREADABLE:
        is_message = b'"jsonrpc"' in data and data.lstrip()[:1] == b"{"
        error = ParseError(f"expected JSON: {why}")
        return InvalidMessage(None, error, True, response=is_message)
    if b"\\u" in data and _HALF_PAIR.search(data):
        why = "half a surrogate pair in a text"
    identifier = read_id(envelope.id)
    if type(identifier) is str and f'"{identifier}"'.encode() not in data:
        identifier = None  # it was among what was replaced
    is_response = type(envelope.method) is not str and not (
        envelope.result is UNSET and envelope.error is UNSET
    )
    error = ParseError(f"expected JSON: {why}")
    return InvalidMessage(identifier, error, not is_response, response=is_response)


def _plain_text(data: bytes) -> bytes:
    """A message without what is no JSON within texts and numbers; every text may have changed."""
    plain = data.translate(_PLAIN)
    if b"\\" in plain:
        plain = _ESCAPE.sub(b"_", plain)
    if b"NaN" in plain or b"Infinity" in plain:
        plain = _NO_NUMBER.sub(b"null", plain)
    return plain


def _explain_non_object(data: bytes | Raw) -> InvalidMessage:
    """The error for a message that is not a JSON object."""
    try:
        _check_syntax(data)
    except UNREADABLE as broken:
        return InvalidMessage(None, ParseError(f"expected JSON: {error_text(broken)}"), True)
    return InvalidMessage(None, InvalidRequestError("expected a JSON object as message"), True)


def _result(identifier: RequestId, result: Raw) -> Result | InvalidMessage:
    if memoryview(result)[0] == _BRACE:
        return Result(identifier, result)
    error = InvalidRequestError("expected an object as result")
    return InvalidMessage(identifier, error, False, response=True)


def _failure(identifier: RequestId | None, raw: Raw) -> Failure | InvalidMessage:
    try:
        failure = _decode_error(raw)
    except UNREADABLE as reason:
        error = InvalidRequestError(f"error object: {error_text(reason)}")
        return InvalidMessage(identifier, error, False, response=True)
    return Failure(identifier, failure.code, failure.message, failure.data)


def _explain_malformed(envelope: _Envelope) -> Message:
    """The message for a malformed envelope: invalid, or an error response without an id."""
    identifier = read_id(envelope.id)
    has_method = envelope.method is not UNSET
    looks_like_response = not has_method and (
        envelope.result is not UNSET or envelope.error is not UNSET
    )
    if envelope.jsonrpc != JSONRPC:
        got = "nothing" if envelope.jsonrpc is UNSET else safe_repr(envelope.jsonrpc)
        text = f"expected jsonrpc '2.0', got {got}"
    elif identifier is None and not has_method and not isinstance(envelope.error, UnsetType):
        return _failure(None, envelope.error)
    elif looks_like_response:
        text = "expected an id and exactly one of result and error"
    elif not has_method:
        text = "expected method, result or error"
    elif type(envelope.method) is not str:
        text = f"expected a string as method, got {type(envelope.method).__name__}"
    elif type(envelope.id) is str:
        text = f"expected at most {ID_CHARACTERS} characters as id, got {safe_repr(envelope.id)}"
    elif type(envelope.id) is int:
        text = f"expected at most 128 bits as id, got {safe_repr(envelope.id)}"
    else:
        text = f"expected a string or an integer as id, got {safe_repr(envelope.id)}"
    is_notification = has_method and envelope.id is UNSET
    answerable = not looks_like_response and not is_notification
    response = looks_like_response or (not has_method and identifier is not None)
    return InvalidMessage(identifier, InvalidRequestError(text), answerable, response)


class _RequestOut(msgspec.Struct, gc=False):
    id: RequestId
    method: str
    params: Any = UNSET
    jsonrpc: str = JSONRPC


class _NotificationOut(msgspec.Struct, gc=False):
    method: str
    params: Any = UNSET
    jsonrpc: str = JSONRPC


class ResultOut(msgspec.Struct, gc=False):
    """A success response to encode."""

    result: Any
    id: RequestId
    jsonrpc: str = JSONRPC


class _ErrorOut(msgspec.Struct, gc=False):
    code: int
    message: str
    data: Any = UNSET


class _FailureOut(msgspec.Struct, gc=False):
    error: _ErrorOut
    id: Any = UNSET
    jsonrpc: str = JSONRPC


def encode_request(identifier: RequestId, method: str, params: Any = UNSET) -> bytes:
    """Encode a request; `params` is left out if UNSET.

    Raises:
        UNWRITABLE: The params have no JSON form.
    """
    return encode_finite(_RequestOut(identifier, method, params))


def encode_notification(method: str, params: Any = UNSET) -> bytes:
    """Encode a notification; `params` is left out if UNSET.

    Raises:
        LocalProtocolError: The params have no JSON form.
    """
    try:
        return encode_finite(_NotificationOut(method, params))
    except UNWRITABLE as error:
        text = f"{method}: params: no JSON form: {error_text(error)}"
        raise LocalProtocolError(text) from error


def encode_error(
    identifier: RequestId | UnsetType | None, code: int, message: str, data: Any = NO_DATA
) -> bytes:
    """Encode an error response.

    Args:
        identifier: The request's id. If it is unknown: `None` to send null, UNSET to send no id.
        code: JSON-RPC error code.
        message: One line.
        data: JSON value; `NO_DATA` to send none.

    Raises:
        EncodingError: The data, or the message, has no JSON form.
    """
    error = _ErrorOut(code, message, UNSET if data is NO_DATA else data)
    return encode(_FailureOut(error, identifier))
