"""Proofs of possession (DPoP): a key, a proof per request, and the nonces of each server.

Source: RFC 9449; the DPoP extension of basic/authorization.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from .pkce import base64url, new_state
from .well_known import origin_of

if TYPE_CHECKING:  # signing is an extra
    from .jwt_keys import PrivateKey

USE_NONCE = "use_dpop_nonce"
"""The error by which a server asks for its nonce."""


class ProofKey:
    """A key, and the last nonce that each server gave.

    Args:
        key: The key; its algorithm is asymmetric.
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
            url: Its address; query and fragment are left out of the proof.
            access_token: The token that goes with it.
        """
        target = urlunsplit(urlsplit(url)._replace(query="", fragment=""))
        claims: dict[str, str | int] = {
            "jti": new_state(),
            "htm": method,
            "htu": target,
            "iat": int(self._now()),
        }
        if access_token is not None:
            claims["ath"] = base64url(hashlib.sha256(access_token.encode()).digest())
        nonce = self._nonces.get(origin_of(url))
        if nonce is not None:
            claims["nonce"] = nonce
        return self.key.sign({"typ": "dpop+jwt", "jwk": self.key.public_jwk()}, claims)

    def take_nonce(self, url: str, nonce: str | None) -> bool:
        """Keep the nonce of a server's response; whether it is another one than before."""
        if not nonce or len(nonce) > 4096:
            return False
        origin = origin_of(url)
        changed = self._nonces.get(origin) != nonce
        self._nonces[origin] = nonce
        return changed
