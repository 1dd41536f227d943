"""A server process as the target of a client: a command, or the path of a script.

Output of the process on standard error restarts timeouts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeGuard

import anyio

from ..channel import Channel
from ..errors import ConnectionClosedError, McpError, RequestTimeoutError, ServerStartError
from ..facts import Revisions
from ..runtime.time_limits import TimeLimit
from .application import ClientApplication
from .connect import SCRIPTS, AnyTarget, Opening, TargetKind, is_config_path
from .opening import ClientPeer, explain_error, new_peer, run_concurrently

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


class CommandOptions(TypedDict, total=False):
    """Options of `connect` for a command as target.

    Attributes:
        env: Environment of the server process.
        cwd: Working directory of the server process.
    """

    env: Mapping[str, str] | None
    cwd: str | None


def script_command(path: PathLike[str]) -> list[str]:
    """The command that runs a script.

    Raises:
        OSError: The script can't be read.
        ValueError: The path has another suffix.
    """
    script = Path(path).absolute()
    program = SCRIPTS.get(script.suffix)
    if program is None:
        raise ValueError(f"expected the path of a script ({', '.join(SCRIPTS)}), got {path}")
    with script.open("rb"):
        return [program, str(script)]


def is_command(target: AnyTarget) -> TypeGuard[Sequence[str] | PathLike[str]]:
    """Whether a target is a command, as the words of its line, or the path of a script."""
    if isinstance(target, PathLike):
        return not is_config_path(target)
    return isinstance(target, Sequence) and not isinstance(target, str | bytes)


def command_kind(
    process_class: type[ProcessOpening] = ProcessOpening,
    restarting: Callable[[ClientApplication], Callable[..., Any] | None] | None = None,
    options: frozenset[str] = frozenset(),
) -> TargetKind:
    """Commands as a kind of target.

    Args:
        process_class: Starts a process and opens a session with it.
        restarting: Returns what makes a channel that starts another process; `None` for no such.
        options: Further options of commands.
    """

    @asynccontextmanager
    async def open_command(
        opening: Opening, target: Sequence[str] | PathLike[str]
    ) -> AsyncGenerator[Any, None]:
        argv = script_command(target) if isinstance(target, PathLike) else target
        application, own = opening.application(), opening.options
        process = process_class(
            argv,
            own.get("env"),
            own.get("cwd"),
            application,
            None if restarting is None else restarting(application),
        )
        async with AsyncExitStack() as stack:
            peer = await process.open(stack, opening.revisions)
            await application.session_opened(peer)
            yield opening.client_class(peer, application)

    return TargetKind(
        "a command as a list of words, or a script as pathlib.Path",
        is_command,
        open_command,
        CommandOptions.__optional_keys__ | options,
    )
