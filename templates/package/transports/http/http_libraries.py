"""What an HTTP library does for a client: start a request, read its body, close.

Libraries follow no redirects, keep no cookies, and have no time limit for a response: streams may
be silent for long.

Source: RFC 9112, section 9.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import anyio

from ...errors import McpError, ResponseLostError
from ...framing.line_framing import TooLong
from .http_errors import shown

TakePart = Callable[[bytes], Awaitable[None]]
"""Takes one part of a body."""

Permits = Callable[[str], bool]
"""Whether a connection may be made to an IP address."""

PART = 64 * 1024
"""Bytes of a body that are read at once; decompressed parts may be larger."""

KEEP_ALIVE = 3.0
"""Seconds that an idle connection is kept. Many servers close theirs after 5 seconds, and a
response is lost if that happens while a request is on its way."""

PROBES = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""When the system probes a silent connection, how often, and how many times in vain, where these
can be set. A stream of events whose connection was dropped on the way breaks within a minute."""


class Response(Protocol):
    """A response whose body has not been read.

    Attributes:
        status: The status code.
        reason: The reason phrase; may be empty.
        url: The address of the request.
    """

    status: int
    reason: str
    url: str

    def header(self, name: str) -> str | None:
        """A header field, several values joined by commas; `None` if there is none."""
        ...

    async def read(self, limit: int, silence: float) -> bytes:
        """The whole body. The response is closed in the end.

        Args:
            limit: Longest body accepted, in bytes.
            silence: Seconds for which the body may pause.

        Raises:
            FrameError: The body is over the limit.
            ResponseLostError: The connection broke, or the body paused for too long.
        """
        ...

    async def each_part(self, take: TakePart) -> None:
        """Pass the parts of the body to `take` as they come, and close the response in the end.

        Raises:
            ResponseLostError: The connection broke.
        """
        ...

    async def close(self) -> None:
        """Release the connection, or close it if the body is unfinished. Idempotent."""
        ...


class Library(Protocol):
    """An HTTP library.

    Attributes:
        codings: Content codings of a response that are accepted, as in `Accept-Encoding`.
    """

    codings: str

    def send(
        self, method: str, url: str, fields: Mapping[str, str], body: bytes | None
    ) -> Awaitable[Any]:
        """Send a request. The result is the library's own response, without its body."""
        ...

    def response(self, response: Any, url: str) -> Response:
        """Wrap a response of the library."""
        ...

    def error(self, error: Exception, url: str) -> McpError | None:
        """The error of this package for one of the library; `None` for any other exception."""
        ...

    async def close(self) -> None:
        """Close all connections of our own. Idempotent."""
        ...


def too_long(limit: int) -> McpError:
    """The error for a body that is over the limit."""
    return TooLong(limit).error()


async def read_parts(response: Response, limit: int, silence: float) -> bytes:
    """The whole body, read part by part; see `Response.read`."""
    body = bytearray()

    async def take(part: bytes) -> None:
        scope.deadline = anyio.current_time() + silence
        body.extend(part)
        if len(body) > limit:
            raise too_long(limit)

    with anyio.CancelScope(deadline=anyio.current_time() + silence) as scope:
        await response.each_part(take)
        return bytes(body)
    text = f"{shown(response.url)}: the response body made no progress for {silence:g} s"
    raise ResponseLostError(text)


def probe_options() -> list[tuple[int, int]]:
    """The options of TCP by which the system probes a connection, with their values."""
    names = [name for name in PROBES if hasattr(socket, name)]
    return [(getattr(socket, name), PROBES[name]) for name in names]
