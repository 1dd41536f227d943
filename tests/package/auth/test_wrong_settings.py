"""Settings of authorization that contradict each other or lack something: refused at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kit.auth_answers import ISSUER
from mcpgen_runtime import (
    AnyOf,
    ClientCredentials,
    JwtVerifier,
    OAuth,
    Paste,
    Protected,
    ProtectedResourceMetadata,
    StaticTokens,
)
from mcpgen_runtime.auth.token_endpoint import ClientIdentity, authentication_fields
from mcpgen_runtime.errors import AuthorizationError
from mcpgen_runtime.server.auth.jws_validation import registry_of

PLAIN = StaticTokens({"x" * 32: "ann"})
"""Tokens without an authorization server."""


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: OAuth(client_secret="s"), "client_secret: expected a client_id"),
        (lambda: OAuth(interaction=Paste(), redirect=Paste()), "one of interaction and redirect"),
        (lambda: ClientCredentials("me"), "expected a client_secret or a key"),
        (lambda: JwtVerifier(jwks=f"{ISSUER}/jwks", keys={"keys": []}), "either jwks or keys"),
        (lambda: JwtVerifier(algorithms=()), "algorithms: expected some of"),
        (lambda: JwtVerifier(jwks="http://as.example/jwks"), "jwks: expected"),
        (lambda: AnyOf(), "expected at least one verifier"),
        (lambda: registry_of(()), "algorithms: expected at least one"),
        (lambda: ProtectedResourceMetadata(), "paths that differ"),
        (lambda: ProtectedResourceMetadata(Protected(verifier=PLAIN)), "servers with issuers"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    make: Callable[[], Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("private_key_jwt", "expected a private key, got none"),
        ("client_secret_basic", "client_secret_basic: expected a client secret, got none"),
        ("client_secret_post", "client_secret_post: expected a client secret, got none"),
    ],
)
def test_a_client_without_what_a_method_takes_does_not_use_it(method: Any, text: str) -> None:
    with pytest.raises(AuthorizationError, match=text):
        authentication_fields(ClientIdentity("me"), method, ISSUER, lambda: 0.0)
