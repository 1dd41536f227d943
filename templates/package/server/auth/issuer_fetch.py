"""Requests of a resource server to authorization servers: metadata, keys and introspection.

URLs in the settings, and other URLs of their origins, are trusted. URLs in fetched documents must
lead to public addresses. The address of each connection is checked when the connection is made, so
that a name cannot resolve to another address after the check. The fetcher of clients is not used
here: proxies of the environment are ignored, because a proxy would bypass the check.

Source: basic/security_best_practices (server-side request forgery); RFC 6890.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any

import anyio
import msgspec

from ..._wire import is_object
from ...auth.address_rules import PUBLIC, AddressCheck, checked_https_url
from ...auth.identifiers import origin_of
from ...errors import ConnectFailedError, MissingExtraError, TransportError
from ...transports.http.http_libraries import shown

DOCUMENT_LIMIT = 1024 * 1024
"""Longest document, in bytes."""

_SECONDS = 10.0  # time limit for a request and its response
_PUBLIC_ONLY = AddressCheck("https://server.invalid", PUBLIC)
_ACCEPT: Mapping[str, str] = {"Accept": "application/json"}


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
        except ValueError:
            raise ConnectFailedError(shown(url), "expected an https URL") from None
        public_only = origin_of(url) not in self._trusted
        send = _by_aiohttp if _has_aiohttp() and _on_asyncio() else _by_httpx2
        try:
            with anyio.fail_after(_SECONDS):
                status, data = await send(method, url, {**_ACCEPT, **headers}, body, public_only)
        except TimeoutError:
            raise TransportError(f"{shown(url)}: no response within {_SECONDS:g} s") from None
        if status != 200:
            return None
        if len(data) > DOCUMENT_LIMIT:
            raise TransportError(f"{shown(url)}: expected at most {DOCUMENT_LIMIT} bytes")
        try:
            document: object = msgspec.json.decode(data)
        except msgspec.DecodeError:
            document = None
        if not is_object(document):
            raise TransportError(f"{shown(url)}: expected a JSON object")
        return dict(document)


async def _by_aiohttp(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, public_only: bool
) -> tuple[int, bytes]:
    """Status and body of a response, by aiohttp."""
    import aiohttp

    def make_socket(address: Any) -> socket.socket:
        if public_only:
            _check_public(url, address[4][0])
        return socket.socket(*address[:3])

    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(socket_factory=make_socket),
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            session.request(
                method, url, headers=headers, data=body, allow_redirects=False
            ) as response,
        ):
            parts = bytearray()
            async for part in response.content.iter_chunked(64 * 1024):
                parts += part
                if len(parts) > DOCUMENT_LIMIT:
                    break
            return response.status, bytes(parts)
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectFailedError(shown(url), type(error).__name__) from error


async def _by_httpx2(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, public_only: bool
) -> tuple[int, bytes]:
    """Status and body of a response, by httpx2."""
    try:
        import httpx2
    except ImportError:
        raise MissingExtraError("fetching keys of an authorization server", "httpx2") from None
    target = httpx2.URL(url)
    extensions: dict[str, Any] = {}
    headers = {**headers, "Host": target.netloc.decode("ascii")}
    try:
        if public_only:  # connect to the checked address
            addresses = await anyio.getaddrinfo(target.host, target.port or 443)
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
        raise ConnectFailedError(shown(url), type(error).__name__) from error


def _check_public(url: str, address: str) -> None:
    """Check that an address is public.

    Raises:
        ConnectFailedError: The address is private, loopback, link-local, or otherwise reserved.
    """
    if not _PUBLIC_ONLY.permits(address):
        raise ConnectFailedError(shown(url), "expected a public address")


def _on_asyncio() -> bool:
    try:
        return asyncio.current_task() is not None  # trio may run as a guest of asyncio
    except RuntimeError:
        return False


def _has_aiohttp() -> bool:
    return find_spec("aiohttp") is not None
