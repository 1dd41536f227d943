"""Authorization without a user: client credentials and assertions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...auth.discovery import AuthorizationServer, FlowContext
from ...auth.flows import (
    FetchAssertion,
    IdentityProvider,
    client_credentials,
    enterprise_managed,
    workload_identity,
)
from ...auth.jwt_signing import PrivateKey
from ...auth.steps import Flow
from ...auth.token_endpoint import ClientIdentity, Grant
from ...facts import Revisions
from ...framing.http_hosts import PUBLIC, AddressRules
from .stores import MemoryStore, Store
from .token_authorizer import AuthSettings, TokenAuthorizer

if TYPE_CHECKING:
    from ...auth.jwt_signing import PrivateKey
    from ...transports.http.http_client import Authorizer


class _MachineAuthorization(ABC):
    """Authorization of a client that needs no user.

    Args:
        client: The client; `None` if token requests name no client.
        store: The store of grants; `None` for one in memory.
        scopes: Scopes to request in addition to those that the server requires.
        issuer: The authorization server; `None` for the first one discovered.
        dpop: The key to bind tokens to (DPoP), or `True` to generate a key.
        addresses: Addresses that are allowed in addition to public https.
    """

    extensions: tuple[str, ...] = ()

    def __init__(
        self,
        client: ClientIdentity | None,
        store: Store | None,
        scopes: Sequence[str],
        issuer: str | None,
        dpop: PrivateKey | bool,
        addresses: AddressRules,
    ) -> None:
        self._client = client
        self.settings = AuthSettings(
            store=MemoryStore() if store is None else store,
            addresses=addresses,
            scopes=tuple(scopes),
            proof_key=dpop or None,
            issuer=issuer,
            binds_issuer=True,
        )

    def __repr__(self) -> str:
        client_id = "" if self._client is None else f" {self._client.client_id!r}"
        return f"<{type(self).__name__}{client_id}>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """See `Authorization.authorizer`."""
        return TokenAuthorizer(self, url, revisions)

    @abstractmethod
    def request_grant(
        self, context: FlowContext, server: AuthorizationServer, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.request_grant`."""

    def client_of(self, grant: Grant) -> ClientIdentity | None:
        """See `GrantSource.client_of`."""
        return self._client


class ClientCredentials(_MachineAuthorization):
    """Authorizes a pre-registered client itself, by client credentials.

    Args:
        client_id: The client id.
        client_secret: The client secret.
        key: The key that signs assertions, instead of a secret.
        issuer: The authorization server of the client; by default the first one discovered.
        store: The store of grants; by default in memory.
        scopes: Scopes to request in addition to those that the server requires.
        audience: The audience of assertions; by default the issuer.
        dpop: The key to bind tokens to (DPoP), or `True` to generate a key.
        addresses: Addresses that are allowed in addition to public https.

    Raises:
        ValueError: Neither a secret nor a key is given.
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
        self._identity = ClientIdentity(client_id, client_secret, None, key, audience)
        super().__init__(self._identity, store, scopes, issuer, dpop, addresses)

    def request_grant(
        self, context: FlowContext, server: AuthorizationServer, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.request_grant`."""
        return client_credentials(context, self._identity, server, scopes)


class WorkloadIdentity(_MachineAuthorization):
    """Authorizes a workload by an assertion of its platform.

    Args:
        fetch_jwt: Returns the assertion for an issuer and its token endpoint; may be a coroutine
            function.
        client_id: The client id, if the authorization server requires one.
        issuer: The authorization server that assertions are for; by default the first one
            discovered.
        store: The store of grants; by default in memory.
        scopes: Scopes to request in addition to those that the server requires.
        dpop: The key to bind tokens to (DPoP), or `True` to generate a key.
        addresses: Addresses that are allowed in addition to public https.
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
        addresses: AddressRules = PUBLIC,
    ) -> None:
        self._fetch_jwt = fetch_jwt
        client = None if client_id is None else ClientIdentity(client_id, method="none")
        super().__init__(client, store, scopes, issuer, dpop, addresses)

    def request_grant(
        self, context: FlowContext, server: AuthorizationServer, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.request_grant`."""
        return workload_identity(context, self._fetch_jwt, self._client, server, scopes)


class EnterpriseManaged(_MachineAuthorization):
    """Authorizes a user by an assertion of an identity provider, without interaction.

    Args:
        client_id: The client id at the authorization server of the MCP server.
        client_secret: The client secret at that authorization server.
        id_jag: The identity provider, or a function that returns the assertion for an issuer and a
            resource; may be a coroutine function.
        key: The key that signs assertions, instead of a secret.
        issuer: The authorization server of the client; by default the first one discovered.
        store: The store of grants; by default in memory.
        scopes: Scopes to request in addition to those that the server requires.
        dpop: The key to bind tokens to (DPoP), or `True` to generate a key.
        addresses: Addresses that are allowed in addition to public https.
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
        self._identity = ClientIdentity(client_id, client_secret, None, key)
        super().__init__(self._identity, store, scopes, issuer, dpop, addresses)

    def request_grant(
        self, context: FlowContext, server: AuthorizationServer, scopes: tuple[str, ...]
    ) -> Flow[Grant]:
        """See `GrantSource.request_grant`."""
        return enterprise_managed(context, self._id_jag, self._identity, server, scopes)
