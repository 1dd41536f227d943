"""Complete HTTP responses, and refusals whose body is a JSON-RPC error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from ...errors import (
    INTERNAL_ERROR,
    INTERRUPTED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_DATA,
    NOT_BEGUN,
    MethodNotFoundError,
)
from ...framing.http_headers import JSON
from ...protocol import jsonrpc

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SHUTTING_DOWN = "the server is ending; the request may have been acted on"
"""The error of requests that a server can't finish because it shuts down."""

_NO_HEADERS: Mapping[str, str] = {}
_RETRY_AFTER: Mapping[str, str] = {"Retry-After": "1"}
CLOSE: Mapping[str, str] = {"Connection": "close"}
JSON_TYPE = (b"content-type", JSON.encode())


class HttpResponse(msgspec.Struct, frozen=True):
    """One complete HTTP response.

    Attributes:
        status: The status code.
        body: JSON, or empty.
        headers: Header fields beyond type and length.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = _NO_HEADERS

    async def send(self, send: Send, *, more: bool = False) -> None:
        """Send the response through ASGI. Errors of a disconnected client are ignored.

        Args:
            send: The ASGI send callable.
            more: Whether the caller ends the response later; the body is complete.
        """
        body = self.body
        headers = [(b"content-length", b"%d" % len(body))]
        if body:
            headers.append(JSON_TYPE)
        for name, value in self.headers.items():
            headers.append((name.lower().encode(), value.encode()))
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": more})
        except OSError:
            return


class Refused(Exception):
    """A request is not served; `AsgiApplication` sends the response.

    Args:
        response: The response.
        body: How much of the request's body was read.
    """

    def __init__(
        self,
        response: HttpResponse,
        body: Literal["read", "partly read", "unread"] = "read",
    ) -> None:
        super().__init__(response.status)
        self.response = response
        self.body = body


def refusal(
    status: int,
    text: str,
    *,
    code: int = INVALID_REQUEST,
    id: Any = UNSET,
    headers: Mapping[str, str] = _NO_HEADERS,
    data: Any = NO_DATA,
) -> HttpResponse:
    """A refusal whose body is a JSON-RPC error.

    Args:
        status: The HTTP status.
        text: The message of the error: expected and received values, and their place.
        code: The JSON-RPC code.
        id: Id of the refused request; UNSET if unknown.
        headers: Header fields beyond type and length.
        data: `error.data`; left out if omitted.
    """
    return HttpResponse(status, jsonrpc.encode_error(id, code, text, data), headers)


def unavailable(text: str, *, id: Any = UNSET) -> HttpResponse:
    """A refusal of a request that was not begun, and may be sent again after a second."""
    text = f"{text}; the request was not begun"
    return refusal(503, text, code=INTERNAL_ERROR, id=id, headers=_RETRY_AFTER, data=NOT_BEGUN)


def ending() -> HttpResponse:
    """A refusal of a request because the server shuts down; another process may serve it."""
    return unavailable("the server is ending")


def over_limit(limit: str, *, id: Any = UNSET) -> HttpResponse:
    """A refusal of a request that exceeds a field of `Limits`."""
    return unavailable(f"too much at once; the limit is Limits.{limit}", id=id)


def not_allowed(methods: str) -> HttpResponse:
    """A refusal of an HTTP method, with the methods that are allowed."""
    return refusal(405, f"expected {methods}", headers={"Allow": methods})


def invalid_message(message: jsonrpc.InvalidMessage) -> HttpResponse:
    """A refusal of a body that is not a JSON-RPC message."""
    error = message.error
    identifier: Any = UNSET if message.id is None else message.id
    return refusal(400, error.message, code=error.code, id=identifier)


def unknown_method(message: jsonrpc.Request) -> HttpResponse:
    """The response to a method that the revisions with sessions do not have.

    The status is 200: some gateways do not forward the body of an HTTP error to their client.
    """
    text = MethodNotFoundError(message.method).message
    return refusal(200, text, code=METHOD_NOT_FOUND, id=message.id)


def session_ended() -> HttpResponse:
    """The response to requests whose session ended while they were served.

    The status is not 404: clients take 404 as permission to send the requests again, but the server
    may have acted on them.
    """
    text = "the session ended before the answer was there; the request may have been acted on"
    return refusal(503, text, code=INTERNAL_ERROR, data=INTERRUPTED)


def unknown_session(status: int) -> HttpResponse:
    """A refusal of a message for a session that has ended or never existed.

    Source: basic/transports#session-management (to 2025-11-25).
    """
    return refusal(status, "there is no such session, or not any more; initialize opens another")
