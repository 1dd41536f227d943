"""Operations as functions: an HTTP request from the arguments, and a result from its response.

The request goes to the base URL of the HTTP client, whatever the arguments are. No part of the
MCP request, such as its header fields, is passed on.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypedDict, Unpack
from urllib.parse import quote, urlencode

import anyio
import msgspec

from ..._wire import UNSET, encode, is_many, is_object
from ...data_uris import DataUri, from_base64, is_data_uri, read_data_uri
from ...errors import InternalError, InvalidParamsError, ResourceNotFoundError, ToolError
from ...foreign_text import safe_repr, safe_text
from ...framing.http_headers import media_type
from ...json_schema import WRAPPER
from ..toolkit.content import Audio, Contents, File, Image, ToolResult
from .operations import BodyMember, Operation, RequestBody
from .parameter_styles import (
    check_path_value,
    cookie_text,
    header_text,
    path_text,
    query_pairs,
    text_of,
)

HTTP_SECONDS = 30.0
"""Default seconds for a request with its whole response."""

RESPONSE_BYTES = 16 * 1024 * 1024
"""Most bytes of the body of a response."""

ERROR_CHARACTERS = 4000
"""Most characters of an error response that a model gets."""

_Part: TypeAlias = tuple[str, tuple[str | None, bytes, str | None]]
_logger = logging.getLogger(__name__)


class ClientResponse(Protocol):
    """The response of an HTTP client, such as httpx2, before its body is read."""

    @property
    def status_code(self) -> int:
        """The status."""
        ...

    @property
    def reason_phrase(self) -> str:
        """The reason phrase."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields, whatever the case of a name."""
        ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The body in parts, its content coding removed."""
        ...


class HttpClient(Protocol):
    """An HTTP client; `httpx2.AsyncClient` is one.

    Its header fields, query parameters, cookies and authentication are sent with each request.
    """

    @property
    def base_url(self) -> object:
        """The URL that paths are appended to."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields of each request."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """Query parameters of each request."""
        ...

    @property
    def cookies(self) -> Mapping[str, Any]:
        """Cookies of each request."""
        ...

    def stream(
        self,
        method: str,
        url: str,
        *,
        content: bytes | None = None,
        files: Sequence[_Part] | None = None,
        params: tuple[tuple[str, str], ...] | None = None,
        headers: Mapping[str, str] | None = None,
        cookies: dict[str, str] | None = None,
    ) -> AbstractAsyncContextManager[ClientResponse]:
        """Send a request; the context manager ends the response."""
        ...


@dataclass(frozen=True)
class _Response:
    """A response with its body."""

    status: int
    reason: str
    content_type: str
    body: bytes

    @property
    def kind(self) -> str:
        """The media type, in lower case."""
        return media_type(self.content_type)

    @property
    def is_json(self) -> bool:
        """Whether the media type is one of JSON."""
        return self.kind.endswith(("/json", "+json"))

    @property
    def is_text(self) -> bool:
        """Whether the body is JSON or another text."""
        texts = ("xml", "javascript", "yaml")
        return self.is_json or self.kind.startswith("text/") or self.kind.endswith(texts)

    def text(self) -> str:
        """The body as text in its character set, by default UTF-8."""
        charset = "utf-8"
        for parameter in self.content_type.split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                charset = value.strip().strip('"')
        try:
            return self.body.decode(charset, errors="replace")
        except (LookupError, ValueError):
            return self.body.decode(errors="replace")


@dataclass(frozen=True, kw_only=True)
class _Request:
    """An HTTP request."""

    path: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]
    cookies: dict[str, str]
    content: bytes | None
    files: list[_Part] | None


class OperationOptions(TypedDict):
    """Options of all calls of operations.

    Attributes:
        slashes: Whether values in the path may have slashes, percent-encoded.
        timeout: Seconds for a request with its whole response; `None` for no limit.
    """

    slashes: bool
    timeout: float | None


