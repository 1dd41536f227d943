"""HTTP requests on asyncio, by aiohttp, in place of httpx2: the feature `aiohttp`.

A call costs a client 0.3 ms of CPU time with aiohttp and 0.8 ms with httpx2, with 32 calls at once
0.15 and 0.9 ms. httpx2 is still used on trio, which aiohttp lacks, and for the clients and
authentications of httpx2 that users pass. aiohttp is an extra, imported when a channel is created.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found,no-any-return"
# mypy: allow-subclassing-any
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import anyio

from ...channel import TooLong
from ...errors import ConnectFailedError, ConnectionClosedError, McpError, MissingExtraError
from ...framing.http_hosts import format_url
from ...runtime.concurrency import AnyioEvent, event_type
from .http_library import (
    KEEP_ALIVE,
    PART,
    Httpx2Library,
    Library,
    Permits,
    Response,
    TakePart,
    check_proxy,
    lost_response_error,
    probe_options,
    reason_of,
)

if TYPE_CHECKING:
    import aiohttp

FRAMING_LIMIT = 64 * 1024
"""Most bytes of the head of a response, with preceding informational responses, and of the framing
of chunks in its body."""


def open_library(
    connect_timeout: float,
    silence: float,
    permits: Permits | None = None,
    *,
    client: Any = None,
    auth: Any = None,
) -> Library:
    """aiohttp on asyncio; httpx2 on trio and for objects of httpx2, with the same arguments."""
    if client is None and auth is None and event_type() is not AnyioEvent:
        return AiohttpLibrary(connect_timeout, silence, permits)
    return Httpx2Library(connect_timeout, silence, permits, client=client, auth=auth)


class AiohttpRequests:
    """Has the requests of a client made by `open_library`."""

    http_library: ClassVar[Callable[..., Any] | None] = staticmethod(open_library)


class AiohttpLibrary:
    """aiohttp, for asyncio.

    Args:
        connect_timeout: Seconds to open a connection.
        silence: Seconds for which sending a request body may pause.
        permits: Whether a connection to an address is allowed; `None` for any. Not used if the
            environment names a proxy.

    Attributes:
        failures: Exceptions for a broken connection.

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

    async def send(
        self, method: str, url: str, fields: Mapping[str, str], body: bytes | None
    ) -> Response:
        """See `Library.send`."""
        session = self._session or self._open_session()
        target = self._targets.get(url) or self._add_target(url)
        if target.fields:
            fields = {**fields, **target.fields}
        try:
            if body is not None and len(body) > PART:
                response = await self._send_large(session, method, target, fields, body)
            else:
                response = await session.request(
                    method, target.url, headers=fields, data=body, **target.options
                )
        except Exception as error:
            translated = self.error(error, url)
            if translated is None:
                raise
            raise translated from error
        return _AiohttpResponse(self, response, url)

    async def _send_large(
        self,
        session: aiohttp.ClientSession,
        method: str,
        target: _Target,
        fields: Mapping[str, str],
        body: bytes,
    ) -> aiohttp.ClientResponse:
        """Send a request in parts; the server has to accept each part within the time limit."""
        fields = {**fields, "Content-Length": str(len(body))}
        with anyio.CancelScope() as scope:
            parts = _Parts(body, scope, self._silence)
            return await session.request(
                method, target.url, headers=fields, data=parts, **target.options
            )
        raise TimeoutError(f"no more of the request was accepted within {self._silence:g} s")

    def error(self, error: Exception, url: str) -> McpError | None:
        """The error of this package for an error of aiohttp; `None` for other exceptions."""
        library = self._aiohttp
        match error:
            case library.ConnectionTimeoutError():
                return ConnectFailedError(
                    format_url(url), f"none within {self._connect_timeout:g} s"
                )
            case (
                library.ClientConnectorError()
                | library.ClientHttpProxyError()
                | library.InvalidURL()
                | library.ServerFingerprintMismatch()
            ):
                proxy = " (the environment names a proxy)" if self._proxy(url) else ""
                return ConnectFailedError(format_url(url), f"{reason_of(error)}{proxy}")
            case _:
                return lost_response_error(url, error) if isinstance(error, self.failures) else None

    async def close(self) -> None:
        """See `Library.close`."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        import asyncio

        if self._closed:
            raise ConnectionClosedError("the HTTP client is closed")
        library = self._aiohttp
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
            max_headers=FRAMING_LIMIT,  # the limit of bytes is lower
        )
        return self._session

    def _add_target(self, url: str) -> _Target:
        """Add the target of an address, with what the environment says of it."""
        split = urlsplit(url)
        options: dict[str, Any] = {"allow_redirects": False}
        try:
            if proxy := self._proxy(url):
                named = urlsplit(proxy)
                if named.scheme not in ("http", "https"):
                    raise ValueError(f"Unknown scheme {named.scheme!r} of a proxy")
                check_proxy(named)
                options["proxy"] = proxy
            if split.scheme == "https":
                options["ssl"] = _tls_context()
        except (OSError, ValueError) as error:
            reason = f"proxies and certificates of the environment: {reason_of(error)}"
            raise ConnectFailedError(format_url(url), reason) from error
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
    """An address without credentials, with arguments for aiohttp and header fields for it."""

    url: str
    options: dict[str, Any]
    fields: dict[str, str]


class _Parts:
    """The body of a large request, in parts. Each part restarts the time limit of the scope."""

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


class _AiohttpResponse(Response):
    """A response of aiohttp."""

    __slots__ = ("_library", "_response", "reason", "status", "url")

    def __init__(self, library: AiohttpLibrary, response: aiohttp.ClientResponse, url: str) -> None:
        self._library = library
        self._response = response
        self.status = response.status
        self.reason = response.reason or ""
        self.url = url

    def header(self, name: str) -> str | None:
        headers = self._response.headers
        return ", ".join(headers.getall(name)) if name in headers else None

    async def read(self, limit: int, silence: float, seconds: float) -> bytes:
        content = self._response.content
        if not content.is_eof():
            return await super().read(limit, silence, seconds)
        body = await content.readany()
        if len(body) > limit:
            raise TooLong(limit).error()
        return body

    async def each_part(self, take: TakePart) -> None:
        content = self._response.content
        try:
            while True:
                try:
                    part = await content.readany()
                except self._library.failures as error:
                    # aiohttp raises before the bytes that arrived before the failure are read.
                    rest = content._read_nowait(-1)  # pyright: ignore[reportPrivateUsage] - as said
                    if rest:
                        await take(rest)
                    raise lost_response_error(self.url, error) from error
                if not part:
                    return
                await take(part)
        finally:
            self._response.close()

    async def close(self) -> None:
        self._response.close()


@cache
def _bounded_handler() -> Any:
    """The protocol of aiohttp's connections, with a limit for bytes that are not part of a body.

    Each failure of a connection also ends the body that is being received: with aiohttp's own
    protocol, the reader of a body waits forever if the framing of chunks is invalid.
    """
    from aiohttp.client_exceptions import ClientPayloadError
    from aiohttp.client_proto import ResponseHandler

    class BoundedHandler(ResponseHandler):
        """Counts the received bytes since the request or the last part of a body."""

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

        def set_exception(self, exc: BaseException, *cause: Any, **causes: Any) -> None:
            super().set_exception(exc, *cause, **causes)
            body = self._body
            if body is not None and not body.is_eof() and body.exception() is None:
                body.set_exception(exc)

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
                self.transport.abort()

    return BoundedHandler


def _probed_socket(address: tuple[Any, ...], permits: Permits | None = None) -> socket.socket:
    family, kind, protocol, _, target = address
    if permits is not None and not permits(target[0]):
        raise PermissionError(errno.EACCES, "the address is private or reserved")
    raw = socket.socket(family, kind, protocol)
    try:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, seconds in probe_options():
            raw.setsockopt(socket.IPPROTO_TCP, option, seconds)
    except OSError:
        raw.close()
        raise
    return raw


def _tls_context() -> ssl.SSLContext:
    cafile, capath = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=cafile or None, capath=capath or None)
