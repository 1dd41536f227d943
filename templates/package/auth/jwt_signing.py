"""Signing by a client: private keys, JSON Web Tokens, and DPoP proofs.

Signing needs joserfc, which is imported with the first key. Base64url, digests and random values
do not need it.

Source: RFC 4648, section 5; RFC 7515; RFC 7517; RFC 7519; RFC 7638; RFC 9449; the DPoP extension of
basic/authorization.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found,no-any-return"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from ..errors import MissingExtraError
from .identifiers import origin_of

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    _Key: TypeAlias = ECKey | OKPKey | RSAKey


USE_NONCE = "use_dpop_nonce"
"""The error code of a server that requires a nonce."""

_KEY_TYPES = {
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "Ed25519": ("OKP", "Ed25519"),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
}
"""Key type and curve by algorithm. Symmetric algorithms and `none` are not supported."""


class PrivateKey:
    """A private key with its signature algorithm.

    Args:
        pem: The key in PEM, or a JSON Web Key as JSON.
        algorithm: An asymmetric algorithm of JSON Web Signature, such as `ES256`.
        key_id: The `kid` in the header of signatures; `None` for none.

    Attributes:
        algorithm: The algorithm.

    Raises:
        MissingExtraError: joserfc is not installed.
        ValueError: The algorithm is symmetric or unknown, or the key has another type. The text
            does not quote the key.
    """

    def __init__(self, pem: str | bytes, algorithm: str, key_id: str | None = None) -> None:
        self.algorithm = algorithm
        self._key_id = key_id
        self._key = _import_key(pem, algorithm)

    def __repr__(self) -> str:
        return f"<PrivateKey {self.algorithm}>"

    @classmethod
    def load(cls, path: str | Path, algorithm: str, key_id: str | None = None) -> PrivateKey:
        """Load a key from a file, in PEM or as a JSON Web Key.

        Raises:
            OSError: The file cannot be read.
            ValueError: See `PrivateKey`.
        """
        return cls(Path(path).read_bytes(), algorithm, key_id)

    @classmethod
    def generate(cls, algorithm: str = "ES256") -> PrivateKey:
        """Generate a new key."""
        kind, curve = _key_type(algorithm)
        try:
            from joserfc.jwk import JWKRegistry
        except ImportError:
            raise MissingExtraError("signing", "joserfc") from None
        key: Any = JWKRegistry.generate_key(kind, curve or 3072, private=True)
        return cls(json.dumps(key.as_dict(private=True)), algorithm)

    def private_jwk(self) -> str:
        """The private key as a JSON Web Key, for a store. It is a secret."""
        return json.dumps(self._key.as_dict(private=True))

    def public_jwk(self) -> dict[str, Any]:
        """The public key as a JSON Web Key, with the members that its thumbprint covers."""
        members: dict[str, Any] = dict(self._key.as_dict(private=False))
        return {
            name: members[name] for name in ("kty", "crv", "x", "y", "e", "n") if name in members
        }

    def thumbprint(self) -> str:
        """The thumbprint of the public key. Source: RFC 7638."""
        return self._key.thumbprint()

    def sign(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
        """A signed JSON Web Token.

        Args:
            header: Header members in addition to `alg` and `kid`.
            claims: The claims.
        """
        from joserfc import jws

        protected: dict[str, Any] = {"alg": self.algorithm, **header}
        if self._key_id is not None and "jwk" not in header:
            protected["kid"] = self._key_id
        payload = json.dumps(claims, separators=(",", ":"), ensure_ascii=False)
        registry = jws.JWSRegistry(algorithms=[self.algorithm], strict_check_header=False)
        return jws.serialize_compact(protected, payload, self._key, registry=registry)


def _key_type(algorithm: str) -> tuple[str, str | None]:
    if algorithm not in _KEY_TYPES:
        raise ValueError(f"expected an algorithm of {', '.join(_KEY_TYPES)}, got {algorithm!r}")
    return _KEY_TYPES[algorithm]


def _import_key(pem: str | bytes, algorithm: str) -> _Key:
    kind, curve = _key_type(algorithm)
    try:
        from joserfc.jwk import ECKey, OKPKey, RSAKey
    except ImportError:
        raise MissingExtraError("signing", "joserfc") from None
    kinds: dict[str, Any] = {"EC": ECKey, "OKP": OKPKey, "RSA": RSAKey}
    data = pem if isinstance(pem, bytes) else pem.encode()
    with suppress(Exception):  # the error text of the library may contain the key
        value: Any = json.loads(data) if data.lstrip().startswith(b"{") else data
        key: _Key = kinds[kind].import_key(value)
        if key.is_private and (curve is None or getattr(key, "curve_name", None) == curve):
            return key
    raise ValueError(f"expected a private key for {algorithm}, in PEM or as JSON Web Key")


class ProofKey:
    """The key that tokens are bound to, with the newest nonce of each server.

    Args:
        key: The key.
        now: Returns the time, in seconds since 1970.
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
        """Store the nonce of a response; return whether the nonce is new."""
        if not nonce or len(nonce) > 4096:
            return False
        origin = origin_of(url)
        changed = self._nonces.get(origin) != nonce
        self._nonces[origin] = nonce
        return changed


def base64url(data: bytes) -> str:
    """Bytes as base64url."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes:
    """The bytes of base64url; padding may be absent.

    Raises:
        ValueError: The length is impossible, or the text is not ASCII.
    """
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def base64url_sha256(text: str) -> str:
    """The SHA-256 digest of a text as base64url, for PKCE challenges and DPoP proofs."""
    return base64url(hashlib.sha256(text.encode()).digest())


def random_base64url(size: int = 32) -> str:
    """An unguessable value.

    Args:
        size: Number of random bytes.
    """
    return secrets.token_urlsafe(size)
