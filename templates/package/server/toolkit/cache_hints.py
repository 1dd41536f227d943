"""How long clients may keep what a server lists and shows, and for whom.

Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from ..._wire import is_object
from .content import expect

CacheScope: TypeAlias = Literal["public", "private"]
Cacheable: TypeAlias = Literal["tools", "prompts", "resources", "templates", "discover"]
"""What a hint may be for: each list, and the account that a server gives of itself."""

_ALL: tuple[Cacheable, ...] = get_args(Cacheable)


class CacheHint(msgspec.Struct, frozen=True):
    """How long a result counts as fresh, and who may be shown it.

    The default promises nothing: stale at once, and for whoever asked alone. Sessions of revisions
    without such hints get none.

    Attributes:
        ttl_ms: Milliseconds for which the result counts as fresh; 0 means stale at once.
        scope: `public` if it is the same for everyone, so that caches may show it to others, even
            if the server asked for a token; `private` keeps it to those who share a token.

    Raises:
        TypeError: Not a whole number of milliseconds.
        ValueError: A negative one, or another scope.
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
        """The members that carry it."""
        return {"ttlMs": self.ttl_ms, "cacheScope": self.scope}


NO_PROMISE = CacheHint()
"""Stale at once, and private."""


def hints_of(
    given: CacheHint | Mapping[Cacheable, CacheHint] | None,
) -> Mapping[Cacheable, CacheHint]:
    """A hint for each list, from one for all or from those that are given.

    Raises:
        TypeError: A hint is none.
        ValueError: There is no such list.
    """
    if isinstance(given, CacheHint):
        return dict.fromkeys(_ALL, given)
    hints = given or {}
    unchecked: object = hints
    if not is_object(unchecked):
        raise TypeError(f"cache: expected a CacheHint, or one for each list, got {given!r}")
    if unknown := hints.keys() - set(_ALL):
        raise ValueError(
            f"cache: expected {', '.join(_ALL)}, got {', '.join(sorted(map(repr, unknown)))}"
        )
    for name, hint in hints.items():
        expect(hint, CacheHint, f"cache[{name!r}]")
    return dict.fromkeys(_ALL, NO_PROMISE) | dict(hints)
