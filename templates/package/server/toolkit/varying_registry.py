"""Registries whose items vary: disabled ones, rules of sessions, mounted servers, views.

An item that is disabled keeps its place and its key. What a request finds are the enabled items,
changed by the servers that are mounted and by the rules of its session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from ...runtime.request_context import RequestContext
from .content import check_json
from .dispatcher import Dispatcher
from .registry import STALE, Item, ItemRegistries, Listed, Registry


class ItemSource(Protocol):
    """A mounted server, between one of its registries and that of the server it is mounted on."""

    def check(self, key: str) -> None:
        """Check that the mounted server can add an item under a key.

        Raises:
            ValueError: The name that the item would get is taken or invalid.
        """
        ...

    def refresh(self) -> None:
        """Copy a change of the mounted server."""
        ...

    def shown_items(self, items: Mapping[str, Any], request: RequestContext) -> Mapping[str, Any]:
        """The items of the outer registry, with those of the mounted server for a request."""
        ...

    async def listed_items(
        self, items: Mapping[str, Any], request: RequestContext
    ) -> Mapping[str, Any]:
        """Items of the outer registry, with those of the mounted server as it lists them now."""
        ...

    def find_unregistered(self, key: str, request: RequestContext) -> Any:
        """The item that the mounted server may have without registration; else `None`.

        The item has the attribute `inner_key`: its key in the mounted server.
        """
        ...

    def has_session_rules(self) -> bool:
        """Whether sessions of the mounted server may find different items."""
        ...


class SessionRules(Protocol):
    """The items that sessions find instead of the enabled ones."""

    def shown_items(
        self, items: Mapping[str, Item], every: Mapping[str, Item], request: RequestContext
    ) -> Mapping[str, Item]:
        """The items that the session of a request finds, of the enabled ones and of all."""
        ...


class VaryingRegistry(Registry[Item]):
    """Registered items of one kind, of which a request finds some.

    Attributes:
        followers: Copy the items to registries of servers that this one is mounted on.
        rules: The rules of sessions; `None` while no session has some. `use_rules` sets them.
        view: Changes or omits items for the client of a list request; `None` for all items as
            they are.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._registered: dict[str, Item] = {}  # the disabled items too
        self._disabled: set[str] = set()
        self._mounted: set[str] = set()
        self.followers: list[ItemSource] = []
        self._sources: list[ItemSource] = []
        self.rules: SessionRules | None = None
        self.view: Callable[[Mapping[str, Any], RequestContext], Mapping[str, Any]] | None = None

    def use_rules(self, rules: SessionRules) -> None:
        """Let rules of sessions decide from now on."""
        self.rules = rules
        self.varies = True

    def add_source(self, source: ItemSource) -> None:
        """Add a mounted server."""
        self._sources.append(source)
        self.varies = True

    def check(self, key: str) -> None:
        super().check(key)
        for follower in self.followers:
            follower.check(key)

    def add(self, key: str, item: Item) -> None:
        self.check(key)
        check_json(item.wire("any"), f"{self.row.kind} {key!r}")
        self._registered[key] = self.items[key] = item
        self.needs_scopes = self.needs_scopes or bool(item.scopes)
        self._publish_change()

    def remove(self, key: str) -> None:
        """Remove an item.

        Raises:
            LookupError: There is no item under this key.
            ValueError: It is an item of a mounted server.
        """
        if key in self._mounted:
            raise ValueError(
                f"{self.row.kind} {key!r} belongs to a mounted server: remove it there, or "
                "disable it"
            )
        if self._registered.pop(key, None) is None:
            raise LookupError(f"there is no {self.row.kind} {key!r}")
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
        super()._publish_change()
        for follower in self.followers:
            follower.refresh()

    def all(self) -> Mapping[str, Item]:
        return self._registered

    def find(self, key: str) -> Item | None:
        return self._registered.get(key)

    def items_for(self, request: RequestContext) -> Mapping[str, Item]:
        items: Mapping[str, Item] = self.items
        for source in self._sources:
            items = source.shown_items(items, request)
        if self.rules is None:
            return items
        return self.rules.shown_items(items, self._registered, request)

    def item_of(self, request: RequestContext, key: str) -> Item | None:
        if not self.varies:
            return self.items.get(key)
        return self.items_for(request).get(key) or self.find_unregistered(key, request)

    def find_unregistered(self, key: str, request: RequestContext) -> Item | None:
        """An item that only a mounted server knows; `None` if there is none, or it is registered.

        If several may have it, it is one of the server with the longest prefix.
        """
        if key in self._registered:
            return None
        items = [source.find_unregistered(key, request) for source in self._sources]
        known = [item for item in items if item is not None]
        return min(known, key=lambda item: len(item.inner_key), default=None)

    def has_session_rules(self) -> bool:
        """Whether sessions may find other items than the enabled ones."""
        return self.rules is not None or any(each.has_session_rules() for each in self._sources)

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
        listed: Mapping[str, Listed] = self.visible_items(request)
        if self._sources:
            listed = await self.listed_now(listed, request)
        if self.view is not None:
            listed = self.view(listed, request)
        return self._page_of(request, listed)

    async def listed_now(
        self, listed: Mapping[str, Listed], request: RequestContext
    ) -> Mapping[str, Listed]:
        """The items, with current lists of mounted servers."""
        for source in self._sources:
            listed = await source.listed_items(listed, request)
        return listed

    def _private_hint(self) -> Mapping[str, Any]:
        return STALE if self.has_session_rules() else super()._private_hint()


class VaryingLists(Dispatcher):
    """A dispatcher whose lists vary from request to request."""

    registry_class = VaryingRegistry


def varying(registries: ItemRegistries) -> list[VaryingRegistry[Any]]:
    """The registries of a server whose dispatcher has `VaryingRegistry`, in their order."""
    return [each for each in registries if isinstance(each, VaryingRegistry)]
