"""The HTTP libraries behind one small protocol: start a request, read its body, close.

aiohttp makes the requests on asyncio. httpx2 makes them on trio, and wherever the user hands in a
client or an authentication of httpx2. Both are extras, imported when a channel is made. Neither
follows redirects, keeps cookies, or has a time limit for a response: streams may be silent for
long.

Source: RFC 9112, section 9.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import anyio

from ...errors import (
    ConnectFailedError,
    LocalProtocolError,
    McpError,
    MissingExtraError,
    ResponseLostError,
)
from ...framing.line_framing import TooLong
from .http_errors import lost, reason_of, shown

if TYPE_CHECKING:
    import aiohttp
    import httpx2

TakePart = Callable[[bytes], Awaitable[None]]
"""Takes one part of a body."""

Permits = Callable[[str], bool]
"""Whether a connection may be made to an IP address."""

PART = 64 * 1024
"""Bytes of a body that are read at once; decompressed parts may be larger."""

FRAMING_LIMIT = 64 * 1024
"""Bytes of the head of a response, with the informational responses before it, and of what frames
the chunks of its body."""

KEEP_ALIVE = 3.0
"""Seconds that an idle connection is kept. Many servers close theirs after 5 seconds, and a
response is lost if that happens while a request is on its way."""

PROBES = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""When the system probes a silent connection, how often, and how many times in vain, where these
can be set. A stream of events whose connection was dropped on the way breaks within a minute."""

_CODINGS = ("gzip", "deflate")  # they expand to a thousand times at most; others have no bound


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


def on_asyncio() -> bool:
    """Whether the current task is one of asyncio."""
    if "asyncio" not in sys.modules:
        return False
    import asyncio

    try:
        return asyncio.current_task() is not None  # trio may run as a guest of asyncio
    except RuntimeError:
        return False


def too_long(limit: int) -> McpError:
    """The error for a body that is over the limit."""
    return TooLong(limit).error()


async def _read_parts(response: Response, limit: int, silence: float) -> bytes:
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


