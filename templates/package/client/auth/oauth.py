"""Ways to a token: for a user, for the client itself, or one that was had elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING

from ...auth.addresses import AddressCheck, AddressRules
from ...auth.client_authentication import AuthMethod, ClientIdentity
from ...auth.code_flow import CodeRequest, authorized, client_of, code_grant, code_request
from ...auth.discovery import Discovered, Surroundings
from ...auth.grants import (
    FetchAssertion,
    IdJagExchange,
    client_credentials,
    enterprise_managed,
    workload_identity,
)
from ...auth.records import Grant
from ...auth.registration import ApplicationType, ClientProfile, check_metadata_url
from ...auth.steps import Flow
from ...auth.stores import MemoryStore, Store
from ...errors import AuthorizationError
from ...facts import Revisions
from ...transports.http.http_errors import same_origin
from .interactions import Interaction, Loopback
from .token_authorizer import AuthSettings, TokenAuthorizer

if TYPE_CHECKING:  # signing is an extra
    from ...auth.jwt_keys import PrivateKey
    from ...transports.http.authorizer import Authorizer
    from ...transports.http.http_libraries import Response
    from .pending_authorization import PendingAuthorization


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
        addresses: AddressRules = AddressRules(),
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
        from .pending_authorization import begin

        return await begin(self, url)

    def pending(self, text: str) -> PendingAuthorization:
        """An authorization that was begun elsewhere, from what its `dumps` gave.

        Raises:
            ValueError: The text is none.
        """
        from .pending_authorization import PendingAuthorization

        return PendingAuthorization.loads(self, text)

    def requested(
        self, around: Surroundings, server: Discovered, scopes: tuple[str, ...]
    ) -> Flow[CodeRequest]:
        """The flow of the first half."""
        return code_request(around, self.profile, server, scopes)

    def exchanged(self, around: Surroundings, request: CodeRequest, returned: str) -> Flow[Grant]:
        """The flow of the second half."""
        return code_grant(around, self.profile, request, returned)


class ClientCredentials:
    """A token for the client itself, which was registered beforehand.

    Args:
        client_id: Its id.
        client_secret: Its secret.
        key: What it signs with in place of a secret.
        issuer: The authorization server that it is registered with; by default the first one met.
        store: Where grants are kept; by default in memory.
        scopes: Scopes to ask for beyond those that the server wants.
        audience: The audience of assertions; by default the issuer.
        dpop: A key that tokens are bound to, or `True` to make one.
        addresses: What may be fetched beyond public https addresses.

    Raises:
        ValueError: There is neither a secret nor a key.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        key: PrivateKey | None = None,
        issuer: str | None = None,
        store: Store | None = None,
        scopes: Sequence[str] = (),
        audience: str | None = None,
        dpop: PrivateKey | bool = False,
        addresses: AddressRules = AddressRules(),
    ) -> None:
        if client_secret is None and key is None:
            raise ValueError("expected a client_secret or a key")
        self._client = ClientIdentity(client_id, client_secret, None, key, audience)
        self.settings = _machine_settings(store, scopes, issuer, dpop, addresses)

    def __repr__(self) -> str:
        return f"<ClientCredentials {self._client.client_id!r}>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """The authorizer of a connection; see `Authorization`."""
        return TokenAuthorizer(self, url, revisions)

    def granted(
        self, around: Surroundings, server: Discovered, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.granted`."""
        return client_credentials(around, self._client, server, scopes)

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """See `GrantSource.client_of`."""
        return self._client


class WorkloadIdentity:
    """A token for the assertion that a platform gives its workloads.

    Args:
        fetch_jwt: Gives the assertion for an issuer and its token endpoint; may be a coroutine
            function.
        client_id: The id of the client, where the authorization server wants one.
        issuer: The authorization server that assertions are for; by default the first one met.
        store: Where grants are kept; by default in memory.
        scopes: Scopes to ask for beyond those that the server wants.
        dpop: A key that tokens are bound to, or `True` to make one.
        addresses: What may be fetched beyond public https addresses.
    """

    def __init__(
        self,
        fetch_jwt: FetchAssertion,
        *,
        client_id: str | None = None,
        issuer: str | None = None,
        store: Store | None = None,
        scopes: Sequence[str] = (),
        dpop: PrivateKey | bool = False,
        addresses: AddressRules = AddressRules(),
    ) -> None:
        self._fetch_jwt = fetch_jwt
        self._client = None if client_id is None else ClientIdentity(client_id, method="none")
        self.settings = _machine_settings(store, scopes, issuer, dpop, addresses)

    def __repr__(self) -> str:
        return "<WorkloadIdentity>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """The authorizer of a connection; see `Authorization`."""
        return TokenAuthorizer(self, url, revisions)

    def granted(
        self, around: Surroundings, server: Discovered, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.granted`."""
        return workload_identity(around, self._fetch_jwt, self._client, server, scopes)

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """See `GrantSource.client_of`."""
        return self._client


