"""The keys of an issuer, fetched on first use, and again after a rotation.

A token with an unknown key id causes a fetch, unless the keys were fetched less than `cool_down`
ago. So a flood of tokens with invented key ids causes at most one fetch per `cool_down`. Requests
that arrive during a fetch wait for its result.

Source: RFC 7517, RFC 8414.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from ...auth.identifiers import authorization_server_urls
from ...errors import TransportError
from .issuer_fetch import IssuerHttp
from .jws_validation import public_keys

if TYPE_CHECKING:
    from joserfc.jwk import Key

_RETRY_SECONDS = 5.0  # after a failed fetch

logger = logging.getLogger(__name__)


class IssuerKeys:
    """The public keys of one issuer.

    Args:
        issuer: The issuer identifier.
        url: URL of the JWK set; `None` to read the URL in the metadata of the issuer.
        http: Makes the requests.
        cool_down: Shortest time between two fetches, in seconds.
        max_age: Seconds after which the keys are fetched again. If that fails, the old keys remain
            in use.
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
        self._stale_at = self._next_fetch = 0.0
        self._lock = anyio.Lock()

    async def find(self, kid: str | None) -> Sequence[Key]:
        """The keys that may have signed a token: those with its key id, or all without a key id.

        Raises:
            TransportError: The keys cannot be fetched.
        """
        keys = self._matching(kid)
        if keys and monotonic() < self._stale_at:
            return keys
        async with self._lock:
            keys = self._matching(kid)
            now = monotonic()
            if (not keys or now >= self._stale_at) and now >= self._next_fetch:
                await self._fetch()
                keys = self._matching(kid)
        if self._keys is None:
            raise TransportError("the last fetch of the keys of the issuer failed")
        return keys

    def _matching(self, kid: str | None) -> Sequence[Key]:
        return [key for key in self._keys or () if kid is None or key.kid == kid]

    async def _fetch(self) -> None:
        self._next_fetch = monotonic() + min(_RETRY_SECONDS, self._cool_down)
        try:
            document = await self._http.get(self._url or await self._discovered_url())
            if document is None or not isinstance(document.get("keys"), list):
                raise TransportError("the JWK set of the issuer: expected status 200 and keys")
        except TransportError as error:
            if self._keys is None:
                raise
            logger.warning("keys older than max_age remain in use: %s", error)
            return
        self._keys = public_keys(document)
        now = monotonic()
        self._next_fetch, self._stale_at = now + self._cool_down, now + self._max_age
        self._on_fetch()

    async def _discovered_url(self) -> str:
        """The URL of the JWK set in the metadata of the issuer."""
        for url in authorization_server_urls(self._issuer):
            metadata: dict[str, Any] | None = await self._http.get(url)
            if metadata is None or metadata.get("issuer") != self._issuer:
                continue
            jwks = metadata.get("jwks_uri")
            if isinstance(jwks, str):
                return jwks
        raise TransportError("the metadata of the issuer: expected its issuer and jwks_uri")
