"""The sessions of one application: found by id, ended when idle or when there are too many.

Where one has to make room, those go first that a flood is made of: sessions whose client did
nothing after `initialize`, then those of the address that has most. So whoever opens sessions
without end ends mostly its own.

Source: basic/transports#session-management (to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections import OrderedDict, defaultdict
from ipaddress import IPv6Address
from typing import TypeAlias

import anyio

from .http_session import HttpSession
from .load import MemoryBudget
from .settings import Limits

logger = logging.getLogger(__name__)

_UNCONFIRMED_SHARE = 100  # one session in so many may be between `initialize` and what follows
_NETWORK = 8  # bytes of an IPv6 address that stand for one customer

_Sessions: TypeAlias = OrderedDict[str, HttpSession]


class SessionRegistry:
    """The sessions of one application, the one longest unused first.

    Args:
        limits: How many there may be, and for how long.
        budget: Where the bytes that they keep are counted.
    """

    def __init__(self, limits: Limits, budget: MemoryBudget) -> None:
        self._limits = limits
        self._sessions: _Sessions = OrderedDict()
        self._unconfirmed: _Sessions = OrderedDict()
        self._by_address: defaultdict[str, _Sessions] = defaultdict(OrderedDict)
        self._added = anyio.Event()
        self._closed = False
        budget.end_idle_session = self.end_largest

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
            if session.id not in self._unconfirmed:
                self._by_address[session.address].move_to_end(session.id)
            elif session.ready:
                del self._unconfirmed[session.id]
                self._by_address[session.address][session.id] = session
            else:
                self._unconfirmed.move_to_end(session.id)

    async def add(self, session: HttpSession) -> bool:
        """Enter a session; `False` if there is no room for it."""
        if self._closed:
            return False
        evicted = None
        if len(self._sessions) >= self._limits.sessions:
            evicted = self._session_to_evict()
            if evicted is None:
                return False
        self._enter(session)
        if evicted is not None:
            await self.end(evicted)
        return True

    async def end_largest(self, size: int) -> None:
        """End the idle session that keeps most bytes, if that is more than so many."""
        idle = [each for each in self._sessions.values() if not each.users and each.kept > size]
        if idle:
            await self.end(max(idle, key=lambda each: (each.id in self._unconfirmed, each.kept)))

    async def end(self, session: HttpSession) -> None:
        """End a session, whatever goes wrong with it."""
        known = self._sessions.pop(session.id, None) is not None
        if known and self._unconfirmed.pop(session.id, None) is None:
            of_address = self._by_address[session.address]
            del of_address[session.id]
            if not of_address:
                del self._by_address[session.address]
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
        self._sessions[session.id] = self._unconfirmed[session.id] = session
        session.open()
        self._added.set()

    def _session_to_evict(self) -> HttpSession | None:
        """The idle session that is to make room for another; `None` if none is idle."""
        if len(self._unconfirmed) > self._limits.sessions // _UNCONFIRMED_SHARE:
            unconfirmed = _first_idle(self._unconfirmed)
            if unconfirmed is not None:
                return unconfirmed
        most = max(self._by_address.values(), key=len, default=self._sessions)
        return _first_idle(most) or _first_idle(self._sessions)


def network_of(client: tuple[str, int] | None) -> str:
    """What stands for one client: its IPv4 address, or the network of its IPv6 address."""
    if client is None:
        return ""
    try:
        address = IPv6Address(client[0]) if ":" in client[0] else None
    except ValueError:
        address = None
    if address is None:
        return client[0]
    return str(address.ipv4_mapped or address.packed[:_NETWORK].hex())


def _first_idle(sessions: _Sessions) -> HttpSession | None:
    return next((session for session in sessions.values() if not session.users), None)
