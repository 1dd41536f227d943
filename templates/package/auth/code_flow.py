"""The authorization code flow with PKCE, in two halves.

The first half ends with the URL to send the user to, the second half begins with the authorization
response. The state between them is a serializable value, so that another process can continue.

Source: basic/authorization (authorization flow); OAuth 2.1, section 4.1; RFC 7636; RFC 8707;
RFC 9207.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ..errors import AuthorizationError, OAuthError
from .base64url import base64url_sha256, random_base64url
from .client_authentication import ClientIdentity
from .discovery import AuthorizationServer, FlowContext
from .records import Grant
from .registration import ClientProfile, identify_client
from .scopes import OFFLINE_ACCESS
from .steps import Flow, PrepareRedirect, Visit
from .token_requests import new_grant, request_token

_METHOD = "S256"  # the only supported code challenge method
_ONCE = ("code", "error", "error_description", "iss", "state")


@dataclass(frozen=True)
class CodeRequest:
    """An authorization request whose response is pending. It contains secrets.

    Attributes:
        url: The URL to send the user to.
        grant: The requested grant, without a token.
        redirect_uri: The redirect URI.
        state: The expected `state` of the response.
        verifier: The PKCE code verifier.
        iss_supported: Whether the issuer announces `iss` in the response.
    """

    url: str = field(repr=False)
    grant: Grant
    redirect_uri: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    iss_supported: bool


def begin_code_flow(
    context: FlowContext,
    profile: ClientProfile,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
) -> Flow[CodeRequest]:
    """The first half: identify the client, and make the URL to send the user to.

    Raises:
        OAuthError: The registration was refused.
        AuthorizationError: The authorization server has no PKCE or no usable endpoint.
    """
    methods = server.metadata.strings("code_challenge_methods_supported")
    if server.revision.facts.authorization.pkce_advertised and _METHOD not in (methods or ()):
        raise AuthorizationError(f"the authorization server does not support PKCE with {_METHOD}")
    endpoint = server.endpoint("authorization_endpoint", context)
    server.endpoint("token_endpoint", context)  # fail before the client is registered
    redirect_uri: str = yield PrepareRedirect()
    client = yield from identify_client(context, profile, server, redirect_uri, scopes)
    verifier, state = new_verifier(), random_base64url()
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": _METHOD,
    }
    if scopes:
        query["scope"] = " ".join(scopes)
    if OFFLINE_ACCESS in scopes:
        query["prompt"] = "consent"  # OpenID Connect Core, section 11
    if server.resource is not None:
        query["resource"] = server.resource
    if context.proofs is not None:
        query["dpop_jkt"] = context.proofs.key.thumbprint()
    split = urlsplit(endpoint)
    joined_query = "&".join(filter(None, [split.query, urlencode(query)]))
    grant = new_grant(context, server, scopes, client)
    iss_supported = server.metadata.is_true("authorization_response_iss_parameter_supported")
    url = urlunsplit(split._replace(query=joined_query, fragment=""))
    return CodeRequest(url, grant, redirect_uri, state, verifier, iss_supported)


def new_verifier() -> str:
    """A PKCE code verifier: 64 characters with 384 random bits.

    Source: RFC 7636, section 4.1.
    """
    return random_base64url(48)


def challenge_of(verifier: str) -> str:
    """The S256 code challenge of a code verifier.

    Source: RFC 7636, section 4.2; OAuth 2.1, section 7.5.2.
    """
    return base64url_sha256(verifier)


def finish_code_flow(
    context: FlowContext, profile: ClientProfile, request: CodeRequest, response_url: str
) -> Flow[Grant]:
    """The second half: check the authorization response, and exchange the code for a token.

    Args:
        context: What all flows for the MCP server share.
        profile: The client, with the key that signs its assertions.
        request: The first half.
        response_url: The redirect URI with the authorization response.

    Raises:
        OAuthError: The user or the authorization server refused.
        AuthorizationError: The response does not belong to this request.
    """
    code = _authorization_code(request, response_url)
    client = client_of(request.grant, profile)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
    }
    return (yield from request_token(context, request.grant, form, client))


def _authorization_code(request: CodeRequest, response_url: str) -> str:
    """The authorization code of an authorization response.

    `state` and `iss` are checked before any other parameter is used or shown.

    Raises:
        OAuthError: The authorization server refused.
        AuthorizationError: The response does not belong to this request.
    """
    try:
        pairs = parse_qsl(urlsplit(response_url).query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise AuthorizationError("the authorization response is malformed") from None
    values = dict(pairs)
    if any(sum(name == each for each, _ in pairs) > 1 for name in _ONCE):
        raise AuthorizationError("the authorization response repeats a parameter")
    if not hmac.compare_digest(values.get("state", "").encode(), request.state.encode()):
        raise AuthorizationError("the authorization response has another `state`")
    issuer = values.get("iss")
    if issuer is None and request.iss_supported:
        raise AuthorizationError("the authorization response lacks `iss`")
    if issuer is not None and issuer != request.grant.issuer:
        raise AuthorizationError("the authorization response names another issuer")
    if "error" in values:
        description = values.get("error_description", "")
        raise OAuthError("authorization", values["error"], description)
    if not values.get("code"):
        raise AuthorizationError("the authorization response has no code")
    return values["code"]


def client_of(grant: Grant, profile: ClientProfile) -> ClientIdentity | None:
    """The client that a grant was made to; `None` if the grant stores no client."""
    if grant.client_id is None:
        return None
    return ClientIdentity(
        grant.client_id, grant.client_secret, grant.method, profile.key, profile.audience
    )


def code_flow(
    context: FlowContext,
    profile: ClientProfile,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """The whole authorization code flow.

    Args:
        context: What all flows for the MCP server share.
        profile: The client.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.

    Raises:
        OAuthError: The user or the authorization server refused.
        AuthorizationError: The authorization server lacks a feature, or the response is malformed.
    """
    request = yield from begin_code_flow(context, profile, server, scopes)
    response_url: str = yield Visit(request.url)
    return (yield from finish_code_flow(context, profile, request, response_url))
