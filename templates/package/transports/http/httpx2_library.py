"""HTTP requests on trio, by httpx2.

httpx2 is also used if the user passes a client or an authentication of httpx2; `http_libraries` has
the reason for two libraries. It is an extra, imported when a channel is created.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found,no-any-return"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import anyio

from ...errors import (
    ConnectFailedError,
    ConnectionClosedError,
    LocalProtocolError,
    McpError,
    MissingExtraError,
)
from .http_libraries import (
    KEEP_ALIVE,
    PART,
    Permits,
    Response,
    TakePart,
    format_url,
    lost_response_error,
    probe_options,
    reason_of,
)

if TYPE_CHECKING:
    import httpx2

_CODINGS = ("gzip", "deflate")  # these expand at most a thousandfold; others have no bound


class Httpx2Library:
    """httpx2, for trio and for objects of httpx2 that the user passes.

    Args:
        client: A client of the user, which is not closed; `None` to create a client.
        auth: An authentication of httpx2; `None` for that of the client.
        connect_timeout: Seconds to open a connection, for a created client.
        silence: Seconds for which sending a request body may pause, for a created client.
        permits: Whether a connection to an address is allowed, for a created client.

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
                    _check_connections(transport, self._permits)
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


def _check_connections(transport: httpx2.AsyncHTTPTransport, permits: Permits) -> None:
    """Restrict the connections of a transport to permitted addresses.

    The transport connects to the checked address, so a host name that resolves to another address
    later cannot bypass the check.
    """
    # httpx2 has no public way to pass a network backend to its pool.
    pool: Any = transport._pool  # pyright: ignore[reportPrivateUsage] - see above
    pool._network_backend = _CheckedBackend(pool._network_backend, permits)


class _CheckedBackend:
    """The network backend of a pool; resolves host names and checks the addresses."""

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
    """Whether the environment names a proxy for a scheme."""
    return not getproxies().keys().isdisjoint((scheme, "all"))


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
