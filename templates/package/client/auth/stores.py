"""Where grants and registrations are kept: the interface, and a store in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Lock
from typing import Protocol

import anyio

_POLL_SECONDS = 0.01


class Store(Protocol):
    """Keeps records of one user by key. Records hold secrets.

    Several tasks and processes may share one. A store of several users is given to each as one that
    adds the user to the key.
    """

    async def load(self, key: str) -> bytes | None:
        """The record of a key; `None` if there is none."""
        ...

    async def save(self, key: str, record: bytes | None) -> None:
        """Write a record whole, or remove it."""
        ...

    def lock(self, key: str) -> AbstractAsyncContextManager[object]:
        """Keep other tasks and processes from renewing what a key holds.

        It is held for a request to a token endpoint, never for a request to a server. Leaving the
        context frees it, cancelled or not.
        """
        ...


class MemoryStore:
    """Keeps records for as long as the process runs, for the event loops of all its threads."""

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._locks: dict[str, Lock] = {}

    def __repr__(self) -> str:
        return f"<MemoryStore of {len(self._records)} records>"

    async def load(self, key: str) -> bytes | None:
        """See `Store.load`."""
        return self._records.get(key)

    async def save(self, key: str, record: bytes | None) -> None:
        """See `Store.save`."""
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        """See `Store.lock`."""
        lock = self._locks.setdefault(key, Lock())
        while not lock.acquire(blocking=False):  # noqa: ASYNC110 - threads share no event of a loop
            await anyio.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            lock.release()
