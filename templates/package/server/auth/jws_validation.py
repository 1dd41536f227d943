"""Signed tokens (JWS): parsing, the allow-list of algorithms, and signatures, by joserfc.

A header with `crit` is rejected, because no header extension is supported. Keys in a header (`jku`,
`jwk`, `x5u`) are not used, except the `jwk` of a DPoP proof.

Source: RFC 7515, RFC 7517, RFC 8725.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found,no-any-return"
# mypy: allow-subclassing-any
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from ..._wire import is_object
from ...auth.json_documents import parse_object
from ...errors import MissingExtraError
from .verifiers import InvalidTokenError

if TYPE_CHECKING:
    from joserfc.jwk import Key
    from joserfc.jws import CompactSignature, JWSRegistry

ASYMMETRIC = (
    *("ES256", "RS256", "PS256", "Ed25519", "EdDSA"),
    *("ES384", "ES512", "RS384", "RS512", "PS384", "PS512"),
)
"""The supported algorithms: signatures with a public key."""

_MALFORMED = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(RecursionError, OverflowError),
)  # raised by joserfc and cryptography for malformed headers and keys, besides their own errors

_HEADER_BYTES = 8 * 1024  # the header of a DPoP proof contains a public key


class ParsedToken(msgspec.Struct, frozen=True):
    """A parsed token that is not verified yet.

    Attributes:
        header: The protected header.
        claims: The payload.
        jws: The token as an object of joserfc.
    """

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    jws: Any

    @property
    def kid(self) -> str | None:
        """The key id."""
        kid = self.header.get("kid")
        return kid if isinstance(kid, str) else None

    @property
    def media_type(self) -> str:
        """`typ` in lower case and without `application/`; empty if absent.

        Source: RFC 7515, section 4.1.9.
        """
        kind = self.header.get("typ")
        return kind.lower().removeprefix("application/") if isinstance(kind, str) else ""


def parse_token(token: str) -> ParsedToken | None:
    """A token in JWS compact serialization with an object as payload; `None` for other text.

    Raises:
        MissingExtraError: joserfc is not installed.
    """
    if token.count(".") != 2:
        return None
    errors = jose_errors()
    from joserfc import jws

    try:
        parsed = jws.extract_compact(token.encode("ascii"), None, registry_of(ASYMMETRIC))
    except (errors, *_MALFORMED):
        return None
    claims = parse_object(parsed.payload)
    if claims is None:
        return None
    return ParsedToken(parsed.headers(), claims, parsed)


def check_algorithm(token: ParsedToken, algorithms: Collection[str]) -> None:
    """Check the header of a token.

    Raises:
        InvalidTokenError: The algorithm is not allowed, or the header has critical extensions.
    """
    algorithm = token.header.get("alg")
    if algorithm not in algorithms:
        raise InvalidTokenError(f"alg: expected one of {', '.join(algorithms)}")
    if "crit" in token.header:
        raise InvalidTokenError("crit: expected no critical header parameters")


def is_signed_by(token: ParsedToken, key: Key, algorithms: Collection[str]) -> bool:
    """Whether a key allows signatures by this algorithm, and verifies the signature.

    joserfc checks `use`, `alg` and `key_ops` of the key.
    """
    errors = jose_errors()
    from joserfc import jws

    parsed: CompactSignature = token.jws
    try:
        return jws.validate_compact(parsed, key, None, registry_of(tuple(algorithms)))
    except (errors, *_MALFORMED):
        return False


def public_keys(document: Mapping[str, Any]) -> Sequence[Key]:
    """The public keys of a JWK set. Symmetric and malformed keys are ignored."""
    return [key for each in document.get("keys", ()) if (key := public_key(each)) is not None]


def public_key(data: object) -> Key | None:
    """An asymmetric key without private members; `None` for anything else."""
    errors = jose_errors()
    from joserfc.jwk import JWKRegistry, OctKey

    if not is_object(data) or data.get("kty") == OctKey.key_type:
        return None
    try:
        key = JWKRegistry.import_key(dict(data))
    except (errors, *_MALFORMED):
        return None
    return None if key.is_private else key


@cache
def registry_of(algorithms: tuple[str, ...]) -> JWSRegistry:
    """The registry of joserfc for an allow-list.

    Raises:
        ValueError: The list is empty. joserfc would replace an empty list by its own, which has
            symmetric algorithms.
    """
    from joserfc.jws import JWSRegistry

    if not algorithms:
        raise ValueError("algorithms: expected at least one")

    class Registry(JWSRegistry):
        """A registry that allows longer headers, and EdDSA without a deprecation warning."""

        max_header_length = _HEADER_BYTES

        def get_alg(self, name: str) -> Any:
            """An algorithm of the allow-list."""
            if name == "EdDSA" and name in algorithms:
                return self.algorithms[name]
            return super().get_alg(name)

    return Registry(algorithms=algorithms, strict_check_header=False)


@cache
def jose_errors() -> type[Exception]:
    """The base class of the exceptions of joserfc.

    Raises:
        MissingExtraError: joserfc is not installed.
    """
    try:
        from joserfc.errors import JoseError
    except ModuleNotFoundError:
        raise MissingExtraError("verifying signed tokens", "joserfc") from None
    return JoseError
