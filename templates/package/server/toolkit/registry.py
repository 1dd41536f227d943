"""Registered items of one kind, and the pages of their list.

A page is encoded once for each revision and sent as it is until an item is added or removed.

A cursor holds the key of the last item of a page, so it stays valid while other items are added or
removed, and becomes invalid when that item is removed. Cursors are opaque to clients.

Source: server/utilities/pagination.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from ..._wire import Raw, convert, encode, replace
from ...errors import InvalidParamsError
from ...foreign_text import safe_repr
from ...runtime.request_context import PRINCIPAL, RequestContext
from .content import check_json

STALE: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
"""The cache hint of results that no client may reuse; revisions without cache hints drop it."""


class ItemList(NamedTuple):
    """A list of the protocol, and the requests that use its items.

    Attributes:
        kind: One of its items, in error texts.
        key: The member that identifies an item.
        member: Name of the list in a result.
        request: Asks for the list.
        uses: Requests about one of its items.
        changed: The notification that it has changed.
    """

    kind: str
    key: str
    member: str
    request: str
    uses: tuple[str, ...]
    changed: str


TOOLS_CHANGED = "notifications/tools/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
_READ = ("resources/read",)

ITEM_LISTS = (
    ItemList("tool", "name", "tools", "tools/list", ("tools/call",), TOOLS_CHANGED),
    ItemList("resource", "uri", "resources", "resources/list", _READ, RESOURCES_CHANGED),
    ItemList(
        "resource template",
        "uriTemplate",
        "resourceTemplates",
        "resources/templates/list",
        _READ,
        RESOURCES_CHANGED,
    ),
    ItemList("prompt", "name", "prompts", "prompts/list", ("prompts/get",), PROMPTS_CHANGED),
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


class Registry(Generic[Item]):
    """Registered items of one kind by key, in the order of registration.

    Args:
        row: The list that they form.
        page_size: Most items of a page; `None` for all.
        on_change: Called after each change.

    Attributes:
        row: As passed.
        hint: The cache hint of every page.
        items: The items by key that requests find. Only the methods change them.
        needs_scopes: Whether items that need scopes were added.
        hides_forbidden: Whether items are left out of a list if the principal lacks their scopes.
            A list that has such items is private.
        varies: Whether a request may find other items than `items`; see `VaryingRegistry`.
    """

    varies = False

    def __init__(self, row: ItemList, page_size: int | None, on_change: Callable[[], None]) -> None:
        self.row = row
        self.hint = STALE
        self._page_size = page_size
        self._on_change = on_change
        self.items: dict[str, Item] = {}
        self.needs_scopes = False
        self.hides_forbidden = False
        self._pages: dict[tuple[str, str | None], Any] = {}

    def add(self, key: str, item: Item) -> None:
        """Append an item.

        Raises:
            ValueError: The key is taken, or a part of the item has no JSON form.
        """
        self.check(key)
        check_json(item.wire("any"), f"{self.row.kind} {key!r}")
        self.items[key] = item
        self.needs_scopes = self.needs_scopes or bool(item.scopes)
        self._publish_change()

    def check(self, key: str) -> None:
        """Raise a `ValueError` if a key is taken."""
        if self.find(key) is not None:
            raise ValueError(f"{self.row.kind} {key!r} is registered already")

    def remove(self, key: str) -> None:
        """Remove an item.

        Raises:
            LookupError: There is no item under this key.
        """
        if self.items.pop(key, None) is None:
            raise LookupError(f"there is no {self.row.kind} {key!r}")
        self._publish_change()

    def _publish_change(self) -> None:
        self._pages.clear()
        self._on_change()

    def all(self) -> Mapping[str, Item]:
        """All registered items, also those that no request finds."""
        return self.items

    def find(self, key: str) -> Item | None:
        """The item under a key, also one that no request finds."""
        return self.items.get(key)

    def items_for(self, request: RequestContext) -> Mapping[str, Item]:
        """The items that a request finds, whatever its principal may use."""
        return self.items

    def item_of(self, request: RequestContext, key: str) -> Item | None:
        """The item that a request is about; `None` if it finds none."""
        return self.items.get(key)

    def visible_items(self, request: RequestContext) -> Mapping[str, Item]:
        """The items that a request finds, and that its principal may see."""
        items = self.items_for(request)
        if self.hides_forbidden and any(item.scopes for item in items.values()):
            has_scopes = PRINCIPAL.get().has_scopes
            return {key: item for key, item in items.items() if has_scopes(*item.scopes)}
        return items

    async def page(self, request: RequestContext) -> Any:
        """The result of a list request, in the revision's own type.

        Raises:
            InvalidParamsError: The cursor is not one of this list.
        """
        return self._page_of(request, self.visible_items(request))

    def _page_of(self, request: RequestContext, listed: Mapping[str, Listed]) -> Any:
        """The result of a list request, from what it lists."""
        cursor = getattr(request.params, "cursor", None)
        cursor = cursor if isinstance(cursor, str) else None
        if listed is not self.items:
            return self._encoded_page(request, cursor, listed, self._private_hint())
        place = request.revision.name, cursor
        result = self._pages.get(place)
        if result is None:
            result = self._encoded_page(request, cursor, listed, self.hint)
            if cursor is None or len(self._pages) < len(self.items):
                self._pages[place] = result
        return result

    def _private_hint(self) -> Mapping[str, Any]:
        """The cache hint of a list that depends on the principal or the session."""
        return {**self.hint, "cacheScope": "private"}

    def _encoded_page(
        self,
        request: RequestContext,
        cursor: str | None,
        listed: Mapping[str, Listed],
        hint: Mapping[str, Any],
    ) -> Any:
        method = request.method
        size = self._page_size if "cursor" in method.wire_names else None
        start, end, next_cursor = page_bounds(self.row.member, list(listed), cursor, size)
        structured_content = request.revision.facts.behaviour.structured_content
        items = list(listed.values())[start:end]
        members: dict[str, Any] = {
            self.row.member: [item.wire(structured_content) for item in items],
            **hint,
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


def checked_tags(tags: Collection[str] | None, label: str = "tags") -> frozenset[str]:
    """Tags or names as a set; `None` is an empty one.

    Raises:
        TypeError: One string instead of a collection.
    """
    if isinstance(tags, str):
        raise TypeError(f"{label}: expected a collection of strings, got {tags!r}")
    return frozenset(tags or ())


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
