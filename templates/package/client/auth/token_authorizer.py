"""The token of one connection: stored, sent, refreshed before its expiry, replaced when refused.

One task at a time refreshes; other tasks wait and use its token. The lock of the store excludes
other processes, during requests to the token endpoint only. A newer token that another process
stored is used. No lock is held during a request to the MCP server.

Source: basic/authorization (access token usage, refresh tokens, step-up authorization flow).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import msgspec

from ...auth.address_rules import AddressCheck
from ...auth.challenges import Challenge, parse_challenges
from ...auth.discovery import (
    AuthorizationServer,
    FlowContext,
    discover,
    initial_scopes,
    step_up_scopes,
    with_offline_access,
)
from ...auth.identifiers import canonical_resource, union_of_scopes
from ...auth.jwt_signing import USE_NONCE, PrivateKey, ProofKey
from ...auth.steps import Flow
from ...auth.token_endpoint import (
    ClientIdentity,
    Grant,
    decode_record,
    encode_record,
    grant_key,
    refresh_grant,
)
from ...channel import logger
from ...errors import AuthorizationError, TransportError
from ...facts import Revision, Revisions
from ...framing.http_hosts import PUBLIC, AddressRules, same_origin
from ...runtime.time_limits import pause_limits
from .flow_driver import AuthFetcher, FlowDriver
from .interactions import Interaction, PromptLimit
from .stores import Store

if TYPE_CHECKING:
    from ...transports.http.http_library import Response

ATTEMPTS = 5
"""Times that one request is sent again, for any reason."""

STEP_UPS = 2
"""Authorizations with additional scopes for one operation, after the first authorization."""

POSTPONED_SECONDS = 10.0
"""Seconds until a failed refresh is tried again. The old token is sent meanwhile."""


@dataclass(frozen=True)
class AuthSettings:
    """The settings that all kinds of authorization share.

    Attributes:
        store: The store of grants.
        addresses: Addresses that are allowed in addition to public https.
        scopes: Scopes to request in addition to those that the server requires.
        proof_key: The key to bind tokens to; `True` to generate a key, `None` for bearer tokens.
        interaction: The interaction with the user; `None` if there is no user.
        issuer: The authorization server that the credentials belong to; `None` if not configured.
        binds_issuer: Whether the credentials belong to the authorization server that they were
            first used at.
        send_resource: Whether requests have the `resource` parameter.
        accept_issuer_slash: Whether the issuer in metadata may differ by a trailing slash.
        now: Returns the time, in seconds since 1970.
        prompts: Limits how often a user is asked.
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
    prompts: PromptLimit = field(default_factory=PromptLimit)


