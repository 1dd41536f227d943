"""Private keys, and signing of JSON Web Tokens. Needs joserfc.

Source: RFC 7515, RFC 7517, RFC 7519, RFC 7638.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import MissingExtraError

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    _Key: TypeAlias = ECKey | OKPKey | RSAKey

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
    """A private key, with the algorithm to sign with.

    Args:
        pem: The key in PEM, or a JSON Web Key as JSON.
        algorithm: An asymmetric algorithm of JSON Web Signature, such as `ES256`.
        key_id: The `kid` in the header of signatures; `None` for none.

    Attributes:
        algorithm: The algorithm.

    Raises:
        MissingExtraError: joserfc is not installed.
        ValueError: The algorithm is symmetric or unknown, or the key is of another type. The text
            contains nothing of the key.
    """

    def __init__(self, pem: str | bytes, algorithm: str, key_id: str | None = None) -> None:
        self.algorithm = algorithm
        self._key_id = key_id
        self._key = _import_key(pem, algorithm)

    def __repr__(self) -> str:
        return f"<PrivateKey {self.algorithm}>"

    @classmethod
    def load(cls, path: str | Path, algorithm: str, key_id: str | None = None) -> PrivateKey:
        """A key from a file in PEM or as a JSON Web Key.

        Raises:
            OSError: The file cannot be read.
            ValueError: See `PrivateKey`.
        """
        return cls(Path(path).read_bytes(), algorithm, key_id)

    @classmethod
    def generate(cls, algorithm: str = "ES256") -> PrivateKey:
        """A new key."""
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
    try:
        value: Any = json.loads(data) if data.lstrip().startswith(b"{") else data
        key: _Key | None = kinds[kind].import_key(value)
        assert key is not None
        is_valid = key.is_private and (curve is None or getattr(key, "curve_name", None) == curve)
    except Exception:
        is_valid = False  # the error text of the library may contain the key
        key = None
    if key is None or not is_valid:
        raise ValueError(f"expected a private key for {algorithm}, in PEM or as JSON Web Key")
    return key
