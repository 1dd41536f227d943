"""The HTTP library of clients: httpx2, which runs on asyncio and trio.

A library sends a request, reads the body of its response and closes it. Libraries follow no
redirects, keep no cookies, and have no time limit for a response: streams may be silent for long.
Their exceptions hide the reasons of the system or TLS behind vague texts; errors of this package
name the reasons. httpx2 is an extra, imported when a channel is created. The feature `aiohttp` has
a second library for asyncio, which takes less CPU time for a call.

Secrets in logs are masked. At level DEBUG httpcore2 logs the header fields of responses, which
include the session id, before any code of this package sees them. httpx2 logs URLs, and the
endpoint of HTTP+SSE identifies a session.

Source: RFC 9112, section 9; basic/transports (session management): the id of a session is handled
as a secret.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found,no-any-return"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import re
import socket
import ssl
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

import anyio

from ...channel import TooLong
from ...errors import (
    ConnectFailedError,
    ConnectionClosedError,
    LocalProtocolError,
    McpError,
    MissingExtraError,
    ResponseLostError,
)
from ...foreign_text import safe_text
from ...framing.http_hosts import format_url

if TYPE_CHECKING:
    import httpx2

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

_CODINGS = ("gzip", "deflate")  # these expand at most a thousandfold; others have no bound


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


class Httpx2Library:
    """httpx2.

    Args:
        connect_timeout: Seconds to open a connection, for a created client.
        silence: Seconds for which sending a request body may pause, for a created client.
        permits: Whether a connection to an address is allowed, for a created client.
        client: A client of the user, which is not closed; `None` to create a client.
        auth: An authentication of httpx2; `None` for that of the client.

    Raises:
        MissingExtraError: httpx2 is not installed.
    """

    def __init__(
        self,
        connect_timeout: float,
        silence: float,
        permits: Permits | None = None,
        *,
        client: Any = None,
        auth: Any = None,
    ) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("a client over HTTP", "httpx2") from None
        self._httpx2 = httpx2
        self._client: httpx2.AsyncClient | None = client
        self._is_own = client is None
        self._closed = False
        self._permits = permits
        self._auth: Any = httpx2.USE_CLIENT_DEFAULT if auth is None else auth
        if client is None:
            self._timeout = httpx2.Timeout(
                connect=connect_timeout, read=None, write=silence, pool=None
            )
            self.codings = "identity"
        else:
            theirs = client.timeout
            self._timeout = httpx2.Timeout(
                connect=theirs.connect, read=None, write=theirs.write, pool=theirs.pool
            )
            self.codings = _bounded_codings(client.headers.get("accept-encoding", ""))

    async def send(
        self, method: str, url: str, fields: Mapping[str, str], body: bytes | None
    ) -> Response:
        """See `Library.send`."""
        client = self._client or self._open_client(url)
        try:
            request = client.build_request(
                method, url, headers=fields, content=body, timeout=self._timeout
            )
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"headers: {error}") from error
        request.headers["accept-encoding"] = self.codings
        try:
            response = await client.send(
                request, stream=True, auth=self._auth, follow_redirects=False
            )
        except Exception as error:
            translated = self.error(error, url)
            if translated is None:
                raise
            hides = isinstance(translated, LocalProtocolError)
            raise translated from (None if hides else error)
        return _Httpx2Response(self, response, url)

    def error(self, error: Exception, url: str) -> McpError | None:
        """The error of this package for an error of httpx2; `None` for other exceptions."""
        library = self._httpx2
        match error:
            case (
                library.ConnectError()
                | library.ConnectTimeout()
                | library.PoolTimeout()
                | library.ProxyError()
                | library.UnsupportedProtocol()
            ):
                url = _request_url(error, url)
                named = self._is_own and _has_proxy(urlsplit(url).scheme)
                proxy = " (the environment names a proxy)" if named else ""
                return ConnectFailedError(format_url(url), f"{self._reason(error)}{proxy}")
            case library.LocalProtocolError():
                # The library's text quotes the value, which may be a secret.
                return LocalProtocolError(f"{format_url(url)}: a header field can't be sent")
            case library.RequestError() | library.StreamError() | OSError() | ExceptionGroup():
                return lost_response_error(_request_url(error, url), error, self._reason(error))
            case _:
                return None

    async def close(self) -> None:
        """See `Library.close`."""
        self._closed = True
        client, self._client = self._client, None
        if self._is_own and client is not None:
            await client.aclose()

    def _open_client(self, url: str) -> httpx2.AsyncClient:
        """Create a client when the first request is sent: it reads certificates."""
        if self._closed:
            raise ConnectionClosedError("the HTTP client is closed")
        library = self._httpx2
        limits = library.Limits(
            max_connections=None, max_keepalive_connections=100, keepalive_expiry=KEEP_ALIVE
        )
        try:
            _check_environment_proxy(urlsplit(url).scheme)
            verify: Any = True
            if urlsplit(url).scheme == "http" and self._auth is library.USE_CLIENT_DEFAULT:
                verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not used: no TLS
            transport = None
            if not _has_proxy(urlsplit(url).scheme):  # with a transport, httpx2 ignores proxies
                watched = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
                watched += [(socket.IPPROTO_TCP, *option) for option in probe_options()]
                transport = library.AsyncHTTPTransport(
                    verify=verify, limits=limits, socket_options=watched
                )
                if self._permits is not None:
                    # httpx2 has no public way to pass a network backend to its pool.
                    pool: Any = transport._pool  # pyright: ignore[reportPrivateUsage] - see above
                    pool._network_backend = _CheckedBackend(pool._network_backend, self._permits)
            self._client = library.AsyncClient(
                timeout=self._timeout,
                limits=limits,
                transport=transport,
                verify=verify,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        except (ImportError, OSError, ValueError, library.InvalidURL) as error:
            reason = f"proxies and certificates of the environment: {reason_of(error)}"
            raise ConnectFailedError(format_url(url), reason) from error
        return self._client

    def _reason(self, error: Exception) -> str:
        """The reason for an error of httpx2, whose timeouts have no text."""
        library, timeout = self._httpx2, self._timeout
        match error:
            case library.ConnectTimeout():
                return f"none within {timeout.connect:g} s"
            case library.PoolTimeout():
                return f"the HTTP client had none free within {timeout.pool:g} s"
            case library.WriteTimeout():
                return f"no more of the request was accepted within {timeout.write:g} s"
            case _:
                return reason_of(error)


class _Httpx2Response(Response):
    """A response of httpx2."""

    def __init__(self, library: Httpx2Library, response: httpx2.Response, url: str) -> None:
        self._library = library
        self._response = response
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.url = url

    def header(self, name: str) -> str | None:
        return self._response.headers.get(name)

    async def each_part(self, take: TakePart) -> None:
        # An exception of `take` cancels the reading at its next wait for the network: the
        # generators of httpx2 can't be left before their end.
        failure: BaseException | None = None
        try:
            with anyio.CancelScope() as scope:
                async for part in self._response.aiter_bytes():
                    if failure is None:
                        try:
                            for start in range(0, len(part), PART):
                                await take(part[start : start + PART])
                        except BaseException as error:
                            failure = error
                            scope.cancel()
        except Exception as error:
            translated = self._library.error(error, self.url)
            if translated is None:
                raise
            raise translated from error
        finally:
            await self.close()
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # breaks the reference cycle of exception and frame

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._response.aclose()


class _CheckedBackend:
    """The network backend of a pool; connects to permitted addresses only.

    It connects to the address that it checked, so a host name that resolves to another address
    later cannot bypass the check.
    """

    def __init__(self, backend: Any, permits: Permits) -> None:
        self._backend = backend
        self._permits = permits

    async def connect_tcp(self, host: str, port: int, **options: Any) -> Any:
        """Connect to the first permitted address of a host that accepts the connection."""
        import httpcore2  # comes with httpx2

        try:
            addresses = await _addresses(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        refused = OSError(errno.EACCES, "the address is private or reserved")
        failure: Exception = httpcore2.ConnectError(str(refused))
        failure.__cause__ = refused
        for address in addresses:
            if self._permits(address):
                try:
                    return await self._backend.connect_tcp(address, port, **options)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                    failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait with the sleep of the backend."""
        await self._backend.sleep(seconds)


