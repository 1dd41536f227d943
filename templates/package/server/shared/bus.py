"""Messages among the processes that serve together: changes to all, and letters to one.

All workers read the changes in the same order. Each worker has a cursor, so no change is lost while
a connection to the engine is restored. `Changes.gap` marks that a reader may have missed changes,
and has to reload its whole state. A letter goes to the inbox of one worker. A worker is alive while
it calls `beat` regularly.
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
"""Seconds after its last `beat` for which a worker counts as alive."""

WAIT_SECONDS = 1.0
"""Seconds for which `changes` and `receive` wait before they return without messages."""

KEPT_CHANGES = 10_000
"""Most stored changes. A worker whose cursor is older gets a gap."""

LETTERS = 1000
"""Most letters in an inbox; the oldest are dropped."""


class SharedStateError(TransportError):
    """The engine of the shared state can't be reached, or refused a command.

    The text contains no password.
    """


class SharedStateFullError(SharedStateError):
    """The engine has no room for what a client wants to store; the text says for what."""


class Changes(msgspec.Struct, frozen=True):
    """Changes since a cursor.

    Attributes:
        cursor: The cursor after these changes.
        changes: The changes, in the order of their publication.
        gap: Whether changes before these may have been missed.
    """

    cursor: str
    changes: Sequence[bytes] = ()
    gap: bool = False


class Bus(Protocol):
    """Messages among workers. All methods raise `SharedStateError` if the engine fails."""

    async def publish(self, change: bytes) -> None:
        """Send a change to all workers, including the sender."""
        ...

    async def changes(self, cursor: str | None) -> Changes:
        """Wait for changes, for `WAIT_SECONDS` at most.

        Args:
            cursor: The cursor of the last call; `None` returns the current cursor at once.
        """
        ...

    async def send(self, worker: str, letter: bytes, client: str = "") -> bool:
        """Put a letter into the inbox of a worker; `False` if the worker is not alive.

        Args:
            worker: The worker.
            letter: The letter.
            client: Identifies the client whose share of the inbox the letter takes.

        Raises:
            SharedStateFullError: The letters of all clients, or of this one, have too many bytes.
        """
        ...

    async def receive(self, worker: str) -> Sequence[bytes]:
        """Wait for letters, for `WAIT_SECONDS` at most, and take them out of the inbox."""
        ...

    async def beat(self, worker: str) -> None:
        """Count a worker as alive for another `ALIVE_SECONDS`."""
        ...


class MemoryBus:
    """A bus among the applications of one event loop."""

    def __init__(self) -> None:
        self._stored: deque[tuple[int, bytes]] = deque(maxlen=KEPT_CHANGES)
        self._numbers = itertools.count(1)
        self._last = 0
        self._inboxes: dict[str, deque[bytes]] = {}
        self._alive: dict[str, float] = {}
        self._news = anyio.Event()

    async def publish(self, change: bytes) -> None:
        """Append a change."""
        self._last = next(self._numbers)
        self._stored.append((self._last, change))
        self._wake()

    async def changes(self, cursor: str | None) -> Changes:
        """Wait for changes."""
        if cursor is None:
            return Changes(str(self._last))
        after = int(cursor)
        if after == self._last:
            await self._wait()
        gap = bool(self._stored) and self._stored[0][0] > after + 1
        return Changes(
            str(self._last), [change for number, change in self._stored if number > after], gap
        )

    async def send(self, worker: str, letter: bytes, client: str = "") -> bool:
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
