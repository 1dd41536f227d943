"""Verification of access tokens that are signed JWTs, with the keys of their issuers.

The keys of an issuer are fetched on first use, and again after a rotation: a token with an unknown
key id causes a fetch, unless the keys were fetched less than `cool_down` ago. So a flood of tokens
with invented key ids causes at most one fetch per `cool_down`. One fetch runs at a time, in a
separate task. A request with an unknown key waits for the result of the fetch. A request with a
known key that is older than `max_age` waits for `REFRESH_SECONDS` at most, and does not wait after
a failed fetch: an issuer that does not respond does not delay requests with known keys.

Source: RFC 7517, RFC 7519, RFC 8414, RFC 8725, RFC 9068; basic/authorization#token-handling.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from ...auth.address_rules import checked_https_url
from ...auth.identifiers import authorization_server_urls
from ...errors import TransportError
from ...runtime.request_context import Principal
from .issuer_fetch import BackOff, IssuerHttp, SharedFetch
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
    principal_of,
    time_of,
)

if TYPE_CHECKING:
    from joserfc.jwk import Key

_ACCESS_TOKEN = "at+jwt"
_TYPES = ("", "jwt", _ACCESS_TOKEN)
_ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash")
_CACHE_SECONDS = 300.0
_RETRY_SECONDS = 5.0  # after a failed fetch; doubles with each further failure

REFRESH_SECONDS = 2.0
"""Most seconds that a request waits for newer keys, if the old keys could verify its token."""

LONGEST_RETRY = 60.0
"""Most seconds between two fetches of keys while an issuer fails."""

logger = logging.getLogger(__name__)


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
        sources = {each: self._make_source(each, cache) for each in trusted.issuers}

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

    def _make_source(self, issuer: str, cache: PrincipalCache) -> _IssuerKeys | _FixedKeys:
        if self._keys is not None:
            document = self._keys if "keys" in self._keys else self._keys.get(issuer, {})
            return _FixedKeys(public_keys(document))
        url = self._jwks if isinstance(self._jwks, str) else (self._jwks or {}).get(issuer)
        http = IssuerHttp([issuer] if url is None else [url])
        return _IssuerKeys(issuer, url, http, self._cool_down, self._max_age, cache.clear)

    def _principal(self, token: ParsedToken, trusted: TrustedIssuers) -> Principal:
        """The principal of a token whose signature and issuer are valid."""
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


class _IssuerKeys:
    """The public keys of one issuer.

    Args:
        issuer: The issuer identifier.
        url: URL of the JWK set; `None` to read the URL in the metadata of the issuer.
        http: Makes the requests.
        cool_down: Shortest time between two fetches, in seconds.
        max_age: Seconds after which the keys are fetched again. If the fetch fails, the old keys
            remain in use.
        on_fetch: Called after each successful fetch.
    """

    def __init__(
        self,
        issuer: str,
        url: str | None,
        http: IssuerHttp,
        cool_down: float,
        max_age: float,
        on_fetch: Callable[[], object],
    ) -> None:
        self._issuer = issuer
        self._url = url
        self._http = http
        self._cool_down = cool_down
        self._max_age = max_age
        self._on_fetch = on_fetch
        self._keys: Sequence[Key] | None = None
        self._stale_at = self._next_fetch = float("-inf")
        self._back_off = BackOff(min(_RETRY_SECONDS, cool_down), LONGEST_RETRY)
        self._fetch: SharedFetch[None] | None = None

    async def find(self, kid: str | None) -> Sequence[Key]:
        """The keys that may have signed a token: those with its key id, or all without a key id."""
        keys = self._keys_with_id(kid)
        if keys and time.monotonic() < self._stale_at:
            return keys
        fetch = self._current_fetch()
        if fetch is not None and not (keys and self._back_off.failures):
            seconds = REFRESH_SECONDS if keys else float("inf")
            try:
                with anyio.move_on_after(seconds):
                    await fetch.result()
            except TransportError:
                if self._keys is None:
                    raise
        if self._keys is None:
            raise TransportError("the last fetch of the keys of the issuer failed")
        return self._keys_with_id(kid)

    def _current_fetch(self) -> SharedFetch[None] | None:
        """The running fetch, or a new one; `None` if a new fetch is not allowed yet."""
        now = time.monotonic()
        if self._fetch is not None and self._fetch.is_running:
            return self._fetch
        if now < self._next_fetch or not self._back_off.is_open(now):
            return None
        self._fetch = SharedFetch(self._refresh, self._url or self._issuer, self._end_fetch)
        return self._fetch

    def _keys_with_id(self, kid: str | None) -> Sequence[Key]:
        return [key for key in self._keys or () if kid is None or key.kid == kid]

    async def _refresh(self) -> None:
        document = await self._http.get(self._url or await self._discover_url())
        if document is None or not isinstance(document.get("keys"), list):
            raise TransportError("the JWK set of the issuer: expected status 200 and keys")
        self._keys = public_keys(document)
        now = time.monotonic()
        self._next_fetch, self._stale_at = now + self._cool_down, now + self._max_age
        self._on_fetch()

    def _end_fetch(self, error: Exception | None) -> None:
        if error is None:
            self._back_off.succeed()
            return
        self._back_off.fail(time.monotonic())
        kept = "" if self._keys is None else "; the old ones remain in use"
        logger.warning("the keys of the issuer could not be fetched%s: %s", kept, error)

    async def _discover_url(self) -> str:
        """The URL of the JWK set in the metadata of the issuer."""
        for url in authorization_server_urls(self._issuer):
            metadata: dict[str, Any] | None = await self._http.get(url)
            if metadata is None or metadata.get("issuer") != self._issuer:
                continue
            jwks = metadata.get("jwks_uri")
            if isinstance(jwks, str):
                return jwks
        raise TransportError("the metadata of the issuer: expected its issuer and jwks_uri")


class _FixedKeys:
    """The keys in the settings, with the interface of `_IssuerKeys`."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys

    async def find(self, kid: str | None) -> Sequence[Key]:
        """See `_IssuerKeys.find`."""
        return [key for key in self._keys if kid is None or key.kid in (None, kid)]


def _is_id_token(claims: Mapping[str, Any]) -> bool:
    """Whether the claims are from an ID token.

    The claims of OpenID Connect, `typ` (Keycloak) and `token_use` (Cognito) are checked.
    """
    return (
        any(name in claims for name in _ID_TOKEN_CLAIMS)
        or claims.get("typ") == "ID"
        or claims.get("token_use") == "id"
    )
