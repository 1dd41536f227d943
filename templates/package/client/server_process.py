"""A server process as the target of a client.

A process that ends after the probe, or stays silent, is started anew, once, and hears `initialize`
first. One that has not read the probe yet is merely slow, or failed by itself: it is waited for, or
its failure stands.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from ..errors import ConnectionClosedError, RequestTimeoutError, ServerStartError, last_lines
from ..facts import Revisions
from ..runtime.peer import Peer
from .base import ClientApplication
from .connect import PROBED, Face, MakeFace, Timeouts, beside, explained, new_peer, pin_hint

if TYPE_CHECKING:  # starting processes costs import time
    from ..transports.process import ProcessChannel

_logger = logging.getLogger(__name__)


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
    """Open a session with a server that is started, perhaps twice; see `open_client`."""
    from ..transports.process import ShutdownTimeouts

    deadline = anyio.current_time() + timeouts.opening
    first: _FirstProcess | None = None
    while True:
        async with _process(argv, env, cwd, first) as process:
            peer = new_peer(process, revisions, application, max_concurrent_requests)
            async with beside(peer.run, peer.close):
                try:
                    await _open_in_time(peer, process, timeouts, deadline)
                except (ConnectionClosedError, RequestTimeoutError, ServerStartError) as error:
                    handshakes = peer.connection.without_probe
                    in_time = anyio.current_time() < deadline
                    if handshakes is None or not process.took_input or not in_time:
                        more, cause = pin_hint(peer) if process.took_input else "", None
                        if first is not None:
                            more, cause = first.told, first.error
                        raise explained(error, argv, timeouts, more) from cause
                    first = _FirstProcess(error, process.stderr_tail)
                    revisions = handshakes
                else:
                    process.timeouts = ShutdownTimeouts()
                    yield face(peer, application, timeouts.limit, timeouts.listing)
                    return
        from ..command_masking import masked_command  # its patterns take long to compile

        command = masked_command(argv)
        _logger.warning("server %r %s; it was started anew. %s", command, first.how, PROBED)


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
        text = f"{PROBED}; the first process, which was sent one, failed: {self.error}"
        shown = last_lines(self.stderr_tail) if isinstance(self.error, RequestTimeoutError) else []
        return "; ".join([text, *shown])


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
        raise error.with_more(first.told) from first.error
    try:
        yield channel
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()
