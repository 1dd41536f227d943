"""Addresses: which texts are URIs, and which of them lead out of their place.

Source: RFC 3986; client/roots#root, client/elicitation#url-mode-elicitation-requests.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..foreign_text import safe_repr

WEB_SCHEMES = frozenset({"http", "https"})
"""Schemes of the addresses that a server may have its client's user open."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine, to itself alone."""

# Compiled when they are first used.
_URI = r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"{}|\\^`\x00-\x1f\x7f]+"
_DRIVE = r"[A-Za-z]:"
_BROKEN_PERCENT = r"%(?![0-9A-Fa-f]{2})"


def is_uri(text: str) -> bool:
    """Whether a text is an absolute URI (RFC 3986), letters beyond ASCII let through."""
    return bool(re.fullmatch(_URI, text)) and not re.search(_BROKEN_PERCENT, text)


def safe_url(url: str, schemes: Collection[str] = WEB_SCHEMES) -> bool:
    """Whether an address that a stranger gave may be opened or shown as a link.

    Addresses come with icons, resource links, `websiteUrl` and elicitations. One of another scheme
    may run code (`javascript:`), read files (`file:`) or start a program; one with a user name
    pretends to lead elsewhere (`https://bank.example@evil.example`).

    Args:
        url: The address.
        schemes: The schemes that may be opened, in lower case.

    Source: client/elicitation#safe-url-handling (2025-11-25), basic/index#icons.
    """
    return url_complaint(url, schemes) is None


def url_complaint(url: str, schemes: Collection[str] = WEB_SCHEMES) -> str | None:
    """Why an address may not be opened; `None` if it may. See `safe_url`."""
    from urllib.parse import urlsplit  # loads slowly, and few servers need it

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"expected a URL with a host, got {safe_repr(url)}"
    if not is_uri(url) or not url.isprintable() or not host:
        return f"expected a URL with a host, got {safe_repr(url)}"
    if parts.scheme not in schemes:
        allowed = " or ".join(sorted(schemes))
        return f"expected a URL with the scheme {allowed}, got {safe_repr(url)}"
    if not host.isascii() or "@" in parts.netloc:
        return f"expected a URL with an ASCII host and without user name, got {safe_repr(url)}"
    return None


def climbs(uri: str) -> bool:
    """Whether the path of a URI holds `..`, plain or encoded, even twice."""
    from urllib.parse import unquote

    path = uri.partition(":")[2]
    for _ in range(3):
        if "\x00" in path or ".." in re.split(r"[/\\?#]", path):
            return True
        path = unquote(path)
    return False


def leaves_its_place(value: str) -> bool:
    """Whether a value, taken as a path below some place, may lead out of it.

    So does a part `..`, an absolute path, a drive letter and a NUL, with `/` or `\\` between parts,
    also if it is percent-encoded still, once or twice.
    """
    from urllib.parse import unquote

    for _ in range(3):
        if "\x00" in value or value[:1] in ("/", "\\") or re.match(_DRIVE, value):
            return True
        if ".." in value and ".." in re.split(r"[/\\]", value):
            return True
        if "%" not in value:
            return False
        value = unquote(value)
    return False
