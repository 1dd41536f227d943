"""Results that a client keeps while they are fresh, and gives in place of asking again.

A result says itself for how long it may be used. It is kept as JSON, so that whoever gets it owns
it. What is private to a user is kept for as long as the client acts for that user; nothing is
fetched before it is asked for.

Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from .._wire import UNWRITABLE, EncodingError, encode, to_builtins

TRACE_FIELDS = frozenset({"traceparent", "tracestate", "baggage"})
"""Header fields that differ from request to request, and say nothing of who asks."""

_MOST_TTL = 2**53  # milliseconds: time without end

_canonical = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True)
class Caching:
    """How much a client keeps.

    Attributes:
        entries: Most results at a time; those not used for longest go first.
        size: Most bytes of all of them, as JSON.
        clock: Gives seconds that only go forward.
    """

    entries: int = 512
    size: int = 16 * 2**20
    clock: Callable[[], float] = time.monotonic


class Key(NamedTuple):
    """What a kept result answers: the method, and the params that decide about the result."""

    method: str
    params: bytes


class _Kept(NamedTuple):
    """A result.

    Attributes:
        json: The result.
        fresh_until: The moment it becomes stale.
        private: Whether it is meant for one user alone.
        uri: The resource that was read, if one was.
    """

    json: bytes
    fresh_until: float
    private: bool
    uri: str | None


class ResponseCache:
    """The results that one client keeps.

    Args:
        settings: How many; `None` to keep none.

    Attributes:
        before_private: Awaited before something private is given: it forgets what is private if
            the client acts for another user by now. `None` where nothing tells.
    """

    def __init__(self, settings: Caching | None) -> None:
        self._settings = settings or Caching(0, 0)
        self._kept: dict[Key, _Kept] = {}
        self._size = 0
        self.before_private: Callable[[], Awaitable[object]] | None = None
        self.drops = 0
        """How often something was dropped as out of date: what was asked before may be so, too."""

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Drop all: the next call of each kind asks the server."""
        self.drops += 1
        self._drop(lambda key, kept: True)

    def forget(self, method: str) -> None:
        """Drop all results of one method, every page of a list."""
        self.drops += 1
        self._drop(lambda key, kept: key.method == method)

    def forget_private(self) -> None:
        """Drop what is meant for one user alone: the client acts for another one from now on."""
        self.drops += 1
        self._drop(lambda key, kept: kept.private)

    def forget_resource(self, uri: str) -> None:
        """Drop what was read of a resource, or of another one that it is a part of."""
        self.drops += 1
        self._drop(lambda key, kept: kept.uri is not None and is_part(uri, kept.uri))

    def key(
        self, method: str, params: Any, meta: Mapping[str, Any] | None, unmeant: tuple[str, ...]
    ) -> Key | None:
        """What a result is kept under.

        Args:
            params: Typed params, or `None`.
            meta: What the user adds to `_meta`.
            unmeant: Keys of `_meta` that mean nothing for the result.

        Returns:
            The key, or `None` if nothing is kept at all, or they have no JSON form.
        """
        if not self._settings.entries:
            return None
        try:
            wire: dict[str, Any] = {} if params is None else to_builtins(params)
            wire.pop("_meta", None)
            more = {name: value for name, value in (meta or {}).items() if name not in unmeant}
            return Key(method, _canonical([wire, more] if more else [wire]))
        except UNWRITABLE:
            return None

    async def recall(self, key: Key) -> bytes | None:
        """The result under a key as JSON, if it is still fresh and meant for who asks now."""
        found = self.find(key)
        if found is None or self.before_private is None or not self._kept[key].private:
            return found
        await self.before_private()
        return self.find(key)

    def find(self, key: Key) -> bytes | None:
        """The result under a key as JSON, if it is still fresh."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._settings.clock() >= kept.fresh_until:
            self._remove(key)
            return None
        self._kept[key] = self._kept.pop(key)  # the last one used stands last
        return kept.json

    def keep(self, key: Key, uri: str | None, result: Any, drops: int) -> None:
        """Keep a typed result that has just come, for as long as it says.

        Args:
            uri: The resource that was read, if one was.
            drops: The attribute of that name when the result was asked for.
        """
        ttl: int = getattr(result, "ttl_ms", 0)
        if ttl <= 0 or drops != self.drops:
            return
        until = self._settings.clock() + min(ttl, _MOST_TTL) / 1000
        try:
            kept = _Kept(encode(result), until, result.cache_scope != "public", uri)
        except EncodingError:  # nested so deep that it could just be read
            return
        if len(kept.json) > self._settings.size:
            return
        self._remove(key)
        self._kept[key] = kept
        self._size += len(kept.json)
        while len(self._kept) > self._settings.entries or self._size > self._settings.size:
            self._remove(next(iter(self._kept)))

    def _drop(self, stale: Callable[[Key, _Kept], bool]) -> None:
        for key in [key for key, kept in self._kept.items() if stale(key, kept)]:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= len(kept.json)


class WatchedFields:
    """Makes the header fields of HTTP requests, and notices when they are those of another user.

    Args:
        make: Makes them, at once or when awaited.
        changed: Called when they are not what they were, but for those of a trace.
    """

    def __init__(
        self,
        make: Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]],
        changed: Callable[[], None],
    ) -> None:
        self._make = make
        self._changed = changed
        self._last: dict[str, str] | None = None

    async def __call__(self) -> Mapping[str, str]:
        """The fields of the next request."""
        made = self._make()
        fields = await made if inspect.isawaitable(made) else made
        now = {name: fields[name] for name in fields or () if name.lower() not in TRACE_FIELDS}
        if self._last is not None and now != self._last:
            self._changed()
        self._last = now
        return fields


def is_part(uri: str, whole: str) -> bool:
    """Whether a URI is another one, or names a part of what that names.

    Source: server/resources (subscriptions: the URI of an update may be that of a sub-resource).
    """
    return uri == whole or uri.startswith(f"{whole.rstrip('/')}/")


def drop_oldest(entries: dict[str, Any], limit: int) -> None:
    """Remove the entries that were added first, until at most `limit` are left."""
    while len(entries) > limit:
        del entries[next(iter(entries))]
