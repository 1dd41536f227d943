"""Registered items of one kind, and the pages of their list.

A page is encoded once for each revision and sent as it is until an item is added or removed.

A cursor holds the key of the last item of a page, so it stays valid while other items are added or
removed, and becomes invalid when that item is removed. Cursors are opaque to clients.

Source: server/utilities/pagination, server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

import msgspec

from ..._wire import Raw, convert, encode, is_object, replace
from ...errors import InvalidParamsError
from ...foreign_text import safe_repr
from ...runtime.request_context import PRINCIPAL, RequestContext
from .content import check_json, expect

CacheScope: TypeAlias = Literal["public", "private"]
Cacheable: TypeAlias = Literal["tools", "prompts", "resources", "templates", "discover"]
"""Results that may have a cache hint: each list, and the result of `server/discover`."""

_CACHEABLE: tuple[Cacheable, ...] = get_args(Cacheable)


class CacheHint(msgspec.Struct, frozen=True):
    """How long a client may reuse a result, and for whom.

    The default is a result that is stale at once and private. Revisions without cache hints get
    none.

    Attributes:
        ttl_ms: Milliseconds for which the result is fresh; 0 means stale at once.
        scope: `public` if the result is the same for all users, so that a shared cache may keep
            it, even if the server requires a token; `private` limits it to users of one token.

    Raises:
        TypeError: `ttl_ms` is not an integer.
        ValueError: `ttl_ms` is negative, or the scope is unknown.
    """

    ttl_ms: int = 0
    scope: CacheScope = "private"

    def __post_init__(self) -> None:
        if type(self.ttl_ms) is not int:
            raise TypeError(f"ttl_ms: expected whole milliseconds, got {self.ttl_ms!r}")
        if self.ttl_ms < 0:
            raise ValueError(f"ttl_ms: expected 0 or more, got {self.ttl_ms}")
        if self.scope not in ("public", "private"):
            raise ValueError(f"scope: expected public or private, got {self.scope!r}")

    def wire(self) -> dict[str, Any]:
        """The members of a result that carry the hint."""
        return {"ttlMs": self.ttl_ms, "cacheScope": self.scope}


NO_CACHING = CacheHint()
"""Stale at once, and private."""


def cache_hints(
    cache: CacheHint | Mapping[Cacheable, CacheHint] | None,
) -> Mapping[Cacheable, CacheHint]:
    """A hint for each cacheable result, from one hint for all or from a mapping of some.

    Raises:
        TypeError: A value is not a `CacheHint`.
        ValueError: A key is not in `Cacheable`.
    """
    if isinstance(cache, CacheHint):
        return dict.fromkeys(_CACHEABLE, cache)
    hints = cache or {}
    unchecked: object = hints
    if not is_object(unchecked):
        raise TypeError(f"cache: expected a CacheHint, or one for each list, got {cache!r}")
    if unknown := hints.keys() - set(_CACHEABLE):
        raise ValueError(
            f"cache: expected {', '.join(_CACHEABLE)}, got {', '.join(sorted(map(repr, unknown)))}"
        )
    for name, hint in hints.items():
        expect(hint, CacheHint, f"cache[{name!r}]")
    return dict.fromkeys(_CACHEABLE, NO_CACHING) | dict(hints)


class ItemList(NamedTuple):
    """A list of the protocol, and the requests that use its items.

    Attributes:
        kind: One of its items, in error texts.
        key: The member that identifies an item.
        member: Name of the list in a result.
        hint: Name of its cache hint.
        request: Asks for the list.
        uses: Requests about one of its items.
        changed: The notification that it has changed.
    """

    kind: str
    key: str
    member: str
    hint: Cacheable
    request: str
    uses: tuple[str, ...]
    changed: str


TOOLS_CHANGED = "notifications/tools/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
_READ = ("resources/read",)

ITEM_LISTS = (
    ItemList("tool", "name", "tools", "tools", "tools/list", ("tools/call",), TOOLS_CHANGED),
    ItemList(
        "resource", "uri", "resources", "resources", "resources/list", _READ, RESOURCES_CHANGED
    ),
    ItemList(
        "resource template",
        "uriTemplate",
        "resourceTemplates",
        "templates",
        "resources/templates/list",
        _READ,
        RESOURCES_CHANGED,
    ),
    ItemList(
        "prompt", "name", "prompts", "prompts", "prompts/list", ("prompts/get",), PROMPTS_CHANGED
    ),
)
"""The lists, in the order of `ItemRegistries`. Those of one notification are served together."""


class Listed(Protocol):
    """An item of a list."""

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The item as wire object in its newest form.

        Args:
            structured_content: What the revision allows as `structuredContent`, as in its facts.
        """
        ...


