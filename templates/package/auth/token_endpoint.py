"""Requests to token endpoints, as flows, and the grants that result from them.

    grant to request -> form, client authentication, DPoP proof -> token response -> grant, stored

Grants are stored as JSON and contain secrets. A grant names its issuer, so that credentials of one
authorization server are never sent to another.

Source: RFC 6749, sections 2.3, 4.1.3, 4.4.2, 5 and 6; RFC 7523, section 2.2; RFC 8707, section 2.2;
RFC 9449, section 5; OpenID Connect Core, section 9.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from ..errors import AuthorizationError
from ..foreign_text import safe_text
from ..framing.http_headers import is_visible_ascii
from .discovery import AuthorizationServer, FlowContext, read_object
from .identifiers import parse_scopes
from .json_documents import finite_number
from .jwt_signing import USE_NONCE, PrivateKey, random_base64url
from .steps import Fetch, Fetched, Flow

AuthMethod: TypeAlias = Literal[
    "client_secret_basic", "client_secret_post", "none", "private_key_jwt"
]

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS = 60
"""Lifetime of an assertion."""

RENEWAL_SECONDS = 30.0
"""Seconds before the expiry at which a token is refreshed. A token with a lifetime of less than
twice as long is refreshed after half of the lifetime."""

SHORTEST_RENEWAL = 1.0
"""Shortest time between two refreshes before the expiry, in seconds, for any `expires_in`."""

UNUSABLE_REFRESH_TOKEN = frozenset({"invalid_client", "invalid_grant", "unauthorized_client"})
"""Error codes after which a refresh token cannot be used again."""

_Record = TypeVar("_Record")


class OAuthError(AuthorizationError):
    """An authorization server, or its user, refused with an OAuth error code.

    Attributes:
        code: The code, such as `invalid_grant`.
        description: The server's description of the error; empty if there is none.

    Source: RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2.
    """

    def __init__(self, where: str, code: str, description: str = "") -> None:
        more = f": {safe_text(description)}" if description else ""
        super().__init__(f"{where}: {safe_text(code)}{more}")
        self.code = code
        self.description = description


@dataclass(frozen=True)
class ClientIdentity:
    """The credentials of a client at one authorization server.

    Attributes:
        client_id: The client id.
        client_secret: The client secret; `None` for a public client.
        method: The authentication method; `None` to choose a method that the server supports.
        key: The key that signs assertions.
        audience: The audience of assertions; `None` for the issuer.
    """

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    key: PrivateKey | None = None
    audience: str | None = None


@dataclass(frozen=True)
class AccessToken:
    """An access token, with the other members of the token response.

    Attributes:
        value: The token.
        scheme: The authentication scheme: `Bearer` or `DPoP`.
        renew_at: When to refresh the token, in seconds since 1970; `None` if its expiry is unknown.
        refresh_token: The refresh token, if there is one.
        scopes: The granted scopes; `None` if the response names none.
    """

    value: str = field(repr=False)
    scheme: str = "Bearer"
    renew_at: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Grant:
    """The authorization of a client for one MCP server.

    Attributes:
        issuer: The authorization server that issued the grant.
        token: The access token and the refresh token; `None` without a usable token.
        token_endpoint: The token endpoint of the issuer.
        methods: The authentication methods of the token endpoint; `None` if unknown.
        client_id: The client that the grant was issued to; `None` for a configured client.
        client_secret: The client secret.
        method: The authentication method of the client; `None` to choose a method.
        resource: The `resource` parameter of requests; `None` to omit it.
        requested: The requested scopes.
        proof_key: The private key that the token is bound to, as JSON Web Key; `None` for none.
        algorithm: The algorithm of that key.
        signing: The algorithms of assertions that the token endpoint lists; `None` if unknown.
    """

    issuer: str
    token: AccessToken | None
    token_endpoint: str
    methods: tuple[str, ...] | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    method: AuthMethod | None = None
    resource: str | None = None
    requested: tuple[str, ...] = ()
    proof_key: str | None = field(default=None, repr=False)
    algorithm: str = "ES256"
    signing: tuple[str, ...] | None = None


def new_grant(
    context: FlowContext,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
    client: ClientIdentity | None = None,
) -> Grant:
    """A grant without a token, to request the token for.

    Args:
        context: The state that all flows for the MCP server share.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.
        client: The client to store in the grant; `None` for a configured client, which is not
            stored.

    Raises:
        AuthorizationError: The authorization server has no usable token endpoint.
    """
    key = None if context.proofs is None else context.proofs.key
    grant = Grant(
        issuer=server.metadata.issuer,
        token=None,
        token_endpoint=server.endpoint("token_endpoint", context),
        methods=server.metadata.strings("token_endpoint_auth_methods_supported"),
        signing=server.metadata.strings("token_endpoint_auth_signing_alg_values_supported"),
        resource=server.resource,
        requested=scopes,
    )
    if key is not None:
        grant = replace(grant, proof_key=key.private_jwk(), algorithm=key.algorithm)
    if client is not None:
        grant = replace(
            grant,
            client_id=client.client_id,
            client_secret=client.client_secret,
            method=client.method,
        )
    return grant


def request_token(
    context: FlowContext, grant: Grant, form: Mapping[str, str], client: ClientIdentity | None
) -> Flow[Grant]:
    """Request a token.

    Returns:
        The grant with the token.

    Raises:
        OAuthError: The authorization server refused.
        AuthorizationError: The response is malformed, or the token is not bound to the key.
    """
    whole = dict(form)
    if grant.resource is not None:
        whole["resource"] = grant.resource
    response = yield from post_form(
        context,
        grant.token_endpoint,
        whole,
        client,
        grant.issuer,
        grant.methods,
        grant.signing,
    )
    token = read_token(response, "the token endpoint", context.now())
    if (context.proofs is not None) != (token.scheme == "DPoP"):
        expected = "Bearer" if context.proofs is None else "DPoP"
        raise AuthorizationError(f"the token endpoint: expected a token of type {expected}")
    if context.proofs is None:
        return replace(grant, token=token, proof_key=None)
    key = context.proofs.key
    return replace(grant, token=token, proof_key=key.private_jwk(), algorithm=key.algorithm)


def refresh_grant(
    context: FlowContext, grant: Grant, client: ClientIdentity | None
) -> Flow[Grant | None]:
    """Refresh the token of a grant.

    Returns:
        The grant with the new token; `None` if there is no refresh token, or the authorization
        server rejected it for good.

    Raises:
        AuthorizationError: The request failed; the refresh token may still be valid.
    """
    old: AccessToken | None = grant.token
    if old is None or old.refresh_token is None:
        return None
    form = {"grant_type": "refresh_token", "refresh_token": old.refresh_token}
    try:
        new = yield from request_token(context, grant, form, client)
    except OAuthError as error:
        if error.code in UNUSABLE_REFRESH_TOKEN:
            return None
        raise
    assert new.token is not None
    refresh_token = new.token.refresh_token or old.refresh_token
    scopes = old.scopes if new.token.scopes is None else new.token.scopes
    return replace(new, token=replace(new.token, refresh_token=refresh_token, scopes=scopes))


def post_form(
    context: FlowContext,
    url: str,
    form: Mapping[str, str],
    client: ClientIdentity | None,
    issuer: str,
    methods: tuple[str, ...] | None,
    signing: tuple[str, ...] | None = None,
) -> Flow[Fetched]:
    """Post a form to a token endpoint.

    Args:
        context: The state that all flows for the MCP server share.
        url: The endpoint.
        form: The form fields, without client authentication.
        client: The client; `None` to send no client authentication.
        issuer: The issuer that the endpoint belongs to.
        methods: The supported methods of client authentication; `None` if unknown.
        signing: The supported algorithms of assertions; `None` if unknown.

    Raises:
        AuthorizationError: The URL is not allowed, or the client cannot authenticate.
    """
    context.addresses.check(url, "`token_endpoint`")
    proofs = context.proofs
    for last in (False, True):
        fields = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        whole = dict(form)
        if client is not None:
            method = choose_method(client, methods, signing)
            header, extra = authentication_fields(client, method, issuer, context.now)
            fields.update(header)
            whole.update(extra)
        if proofs is not None:
            fields["DPoP"] = proofs.proof("POST", url)
        response: Fetched = yield Fetch("POST", url, fields, urlencode(whole).encode())
        if proofs is None:
            return response
        changed = proofs.take_nonce(url, response.fields.get("dpop-nonce"))
        if last or not changed or response.status not in (400, 401):
            return response
        error = refusal(response, "the token endpoint")
        if not isinstance(error, OAuthError) or error.code != USE_NONCE:
            return response
    raise AssertionError("unreachable: the last attempt returns")


def choose_method(
    client: ClientIdentity, supported: Sequence[str] | None, signing: Sequence[str] | None = None
) -> AuthMethod:
    """The authentication method to use.

    Args:
        client: The client.
        supported: The methods that the server's metadata lists; `None` for the default of
            RFC 8414, which is `client_secret_basic`.
        signing: The algorithms of assertions that the metadata lists; `None` for any.

    Raises:
        AuthorizationError: The server supports no method that the client can use.
    """
    chosen, key = client.method, client.key
    if key is not None and signing is not None and key.algorithm not in signing:
        if chosen == "private_key_jwt" or (chosen is None and client.client_secret is None):
            raise AuthorizationError(
                f"the token endpoint supports no assertions signed by {key.algorithm}"
            )
        key = None
    if chosen is not None:
        return chosen
    usable: list[AuthMethod] = []
    if key is not None:
        usable.append("private_key_jwt")
    if client.client_secret is not None:
        usable.append("client_secret_basic")
        usable.append("client_secret_post")
    if not usable:
        return "none"
    offered = supported if supported is not None else ("private_key_jwt", "client_secret_basic")
    for method in usable:
        if method in offered:
            return method
    if "none" in offered:
        return "none"
    raise AuthorizationError(f"the token endpoint supports none of the methods {', '.join(usable)}")


def authentication_fields(
    client: ClientIdentity, method: AuthMethod, issuer: str, now: Callable[[], float]
) -> tuple[dict[str, str], dict[str, str]]:
    """The header fields and the form fields that authenticate a request to a token endpoint.

    Args:
        client: The client.
        method: The authentication method.
        issuer: The issuer, which is the default audience of an assertion.
        now: Returns the time, in seconds since 1970.

    Raises:
        AuthorizationError: The client has no secret or no key, and the method requires one.
    """
    if method == "none":
        return {}, {"client_id": client.client_id}
    if method == "private_key_jwt":
        return {}, _assertion(client, issuer, now())
    if client.client_secret is None:
        raise AuthorizationError(f"{method}: expected a client secret, got none")
    if method == "client_secret_post":
        return {}, {"client_id": client.client_id, "client_secret": client.client_secret}
    # A space is %20: some servers decode `+` as form fields do (RFC 6749, appendix B), some do not.
    pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
    header = f"Basic {base64.b64encode(pair.encode()).decode()}"
    # The official Python SDK's token endpoint finds the client by the form (RFC 6749, 3.2.1).
    return {"Authorization": header}, {"client_id": client.client_id}


def _assertion(client: ClientIdentity, issuer: str, now: float) -> dict[str, str]:
    if client.key is None:
        raise AuthorizationError("private_key_jwt: expected a private key, got none")
    claims = {
        "iss": client.client_id,
        "sub": client.client_id,
        "aud": client.audience or issuer,
        "jti": random_base64url(),
        "iat": int(now),
        "exp": int(now) + ASSERTION_SECONDS,
    }
    signed = client.key.sign({"typ": "JWT"}, claims)
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": signed}


def read_token(response: Fetched, where: str, now: float) -> AccessToken:
    """The token of a token response.

    Args:
        response: The response.
        where: Name of the endpoint, for errors.
        now: The time, in seconds since 1970.

    Raises:
        OAuthError: The endpoint refused with an error code.
        AuthorizationError: The response is malformed, or has no usable token.
    """
    members = read_success(response, where)
    value, scheme = members.get("access_token"), members.get("token_type")
    if not isinstance(value, str) or not is_visible_ascii(value):
        raise AuthorizationError(f"{where}: expected an access token")
    schemes = {"bearer": "Bearer", "dpop": "DPoP"}
    if not isinstance(scheme, str) or scheme.lower() not in schemes:
        raise AuthorizationError(f"{where}: expected the token type Bearer or DPoP")
    scope, refresh = members.get("scope"), members.get("refresh_token")
    return AccessToken(
        value,
        schemes[scheme.lower()],
        _renew_at(members.get("expires_in"), now),
        refresh if isinstance(refresh, str) and refresh else None,
        parse_scopes(scope) if isinstance(scope, str) else None,
    )


def read_success(response: Fetched, where: str) -> Mapping[str, Any]:
    """The members of a successful response.

    Raises:
        OAuthError: The endpoint refused with an error code.
        AuthorizationError: The endpoint refused without an error code, or the response is
            malformed.
    """
    if response.status in (200, 201):
        return read_object(response.body, where)
    raise refusal(response, where)


def refusal(response: Fetched, where: str) -> AuthorizationError:
    """The error for an unsuccessful response; it quotes only `error` and `error_description`."""
    if response.status >= 500:
        return AuthorizationError(f"{where}: HTTP {response.status}")
    try:
        members = read_object(response.body, where)
    except AuthorizationError:
        return AuthorizationError(f"{where}: HTTP {response.status}")
    code, description = members.get("error"), members.get("error_description")
    if not isinstance(code, str):
        return AuthorizationError(f"{where}: HTTP {response.status}")
    return OAuthError(where, code, description if isinstance(description, str) else "")


def _renew_at(expires_in: object, now: float) -> float | None:
    if isinstance(expires_in, str) and expires_in.isascii() and expires_in.isdigit():
        expires_in = int(expires_in[:12])
    seconds = finite_number(expires_in)
    if seconds is None:
        return None
    return now + max(seconds - min(RENEWAL_SECONDS, seconds / 2), SHORTEST_RENEWAL)


def grant_key(server: str) -> str:
    """The store key of a grant."""
    return f"grant {server}"


def encode_record(record: object) -> bytes:
    """Encode a record as JSON."""
    return msgspec.json.encode(record)


def decode_record(data: bytes | None, kind: type[_Record]) -> _Record | None:
    """Decode a record from JSON; `None` if there is no record, or it is malformed."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
