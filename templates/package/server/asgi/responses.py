"""Whole HTTP answers: a status, some fields, a body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec
from msgspec import UNSET

from ...errors import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, MethodNotFoundError
from ...framing.http_headers import JSON
from ...protocol import jsonrpc

_NO_FIELDS: Mapping[str, str] = {}
_RETRY_AFTER: Mapping[str, str] = {"Retry-After": "1"}
_JSON_FIELD = (b"content-type", JSON.encode())


class Reply(msgspec.Struct, frozen=True):
    """One whole HTTP answer.

    Attributes:
        status: Its status.
        body: JSON, or nothing.
        fields: Header fields beyond type and length.
    """

    status: int
    body: bytes = b""
    fields: Mapping[str, str] = _NO_FIELDS

    async def send(
        self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]], *, more: bool = False
    ) -> None:
        """Send it through ASGI. A client that is gone gets nothing, and that is no error.

        Args:
            send: The way out.
            more: Whether the end of the response is to follow; the client has all of it already.
        """
        headers = [(b"content-length", b"%d" % len(self.body))]
        if self.body:
            headers.append(_JSON_FIELD)
        for name, value in self.fields.items():
            headers.append((name.lower().encode(), value.encode()))
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            body: dict[str, Any] = {"type": "http.response.body", "body": self.body}
            if more:
                body["more_body"] = True
            await send(body)
        except OSError:
            return


def refusal(
    status: int,
    text: str,
    *,
    code: int = INVALID_REQUEST,
    id: Any = UNSET,
    data: Any = UNSET,
    fields: Mapping[str, str] = _NO_FIELDS,
) -> Reply:
    """A refusal whose body is a JSON-RPC error.

    Args:
        status: The HTTP status.
        text: What was expected, what came, where.
        code: The JSON-RPC code.
        id: Id of the request that is refused; UNSET if it is not known.
        data: What goes into `error.data`, if anything.
        fields: Header fields beyond type and length.
    """
    more = {} if data is UNSET else {"data": data}
    return Reply(status, jsonrpc.encode_error(id, code, text, **more), fields)


ENDING = "the server is ending"
"""The error of requests that a server can't finish because it ends."""


def unavailable(text: str, *, id: Any = UNSET) -> Reply:
    """A refusal of what may be asked again, in a second or more."""
    return refusal(503, text, code=INTERNAL_ERROR, id=id, fields=_RETRY_AFTER)


def too_much(limit: str, *, id: Any = UNSET) -> Reply:
    """A refusal of what is over a limit, which is named as users set it."""
    return unavailable(f"too much at once; the limit is Limits.{limit}", id=id)


def not_allowed(methods: str) -> Reply:
    """A refusal of a method, with those that are served."""
    return refusal(405, f"expected {methods}", fields={"Allow": methods})


def malformed(message: jsonrpc.InvalidMessage) -> Reply:
    """A refusal of what is no message."""
    error = message.error
    shown: Any = UNSET if message.id is None else message.id
    return refusal(400, error.message, code=error.code, id=shown)


def unknown_method(message: jsonrpc.Request) -> Reply:
    """The answer to a request of a method that the revisions with sessions do not have.

    Gateways forward this answer. Of one with an error status, some tell their client nothing.
    """
    text = MethodNotFoundError(message.method).message
    return refusal(200, text, code=METHOD_NOT_FOUND, id=message.id)


def session_ended() -> Reply:
    """What is left to say of requests whose session ended while they were served.

    They may have been acted on. A client takes 404 as leave to send them again.
    """
    text = "the session ended before the answer was there"
    return refusal(503, text, code=INTERNAL_ERROR)


def no_session(status: int) -> Reply:
    """A refusal of what belongs to a session that has ended, or never was, with its HTTP status.

    Source: basic/transports#session-management (to 2025-11-25).
    """
    return refusal(status, "there is no such session, or not any more; initialize opens another")
