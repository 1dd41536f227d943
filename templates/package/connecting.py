"""How a client comes to a session: a channel to the target, an agreement, and the way back.

Whatever the target is, the body of `open_client` runs between the same two ends: the opening has
succeeded before it, and after it everything that was started has ended. What it raises leaves as
it is, never inside a group.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import anyio

from ._client import ClientApplication, ClientBase
from .channel import Channel
from .core.connection import Connection
from .errors import ConnectionClosedError
from .facts import Revisions
from .peer import Peer
from .trace import traced
from .transports.memory import memory_pair


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

    Source: basic/lifecycle (timeouts); 2026-07-28: basic/patterns/cancellation (timeouts).
    """

    opening: float = 30.0
    probe: float = 5.0
    limit: float = 3600.0


Target: TypeAlias = Sequence[str] | Servable | Channel
"""What to connect to: a command line, a server in this process, or a channel of one's own."""

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
    timeouts: Timeouts = Timeouts(),
) -> AsyncGenerator[Face, None]:
    """Open a session and give its face; close it, and what was started for it, in the end.

    Raises:
        ServerStartError: The server's process ended before it answered.
        RevisionError: Client and server have no revision in common.
        RequestTimeoutError: No agreement in time.
    """
    async with _channel_to(target, env, cwd) as channel:
        connection = Connection("client", revisions, application.describe)
        peer = Peer(connection, traced(channel, "client"), application)
        async with _beside(peer.run, peer.close):
            await peer.open(timeouts.probe, timeouts.opening)
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


def _channel_to(
    target: Target, env: Mapping[str, str] | None, cwd: str | None
) -> AbstractAsyncContextManager[Channel]:
    if isinstance(target, str | bytes):
        raise TypeError(f"expected a command as a list of words, got the text {target!r}")
    if isinstance(target, Sequence):
        return _process(target, env, cwd)
    if isinstance(target, Servable):
        return _in_memory(target)
    return nullcontext(target)


@asynccontextmanager
async def _process(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
) -> AsyncGenerator[Channel, None]:
    from .transports.process import open_process  # starting processes costs import time

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
