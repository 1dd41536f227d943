"""How a client authenticates at a token endpoint.

Source: RFC 6749, section 2.3; RFC 7523, section 2.2; OpenID Connect Core, section 9.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote_plus

from ..errors import AuthorizationError
from .pkce import new_state

if TYPE_CHECKING:  # signing is an extra
    from .jwt_keys import PrivateKey

AuthMethod: TypeAlias = Literal[
    "client_secret_basic", "client_secret_post", "none", "private_key_jwt"
]

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS = 60
"""How long an assertion is valid."""


@dataclass(frozen=True)
class ClientIdentity:
    """Who a client is at one authorization server.

    Attributes:
        client_id: Its id.
        client_secret: Its secret; `None` for a public client.
        method: How it authenticates; `None` to choose one that the server supports.
        key: What it signs assertions with.
        audience: The audience of assertions; `None` for the issuer.
    """

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    key: PrivateKey | None = None
    audience: str | None = None


def chosen_method(client: ClientIdentity, supported: Sequence[str] | None) -> AuthMethod:
    """The method to authenticate by.

    Args:
        client: The client.
        supported: The methods that the server's metadata lists; `None` for the default of
            RFC 8414, which is `client_secret_basic`.

    Raises:
        AuthorizationError: The server supports none that the client can use.
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


def authenticated(
    client: ClientIdentity, method: AuthMethod, issuer: str, now: Callable[[], float]
) -> tuple[dict[str, str], dict[str, str]]:
    """What a request to a token endpoint gets: header fields, and fields of the form.

    Args:
        client: The client.
        method: How it authenticates.
        issuer: The issuer, as the audience of an assertion.
        now: The time, in seconds since 1970.

    Raises:
        AuthorizationError: The client lacks what the method needs.
    """
    if method == "none":
        return {}, {"client_id": client.client_id}
    if method == "private_key_jwt":
        return {}, _assertion(client, issuer, now())
    if client.client_secret is None:
        raise AuthorizationError(f"{method} needs a client secret, and there is none")
    if method == "client_secret_post":
        return {}, {"client_id": client.client_id, "client_secret": client.client_secret}
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}


def _assertion(client: ClientIdentity, issuer: str, now: float) -> dict[str, str]:
    if client.key is None:
        raise AuthorizationError("private_key_jwt needs a private key, and there is none")
    claims = {
        "iss": client.client_id,
        "sub": client.client_id,
        "aud": client.audience or issuer,
        "jti": new_state(),
        "iat": int(now),
        "exp": int(now) + ASSERTION_SECONDS,
    }
    signed = client.key.sign({"typ": "JWT"}, claims)
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": signed}
