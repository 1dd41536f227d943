"""The sessions of one application: found by id, ended when idle or when there are too many.

Source: basic/transports#session-management (to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections import OrderedDict

import anyio

from .sessions import HttpSession
from .settings import Limits

logger = logging.getLogger(__name__)


class SessionTable:
    """The sessions of one application, the one longest unused first.

    Args:
        limits: How many there may be, and for how long.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()
        self._added = anyio.Event()
        self._closed = False

    def __len__(self) -> int:
        """How many there are."""
        return len(self._sessions)

    def get(self, identifier: str) -> HttpSession | None:
        """A session by its id. To `enter` and `leave` it keeps it from being idle."""
        return self._sessions.get(identifier)

    def touched(self, session: HttpSession) -> None:
        """Take note that a session was used just now."""
        if session.id in self._sessions:
            self._sessions.move_to_end(session.id)

    async def add(self, session: HttpSession) -> bool:
        """Enter a session; `False` if there is no room for it."""
        if self._closed:
            return False
        if len(self._sessions) >= self._limits.sessions:
            idle = next((known for known in self._sessions.values() if not known.users), None)
            if idle is None:
                return False
            self._enter(session)
            await self.end(idle)
        else:
            self._enter(session)
        return True

    async def end(self, session: HttpSession) -> None:
        """End a session, whatever goes wrong with it."""
        self._sessions.pop(session.id, None)
        try:
            with anyio.CancelScope(shield=True):
                await session.close()
        except Exception:
            logger.exception("a session did not end well")

    async def expire(self) -> None:
        """End sessions as they become idle, until cancelled."""
        seconds = self._limits.idle
        while seconds is not None:
            if not self._sessions:
                self._added = anyio.Event()
                await self._added.wait()
            await anyio.sleep_until(await self._end_idle(seconds))

    async def close_idle(self) -> None:
        """End those that nobody uses, and let no others be entered."""
        self._closed = True
        for session in list(self._sessions.values()):
            if not session.users:
                await self.end(session)

    async def close(self) -> None:
        """End them all."""
        while self._sessions:
            await self.end(next(iter(self._sessions.values())))

    async def _end_idle(self, seconds: float) -> float:
        """End what is idle for too long; return when to look again."""
        now = anyio.current_time()
        for session in list(self._sessions.values()):
            if session.users:
                continue
            if session.last_used + seconds > now:
                return session.last_used + seconds
            await self.end(session)
        return now + seconds

    def _enter(self, session: HttpSession) -> None:
        self._sessions[session.id] = session
        session.open()
        self._added.set()
