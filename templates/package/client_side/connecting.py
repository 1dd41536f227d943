"""How a client comes to a session: a channel to the target, an agreement, and the way back.

Whatever the target is, the body of `open_client` runs between the same two ends: the opening has
succeeded before it, and after it everything that was started has ended. What it raises leaves as
it is, never inside a group.

A server process that ends after the probe, or stays silent, is started anew, once, and hears
`initialize` first. One that has not read the probe yet is merely slow, or failed by itself: it is
waited for, or its failure stands.
"""

from __future__ import annotations

import logging
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
from ..errors import (
    ConnectionClosedError,
    McpError,
    RequestTimeoutError,
    RevisionError,
    ServerStartError,
    last_lines,
)
from ..facts import HANDSHAKE, Lifecycle, Revisions, has_streamable_http
from ..json_schema import VALIDATION_SECONDS
from ..peer import CONCURRENT_REQUESTS, Peer, check_concurrent_requests
from ..trace import traced
from ..transports.memory import memory_pair
from .base import ClientApplication, ClientBase
from .caching import WatchedFields

if TYPE_CHECKING:  # few clients speak HTTP, and httpx2 is an extra
    import httpx2

    from ..transports.process import ProcessChannel

_logger = logging.getLogger(__name__)


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
        opening: For an agreement with the server; a process that is started anew gets no more.
        probe: For the answer to the probe by which newer servers are told from older ones. A
            process that read it is started anew after half of the time from then to `opening`, if
            it is still silent.
        limit: For the answer to a call that has a timeout of its own, whatever progress comes.
        listing: For all pages of a list together, beside the timeout that each page has.
        validation: For holding a tool's result against its output schema, if the call has no
            timeout of its own; a call that has one may use what is left of that.
        connect: For a connection, over HTTP.
        silence: For an HTTP answer that has begun to come on; streams of events may be silent.

    Source: basic/lifecycle (timeouts); 2026-07-28: basic/patterns/cancellation (timeouts).
    """

    opening: float = 30.0
    probe: float = 5.0
    limit: float = 3600.0
    listing: float = 300.0
    validation: float = VALIDATION_SECONDS
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
MakeFace: TypeAlias = Callable[[Peer, ClientApplication, float, float], Face]


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
    max_concurrent_requests: int = CONCURRENT_REQUESTS,
) -> AsyncGenerator[Face, None]:
    """Open a session and give its face; close it, and what was started for it, in the end.

    Raises:
        ServerStartError: The server's process ended before it answered.
        ConnectFailedError: There is no connection to the URL.
        HttpStatusError: The server at the URL refuses.
        RevisionError: Client and server have no revision in common.
        RequestTimeoutError: No agreement in time.
        MissingExtraError: The target is a URL, and httpx2 is not installed.
        ValueError: `max_concurrent_requests` is below one.
    """
    check_concurrent_requests(max_concurrent_requests)
    application.known.outputs.seconds = timeouts.validation
    place: AbstractAsyncContextManager[Channel]
    if isinstance(target, str | bytes):
        revisions = _over_http(target, revisions, http)
        place = _at_url(str(target), revisions, application, http, timeouts)
    elif http != HttpOptions():
        raise TypeError("transport, headers, auth and http_client are for a URL as target")
    elif isinstance(target, Sequence):
        opening = open_with_process(
            face, target, revisions, application, env, cwd, timeouts, max_concurrent_requests
        )
        async with opening as client:
            yield client
        return
    else:
        place = _in_memory(target) if isinstance(target, Servable) else nullcontext(target)
    async with place as channel:
        peer = _peer(channel, revisions, application, max_concurrent_requests)
        async with _beside(peer.run, peer.close):
            try:
                await peer.open(timeouts.probe, timeouts.opening)
            except (ConnectionClosedError, RequestTimeoutError) as error:
                more = "" if isinstance(target, str) else _pin_hint(peer)  # HTTP keeps no order
                raise _explained(error, target, timeouts, more) from None
            yield face(peer, application, timeouts.limit, timeouts.listing)


@asynccontextmanager
async def open_with_process(
    face: MakeFace[Face],
    argv: Sequence[str],
    revisions: Revisions,
    application: ClientApplication,
    env: Mapping[str, str] | None,
    cwd: str | None,
    timeouts: Timeouts,
    max_concurrent_requests: int,
) -> AsyncGenerator[Face, None]:
    """`open_client` for a server that is started, perhaps twice."""
    from ..transports.process import Patience

    deadline = anyio.current_time() + timeouts.opening
    first: _FirstProcess | None = None
    while True:
        async with _process(argv, env, cwd, first) as process:
            peer = _peer(process, revisions, application, max_concurrent_requests)
            async with _beside(peer.run, peer.close):
                try:
                    await _open_in_time(peer, process, timeouts, deadline)
                except (ConnectionClosedError, RequestTimeoutError, ServerStartError) as error:
                    handshakes = peer.connection.without_probe
                    in_time = anyio.current_time() < deadline
                    if handshakes is None or not process.took_input or not in_time:
                        more, cause = _pin_hint(peer) if process.took_input else "", None
                        if first is not None:
                            more, cause = first.told, first.error
                        raise _explained(error, argv, timeouts, more) from cause
                    first = _FirstProcess(error, process.stderr_tail)
                    revisions = handshakes
                else:
                    process.patience = Patience()
                    yield face(peer, application, timeouts.limit, timeouts.listing)
                    return
        from ..command_masking import masked_command  # its patterns take long to compile

        command = masked_command(argv)
        _logger.warning("server %r %s; it was started anew. %s", command, first.how, _PROBED)


@dataclass(frozen=True)
class _FirstProcess:
    """A server process that the probe may have ended.

    Attributes:
        error: How it failed.
        stderr_tail: The last lines that it wrote to standard error.
    """

    error: ConnectionClosedError | RequestTimeoutError | ServerStartError
    stderr_tail: tuple[str, ...]

    @property
    def how(self) -> str:
        """The same in a word."""
        if isinstance(self.error, RequestTimeoutError):
            return f"was silent for {self.error.seconds:g} s"
        return "ended before it answered"

    @property
    def told(self) -> str:
        """An account of it, for errors and the log."""
        text = f"{_PROBED}; the first process, which was sent one, failed: {self.error}"
        shown = last_lines(self.stderr_tail) if isinstance(self.error, RequestTimeoutError) else []
        return "; ".join([text, *shown])


_PROBED = (
    f"revision={HANDSHAKE!r} leaves out the probe (server/discover) that comes before initialize"
)


def _peer(
    channel: Channel,
    revisions: Revisions,
    application: ClientApplication,
    max_concurrent_requests: int,
) -> Peer:
    connection = Connection("client", revisions, application.describe)
    return Peer(
        connection,
        traced(channel, "client"),
        application,
        max_concurrent_requests=max_concurrent_requests,
    )


def _pin_hint(peer: Peer) -> str:
    """What else a user may try whose server did not bear the probe."""
    return "" if peer.connection.without_probe is None else _PROBED


def _explained(
    error: ConnectionClosedError | RequestTimeoutError | ServerStartError,
    target: Target,
    timeouts: Timeouts,
    more: str,
) -> McpError:
    """An error of the opening, with more to say of it."""
    match error:
        case RequestTimeoutError():
            return RequestTimeoutError(f"{error.method}{_with(target)}", timeouts.opening, more)
        case ServerStartError():
            return error.with_more(more)
        case ConnectionClosedError():
            return ConnectionClosedError(f"{error}; {more}") if more else error


async def _open_in_time(
    peer: Peer, process: ProcessChannel, timeouts: Timeouts, deadline: float
) -> None:
    """Come to an agreement with a process; see `Timeouts.probe` for how long it may be silent.

    Raises:
        RequestTimeoutError: No answer in time.
        McpError: The server refused, or ended.
    """
    left = max(0.0, deadline - anyio.current_time())
    silent = (timeouts.probe + left) / 2
    failure: Exception | None = RequestTimeoutError("opening the session", silent)

    async def watch() -> None:
        await anyio.sleep(silent)
        if peer.connection.without_probe is not None and process.took_input:
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            await peer.open(timeouts.probe, left)
            failure = None
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # a frame that holds the exception that holds the frame


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
    if not isinstance(target, Sequence):
        return ""
    from ..command_masking import masked_command

    return f" with {masked_command(target)!r}"


def _over_http(target: str | bytes, revisions: Revisions, http: HttpOptions) -> Revisions:
    """The revisions to offer at a URL.

    Raises:
        TypeError: The text is none.
        RevisionError: The transport that was asked for belongs to none of them.
    """
    if not isinstance(target, str) or not target.lower().startswith(("http://", "https://")):
        from ..command_masking import masked_command

        raise TypeError(
            "expected a command as a list of words, or a URL that begins with http:// or "
            f"https://, got the text {masked_command(str(target).split())!r}"
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

    headers: WatchedFields | None = None
    given = http.headers
    if given is not None:
        cache = application.known.cache
        make = given if callable(given) else lambda: given
        headers = cache.before_private = WatchedFields(make, cache.forget_private)
    settings = HttpSettings(headers, http.auth, http.client, timeouts.connect, timeouts.silence)
    application.marks.mirrored = True
    marked = application.marks.headers_for
    renewed = application.known.session_lost
    heard = application.known.standing.stream_changed
    channel = HttpChannel(url, revisions, settings, http.transport, marked, renewed, heard)
    async with _beside(channel.run, channel.close):
        yield channel


@asynccontextmanager
async def _process(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | None,
    first: _FirstProcess | None,
) -> AsyncGenerator[ProcessChannel, None]:
    from ..transports.process import BRIEF, open_process  # starting processes costs import time

    try:
        channel = await open_process(argv, env=env, cwd=cwd, patience=BRIEF)
    except ServerStartError as error:
        if first is None:
            raise
        raise error.with_more(first.told) from first.error
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