class OperationCaller:
    """Calls one operation.

    Args:
        operation: The operation.
        client: Returns the HTTP client.
        options: Options of all operations.
    """

    def __init__(
        self,
        operation: Operation,
        client: Callable[[], HttpClient],
        **options: Unpack[OperationOptions],
    ) -> None:
        self.operation = operation
        self.label = operation.route.label
        self._client = client
        self._slashes = options["slashes"]
        self._timeout = options["timeout"]

    async def answer(self, arguments: Mapping[str, Any]) -> _Response:
        """The response, with any status.

        Raises:
            ValueError: A value can't be sent.
            ToolError: There is no response, or it is too large.
        """
        client = self._client()
        request = self._request(arguments, client)
        body = bytearray()
        status, reason, content_type = 0, "", ""
        seconds = float("inf") if self._timeout is None else self._timeout
        try:
            with anyio.move_on_after(seconds) as scope:
                async with client.stream(
                    self.operation.route.method,
                    request.path,
                    content=request.content,
                    files=request.files,
                    params=request.query or None,
                    headers=request.headers,
                    cookies=request.cookies or None,
                ) as response:
                    status = response.status_code
                    async for part in response.aiter_bytes():
                        body += part
                        if len(body) > RESPONSE_BYTES:
                            break
                    content_type = response.headers.get("content-type") or ""
                    reason = response.reason_phrase
        except Exception as error:  # the errors of any HTTP client
            name = type(error).__name__  # its text may have a secret of the URL
            _logger.warning("%s: no response: %s", self.label, name)
            raise ToolError(f"{self.label}: no response ({name})") from error
        if scope.cancelled_caught:
            raise ToolError(f"{self.label}: no whole response within {seconds:g} s")
        if len(body) > RESPONSE_BYTES:
            raise ToolError(f"{self.label}: the response has more than {RESPONSE_BYTES} bytes")
        return _Response(status, reason, content_type, bytes(body))

    def failure(self, answer: _Response) -> str | None:
        """The error text of a response; `None` for a successful one."""
        if 200 <= answer.status < 300:
            return None
        text = answer.text() if answer.is_text else ""
        if len(text) > ERROR_CHARACTERS:
            text = f"{text[:ERROR_CHARACTERS]}... ({len(text)} characters)"
        head = f"{self.label}: HTTP {answer.status} {safe_text(answer.reason)}".rstrip()
        return f"{head}: {text}" if text.strip() else head

    def _request(self, arguments: Mapping[str, Any], client: HttpClient) -> _Request:
        parts = list(self.operation.parts)
        query: list[tuple[str, str]] = []
        headers: dict[str, str] = {}
        cookies: dict[str, str] = {}
        for parameter in self.operation.parameters:
            value = arguments.get(parameter.argument)
            if value is None and parameter.place != "path":
                continue
            if parameter.is_json:
                value = encode(value).decode()
            name, style, explode = parameter.name, parameter.style, parameter.explode
            try:
                match parameter.place:
                    case "path":
                        check_path_value(value, slashes=self._slashes)
                        text = path_text(name, value, style, explode)
                        parts[1::2] = [text if part == name else part for part in parts[1::2]]
                    case "query":
                        query += query_pairs(name, value, style, explode)
                    case "header":
                        headers[name] = header_text(value, explode)
                    case "cookie":
                        cookies[name] = cookie_text(value)
            except ValueError as error:
                raise ValueError(f"argument {parameter.argument!r}: {error}") from error
        if taken := {name for name, _ in query}.intersection(client.params):
            raise ValueError(f"the query parameter {safe_text(min(taken))!r} is the server's own")
        content, files = self._body(arguments, headers)
        if client.headers.get("accept", "*/*") == "*/*" and self.operation.output_schema:
            headers["Accept"] = "application/json, */*;q=0.5"
        return _Request(
            path="".join(parts),
            query=tuple(query),
            headers=headers,
            cookies=cookies,
            content=content,
            files=files,
        )

    def _body(
        self, arguments: Mapping[str, Any], headers: dict[str, str]
    ) -> tuple[bytes | None, list[_Part] | None]:
        """The body as bytes, or as parts of a multipart body; its type is set in the headers."""
        body = self.operation.body
        if body is None:
            return None, None
        if body.members is None:
            if body.argument not in arguments:
                return None, None
            headers["Content-Type"] = body.content_type
            return _encode_body(body, arguments[body.argument]), None
        members = [
            (member, arguments[argument])
            for argument, member in body.members.items()
            if argument in arguments
        ]
        if not members and not body.required:
            return None, None
        if body.kind == "multipart":
            return None, [part for member, value in members for part in _parts(member, value)]
        headers["Content-Type"] = body.content_type
        if body.kind == "form":
            pairs = [pair for member, value in members for pair in _form_pairs(member, value)]
            return urlencode(pairs).encode(), None
        return encode({member.name: value for member, value in members}), None


def _encode_body(body: RequestBody, value: Any) -> bytes:
    if body.kind == "json":
        return encode(value)
    return text_of(value).encode() if body.kind == "text" else _file(value).data


def _form_pairs(member: BodyMember, value: Any) -> list[tuple[str, str]]:
    if value is None:
        return []
    if member.style is None and is_object(value):
        return [(member.name, text_of(value))]
    return list(query_pairs(member.name, value, member.style or "form", member.explode))


