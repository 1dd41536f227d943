"""A URL as the target of a client: what is said of HTTP, and the channel to a server there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..channel import Channel
from ..errors import RevisionError
from ..facts import Lifecycle, Revisions, has_streamable_http
from .base import ClientApplication
from .connect import Timeouts, beside
from .response_cache import WatchedFields

if TYPE_CHECKING:  # few clients speak HTTP, and httpx2 is an extra
    import httpx2

Transport: TypeAlias = Literal["streamable-http", "sse"]
"""The transports over HTTP: Streamable HTTP, and HTTP+SSE of older servers."""

HeaderFields: TypeAlias = Mapping[str, str]
"""Header fields by name."""

HeaderSource: TypeAlias = HeaderFields | Callable[[], HeaderFields | Awaitable[HeaderFields]]
"""Header fields of each HTTP request, or what makes them each time."""

HttpAuth: TypeAlias = "httpx2.Auth"
"""An authentication of httpx2's."""

HttpClient: TypeAlias = "httpx2.AsyncClient"
"""A client of httpx2's."""


@dataclass(frozen=True)
class HttpOptions:
    """How a server is spoken to over HTTP.

    Attributes:
        transport: The transport to use; `None` to find out.
        headers: What each HTTP request gets beside the protocol's own fields, which go first.
        auth: Asked with each HTTP request.
        client: Makes the requests, and is not closed. Its timeout for reading does not count.
    """

    transport: Transport | None = None
    headers: HeaderSource | None = None
    auth: HttpAuth | None = None
    client: HttpClient | None = None


def revisions_over_http(revisions: Revisions, http: HttpOptions) -> Revisions:
    """The revisions to offer at a URL.

    Raises:
        RevisionError: The transport that was asked for belongs to none of them.
    """
    if http.transport == "streamable-http" and not has_streamable_http(revisions):
        raise RevisionError("Streamable HTTP is for later revisions", tuple(revisions))
    if http.transport != "sse":
        return revisions
    handshakes = revisions.of(Lifecycle.HANDSHAKE)
    if not handshakes:
        raise RevisionError("HTTP+SSE is for revisions with a handshake", tuple(revisions))
    return handshakes


@asynccontextmanager
async def at_url(
    url: str,
    revisions: Revisions,
    application: ClientApplication,
    http: HttpOptions,
    timeouts: Timeouts,
) -> AsyncGenerator[Channel, None]:
    """A channel to a server over HTTP, closed in the end."""
    from ..transports.http.http_channel import HttpChannel
    from ..transports.http.http_client import HttpSettings

    headers: WatchedFields | None = None
    given = http.headers
    if given is not None:
        cache = application.server_state.cache
        make = given if callable(given) else lambda: given
        headers = cache.before_private = WatchedFields(make, cache.forget_private)
    settings = HttpSettings(headers, http.auth, http.client, timeouts.connect, timeouts.silence)
    application.server_state.param_headers.mirrored = True
    marked = application.server_state.param_headers.headers_for
    renewed = application.server_state.session_lost
    heard = application.server_state.session.stream_changed
    channel = HttpChannel(url, revisions, settings, http.transport, marked, renewed, heard)
    async with beside(channel.run, channel.close):
        yield channel