class EnterpriseManaged:
    """A token for a user whom an identity provider vouches for, without asking the user.

    Args:
        client_id: The id of the client at the authorization server of the MCP server.
        client_secret: Its secret there.
        id_jag: How the assertion is had: `IdJagExchange`, or a function of issuer and resource that
            gives it, which may be a coroutine function.
        key: What the client signs with in place of a secret.
        issuer: The authorization server that it is registered with; by default the first one met.
        store: Where grants are kept; by default in memory.
        scopes: Scopes to ask for beyond those that the server wants.
        dpop: A key that tokens are bound to, or `True` to make one.
        addresses: What may be fetched beyond public https addresses.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        id_jag: IdJagExchange | FetchAssertion,
        key: PrivateKey | None = None,
        issuer: str | None = None,
        store: Store | None = None,
        scopes: Sequence[str] = (),
        dpop: PrivateKey | bool = False,
        addresses: AddressRules = AddressRules(),
    ) -> None:
        self._id_jag = id_jag
        self._client = ClientIdentity(client_id, client_secret, None, key)
        self.settings = _machine_settings(store, scopes, issuer, dpop, addresses)

    def __repr__(self) -> str:
        return f"<EnterpriseManaged {self._client.client_id!r}>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """The authorizer of a connection; see `Authorization`."""
        return TokenAuthorizer(self, url, revisions)

    def granted(
        self, around: Surroundings, server: Discovered, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.granted`."""
        return enterprise_managed(around, self._id_jag, self._client, server, scopes)

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """See `GrantSource.client_of`."""
        return self._client


class Bearer:
    """A token that was had elsewhere.

    Args:
        token: The token, or a function that gives it, which may be a coroutine function; called
            again once a server refuses what it gave.
        addresses: Whether the server may be spoken to without TLS.
    """

    def __init__(
        self,
        token: str | Callable[[], str | Awaitable[str]],
        *,
        addresses: AddressRules = AddressRules(),
    ) -> None:
        self._token = token
        self._addresses = addresses

    def __repr__(self) -> str:
        return "<Bearer>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """The authorizer of a connection; see `Authorization`."""
        AddressCheck(url, self._addresses).check_server(url)
        return _BearerAuthorizer(self._token, url)


class _BearerAuthorizer:
    """Adds a token of the user's; see `Authorizer`."""

    def __init__(self, token: str | Callable[[], str | Awaitable[str]], url: str) -> None:
        self._token = token
        self._url = url
        self._fields: Mapping[str, str] = {}

    async def fields(self, method: str, url: str) -> Mapping[str, str]:
        """See `Authorizer.fields`."""
        if url != self._url and not same_origin(url, self._url):
            return {}
        if not self._fields:
            given = self._token if isinstance(self._token, str) else self._token()
            token = await given if isawaitable(given) else given
            if not token or not token.isascii() or not token.isprintable() or " " in token:
                raise AuthorizationError("the token can't be sent in a header")
            self._fields = {"Authorization": f"Bearer {token}"}
        return self._fields

    async def wants_retry(
        self,
        response: Response,
        sent: Mapping[str, str],
        request: tuple[str, str, bytes | None],
        attempts: int,
    ) -> bool:
        """See `Authorizer.wants_retry`."""
        if response.status != 401 or attempts or isinstance(self._token, str):
            return False
        if sent == self._fields:
            self._fields = {}
        return bool(await self.fields(request[0], request[1]))

    async def close(self) -> None:
        """See `Authorizer.close`."""


def _machine_settings(
    store: Store | None,
    scopes: Sequence[str],
    issuer: str | None,
    dpop: PrivateKey | bool,
    addresses: AddressRules,
) -> AuthSettings:
    """The settings of a client without a user."""
    return AuthSettings(
        MemoryStore() if store is None else store,
        addresses,
        tuple(scopes),
        dpop or None,
        None,
        issuer,
        True,
    )
