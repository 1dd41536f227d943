"""Results that a client keeps while they are fresh, and gives in place of asking again.

A result says itself for how long it may be used. It is kept as JSON, so that whoever gets it owns
it. A client acts for one user, so what is private to that user may be kept as well; nothing is
fetched before it is asked for.

Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from .._wire import encode, to_builtins

STALE_AFTER: Mapping[str, tuple[str, ...]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""Requests whose results a notification makes stale."""

STALE_AFTER_FAILURE: Mapping[str, str] = {
    "tools/call": "tools/list",
    "prompts/get": "prompts/list",
    "resources/read": "resources/list",
}
"""Request to the list that is likely to be stale if the server refuses the request's params."""

READ = "resources/read"

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
    """

    def __init__(self, settings: Caching | None) -> None:
        self._settings = settings or Caching(0, 0)
        self._kept: dict[Key, _Kept] = {}
        self._size = 0
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

    def noticed(self, notification: str, params: Any) -> None:
        """Drop what a notification says is out of date."""
        if notification in STALE_AFTER:
            for method in STALE_AFTER[notification]:
                self.forget(method)
        elif notification == "notifications/resources/updated":
            self.drops += 1
            self._drop(lambda key, kept: kept.uri is not None and is_part(params.uri, kept.uri))

    def key(
        self, method: str, params: Any, meta: Mapping[str, Any] | None, unmeant: tuple[str, ...]
    ) -> Key | None:
        """What a result is kept under.

        Args:
            params: Typed params, or `None`.
            meta: What the user adds to `_meta`.
            unmeant: Keys of `_meta` that mean nothing for the result.

        Returns:
            The key, or `None` if nothing is kept at all.
        """
        if not self._settings.entries:
            return None
        wire: dict[str, Any] = {} if params is None else to_builtins(params)
        wire.pop("_meta", None)
        more = {name: value for name, value in (meta or {}).items() if name not in unmeant}
        return Key(method, _canonical([wire, more] if more else [wire]))

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
        until = self._settings.clock() + ttl / 1000
        kept = _Kept(encode(result), until, result.cache_scope != "public", uri)
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


def is_part(uri: str, whole: str) -> bool:
    """Whether a URI is another one, or names a part of what that names.

    Source: server/resources (subscriptions: the URI of an update may be that of a sub-resource).
    """
    return uri == whole or uri.startswith(f"{whole.rstrip('/')}/")
