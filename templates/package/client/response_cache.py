"""The client's response cache: results that the server declared fresh for some time.

Results are stored as JSON, so that each caller gets objects of its own. Private results are dropped
when the client acts for another user. Nothing is prefetched.

Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import Any, NamedTuple, TypedDict

import anyio.lowlevel
import msgspec

from .._wire import UNREADABLE, UNWRITABLE, EncodingError, encode, to_builtins
from ..errors import RemoteError
from ..facts import Method
from ..protocol.lifecycle import Session
from ..runtime.peer import Peer
from .application import ClientApplication, Fields, Handlers, MakeFields
from .client_settings import Caching, ClientSettings, Identity
from .pipeline import RequestOptions, RequestPipeline
from .server_state import TOOLS_LIST, is_part

TRACE_FIELDS = frozenset({"traceparent", "tracestate", "baggage"})
"""Header fields that differ from request to request, and do not identify the user."""

_MAX_TTL = 2**53  # milliseconds

_canonical = msgspec.json.Encoder(order="deterministic").encode


class Key(NamedTuple):
    """The key of a result: the method, and the params on which the result depends."""

    method: str
    params: bytes


class _Entry(NamedTuple):
    """A cached result.

    Attributes:
        json: The result.
        fresh_until: The time at which the result becomes stale.
        private: Whether the result belongs to one user.
        uri: The resource that was read, or `None`.
    """

    json: bytes
    fresh_until: float
    private: bool
    uri: str | None


class CacheOptions(TypedDict, total=False):
    """Options of `connect` for any target.

    Attributes:
        cache: Bounds of the response cache; `False` for no cache. Private results are dropped when
            `headers` returns other fields than before. Changes of credentials in `auth` and
            `http_client` are not detected: open a client for each user, or call
            `client.cache.forget_private()`.
    """

    cache: Caching | bool


class ResponseCache:
    """The cached results of one client.

    Args:
        settings: The bounds; `None` for no cache.

    Attributes:
        drops: Number of invalidations; a result is not cached if this changed during its request.
        before_private: Awaited before a private result is used, to drop private results if the
            user has changed. `None` if a change of the user can't be detected.
    """

    def __init__(self, settings: Caching | None) -> None:
        self.drops = 0
        self._settings = settings or Caching(entries=0)
        self._entries: dict[Key, _Entry] = {}
        self._size = 0
        self.before_private: Callable[[], Awaitable[object]] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Drop all results."""
        self._drop(lambda key, entry: True)

    def forget(self, method: str) -> None:
        """Drop all results of one method, which includes every page of a list."""
        self._drop(lambda key, entry: key.method == method)

    def forget_stale(self, methods: Collection[str] | None, uri: str | None) -> None:
        """Drop what a notification or a refusal made stale; see `OnStale`."""
        if methods is None:
            self.clear()
        elif methods:
            self._drop(lambda key, entry: key.method in methods)
        if uri is not None:
            self.forget_resource(uri)

    def forget_private(self) -> None:
        """Drop all private results, since the client acts for another user from now on."""
        self._drop(lambda key, entry: entry.private)

    def forget_resource(self, uri: str) -> None:
        """Drop the contents of a resource, and of resources that it is a part of."""
        self._drop(lambda key, entry: entry.uri is not None and is_part(uri, entry.uri))

    def key(
        self, method: str, params: Any, meta: Mapping[str, Any] | None, ignored: tuple[str, ...]
    ) -> Key | None:
        """The key of a result.

        Args:
            method: The method.
            params: Typed params, or `None`.
            meta: Members that the user adds to `_meta`.
            ignored: Keys of `_meta` on which the result does not depend.

        Returns:
            The key; `None` if there is no cache, or the params have no JSON form.
        """
        if not self._settings.entries:
            return None
        try:
            wire: dict[str, Any] = {} if params is None else to_builtins(params)
            wire.pop("_meta", None)
            more = {name: value for name, value in (meta or {}).items() if name not in ignored}
            return Key(method, _canonical([wire, more] if more else [wire]))
        except UNWRITABLE:
            return None

    async def recall(self, key: Key) -> bytes | None:
        """The result of a key as JSON, if it is fresh and belongs to the current user."""
        result = self.find(key)
        if result is None or self.before_private is None or not self._entries[key].private:
            return result
        await self.before_private()
        return self.find(key)

    def find(self, key: Key) -> bytes | None:
        """The result of a key as JSON, if it is fresh."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._settings.clock() >= entry.fresh_until:
            self._remove(key)
            return None
        self._entries[key] = self._entries.pop(key)  # the most recently used entry is last
        return entry.json

    def fields(self, make: MakeFields) -> Fields:
        """Wrap the user's function for header fields, to detect a change of the user."""
        self.before_private = watched = WatchedFields(make, self.forget_private)
        return watched

    def keep(self, key: Key, uri: str | None, result: Any, drops: int) -> None:
        """Store a typed result that was just received, if it declares a time to live.

        Args:
            key: Its key.
            uri: The resource that was read, or `None`.
            result: The result.
            drops: The value of the attribute `drops` when the result was requested.
        """
        ttl: int = getattr(result, "ttl_ms", 0)
        if ttl <= 0 or drops != self.drops:
            return
        until = self._settings.clock() + min(ttl, _MAX_TTL) / 1000
        try:
            entry = _Entry(encode(result), until, result.cache_scope != "public", uri)
        except EncodingError:  # nested too deeply to be encoded
            return
        if len(entry.json) > self._settings.size:
            return
        self._remove(key)
        self._entries[key] = entry
        self._size += len(entry.json)
        while len(self._entries) > self._settings.entries or self._size > self._settings.size:
            self._remove(next(iter(self._entries)))

    def _drop(self, stale: Callable[[Key, _Entry], bool]) -> None:
        self.drops += 1
        for key in [key for key, entry in self._entries.items() if stale(key, entry)]:
            self._remove(key)

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(entry.json)


