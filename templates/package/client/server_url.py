"""A URL as the target of a client: the options for HTTP, and the channel to the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeGuard

from ..channel import Channel
from ..errors import RevisionError
from ..facts import Lifecycle, Revisions, has_streamable_http
from .base import ClientApplication
from .client_settings import Timeouts
from .connect import open_session, run_concurrently
from .opening import Opening, TargetKind
from .server_state import Fields

if TYPE_CHECKING:  # few clients speak HTTP
    from ..transports.http.http_client import Authorization, Authorizer, HttpxAuth, HttpxClient

Transport: TypeAlias = Literal["streamable-http", "sse"]
"""The HTTP transports: Streamable HTTP, and HTTP+SSE of older servers."""

HeaderFields: TypeAlias = Mapping[str, str]
"""Header fields by name."""

HeaderSource: TypeAlias = HeaderFields | Callable[[], HeaderFields | Awaitable[HeaderFields]]
"""Header fields of each HTTP request, or a function that returns the fields."""

HttpAuth: TypeAlias = "str | HttpxAuth | Authorization"
"""An access token, an `Authorization` that obtains tokens, or an httpx2 authentication."""

HttpClient: TypeAlias = "HttpxClient"
"""An httpx2 client."""


class HttpOptions(TypedDict, total=False):
    """Options of `connect` for a URL as target.

    Attributes:
        transport: The HTTP transport; by default Streamable HTTP, or HTTP+SSE if the server
            supports only that.
        headers: Header fields of each HTTP request, or a function or coroutine function that
            returns the fields.
        auth: An access token, its source, such as `OAuth(...)`, or an httpx2 authentication.
        http_client: An httpx2 client that sends the HTTP requests; the session does not close it.
    """

    transport: Transport | None
    headers: HeaderSource | None
    auth: HttpAuth | None
    http_client: HttpClient | None


@dataclass(frozen=True)
class UrlOptions:
    """The options of a URL as target.

    Attributes:
        transport: The transport to use; `None` to detect it.
        headers: Header fields of each HTTP request; the protocol's own fields take precedence.
        auth: The access token of each HTTP request, or the source of access tokens.
        client: The HTTP client to use; it is not closed, and its read timeout is ignored.
    """

    transport: Transport | None = None
    headers: HeaderSource | None = None
    auth: HttpAuth | None = None
    client: HttpClient | None = None


def revisions_over_http(revisions: Revisions, http: UrlOptions) -> Revisions:
    """The revisions to offer at a URL.

    Raises:
        RevisionError: None of the revisions has the requested transport.
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
    """Open a channel to a server over HTTP; close the channel on exit."""
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
        application.settings.limits.open_requests,
    )
    async with run_concurrently(channel.run, channel.close):
        yield channel


def _authorizer(
    auth: HttpAuth | None, url: str, revisions: Revisions, application: ClientApplication
) -> tuple[Authorizer, None] | tuple[None, HttpxAuth | None]:
    """Convert `auth` to an authorizer, or return an httpx2 authentication unchanged.

    Raises:
        ValueError: The text is not an access token.
    """
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


def is_url(target: object) -> TypeGuard[str]:
    """Whether a target is the URL of a server over HTTP."""
    return isinstance(target, str) and target.lower().startswith(("http://", "https://"))


def open_url(opening: Opening, target: str) -> AbstractAsyncContextManager[Any]:
    """Open a session with the server at a URL."""
    options = opening.options
    names = ("transport", "headers", "auth", "http_client")
    http = UrlOptions(*(options.get(name) for name in names))
    revisions = revisions_over_http(opening.revisions, http)
    application = opening.application()
    channel = at_url(target, revisions, application, http, application.settings.timeouts)
    return open_session(opening.client_class, target, channel, revisions, application)


URL = TargetKind(
    "a URL that begins with http:// or https://", is_url, open_url, HttpOptions.__optional_keys__
)
"""URLs as a kind of target."""
