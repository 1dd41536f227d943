"""Client authentication at token endpoints.

Source: RFC 6749, section 2.3; RFC 7523, section 2.2; OpenID Connect Core, section 9.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

from ..errors import AuthorizationError
from .base64url import random_base64url

if TYPE_CHECKING:  # signing is an extra
    from .jwt_keys import PrivateKey

AuthMethod: TypeAlias = Literal[
    "client_secret_basic", "client_secret_post", "none", "private_key_jwt"
]

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS = 60
"""Lifetime of an assertion."""


@dataclass(frozen=True)
class ClientIdentity:
    """The credentials of a client at one authorization server.

    Attributes:
        client_id: The client id.
        client_secret: The client secret; `None` for a public client.
        method: The authentication method; `None` to choose one that the server supports.
        key: The key that signs assertions.
        audience: The audience of assertions; `None` for the issuer.
    """

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    key: PrivateKey | None = None
    audience: str | None = None


def choose_method(client: ClientIdentity, supported: Sequence[str] | None) -> AuthMethod:
    """The authentication method to use.

    Args:
        client: The client.
        supported: The methods that the server's metadata lists; `None` for the default of
            RFC 8414, which is `client_secret_basic`.

    Raises:
        AuthorizationError: The server supports no method that the client can use.
    """
    if client.method is not None:
        return client.method
    usable: list[AuthMethod] = []
    if client.key is not None:
        usable.append("private_key_jwt")
    if client.client_secret is not None:
        usable.append("client_secret_basic")
        usable.append("client_secret_post")
    if not usable:
        return "none"
    offered = supported if supported is not None else ("private_key_jwt", "client_secret_basic")
    for method in usable:
        if method in offered:
            return method
    if "none" in offered:
        return "none"
    raise AuthorizationError(f"the token endpoint supports none of the methods {', '.join(usable)}")


def authentication_fields(
    client: ClientIdentity, method: AuthMethod, issuer: str, now: Callable[[], float]
) -> tuple[dict[str, str], dict[str, str]]:
    """The header fields and the form fields that authenticate a request to a token endpoint.

    Args:
        client: The client.
        method: The authentication method.
        issuer: The issuer, which is the default audience of an assertion.
        now: The time, in seconds since 1970.

    Raises:
        AuthorizationError: The client has no secret or no key, and the method requires one.
    """
    if method == "none":
        return {}, {"client_id": client.client_id}
    if method == "private_key_jwt":
        return {}, _assertion(client, issuer, now())
    if client.client_secret is None:
        raise AuthorizationError(f"{method}: expected a client secret, got none")
    if method == "client_secret_post":
        return {}, {"client_id": client.client_id, "client_secret": client.client_secret}
    # A space is %20: some servers decode `+` as form fields do (RFC 6749, appendix B), some do not.
    pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
    header = f"Basic {base64.b64encode(pair.encode()).decode()}"
    # The official Python SDK's token endpoint finds the client by the form (RFC 6749, 3.2.1).
    return {"Authorization": header}, {"client_id": client.client_id}


def _assertion(client: ClientIdentity, issuer: str, now: float) -> dict[str, str]:
    if client.key is None:
        raise AuthorizationError("private_key_jwt: expected a private key, got none")
    claims = {
        "iss": client.client_id,
        "sub": client.client_id,
        "aud": client.audience or issuer,
        "jti": random_base64url(),
        "iat": int(now),
        "exp": int(now) + ASSERTION_SECONDS,
    }
    signed = client.key.sign({"typ": "JWT"}, claims)
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": signed}
