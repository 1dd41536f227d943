"""Access tokens of a client, and the responses of token endpoints.

Source: RFC 6749, sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import AuthorizationError, OAuthError
from .documents import read_object
from .scopes import parse_scopes
from .steps import Fetched

RENEWAL_SECONDS = 30.0
"""Seconds before its expiry at which a token is refreshed. A token that lives for less than twice
as long is refreshed after half of its lifetime."""


@dataclass(frozen=True)
class AccessToken:
    """An access token, with the other members of the token response.

    Attributes:
        value: The token.
        scheme: The authentication scheme: `Bearer` or `DPoP`.
        renew_at: When to refresh the token, in seconds since 1970; `None` if its expiry is unknown.
        refresh_token: The refresh token, if there is one.
        scopes: The granted scopes; `None` if the response names none.
    """

    value: str = field(repr=False)
    scheme: str = "Bearer"
    renew_at: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] | None = None


def read_token(response: Fetched, where: str, now: float) -> AccessToken:
    """The token of a token response.

    Args:
        response: The response.
        where: The endpoint, for errors.
        now: The time, in seconds since 1970.

    Raises:
        OAuthError: The endpoint refused with an error code.
        AuthorizationError: The response is malformed, or has no usable token.
    """
    members = read_success(response, where)
    value, scheme = members.get("access_token"), members.get("token_type")
    if not isinstance(value, str) or not is_header_safe(value):
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
        parse_scopes(scope) if isinstance(scope, str) else None,
    )


def read_success(response: Fetched, where: str) -> Mapping[str, Any]:
    """The members of a successful response.

    Raises:
        OAuthError: The endpoint refused with an error code.
        AuthorizationError: The endpoint refused without an error code, or the response is
            malformed.
    """
    if response.status in (200, 201):
        return read_object(response.body, where)
    raise refusal(response, where)


def refusal(response: Fetched, where: str) -> AuthorizationError:
    """The error for an unsuccessful response. It contains only `error` and `error_description`."""
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


def is_header_safe(token: str) -> bool:
    """Whether a token can be sent in an `Authorization` header."""
    return bool(token) and token.isascii() and token.isprintable() and " " not in token
