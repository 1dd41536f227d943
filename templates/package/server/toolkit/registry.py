"""What a server has of one kind, in the order of registration, and the pages of its list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from ..._wire import convert
from ...runtime.request_context import RequestContext
from .cache_hints import CacheHint
from .pagination import page


class Listed(Protocol):
    """What can be in a list."""

    def listed(self, structured: str) -> dict[str, Any]:
        """The wire object, in its newest form, for a revision whose structured results are so."""
        ...


Item = TypeVar("Item", bound=Listed)


class Listing(Generic[Item]):
    """Registered items of one kind by key.

    Args:
        kind: What they are, for error texts: `tool`.
        member: Name of the list in the result: `tools`.
        changed: Called after each change.
        cache: How long clients may keep a page, the same for all pages.
    """

    def __init__(
        self,
        kind: str,
        member: str,
        changed: Callable[[], None],
        cache: CacheHint,
    ) -> None:
        self._kind = kind
        self._member = member
        self._changed = changed
        self._cache = cache
        self._items: dict[str, Item] = {}
        self._pages: dict[tuple[str, str | None], Any] = {}
        self.get = self._items.get
        """The item under a key, or `None`."""

    def __iter__(self) -> Iterator[Item]:
        return iter(list(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)

    def add(self, key: str, item: Item) -> None:
        """Register an item at the end.

        Raises:
            ValueError: There is one under this key.
        """
        if key in self._items:
            raise ValueError(f"{self._kind} {key!r} is registered already")
        self._items[key] = item
        self._pages.clear()
        self._changed()

    def remove(self, key: str) -> None:
        """Take an item away.

        Raises:
            LookupError: There is none under this key.
        """
        if key not in self._items:
            raise LookupError(f"there is no {self._kind} {key!r}")
        del self._items[key]
        self._pages.clear()
        self._changed()

    def page(self, exchange: RequestContext, size: int | None) -> Any:
        """The result of a list request, in the session's own type.

        Raises:
            InvalidParamsError: The cursor is not one of this list.
        """
        cursor = getattr(exchange.params, "cursor", None)
        cursor = cursor if isinstance(cursor, str) else None
        place = exchange.revision.name, cursor
        made = self._pages.get(place)
        if made is None:
            made = self._made(exchange, cursor, size)
            if cursor is None or len(self._pages) < len(self._items):
                self._pages[place] = made
        return made

    def _made(self, exchange: RequestContext, cursor: str | None, size: int | None) -> Any:
        if "cursor" not in exchange.method.wire_names:
            size = None  # the revision has no pagination
        start, end, after = page(self._member, list(self._items), cursor, size)
        structured = exchange.revision.facts.behaviour.structured_content
        items = list(self._items.values())[start:end]
        made: dict[str, Any] = {
            self._member: [item.listed(structured) for item in items],
            **self._cache.wire(),
        }
        if after is not None:
            made["nextCursor"] = after
        return convert(made, exchange.method.result)
