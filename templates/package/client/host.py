"""Functions for host applications: icons that are safe to show, and the choice of a model.

Source: basic/index#icons (2025-11-25, 2026-07-28), client/sampling#model-preferences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from .._wire import to_builtins

_PORTS = {"https": 443, "http": 80}
_IMAGE = "data:image/"


class HasSource(Protocol):
    """An object with the URI of an image."""

    @property
    def src(self) -> str:
        """The URI."""
        ...


AnyIcon = TypeVar("AnyIcon", bound=HasSource)


def safe_icons(icons: Iterable[AnyIcon] | None, server: str | None = None) -> list[AnyIcon]:
    """The icons that are safe to show: images in `data:` URIs and at `https:` URLs.

    No icon is fetched here. Fetch icons without credentials, follow no redirect to another scheme
    or origin, limit the size, and determine the type from the bytes.

    Args:
        icons: The icons of a tool, a resource and so on; `None` if they are absent.
        server: URL of the server, to exclude `https:` URLs of other origins.
    """
    if icons is None:
        return []
    return [icon for icon in icons if _is_safe(icon.src, server)]


def _is_safe(src: str, server: str | None) -> bool:
    if not src.isascii() or not src.isprintable() or src != src.strip():
        return False
    if src[: len(_IMAGE)].lower() == _IMAGE:
        return True
    origin = _origin(src)
    return (
        origin is not None
        and origin[0] == "https"
        and (server is None or origin == _origin(server))
    )


def _origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of a URL; `None` if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme not in _PORTS:
        return None
    return parts.scheme, host, port or _PORTS[parts.scheme]


def choose_model(preferences: Any, models: Sequence[str]) -> str | None:
    """The first model whose name contains a hint; hints are tried in order.

    Args:
        preferences: `modelPreferences` of a request, typed or as wire object; `None` for none.
        models: Names of the available models, best first.

    Returns:
        The name of the model; `None` if no hint matches, so that the priorities may decide.
    """
    wire: Any = to_builtins(preferences) if preferences else {}
    for hint in wire.get("hints", ()):
        name = hint.get("name")
        match = next((model for model in models if name and name in model), None)
        if match is not None:
            return match
    return None
