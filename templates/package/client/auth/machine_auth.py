"""Ways to a token without a user: for the client itself, or one that was had elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING

from ...auth.addresses import PUBLIC, AddressCheck, AddressRules
from ...auth.client_authentication import ClientIdentity
from ...auth.discovery import Discovered, Surroundings
from ...auth.grants import (
    FetchAssertion,
    IdentityProvider,
    client_credentials,
    enterprise_managed,
    workload_identity,
)
from ...auth.records import Grant
from ...auth.steps import Flow
from ...errors import AuthorizationError
from ...facts import Revisions
from ...transports.http.http_errors import same_origin
from .stores import MemoryStore, Store
from .token_authorizer import AuthSettings, TokenAuthorizer

if TYPE_CHECKING:  # signing is an extra
    from ...auth.jwt_keys import PrivateKey
    from ...transports.http.authorizer import Authorizer
    from ...transports.http.http_libraries import Response


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

    extensions: tuple[str, ...] = ("io.modelcontextprotocol/oauth-client-credentials",)

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
        addresses: AddressRules = PUBLIC,
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

    extensions: tuple[str, ...] = ()

    def __init__(
        self,
        fetch_jwt: FetchAssertion,
        *,
        client_id: str | None = None,
        issuer: str | None = None,
        store: Store | None = None,
        scopes: Sequence[str] = (),
        dpop: PrivateKey | bool = False,
        addresses: AddressRules = PUBLIC,
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
        id_jag: The identity provider, or a function of issuer and resource that gives an assertion
            and may be a coroutine function.
        key: What the client signs with in place of a secret.
        issuer: The authorization server that it is registered with; by default the first one met.
        store: Where grants are kept; by default in memory.
        scopes: Scopes to ask for beyond those that the server wants.
        dpop: A key that tokens are bound to, or `True` to make one.
        addresses: What may be fetched beyond public https addresses.
    """

    extensions: tuple[str, ...] = ("io.modelcontextprotocol/enterprise-managed-authorization",)

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        id_jag: IdentityProvider | FetchAssertion,
        key: PrivateKey | None = None,
        issuer: str | None = None,
        store: Store | None = None,
        scopes: Sequence[str] = (),
        dpop: PrivateKey | bool = False,
        addresses: AddressRules = PUBLIC,
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

    extensions: tuple[str, ...] = ()

    def __init__(
        self,
        token: str | Callable[[], str | Awaitable[str]],
        *,
        addresses: AddressRules = PUBLIC,
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
