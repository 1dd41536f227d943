"""The authorization code flow in two halves: up to the URL for the user, and from the return on.

What lies between is a value that can be written down, so that the second half may run in another
process.

Source: basic/authorization (authorization flow); OAuth 2.1, section 4.1; RFC 7636; RFC 8707;
RFC 9207.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ..errors import AuthorizationError, OAuthError
from .client_authentication import ClientIdentity
from .discovery import Discovered, Surroundings
from .pkce import METHOD, challenge_of, new_state, new_verifier
from .records import Grant
from .registration import ClientProfile, identified
from .scopes import OFFLINE_ACCESS
from .steps import Flow, PrepareRedirect, Visit
from .token_requests import granted

_ONCE = ("code", "error", "error_description", "iss", "state")


@dataclass(frozen=True)
class CodeRequest:
    """An authorization request that the user was sent away with. It holds secrets.

    Attributes:
        url: Where the user goes.
        grant: What is to be granted; it has no token yet.
        redirect_uri: Where the user comes back to.
        state: The value that the return has to repeat.
        verifier: The code verifier.
        iss_supported: Whether the issuer promises `iss` in the return.
    """

    url: str = field(repr=False)
    grant: Grant
    redirect_uri: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    iss_supported: bool


def code_request(
    around: Surroundings,
    profile: ClientProfile,
    server: Discovered,
    scopes: tuple[str, ...],
) -> Flow[CodeRequest]:
    """The first half: who the client is, and the URL for the user.

    Raises:
        OAuthError: The registration was refused.
        AuthorizationError: The authorization server lacks what is needed.
    """
    issuer = server.issuer
    methods = issuer.texts("code_challenge_methods_supported")
    if server.revision.facts.authorization.pkce_advertised and METHOD not in (methods or ()):
        raise AuthorizationError(f"the authorization server does not support PKCE by {METHOD}")
    endpoint = server.endpoint("authorization_endpoint", around)
    token_endpoint = server.endpoint("token_endpoint", around)
    redirect_uri: str = yield PrepareRedirect()
    client = yield from identified(around, profile, server, redirect_uri)
    verifier, state = new_verifier(), new_state()
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": METHOD,
    }
    if scopes:
        query["scope"] = " ".join(scopes)
    if OFFLINE_ACCESS in scopes:
        query["prompt"] = "consent"  # OpenID Connect Core, section 11
    if server.resource is not None:
        query["resource"] = server.resource
    if around.proofs is not None:
        query["dpop_jkt"] = around.proofs.key.thumbprint()
    split = urlsplit(endpoint)
    joined = "&".join(filter(None, [split.query, urlencode(query)]))
    grant = Grant(
        issuer.issuer,
        None,
        token_endpoint,
        issuer.texts("token_endpoint_auth_methods_supported"),
        client.client_id,
        client.client_secret,
        client.method,
        server.resource,
        scopes,
        None if around.proofs is None else around.proofs.key.private_jwk(),
        "ES256" if around.proofs is None else around.proofs.key.algorithm,
    )
    promised = issuer.says("authorization_response_iss_parameter_supported")
    url = urlunsplit(split._replace(query=joined, fragment=""))
    return CodeRequest(url, grant, redirect_uri, state, verifier, promised)


def code_grant(
    around: Surroundings, profile: ClientProfile, request: CodeRequest, returned: str
) -> Flow[Grant]:
    """The second half: check the return, and change the code for a token.

    Args:
        around: The MCP server, and the rules.
        profile: The client, for the key that it signs with.
        request: The first half.
        returned: The URL that the user came back by.

    Raises:
        OAuthError: The user or the authorization server refused.
        AuthorizationError: The return is not one of this request.
    """
    code = code_in(request, returned)
    client = client_of(request.grant, profile)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
    }
    return (yield from granted(around, request.grant, form, client))


def code_in(request: CodeRequest, returned: str) -> str:
    """The code that the user came back with.

    `state` and the issuer are checked before anything else is read or shown.

    Raises:
        OAuthError: The authorization server refused.
        AuthorizationError: The return is not one of this request.
    """
    try:
        pairs = parse_qsl(urlsplit(returned).query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise AuthorizationError("the return from authorization is malformed") from None
    values = dict(pairs)
    if any(sum(name == each for each, _ in pairs) > 1 for name in _ONCE):
        raise AuthorizationError("the return from authorization repeats a parameter")
    if not hmac.compare_digest(values.get("state", "").encode(), request.state.encode()):
        raise AuthorizationError("the return from authorization has another `state`")
    issuer = values.get("iss")
    if issuer is None and request.iss_supported:
        raise AuthorizationError("the return from authorization lacks `iss`")
    if issuer is not None and issuer != request.grant.issuer:
        raise AuthorizationError("the return from authorization is from another issuer")
    if "error" in values:
        description = values.get("error_description", "")
        raise OAuthError("authorization", values["error"], description)
    if not values.get("code"):
        raise AuthorizationError("the return from authorization has no code")
    return values["code"]


def client_of(grant: Grant, profile: ClientProfile) -> ClientIdentity | None:
    """Who a grant was made to."""
    if grant.client_id is None:
        return None
    return ClientIdentity(
        grant.client_id, grant.client_secret, grant.method, profile.key, profile.audience
    )


def authorized(
    around: Surroundings, profile: ClientProfile, server: Discovered, scopes: tuple[str, ...]
) -> Flow[Grant]:
    """The whole flow, with the user in the middle.

    Args:
        around: The MCP server, and the rules.
        profile: The client.
        server: The authorization server.
        scopes: The scopes to ask for; empty to leave them out.

    Raises:
        AuthorizationError: It failed.
    """
    request = yield from code_request(around, profile, server, scopes)
    returned: str = yield Visit(request.url)
    return (yield from code_grant(around, profile, request, returned))