def probe(raw: socket.socket) -> None:
    """Have the system watch a connection."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in _probe_options():
        raw.setsockopt(socket.IPPROTO_TCP, option, seconds)


def _probe_options() -> list[tuple[int, int]]:
    names = [name for name in PROBES if hasattr(socket, name)]
    return [(getattr(socket, name), PROBES[name]) for name in names]


class AiohttpLibrary:
    """aiohttp, for asyncio.

    Args:
        connect_timeout: Seconds to make a connection.
        silence: Seconds for which sending a request body may pause.
        permits: Whether a connection may be made to an address; `None` for any. Not asked where the
            environment names a proxy.

    Attributes:
        failures: Exceptions of a connection that breaks.

    Raises:
        MissingExtraError: aiohttp is not installed.
    """

    codings = "identity"

    def __init__(
        self,
        connect_timeout: float,
        silence: float,
        permits: Permits | None = None,
    ) -> None:
        try:
            import aiohttp
            from aiohttp.http_exceptions import HttpProcessingError
        except ImportError:
            raise MissingExtraError("a client over HTTP", "aiohttp") from None
        self._aiohttp = aiohttp
        self.failures = (aiohttp.ClientError, HttpProcessingError, OSError)
        self._connect_timeout = connect_timeout
        self._silence = silence
        self._proxies = getproxies()
        self._permits = None if self._proxies else permits
        self._targets: dict[str, _Target] = {}
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    def send(
        self, method: str, url: str, fields: Mapping[str, str], body: bytes | None
    ) -> Awaitable[aiohttp.ClientResponse]:
        """See `Library.send`."""
        session = self._session or self._open_session()
        target = self._targets.get(url) or self._add_target(url)
        if target.fields:
            fields = {**fields, **target.fields}
        if body is not None and len(body) > PART:
            return self._send_large(session, method, target, fields, body)
        return session.request(method, target.url, headers=fields, data=body, **target.options)

    async def _send_large(
        self,
        session: aiohttp.ClientSession,
        method: str,
        target: _Target,
        fields: Mapping[str, str],
        body: bytes,
    ) -> aiohttp.ClientResponse:
        """Send a request in parts, each of which the server has to accept within a time."""
        fields = {**fields, "Content-Length": str(len(body))}
        with anyio.CancelScope() as scope:
            parts = _Parts(body, scope, self._silence)
            return await session.request(
                method, target.url, headers=fields, data=parts, **target.options
            )
        raise TimeoutError(f"no more of the request was accepted within {self._silence:g} s")

    def response(self, response: aiohttp.ClientResponse, url: str) -> Response:
        """See `Library.response`."""
        return _AiohttpResponse(self, response, url)

    def error(self, error: Exception, url: str) -> McpError | None:
        """See `Library.error`."""
        library = self._aiohttp
        match error:
            case library.ConnectionTimeoutError():
                return ConnectFailedError(shown(url), f"none within {self._connect_timeout:g} s")
            case (
                library.ClientConnectorError()
                | library.ClientHttpProxyError()
                | library.InvalidURL()
                | library.ServerFingerprintMismatch()
            ):
                proxy = " (the environment names a proxy)" if self._proxy(url) else ""
                return ConnectFailedError(shown(url), f"{reason_of(error)}{proxy}")
            case _:
                return lost(url, error) if isinstance(error, self.failures) else None

    async def close(self) -> None:
        """See `Library.close`."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        import asyncio

        library = self._aiohttp
        if self._closed:
            raise library.ClientConnectionError("the HTTP client is closed")
        connector = library.TCPConnector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE,
            socket_factory=partial(_probed_socket, permits=self._permits),
        )
        # aiohttp has no limit for informational responses, blank lines and chunk extensions, and no
        # public way to set the protocol of its connections.
        factory = partial(_bounded_handler(), loop=asyncio.get_running_loop())
        connector._factory = factory  # pyright: ignore[reportPrivateUsage] - see above
        self._session = library.ClientSession(
            connector=connector,
            cookie_jar=library.DummyCookieJar(),
            timeout=library.ClientTimeout(total=None, connect=self._connect_timeout),
            auto_decompress=False,
            skip_auto_headers=("Accept", "User-Agent", "Content-Type"),
            headers={"Accept-Encoding": self.codings},
            read_bufsize=PART,
            max_line_size=FRAMING_LIMIT,
            max_field_size=FRAMING_LIMIT,
            max_headers=FRAMING_LIMIT,  # their bytes are limited all the same
        )
        return self._session

    def _add_target(self, url: str) -> _Target:
        """The options of all requests to an address.

        Raises:
            ConnectFailedError: The environment names certificates that can't be read, or a proxy
                that can't be used.
        """
        split = urlsplit(url)
        options: dict[str, Any] = {"allow_redirects": False}
        try:
            if proxy := self._proxy(url):
                named = urlsplit(proxy)
                if named.scheme not in ("http", "https"):
                    raise ValueError(f"Unknown scheme {named.scheme!r} of a proxy")
                if not named.hostname or named.port == 0:
                    raise ValueError("a proxy needs a host and a port")
                options["proxy"] = proxy
            if split.scheme == "https":
                options["ssl"] = _tls_context()
        except (OSError, ValueError) as error:
            reason = f"proxies and certificates of the environment: {reason_of(error)}"
            raise ConnectFailedError(shown(url), reason) from error
        fields: dict[str, str] = {}
        if split.username is not None or split.password is not None:
            user, password = unquote(split.username or ""), unquote(split.password or "")
            fields["Authorization"] = self._aiohttp.encode_basic_auth(user, password)
            split = split._replace(netloc=split.netloc.rpartition("@")[2])
        self._targets[url] = target = _Target(urlunsplit(split), options, fields)
        return target

    def _proxy(self, url: str) -> str | None:
        """The proxy that the environment names for an address."""
        if not self._proxies:
            return None
        split = urlsplit(url)
        if split.hostname is None or proxy_bypass(split.hostname):
            return None
        return self._proxies.get(split.scheme) or self._proxies.get("all")


class _Target(NamedTuple):
    """An address, with what requests to it have in common.

    Attributes:
        url: The address without credentials.
        options: Arguments for aiohttp.
        fields: Header fields.
    """

    url: str
    options: dict[str, Any]
    fields: dict[str, str]


class _Parts:
    """The body of a large request, in parts. Each restarts the time limit of its scope."""

    def __init__(self, body: bytes, scope: anyio.CancelScope, silence: float) -> None:
        self._body = memoryview(body)
        self._scope = scope
        self._silence = silence

    def __aiter__(self) -> _Parts:
        return self

    async def __anext__(self) -> bytes:
        part, self._body = self._body[:PART], self._body[PART:]
        if not part:
            self._scope.deadline = float("inf")
            raise StopAsyncIteration
        self._scope.deadline = anyio.current_time() + self._silence
        return bytes(part)


