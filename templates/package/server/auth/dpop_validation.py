"""Validation of DPoP proofs, which show that a client has the key of a bound token.

A proof is accepted once: its id is stored until the proof is too old. If the store is full, the
oldest ids are evicted. With nonces, the proofs of evicted ids are rejected once the nonce is stale.
Processes without a shared store do not know the ids of each other: each process accepts a proof
once, until the proof is too old.

Source: RFC 9449.
"""

# The types of an optional library are unknown where the library is not installed.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import hashlib
import hmac
import os
import struct
import time
from dataclasses import KW_ONLY, dataclass
from urllib.parse import urlsplit, urlunsplit

from ...auth.identifiers import comparable_uri
from ...auth.json_documents import finite_number
from ...auth.jwt_signing import base64url, base64url_sha256, decode_base64url
from ...errors import McpError
from ..asgi.used_ids import MemoryUsedIds, UsedIds
from .jws_validation import (
    ASYMMETRIC,
    ParsedToken,
    check_algorithm,
    is_signed_by,
    jose_errors,
    parse_token,
    public_key,
)
from .verifiers import InvalidTokenError

STORED_IDS = 100_000
"""Most ids of proofs that one process stores."""

_ID_CHARACTERS = 1024
_NONCE_TIME = struct.Struct(">d")


class InvalidProofError(McpError):
    """A DPoP proof is missing or invalid. The text is logged, and not sent to the client."""


class NonceRequiredError(McpError):
    """A DPoP proof has no nonce of this server, or a stale nonce."""


@dataclass(frozen=True)
class DpopValidation:
    """Settings for DPoP proofs.

    Attributes:
        required: Whether every token must be bound to a key.
        nonce: Whether proofs require a nonce of this server, which shows that they are fresh.
        nonce_key: Key that signs nonces, at least 16 bytes; by default a random key of these
            settings. Processes that serve the same resource need the same key: those of
            `Server.run_workers` are given the same settings.
        algorithms: Accepted algorithms, all asymmetric.
        seconds: Largest difference between the time of a proof and of the server; also the lifetime
            of a nonce.

    Raises:
        ValueError: An algorithm is symmetric or unknown, or another value is out of range.
        MissingExtraError: joserfc is not installed.

    Source: RFC 9449, section 4.3.
    """

    _: KW_ONLY
    required: bool = False
    nonce: bool = False
    nonce_key: bytes | None = None
    algorithms: tuple[str, ...] = ASYMMETRIC
    seconds: float = 300.0

    def __post_init__(self) -> None:
        unknown = [name for name in self.algorithms if name not in ASYMMETRIC]
        if unknown or not self.algorithms:
            raise ValueError(
                f"algorithms: expected some of {', '.join(ASYMMETRIC)}, got {unknown or 'none'}"
            )
        if not self.seconds > 0:
            raise ValueError(f"seconds: expected more than 0, got {self.seconds}")
        jose_errors()
        if self.nonce_key is None:
            object.__setattr__(self, "nonce_key", os.urandom(32))  # the class is frozen
        elif len(self.nonce_key) < 16:
            raise ValueError(f"nonce_key: expected at least 16 bytes, got {len(self.nonce_key)}")

    def __repr__(self) -> str:
        return f"DpopValidation(required={self.required}, nonce={self.nonce})"


class ProofValidator:
    """Validates the proofs of one server.

    Args:
        settings: The settings.
        used: Stores the ids of proofs; by default in this process.
    """

    def __init__(self, settings: DpopValidation, used: UsedIds | None = None) -> None:
        self._settings = settings
        assert settings.nonce_key is not None  # the settings make one
        self._key = settings.nonce_key
        self._used: UsedIds = MemoryUsedIds(STORED_IDS) if used is None else used

    async def check(self, proof: str | None, token: str, jkt: str, method: str, url: str) -> None:
        """Check the proof of a request.

        Args:
            proof: The value of the `DPoP` field; several values joined by commas.
            token: The access token.
            jkt: The thumbprint of the key that the token is bound to.
            method: The HTTP method.
            url: The public URL of the request; the query is ignored.

        Raises:
            InvalidProofError: The proof is missing, invalid, or was used before.
            NonceRequiredError: The proof is valid, except for its nonce.
            TransportError: The store of used ids can't be reached.
        """
        parsed = None if proof is None else parse_token(proof)
        if parsed is None:
            raise InvalidProofError("DPoP: expected one signed proof")
        self._check_signature(parsed, jkt)
        claims = parsed.claims
        if claims.get("htm") != method:
            raise InvalidProofError(f"htm: expected {method}")
        if not isinstance(htu := claims.get("htu"), str) or _normalize(htu) != _normalize(url):
            raise InvalidProofError(f"htu: expected {_normalize(url)}")
        if not isinstance(claims.get("ath"), str) or claims["ath"] != base64url_sha256(token):
            raise InvalidProofError("ath: expected the digest of the token")
        issued, now, seconds = finite_number(claims.get("iat")), time.time(), self._settings.seconds
        if issued is None or not now - seconds <= issued <= now + seconds:
            raise InvalidProofError("iat: expected the current time")
        identifier = claims.get("jti")
        if not isinstance(identifier, str) or not 0 < len(identifier) <= _ID_CHARACTERS:
            raise InvalidProofError("jti: expected an id")
        if self._settings.nonce and not self._is_fresh(claims.get("nonce")):
            raise NonceRequiredError("nonce: expected a fresh one of this server")
        digest = hashlib.sha256(f"{jkt} {identifier}".encode("utf-8", "surrogatepass")).digest()
        if not await self._used.use(digest, 2 * seconds):
            raise InvalidProofError("jti: the proof was used before")

    def nonce(self) -> str:
        """A new nonce: the signed current time."""
        stamp = _NONCE_TIME.pack(time.time())
        return base64url(stamp + hmac.digest(self._key, b"mcp dpop nonce\n" + stamp, "sha256"))

    def _check_signature(self, proof: ParsedToken, jkt: str) -> None:
        algorithms = self._settings.algorithms
        if proof.media_type != "dpop+jwt":
            raise InvalidProofError("typ: expected dpop+jwt")
        try:
            check_algorithm(proof, algorithms)
        except InvalidTokenError as error:
            raise InvalidProofError(str(error)) from None
        key = public_key(proof.header.get("jwk"))
        if key is None:
            raise InvalidProofError("jwk: expected a public key")
        if key.thumbprint() != jkt:
            raise InvalidProofError("jwk: expected the key that the token is bound to")
        if not is_signed_by(proof, key, algorithms):
            raise InvalidProofError("the signature does not match the key")

    def _is_fresh(self, nonce: object) -> bool:
        if not isinstance(nonce, str) or not nonce.isascii():
            return False
        try:
            raw = decode_base64url(nonce)
        except ValueError:
            return False
        stamp, signature = raw[: _NONCE_TIME.size], raw[_NONCE_TIME.size :]
        expected = hmac.digest(self._key, b"mcp dpop nonce\n" + stamp, "sha256")
        if not hmac.compare_digest(signature, expected):
            return False  # a matching signature implies a complete stamp
        issued: float = _NONCE_TIME.unpack(stamp)[0]
        return abs(time.time() - issued) <= self._settings.seconds


def _normalize(url: str) -> str:
    """A URL for comparison: without query, fragment and trailing slash."""
    try:
        return comparable_uri(urlunsplit(urlsplit(url)._replace(query="", fragment=""))).rstrip("/")
    except ValueError:
        return url