def _parts(member: BodyMember, value: Any) -> list[_Part]:
    """The parts of a member of a multipart body: one, or one for each item of an array."""
    parts: list[_Part] = []
    for each in value if is_many(value) else [value]:
        if each is None:
            continue
        if member.is_file:
            file = _file(each)
            file_type = member.content_type or file.media_type
            parts.append((member.name, (member.name, file.data, file_type)))
        else:
            kind = member.content_type or ("application/json" if is_object(each) else None)
            parts.append((member.name, (None, text_of(each).encode(), kind)))
    return parts


def _file(value: Any) -> DataUri:
    """The file in an argument: Base64, or a `data:` URI, which has a media type."""
    match value:
        case str() if is_data_uri(value):
            return read_data_uri(value)
        case str():
            return DataUri("application/octet-stream", from_base64(value))
        case _:
            expected = "expected a file in Base64 or as a data: URI"
            raise ValueError(f"{expected}, got {safe_repr(value)}")


class OperationTool(OperationCaller):
    """An operation as the function of a tool."""

    async def __call__(self, /, **arguments: Any) -> ToolResult:
        """The response as a result of the tool.

        Raises:
            ToolError: A value can't be sent, or the response is not successful.
        """
        try:
            answer = await self.answer(arguments)
        except ValueError as error:
            raise ToolError(f"{self.label}: {error}") from error
        if failure := self.failure(answer):
            raise ToolError(failure)
        operation = self.operation
        value = self._json(answer)
        if value is not UNSET:
            text = answer.text() if answer.body else "null"
            if operation.output_schema is not None and operation.is_wrapped:
                return ToolResult(content=[text], structured={WRAPPER: value})
            is_structured = operation.output_schema is not None or is_object(value)
            return ToolResult(content=[text], structured=value if is_structured else UNSET)
        if not answer.body:
            return ToolResult(content=[f"HTTP {answer.status} {safe_text(answer.reason)}".rstrip()])
        return ToolResult(content=[self._block(answer)])

    def _json(self, answer: _Response) -> Any:
        """The decoded body; null for an empty one with an output schema; UNSET if not JSON."""
        if not answer.body:
            return UNSET if self.operation.output_schema is None else None
        if not answer.is_json:
            return UNSET
        try:
            return msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ToolError(f"{self.label}: the response is not JSON, though it says so") from None

    def _block(self, answer: _Response) -> Any:
        kind = answer.kind
        if answer.is_text:
            return answer.text()
        if kind.startswith("image/"):
            return Image(answer.body, kind)
        if kind.startswith("audio/"):
            return Audio(answer.body, kind)
        name = self.operation.route.operation_id or "response"
        return File(data=answer.body, mime_type=_mime_type(answer), name=name)


class OperationResource(OperationCaller):
    """An operation as the function of a resource, or of a resource template.

    Args:
        uri: Its URI or URI template.
        options: See `OperationCaller`.
    """

    def __init__(
        self,
        operation: Operation,
        client: Callable[[], HttpClient],
        uri: str,
        **options: Unpack[OperationOptions],
    ) -> None:
        super().__init__(operation, client, **options)
        self._uri = uri

    async def __call__(self, /, **values: Any) -> Contents:
        """The response as contents.

        Raises:
            InvalidParamsError: A value can't be sent.
            ResourceNotFoundError: HTTP 404 or 410.
            InternalError: Another unsuccessful response, or no response.
        """
        try:
            answer = await self.answer(values)
        except ValueError as error:
            raise InvalidParamsError(f"{self.label}: {error}") from error
        except ToolError as error:
            raise InternalError(str(error)) from error
        if answer.status in (404, 410):
            raise ResourceNotFoundError(self._expand_uri(values))
        if failure := self.failure(answer):
            raise InternalError(failure)
        mime_type = _mime_type(answer)
        if answer.is_text:
            return Contents(text=answer.text(), mime_type=mime_type)
        return Contents(blob=answer.body, mime_type=mime_type)

    def _expand_uri(self, values: Mapping[str, Any]) -> str:
        if not values:
            return self._uri
        library: Any = importlib.import_module("uritemplate")  # the template was made with it
        uri: str = library.expand(self._uri, dict(values))
        return uri


def _mime_type(answer: _Response) -> str:
    kind, slash, rest = answer.kind.partition("/")
    is_valid = kind and slash and rest and not any(char.isspace() for char in answer.kind)
    return answer.kind if is_valid else "application/octet-stream"


def resource_name(name: str) -> str:
    """A name as part of a URI."""
    return quote(name, safe="")
