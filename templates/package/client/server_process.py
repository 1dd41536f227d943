"""A server process as the target of a client. Output on standard error restarts timeouts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from ..channel import Channel
from ..errors import ConnectionClosedError, McpError, RequestTimeoutError, ServerStartError
from ..facts import Revisions
from ..runtime.time_limits import TimeLimit
from .base import AnyClient, ClientApplication
from .client_peer import ClientPeer
from .connect import explain_error, new_peer, run_concurrently

if TYPE_CHECKING:  # starting processes costs import time
    from ..transports.process import ProcessChannel

FAILURES = (ConnectionClosedError, RequestTimeoutError, ServerStartError)
"""How a process fails before its session is open, besides refusing the client."""


class ProcessOpening:
    """Starts a server and opens a session with it.

    Args:
        argv: The command.
        env: Environment variables of the process.
        cwd: Its folder.
        application: The client.
        restarting: Creates a `RestartingChannel` from the process and a function that starts
            another process; `None` to end the session with the process.

    Attributes:
        timeouts: The timeouts of the client.
        whole: The time limit until the session is open.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | None,
        application: ClientApplication,
        restarting: Callable[..., Any] | None,
    ) -> None:
        timeouts = self.timeouts = application.settings.timeouts
        self.whole = TimeLimit(timeouts.opening, max(timeouts.opening, timeouts.longest_opening))
        self._argv = argv
        self._env = env
        self._cwd = cwd
        self._application = application
        self._restarting = restarting

    async def open(self, stack: AsyncExitStack, revisions: Revisions) -> ClientPeer:
        """Open a session, which the stack closes; returns the client's end.

        Raises:
            RevisionError: Client and server have no revision in common.
            RequestTimeoutError: The session was not open in time.
            McpError: The server could not be started, has ended, or refused the session.
        """
        try:
            return await stack.enter_async_context(self.session(revisions))
        except FAILURES as error:
            raise self.explained(error, "") from None

    def explained(
        self, error: ConnectionClosedError | RequestTimeoutError | ServerStartError, more: str
    ) -> McpError:
        """An error of opening the session, with the command, the time limit and further text."""
        return explain_error(error, self._argv, round(self.whole.seconds, 2), more)

    @asynccontextmanager
    async def session(self, revisions: Revisions) -> AsyncGenerator[ClientPeer, None]:
        """Start a process and open a session with it; end both on exit."""
        from ..transports.process import BRIEF, ShutdownTimeouts, open_process

        process = await open_process(self._argv, env=self._env, cwd=self._cwd, timeouts=BRIEF)
        try:
            channel: Channel = process
            lasting: Any = None
            if self._restarting is not None:
                start = partial(open_process, self._argv, env=self._env, cwd=self._cwd)
                channel = lasting = self._restarting(process, start)
            peer = new_peer(channel, revisions, self._application)
            async with run_concurrently(peer.run, peer.close):
                await self.negotiate(peer, process)
                process.timeouts = ShutdownTimeouts()
                if lasting is not None:
                    lasting.session_opened(peer)
                yield peer
        finally:
            with anyio.CancelScope(shield=True):
                await process.close()

    async def negotiate(self, peer: ClientPeer, process: ProcessChannel) -> None:
        """Open the session, within the time limit.

        Raises:
            RequestTimeoutError: No response in time.
            McpError: The server refused the session, or has ended.
        """
        following = anyio.CancelScope()

        async def follow() -> None:
            with following:
                await process.follow_stderr(partial(self.extend, peer))

        async def end() -> None:
            following.cancel()

        async with run_concurrently(follow, end):
            await peer.open(self.whole.left())

    def extend(self, peer: ClientPeer) -> None:
        """Restart the time limit, after output on standard error."""
        self.whole.begin_anew()
        peer.extend_opening(self.whole.left())


@asynccontextmanager
async def open_with_process(
    client_class: type[AnyClient],
    argv: Sequence[str],
    revisions: Revisions,
    application: ClientApplication,
    env: Mapping[str, str] | None,
    cwd: str | None,
    restarting: Callable[..., Any] | None,
    opening_class: type[ProcessOpening] = ProcessOpening,
) -> AsyncGenerator[AnyClient, None]:
    """Start a server and open a session with it; see `ProcessOpening` and `open_session`."""
    opening = opening_class(argv, env, cwd, application, restarting)
    async with AsyncExitStack() as stack:
        peer = await opening.open(stack, revisions)
        yield client_class(peer, application)
