"""The token of one connection: kept, sent, renewed before its end, and got anew when refused.

One task at a time renews; the others wait for what it gets. Over processes the store's lock does
the same, and only for requests to the token endpoint: a token that another process got meanwhile is
used. No lock is held while a request to the MCP server is under way.

Source: basic/authorization (access token usage, refresh tokens, step-up authorization flow).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import msgspec

from ...auth.addresses import PUBLIC, AddressCheck, AddressRules
from ...auth.challenges import Challenge, parse_challenges
from ...auth.client_authentication import ClientIdentity
from ...auth.discovery import (
    Discovered,
    Surroundings,
    discovered,
    initial_scopes,
    step_up_scopes,
    with_offline_access,
)
from ...auth.documents import canonical_resource
from ...auth.dpop import USE_NONCE, ProofKey
from ...auth.records import Grant, decoded_record, encoded_record, grant_key
from ...auth.scopes import united
from ...auth.steps import Flow
from ...auth.token_requests import refreshed
from ...errors import AuthorizationError, TransportError
from ...facts import Revision, Revisions
from ...runtime.pausable_limits import paused
from ...transports.http.http_errors import same_origin
from .auth_fetcher import AuthFetcher
from .flow_driver import FlowDriver
from .interactions import Interaction
from .stores import Store

if TYPE_CHECKING:  # signing is an extra
    from ...auth.jwt_keys import PrivateKey
    from ...transports.http.http_libraries import Response

logger = logging.getLogger(__name__.partition(".")[0])

ATTEMPTS = 5
"""How often one request is sent again, for any reason."""

STEP_UPS = 2
"""Authorizations with more scopes for one operation, after the first."""

POSTPONED_SECONDS = 10.0
"""Seconds until an early renewal that failed is tried again; the old token is sent meanwhile."""


@dataclass(frozen=True)
class AuthSettings:
    """What all ways to a token have in common.

    Attributes:
        store: Where grants are kept.
        addresses: What may be fetched beyond the rules.
        scopes: Scopes that are asked for in any case.
        proof_key: The key that tokens are bound to; `True` to make one, `None` for none.
        interaction: The way to the user; `None` if there is no user.
        issuer: The authorization server that the credentials belong to; `None` for any.
        binds_issuer: Whether credentials belong to the first authorization server that they were
            used at.
        send_resource: Whether requests have `resource`.
        accept_issuer_slash: Whether an issuer may differ by a slash in the end.
        now: The time, in seconds since 1970.
    """

    store: Store
    addresses: AddressRules = PUBLIC
    scopes: Sequence[str] = ()
    proof_key: PrivateKey | bool | None = None
    interaction: Interaction | None = None
    issuer: str | None = None
    binds_issuer: bool = False
    send_resource: bool = True
    accept_issuer_slash: bool = False
    now: Callable[[], float] = time.time


class GrantSource(Protocol):
    """A way to a grant.

    Attributes:
        settings: What it has in common with others.
    """

    settings: AuthSettings

    def granted(
        self, around: Surroundings, server: Discovered, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """The flow that ends with a grant."""
        ...

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """Who a grant was made to."""
        ...


def surroundings(url: str, revisions: Revisions, settings: AuthSettings) -> Surroundings:
    """What the flows for one server have in common."""

    def older() -> Revision | None:
        at_origin = (
            revision
            for revision in reversed([revisions[name] for name in revisions])
            if revision.facts.authorization.discovery == "origin"
        )
        return next(at_origin, None)

    return Surroundings(
        url,
        revisions.newest(),
        older,
        AddressCheck(url, settings.addresses),
        settings.now,
        None,
        settings.send_resource,
        settings.accept_issuer_slash,
    )


class TokenAuthorizer:
    """Adds a token to the requests of one connection; see `Authorizer`.

    Args:
        source: The way to a grant.
        url: The server.
        revisions: The revisions that the client offers.
    """

    def __init__(self, source: GrantSource, url: str, revisions: Revisions) -> None:
        self._source = source
        self._settings = source.settings
        self._url = url
        self._around = surroundings(url, revisions, source.settings)
        self._around.addresses.check_server(url)
        self._key = grant_key(canonical_resource(url))
        self._lock = anyio.Lock()
        self._fetcher: AuthFetcher | None = None
        self._grant: Grant | None = None
        self._fields: Mapping[str, str] = {}
        self._renew_at: float | None = None
        self._loaded = False
        self._unproven = ""
        self._step_ups: dict[tuple[str, str], int] = {}

    def __repr__(self) -> str:
        return f"<TokenAuthorizer of {type(self._source).__name__}>"

    async def fields(self, method: str, url: str) -> Mapping[str, str]:
        """See `Authorizer.fields`."""
        if url != self._url and not same_origin(url, self._url):
            return {}
        if not self._loaded:
            await self._load()
        if self._renew_at is not None and self._renew_at <= self._settings.now():
            await self._renew_early()
        proofs, grant = self._around.proofs, self._grant
        if proofs is None or grant is None or grant.token is None:
            return self._fields
        return {**self._fields, "DPoP": proofs.proof(method, url, grant.token.value)}

    async def wants_retry(
        self,
        response: Response,
        sent: Mapping[str, str],
        request: tuple[str, str, bytes | None],
        attempts: int,
    ) -> bool:
        """See `Authorizer.wants_retry`."""
        proofs, url = self._around.proofs, request[1]
        if url != self._url and not same_origin(url, self._url):
            return False
        new_nonce = proofs is not None and proofs.take_nonce(url, response.header("dpop-nonce"))
        if response.status not in (401, 403):
            if response.status < 400:
                self._unproven = ""
            return False
        if attempts >= ATTEMPTS:
            return False
        header = parse_challenges(response.header("www-authenticate") or "")
        challenges = [each for each in header if each.is_scheme("Bearer", "DPoP")]
        errors = [each.parameters.get("error") for each in challenges]
        used = sent.get("Authorization", "")
        if response.status == 401:
            if USE_NONCE in errors:
                return new_nonce
            return await self._replace(used, challenges)
        if "insufficient_scope" not in errors:
            return False
        return await self._step_up(used, challenges, _operation(request))

    async def close(self) -> None:
        """See `Authorizer.close`."""
        if self._fetcher is not None:
            await self._fetcher.close()

    async def _load(self) -> None:
        async with self._lock:
            if not self._loaded:
                grant = decoded_record(await self._settings.store.load(self._key), Grant)
                self._use(grant)
                if self._settings.proof_key and self._around.proofs is None:
                    key = _new_key(self._settings.proof_key)
                    self._around = replace(self._around, proofs=ProofKey(key, self._settings.now))
                    if grant is not None:  # its token is bound to another key, or to none
                        self._use(replace(grant, token=None, proof_key=None))
                self._loaded = True

    def _use(self, grant: Grant | None) -> None:
        """Take a grant as the current one, with the key that it is bound to."""
        wanted = self._settings.proof_key
        bound = grant is not None and grant.proof_key is not None
        if grant is not None and bool(wanted) != bound:
            grant = replace(grant, token=None)  # a token that is less than was asked for
        elif grant is not None and grant.proof_key is not None:
            self._bind(grant, wanted)
        token = None if grant is None else grant.token
        self._grant = grant
        self._renew_at = None if token is None else token.renew_at
        self._fields = {} if token is None else {"Authorization": f"{token.scheme} {token.value}"}

    def _bind(self, grant: Grant, wanted: PrivateKey | bool | None) -> None:
        from ...auth.jwt_keys import PrivateKey

        if self._around.proofs is None and grant.proof_key is not None:
            key = PrivateKey(grant.proof_key, grant.algorithm) if wanted is True else wanted
            assert isinstance(key, PrivateKey)
            proofs = ProofKey(key, self._settings.now)
            self._around = replace(self._around, proofs=proofs)

    def _header(self) -> str:
        return self._fields.get("Authorization", "")

    def _driver(self) -> FlowDriver:
        if self._fetcher is None:
            self._fetcher = AuthFetcher(self._around.addresses.permits)
        return FlowDriver(self._fetcher, self._settings.store, self._settings.interaction)

    async def _renew_early(self) -> None:
        """Renew a token that is about to end. If that fails for now, the server decides."""
        before = self._header()
        async with self._lock:
            if self._header() != before:
                return
            try:
                if not await self._refresh(before):
                    self._renew_at = None
                    self._fields = {}
            except (AuthorizationError, TransportError) as error:
                logger.warning("the access token could not be renewed: %s", error)
                self._renew_at = self._settings.now() + POSTPONED_SECONDS

    async def _refresh(self, before: str) -> bool:
        """Renew the token, or take the one that another process got; whether there is one.

        Raises:
            AuthorizationError: The token endpoint failed for now.
            TransportError: It could not be reached.
        """
        store = self._settings.store
        async with store.lock(self._key):
            stored = decoded_record(await store.load(self._key), Grant)
            if stored is not None:
                self._use(stored)
                if self._header() not in ("", before) and not self._is_old():
                    return True
            grant = self._grant
            if grant is None or grant.token is None:
                return False
            flow = refreshed(self._around, grant, self._source.client_of(grant))
            renewed = await self._driver().run(flow)
            kept = renewed or replace(grant, token=None)
            await store.save(self._key, encoded_record(kept))
            self._use(kept)
            return renewed is not None

    def _is_old(self) -> bool:
        return self._renew_at is not None and self._renew_at <= self._settings.now()

    async def _replace(self, used: str, challenges: Sequence[Challenge]) -> bool:
        """Get another token in place of one that was refused; whether there is one."""
        with paused():
            async with self._lock:
                if self._header() not in ("", used):
                    return True
                if used and used == self._unproven:
                    return False  # the authorization server gave it just now
                server = await self._discover(challenges)
                grant = self._grant
                same = grant is not None and grant.issuer == server.issuer.issuer
                if same and await self._refresh(used):
                    return True
                scopes = initial_scopes(challenges, server, self._settings.scopes)
                facts = server.revision.facts
                if grant is not None and same and facts.authorization.step_up == "union":
                    scopes = united(grant.requested, scopes)
                await self._authorize(server, scopes)
                return True

    async def _step_up(
        self, used: str, challenges: Sequence[Challenge], operation: tuple[str, str]
    ) -> bool:
        """Get a token with more scopes; whether there is one."""
        with paused():
            async with self._lock:
                if self._header() not in ("", used):
                    return True
                if self._step_ups.get(operation, 0) >= STEP_UPS:
                    return False
                self._step_ups[operation] = self._step_ups.get(operation, 0) + 1
                server = await self._discover(challenges)
                grant = self._grant
                requested = () if grant is None else grant.requested
                scopes = step_up_scopes(challenges, server, self._settings.scopes, requested)
                try:
                    await self._authorize(server, scopes)
                except BaseException:
                    self._step_ups[operation] = STEP_UPS  # a user who said no is not asked again
                    raise
                return True

    async def _discover(self, challenges: Sequence[Challenge]) -> Discovered:
        wanted = self._settings.issuer
        if wanted is None and self._settings.binds_issuer and self._grant is not None:
            wanted = self._grant.issuer
        return await self._driver().run(discovered(self._around, challenges, wanted))

    async def _authorize(self, server: Discovered, scopes: tuple[str, ...]) -> None:
        flow = self._source.granted(self._around, server, with_offline_access(scopes, server))
        grant = await self._driver().run(flow)
        await self._settings.store.save(self._key, encoded_record(grant))
        self._use(grant)
        self._unproven = self._header()


def _new_key(key: PrivateKey | bool) -> PrivateKey:
    from ...auth.jwt_keys import PrivateKey

    return PrivateKey.generate() if isinstance(key, bool) else key


def _operation(request: tuple[str, str, bytes | None]) -> tuple[str, str]:
    """What a request is about: its method, and the tool, prompt or resource that it names."""
    method, url, body = request
    if body is None:
        return method, url
    try:
        message: Any = msgspec.json.decode(body)
        params: Any = message.get("params") or {}
        return str(message.get("method")), str(params.get("name") or params.get("uri"))
    except (msgspec.DecodeError, AttributeError):
        return method, url
