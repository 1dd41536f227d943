"""Access tokens that a user authorizes, in one go or in two halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ...auth.addresses import PUBLIC, AddressRules
from ...auth.challenges import parse_challenges
from ...auth.client_authentication import AuthMethod, ClientIdentity
from ...auth.code_flow import CodeRequest, authorized, client_of, code_grant, code_request
from ...auth.device_flow import device_authorized
from ...auth.discovery import (
    Discovered,
    Surroundings,
    discovered,
    initial_scopes,
    with_offline_access,
)
from ...auth.documents import canonical_resource
from ...auth.dpop import ProofKey
from ...auth.records import Grant, encoded_record, grant_key
from ...auth.registration import ApplicationType, ClientProfile, check_metadata_url
from ...auth.steps import Fetch, Fetched, Flow
from ...errors import AuthorizationError
from ...facts import Revisions
from ...framing.sse import MEDIA_TYPE
from ...revisions import REVISIONS
from .auth_fetcher import AuthFetcher
from .flow_driver import FlowDriver
from .interactions import Device, Interaction, Loopback
from .stores import MemoryStore, Store
from .token_authorizer import AuthSettings, TokenAuthorizer, surroundings

if TYPE_CHECKING:  # signing is an extra
    from ...auth.jwt_keys import PrivateKey
    from ...transports.http.authorizer import Authorizer

Result = TypeVar("Result")


class OAuth:
    """A token that a user authorizes: discovery, registration, PKCE, refresh, step-up.

    Args:
        client_name: The name that the user is shown.
        client_id: An id that was registered beforehand.
        client_secret: The secret of that id.
        issuer: The authorization server that they belong to; by default the first one met.
        metadata_url: The https address of the client's metadata, which is its id where the
            authorization server supports that.
        interaction: The way to the user; by default a browser that comes back to a free port.
        redirect: The same, by another name.
        store: Where grants and registrations are kept; by default in memory.
        scopes: Scopes to ask for beyond those that the server wants.
        key: What the client signs with, to authenticate by `private_key_jwt`.
        auth_method: How the client authenticates; by default as the server supports.
        audience: The audience of assertions; by default the issuer.
        dpop: A key that tokens are bound to, or `True` to make one.
        application_type: `native` or `web`; by default told by the redirect URI.
        addresses: What may be fetched beyond public https addresses.
        send_resource: Whether requests have `resource`; some servers refuse it.
        accept_issuer_slash: Whether an issuer may differ by a slash in the end.

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
            client_name,
            client_id,
            client_secret,
            issuer,
            metadata_url,
            key,
            auth_method,
            audience,
            application_type,
        )
        self.settings = AuthSettings(
            MemoryStore() if store is None else store,
            addresses,
            tuple(scopes),
            dpop or None,
            interaction or redirect or Loopback(),
            issuer,
            client_id is not None,
            send_resource,
            accept_issuer_slash,
        )

    def __repr__(self) -> str:
        return f"<OAuth {self.profile.client_name!r}>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """The authorizer of a connection; see `Authorization`."""
        return TokenAuthorizer(self, url, revisions)

    def granted(
        self, around: Surroundings, server: Discovered, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.granted`."""
        if isinstance(self.settings.interaction, Device):
            return device_authorized(around, self.profile, server, scopes)
        return authorized(around, self.profile, server, scopes)

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """See `GrantSource.client_of`."""
        return client_of(grant, self.profile)

    async def begin(self, url: str) -> PendingAuthorization:
        """The first half of an authorization: find the server, register, make the URL to show.

        Args:
            url: The MCP server.

        Raises:
            AuthorizationError: It failed.
            TransportError: A server can't be reached.
        """
        around = surroundings(url, REVISIONS, self.settings)
        if self.settings.proof_key:
            from ...auth.jwt_keys import PrivateKey

            key = self.settings.proof_key
            made = PrivateKey.generate() if isinstance(key, bool) else key
            around = replace(around, proofs=ProofKey(made, around.now))
        return PendingAuthorization(self, url, await _run(self, around, _begun(self, around)))

    def pending(self, text: str) -> PendingAuthorization:
        """An authorization that was begun elsewhere, from what its `dumps` gave.

        Raises:
            ValueError: The text is something else.
        """
        try:
            server, request = msgspec.json.decode(text, type=tuple[str, CodeRequest])
        except msgspec.DecodeError:
            raise ValueError("expected the text of a pending authorization") from None
        return PendingAuthorization(self, server, request)


class PendingAuthorization:
    """An authorization that waits for the user.

    Args:
        oauth: The way to a token.
        server: The URL of the MCP server.
        request: The first half.
    """

    def __init__(self, oauth: OAuth, server: str, request: CodeRequest) -> None:
        self._oauth = oauth
        self._server = server
        self._request: CodeRequest | None = request
        self.url = request.url
        """Where to send the user."""

    def __repr__(self) -> str:
        return "<PendingAuthorization>"

    def dumps(self) -> str:
        """The authorization as text, for `OAuth.pending`. It holds secrets: keep it on the server.

        Raises:
            AuthorizationError: It was finished.
        """
        if self._request is None:
            raise AuthorizationError("the authorization was finished")
        return msgspec.json.encode((self._server, self._request)).decode()

    async def finish(self, returned: str) -> None:
        """The second half: change the code for a token, and put it into the store.

        It may be called once: a return that was wrong ends the authorization.

        Args:
            returned: The URL that the user came back by.

        Raises:
            OAuthError: The user or the authorization server refused.
            AuthorizationError: The return is not one of this authorization, or it was finished.
        """
        request, self._request = self._request, None
        if request is None:
            raise AuthorizationError("the authorization was finished")
        settings = self._oauth.settings
        around = surroundings(self._server, REVISIONS, settings)
        around = _with_key(around, request.grant)
        grant = await _run(
            self._oauth, around, code_grant(around, self._oauth.profile, request, returned)
        )
        key = grant_key(canonical_resource(self._server))
        await settings.store.save(key, encoded_record(grant))


def _begun(oauth: OAuth, around: Surroundings) -> Flow[CodeRequest]:
    around.addresses.check_server(around.server_url)
    fields = {"Accept": MEDIA_TYPE}
    response: Fetched = yield Fetch("GET", around.server_url, fields)
    header = response.fields.get("www-authenticate", "") if response.status == 401 else ""
    challenges = [each for each in parse_challenges(header) if each.is_scheme("Bearer", "DPoP")]
    settings = oauth.settings
    server = yield from discovered(around, challenges, settings.issuer)
    scopes = initial_scopes(challenges, server, settings.scopes)
    scopes = with_offline_access(scopes, server)
    return (yield from code_request(around, oauth.profile, server, scopes))


async def _run(oauth: OAuth, around: Surroundings, flow: Flow[Result]) -> Result:
    fetcher = AuthFetcher(around.addresses.permits)
    try:
        settings = oauth.settings
        return await FlowDriver(fetcher, settings.store, settings.interaction).run(flow)
    finally:
        await fetcher.close()


def _with_key(around: Surroundings, grant: Grant) -> Surroundings:
    if grant.proof_key is None:
        return around
    from ...auth.jwt_keys import PrivateKey

    key = PrivateKey(grant.proof_key, grant.algorithm)
    return replace(around, proofs=ProofKey(key, around.now))