class WatchedFields:
    """The header fields of HTTP requests; detects a change of the user.

    Args:
        make: Returns the fields, or an awaitable of the fields.
        changed: Called when fields other than `TRACE_FIELDS` have changed.
    """

    def __init__(
        self,
        make: MakeFields,
        changed: Callable[[], None],
    ) -> None:
        self._make = make
        self._changed = changed
        self._last: dict[str, str] | None = None

    async def __call__(self) -> Mapping[str, str]:
        """The fields of the next request."""
        result = self._make()
        fields = await result if inspect.isawaitable(result) else result
        now = {name: fields[name] for name in fields or () if name.lower() not in TRACE_FIELDS}
        if self._last is not None and now != self._last:
            self._changed()
        self._last = now
        return fields


class CachedRequests(RequestPipeline):
    """Returns results from the cache while they are fresh."""

    def __init__(self, peer: Peer, session: Session, application: CachingApplication) -> None:
        super().__init__(peer, session, application)
        self._cache = application.cache

    def _call(self, row: Method, options: RequestOptions, params: Any) -> Coroutine[Any, Any, Any]:
        if row.cacheable:
            trace_keys = self.session.revision.facts.meta.trace_keys
            key = self._cache.key(row.name, params, options.meta, trace_keys)
            if key is not None:
                return self._cached(row, options, params, key)
        return super()._call(row, options, params)

    async def _cached(self, row: Method, options: RequestOptions, params: Any, key: Key) -> Any:
        self.peer.callers.check_open()
        encoded = await self._cache.recall(key)
        if encoded is not None:
            await anyio.lowlevel.checkpoint()
            try:
                result = self.connection.state.result_decoder(row)(encoded)
            except UNREADABLE:  # nested too deeply to be decoded at this depth of the stack
                pass
            else:
                options.from_cache = True
                return self._filter_tools(result) if row.name == TOOLS_LIST else result
        drops = self._cache.drops
        result = await super()._call(row, options, params)
        if not options.had_input:
            self._cache.keep(key, getattr(params, "uri", None), result, drops)
        return result

    async def _all_pages(
        self, row: Method, options: RequestOptions, fields: Mapping[str, Any]
    ) -> list[Any]:
        """The items of all pages; requests them anew if the cursor of a cached page has expired.

        Source: server/utilities/caching#interaction-with-pagination.
        """
        try:
            return await super()._all_pages(row, options, fields)
        except RemoteError:
            if not options.from_cache:
                raise
        self._cache.forget(row.name)
        return await super()._all_pages(row, options, fields)


class CachingApplication(ClientApplication):
    """The application of a client that has a cache."""

    def __init__(
        self, handlers: Handlers | None, identity: Identity, settings: ClientSettings | None = None
    ) -> None:
        super().__init__(handlers, identity, settings)
        self.cache = ResponseCache(self.settings.cache)
        self.server_state.on_stale.append(self.cache.forget_stale)

    def header_fields(self, make: MakeFields) -> Fields:
        return self.cache.fields(make)


class CachedCalls:
    """The member of clients of one server for their cache."""

    _application: Any

    @property
    def cache(self) -> ResponseCache:
        """The cache of results that the server declared fresh for some time.

        Clear the cache to get a list in its current state.
        """
        cache: ResponseCache = self._application.cache
        return cache