class _AiohttpResponse:
    """A response of aiohttp."""

    __slots__ = ("_library", "_response", "reason", "status", "url")

    def __init__(self, library: AiohttpLibrary, response: aiohttp.ClientResponse, url: str) -> None:
        self._library = library
        self._response = response
        self.status = response.status
        self.reason = response.reason or ""
        self.url = url

    def header(self, name: str) -> str | None:
        """See `Response.header`."""
        headers = self._response.headers
        return ", ".join(headers.getall(name)) if name in headers else None

    async def read(self, limit: int, silence: float) -> bytes:
        """See `Response.read`."""
        content = self._response.content
        if content.is_eof():
            body = await content.readany()
            if len(body) > limit:
                raise too_long(limit)
            return body
        return await _read_parts(self, limit, silence)

    async def each_part(self, take: TakePart) -> None:
        """See `Response.each_part`."""
        content = self._response.content
        try:
            while True:
                try:
                    part = await content.readany()
                except self._library.failures as error:
                    # aiohttp raises before what came ahead of the failure has been read.
                    rest = content._read_nowait(-1)  # pyright: ignore[reportPrivateUsage] - as said
                    if rest:
                        await take(rest)
                    raise lost(self.url, error) from error
                if not part:
                    return
                await take(part)
        finally:
            self._response.close()

    async def close(self) -> None:
        """See `Response.close`."""
        self._response.close()


@cache
def _bounded_handler() -> Any:
    """The protocol of aiohttp's connections, with a limit for bytes that are not part of a body."""
    from aiohttp.client_exceptions import ClientPayloadError
    from aiohttp.client_proto import ResponseHandler

    class BoundedHandler(ResponseHandler):
        """Counts the bytes since the request or the last part of a body."""

        _framing = 0
        _received = 0
        _body: Any = None

        def set_response_params(self, **params: Any) -> None:
            self._framing = self._received = 0
            self._body = None
            super().set_response_params(**params)

        def feed_data(self, data: Any, size: int = 0) -> None:
            message, body = data
            if message.code >= 200:
                self._body = body
            super().feed_data(data, size)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            body = self._body
            if body is not None and body.total_bytes != self._received:
                self._framing, self._received = 0, body.total_bytes
                return
            self._framing += len(data)
            if self._framing > FRAMING_LIMIT and self.transport is not None:
                failure = ClientPayloadError(f"more than {FRAMING_LIMIT} bytes came without a body")
                self.set_exception(failure)
                if body is not None:
                    body.set_exception(failure)
                self.transport.abort()

    return BoundedHandler


def _probed_socket(address: tuple[Any, ...], permits: Permits | None = None) -> socket.socket:
    family, kind, protocol, _, target = address
    if permits is not None and not permits(target[0]):
        raise PermissionError(errno.EACCES, "the address is private or reserved")
    raw = socket.socket(family, kind, protocol)
    try:
        probe(raw)
    except OSError:
        raw.close()
        raise
    return raw


def _tls_context() -> ssl.SSLContext:
    cafile, capath = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=cafile or None, capath=capath or None)


