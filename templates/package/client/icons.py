"""Icons of servers, and which of them may be shown: their addresses come from strangers.

Nothing here fetches an icon. Whoever does so sends no credentials, follows no redirect to another
scheme or origin, limits what it reads, and looks at the bytes rather than at the declared type.

Source: basic/index#icons (2025-11-25, 2026-07-28).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

_PORTS = {"https": 443, "http": 80}
_IMAGE = "data:image/"


class HasSource(Protocol):
    """What has the address of an image."""

    @property
    def src(self) -> str:
        """The address."""
        ...


AnyIcon = TypeVar("AnyIcon", bound=HasSource)


def safe_icons(icons: Iterable[AnyIcon] | None, server: str | None = None) -> list[AnyIcon]:
    """The icons that may be shown: images in `data:` URIs, and those under `https:` URLs.

    Args:
        icons: The icons of a tool, of a resource and so on; they may be absent.
        server: URL of the server, to keep only what is `data:` or has the same origin.
    """
    if icons is None:
        return []
    return [icon for icon in icons if _is_safe(icon.src, server)]


def _is_safe(src: str, server: str | None) -> bool:
    if not src.isascii() or not src.isprintable() or src != src.strip():
        return False
    if src[: len(_IMAGE)].lower() == _IMAGE:
        return True
    found = _origin(src)
    return (
        found is not None and found[0] == "https" and (server is None or found == _origin(server))
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
