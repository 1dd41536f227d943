"""Reading a message of unknown kind: one call for a line, with typed params and results.

A message is an object of JSON-RPC 2.0. What it is follows from its members; the type of its params
follows from its method, and that of a result from the method of the request that it answers.

Source: basic/index (messages).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, overload

from ._decoding import convert, decoder
from ._unions import format_text, is_many, is_object
from ._wire import UNREADABLE, DecodeError, MethodRow, Raw, error_text

ID_CHARACTERS = 1024
"""Most characters of an id."""

BATCH_MESSAGES = 100
"""Most messages of a batch."""

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602

RequestId: TypeAlias = str | int
Result = TypeVar("Result")

_Answered: TypeAlias = MethodRow[Any, Any] | Mapping[RequestId, MethodRow[Any, Any]] | None

_LEAST, _MOST = -(2**128), 2**128  # far beyond any counter
_decode: Any = decoder(Any)


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        id: Its id.
        method: Its method.
        params: Its params, of the type of the method; decoded JSON if the revision does not have
            the method, `None` if there are none.
    """

    id: RequestId
    method: str
    params: Any = None


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification.

    Attributes:
        method: Its method.
        params: As those of a request.
    """

    method: str
    params: Any = None


@dataclass(frozen=True, slots=True)
class Response(Generic[Result]):
    """A success response.

    Attributes:
        id: The id of the request.
        result: The result, of the type of the request's method; decoded JSON if the caller named
            no method for the id.
    """

    id: RequestId
    result: Result


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error response.

    Attributes:
        id: The id of the request; `None` if its sender could not read it.
        code: The error code.
        message: The text.
        data: What else the sender says, decoded JSON.
    """

    id: RequestId | None
    code: int
    message: str
    data: Any = None


Message: TypeAlias = Request | Notification | Response[Result] | ErrorResponse


class MessageError(DecodeError):
    """A line is no message of the revision; the text says what was expected and what came.

    Attributes:
        id: The id of the message, if it could be read.
        method: The method of a request or notification, likewise.
        code: The code of JSON-RPC for the answer to a request.
    """

    def __init__(
        self, text: str, code: int, id: RequestId | None = None, method: str | None = None
    ) -> None:
        super().__init__(text)
        self.code = code
        self.id = id
        self.method = method


@dataclass(frozen=True)
class MessageReader:
    """Reads the messages of one revision.

    Attributes:
        requests: The methods of requests by name, of both sides.
        notifications: Those of notifications.
        batching: Whether a line may hold several messages, in an array.
    """

    requests: Mapping[str, MethodRow[Any, Any]]
    notifications: Mapping[str, MethodRow[Any, Any]]
    batching: bool = False

    @overload
    def read_message(self, line: bytes | Raw) -> Message[Any]: ...
    @overload
    def read_message(
        self, line: bytes | Raw, answered: MethodRow[Any, Result]
    ) -> Message[Result]: ...
    @overload
    def read_message(
        self, line: bytes | Raw, answered: Mapping[RequestId, MethodRow[Any, Any]]
    ) -> Message[Any]: ...
    def read_message(self, line: bytes | Raw, answered: Any = None) -> Message[Any]:
        """Read one message.

        Args:
            line: The JSON of the message.
            answered: The method of the request that a response answers, or the methods of pending
                requests by id; results of others are decoded JSON.

        Raises:
            MessageError: The line is not JSON, no message, or its params or result are malformed.
        """
        value = self._parse(line)
        if is_many(value):
            advice = "; read_messages reads a batch" if self.batching else ""
            raise MessageError(f"expected one message, got an array{advice}", INVALID_REQUEST)
        return self._message(value, answered)

    def read_messages(
        self, line: bytes | Raw, answered: Mapping[RequestId, MethodRow[Any, Any]] | None = None
    ) -> Sequence[Message[Any]]:
        """Read the messages of a line: those of a batch, or the only one.

        Raises:
            MessageError: As of `read_message`; an invalid message of a batch fails all of it.
        """
        value = self._parse(line)
        if not (self.batching and is_many(value)):
            return [self.read_message(line, answered or {})]
        if not 0 < len(value) <= BATCH_MESSAGES:
            text = f"expected 1 to {BATCH_MESSAGES} messages in a batch, got {len(value)}"
            raise MessageError(text, INVALID_REQUEST)
        return [self._message(each, answered) for each in value]

    def _parse(self, line: bytes | Raw) -> Any:
        try:
            return _decode(line)
        except UNREADABLE as error:
            raise MessageError(f"expected JSON: {error_text(error)}", PARSE_ERROR) from error

    def _message(self, value: Any, answered: _Answered) -> Message[Any]:
        if not is_object(value):
            raise MessageError(f"expected an object, got {_describe(value)}", INVALID_REQUEST)
        if value.get("jsonrpc") != "2.0":
            came = _describe(value.get("jsonrpc")) if "jsonrpc" in value else "none"
            raise _invalid(value, f'expected "jsonrpc": "2.0", got {came}')
        present = {name for name in ("method", "result", "error") if value.get(name) is not None}
        match [*present]:
            case ["method"]:
                return self._call(value)
            case ["result"]:
                return _response(value, answered)
            case ["error"]:
                return _error_response(value)
            case _:
                expected = "a request or notification with `method`, or a response with `result` or"
                came = " and ".join(f"`{name}`" for name in sorted(present)) or "none of them"
                raise _invalid(value, f"expected {expected} `error`, got {came}")

    def _call(self, value: Mapping[str, Any]) -> Request | Notification:
        name = value["method"]
        if not isinstance(name, str):
            raise _invalid(value, f"expected a text as `method`, got {_describe(name)}")
        if "id" not in value:
            return Notification(name, _params(value, self.notifications.get(name), None))
        identifier = _id(value)
        return Request(identifier, name, _params(value, self.requests.get(name), identifier))


