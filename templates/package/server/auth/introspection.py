"""Opaque access tokens: the authorization server says what they stand for.

Source: RFC 7662.
"""

from __future__ import annotations

import base64
import time
from urllib.parse import quote_plus, urlencode

import anyio

from ...errors import TransportError
from ...runtime.principal import Principal
from .issuer_fetch import IssuerHttp, check_url
from .jwt_verifier import principal_of, time_of
from .verifiers import (
    InvalidTokenError,
    PrincipalCache,
    TokenVerifier,
    TrustedIssuers,
    VerifyToken,
)

_INACTIVE_SECONDS = 5.0
_REQUESTS = 20  # at a time


class Introspection(TokenVerifier):
    """Asks an introspection endpoint about each token, and keeps its answers for a while.

    Args:
        endpoint: URL of the endpoint.
        client_id: Id of this server at the authorization server.
        secret: Its secret, sent by HTTP Basic authentication.
        seconds: How long an answer is kept, at most: a token that was revoked is accepted for that
            long. 0 asks for each request.
        any_audience: Whether an answer without `aud` is accepted: for endpoints that call a token
            active only if it is meant for the server that asks.

    Raises:
        ValueError: The endpoint is no https URL (or http of loopback), or `seconds` is negative.
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
        check_url("endpoint", endpoint)
        if seconds < 0:
            raise ValueError(f"seconds: expected 0 or more, got {seconds}")
        self._endpoint = endpoint
        pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()
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
        asking: dict[str, anyio.Lock] = {}

        async def verify(token: str) -> Principal | None:
            cached = cache.get(token)
            if cached is not None:
                return cached[0]
            lock = asking.setdefault(token, anyio.Lock())
            try:
                async with lock:  # one request for each token at a time
                    cached = cache.get(token)
                    if cached is not None:
                        return cached[0]
                    async with limiter:
                        principal = await self._ask(http, token, trusted)
                    known = principal is not None
                    seconds = self._seconds if known else min(self._seconds, _INACTIVE_SECONDS)
                    cache.add(token, principal, seconds)
                    return principal
            finally:
                if not lock.statistics().tasks_waiting:
                    asking.pop(token, None)

        return verify

    async def _ask(self, http: IssuerHttp, token: str, trusted: TrustedIssuers) -> Principal | None:
        form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        answer = await http.post(self._endpoint, self._headers, form)
        if answer is None:
            raise TransportError("the introspection endpoint: expected status 200")
        if answer.get("active") is not True:
            return None
        issuer = answer.get("iss")
        if issuer is None and len(trusted.issuers) == 1:
            (issuer,) = trusted.issuers
        if not isinstance(issuer, str) or issuer not in trusted.issuers:
            raise InvalidTokenError("iss: expected an issuer of this server")
        audience = answer.get("aud")
        if not (audience is None and self._any_audience) and not trusted.is_intended(audience):
            raise InvalidTokenError("aud: expected this server")
        expires = time_of(answer, "exp")
        if expires is not None and expires <= time.time():
            raise InvalidTokenError("exp: expected a time to come")
        return principal_of(answer, issuer, expires)
