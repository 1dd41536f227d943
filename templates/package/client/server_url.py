"""A URL as the target of a client: the options for HTTP, and the channel to the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeGuard

from ..channel import Channel
from ..errors import RevisionError
from ..facts import Lifecycle, Revisions, has_streamable_http
from .application import ClientApplication, Fields
from .connect import Opening, TargetKind
from .opening import open_session, run_concurrently

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


@asynccontextmanager
async def _open_channel(
    url: str, revisions: Revisions, application: ClientApplication, options: Mapping[str, Any]
) -> AsyncGenerator[Channel, None]:
    """Open a channel to a server over HTTP; close the channel on exit."""
    from ..transports.http.http_channel import HttpChannel
    from ..transports.http.http_client import HttpRequests

    timeouts, state = application.settings.timeouts, application.server_state
    source: HeaderSource | None = options.get("headers")
    headers: Fields | None = None
    if source is not None:
        headers = application.header_fields(source if callable(source) else lambda: source)
    authorizer, auth = _authorizer(options.get("auth"), url, revisions, application)
    requests = HttpRequests(
        headers,
        auth,
        options.get("http_client"),
        timeouts.connect,
        timeouts.silence,
        timeouts.body,
        authorizer=authorizer,
        open_library=application.http_library,
    )
    channel = HttpChannel(
        url,
        revisions,
        requests,
        options.get("transport"),
        application.mirror_params(),
        state.session_lost,
        state.session.stream_changed,
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


def _is_url(target: object) -> TypeGuard[str]:
    """Whether a target is the URL of a server over HTTP."""
    return isinstance(target, str) and target.lower().startswith(("http://", "https://"))


def _open_url(opening: Opening, target: str) -> AbstractAsyncContextManager[Any]:
    """Open a session with the server at a URL.

    Raises:
        RevisionError: None of the revisions has the requested transport.
    """
    revisions, transport = opening.revisions, opening.options.get("transport")
    if transport == "streamable-http" and not has_streamable_http(revisions):
        raise RevisionError("Streamable HTTP is for later revisions", tuple(revisions))
    if transport == "sse":
        revisions = revisions.of(Lifecycle.HANDSHAKE)
        if not revisions:
            text = "HTTP+SSE is for revisions with a handshake"
            raise RevisionError(text, tuple(opening.revisions))
    application = opening.application()
    channel = _open_channel(target, revisions, application, opening.options)
    return open_session(opening.client_class, target, channel, revisions, application)


URL = TargetKind(
    "a URL that begins with http:// or https://", _is_url, _open_url, HttpOptions.__optional_keys__
)
"""URLs as a kind of target."""
