"""HTTP requests to authorization servers: no redirects, no cookies, no addresses that may not be.

Source: security best practices (server-side request forgery).
"""

from __future__ import annotations

import anyio

from ...auth.documents import DOCUMENT_LIMIT
from ...auth.steps import Fetch, Fetched
from ...errors import AuthorizationError
from ...framing.http_headers import media_type
from ...framing.sse import MEDIA_TYPE
from ...transports.http.http_errors import shown
from ...transports.http.http_libraries import (
    AiohttpLibrary,
    Httpx2Library,
    Library,
    Permits,
    on_asyncio,
)

FETCH_SECONDS = 30.0
"""Seconds for one request and its response."""

_FIELDS = ("content-type", "dpop-nonce", "www-authenticate")


class AuthFetcher:
    """Makes the requests of flows, over connections of its own.

    Args:
        permits: Whether a connection may be made to an address.
        seconds: Seconds for one request and its response.

    Raises:
        MissingExtraError: No library for HTTP is installed.
    """

    def __init__(self, permits: Permits, seconds: float = FETCH_SECONDS) -> None:
        self._seconds = seconds
        self._library: Library
        if on_asyncio():
            self._library = AiohttpLibrary(seconds, seconds, permits)
        else:
            self._library = Httpx2Library(None, None, seconds, seconds, permits)

    async def fetch(self, step: Fetch) -> Fetched:
        """Make a request.

        Raises:
            AuthorizationError: There was no response in time.
            ConnectFailedError: There is no connection, or the address may not be used.
            ResponseLostError: The connection broke.
            FrameError: The body is too long.
        """
        library = self._library
        with anyio.move_on_after(self._seconds):
            try:
                raw = await library.send(step.method, step.url, step.fields, step.body)
                response = library.response(raw, step.url)
            except Exception as error:
                if (translated := library.error(error, step.url)) is None:
                    raise
                raise translated from None
            fields = {name: response.header(name) or "" for name in _FIELDS}
            if media_type(fields["content-type"]) == MEDIA_TYPE:
                await response.close()
                return Fetched(response.status, fields)
            body = await response.read(DOCUMENT_LIMIT, self._seconds)
            return Fetched(response.status, fields, body)
        raise AuthorizationError(f"{shown(step.url)}: no response within {self._seconds:g} s")

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._library.close()
