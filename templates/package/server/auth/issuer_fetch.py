"""Requests of a resource server to authorization servers: metadata, keys and introspection.

URLs in the settings, and other URLs of their origins, are trusted. URLs in fetched documents must
lead to public addresses. The address of each connection is checked when the connection is made, so
that a name cannot resolve to another address after the check. The fetcher of clients is not used
here: proxies of the environment are ignored, because a proxy would bypass the check.

Source: basic/security_best_practices (server-side request forgery); RFC 6890.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Generic, TypeVar

import anyio

from ...auth.address_rules import AddressCheck, checked_https_url
from ...auth.identifiers import origin_of
from ...auth.json_documents import parse_object
from ...errors import (
    AuthorizationError,
    ConnectFailedError,
    MissingExtraError,
    TransportError,
)
from ...framing.http_hosts import PUBLIC, format_url
from ...runtime.task_scope import spawn

Result = TypeVar("Result")

DOCUMENT_LIMIT = 1024 * 1024
"""Longest document, in bytes."""

FETCH_SECONDS = 10.0
"""Time limit for a request and its response, and for all requests of one `SharedFetch`."""

_PUBLIC_ONLY = AddressCheck("https://server.invalid", PUBLIC)
_ACCEPT: Mapping[str, str] = {"Accept": "application/json"}


class NoResponseError(TransportError):
    """An authorization server did not respond in time."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where}: no response within {FETCH_SECONDS:g} s")


class BackOff:
    """The time until the next attempt, which doubles with each failure.

    Args:
        first: Seconds after the first failure.
        longest: Most seconds.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self.failures = 0
        self._until = float("-inf")

    def is_open(self, now: float) -> bool:
        """Whether an attempt is allowed now."""
        return now >= self._until

    def fail(self, now: float) -> None:
        """Record a failure. Failures of attempts that began before the last failure are ignored."""
        if not self.is_open(now):
            return
        seconds = min(self._first * 2.0 ** min(self.failures, 30), self._longest)
        self._until = now + seconds
        self.failures += 1

    def succeed(self) -> None:
        """Record a success."""
        self.failures = 0
        self._until = float("-inf")


class SharedFetch(Generic[Result]):
    """Requests that run in a separate task, with a result for any number of callers.

    The requests continue if a caller is cancelled, for example because its client disconnected.

    Args:
        fetch: Makes the requests, within `FETCH_SECONDS`.
        where: The authorization server or its URL, for errors.
        on_end: Called once with the error, or with `None` after a success.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Result]],
        where: str,
        on_end: Callable[[Exception | None], None],
    ) -> None:
        self._fetch = fetch
        self._where = where
        self._on_end = on_end
        self._results: list[Result] = []
        self._error: Exception | None = TransportError("the server has ended")
        self._done = anyio.Event()
        spawn(self._run)

    @property
    def is_running(self) -> bool:
        """Whether the requests are still running."""
        return not self._done.is_set()

    async def result(self) -> Result:
        """Wait for the result.

        Raises:
            NoResponseError: The requests took too long.
            Exception: Whatever a request raised.
        """
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._results[0]

    async def _run(self) -> None:
        try:
            with anyio.fail_after(FETCH_SECONDS):
                self._results.append(await self._fetch())
            self._error = None
        except TimeoutError:
            self._error = NoResponseError(format_url(self._where))
        except Exception as error:
            self._error = error
        finally:
            self._on_end(self._error)
            self._done.set()


class IssuerHttp:
    """Makes requests to authorization servers. Redirects are not followed.

    Args:
        trusted: URLs in the settings; their origins may have any address.
    """

    def __init__(self, trusted: Collection[str]) -> None:
        self._trusted = frozenset(map(origin_of, trusted))

    async def get(self, url: str) -> dict[str, Any] | None:
        """The JSON object at a URL; `None` if the status is not 200.

        Raises:
            TransportError: The connection failed, the response was late, or is not a JSON object.
        """
        return await self._request("GET", url, {}, None)

    async def post(
        self, url: str, headers: Mapping[str, str], form: bytes
    ) -> dict[str, Any] | None:
        """The JSON object in the response to a form; `None` if the status is not 200.

        Raises:
            TransportError: The connection failed, the response was late, or is not a JSON object.
        """
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._request("POST", url, {**content_type, **headers}, form)

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> dict[str, Any] | None:
        try:
            checked_https_url("url", url)
            public_only = origin_of(url) not in self._trusted
            if public_only:
                _PUBLIC_ONLY.check(url, "url")
        except (ValueError, AuthorizationError):
            raise ConnectFailedError(
                format_url(url), "expected an https URL of a public host"
            ) from None
        try:
            with anyio.fail_after(FETCH_SECONDS):
                status, data = await _send(method, url, {**_ACCEPT, **headers}, body, public_only)
        except TimeoutError:
            raise NoResponseError(format_url(url)) from None
        if status != 200:
            return None
        if len(data) > DOCUMENT_LIMIT:
            raise TransportError(f"{format_url(url)}: expected at most {DOCUMENT_LIMIT} bytes")
        document = parse_object(data)
        if document is None:
            raise TransportError(f"{format_url(url)}: expected a JSON object")
        return document


async def _send(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, public_only: bool
) -> tuple[int, bytes]:
    """Status and body of a response."""
    try:
        import httpx2
    except ImportError:
        raise MissingExtraError("fetching keys of an authorization server", "httpx2") from None
    target = httpx2.URL(url)
    extensions: dict[str, Any] = {}
    headers = {**headers, "Host": target.netloc.decode("ascii")}
    try:
        if public_only:  # connect to the checked address
            addresses = await anyio.getaddrinfo(target.host, None)
            for each in addresses:
                _check_public(url, str(each[4][0]))
            extensions = {"sni_hostname": target.host}
            target = target.copy_with(host=str(addresses[0][4][0]))
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=None) as client,
            client.stream(
                method, target, headers=headers, content=body, extensions=extensions
            ) as response,
        ):
            parts = bytearray()
            async for part in response.aiter_bytes():
                parts += part
                if len(parts) > DOCUMENT_LIMIT:
                    break
            return response.status_code, bytes(parts)
    except (httpx2.HTTPError, OSError) as error:
        raise ConnectFailedError(format_url(url), type(error).__name__) from error


def _check_public(url: str, address: str) -> None:
    """Check that an address is public."""
    if not _PUBLIC_ONLY.permits(address):
        raise ConnectFailedError(format_url(url), "expected a public address")
