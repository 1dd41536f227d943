"""Verification of access tokens that are signed JWTs.

Source: RFC 9068, RFC 7519, RFC 8725; basic/authorization#token-handling.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._wire import is_many
from ...auth.address_rules import checked_https_url
from ...runtime.request_context import Principal
from .issuer_fetch import IssuerHttp
from .jwks import IssuerKeys
from .jws_validation import (
    ASYMMETRIC,
    ParsedToken,
    check_algorithm,
    is_signed_by,
    jose_errors,
    parse_token,
    public_keys,
)
from .verifiers import (
    InvalidTokenError,
    PrincipalCache,
    TokenVerifier,
    TrustedIssuers,
    VerifyToken,
)

if TYPE_CHECKING:
    from joserfc.jwk import Key

_ACCESS_TOKEN = "at+jwt"
_TYPES = ("", "jwt", _ACCESS_TOKEN)
_ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash")
_CACHE_SECONDS = 300.0


class JwtVerifier(TokenVerifier):
    """Verifies JWTs: signature, issuer, audience, time, and token type.

    Args:
        jwks: URL of the JWK set, or URLs by issuer; by default the URL in the metadata of the
            issuer.
        keys: The JWK set, or JWK sets by issuer, instead of fetched keys.
        algorithms: Accepted values of `alg`; `none` and symmetric algorithms are never accepted.
        typed: Whether `typ` must be `at+jwt` (RFC 9068). Many authorization servers omit it.
            Tokens without it are rejected if they have a claim that only ID tokens have.
        leeway: Largest difference between clocks, in seconds.
        cool_down: Shortest time between two fetches of the keys of one issuer, in seconds.
        max_age: Seconds after which keys are fetched again.

    Raises:
        ValueError: An algorithm is symmetric or unknown, a URL is not https, or both `jwks` and
            `keys` are given.
        MissingExtraError: joserfc is not installed.
    """

    def __init__(
        self,
        *,
        jwks: str | Mapping[str, str] | None = None,
        keys: Mapping[str, Any] | None = None,
        algorithms: Sequence[str] = ASYMMETRIC,
        typed: bool = False,
        leeway: float = 30.0,
        cool_down: float = 30.0,
        max_age: float = 3600.0,
    ) -> None:
        unknown = [name for name in algorithms if name not in ASYMMETRIC]
        if unknown or not algorithms:
            raise ValueError(
                f"algorithms: expected some of {', '.join(ASYMMETRIC)}, got {unknown or 'none'}"
            )
        if jwks is not None and keys is not None:
            raise ValueError("expected either jwks or keys")
        for url in (jwks,) if isinstance(jwks, str) else (jwks or {}).values():
            checked_https_url("jwks", url)
        jose_errors()
        self.algorithms = tuple(algorithms)
        self.typed = typed
        self.leeway = leeway
        self._jwks = jwks
        self._keys = keys
        self._cool_down = cool_down
        self._max_age = max_age

    def bind(self, trusted: TrustedIssuers) -> VerifyToken:
        """See `TokenVerifier.bind`."""
        cache = PrincipalCache(_CACHE_SECONDS)
        sources = {each: self._source(each, cache) for each in trusted.issuers}

        async def verify(token: str) -> Principal | None:
            cached = cache.get(token)
            if cached is not None:
                return cached[0]
            parsed = parse_token(token)
            if parsed is None:
                return None
            issuer = parsed.claims.get("iss")
            source = sources.get(issuer) if isinstance(issuer, str) else None
            if source is None:
                return None
            check_algorithm(parsed, self.algorithms)
            keys = await source.find(parsed.kid)
            if not any(is_signed_by(parsed, key, self.algorithms) for key in keys):
                raise InvalidTokenError("the signature matches no key of the issuer")
            principal = self._principal(parsed, trusted)
            cache.add(token, principal)
            return principal

        return verify

    def _source(self, issuer: str, cache: PrincipalCache) -> IssuerKeys | _FixedKeys:
        if self._keys is not None:
            document = self._keys if "keys" in self._keys else self._keys.get(issuer, {})
            return _FixedKeys(public_keys(document))
        url = self._jwks if isinstance(self._jwks, str) else (self._jwks or {}).get(issuer)
        http = IssuerHttp([issuer] if url is None else [url])
        return IssuerKeys(issuer, url, http, self._cool_down, self._max_age, cache.clear)

    def _principal(self, token: ParsedToken, trusted: TrustedIssuers) -> Principal:
        """The principal of a token whose signature and issuer are valid.

        Raises:
            InvalidTokenError: A claim is missing or wrong.
        """
        claims, now = token.claims, time.time()
        if token.media_type not in ((_ACCESS_TOKEN,) if self.typed else _TYPES):
            raise InvalidTokenError("typ: expected an access token")
        if token.media_type != _ACCESS_TOKEN and _is_id_token(claims):
            raise InvalidTokenError("expected an access token, got an ID token")
        if not trusted.is_intended(claims.get("aud")):
            raise InvalidTokenError("aud: expected this server")
        expires = time_of(claims, "exp")
        if expires is None or now >= expires + self.leeway:
            raise InvalidTokenError("exp: expected a time in the future")
        for name in ("nbf", "iat"):
            since = time_of(claims, name)
            if since is not None and since > now + self.leeway:
                raise InvalidTokenError(f"{name}: expected a time in the past")
        return principal_of(claims, claims["iss"], expires + self.leeway)


class _FixedKeys:
    """The keys in the settings, with the interface of `IssuerKeys`."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys

    async def find(self, kid: str | None) -> Sequence[Key]:
        """See `IssuerKeys.find`."""
        return [key for key in self._keys if kid is None or key.kid in (None, kid)]


def _is_id_token(claims: Mapping[str, Any]) -> bool:
    """Whether claims are those of an ID token.

    The claims of OpenID Connect, `typ` (Keycloak) and `token_use` (Cognito) are checked.
    """
    return (
        any(name in claims for name in _ID_TOKEN_CLAIMS)
        or claims.get("typ") == "ID"
        or claims.get("token_use") == "id"
    )


def principal_of(claims: Mapping[str, Any], issuer: str | None, expires: float | None) -> Principal:
    """The principal of the claims of a token, or of the members of an introspection response.

    Scopes are in `scope` or `scp`, a string or an array; the client is in `client_id` or `azp`.

    Raises:
        InvalidTokenError: The claims name neither a subject nor a client, or a malformed scope.
    """
    subject = claims.get("sub")
    client = claims.get("client_id", claims.get("azp"))
    client = client if isinstance(client, str) else None
    if not isinstance(subject, str) or not subject:
        subject = client
    if not subject:
        raise InvalidTokenError("sub: expected a subject")
    scope = claims.get("scope", claims.get("scp", ""))
    words: object = scope.split() if isinstance(scope, str) else scope
    scopes = [each for each in words if isinstance(each, str)] if is_many(words) else []
    try:
        return Principal(
            subject,
            scopes=scopes,
            issuer=issuer,
            client_id=client,
            claims=dict(claims),
            expires=expires,
        )
    except ValueError:
        raise InvalidTokenError("scope: expected scopes") from None


def time_of(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is a time, in seconds since the epoch; `None` if absent.

    Raises:
        InvalidTokenError: The claim is not a number, or is out of range.
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError(f"{name}: expected a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidTokenError(f"{name}: expected a time") from None
