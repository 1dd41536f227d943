"""Addresses: which texts are URIs, and which of them lead out of their place.

Source: RFC 3986; client/roots#root, client/elicitation#url-mode-elicitation-requests.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"{}|\\^`\x00-\x1f\x7f]+")
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def is_uri(text: str) -> bool:
    """Whether a text is an absolute URI (RFC 3986), letters beyond ASCII let through."""
    return bool(_URI.fullmatch(text)) and not _BROKEN_PERCENT.search(text)


def is_url(text: str) -> bool:
    """Whether a text is a URI that names a host to go to."""
    try:
        return is_uri(text) and bool(urlsplit(text).hostname)
    except ValueError:
        return False


def climbs(uri: str) -> bool:
    """Whether the path of a URI holds `..`, plain or encoded, even twice."""
    path = uri.partition(":")[2]
    for _ in range(3):
        if "\x00" in path or ".." in re.split(r"[/\\?#]", path):
            return True
        path = unquote(path)
    return False


def root_complaint(uri: str) -> str | None:
    """What keeps a URI from being that of a root, or `None` if nothing does."""
    if uri[:7].lower() != "file://" or not is_uri(uri):
        return f"expected a file:// URI, got {uri!r}"
    if climbs(uri):
        return f"expected a path without '..', got {uri!r}"
    return None
