"""Requests to token endpoints, as flows: client authentication, DPoP proofs, nonces, refresh.

Source: RFC 6749, sections 4.1.3, 4.4.2 and 6; RFC 9449, section 5; RFC 8707, section 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from ..errors import AuthorizationError, OAuthError
from .client_authentication import ClientIdentity, authentication_fields, choose_method
from .discovery import AuthorizationServer, FlowContext
from .dpop import USE_NONCE
from .records import Grant
from .steps import Fetch, Fetched, Flow
from .tokens import AccessToken, read_token, refusal

UNUSABLE_REFRESH_TOKEN = frozenset({"invalid_client", "invalid_grant", "unauthorized_client"})
"""Error codes after which a refresh token cannot be used again."""


def post_form(
    context: FlowContext,
    url: str,
    form: Mapping[str, str],
    client: ClientIdentity | None,
    issuer: str,
    methods: tuple[str, ...] | None,
) -> Flow[Fetched]:
    """Post a form to a token endpoint.

    Args:
        context: What all flows for the MCP server share.
        url: The endpoint.
        form: The form fields, without client authentication.
        client: The client; `None` to send no client authentication.
        issuer: The issuer that the endpoint belongs to.
        methods: The supported methods of client authentication; `None` if unknown.

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
            method = choose_method(client, methods)
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


def new_grant(
    context: FlowContext,
    server: AuthorizationServer,
    scopes: tuple[str, ...],
    client: ClientIdentity | None = None,
) -> Grant:
    """A grant to request, which has no token yet.

    Args:
        context: What all flows for the MCP server share.
        server: The authorization server.
        scopes: The scopes to request; empty to omit the parameter.
        client: The client to store in the grant; `None` for a client that is configured, and so
            not stored.

    Raises:
        AuthorizationError: The authorization server has no usable token endpoint.
    """
    key = None if context.proofs is None else context.proofs.key
    grant = Grant(
        issuer=server.metadata.issuer,
        token=None,
        token_endpoint=server.endpoint("token_endpoint", context),
        methods=server.metadata.strings("token_endpoint_auth_methods_supported"),
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
        context, grant.token_endpoint, whole, client, grant.issuer, grant.methods
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
