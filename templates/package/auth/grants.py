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
from .discovery import AuthorizationServer, FlowContext
from .records import Grant
from .steps import Call, Flow
from .token_requests import new_grant, post_form, request_token
from .tokens import read_success

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_RFC_8693_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"

FetchAssertion: TypeAlias = Callable[[str, str], str | Awaitable[str]]
"""Returns an assertion. The arguments are the issuer, and its token endpoint or the resource."""


@dataclass(frozen=True)
class IdentityProvider:
    """An identity provider that issues assertions (ID-JAG) by token exchange.

    Attributes:
        token_endpoint: The token endpoint of the identity provider.
        client_id: The client id at the identity provider.
        id_token: The user's ID token, or a function that returns it.
        client_secret: The client secret at the identity provider; `None` for a public client.
        subject_token_type: The token type of `id_token`.

    Source: RFC 8693.
    """

    token_endpoint: str
    client_id: str
    id_token: str | Callable[[], str | Awaitable[str]] = field(repr=False)
    client_secret: str | None = field(default=None, repr=False)
    subject_token_type: str = ID_TOKEN


def client_credentials(
    context: FlowContext,
    client: ClientIdentity,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """Obtain a token for the client itself.

    Args:
        context: What all flows for the MCP server share.
        client: The pre-registered client.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.
    """
    form = {"grant_type": "client_credentials", **_scope(scopes)}
    return (yield from request_token(context, new_grant(context, server, scopes), form, client))


def workload_identity(
    context: FlowContext,
    fetch: FetchAssertion,
    client: ClientIdentity | None,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """Exchange the assertion of a platform for a token. The assertion is sent once, unchanged.

    Args:
        context: What all flows for the MCP server share.
        fetch: Returns the assertion for an issuer and its token endpoint.
        client: The client; `None` if the assertion identifies it.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.
    """
    grant = new_grant(context, server, scopes)
    assertion: str = yield Call(fetch, (grant.issuer, grant.token_endpoint))
    form = {"grant_type": JWT_BEARER, "assertion": assertion, **_scope(scopes)}
    return (yield from request_token(context, grant, form, client))


def enterprise_managed(
    context: FlowContext,
    source: IdentityProvider | FetchAssertion,
    client: ClientIdentity,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """Exchange an assertion of an identity provider about the user (ID-JAG) for a token.

    Args:
        context: What all flows for the MCP server share.
        source: The identity provider, or a function that returns the assertion.
        client: The client at the authorization server of the MCP server.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.
    """
    grant = new_grant(context, server, scopes)
    resource = grant.resource or context.server_url
    if isinstance(source, IdentityProvider):
        assertion = yield from _request_id_jag(context, source, grant.issuer, resource, scopes)
    else:
        assertion = yield Call(source, (grant.issuer, resource))
    form = {"grant_type": JWT_BEARER, "assertion": assertion, **_scope(scopes)}
    return (yield from request_token(context, grant, form, client))


def _request_id_jag(
    context: FlowContext,
    source: IdentityProvider,
    issuer: str,
    resource: str,
    scopes: tuple[str, ...],
) -> Flow[str]:
    if isinstance(source.id_token, str):
        subject = source.id_token
    else:
        subject = yield Call(source.id_token)
    form = {
        "grant_type": _RFC_8693_GRANT,
        "requested_token_type": ID_JAG,
        "audience": issuer,
        "resource": resource,
        "subject_token": subject,
        "subject_token_type": source.subject_token_type,
        **_scope(scopes),
    }
    client = ClientIdentity(source.client_id, source.client_secret)
    url = source.token_endpoint
    response = yield from post_form(context, url, form, client, "", None)
    members = read_success(response, "the identity provider")
    assertion = members.get("access_token")
    if members.get("issued_token_type") != ID_JAG or not isinstance(assertion, str):
        raise AuthorizationError("the identity provider: expected an ID-JAG")
    return assertion


def _scope(scopes: tuple[str, ...]) -> dict[str, str]:
    return {"scope": " ".join(scopes)} if scopes else {}
