"""Opening a session with a server whose lifecycle is unknown: a probe first, then `initialize`.

A server that does not respond to the probe in time is taken for one with a handshake.
"""

from __future__ import annotations

import anyio
import anyio.abc

from ..facts import HANDSHAKE, Revisions
from ..protocol.events import Send, StepTimedOut
from ..protocol.probe import Probe
from ..runtime.time_limits import PausableLimit, pausable
from .opening import ClientPeer

PROBED = (
    f"revision={HANDSHAKE!r} leaves out the probe (server/discover) that comes before initialize"
)
"""Advice for a server that does not tolerate the probe."""


class ProbingPeer(ClientPeer):
    """A client's end of a channel that opens the session by a probe."""

    _probe_limit: PausableLimit | None = None

    @property
    def without_probe(self) -> Revisions | None:
        """The revisions to offer without a probe, after a restart of the server.

        Some servers exit, or stop responding, if another message precedes `initialize`. `None` if
        the probe can't be the cause: none was sent, or the server itself has responded.
        """
        step = self.client_connection.first_step
        return step.handshakes if isinstance(step, Probe) else None

    @property
    def advice(self) -> str:
        """`PROBED` if the probe may be the reason why a connection failed; else an empty text."""
        return "" if self.without_probe is None else PROBED

    async def _send_first(self, first: Send, sending: anyio.abc.TaskGroup) -> None:
        if not self._is_probing():
            await super()._send_first(first, sending)
            return
        with anyio.move_on_after(self._timeouts.probe) as scope:
            with pausable(scope) as self._probe_limit:
                await super()._send_first(first, sending)
        if self._is_probing():
            for event in self.connection.receive(StepTimedOut()):  # a late response is still used
                sending.start_soon(self._handle, event)
        await self._opening.wait()

    def _is_probing(self) -> bool:
        return isinstance(self.client_connection.step, Probe)

    async def _pause(self, seconds: float) -> None:
        if self._probe_limit is not None:  # the failure says nothing about the revision
            self._probe_limit.extend(seconds + self._timeouts.probe)
        await super()._pause(seconds)
