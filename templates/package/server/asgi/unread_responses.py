"""Counts the bytes of long responses that clients have not read yet.

An ASGI server accepts any number of bytes in one message, and waits before it accepts the next one
until most of them are read. So a long body is passed on in short pieces, and its request ends when
the server accepts an empty message after the last piece. Until then the whole body counts.

Source: ASGI specification 3.0 (Response Body).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Hashable, MutableMapping
from typing import Any

import anyio

from ...errors import ConnectionClosedError
from ...runtime.request_context import PRINCIPAL
from .body import SHORT_BODY
from .request import HttpRequest, Send, network_of


class UnreadResponses:
    """The bytes of responses and events of more than 64 KiB that clients have not read yet.

    Args:
        limit: Bytes from which new requests are refused; half of them for those of one principal,
            or of one network without authentication.
        seconds: Seconds that a client may leave a piece of a response unread.

    Attributes:
        size: The bytes.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self.size = 0
        self._limit = limit
        self._seconds = seconds
        self._clients = Counter[Hashable]()

    def has_room(self, request: HttpRequest) -> bool:
        """Whether a request may be served: neither all clients nor its own have too much unread."""
        if 2 * self.size < self._limit:
            return True
        return self.size < self._limit and 2 * self._clients[_client_of(request)] < self._limit

    def send(
        self, request: HttpRequest, send: Send, message: MutableMapping[str, Any]
    ) -> Awaitable[None]:
        """Send an ASGI message of the response to a request, and count a long body until then.

        Args:
            request: The request.
            send: The ASGI send callable.
            message: The message.
        """
        body: bytes = message.get("body", b"")
        if len(body) <= SHORT_BODY:
            return send(message)
        return self._send_long(_client_of(request), body, message, send)

    async def _send_long(
        self, client: Hashable, body: bytes, message: MutableMapping[str, Any], send: Send
    ) -> None:
        self.size += len(body)
        self._clients[client] += len(body)
        try:
            for start in range(0, len(body), SHORT_BODY):
                piece = body[start : start + SHORT_BODY]
                await self._send_piece({**message, "body": piece, "more_body": True}, send)
            await self._send_piece({**message, "body": b""}, send)
        finally:
            self.size -= len(body)
            self._clients[client] -= len(body)
            if not self._clients[client]:
                del self._clients[client]

    async def _send_piece(self, message: MutableMapping[str, Any], send: Send) -> None:
        with anyio.move_on_after(self._seconds):
            await send(message)
            return
        raise ConnectionClosedError(
            f"the client read nothing for {self._seconds:g} s (Limits.send_seconds)"
        )


def _client_of(request: HttpRequest) -> Hashable:
    principal = PRINCIPAL.get()
    return network_of(request.client) if principal.is_anonymous else principal.identity
