"""HTTP requests of flows, without redirects and cookies, and to permitted addresses only.

Source: security best practices (server-side request forgery).
"""

from __future__ import annotations

import anyio

from ...auth.discovery import DOCUMENT_LIMIT
from ...auth.steps import Fetch, Fetched
from ...errors import AuthorizationError
from ...framing.http_headers import media_type
from ...framing.sse import MEDIA_TYPE
from ...transports.http.http_client import open_library
from ...transports.http.http_libraries import Permits, shown

FETCH_SECONDS = 30.0
"""Time limit for a request and its response, in seconds."""

_FIELDS = ("content-type", "dpop-nonce", "www-authenticate")


class AuthFetcher:
    """Makes the HTTP requests of flows, over separate connections.

    Args:
        permits: Returns whether a connection may be made to an IP address.
        seconds: Time limit for a request and its response, in seconds.

    Raises:
        MissingExtraError: No HTTP library is installed.
    """

    def __init__(self, permits: Permits, seconds: float = FETCH_SECONDS) -> None:
        self._seconds = seconds
        self._library = open_library(seconds, seconds, permits)

    async def fetch(self, step: Fetch) -> Fetched:
        """Make a request.

        Raises:
            AuthorizationError: No response arrived in time.
            ConnectFailedError: The connection failed, or the address is not permitted.
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
                return Fetched(response.status, fields)  # an event stream may never end
            body = await response.read(DOCUMENT_LIMIT, self._seconds)
            return Fetched(response.status, fields, body)
        raise AuthorizationError(f"{shown(step.url)}: no response within {self._seconds:g} s")

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._library.close()
