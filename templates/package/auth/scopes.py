"""Sets of scopes, as lists of words with a space between them.

Source: RFC 6749, section 3.3; basic/authorization (scope selection strategy, step-up).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OFFLINE_ACCESS = "offline_access"
"""The scope by which a client asks for a refresh token. Source: OpenID Connect Core, section 11."""

_is_scope = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+").fullmatch


def scopes_in(text: str) -> tuple[str, ...]:
    """The scopes of a parameter, in order; words that are none are left out."""
    return united(word for word in text.split(" ") if _is_scope(word))


def united(*several: Iterable[str]) -> tuple[str, ...]:
    """The union of several sets, in the order of first mention."""
    return tuple(dict.fromkeys(scope for scopes in several for scope in scopes if _is_scope(scope)))


def selected(
    challenged: str | None, supported: Iterable[str] | None, configured: Iterable[str]
) -> tuple[str, ...]:
    """The scopes to request first.

    Args:
        challenged: The parameter of the challenge.
        supported: The scopes that the metadata of the resource lists.
        configured: The scopes that the user wants in any case.

    Returns:
        Those of the challenge; without it, those of the metadata; the configured ones with either.
        Empty to leave the parameter out.
    """
    first = scopes_in(challenged) if challenged is not None else united(supported or ())
    return united(first, configured)
