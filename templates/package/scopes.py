"""OAuth scopes: validation of configured scopes, lenient parsing of received ones.

Source: RFC 6749, section 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

OFFLINE_ACCESS = "offline_access"
"""The scope that requests a refresh token. It concerns client and authorization server only, so
resource servers do not list it. Source: OpenID Connect Core, section 11."""

_SCOPE = r"[\x21\x23-\x5b\x5d-\x7e]+"  # compiled when it is first used


def checked_scopes(scopes: Collection[str]) -> frozenset[str]:
    """Configured scopes, as a set.

    Raises:
        TypeError: One string instead of a collection.
        ValueError: A scope contains a character that scopes cannot contain.
    """
    if isinstance(scopes, str):
        raise TypeError(f"scopes: expected a collection of strings, got {scopes!r}")
    for scope in scopes:
        if not _is_scope(scope):
            raise ValueError(
                f"scopes: expected visible ASCII without spaces, quotes and backslashes, "
                f"got {scope!r}"
            )
    return frozenset(scopes)


def parse_scopes(text: str) -> tuple[str, ...]:
    """The scopes of a `scope` parameter, in order. Malformed scopes are ignored."""
    return union(text.split(" "))


def union(*several: Iterable[str]) -> tuple[str, ...]:
    """The union of lists of scopes, in order of first occurrence. Malformed scopes are ignored."""
    return tuple(dict.fromkeys(scope for scopes in several for scope in scopes if _is_scope(scope)))


def _is_scope(text: str) -> bool:
    return re.fullmatch(_SCOPE, text) is not None
