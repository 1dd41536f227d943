"""How a client comes to a session: a channel to the target, an agreement, and the way back.

Whatever the target is, the body of `open_client` (in `targets`) runs between the same two ends: the
opening has succeeded before it, and after it everything that was started has ended. What it raises
leaves as it is, never inside a group. Processes and URLs as targets have modules of their own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable
from urllib.parse import urlsplit

import anyio

from ..channel import Channel
from ..errors import (
    ConnectionClosedError,
    McpError,
    RequestTimeoutError,
    ServerStartError,
)
from ..facts import HANDSHAKE, Revisions
from ..json_schema.validation import VALIDATION_SECONDS
from ..protocol.connection import Connection
from ..runtime.peer import Peer
from ..runtime.trace import traced
from ..transports.http_timeouts import HTTP_TIMEOUTS, HttpTimeouts
from ..transports.memory import memory_pair
from .base import ClientApplication, ClientBase


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
        http: Further timeouts and pauses of the HTTP transports.

    Source: basic/lifecycle (timeouts); 2026-07-28: basic/patterns/cancellation (timeouts).
    """

    opening: float = 30.0
    probe: float = 5.0
    limit: float = 3600.0
    listing: float = 300.0
    validation: float = VALIDATION_SECONDS
    connect: float = 10.0
    silence: float = 60.0
    http: HttpTimeouts = HTTP_TIMEOUTS


Target: TypeAlias = str | Sequence[str] | Servable | Channel
"""What to connect to: the URL of a server over HTTP, a command line, a server in this process, or a
channel of one's own."""

Face = TypeVar("Face", bound=ClientBase)
MakeFace: TypeAlias = Callable[[Peer, ClientApplication, float, float], Face]

PROBED = (
    f"revision={HANDSHAKE!r} leaves out the probe (server/discover) that comes before initialize"
)
"""What a user may try whose server does not bear the probe."""


@asynccontextmanager
async def open_session(
    face: MakeFace[Face],
    target: Target,
    place: AbstractAsyncContextManager[Channel],
    revisions: Revisions,
    application: ClientApplication,
    timeouts: Timeouts,
    max_concurrent_requests: int,
) -> AsyncGenerator[Face, None]:
    """Open a session over a channel and give its face; close both in the end.

    Raises:
        RevisionError: Client and server have no revision in common.
        RequestTimeoutError: No agreement in time.
        McpError: The channel ended.
    """
    async with place as channel:
        peer = new_peer(channel, revisions, application, max_concurrent_requests)
        async with beside(peer.run, peer.close):
            try:
                await peer.open(timeouts.probe, timeouts.opening)
            except (ConnectionClosedError, RequestTimeoutError) as error:
                more = "" if isinstance(target, str) else pin_hint(peer)  # HTTP keeps no order
                raise explained(error, target, timeouts, more) from None
            yield face(peer, application, timeouts.limit, timeouts.listing)


def new_peer(
    channel: Channel,
    revisions: Revisions,
    application: ClientApplication,
    max_concurrent_requests: int,
) -> Peer:
    """The client's end of a channel."""
    connection = Connection("client", revisions, application.describe, extra=application.extra)
    return Peer(
        connection,
        traced(channel, "client"),
        application,
        max_concurrent_requests=max_concurrent_requests,
    )


def pin_hint(peer: Peer) -> str:
    """What else a user may try whose server did not bear the probe."""
    return "" if peer.connection.without_probe is None else PROBED


def explained(
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


@asynccontextmanager
async def beside(
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


@asynccontextmanager
async def in_memory(server: Servable) -> AsyncGenerator[Channel, None]:
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
        async with beside(serve, near.close):
            yield near
    except ConnectionClosedError:
        if crash is None:
            raise
    if crash is not None:
        raise crash
