"""The keys of an issuer: fetched when first needed, and again when a token names an unknown key.

Keys rotate: a token with an unknown key id leads to a fetch, unless the keys were fetched a moment
ago. So a flood of tokens with made-up key ids causes one fetch per `cool_down` at most. Requests
that arrive during a fetch wait for it.

Source: RFC 7517, RFC 8414.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from ...auth.well_known import authorization_server_urls
from ...errors import TransportError
from .issuer_fetch import IssuerHttp
from .jws_validation import public_keys

if TYPE_CHECKING:
    from joserfc.jwk import Key

_RETRY_SECONDS = 5.0  # after a fetch that failed

logger = logging.getLogger(__name__)


class IssuerKeys:
    """The public keys of one issuer.

    Args:
        issuer: The issuer identifier.
        url: URL of its JWK set; `None` to take the one that its metadata names.
        http: Makes the requests.
        cool_down: Seconds between two fetches, at least.
        max_age: Seconds after which the keys are fetched again. If that fails, the old keys are
            used further.
        on_fetch: Called when keys were fetched.
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
        """The keys that may have signed a token: those of its key id, or all if it names none.

        Raises:
            TransportError: The keys can't be fetched.
        """
        found = self._matching(kid)
        if found and monotonic() < self._stale_at:
            return found
        async with self._lock:
            found = self._matching(kid)
            now = monotonic()
            if (not found or now >= self._stale_at) and now >= self._next_fetch:
                await self._fetch()
                found = self._matching(kid)
        if self._keys is None:
            raise TransportError("the keys of the issuer could not be fetched a moment ago")
        return found

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
            logger.warning("keys are used that are older than max_age: %s", error)
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
        raise TransportError("the metadata of the issuer: expected its own issuer and jwks_uri")