class Registered(Listed, Protocol):
    """An item of a registry.

    Attributes:
        scopes: Scopes that a principal needs to use it.
        tags: Names for groups of items.
        respond: Handles a request about the item, or returns `None` if that is for the server;
            `None` if the server handles all requests about the item.
    """

    scopes: frozenset[str]
    tags: frozenset[str]

    @property
    def respond(self) -> Respond | None: ...


Respond: TypeAlias = Callable[[RequestContext], Coroutine[Any, Any, Any] | None]

Item = TypeVar("Item", bound=Registered)


class Follower(Protocol):
    """Copies the items of a registry to the registry of a server that mounts its server."""

    def check(self, key: str) -> None:
        """Check that an item can be added under a key.

        Raises:
            ValueError: The name that the item would get is taken or invalid.
        """
        ...

    def refresh(self) -> None:
        """Copy a change."""
        ...


class ItemSource(Protocol):
    """A mounted server, as the source of items of a registry."""

    def shown_items(self, items: Mapping[str, Any], request: RequestContext) -> Mapping[str, Any]:
        """The items of the registry, with those of the mounted server as a session shows them."""
        ...

    async def listed_items(
        self, items: Mapping[str, Any], request: RequestContext
    ) -> Mapping[str, Any]:
        """Items of the registry, with those of the mounted server as it lists them now."""
        ...

    def find_unregistered(self, key: str, request: RequestContext) -> Any:
        """The item that the mounted server may have without registration; else `None`.

        The item has the attribute `inner_key`: its key in the mounted server.
        """
        ...

    def has_session_rules(self) -> bool:
        """Whether sessions of the mounted server may show different items."""
        ...


class SessionRules(Protocol):
    """Differences between what sessions show and the enabled items."""

    def shown_items(
        self, items: Mapping[str, Item], every: Mapping[str, Item], request: RequestContext
    ) -> Mapping[str, Item]:
        """The items that the session of a request shows.

        Args:
            items: The items that are enabled for all sessions.
            every: All registered items.
            request: The request.
        """
        ...


