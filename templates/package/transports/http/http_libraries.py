"""The interface to an HTTP library, and its URLs and failures in the errors of this package.

A library starts a request, reads its body and closes it. Libraries follow no redirects, keep no
cookies, and have no time limit for a response: streams may be silent for long. They wrap the
reasons that the system or TLS gives for a failure in exceptions with vague texts; errors of this
package have the reasons.

Their logs show no secrets. At level DEBUG httpcore2 logs the header fields of responses, which
include the session id, before any code of this package sees them. httpx2 logs URLs, and the
endpoint of HTTP+SSE identifies a session.

Source: RFC 9112, section 9; basic/transports (session management): the id of a session is handled
as a secret.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit, urlunsplit

import anyio

from ...channel import TooLong
from ...errors import ConnectFailedError, McpError, ResponseLostError
from ...foreign_text import safe_text

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

_PORTS = range(1, 65536)
_DEFAULT_PORTS = {"http": 80, "https": 443}


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

    async def read(self, limit: int, silence: float, seconds: float) -> bytes:
        """The whole body. The response is closed in the end.

        Args:
            limit: Longest body accepted, in bytes.
            silence: Seconds for which the body may pause.
            seconds: Seconds for the whole body, however steadily it comes.

        Raises:
            FrameError: The body is over the limit.
            ResponseLostError: The connection broke, or the body paused or took for too long.
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
        """Send a request. The result is the library's own response, without its body.

        Raises:
            ConnectionClosedError: `close` was called.
        """
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


async def read_parts(response: Response, limit: int, silence: float, seconds: float) -> bytes:
    """The whole body, read part by part; see `Response.read`."""
    body = bytearray()
    end = anyio.current_time() + seconds

    async def take(part: bytes) -> None:
        scope.deadline = min(end, anyio.current_time() + silence)
        body.extend(part)
        if len(body) > limit:
            raise too_long(limit)

    with anyio.CancelScope(deadline=min(end, anyio.current_time() + silence)) as scope:
        await response.each_part(take)
        return bytes(body)
    is_late = anyio.current_time() >= end
    reason = f"took more than {seconds:g} s" if is_late else f"made no progress for {silence:g} s"
    raise ResponseLostError(f"{shown(response.url)}: the response body {reason}")


def probe_options() -> list[tuple[int, int]]:
    """The options of TCP by which the system probes a connection, with their values."""
    names = [name for name in PROBES if hasattr(socket, name)]
    return [(getattr(socket, name), PROBES[name]) for name in names]


def shown(url: str) -> str:
    """An address for an error text: shortened, without credentials, query and fragment."""
    try:
        scheme, netloc, path, _, _ = urlsplit(url)
    except ValueError:
        return safe_text(url.partition("?")[0].rpartition("@")[2])
    return safe_text(urlunsplit((scheme, netloc.rpartition("@")[2], path, "", "")))


def checked_url(text: str) -> str:
    """An address, without its fragment.

    Raises:
        ConnectFailedError: The text is no address with a host.
    """
    try:
        split = urlsplit(text)
        port, host = split.port, split.hostname
        if not text.isprintable():
            raise ValueError("it holds characters that are not printable")
    except (ValueError, TypeError) as error:
        raise ConnectFailedError("the server", f"not a URL: {safe_text(str(error))}") from None
    if not host:
        raise ConnectFailedError(shown(text), "the URL names no host")
    if port is not None and port not in _PORTS:
        raise ConnectFailedError(shown(text), f"expected a port from 1 to {_PORTS[-1]}")
    return urlunsplit(split._replace(fragment=""))


def joined(url: str, reference: str) -> str | None:
    """The URL of a reference relative to another URL; `None` if malformed."""
    try:
        return checked_url(urljoin(url, reference))
    except (ConnectFailedError, ValueError):
        return None


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses have scheme, host and port in common."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    split = urlsplit(url)
    return split.scheme, split.hostname, split.port or _DEFAULT_PORTS.get(split.scheme)


def lost(url: str, error: Exception, reason: str = "") -> ResponseLostError:
    """The error for a connection that broke."""
    return ResponseLostError(
        f"{shown(url)}: the connection broke before the answer was there: "
        f"{reason or reason_of(error)}"
    )


def reason_of(error: Exception) -> str:
    """The reason for a failure, in the words of the operating system or TLS if they caused it."""
    reasons = dict.fromkeys(_words(cause) for cause in _causes(error))
    return "; ".join(reasons) or safe_text(str(error)) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[OSError]:
    """The system's errors below an exception; several where several addresses were tried."""
    several: Iterable[BaseException] | None = getattr(error, "exceptions", None)  # of a group
    if several is not None:
        for each in several:
            yield from _causes(each)
    elif isinstance(error, OSError) and error.errno is not None:
        yield error
    elif error is not None:
        # "from None" replaces the exception it came from; any other context is chance.
        replaced = error.__context__ if error.__suppress_context__ else None
        yield from _causes(error.__cause__ or replaced)


def _words(error: OSError) -> str:
    number = error.errno or 0
    if number in errno.errorcode and not isinstance(error, ssl.SSLError) and os.name == "posix":
        return os.strerror(number)  # elsewhere the numbers of sockets have no names
    return safe_text(error.strerror or str(error))


MASK = "***"

_LOGGERS = (
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
)


_SESSION = re.compile(r"""(session-id['"], b)(?:'[^']*'|"[^"]*")""", re.IGNORECASE)


class _Masking(logging.Filter):
    """Replaces secrets in the texts of log records."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        masked = _SESSION.sub(rf"\1'{MASK}'", text)
        for secret in self.secrets:
            masked = masked.replace(secret, MASK)
        if masked != text:
            record.msg, record.args = masked, ()
        return True


_masking = _Masking()


class Secrets:
    """The secrets of one connection, masked until the connection is closed."""

    def __init__(self) -> None:
        self._own: list[str] = []
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_masking)

    def add(self, secret: str) -> None:
        """Mask a text in the logs of HTTP libraries."""
        if secret and secret not in self._own:
            self._own.append(secret)
            _masking.secrets[secret] += 1

    def clear(self) -> None:
        """Stop masking: the connection is closed. Idempotent."""
        for secret in self._own:
            _masking.secrets[secret] -= 1
        self._own.clear()
        for secret in [secret for secret, uses in _masking.secrets.items() if uses <= 0]:
            del _masking.secrets[secret]