async def _addresses(host: str, port: int) -> list[str]:
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        resolved = await anyio.getaddrinfo(host, port)
        return list(dict.fromkeys(str(each[4][0]) for each in resolved))


def _has_proxy(scheme: str) -> bool:
    return not getproxies().keys().isdisjoint((scheme, "all"))


def _check_environment_proxy(scheme: str) -> None:
    proxies = getproxies()
    if address := proxies.get(scheme) or proxies.get("all"):
        check_proxy(urlsplit(address if "://" in address else f"//{address}"))


def check_proxy(proxy: SplitResult) -> None:
    """Refuse a proxy that the libraries take, and fail with only while they connect.

    Raises:
        ValueError: It has no host, or its port is no number from 1 to 65535.
    """
    if not proxy.hostname or proxy.port == 0:
        raise ValueError("a proxy needs a host and a port")


def _bounded_codings(codings: str) -> str:
    """The content codings that a client accepts and whose expansion is bounded."""
    names = [each.partition(";")[0].strip().lower() for each in codings.split(",")]
    return ", ".join(name for name in _CODINGS if name in names) or "identity"


def _request_url(error: Exception, url: str) -> str:
    """The address of the request that failed, which an authentication may have sent."""
    try:
        request: httpx2.Request | None = getattr(error, "request", None)
    except RuntimeError:  # an error of httpx2 without a request
        return url
    return url if request is None else str(request.url)


def probe_options() -> list[tuple[int, int]]:
    """The TCP options for keep-alive probes that the system supports, with their values."""
    return [(getattr(socket, name), PROBES[name]) for name in PROBES if hasattr(socket, name)]


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
    *(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy")),
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
    """The secrets of one connection, masked in the logs of httpx2 until it is closed."""

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
            if not _masking.secrets[secret]:
                del _masking.secrets[secret]
        self._own.clear()
