"""Authorization by a user: in one call, or in two halves that may run in different processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ...auth.challenges import parse_challenges
from ...auth.discovery import (
    AuthorizationServer,
    FlowContext,
    discover,
    initial_scopes,
    with_offline_access,
)
from ...auth.flows import (
    CodeRequest,
    begin_code_flow,
    client_of,
    code_flow,
    device_flow,
    finish_code_flow,
    has_same_state,
)
from ...auth.identifiers import canonical_resource
from ...auth.jwt_signing import PrivateKey, ProofKey
from ...auth.registration import ApplicationType, ClientProfile, check_metadata_url
from ...auth.steps import Fetch, Fetched, Flow
from ...auth.token_endpoint import AuthMethod, ClientIdentity, Grant, encode_record, grant_key
from ...errors import AuthorizationError
from ...facts import Revisions
from ...framing.http_hosts import PUBLIC, AddressRules
from ...framing.sse import MEDIA_TYPE
from ...revisions import REVISIONS
from .flow_driver import AuthFetcher, FlowDriver
from .interactions import Device, Interaction, Loopback
from .stores import MemoryStore, Store
from .token_authorizer import AuthSettings, TokenAuthorizer, configured_key, flow_context

if TYPE_CHECKING:
    from ...auth.jwt_signing import PrivateKey
    from ...transports.http.http_client import Authorizer

Result = TypeVar("Result")


class OAuth:
    """Authorizes by a user: discovery, registration, PKCE, refresh, step-up.

    Args:
        client_name: The name that the user is shown.
        client_id: A pre-registered client id.
        client_secret: The secret of that client id.
        issuer: The authorization server of the client id; by default the first one discovered.
        metadata_url: The https URL of the client id metadata document, which is the client id where
            the authorization server supports such documents.
        interaction: The interaction with the user; by default `Loopback()`.
        redirect: An alias of `interaction`.
        store: The store of grants and registrations; by default in memory.
        scopes: Scopes to request in addition to those that the server requires.
        key: The key that signs assertions, for `private_key_jwt`.
        auth_method: The authentication method at the token endpoint; by default one that the
            authorization server supports.
        audience: The audience of assertions; by default the issuer.
        dpop: The key to bind tokens to (DPoP), or `True` to generate a key.
        application_type: `native` or `web`; by default derived from the redirect URI.
        addresses: Addresses that are allowed in addition to public https.
        send_resource: Whether requests have the `resource` parameter, which some servers refuse.
        accept_issuer_slash: Whether the issuer in metadata may differ by a trailing slash.

    Raises:
        ValueError: The arguments contradict each other, or a URL is not allowed.
    """

    extensions: tuple[str, ...] = ()

    def __init__(
        self,
        client_name: str = "MCP client",
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        issuer: str | None = None,
        metadata_url: str | None = None,
        interaction: Interaction | None = None,
        redirect: Interaction | None = None,
        store: Store | None = None,
        scopes: Sequence[str] = (),
        key: PrivateKey | None = None,
        auth_method: AuthMethod | None = None,
        audience: str | None = None,
        dpop: PrivateKey | bool = False,
        application_type: ApplicationType | None = None,
        addresses: AddressRules = PUBLIC,
        send_resource: bool = True,
        accept_issuer_slash: bool = False,
    ) -> None:
        if client_secret is not None and client_id is None:
            raise ValueError("client_secret: expected a client_id with it")
        if interaction is not None and redirect is not None:
            raise ValueError("expected one of interaction and redirect")
        if metadata_url is not None:
            check_metadata_url(metadata_url)
        self.profile = ClientProfile(
            client_name=client_name,
            client_id=client_id,
            client_secret=client_secret,
            metadata_url=metadata_url,
            key=key,
            method=auth_method,
            audience=audience,
            application_type=application_type,
        )
        self.settings = AuthSettings(
            store=MemoryStore() if store is None else store,
            addresses=addresses,
            scopes=tuple(scopes),
            proof_key=dpop or None,
            interaction=interaction or redirect or Loopback(),
            issuer=issuer,
            binds_issuer=client_id is not None,
            send_resource=send_resource,
            accept_issuer_slash=accept_issuer_slash,
        )

    def __repr__(self) -> str:
        return f"<OAuth {self.profile.client_name!r}>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """See `Authorization.authorizer`."""
        return TokenAuthorizer(self, url, revisions)

    def request_grant(
        self, context: FlowContext, server: AuthorizationServer, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.request_grant`."""
        if isinstance(self.settings.interaction, Device):
            return device_flow(context, self.profile, server, scopes)
        return code_flow(context, self.profile, server, scopes)

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """See `GrantSource.client_of`."""
        return client_of(grant, self.profile)

    async def begin(self, url: str) -> PendingAuthorization:
        """The first half of an authorization: discovery, registration, and the URL to show.

        Args:
            url: The URL of the MCP server.

        Raises:
            AuthorizationError: Discovery or registration failed.
            TransportError: A server cannot be reached.
        """
        context = flow_context(url, REVISIONS, self.settings)
        if self.settings.proof_key:
            key = configured_key(self.settings.proof_key)
            context = replace(context, proofs=ProofKey(key, context.now))
        return PendingAuthorization(self, url, await _run(self, context, _begin(self, context)))

    def pending(self, text: str) -> PendingAuthorization:
        """A pending authorization from its text, which `PendingAuthorization.dumps` returned.

        Raises:
            ValueError: The text is not a pending authorization.
        """
        try:
            server, request = msgspec.json.decode(text, type=tuple[str, CodeRequest])
        except msgspec.DecodeError:
            raise ValueError("expected the text of a pending authorization") from None
        return PendingAuthorization(self, server, request)


