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
from .client_settings import Timeouts
from .connect import beside
from .server_state import Fields

if TYPE_CHECKING:  # few clients speak HTTP, and httpx2 is an extra
    import httpx2

    from ..transports.http.http_client import Authorization, Authorizer

Transport: TypeAlias = Literal["streamable-http", "sse"]
"""The transports over HTTP: Streamable HTTP, and HTTP+SSE of older servers."""

HeaderFields: TypeAlias = Mapping[str, str]
"""Header fields by name."""

HeaderSource: TypeAlias = HeaderFields | Callable[[], HeaderFields | Awaitable[HeaderFields]]
"""Header fields of each HTTP request, or what makes them each time."""

HttpAuth: TypeAlias = "str | httpx2.Auth | Authorization"
"""An access token, how a client comes to one, or an authentication of httpx2's."""

HttpClient: TypeAlias = "httpx2.AsyncClient"
"""A client of httpx2's."""


@dataclass(frozen=True)
class UrlOptions:
    """How a server is spoken to over HTTP.

    Attributes:
        transport: The transport to use; `None` to find out.
        headers: What each HTTP request gets beside the protocol's own fields, which go first.
        auth: Asked with each HTTP request, or the access token that each has.
        client: Makes the requests, and is not closed. Its timeout for reading does not count.
    """

    transport: Transport | None = None
    headers: HeaderSource | None = None
    auth: HttpAuth | None = None
    client: HttpClient | None = None


def revisions_over_http(revisions: Revisions, http: UrlOptions) -> Revisions:
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
    http: UrlOptions,
    timeouts: Timeouts,
) -> AsyncGenerator[Channel, None]:
    """A channel to a server over HTTP, closed in the end."""
    from ..transports.http.http_channel import HttpChannel
    from ..transports.http.http_client import HttpRequests

    headers: Fields | None = None
    server = application.server_state
    source = http.headers
    if source is not None:
        headers = server.cache.fields(source if callable(source) else lambda: source)
    authorizer, auth = _authorizer(http.auth, url, revisions, application)
    requests = HttpRequests(
        headers,
        auth,
        http.client,
        timeouts.connect,
        timeouts.silence,
        timeouts.body,
        authorizer=authorizer,
    )
    server.param_headers.mirrored = True
    channel = HttpChannel(
        url,
        revisions,
        requests,
        http.transport,
        server.param_headers.headers_for,
        server.session_lost,
        server.session.stream_changed,
        timeouts.http,
    )
    async with beside(channel.run, channel.close):
        yield channel


def _authorizer(
    auth: HttpAuth | None, url: str, revisions: Revisions, application: ClientApplication
) -> tuple[Authorizer, None] | tuple[None, httpx2.Auth | None]:
    """The meaning of `auth`: an authorizer of our own, or an authentication of httpx2's.

    Raises:
        ValueError: A text that is no access token.
    """
    if auth is None:
        return None, None
    from ..transports.http.http_client import Authorization

    if isinstance(auth, str):
        from ..transports.http.http_client import Bearer

        if auth.lower() == "oauth":
            raise ValueError("auth: use OAuth('Name of the client') to sign in, not a text")
        if auth.lower().startswith("bearer "):
            raise ValueError("auth: expected the token alone, without the word Bearer")
        auth = Bearer(auth)
    if isinstance(auth, Authorization):
        application.declare_extensions(auth.extensions)
        return auth.authorizer(url, revisions), None
    return None, auth
