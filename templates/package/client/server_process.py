"""A server process as the target of a client.

A process that ends after the probe, or does not respond, is restarted once, with `initialize` as
the first message. A process that has not read the probe is slow, or has failed for another reason:
the client waits for the process, or raises its failure. Output on standard error restarts timeouts.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from ..channel import Channel
from ..errors import ConnectionClosedError, RequestTimeoutError, ServerStartError, last_lines
from ..facts import Revisions
from ..runtime.time_limits import TimeLimit
from .base import AnyClient, ClientApplication
from .client_settings import Timeouts
from .connect import PROBED, ClientPeer, explain_error, new_peer, probe_advice, run_concurrently

if TYPE_CHECKING:  # starting processes costs import time
    from ..transports.process import ProcessChannel

_logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_with_process(
    client_class: type[AnyClient],
    argv: Sequence[str],
    revisions: Revisions,
    application: ClientApplication,
    env: Mapping[str, str] | None,
    cwd: str | None,
    restarting: Callable[..., Any] | None,
) -> AsyncGenerator[AnyClient, None]:
    """Start a server, twice if necessary, and open a session with it; see `open_client`.

    Args:
        restarting: Creates a `RestartingChannel` from the process and a function that starts
            another process; `None` to end the session with the process.
    """
    from ..transports.process import ShutdownTimeouts, open_process

    timeouts = application.settings.timeouts
    whole = TimeLimit(timeouts.opening, max(timeouts.opening, timeouts.longest_opening))
    first: _FirstProcess | None = None
    lasting: Any = None
    while True:
        async with _process(argv, env, cwd, first) as process:
            channel: Channel = process
            if restarting is not None:
                start = partial(open_process, argv, env=env, cwd=cwd)
                channel = lasting = restarting(process, start)
            peer = new_peer(channel, revisions, application)
            async with run_concurrently(peer.run, peer.close):
                try:
                    await _open_in_time(peer, process, timeouts, whole)
                except (ConnectionClosedError, RequestTimeoutError, ServerStartError) as error:
                    handshakes = peer.client_connection.without_probe
                    if handshakes is None or not process.took_input or not whole.left():
                        more, cause = probe_advice(peer) if process.took_input else "", None
                        if first is not None:
                            more, cause = first.description, first.error
                        raise explain_error(error, argv, round(whole.seconds, 2), more) from cause
                    first = _FirstProcess(error, process.stderr_tail)
                    revisions = handshakes
                else:
                    process.timeouts = ShutdownTimeouts()
                    if lasting is not None:
                        lasting.session_opened(peer)
                    yield client_class(peer, application)
                    return
        from ..command_masking import masked_command  # its patterns take long to compile

        command = masked_command(argv)
        _logger.warning("server %r %s; it was started anew. %s", command, first.cause, PROBED)


@dataclass(frozen=True)
class _FirstProcess:
    """A server process that the probe may have ended.

    Attributes:
        error: The failure.
        stderr_tail: The last lines of its standard error.
    """

    error: ConnectionClosedError | RequestTimeoutError | ServerStartError
    stderr_tail: tuple[str, ...]

    @property
    def cause(self) -> str:
        """A short description of the failure."""
        if isinstance(self.error, RequestTimeoutError):
            return f"was silent for {self.error.seconds:g} s"
        return "ended before it answered"

    @property
    def description(self) -> str:
        """The failure, for error texts."""
        text = f"{PROBED}; the first process, which was sent one, failed: {self.error}"
        shown = last_lines(self.stderr_tail) if isinstance(self.error, RequestTimeoutError) else []
        return "; ".join([text, *shown])


async def _open_in_time(
    peer: ClientPeer, process: ProcessChannel, timeouts: Timeouts, whole: TimeLimit
) -> None:
    """Open a session with a process, within the timeouts of the probe and of opening.

    Raises:
        RequestTimeoutError: No response in time.
        McpError: The server refused the session, or has ended.
    """
    left = whole.left()
    first_silence = (timeouts.probe + left) / 2
    silence = TimeLimit(first_silence, max(first_silence, timeouts.longest_opening / 2))
    failure: Exception | None = RequestTimeoutError("opening the session", first_silence)

    async def watch() -> None:
        while left := silence.left():  # noqa: ASYNC110 - the end of the limit moves
            await anyio.sleep(left)
        if peer.client_connection.without_probe is not None and process.took_input:
            tasks.cancel_scope.cancel()

    def extend() -> None:
        whole.begin_anew()
        silence.begin_anew()
        peer.extend_opening(whole.left())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        tasks.start_soon(process.follow_stderr, extend)
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
            del failure  # breaks the reference cycle of exception and frame


@asynccontextmanager
async def _process(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | None,
    first: _FirstProcess | None,
) -> AsyncGenerator[ProcessChannel, None]:
    from ..transports.process import BRIEF, open_process  # starting processes costs import time

    try:
        channel = await open_process(argv, env=env, cwd=cwd, timeouts=BRIEF)
    except ServerStartError as error:
        if first is None:
            raise
        raise error.with_more(first.description) from first.error
    try:
        yield channel
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()
