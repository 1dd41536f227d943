"""Verification of opaque access tokens by an introspection endpoint.

Source: RFC 7662.
"""

from __future__ import annotations

import base64
import time
from functools import partial
from urllib.parse import quote, urlencode

import anyio

from ...auth.address_rules import checked_https_url
from ...errors import ConnectFailedError, TransportError
from ...runtime.request_context import Principal
from .issuer_fetch import BackOff, IssuerHttp, NoResponseError, SharedFetch
from .verifiers import (
    InvalidTokenError,
    PrincipalCache,
    TokenVerifier,
    TrustedIssuers,
    VerifyToken,
    principal_of,
    time_of,
)

_INACTIVE_SECONDS = 5.0  # longest time that an inactive token is cached
_REQUESTS = 20  # concurrent requests to the endpoint
_RETRY_SECONDS = 1.0  # after a first missing response; doubles with each further one

LONGEST_RETRY = 10.0
"""Most seconds for which requests with uncached tokens get 503 after a missing response."""


class Introspection(TokenVerifier):
    """Verifies tokens by requests to an introspection endpoint, and caches the results.

    Args:
        endpoint: URL of the endpoint.
        client_id: The client id of this server at the authorization server.
        secret: The client secret, sent by HTTP Basic authentication.
        seconds: Longest time that a result is cached. A revoked token may be accepted for that
            long. 0 disables the cache; concurrent requests with one token share a result.
        any_audience: Whether a response without `aud` is accepted, for endpoints that report
            tokens of other servers as inactive.

    Raises:
        ValueError: The endpoint is not an https URL (or http to loopback), or `seconds` is
            negative.
    """

    def __init__(
        self,
        endpoint: str,
        client_id: str,
        secret: str,
        *,
        seconds: float = 60.0,
        any_audience: bool = False,
    ) -> None:
        checked_https_url("endpoint", endpoint)
        if seconds < 0:
            raise ValueError(f"seconds: expected 0 or more, got {seconds}")
        self._endpoint = endpoint
        # All servers decode %20 as a space, but not all servers decode `+` as one.
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()
        self._headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        self._seconds = seconds
        self._any_audience = any_audience

    def __repr__(self) -> str:
        return f"Introspection({self._endpoint!r})"

    def bind(self, trusted: TrustedIssuers) -> VerifyToken:
        """See `TokenVerifier.bind`."""
        http = IssuerHttp([self._endpoint])
        cache = PrincipalCache(self._seconds)
        limiter = anyio.CapacityLimiter(_REQUESTS)
        back_off = BackOff(_RETRY_SECONDS, LONGEST_RETRY)
        fetches: dict[str, SharedFetch[Principal | None]] = {}  # one per token at a time

        async def introspect(token: str) -> Principal | None:
            async with limiter:
                if not back_off.is_open(time.monotonic()):  # others had no response meanwhile
                    raise NoResponseError(self._endpoint)
                principal = await self._introspect(http, token, trusted)
            seconds = (
                self._seconds if principal is not None else min(self._seconds, _INACTIVE_SECONDS)
            )
            cache.add(token, principal, seconds)
            return principal

        def end(token: str, error: Exception | None) -> None:
            del fetches[token]
            if isinstance(error, NoResponseError | ConnectFailedError):
                back_off.fail(time.monotonic())
            else:  # the endpoint responds, even if it rejects the token
                back_off.succeed()

        async def verify(token: str) -> Principal | None:
            cached = cache.get(token)
            if cached is not None:
                return cached[0]
            if token not in fetches:
                if not back_off.is_open(time.monotonic()):
                    raise TransportError("the introspection endpoint did not respond")
                fetches[token] = SharedFetch(
                    partial(introspect, token), self._endpoint, partial(end, token)
                )
            return await fetches[token].result()

        return verify

    async def _introspect(
        self, http: IssuerHttp, token: str, trusted: TrustedIssuers
    ) -> Principal | None:
        form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        claims = await http.post(self._endpoint, self._headers, form)
        if claims is None:
            raise TransportError("the introspection endpoint: expected status 200")
        if claims.get("active") is not True:
            return None
        issuer = claims.get("iss")
        if issuer is None and len(trusted.issuers) == 1:
            (issuer,) = trusted.issuers
        if not isinstance(issuer, str) or issuer not in trusted.issuers:
            raise InvalidTokenError("iss: expected an issuer of this server")
        audience = claims.get("aud")
        if not (audience is None and self._any_audience) and not trusted.is_intended(audience):
            raise InvalidTokenError("aud: expected this server")
        expires = time_of(claims, "exp")
        if expires is not None and expires <= time.time():
            raise InvalidTokenError("exp: expected a time in the future")
        return principal_of(claims, issuer, expires)
