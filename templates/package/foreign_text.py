"""Untrusted texts, values and addresses: formatted for errors and logs, and checked.

They come from peers, schemas and URIs. So they are shown shortened, on one line, and without
characters that terminals or log files interpret. An address may point outside of its directory.

Source: RFC 3986; client/roots#root, client/elicitation#url-mode-elicitation-requests.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TypeGuard

SHOWN_TEXT = 200
"""Characters of a foreign text that an error or a log line shows."""

SHOWN_ERRORS = 10
"""Errors of one value that a text shows."""

ERRORS_TEXT = 2000
"""Characters of these errors together, unless the first alone is longer."""

_SHOWN_ITEMS = 8
_SHOWN_LEVELS = 3


def safe_text(text: str, limit: int = SHOWN_TEXT) -> str:
    """An untrusted text for an error or a log line: one line, cut at `limit` characters.

    Control characters, escape sequences, bidirectional marks and lone surrogates are written as
    Python escapes, which neither terminals nor log files interpret.
    """
    cut = text[:limit]
    if not cut.isprintable():
        cut = "".join(char if char.isprintable() else repr(char)[1:-1] for char in cut)
    return cut if len(text) <= limit else f"{cut}... ({len(text)} characters)"


def safe_repr(value: object, limit: int = SHOWN_TEXT) -> str:
    """An untrusted value for an error or a log line, bounded in depth, in items and in length.

    Never raises: `repr` itself fails for values that are nested too deep and for huge integers.

    Args:
        value: Decoded JSON, or any other object.
        limit: Most characters of a text within the value; the whole has at most twice as many.
    """
    text = _bounded_repr(value, limit, _SHOWN_LEVELS)
    return text if len(text) <= 2 * limit else f"{text[: 2 * limit]}..."


def safe_list(texts: Sequence[str]) -> str:
    """Untrusted texts for an error or a log line, comma-separated; the rest is counted."""
    shown = [safe_text(text) for text in texts[:_SHOWN_ITEMS]]
    return ", ".join([*shown, *_rest(len(texts) - len(shown))])


def join_errors(errors: Sequence[str]) -> str:
    """Errors of one value as one text: the first few, and the count of the rest."""
    shown: list[str] = []
    left = ERRORS_TEXT
    for error in errors[:SHOWN_ERRORS]:
        left -= len(error)
        if shown and left < 0:
            break
        shown.append(error)
    more = len(errors) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


def _bounded_repr(value: object, limit: int, levels: int) -> str:
    if isinstance(value, str):
        quoted = repr(value[:limit])
        return quoted if len(value) <= limit else f"{quoted}... ({len(value)} characters)"
    if isinstance(value, int) and value.bit_length() > 4 * limit:
        return f"an integer of {value.bit_length()} bits"
    if _is_object(value):
        pairs = [
            f"{_bounded_repr(name, limit, 0)}: {_bounded_repr(item, limit, levels - 1)}"
            for name, item in islice(value.items(), _SHOWN_ITEMS if levels else 0)
        ]
        return "{" + ", ".join([*pairs, *_rest(len(value) - len(pairs))]) + "}"
    if _is_array(value):
        items = [
            _bounded_repr(item, limit, levels - 1)
            for item in islice(value, _SHOWN_ITEMS if levels else 0)
        ]
        return "[" + ", ".join([*items, *_rest(len(value) - len(items))]) + "]"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    try:
        return safe_text(repr(value), limit)
    except Exception:  # a user's own __repr__, or one that recurses
        return f"<{type(value).__name__}>"


def _is_object(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _rest(count: int) -> list[str]:
    return [f"... {count} more"] if count else []


WEB_SCHEMES = frozenset({"http", "https"})
"""Schemes of the addresses that a server may ask the user of a client to open."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Host names of the loopback interface."""

# Compiled when they are first used.
_URI = r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"{}|\\^`\x00-\x1f\x7f]+"
_DRIVE = r"[A-Za-z]:"
_SCOPE = r"[\x21\x23-\x5b\x5d-\x7e]+"
_BROKEN_PERCENT = r"%(?![0-9A-Fa-f]{2})"


def is_uri(text: str) -> bool:
    """Whether a text is an absolute URI (RFC 3986); letters beyond ASCII are allowed."""
    return bool(re.fullmatch(_URI, text)) and not re.search(_BROKEN_PERCENT, text)


def is_scope(text: str) -> bool:
    """Whether a text is a scope of OAuth (RFC 6749, section 3.3)."""
    return re.fullmatch(_SCOPE, text) is not None


def safe_url(url: str, schemes: Collection[str] = WEB_SCHEMES) -> bool:
    """Whether it is safe to open an address of an untrusted peer, or to show it as a link.

    Addresses come with icons, resource links, `websiteUrl` and elicitations. Other schemes may run
    code (`javascript:`), read files (`file:`) or start a program; a user name disguises the host
    (`https://bank.example@evil.example`).

    Args:
        url: The address.
        schemes: The schemes that may be opened, in lower case.

    Source: client/elicitation#safe-url-handling (2025-11-25), basic/index#icons.
    """
    return url_complaint(url, schemes) is None


def url_complaint(url: str, schemes: Collection[str] = WEB_SCHEMES) -> str | None:
    """The reason why an address must not be opened; `None` if it may. See `safe_url`."""
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


def has_parent_segment(uri: str) -> bool:
    """Whether the path of a URI has a segment `..`, plain or percent-encoded, once or twice."""
    return any(
        "\x00" in path or ".." in re.split(r"[/\\?#]", path)
        for path in _decoded_forms(uri.partition(":")[2])
    )


def may_escape_directory(value: str) -> bool:
    """Whether a value, used as a path in a directory, may lead out of the directory.

    True for a segment `..`, an absolute path, a drive letter and a NUL, with `/` or `\\` between
    segments, plain or percent-encoded, once or twice.
    """
    return any(
        "\x00" in path
        or path[:1] in ("/", "\\")
        or re.match(_DRIVE, path)
        or ".." in re.split(r"[/\\]", path)
        for path in _decoded_forms(value)
    )


def _decoded_forms(text: str) -> tuple[str, ...]:
    """A text as it is, and percent-decoded once and twice where that differs."""
    from urllib.parse import unquote

    if "%" not in text:
        return (text,)
    once = unquote(text)
    return text, once, unquote(once)
