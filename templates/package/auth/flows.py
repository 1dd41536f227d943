"""Flows that obtain a grant: authorization code, device code, and flows without a user.

The authorization code flow has two halves. The first half ends with the URL to send the user to,
the second half begins with the authorization response. The state between them can be serialized, so
another process can continue.

Source: basic/authorization (authorization flow); OAuth 2.1, section 4.1; RFC 7636; RFC 8707;
RFC 9207; RFC 8628 (device code); ext-auth (client credentials, enterprise-managed authorization);
SEP-1933 (workload identity federation); RFC 6749, section 4.4; RFC 7523, section 2.1; RFC 8693,
section 2.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ..errors import AuthorizationError
from .discovery import AuthorizationServer, FlowContext
from .identifiers import OFFLINE_ACCESS
from .json_documents import finite_number
from .jwt_signing import base64url_sha256, random_base64url
from .registration import (
    DEVICE_GRANT,
    ClientProfile,
    confirm_redirect_uri,
    identify_client,
    limit_scopes,
    load_registration,
)
from .steps import Call, DeviceCode, Flow, Pause, PrepareRedirect, ShowCode, Visit
from .token_endpoint import (
    ClientIdentity,
    Grant,
    OAuthError,
    new_grant,
    post_form,
    read_success,
    request_token,
)

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_RFC_8693_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"

FetchAssertion: TypeAlias = Callable[[str, str], str | Awaitable[str]]
"""Returns an assertion. The arguments are the issuer, and its token endpoint or the resource."""

_CHALLENGE_METHOD = "S256"  # the only supported code challenge method
_RESPONSE_PARAMETERS = ("code", "error", "error_description", "iss", "state")
_DEVICE_ENDPOINT = "the device authorization endpoint"
_USER_CODE_CHARACTERS = 64  # longest user code
_POLL_SECONDS = 5.0  # default seconds between two requests, and the increment for `slow_down`

VISIT_CHARACTERS = 16 * 1024
"""Longest URL that a user is sent to. Endpoint and scopes in the URL come from servers."""

SHORTEST_POLL = 1.0
"""Shortest time between two requests for the token of a device, in seconds."""

LONGEST_POLL = 60.0
"""Longest `interval` of an authorization server that is respected, in seconds."""

DEVICE_CODE_SECONDS = 3600.0
"""Longest lifetime of a device code, in seconds."""


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
    """The first half: identify the client, and build the URL to send the user to.

    Raises:
        OAuthError: The registration was refused.
        AuthorizationError: The authorization server has no PKCE or no usable endpoint.
    """
    methods = server.metadata.strings("code_challenge_methods_supported")
    if server.revision.facts.authorization.pkce_advertised and _CHALLENGE_METHOD not in (
        methods or ()
    ):
        raise AuthorizationError(
            f"the authorization server does not support PKCE with {_CHALLENGE_METHOD}"
        )
    endpoint = server.endpoint("authorization_endpoint", context)
    server.endpoint("token_endpoint", context)  # fail before the client is registered
    registration = None
    if profile.client_id is None:
        registration = yield from load_registration(server.metadata.issuer)
    registered = () if registration is None else registration.redirect_uris
    redirect_uri: str = yield PrepareRedirect(registered)
    client = yield from identify_client(context, profile, server, redirect_uri, scopes)
    verifier, state = new_verifier(), random_base64url()
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": _CHALLENGE_METHOD,
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
    if len(url) > VISIT_CHARACTERS:
        raise AuthorizationError(
            f"the authorization request with {len(scopes)} scopes has {len(url)} characters;"
            f" a browser is given at most {VISIT_CHARACTERS}"
        )
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
        context: The state that all flows for the MCP server share.
        profile: The client, with the key that signs its assertions.
        request: The first half.
        response_url: The redirect URI with the authorization response.

    Raises:
        OAuthError: The user or the authorization server refused.
        AuthorizationError: The response does not belong to this request.
    """
    try:
        return (yield from _finish(context, profile, request, response_url))
    except OAuthError as error:
        yield from _record_refused_scopes(request, error)
        raise


def _record_refused_scopes(request: CodeRequest, error: OAuthError) -> Flow[bool]:
    """Record that scopes were refused; return whether registering the client again may help."""
    if error.code != "invalid_scope":
        return False
    grant = request.grant
    return (yield from limit_scopes(grant.issuer, grant.client_id, grant.requested))


def _finish(
    context: FlowContext, profile: ClientProfile, request: CodeRequest, response_url: str
) -> Flow[Grant]:
    code = _authorization_code(request, response_url)
    client = client_of(request.grant, profile)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": request.redirect_uri,
        "code_verifier": request.verifier,
    }
    grant = yield from request_token(context, request.grant, form, client)
    yield from confirm_redirect_uri(grant.issuer, grant.client_id, request.redirect_uri)
    return grant