class PendingAuthorization:
    """An authorization that waits for the user.

    Args:
        oauth: The settings.
        server: The URL of the MCP server.
        request: The authorization request.
    """

    def __init__(self, oauth: OAuth, server: str, request: CodeRequest) -> None:
        self._oauth = oauth
        self._server = server
        self._request: CodeRequest | None = request
        self.url = request.url
        """The URL to send the user to."""

    def __repr__(self) -> str:
        return "<PendingAuthorization>"

    def dumps(self) -> str:
        """The authorization as text, for `OAuth.pending`. The text contains secrets.

        Raises:
            AuthorizationError: The authorization was finished before.
        """
        if self._request is None:
            raise AuthorizationError("the authorization was finished before")
        return msgspec.json.encode((self._server, self._request)).decode()

    async def finish(self, returned: str) -> None:
        """The second half: exchange the code for a token, and store the token.

        A response ends the authorization, even if the response is invalid. A response with another
        `state` is refused and ends nothing: any web page can open the redirect URI.

        Args:
            returned: The redirect URI with the authorization response.

        Raises:
            OAuthError: The user or the authorization server refused.
            AuthorizationError: The response does not belong to this authorization, or the
                authorization was finished before.
        """
        request = self._request
        if request is None:
            raise AuthorizationError("the authorization was finished before")
        if has_same_state(returned, request.url):
            self._request = None
        settings = self._oauth.settings
        context = flow_context(self._server, REVISIONS, settings)
        context = _with_stored_key(context, request.grant)
        grant = await _run(
            self._oauth, context, finish_code_flow(context, self._oauth.profile, request, returned)
        )
        key = grant_key(canonical_resource(self._server))
        await settings.store.save(key, encode_record(grant))


def _begin(oauth: OAuth, context: FlowContext) -> Flow[CodeRequest]:
    context.addresses.check_server(context.server_url)
    fields = {"Accept": MEDIA_TYPE}
    response: Fetched = yield Fetch("GET", context.server_url, fields)
    header = response.fields.get("www-authenticate", "") if response.status == 401 else ""
    challenges = [each for each in parse_challenges(header) if each.is_scheme("Bearer", "DPoP")]
    settings = oauth.settings
    server = yield from discover(context, challenges, settings.issuer)
    scopes = initial_scopes(challenges, server, settings.scopes)
    scopes = with_offline_access(scopes, server)
    return (yield from begin_code_flow(context, oauth.profile, server, scopes))


async def _run(oauth: OAuth, context: FlowContext, flow: Flow[Result]) -> Result:
    fetcher = AuthFetcher(context.addresses.permits)
    try:
        settings = oauth.settings
        return await FlowDriver(fetcher, settings.store, settings.interaction).run(flow)
    finally:
        await fetcher.close()


def _with_stored_key(context: FlowContext, grant: Grant) -> FlowContext:
    if grant.proof_key is None:
        return context
    from ...auth.jwt_signing import PrivateKey

    key = PrivateKey(grant.proof_key, grant.algorithm)
    return replace(context, proofs=ProofKey(key, context.now))