class Registry(Generic[Item]):
    """Registered items of one kind by key, in the order of registration.

    Args:
        row: The list that they form.
        page_size: Most items of a page; `None` for all.
        cache: The cache hint of every page.
        on_change: Called after each change.

    Attributes:
        row: As passed.
        items: The enabled items by key. Only the methods change them.
        needs_scopes: Whether items that need scopes were added.
        hides_forbidden: Whether items are left out of a list if the principal lacks their scopes.
            A list that has such items is private.
        followers: Copy the items to other registries.
        rules: Rules of sessions that show other items than the enabled ones; `None` for no rules.
        sources: The registries of mounted servers.
        view: Changes or omits items for the client of a list request; `None` for all items as
            they are.
    """

    def __init__(
        self,
        row: ItemList,
        page_size: int | None,
        cache: CacheHint,
        on_change: Callable[[], None],
    ) -> None:
        self.row = row
        self._page_size = page_size
        self._cache = cache
        self._on_change = on_change
        self.items: dict[str, Item] = {}
        self._registered: dict[str, Item] = {}  # the disabled items too
        self._disabled: set[str] = set()
        self._mounted: set[str] = set()
        self.followers: list[Follower] = []
        self.needs_scopes = False
        self.hides_forbidden = False
        self.rules: SessionRules | None = None
        self.sources: list[ItemSource] = []
        self.view: Callable[[Mapping[str, Any], RequestContext], Mapping[str, Any]] | None = None
        self._pages: dict[tuple[str, str | None], Any] = {}

    def add(self, key: str, item: Item) -> None:
        """Append an item.

        Raises:
            ValueError: The key is taken, or a part of the item has no JSON form.
        """
        self.check(key)
        check_json(item.wire("any"), f"{self.row.kind} {key!r}")
        self._registered[key] = self.items[key] = item
        self.needs_scopes = self.needs_scopes or bool(item.scopes)
        self._publish_change()

    def check(self, key: str) -> None:
        """Check that an item can be added under a key.

        Raises:
            ValueError: The key is taken here, or where the items are mounted.
        """
        if key in self._registered:
            raise ValueError(f"{self.row.kind} {key!r} is registered already")
        for follower in self.followers:
            follower.check(key)

    def remove(self, key: str) -> None:
        """Remove an item.

        Raises:
            LookupError: There is no item under this key.
            ValueError: It is an item of a mounted server.
        """
        if key not in self._registered:
            raise LookupError(f"there is no {self.row.kind} {key!r}")
        if key in self._mounted:
            raise ValueError(
                f"{self.row.kind} {key!r} belongs to a mounted server: remove it there, or "
                "disable it"
            )
        del self._registered[key]
        self._disabled.discard(key)
        if self.items.pop(key, None) is not None:
            self._publish_change()

    def replace_mounted(self, removed: Collection[str], added: Mapping[str, Item]) -> None:
        """Remove and append items of a mounted server. A key that was disabled stays so."""
        for key in removed:
            del self._registered[key]
        self._mounted.difference_update(removed)
        self._mounted.update(added)
        self._registered.update(added)
        self.needs_scopes = self.needs_scopes or any(item.scopes for item in added.values())
        self._show_enabled()

    def _show_enabled(self) -> None:
        registered = self._registered.items()
        self.items = {key: item for key, item in registered if key not in self._disabled}
        self._publish_change()

    def _publish_change(self) -> None:
        self._pages.clear()
        self._on_change()
        for follower in self.followers:
            follower.refresh()

    def all(self) -> Iterator[Item]:
        """The items, the disabled ones too."""
        yield from self._registered.values()

    def all_keys(self) -> Collection[str]:
        """The keys of all items."""
        return self._registered.keys()

    def find(self, key: str) -> Item | None:
        """The item under a key, even if it is disabled; `None` if there is none."""
        return self._registered.get(key)

    def items_for(self, request: RequestContext) -> Mapping[str, Item]:
        """The items that the session of a request shows."""
        items: Mapping[str, Item] = self.items
        for source in self.sources:
            items = source.shown_items(items, request)
        if self.rules is None:
            return items
        return self.rules.shown_items(items, self._registered, request)

    def item_of(self, request: RequestContext, key: str) -> Item | None:
        """The item that a request is about, as its session shows it; `None` if it is unknown."""
        if self.rules is None and not self.sources:
            return self.items.get(key)
        return self.items_for(request).get(key) or self.find_unregistered(key, request)

    def find_unregistered(self, key: str, request: RequestContext) -> Item | None:
        """An item that only a mounted server knows; `None` if there is none, or it is registered.

        If several may have it, it is one of the server with the longest prefix.
        """
        if key in self._registered:
            return None
        items = [source.find_unregistered(key, request) for source in self.sources]
        known = [item for item in items if item is not None]
        return min(known, key=lambda item: len(item.inner_key), default=None)

    def has_session_rules(self) -> bool:
        """Whether sessions may show other items than the enabled ones."""
        return self.rules is not None or any(each.has_session_rules() for each in self.sources)

    def is_disabled(self, key: str) -> bool:
        """Whether a key is disabled, with or without a registered item."""
        return key in self._disabled

    def keys(self, names: Collection[str], tags: Collection[str]) -> set[str]:
        """The keys of the items with one of these keys or tags."""
        registered = self._registered.items()
        return {key for key, item in registered if key in names or item.tags.intersection(tags)}

    def switch(self, keys: Collection[str], *, enabled: bool) -> None:
        """Enable or disable items; the order of registration stays."""
        before = len(self._disabled)
        if enabled:
            self._disabled.difference_update(keys)
        else:
            self._disabled.update(keys)
        if len(self._disabled) != before:
            self._show_enabled()

    async def page(self, request: RequestContext) -> Any:
        """The result of a list request, in the revision's own type.

        Raises:
            InvalidParamsError: The cursor is not one of this list.
        """
        listed: Mapping[str, Listed] = self.visible_items(request)
        if self.sources:
            listed = await self.listed_now(listed, request)
        if self.view is not None:
            listed = self.view(listed, request)
        if listed is not self.items:
            return self.page_of(request, listed)
        cursor = getattr(request.params, "cursor", None)
        cursor = cursor if isinstance(cursor, str) else None
        place = request.revision.name, cursor
        result = self._pages.get(place)
        if result is None:
            result = self._encoded_page(request, cursor, self.items, self._cache)
            if cursor is None or len(self._pages) < len(self.items):
                self._pages[place] = result
        return result

    def visible_items(self, request: RequestContext) -> Mapping[str, Item]:
        """The items that the session of a request shows, and that its principal may see."""
        listed = self.items_for(request)
        if self.hides_forbidden and any(item.scopes for item in listed.values()):
            has_scopes = PRINCIPAL.get().has_scopes
            return {key: item for key, item in listed.items() if has_scopes(*item.scopes)}
        return listed

    async def listed_now(
        self, listed: Mapping[str, Listed], request: RequestContext
    ) -> Mapping[str, Listed]:
        """The items, with current lists of mounted servers."""
        for source in self.sources:
            listed = await source.listed_items(listed, request)
        return listed

    def page_of(self, request: RequestContext, listed: Mapping[str, Listed]) -> Any:
        """The result of a list request whose items depend on the principal or session."""
        cursor = getattr(request.params, "cursor", None)
        cursor = cursor if isinstance(cursor, str) else None
        cache = CacheHint(self._cache.ttl_ms, "private")
        if self.has_session_rules():
            cache = NO_CACHING
        return self._encoded_page(request, cursor, listed, cache)

    def _encoded_page(
        self,
        request: RequestContext,
        cursor: str | None,
        listed: Mapping[str, Listed],
        cache: CacheHint,
    ) -> Any:
        method = request.method
        has_pages = "cursor" in method.wire_names
        start, end, next_cursor = page_bounds(
            self.row.member, list(listed), cursor, self._page_size if has_pages else None
        )
        structured_content = request.revision.facts.behaviour.structured_content
        items = list(listed.values())[start:end]
        members: dict[str, Any] = {
            self.row.member: [item.wire(structured_content) for item in items],
            **cache.wire(),
        }
        if next_cursor is not None:
            members["nextCursor"] = next_cursor
        result = convert(members, method.result)
        if method.items is None:
            return result
        encoded = Raw(encode(getattr(result, method.items)))
        return replace(result, **{method.items: encoded})


