"""Messages among the processes that serve together: changes to all, and letters to one.

A change goes to every worker, in one order. Each reads from a cursor of its own, so that nothing
is lost while a connection to the engine is made anew. A reader that may have missed changes is
told so by a gap: it has to take everything as changed. A letter goes to the inbox of one worker,
which is alive as long as it beats.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import anyio
import msgspec

from ...errors import TransportError

ALIVE_SECONDS = 3.0
"""Seconds after its last beat for which a worker counts as alive."""

WAIT_SECONDS = 1.0
"""Seconds for which `changes` and `receive` wait before they return with nothing."""

KEPT_CHANGES = 10_000
"""Changes that are kept for those who read late; who is later gets a gap."""

LETTERS = 1000
"""Letters that an inbox keeps; the oldest are dropped."""


class SharedStateError(TransportError):
    """The engine of the state that processes share can't be reached, or refused a command.

    The text names no password.
    """


class Changes(msgspec.Struct, frozen=True):
    """Changes since a cursor.

    Attributes:
        cursor: Where the next ones begin.
        changes: The changes, in the order of their publication.
        gap: Whether earlier ones were missed.
    """

    cursor: str
    changes: Sequence[bytes] = ()
    gap: bool = False


class Bus(Protocol):
    """Messages among workers. All methods raise `SharedStateError` if that fails."""

    async def publish(self, change: bytes) -> None:
        """Give all workers a change, the one that publishes it too."""
        ...

    async def changes(self, cursor: str | None) -> Changes:
        """Wait for changes, for `WAIT_SECONDS` at most.

        Args:
            cursor: That of the last call; `None` begins now, and does not wait.
        """
        ...

    async def send(self, worker: str, letter: bytes) -> bool:
        """Put a letter into the inbox of a worker; `False` if that is not alive."""
        ...

    async def receive(self, worker: str) -> Sequence[bytes]:
        """Wait for letters, for `WAIT_SECONDS` at most, and take them out of the inbox."""
        ...

    async def beat(self, worker: str) -> None:
        """Count a worker as alive for `ALIVE_SECONDS` more."""
        ...


class MemoryBus:
    """A bus among the applications of one event loop."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT_CHANGES)
        self._numbers = itertools.count(1)
        self._last = 0
        self._inboxes: dict[str, deque[bytes]] = {}
        self._alive: dict[str, float] = {}
        self._news = anyio.Event()

    async def publish(self, change: bytes) -> None:
        """Append a change."""
        self._last = next(self._numbers)
        self._kept.append((self._last, change))
        self._wake()

    async def changes(self, cursor: str | None) -> Changes:
        """Wait for changes."""
        if cursor is None:
            return Changes(str(self._last))
        after = int(cursor)
        if after == self._last:
            await self._wait()
        gap = bool(self._kept) and self._kept[0][0] > after + 1
        return Changes(
            str(self._last), [change for number, change in self._kept if number > after], gap
        )

    async def send(self, worker: str, letter: bytes) -> bool:
        """Put a letter into an inbox."""
        if self._alive.get(worker, 0.0) <= anyio.current_time():
            return False
        self._inboxes.setdefault(worker, deque(maxlen=LETTERS)).append(letter)
        self._wake()
        return True

    async def receive(self, worker: str) -> Sequence[bytes]:
        """Wait for letters."""
        if not self._inboxes.get(worker):
            await self._wait()
        return tuple(self._inboxes.pop(worker, ()))

    async def beat(self, worker: str) -> None:
        """Count a worker as alive."""
        now = anyio.current_time()
        self._alive = {each: until for each, until in self._alive.items() if until > now}
        self._alive[worker] = now + ALIVE_SECONDS

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _wait(self) -> None:
        with anyio.move_on_after(WAIT_SECONDS):
            await self._news.wait()
