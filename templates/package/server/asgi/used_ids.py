"""Ids that count once: those of proofs that were used, and of sessions that were ended."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Protocol


class UsedIds(Protocol):
    """Stores ids, each for a time. Digests are stored, from which nobody gets an id."""

    async def use(self, digest: bytes, seconds: float) -> bool:
        """Store the digest of an id; `False` if it is stored already.

        Args:
            digest: The digest.
            seconds: How long it is kept at least, if there is room.
        """
        ...

    async def is_used(self, digest: bytes) -> bool:
        """Whether the digest of an id is stored."""
        ...


class MemoryUsedIds:
    """Stores ids in the memory of this process; the oldest make room for others.

    Args:
        limit: Most ids.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used: OrderedDict[bytes, float] = OrderedDict()

    async def use(self, digest: bytes, seconds: float) -> bool:
        """See `UsedIds.use`."""
        if await self.is_used(digest):
            return False
        now, used = time.time(), self._used
        while used and (next(iter(used.values())) < now or len(used) >= self._limit):
            used.popitem(last=False)
        used[digest] = now + seconds
        return True

    async def is_used(self, digest: bytes) -> bool:
        """See `UsedIds.is_used`."""
        return self._used.get(digest, 0.0) >= time.time()