class GrantSource(Protocol):
    """A kind of authorization, which obtains grants.

    Attributes:
        settings: The settings.
    """

    settings: AuthSettings

    def request_grant(
        self, context: FlowContext, server: AuthorizationServer, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """The flow that obtains a grant."""
        ...

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """The client that a grant was made to; `None` if its token requests name no client."""
        ...


def flow_context(url: str, revisions: Revisions, settings: AuthSettings) -> FlowContext:
    """The state that all flows for one MCP server share."""

    def older() -> Revision | None:
        at_origin = (
            revision
            for revision in reversed([revisions[name] for name in revisions])
            if revision.facts.authorization.discovery == "origin"
        )
        return next(at_origin, None)

    return FlowContext(
        server_url=url,
        revision=revisions.newest(),
        older=older,
        addresses=AddressCheck(url, settings.addresses),
        now=settings.now,
        send_resource=settings.send_resource,
        accept_issuer_slash=settings.accept_issuer_slash,
    )


class TokenAuthorizer:
    """Adds a token to the requests of one connection; see `Authorizer`.

    Args:
        source: Obtains grants.
        url: The URL of the MCP server.
        revisions: The revisions that the client offers.
    """

    def __init__(self, source: GrantSource, url: str, revisions: Revisions) -> None:
        self._source = source
        self._settings = source.settings
        self._url = url
        self._context = flow_context(url, revisions, source.settings)
        self._context.addresses.check_server(url)
        self._key = grant_key(canonical_resource(url))
        self._lock = anyio.Lock()
        self._fetcher: AuthFetcher | None = None
        self._grant: Grant | None = None
        self._fields: Mapping[str, str] = {}
        self._renew_at: float | None = None
        self._loaded = False
        self._unaccepted = ""
        self._step_ups: dict[tuple[str, str], int] = {}
        self._failure: Exception | None = None

    def __repr__(self) -> str:
        return f"<TokenAuthorizer of {type(self._source).__name__}>"

    async def fields(self, method: str, url: str) -> Mapping[str, str]:
        """See `Authorizer.fields`."""
        if url != self._url and not same_origin(url, self._url):
            return {}
        if not self._loaded:
            await self._load()
        if self._renew_at is not None and self._renew_at <= self._settings.now():
            await self._refresh_early()
        proofs, grant = self._context.proofs, self._grant
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
        proofs, url = self._context.proofs, request[1]
        if url != self._url and not same_origin(url, self._url):
            return False
        new_nonce = proofs is not None and proofs.take_nonce(url, response.header("dpop-nonce"))
        if response.status not in (401, 403):
            if response.status < 400:
                self._unaccepted = ""
            return False
        if attempts >= ATTEMPTS or request[0] == "DELETE":  # no user is asked to end a session
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
                grant = decode_record(await self._settings.store.load(self._key), Grant)
                self._use(grant)
                if self._settings.proof_key and self._context.proofs is None:
                    key = configured_key(self._settings.proof_key)
                    self._context = replace(self._context, proofs=ProofKey(key, self._settings.now))
                self._loaded = True

    def _use(self, grant: Grant | None) -> None:
        """Make a grant the current one, with the key that its token is bound to."""
        configured = self._settings.proof_key
        bound = grant is not None and grant.proof_key is not None
        if grant is not None and bool(configured) != bound:
            grant = replace(grant, token=None)  # tokens must be bound as the settings require
        elif grant is not None and grant.proof_key is not None:
            self._bind(grant, configured)
        token = None if grant is None else grant.token
        self._grant = grant
        self._renew_at = None if token is None else token.renew_at
        self._fields = {} if token is None else {"Authorization": f"{token.scheme} {token.value}"}

    def _bind(self, grant: Grant, configured: PrivateKey | bool | None) -> None:
        from ...auth.jwt_signing import PrivateKey

        proofs = self._context.proofs
        # Another client of the store may have generated a key of its own.
        is_other = proofs is not None and proofs.key.private_jwk() != grant.proof_key
        if proofs is None or (configured is True and is_other):
            assert grant.proof_key is not None
            key = PrivateKey(grant.proof_key, grant.algorithm) if configured is True else configured
            assert isinstance(key, PrivateKey)
            self._context = replace(self._context, proofs=ProofKey(key, self._settings.now))

    def _header(self) -> str:
        return self._fields.get("Authorization", "")

    def _driver(self) -> FlowDriver:
        if self._fetcher is None:
            self._fetcher = AuthFetcher(self._context.addresses.permits)
        settings = self._settings
        on_prompt = partial(settings.prompts.add, self._key)
        return FlowDriver(self._fetcher, settings.store, settings.interaction, on_prompt)

    async def _refresh_early(self) -> None:
        """Refresh a token before its expiry. After a failure, the old token is used for a while."""
        before = self._header()
        with pause_limits():
            async with self._lock:
                if self._header() != before or not self._is_old():
                    return  # another task has tried
                try:
                    await self._refresh(before)
                except (AuthorizationError, TransportError) as error:
                    logger.warning("the access token could not be refreshed: %s", error)
                    self._renew_at = self._settings.now() + POSTPONED_SECONDS

    async def _refresh(self, before: str) -> bool:
        """Refresh the token, or use the newer token of another process.

        Returns:
            Whether there is a new token.
        """
        store = self._settings.store
        async with store.lock(self._key):
            if await self._use_stored_grant(before):
                return True
            grant = self._grant
            if grant is None or grant.token is None:
                return False
            flow = refresh_grant(self._context, grant, self._source.client_of(grant))
            refreshed = await self._driver().run(flow)
            current = refreshed or replace(grant, token=None)
            await store.save(self._key, encode_record(current))
            self._use(current)
            return refreshed is not None

    async def _use_stored_grant(self, before: str) -> bool:
        """Use the stored grant; returns whether another client obtained a newer token."""
        stored = decode_record(await self._settings.store.load(self._key), Grant)
        if stored is None:
            return False
        self._use(stored)
        return self._header() not in ("", before) and not self._is_old()

    def _is_old(self) -> bool:
        return self._renew_at is not None and self._renew_at <= self._settings.now()

    async def _replace(self, used: str, challenges: Sequence[Challenge]) -> bool:
        """Replace a token that the server refused; returns whether there is another token.

        Requests that wait for a replacement share its failure: an authorization server that does
        not respond, or a user who refuses, is asked once, not once per request.
        """
        with pause_limits():
            last = self._failure
            async with self._lock:
                if self._header() not in ("", used) or await self._use_stored_grant(used):
                    return True
                if used and used == self._unaccepted:
                    return False  # the authorization server issued it just now
                if self._failure is not None and self._failure is not last:
                    raise self._failure
                try:
                    return await self._replace_alone(used, challenges)
                except (AuthorizationError, TransportError) as error:
                    self._failure = error
                    raise

    async def _replace_alone(self, used: str, challenges: Sequence[Challenge]) -> bool:
        """See `_replace`; called by one task at a time."""
        server = await self._discover(challenges)
        grant = self._grant
        same = grant is not None and grant.issuer == server.metadata.issuer
        if same and await self._refresh(used):
            return True
        scopes = initial_scopes(challenges, server, self._settings.scopes)
        facts = server.revision.facts
        if grant is not None and same and facts.authorization.step_up == "union":
            scopes = union_of_scopes(grant.requested, scopes)
        await self._authorize(server, scopes)
        return True

    async def _step_up(
        self, used: str, challenges: Sequence[Challenge], operation: tuple[str, str]
    ) -> bool:
        """Obtain a token with additional scopes; returns whether the request may be retried."""
        with pause_limits():
            async with self._lock:
                if self._header() not in ("", used) or await self._use_stored_grant(used):
                    return True
                if self._step_ups.get(operation, 0) >= STEP_UPS:
                    return False
                self._settings.prompts.check(self._key)
                self._step_ups[operation] = self._step_ups.get(operation, 0) + 1
                server = await self._discover(challenges)
                grant = self._grant
                requested = () if grant is None else grant.requested
                scopes = step_up_scopes(challenges, server, self._settings.scopes, requested)
                try:
                    await self._authorize(server, scopes)
                except BaseException:
                    self._step_ups[operation] = STEP_UPS  # a user who refused is not asked again
                    raise
                return True

    async def _discover(self, challenges: Sequence[Challenge]) -> AuthorizationServer:
        required_issuer = self._settings.issuer
        if required_issuer is None and self._settings.binds_issuer and self._grant is not None:
            required_issuer = self._grant.issuer
        return await self._driver().run(discover(self._context, challenges, required_issuer))

    async def _authorize(self, server: AuthorizationServer, scopes: tuple[str, ...]) -> None:
        if self._settings.interaction is not None:  # other grants have no refresh tokens
            self._settings.prompts.check(self._key)
            scopes = with_offline_access(scopes, server)
        flow = self._source.request_grant(self._context, server, scopes)
        grant = await self._driver().run(flow)
        await self._settings.store.save(self._key, encode_record(grant))
        self._use(grant)
        self._unaccepted = self._header()


def configured_key(key: PrivateKey | bool) -> PrivateKey:
    """The key of the settings, or a new one for `True`."""
    from ...auth.jwt_signing import PrivateKey

    return PrivateKey.generate() if isinstance(key, bool) else key


def _operation(request: tuple[str, str, bytes | None]) -> tuple[str, str]:
    """The method of a request, with the name of its tool or prompt, or the URI of its resource."""
    method, url, body = request
    if body is None:
        return method, url
    try:
        message: Any = msgspec.json.decode(body)
        params: Any = message.get("params") or {}
        return str(message.get("method")), str(params.get("name") or params.get("uri"))
    except (msgspec.DecodeError, AttributeError):
        return method, url
