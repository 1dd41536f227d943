"""A server process whose lifecycle is unknown; see `probing`.

A process that ends after the probe, or does not respond, is started once more, with `initialize` as
the first message. A process that has not read the probe is slow, or has failed for another reason:
the client waits for the process, or raises its failure.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio

from ..errors import ConnectionClosedError, RequestTimeoutError, ServerStartError, last_lines
from ..facts import Revisions
from ..runtime.time_limits import TimeLimit
from .opening import ClientPeer, run_concurrently
from .probing import PROBED, ProbingPeer
from .server_process import FAILURES, ProcessOpening

if TYPE_CHECKING:  # starting processes costs import time
    from ..transports.process import ProcessChannel

_logger = logging.getLogger(__name__)


class ProbedProcessOpening(ProcessOpening):
    """Starts a server, twice if the probe may have ended it, and opens a session with it."""

    _process: ProcessChannel | None = None
    _without_probe: Revisions | None = None
    _silence: TimeLimit | None = None

    async def open(self, stack: AsyncExitStack, revisions: Revisions) -> ClientPeer:
        try:
            return await stack.enter_async_context(self.session(revisions))
        except FAILURES as error:
            process, handshakes = self._process, self._without_probe
            if process is None or not process.took_input:
                raise self.explained(error, "") from None
            if handshakes is None or not self.whole.left():
                raise self.explained(error, "" if handshakes is None else PROBED) from None
            first, tail = error, process.stderr_tail
        from ..command_masking import masked_command  # its patterns take long to compile

        command = masked_command(self._argv)
        _logger.warning("server %r %s; it was started anew. %s", command, _cause(first), PROBED)
        try:
            return await stack.enter_async_context(self.session(handshakes))
        except FAILURES as error:
            raise self.explained(error, _description(first, tail)) from first

    async def negotiate(self, peer: ClientPeer, process: ProcessChannel) -> None:
        self._process = process
        seconds = (self.timeouts.probe + self.whole.left()) / 2
        self._silence = silence = TimeLimit(
            seconds, max(seconds, self.timeouts.longest_opening / 2)
        )
        watching = anyio.CancelScope()

        async def watch() -> None:
            with watching:
                while left := silence.left():  # noqa: ASYNC110 - the end of the limit moves
                    await anyio.sleep(left)
                if _without_probe(peer) is not None and process.took_input:
                    attempt.cancel()

        async def end() -> None:
            watching.cancel()

        try:
            with anyio.CancelScope() as attempt:
                async with run_concurrently(watch, end):
                    await super().negotiate(peer, process)
        finally:
            self._without_probe = _without_probe(peer)
        if attempt.cancelled_caught:
            raise RequestTimeoutError("opening the session", seconds)

    def extend(self, peer: ClientPeer) -> None:
        if self._silence is not None:
            self._silence.begin_anew()
        super().extend(peer)


def _without_probe(peer: ClientPeer) -> Revisions | None:
    return peer.without_probe if isinstance(peer, ProbingPeer) else None


def _cause(error: ConnectionClosedError | RequestTimeoutError | ServerStartError) -> str:
    """A short description of the failure of the first process."""
    if isinstance(error, RequestTimeoutError):
        return f"was silent for {error.seconds:g} s"
    return "ended before it answered"


def _description(
    error: ConnectionClosedError | RequestTimeoutError | ServerStartError,
    stderr_tail: tuple[str, ...],
) -> str:
    """The failure of the first process, for error texts."""
    text = f"{PROBED}; the first process, which was sent one, failed: {error}"
    shown = last_lines(stderr_tail) if isinstance(error, RequestTimeoutError) else []
    return "; ".join([text, *shown])
