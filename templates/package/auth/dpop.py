"""DPoP proofs of a client: the key, a proof for each request, and the nonces of servers.

Source: RFC 9449; the DPoP extension of basic/authorization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from .base64url import base64url_sha256, random_base64url
from .canonical_uri import origin_of

if TYPE_CHECKING:  # signing is an extra
    from .jwt_keys import PrivateKey

USE_NONCE = "use_dpop_nonce"
"""The error code by which a server requires a nonce."""


class ProofKey:
    """The key that tokens are bound to, with the newest nonce of each server.

    Args:
        key: The key.
        now: The time, in seconds since 1970.
    """

    def __init__(self, key: PrivateKey, now: Callable[[], float]) -> None:
        self.key = key
        self._now = now
        self._nonces: dict[str, str] = {}

    def proof(self, method: str, url: str, access_token: str | None = None) -> str:
        """The value of the `DPoP` header of one request.

        Args:
            method: The method of the request.
            url: The URL of the request; the proof omits query and fragment.
            access_token: The token that the request carries.
        """
        target = urlunsplit(urlsplit(url)._replace(query="", fragment=""))
        claims: dict[str, str | int] = {
            "jti": random_base64url(),
            "htm": method,
            "htu": target,
            "iat": int(self._now()),
        }
        if access_token is not None:
            claims["ath"] = base64url_sha256(access_token)
        nonce = self._nonces.get(origin_of(url))
        if nonce is not None:
            claims["nonce"] = nonce
        return self.key.sign({"typ": "dpop+jwt", "jwk": self.key.public_jwk()}, claims)

    def take_nonce(self, url: str, nonce: str | None) -> bool:
        """Store the nonce of a response; returns whether the nonce is new."""
        if not nonce or len(nonce) > 4096:
            return False
        origin = origin_of(url)
        changed = self._nonces.get(origin) != nonce
        self._nonces[origin] = nonce
        return changed
