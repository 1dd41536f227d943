"""Requests to token endpoints, as flows: authenticated, bound to a key, repeated for a nonce.

Source: RFC 6749, sections 4.1.3, 4.4.2 and 6; RFC 9449, section 5; RFC 8707, section 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from ..errors import AuthorizationError, OAuthError
from .client_authentication import ClientIdentity, authenticated, chosen_method
from .discovery import Surroundings
from .dpop import USE_NONCE
from .records import Grant
from .steps import Fetch, Fetched, Flow
from .tokens import AccessToken, read_token, refusal

FORGETTING = frozenset({"invalid_client", "invalid_grant", "unauthorized_client"})
"""Codes after which a refresh token is of no use."""


def posted(
    around: Surroundings,
    url: str,
    form: Mapping[str, str],
    client: ClientIdentity | None,
    issuer: str,
    methods: tuple[str, ...] | None,
) -> Flow[Fetched]:
    """Post a form to a token endpoint.

    Args:
        around: Address rules, time, and the key to bind a token to.
        url: The endpoint.
        form: The fields of the form, without those of authentication.
        client: Who asks; `None` for nobody, where the grant says it.
        issuer: The issuer of the endpoint.
        methods: How clients may authenticate there.
    """
    around.addresses.check(url, "`token_endpoint`")
    proofs = around.proofs
    for last in (False, True):
        fields = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        whole = dict(form)
        if client is not None:
            method = chosen_method(client, methods)
            header, extra = authenticated(client, method, issuer, around.now)
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
    raise AssertionError("the loop returns")


def granted(
    around: Surroundings, grant: Grant, form: Mapping[str, str], client: ClientIdentity | None
) -> Flow[Grant]:
    """Ask for a token; gives the grant with it.

    Raises:
        OAuthError: The authorization server refused.
        AuthorizationError: It answered otherwise, or gave a token that is not bound to the key.
    """
    whole = dict(form)
    if grant.resource is not None:
        whole["resource"] = grant.resource
    response = yield from posted(
        around, grant.token_endpoint, whole, client, grant.issuer, grant.methods
    )
    token = read_token(response, "the token endpoint", around.now())
    if (around.proofs is not None) != (token.scheme == "DPoP"):
        expected = "Bearer" if around.proofs is None else "DPoP"
        raise AuthorizationError(f"the token endpoint: expected a token of type {expected}")
    if around.proofs is None:
        return replace(grant, token=token, proof_key=None)
    key = around.proofs.key
    return replace(grant, token=token, proof_key=key.private_jwk(), algorithm=key.algorithm)


def refreshed(
    around: Surroundings, grant: Grant, client: ClientIdentity | None
) -> Flow[Grant | None]:
    """Renew the token of a grant by its refresh token, which a new one replaces.

    Returns:
        The grant with the new token; `None` if the refresh token is of no use any more.

    Raises:
        AuthorizationError: The endpoint failed for now; the refresh token may still be used.
    """
    old: AccessToken | None = grant.token
    if old is None or old.refresh_token is None:
        return None
    form = {"grant_type": "refresh_token", "refresh_token": old.refresh_token}
    try:
        new = yield from granted(around, grant, form, client)
    except OAuthError as error:
        if error.code in FORGETTING:
            return None
        raise
    assert new.token is not None
    kept = new.token.refresh_token or old.refresh_token
    scopes = old.scopes if new.token.scopes is None else new.token.scopes
    return replace(new, token=replace(new.token, refresh_token=kept, scopes=scopes))
