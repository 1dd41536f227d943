"""The interface to an HTTP library, and the errors of this package for URLs and failures.

Clients use aiohttp on asyncio, since a call costs them 0.3 ms of CPU with aiohttp and 0.8 ms with
httpx2, with 32 calls at once 0.15 and 0.9 ms. They use httpx2 on trio, which aiohttp lacks, and for
the clients and authentications of httpx2 that users pass.

A library sends a request, reads the body of its response and closes it. Libraries follow no
redirects, keep no cookies, and have no time limit for a response: streams may be silent for long.
Their exceptions hide the reasons of the system or TLS behind vague texts; errors of this package
name the reasons.

Secrets in the logs of libraries are masked. At level DEBUG httpcore2 logs the header fields of
responses, which include the session id, before any code of this package sees them. httpx2 logs
URLs, and the endpoint of HTTP+SSE identifies a session.

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
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Protocol
from urllib.parse import urljoin, urlsplit, urlunsplit

import anyio

from ...channel import TooLong
from ...errors import ConnectFailedError, ResponseLostError
from ...foreign_text import safe_text

TakePart = Callable[[bytes], Awaitable[None]]
"""Called with one part of a body."""

Permits = Callable[[str], bool]
"""Whether a connection to an IP address is allowed."""

PART = 64 * 1024
"""Bytes of a body per read; decompressed parts may be larger."""

KEEP_ALIVE = 3.0
"""Seconds that an idle connection is kept. Many servers close idle connections after 5 seconds, and
a response is lost if a connection is closed while a request is on its way."""

PROBES = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Options of TCP keep-alive: seconds before the first probe, seconds between probes, and failed
probes until the connection breaks. A dropped connection of an event stream breaks in a minute."""

_PORTS = range(1, 65536)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Response(Protocol):
    """A response whose body has not been read. Implementations inherit from this class.

    Attributes:
        status: The status code.
        reason: The reason phrase; may be empty.
        url: The address of the request.
    """

    status: int
    reason: str
    url: str

    @abstractmethod
    def header(self, name: str) -> str | None:
        """A header field, with several values joined by commas; `None` if it is absent."""
        ...

    async def read(self, limit: int, silence: float, seconds: float) -> bytes:
        """Read the whole body, then close the response.

        Args:
            limit: Longest body accepted, in bytes.
            silence: Seconds for which the body may pause.
            seconds: Seconds for the whole body.

        Raises:
            FrameError: The body is over the limit.
            ResponseLostError: The connection broke, or a pause or the whole body took too long.
        """
        body = bytearray()
        end = anyio.current_time() + seconds

        async def take(part: bytes) -> None:
            scope.deadline = min(end, anyio.current_time() + silence)
            body.extend(part)
            if len(body) > limit:
                raise TooLong(limit).error()

        with anyio.CancelScope(deadline=min(end, anyio.current_time() + silence)) as scope:
            await self.each_part(take)
            return bytes(body)
        is_late = anyio.current_time() >= end
        reason = (
            f"took more than {seconds:g} s" if is_late else f"made no progress for {silence:g} s"
        )
        raise ResponseLostError(f"{format_url(self.url)}: the response body {reason}")

    @abstractmethod
    async def each_part(self, take: TakePart) -> None:
        """Pass the parts of the body to `take` as they arrive, then close the response.

        Raises:
            ResponseLostError: The connection broke.
        """
        ...

    @abstractmethod
    async def close(self) -> None:
        """Release the connection, or close it if the body is incomplete. Idempotent."""
        ...


class Library(Protocol):
    """An HTTP library.

    Attributes:
        codings: Content codings of a response that are accepted, as in `Accept-Encoding`.
    """

    codings: str

    async def send(
        self, method: str, url: str, fields: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Send a request, and return the response without its body.

        Raises:
            ConnectionClosedError: `close` was called.
            ConnectFailedError: There is no connection; nothing was sent.
            ResponseLostError: The connection broke before the head of the response arrived.
            LocalProtocolError: A header field can't be sent.
        """
        ...

    async def close(self) -> None:
        """Close all connections except those of a user's client. Idempotent."""
        ...


def probe_options() -> list[tuple[int, int]]:
    """The TCP options for keep-alive probes that the system supports, with their values."""
    names = [name for name in PROBES if hasattr(socket, name)]
    return [(getattr(socket, name), PROBES[name]) for name in names]


def format_url(url: str) -> str:
    """An address for an error text: shortened, without credentials, query and fragment."""
    try:
        scheme, netloc, path, _, _ = urlsplit(url)
    except ValueError:
        return safe_text(url.partition("?")[0].rpartition("@")[2])
    return safe_text(urlunsplit((scheme, netloc.rpartition("@")[2], path, "", "")))


def checked_url(text: str) -> str:
    """A valid URL without its fragment.

    Raises:
        ConnectFailedError: The text is not a URL with a host.
    """
    try:
        split = urlsplit(text)
        port, host = split.port, split.hostname
        if not text.isprintable():
            raise ValueError("it holds characters that are not printable")
    except (ValueError, TypeError) as error:
        raise ConnectFailedError("the server", f"not a URL: {safe_text(str(error))}") from None
    if not host:
        raise ConnectFailedError(format_url(text), "the URL names no host")
    if port is not None and port not in _PORTS:
        raise ConnectFailedError(format_url(text), f"expected a port from 1 to {_PORTS[-1]}")
    return urlunsplit(split._replace(fragment=""))


def join_urls(url: str, reference: str) -> str | None:
    """Resolve a reference relative to a URL; `None` if it is malformed."""
    try:
        return checked_url(urljoin(url, reference))
    except (ConnectFailedError, ValueError):
        return None


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    split = urlsplit(url)
    return split.scheme, split.hostname, split.port or _DEFAULT_PORTS.get(split.scheme)


def lost_response_error(url: str, error: Exception, reason: str = "") -> ResponseLostError:
    """The error for a broken connection."""
    return ResponseLostError(
        f"{format_url(url)}: the connection broke before the answer was there: "
        f"{reason or reason_of(error)}"
    )


def reason_of(error: Exception) -> str:
    """The reason for a failure; the text of the operating system or TLS if they caused it."""
    reasons = dict.fromkeys(_system_text(cause) for cause in _causes(error))
    return "; ".join(reasons) or safe_text(str(error)) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[OSError]:
    """The system's errors that caused an exception; several if several addresses were tried."""
    several: Iterable[BaseException] | None = getattr(error, "exceptions", None)  # of a group
    if several is not None:
        for each in several:
            yield from _causes(each)
    elif isinstance(error, OSError) and error.errno is not None:
        yield error
    elif error is not None:
        # "from None" replaces the exception in __context__; any other context is unrelated.
        replaced = error.__context__ if error.__suppress_context__ else None
        yield from _causes(error.__cause__ or replaced)


def _system_text(error: OSError) -> str:
    number = error.errno or 0
    if number in errno.errorcode and not isinstance(error, ssl.SSLError) and os.name == "posix":
        return os.strerror(number)  # elsewhere socket errors have no names
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
    """The secrets of one connection, masked in the logs of HTTP libraries until it is closed."""

    def __init__(self) -> None:
        self._own: list[str] = []
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_masking)

    def add(self, secret: str) -> None:
        """Mask a text."""
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
