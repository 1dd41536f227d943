"""Cache hints of a server's lists, of its description and of resources.

Source: server/utilities/caching (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import msgspec

from ..._wire import is_object
from .content import expect
from .server import ServerKernel

CacheScope: TypeAlias = Literal["public", "private"]
Cacheable: TypeAlias = Literal["tools", "prompts", "resources", "templates", "discover"]
"""Results that may have a cache hint: each list, and the result of `server/discover`."""

_CACHEABLE: tuple[Cacheable, ...] = get_args(Cacheable)


class CacheHint(msgspec.Struct, frozen=True):
    """How long a client may reuse a result, and for whom; by default stale at once, and private.

    Revisions without cache hints get none.

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

    def wire(self, *, private: object = False) -> dict[str, Any]:
        """The members of a result that carry the hint; always private if `private` is true."""
        return {"ttlMs": self.ttl_ms, "cacheScope": "private" if private else self.scope}


NO_CACHING = CacheHint()
"""Stale at once, and private."""


class CacheHintOptions(TypedDict, total=False):
    """Cache hints of a server.

    Attributes:
        cache: Cache hints of lists and of the server's description: one hint for all, or one for
            each of `tools`, `prompts`, `resources`, `templates` and `discover`.
    """

    cache: CacheHint | Mapping[Cacheable, CacheHint] | None


class ResourceCacheOptions(TypedDict, total=False):
    """The cache hint of a resource.

    Attributes:
        cache: The cache hint of the contents; always private if scopes are needed.
    """

    cache: CacheHint


class CachingServer(ServerKernel):
    """A server with cache hints.

    Raises:
        TypeError: A value is not a `CacheHint`.
        ValueError: A key is not in `Cacheable`.
    """

    def _use_options(self, options: dict[str, Any]) -> None:
        dispatcher = self._dispatcher
        dispatcher.hooks.resource_hint = _resource_hint
        hints = _hints_by_name(options.pop("cache", None))
        dispatcher.discover_hint = hints["discover"].wire()
        for name, registry in zip(_CACHEABLE, _in_order(dispatcher.registries), strict=False):
            registry.hint = hints[name].wire()
        super()._use_options(options)


def _in_order(registries: Any) -> tuple[Any, ...]:
    """The registries in the order of `Cacheable`."""
    return registries.tools, registries.prompts, registries.resources, registries.templates


def _resource_hint(options: dict[str, Any], needs_scopes: bool) -> dict[str, Any]:
    cache = options.pop("cache", NO_CACHING)
    expect(cache, CacheHint, "cache")
    hint: dict[str, Any] = cache.wire(private=needs_scopes)
    return hint


def _hints_by_name(cache: object) -> dict[str, CacheHint]:
    """A hint for each cacheable result, from one hint for all or from a mapping of some."""
    if isinstance(cache, CacheHint):
        return dict.fromkeys(_CACHEABLE, cache)
    hints: object = dict[str, CacheHint]() if cache is None else cache
    if not is_object(hints):
        raise TypeError(f"cache: expected a CacheHint, or one for each list, got {cache!r}")
    if unknown := hints.keys() - set(_CACHEABLE):
        raise ValueError(
            f"cache: expected {', '.join(_CACHEABLE)}, got {', '.join(sorted(map(repr, unknown)))}"
        )
    for name, hint in hints.items():
        expect(hint, CacheHint, f"cache[{name!r}]")
    return {**dict.fromkeys(_CACHEABLE, NO_CACHING), **hints}
