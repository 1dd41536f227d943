"""How a client comes to a session: a channel to the target, an agreement, and the way back.

Whatever the target is, the body of `open_client` runs between the same two ends: the opening has
succeeded before it, and after it everything that was started has ended. What it raises leaves as
it is, never inside a group.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)
from urllib.parse import urlsplit

import anyio

from ..channel import Channel
from ..core.connection import Connection
from ..errors import ConnectionClosedError, RequestTimeoutError, RevisionError
from ..facts import Lifecycle, Revisions, has_streamable_http
from ..peer import Peer
from ..trace import traced
from ..transports.memory import memory_pair
from .base import ClientApplication, ClientBase
from .caching import WatchedFields

if TYPE_CHECKING:  # few clients speak HTTP, and httpx2 is an extra
    import httpx2


@runtime_checkable
class Servable(Protocol):
    """A server that can speak over a channel handed to it."""

    async def serve(self, channel: Channel) -> None:
        """Serve until the other side is gone."""
        ...


@dataclass(frozen=True)
class Timeouts:
    """How long a client waits, in seconds.

    Attributes:
        opening: For an agreement with the server.
        probe: For the answer to the probe by which newer servers are told from older ones.
        limit: For the answer to a call that has a timeout of its own, whatever progress comes.
        connect: For a connection, over HTTP.
        silence: For an HTTP answer that has begun to come on; streams of events may be silent.

    Source: basic/lifecycle (timeouts); 2026-07-28: basic/patterns/cancellation (timeouts).
    """

    opening: float = 30.0
    probe: float = 5.0
    limit: float = 3600.0
    connect: float = 10.0
    silence: float = 60.0


Target: TypeAlias = str | Sequence[str] | Servable | Channel
"""What to connect to: the URL of a server over HTTP, a command line, a server in this process, or a
channel of one's own."""

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


Face = TypeVar("Face", bound=ClientBase)
MakeFace: TypeAlias = Callable[[Peer, ClientApplication, float], Face]


@asynccontextmanager
async def open_client(
    face: MakeFace[Face],
    target: Target,
    revisions: Revisions,
    application: ClientApplication,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    http: HttpOptions = HttpOptions(),
    timeouts: Timeouts = Timeouts(),
) -> AsyncGenerator[Face, None]:
    """Open a session and give its face; close it, and what was started for it, in the end.

    Raises:
        ServerStartError: The server's process ended before it answered.
        ConnectFailedError: There is no connection to the URL.
        HttpStatusError: The server at the URL refuses.
        RevisionError: Client and server have no revision in common.
        RequestTimeoutError: No agreement in time.
        MissingExtraError: The target is a URL, and httpx2 is not installed.
    """
    place: AbstractAsyncContextManager[Channel]
    if isinstance(target, str | bytes):
        revisions = _over_http(target, revisions, http)
        place = _at_url(str(target), revisions, application, http, timeouts)
    elif http != HttpOptions():
        raise TypeError("transport, headers, auth and http_client are for a URL as target")
    else:
        place = _channel_to(target, env, cwd)
    async with place as channel:
        connection = Connection("client", revisions, application.describe)
        peer = Peer(connection, traced(channel, "client"), application)
        async with _beside(peer.run, peer.close):
            try:
                await peer.open(timeouts.probe, timeouts.opening)
            except RequestTimeoutError as error:
                raise RequestTimeoutError(f"{error.method}{_with(target)}", error.seconds) from None
            yield face(peer, application, timeouts.limit)


@asynccontextmanager
async def _beside(
    work: Callable[[], Coroutine[Any, Any, None]], end: Callable[[], Awaitable[None]]
) -> AsyncGenerator[None, None]:
    """Run `work` beside the body; call `end` after the body, and wait until the work has ended."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        try:
            yield
        except (anyio.get_cancelled_exc_class(), GeneratorExit):
            raise
        except BaseException as error:
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await end()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # a frame that holds the exception that holds the frame


def _with(target: Target) -> str:
    """Whom a session was to be opened with, for errors; of a URL, what is no secret."""
    if isinstance(target, str):
        url = urlsplit(target)
        return f" with {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
    return f" with {' '.join(target)!r}" if isinstance(target, Sequence) else ""


def _over_http(target: str | bytes, revisions: Revisions, http: HttpOptions) -> Revisions:
    """The revisions to offer at a URL.

    Raises:
        TypeError: The text is none.
        RevisionError: The transport that was asked for belongs to none of them.
    """
    if not isinstance(target, str) or not target.lower().startswith(("http://", "https://")):
        raise TypeError(
            "expected a command as a list of words, or a URL that begins with http:// or "
            f"https://, got the text {target!r}"
        )
    if http.transport == "streamable-http" and not has_streamable_http(revisions):
        raise RevisionError("Streamable HTTP is for later revisions", tuple(revisions))
    if http.transport != "sse":
        return revisions
    handshakes = revisions.of(Lifecycle.HANDSHAKE)
    if not handshakes:
        raise RevisionError("HTTP+SSE is for revisions with a handshake", tuple(revisions))
    return handshakes


@asynccontextmanager
async def _at_url(
    url: str,
    revisions: Revisions,
    application: ClientApplication,
    http: HttpOptions,
    timeouts: Timeouts,
) -> AsyncGenerator[Channel, None]:
    from ..transports.http.channel import HttpChannel
    from ..transports.http.requests import HttpSettings

    headers = given = http.headers
    if given is not None:
        cache = application.known.cache
        make = given if callable(given) else lambda: given
        headers = cache.before_private = WatchedFields(make, cache.forget_private)
    settings = HttpSettings(headers, http.auth, http.client, timeouts.connect, timeouts.silence)
    application.marks.mirrored = True
    marked = application.marks.headers_for
    renewed = application.known.session_lost
    channel = HttpChannel(url, revisions, settings, http.transport, marked, renewed)
    async with _beside(channel.run, channel.close):
        yield channel


def _channel_to(
    target: Sequence[str] | Servable | Channel, env: Mapping[str, str] | None, cwd: str | None
) -> AbstractAsyncContextManager[Channel]:
    if isinstance(target, Sequence):
        return _process(target, env, cwd)
    if isinstance(target, Servable):
        return _in_memory(target)
    return nullcontext(target)


@asynccontextmanager
async def _process(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
) -> AsyncGenerator[Channel, None]:
    from ..transports.process import open_process  # starting processes costs import time

    channel = await open_process(argv, env=env, cwd=cwd)
    try:
        yield channel
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()


@asynccontextmanager
async def _in_memory(server: Servable) -> AsyncGenerator[Channel, None]:
    """A server of this process at the other end; if it fails, so does the body, with its error."""
    near, far = memory_pair()
    crash: Exception | None = None

    async def serve() -> None:
        nonlocal crash
        try:
            await server.serve(far)
        except Exception as error:
            crash = error
        finally:
            await far.close()

    try:
        async with _beside(serve, near.close):
            yield near
    except ConnectionClosedError:
        if crash is None:
            raise
    if crash is not None:
        raise crash
