"""Stores of used ids: ids of used DPoP proofs, and of ended sealed sessions."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Protocol


class UsedIds(Protocol):
    """Stores digests of ids, each for a time."""

    async def use(self, digest: bytes, seconds: float) -> bool:
        """Store the digest of an id; `False` if it is stored already.

        Args:
            digest: The digest.
            seconds: Least seconds to store the digest, if there is room.
        """
        ...

    async def is_used(self, digest: bytes) -> bool:
        """Whether the digest of an id is stored."""
        ...


class MemoryUsedIds:
    """Stores digests in the memory of this process; the oldest are evicted.

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
        expiry = self._used.get(digest)
        return expiry is not None and expiry >= time.time()
