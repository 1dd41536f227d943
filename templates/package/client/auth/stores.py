"""Stores of grants and registrations: the interface, and a store in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Lock
from typing import Protocol

import anyio

_POLL_SECONDS = 0.01


class Store(Protocol):
    """Stores the records of one user by key. Records contain secrets.

    Several tasks and processes may share a store. To store the records of several users, give each
    a store that adds the user to the key.
    """

    async def load(self, key: str) -> bytes | None:
        """The record of a key; `None` if absent."""
        ...

    async def save(self, key: str, record: bytes | None) -> None:
        """Write a record atomically; `None` removes it."""
        ...

    def lock(self, key: str) -> AbstractAsyncContextManager[object]:
        """Lock a key against other tasks and processes, while its token is refreshed.

        The lock is held for a request to a token endpoint, never for a request to an MCP server.
        Leaving the context releases the lock, also on cancellation.
        """
        ...


class MemoryStore:
    """Stores records until the process ends. Event loops of several threads may share it."""

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
        while not lock.acquire(blocking=False):  # noqa: ASYNC110 - no event works across threads
            await anyio.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            lock.release()
