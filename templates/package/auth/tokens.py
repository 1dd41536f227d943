"""Access tokens as a client keeps them, and the responses of token endpoints.

Source: RFC 6749, sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import AuthorizationError, OAuthError
from .documents import read_object
from .scopes import scopes_in
from .steps import Fetched

RENEWAL_SECONDS = 30.0
"""How long before its end a token is renewed; a token that lives for less, at half of its life."""


@dataclass(frozen=True)
class AccessToken:
    """An access token, and what came with it.

    Attributes:
        value: The token.
        scheme: How it is sent: `Bearer` or `DPoP`.
        renew_at: When to get another, in seconds since 1970; `None` if it has no known end.
        refresh_token: What to get another with.
        scopes: What it was granted for; `None` if the response does not say.
    """

    value: str = field(repr=False)
    scheme: str = "Bearer"
    renew_at: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] | None = None


def read_token(response: Fetched, where: str, now: float) -> AccessToken:
    """The token of a response of success, which `read_success` gave.

    Raises:
        AuthorizationError: The response has no token that can be used.
    """
    members = read_success(response, where)
    value, scheme = members.get("access_token"), members.get("token_type")
    if not isinstance(value, str) or not _is_header_safe(value):
        raise AuthorizationError(f"{where}: expected an access token")
    schemes = {"bearer": "Bearer", "dpop": "DPoP"}
    if not isinstance(scheme, str) or scheme.lower() not in schemes:
        raise AuthorizationError(f"{where}: expected the token type Bearer or DPoP")
    scope, refresh = members.get("scope"), members.get("refresh_token")
    return AccessToken(
        value,
        schemes[scheme.lower()],
        _renew_at(members.get("expires_in"), now),
        refresh if isinstance(refresh, str) and refresh else None,
        scopes_in(scope) if isinstance(scope, str) else None,
    )


def read_success(response: Fetched, where: str) -> Mapping[str, Any]:
    """The members of a response of success.

    Raises:
        OAuthError: The endpoint refused with a code.
        AuthorizationError: It refused otherwise, or the response is malformed.
    """
    if response.status in (200, 201):
        return read_object(response.body, where)
    raise refusal(response, where)


def refusal(response: Fetched, where: str) -> AuthorizationError:
    """The error for a response that is no success. Only the members of OAuth are shown of it."""
    if response.status >= 500:
        return AuthorizationError(f"{where}: HTTP {response.status}")
    try:
        members = read_object(response.body, where)
    except AuthorizationError:
        return AuthorizationError(f"{where}: HTTP {response.status}")
    code, description = members.get("error"), members.get("error_description")
    if not isinstance(code, str):
        return AuthorizationError(f"{where}: HTTP {response.status}")
    return OAuthError(where, code, description if isinstance(description, str) else "")


def _renew_at(expires_in: object, now: float) -> float | None:
    if isinstance(expires_in, str) and expires_in.isascii() and expires_in.isdigit():
        expires_in = int(expires_in[:12])
    if isinstance(expires_in, bool) or not isinstance(expires_in, int | float):
        return None
    seconds = max(float(expires_in), 0.0)
    return now + seconds - min(RENEWAL_SECONDS, seconds / 2)


def _is_header_safe(token: str) -> bool:
    return bool(token) and token.isascii() and token.isprintable() and " " not in token