def _params(
    value: Mapping[str, Any], row: MethodRow[Any, Any] | None, identifier: RequestId | None
) -> Any:
    method, params = value["method"], value.get("params")
    place = format_text(method)
    if params is not None and not is_object(params):
        text = f"{place}: expected an object as `params`, got {_describe(params)}"
        raise MessageError(text, INVALID_REQUEST, identifier, method)
    if params is None and row is not None and row.params_required:
        text = f"{place}: expected `params`, got none"
        raise MessageError(text, INVALID_PARAMS, identifier, method)
    if params is None or row is None or row.params is None:
        return params
    try:
        return convert(params, row.params)
    except UNREADABLE as error:
        text = f"{place}: params: {error_text(error)}"
        raise MessageError(text, INVALID_PARAMS, identifier, method) from error


def _response(value: Mapping[str, Any], answered: _Answered) -> Response[Any]:
    identifier, result = _id(value), value["result"]
    if not is_object(result):
        raise _invalid(value, f"expected an object as `result`, got {_describe(result)}")
    row = answered if isinstance(answered, MethodRow) else (answered or {}).get(identifier)
    if row is None:
        return Response(identifier, result)
    try:
        return Response(identifier, convert(result, row.result))
    except UNREADABLE as error:
        text = f"{row.name}: result: {error_text(error)}"
        raise MessageError(text, INVALID_REQUEST, identifier) from error


def _error_response(value: Mapping[str, Any]) -> ErrorResponse:
    error = value["error"]
    if not is_object(error):
        raise _invalid(value, f"expected an object as `error`, got {_describe(error)}")
    code, message = _whole(error.get("code")), error.get("message")
    if code is None or not isinstance(message, str):
        expected = "`error` with an integer `code` and a text `message`"
        came = f"{_describe(error.get('code'))} and {_describe(message)}"
        raise _invalid(value, f"expected {expected}, got {came}")
    identifier = None if value.get("id") is None else _id(value)
    return ErrorResponse(identifier, code, message, error.get("data"))


def _id(value: Mapping[str, Any]) -> RequestId:
    identifier = _read_id(value)
    if identifier is None:
        expected = f"an integer or a text of at most {ID_CHARACTERS} characters"
        came = _describe(value["id"]) if "id" in value else "none"
        raise _invalid(value, f"expected {expected} as `id`, got {came}")
    return identifier


def _read_id(value: Mapping[str, Any]) -> RequestId | None:
    identifier = value.get("id")
    if isinstance(identifier, str):
        return identifier if len(identifier) <= ID_CHARACTERS else None
    return _whole(identifier)


def _whole(number: Any) -> int | None:
    """An integer of at most 128 bits, which may be written as `1.0`; `None` for anything else."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return number if _LEAST <= number <= _MOST else None


def _invalid(value: Mapping[str, Any], text: str) -> MessageError:
    method = value.get("method")
    named = method if isinstance(method, str) else None
    return MessageError(text, INVALID_REQUEST, _read_id(value), named)


def _describe(value: Any) -> str:
    """A JSON value for an error: a text as it is, shortened, else its type."""
    match value:
        case str():
            return f'"{format_text(value)}"'
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case _:
            return "an array" if is_many(value) else "an object"