class Httpx2Library:
    """httpx2, for trio and for what the user hands in.

    Args:
        client: A client of the user, which is not closed; `None` to make one.
        auth: An authentication of httpx2; `None` for that of the client.
        connect_timeout: Seconds to make a connection, for a client of our own.
        silence: Seconds for which sending a request body may pause, likewise.
        permits: As for aiohttp, for a client of our own.

    Raises:
        MissingExtraError: httpx2 is not installed.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient | None,
        auth: httpx2.Auth | None,
        connect_timeout: float,
        silence: float,
        permits: Permits | None = None,
    ) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("a client over HTTP", "httpx2") from None
        self._httpx2 = httpx2
        self._client = client
        self._is_own = client is None
        self._permits = permits
        self._auth: Any = httpx2.USE_CLIENT_DEFAULT if auth is None else auth
        if client is None:
            self._timeout = httpx2.Timeout(
                connect=connect_timeout, read=None, write=silence, pool=None
            )
            self.codings = "identity"
        else:
            given = client.timeout
            self._timeout = httpx2.Timeout(
                connect=given.connect, read=None, write=given.write, pool=given.pool
            )
            self.codings = _bounded_codings(client.headers.get("accept-encoding", ""))

    def send(
        self, method: str, url: str, fields: Mapping[str, str], body: bytes | None
    ) -> Awaitable[httpx2.Response]:
        """See `Library.send`."""
        client = self._client or self._open_client(url)
        try:
            request = client.build_request(
                method, url, headers=fields, content=body, timeout=self._timeout
            )
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"headers: {error}") from error
        request.headers["accept-encoding"] = self.codings
        return client.send(request, stream=True, auth=self._auth, follow_redirects=False)

    def response(self, response: httpx2.Response, url: str) -> Response:
        """See `Library.response`."""
        return _Httpx2Response(self, response, url)

    def error(self, error: Exception, url: str) -> McpError | None:
        """See `Library.error`."""
        library = self._httpx2
        match error:
            case (
                library.ConnectError()
                | library.ConnectTimeout()
                | library.PoolTimeout()
                | library.ProxyError()
                | library.UnsupportedProtocol()
            ):
                url = _requested(error, url)
                named = self._is_own and has_proxy(urlsplit(url).scheme)
                proxy = " (the environment names a proxy)" if named else ""
                return ConnectFailedError(shown(url), f"{self._reason(error)}{proxy}")
            case library.LocalProtocolError():
                # The library's text has the value, which may be a secret.
                return LocalProtocolError(f"{shown(url)}: a header field can't be sent")
            case library.RequestError() | library.StreamError() | OSError() | ExceptionGroup():
                return lost(_requested(error, url), error, self._reason(error))
            case _:
                return None

    async def close(self) -> None:
        """See `Library.close`."""
        if self._is_own and self._client is not None:
            await self._client.aclose()

    def _open_client(self, url: str) -> httpx2.AsyncClient:
        """A client of our own. It reads certificates, so it is made when the first request is sent.

        Raises:
            ConnectFailedError: The environment names certificates or a proxy that can't be used.
        """
        library = self._httpx2
        limits = library.Limits(
            max_connections=None, max_keepalive_connections=100, keepalive_expiry=KEEP_ALIVE
        )
        try:
            verify: Any = True
            if urlsplit(url).scheme == "http" and self._auth is library.USE_CLIENT_DEFAULT:
                verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody: TLS is not used
            transport = None
            if not has_proxy(urlsplit(url).scheme):  # with a transport, httpx2 ignores proxies
                watched = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
                watched += [(socket.IPPROTO_TCP, *option) for option in _probe_options()]
                transport = library.AsyncHTTPTransport(
                    verify=verify, limits=limits, socket_options=watched
                )
                if self._permits is not None:
                    from .checked_connections import check_connections

                    check_connections(transport, self._permits)
            self._client = library.AsyncClient(
                timeout=self._timeout,
                limits=limits,
                transport=transport,
                verify=verify,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        except (ImportError, OSError, ValueError, library.InvalidURL) as error:
            reason = f"proxies and certificates of the environment: {reason_of(error)}"
            raise ConnectFailedError(shown(url), reason) from error
        return self._client

    def _reason(self, error: Exception) -> str:
        """Why httpx2 failed. Its timeouts have no text."""
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


class _Httpx2Response:
    """A response of httpx2."""

    def __init__(self, library: Httpx2Library, response: httpx2.Response, url: str) -> None:
        self._library = library
        self._response = response
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.url = url

    def header(self, name: str) -> str | None:
        """See `Response.header`."""
        return self._response.headers.get(name)

    async def read(self, limit: int, silence: float) -> bytes:
        """See `Response.read`."""
        return await _read_parts(self, limit, silence)

    async def each_part(self, take: TakePart) -> None:
        """See `Response.each_part`.

        An exception of `take` cancels the reading at its next wait for the network: the generators
        of httpx2 can't be left half way.
        """
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
                del failure  # a frame that holds the exception that holds the frame

    async def close(self) -> None:
        """See `Response.close`."""
        with anyio.CancelScope(shield=True):
            await self._response.aclose()


def has_proxy(scheme: str) -> bool:
    """Whether the environment names a proxy for a scheme."""
    return not getproxies().keys().isdisjoint((scheme, "all"))


def _bounded_codings(codings: str) -> str:
    """The content codings that a client accepts and that can't fill our memory."""
    names = [each.partition(";")[0].strip().lower() for each in codings.split(",")]
    return ", ".join(name for name in _CODINGS if name in names) or "identity"


def _requested(error: Exception, url: str) -> str:
    """The address of the request that failed: an authentication may send some of its own."""
    try:
        request: httpx2.Request | None = getattr(error, "request", None)
    except RuntimeError:  # an error of httpx2 without a request
        return url
    return url if request is None else str(request.url)
