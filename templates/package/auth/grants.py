"""Grants without a user: client credentials, workload identity, enterprise-managed authorization.

Source: ext-auth (client credentials, enterprise-managed authorization); SEP-1933 (workload identity
federation); RFC 6749, section 4.4; RFC 7523, section 2.1; RFC 8693, section 2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import AuthorizationError
from .client_authentication import ClientIdentity
from .discovery import Discovered, Surroundings
from .records import Grant
from .steps import Flow, Obtain
from .token_requests import granted, posted
from .tokens import read_success

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_RFC_8693 = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"

FetchAssertion: TypeAlias = Callable[[str, str], str | Awaitable[str]]
"""Gives an assertion for an issuer, and for its token endpoint or the resource."""


@dataclass(frozen=True)
class IdentityProvider:
    """An identity provider that gives assertions for authorization servers, by RFC 8693.

    Attributes:
        token_endpoint: The token endpoint of the identity provider.
        client_id: The id of the client there.
        id_token: The user's ID token, or a function that gives it.
        client_secret: The secret of the client there; `None` for a public client.
        subject_token_type: What kind of token `id_token` is.
    """

    token_endpoint: str
    client_id: str
    id_token: str | Callable[[], str | Awaitable[str]] = field(repr=False)
    client_secret: str | None = field(default=None, repr=False)
    subject_token_type: str = ID_TOKEN


def client_credentials(
    around: Surroundings,
    client: ClientIdentity,
    server: Discovered,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """A token for the client itself.

    Args:
        around: The MCP server, and the rules.
        client: The client, registered beforehand.
        server: The authorization server.
        scopes: The scopes to ask for; empty to leave them out.
    """
    form = {"grant_type": "client_credentials", **_scope(scopes)}
    return (yield from granted(around, _grant(around, server, scopes), form, client))


def workload_identity(
    around: Surroundings,
    fetch: FetchAssertion,
    client: ClientIdentity | None,
    server: Discovered,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """A token for the assertion of a platform, which is presented unchanged and once.

    Args:
        around: The MCP server, and the rules.
        fetch: Gives the assertion for an issuer and its token endpoint.
        client: The client; `None` where the assertion says it.
        server: The authorization server.
        scopes: The scopes to ask for; empty to leave them out.
    """
    grant = _grant(around, server, scopes)
    assertion: str = yield Obtain(fetch, (grant.issuer, grant.token_endpoint))
    form = {"grant_type": JWT_BEARER, "assertion": assertion, **_scope(scopes)}
    return (yield from granted(around, grant, form, client))


def enterprise_managed(
    around: Surroundings,
    source: IdentityProvider | FetchAssertion,
    client: ClientIdentity,
    server: Discovered,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """A token for an assertion by which an identity provider vouches for the user.

    Args:
        around: The MCP server, and the rules.
        source: How the assertion is had: by an exchange, or from a function of issuer and resource.
        client: The client, at the authorization server of the MCP server.
        server: The authorization server.
        scopes: The scopes to ask for; empty to leave them out.
    """
    grant = _grant(around, server, scopes)
    resource = grant.resource or around.server_url
    if isinstance(source, IdentityProvider):
        assertion = yield from _exchanged(around, source, grant.issuer, resource, scopes)
    else:
        assertion = yield Obtain(source, (grant.issuer, resource))
    form = {"grant_type": JWT_BEARER, "assertion": assertion, **_scope(scopes)}
    return (yield from granted(around, grant, form, client))


def _exchanged(
    around: Surroundings,
    source: IdentityProvider,
    issuer: str,
    resource: str,
    scopes: tuple[str, ...],
) -> Flow[str]:
    if isinstance(source.id_token, str):
        subject = source.id_token
    else:
        subject = yield Obtain(source.id_token)
    form = {
        "grant_type": _RFC_8693,
        "requested_token_type": ID_JAG,
        "audience": issuer,
        "resource": resource,
        "subject_token": subject,
        "subject_token_type": source.subject_token_type,
        **_scope(scopes),
    }
    client = ClientIdentity(source.client_id, source.client_secret)
    url = source.token_endpoint
    response = yield from posted(around, url, form, client, "", None)
    members = read_success(response, "the identity provider")
    assertion = members.get("access_token")
    if members.get("issued_token_type") != ID_JAG or not isinstance(assertion, str):
        raise AuthorizationError("the identity provider: expected an ID-JAG")
    return assertion


def _grant(around: Surroundings, server: Discovered, scopes: tuple[str, ...]) -> Grant:
    return Grant(
        server.issuer.issuer,
        None,
        server.endpoint("token_endpoint", around),
        server.issuer.texts("token_endpoint_auth_methods_supported"),
        resource=server.resource,
        requested=scopes,
    )


def _scope(scopes: tuple[str, ...]) -> dict[str, str]:
    return {"scope": " ".join(scopes)} if scopes else {}