def has_same_state(response_url: str, url: str) -> bool:
    """Whether an authorization response has the `state` of an authorization URL.

    Any web page can send the browser to a redirect URI: a response with another `state` does not
    affect the pending authorization.
    """
    try:
        return _is_state(_state_of(response_url), _state_of(url))
    except AuthorizationError:
        return False


def _is_state(state: str, expected: str) -> bool:
    return hmac.compare_digest(*(s.encode("utf-8", "backslashreplace") for s in (state, expected)))


def _state_of(url: str) -> str:
    """The `state` of a URL; empty if the URL has none, or several."""
    states = [value for name, value in _parameters(url) if name == "state"]
    return states[0] if len(states) == 1 else ""


def _parameters(url: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise AuthorizationError("the authorization response is malformed") from None


def _authorization_code(request: CodeRequest, response_url: str) -> str:
    """The authorization code of an authorization response.

    `state` and `iss` are checked before any other parameter is used or shown.
    """
    pairs = _parameters(response_url)
    values = dict(pairs)
    if any(sum(name == each for each, _ in pairs) > 1 for name in _RESPONSE_PARAMETERS):
        raise AuthorizationError("the authorization response repeats a parameter")
    if not _is_state(values.get("state", ""), request.state):
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
    """The client of a grant; `None` if the grant stores no client."""
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

    If scopes are refused because the client was registered without them, it is registered again.

    Args:
        context: The state that all flows for the MCP server share.
        profile: The client.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.

    Raises:
        OAuthError: The user or the authorization server refused.
        AuthorizationError: The authorization server lacks a feature, or the response is malformed.
    """
    while True:
        request = yield from begin_code_flow(context, profile, server, scopes)
        response_url: str = yield Visit(request.url)
        try:
            return (yield from _finish(context, profile, request, response_url))
        except OAuthError as error:
            if not (yield from _record_refused_scopes(request, error)):
                raise


def device_flow(
    context: FlowContext,
    profile: ClientProfile,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
) -> Flow[Grant]:
    """The whole device flow: show the user a code, and poll until the user has authorized.

    Args:
        context: The state that all flows for the MCP server share.
        profile: The client.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.

    Raises:
        OAuthError: The user or the authorization server refused, or the code expired.
        AuthorizationError: The authorization server has no device flow, or a response is malformed.
    """
    endpoint = server.endpoint("device_authorization_endpoint", context)
    server.endpoint("token_endpoint", context)  # fail before the client is registered
    client = yield from identify_client(context, profile, server, None, scopes)
    grant = new_grant(context, server, scopes, client)
    form = {"client_id": client.client_id}
    if scopes:
        form["scope"] = " ".join(scopes)
    if server.resource is not None:
        form["resource"] = server.resource
    response = yield from post_form(
        context, endpoint, form, client, grant.issuer, grant.methods, grant.signing
    )
    members = read_success(response, _DEVICE_ENDPOINT)
    device_code = members.get("device_code")
    if not isinstance(device_code, str) or not device_code:
        raise AuthorizationError(f"{_DEVICE_ENDPOINT}: expected a `device_code`")
    code = _device_code(members, context)
    form = {"grant_type": DEVICE_GRANT, "device_code": device_code}
    interval = _seconds(members.get("interval"), _POLL_SECONDS, LONGEST_POLL)
    interval = max(interval, SHORTEST_POLL)
    until = context.now() + code.expires_in
    yield ShowCode(code)
    while True:
        yield Pause(interval)
        if context.now() >= until:
            raise AuthorizationError(
                f"the user did not authorize the device within {code.expires_in:g} s"
            )
        try:
            return (yield from request_token(context, grant, form, client))
        except OAuthError as error:
            if error.code == "slow_down":
                interval += _POLL_SECONDS
            elif error.code != "authorization_pending":
                raise


def _device_code(members: Mapping[str, Any], context: FlowContext) -> DeviceCode:
    """The code to show the user, from the members of a response."""
    code = members.get("user_code")
    if not isinstance(code, str) or not 0 < len(code) <= _USER_CODE_CHARACTERS:
        raise AuthorizationError(f"{_DEVICE_ENDPOINT}: expected a `user_code`")
    if not code.isascii() or not code.isprintable():
        raise AuthorizationError(f"{_DEVICE_ENDPOINT}: expected a `user_code` of printable ASCII")
    complete = members.get("verification_uri_complete")
    return DeviceCode(
        code,
        context.addresses.check(members.get("verification_uri"), "`verification_uri`"),
        (
            None
            if complete is None
            else context.addresses.check(complete, "`verification_uri_complete`")
        ),
        _seconds(members.get("expires_in"), DEVICE_CODE_SECONDS, DEVICE_CODE_SECONDS),
    )


def _seconds(value: object, default: float, longest: float) -> float:
    """Seconds, at most `longest`; the default unless the value is a number of 0 or more."""
    seconds = finite_number(value)
    return default if seconds is None or seconds < 0 else min(seconds, longest)


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
        context: The state that all flows for the MCP server share.
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
        context: The state that all flows for the MCP server share.
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
        context: The state that all flows for the MCP server share.
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