class ItemRegistries(NamedTuple):
    """The registries of one server."""

    tools: Registry[Any]
    resources: Registry[Any]
    templates: Registry[Any]
    prompts: Registry[Any]


def checked_tags(tags: Collection[str], label: str = "tags") -> frozenset[str]:
    """Tags or names as a set.

    Raises:
        TypeError: One string instead of a collection.
    """
    if isinstance(tags, str):
        raise TypeError(f"{label}: expected a collection of strings, got {tags!r}")
    return frozenset(tags)


def cursor_after(kind: str, key: str) -> str:
    """The cursor of the page that begins after the item `key` in a list of this kind."""
    return base64.urlsafe_b64encode(f"{kind}\n{key}".encode()).decode("ascii")


def page_bounds(
    kind: str, keys: Sequence[str], cursor: str | None, size: int | None
) -> tuple[int, int, str | None]:
    """Start and end of a page, and the cursor of the next page.

    Args:
        kind: The kind of the list; a cursor of one kind is invalid for another.
        keys: The items' keys, in order, each once.
        cursor: Where to start; `None` is the beginning, an empty string is invalid.
        size: Most items of a page; `None` for all.

    Raises:
        InvalidParamsError: The cursor names no place in this list.
    """
    start = 0 if cursor is None else _position(kind, keys, cursor)
    end = len(keys) if size is None else min(start + size, len(keys))
    return start, end, cursor_after(kind, keys[end - 1]) if end < len(keys) else None


def _position(kind: str, keys: Sequence[str], cursor: str) -> int:
    try:
        decoded = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
        cursor_kind, _, key = decoded.partition("\n")
        if cursor_kind == kind:
            return keys.index(key) + 1
    except (binascii.Error, ValueError):
        pass
    raise InvalidParamsError(
        f"cursor: expected one that this list gave out, got {safe_repr(cursor)}"
    )
