"""Requests to token endpoints: authentication, refresh, proofs, grants without a user."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import unquote, unquote_plus

import pytest
from joserfc import jwt
from joserfc.jwk import JWKRegistry

from kit.auth_answers import (
    ISSUER,
    NOW,
    SERVER,
    TOKEN,
    World,
    around,
    discover_server,
    json_response,
    world_of,
)
from kit.rules import revisions_holding
from mcpgen_runtime import (
    AuthorizationError,
    ClientCredentials,
    IdentityProvider,
    OAuth,
    OAuthError,
    Paste,
    PrivateKey,
)
from mcpgen_runtime.auth.flows import client_credentials, enterprise_managed, workload_identity
from mcpgen_runtime.auth.jwt_signing import ProofKey, decode_base64url
from mcpgen_runtime.auth.steps import Fetch, Fetched
from mcpgen_runtime.auth.token_endpoint import (
    ASSERTION_TYPE,
    SHORTEST_RENEWAL,
    AccessToken,
    ClientIdentity,
    Grant,
    authentication_fields,
    choose_method,
    decode_record,
    encode_record,
    refresh_grant,
    request_token,
)
from requirements import EVERY_REVISION, requirement

with_extensions = pytest.mark.parametrize("revision", revisions_holding("auth-ext.baseline-holds"))

ENDPOINT = f"POST {ISSUER}/token"
PUBLIC = ClientIdentity("me", method="none")
GRANT = Grant(
    ISSUER, AccessToken("old", refresh_token="r-1"), f"{ISSUER}/token", None, "me", resource=SERVER
)


def verify_token(token: str, key: PrivateKey) -> Any:
    """A signed token, checked against a key."""
    return jwt.decode(token, JWKRegistry.import_key(key.public_jwk()), [key.algorithm])


@requirement("auth-flow.token-endpoint-basic-encoding", revisions=EVERY_REVISION)
@pytest.mark.parametrize("decode", [unquote, unquote_plus])
def test_id_and_secret_are_each_encoded_for_basic(decode: Callable[[str], str]) -> None:
    client = ClientIdentity("a:b c%", "s+/:\xe9")
    fields, form = authentication_fields(client, "client_secret_basic", ISSUER, lambda: NOW)
    pair = base64.b64decode(fields["Authorization"].removeprefix("Basic ")).decode()
    assert [decode(part) for part in pair.split(":")] == ["a:b c%", "s+/:\xe9"]
    assert form == {"client_id": "a:b c%"}


@requirement(
    "auth-flow.token-endpoint-auth-method",
    "auth-ext.cc-jwt-recommended",
    "auth-ext.cc-auth-methods",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(
    ("secret", "key", "supported", "method"),
    [
        (None, False, None, "none"),
        ("s", False, None, "client_secret_basic"),
        ("s", False, ("client_secret_post",), "client_secret_post"),
        ("s", False, ("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        ("s", False, ("none",), "none"),
        ("s", True, ("client_secret_basic", "private_key_jwt"), "private_key_jwt"),
        (None, True, None, "private_key_jwt"),
        ("s", False, ("tls_client_auth",), None),
    ],
)
def test_a_method_is_one_that_both_sides_have(
    secret: str | None, key: bool, supported: tuple[str, ...] | None, method: str | None
) -> None:
    client = ClientIdentity("me", secret, key=PrivateKey.generate() if key else None)
    if method is None:
        with pytest.raises(AuthorizationError, match="supports none"):
            choose_method(client, supported)
    else:
        assert choose_method(client, supported) == method


@requirement(
    "auth-ext.cc-jwt-parameters",
    "auth-ext.cc-jwt-claims",
    "auth-ext.cc-jwt-audience",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "PS256", "Ed25519"])
@pytest.mark.parametrize("audience", [None, f"{ISSUER}/token"])
def test_an_assertion_is_signed_by_the_client_for_the_issuer(
    algorithm: str, audience: str | None
) -> None:
    key = PrivateKey.generate(algorithm)
    assert len(key.public_jwk().get("n", "-" * 512)) == 512  # base64url of 3072 bits
    client = ClientIdentity("me", key=key, audience=audience)
    fields, form = authentication_fields(client, "private_key_jwt", ISSUER, lambda: NOW)
    assert fields == {}
    assert form.keys() == {"client_assertion_type", "client_assertion"}
    assert form["client_assertion_type"] == ASSERTION_TYPE
    claims = verify_token(form["client_assertion"], key).claims
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("me", "me", audience or ISSUER)
    assert claims["iat"] == NOW
    assert claims["exp"] == NOW + 60
    assert claims["jti"]


@requirement("auth-ext.cc-jwt-claims", "auth-ext.cc-jwt-parameters")
@pytest.mark.parametrize(
    ("listed", "secret", "method"),
    [
        (["RS256", "ES256"], "s", "private_key_jwt"),
        (["RS256", "ES384"], "s", "client_secret_basic"),
        (["RS256", "ES384"], None, None),
    ],
)
@with_extensions
def test_an_assertion_is_signed_by_an_algorithm_that_is_listed(
    listed: list[str], secret: str | None, method: str | None, revision: str
) -> None:
    world = world_of(
        revision,
        token_endpoint_auth_methods_supported=["private_key_jwt", "client_secret_basic"],
        token_endpoint_auth_signing_alg_values_supported=listed,
    )
    server = discover_server(world, revision)
    key = PrivateKey.generate("ES256")
    flow = client_credentials(around(revision), ClientIdentity("me", secret, key=key), server, ())
    if method is None:
        with pytest.raises(AuthorizationError, match="no assertions signed by ES256"):
            world.run(flow)
        chosen = ClientIdentity("me", "s", "private_key_jwt", key)
        with pytest.raises(AuthorizationError, match="no assertions signed by ES256"):
            choose_method(chosen, None, listed)
        assert world.asked == []
    else:
        world.run(flow)
        assert ("client_assertion" in world.form()) is (method == "private_key_jwt")
        assert ("Authorization" in world.asked[-1].fields) is (method == "client_secret_basic")


@pytest.mark.parametrize("method", ["private_key_jwt", "client_secret_basic", "client_secret_post"])
def test_a_client_without_what_a_method_takes_does_not_use_it(method: Any) -> None:
    with pytest.raises(AuthorizationError, match=r"expected a .*got none"):
        authentication_fields(ClientIdentity("me"), method, ISSUER, lambda: 0.0)


def test_a_key_is_shown_by_its_name_alone_and_signs_any_members() -> None:
    plain = PrivateKey.generate()
    key = PrivateKey(plain.private_jwk(), "ES256", "key-1")
    assert repr(key) == "<PrivateKey ES256>"
    assert key.thumbprint() == plain.thumbprint()
    assert "d" not in key.public_jwk()
    with pytest.raises(ValueError, match="ES384"):
        PrivateKey(plain.private_jwk(), "ES384")
    text = key.sign({"typ": "JWT", "custom": "x"}, {"name": "\xe9", "n": 1})
    header, payload = (decode_base64url(part) for part in text.split(".")[:2])
    assert json.loads(header) == {"alg": "ES256", "kid": "key-1", "typ": "JWT", "custom": "x"}
    assert payload == '{"name":"\xe9","n":1}'.encode()
    assert "kid" not in verify_token(plain.sign({}, {}), plain).header
    assert "kid" not in verify_token(key.sign({"jwk": key.public_jwk()}, {}), key).header


@requirement(
    "auth-flow.refresh-rotation-replaces",
    "auth-flow.resource-in-token-request",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(
    ("named", "refresh", "scopes"),
    [
        ({"refresh_token": "r-2"}, "r-2", ("a",)),
        ({"scope": "b"}, "r-1", ("b",)),
        ({"refresh_token": ""}, "r-1", ("a",)),
        ({"refresh_token": 5}, "r-1", ("a",)),
    ],
    ids=str,
)
def test_a_refresh_replaces_what_its_answer_names(
    named: Mapping[str, Any], refresh: str, scopes: tuple[str, ...]
) -> None:
    members = {"access_token": "new", "token_type": "bearer", **named}
    world = World({ENDPOINT: json_response(members)})
    token = AccessToken("old", refresh_token="r-1", scopes=("a",))
    renewed = world.run(refresh_grant(around(), replace(GRANT, token=token), PUBLIC))
    assert world.form() == {
        "grant_type": "refresh_token",
        "refresh_token": "r-1",
        "client_id": "me",
        "resource": SERVER,
    }
    assert renewed is not None
    assert renewed.token is not None
    assert (renewed.token.value, renewed.token.refresh_token) == ("new", refresh)
    assert renewed.token.scopes == scopes


@pytest.mark.parametrize(
    ("error", "status", "requests"),
    [
        ("use_dpop_nonce", 400, 2),
        ("invalid_grant", 400, 1),
        ("invalid_client", 401, 1),
        ("use_dpop_nonce", 403, 1),
    ],
)
def test_a_refusal_with_a_nonce_is_met_once_and_only_if_it_is_for_the_nonce(
    error: str, status: int, requests: int
) -> None:
    count = iter(range(100))
    world = World(
        {
            ENDPOINT: lambda step: json_response(
                {"error": error}, status, dpop_nonce=f"{next(count)}"
            )
        }
    )
    with pytest.raises(AuthorizationError):
        world.run(request_token(around(proofs=proof_key()), GRANT, {}, PUBLIC))
    assert len(world.asked) == requests


@pytest.mark.parametrize("code", ["invalid_grant", "invalid_client", "unauthorized_client"])
def test_a_refused_refresh_token_is_of_no_more_use(code: str) -> None:
    world = World({ENDPOINT: json_response({"error": code}, 400)})
    assert world.run(refresh_grant(around(), GRANT, PUBLIC)) is None


@pytest.mark.parametrize(
    "response",
    [
        Fetched(500, {}, b"SECRET"),
        Fetched(503),
        Fetched(429),
        json_response({"error": "temporarily_unavailable"}, 400),
        json_response({"error": "invalid_grant"}, 500),
        json_response({"error": ["SECRET"]}, 400),
        json_response(["SECRET"], 400),
    ],
)
def test_a_failure_that_may_pass_keeps_the_refresh_token(response: Fetched) -> None:
    world = World({ENDPOINT: response})
    with pytest.raises(AuthorizationError) as caught:
        world.run(refresh_grant(around(), GRANT, PUBLIC))
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        {"token_type": "Bearer"},
        {"access_token": "", "token_type": "Bearer"},
        {"access_token": "a\r\nX: y", "token_type": "Bearer"},
        {"access_token": "a b", "token_type": "Bearer"},
        {"access_token": "hidden"},
        {"access_token": "hidden", "token_type": "mac"},
        {"access_token": "hidden", "token_type": "N_A"},
    ],
)
def test_a_response_without_a_usable_token_is_an_error(answer: dict[str, str]) -> None:
    world = World({ENDPOINT: json_response(answer)})
    with pytest.raises(AuthorizationError, match="expected") as caught:
        world.run(request_token(around(), GRANT, {}, PUBLIC))
    assert "hidden" not in str(caught.value)


@requirement("auth-ext.cc-renewal", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("expires_in", "left"),
    [
        (3600, 3570.0),
        (10, 5.0),
        ("60", 30.0),
        ("9" * 13, 999_999_999_999 - 30.0),
        ("1.5", None),
        ("\u0663", None),
        (0, SHORTEST_RENEWAL),
        (0.1, SHORTEST_RENEWAL),
        (-5, SHORTEST_RENEWAL),
        (None, None),
        (True, None),
        (10**400, None),
    ],
    ids=lambda value: str(value)[:10],
)
def test_a_token_is_renewed_before_its_end(expires_in: object, left: float | None) -> None:
    world = World({ENDPOINT: json_response({**TOKEN, "expires_in": expires_in})})
    token = world.run(request_token(around(), GRANT, {}, PUBLIC)).token
    assert token is not None
    assert token.renew_at == (None if left is None else NOW + left)


def test_a_grant_shows_no_secret_and_comes_back_from_its_record() -> None:
    grant = replace(GRANT, client_secret="SECRET", proof_key="SECRET")
    assert decode_record(encode_record(grant), Grant) == grant
    assert "SECRET" not in repr(grant)
    assert "r-1" not in repr(grant)
    assert "SECRET" not in repr(ClientIdentity("me", "SECRET"))
    assert decode_record(encode_record(GRANT), Grant) == GRANT
    assert decode_record(b'{"issuer": 7}', Grant) is None
    assert decode_record(b"\xff", Grant) is None
    assert decode_record(None, Grant) is None


def proof_key() -> ProofKey:
    return ProofKey(PrivateKey.generate(), lambda: NOW)


@requirement(
    "auth-ext.dpop-proof-header",
    "auth-ext.dpop-proof-claims",
    "auth-ext.dpop-no-extra-claims",
    "auth-ext.dpop-fresh-proof",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_proof_is_about_one_request_and_its_token(method: str) -> None:
    proofs = proof_key()
    first, second = (proofs.proof(method, "https://h/mcp?x=1#y", "token") for _ in range(2))
    decoded = verify_token(first, proofs.key)
    assert (decoded.header["typ"], decoded.header["alg"]) == ("dpop+jwt", "ES256")
    assert decoded.header["jwk"] == proofs.key.public_jwk()
    assert decoded.header["jwk"].keys() == {"kty", "crv", "x", "y"}  # nothing of the private key
    assert decoded.claims == {
        "jti": decoded.claims["jti"],
        "htm": method,
        "htu": "https://h/mcp",
        "iat": NOW,
        "ath": "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A",
    }
    assert verify_token(second, proofs.key).claims["jti"] != decoded.claims["jti"]


@requirement("auth-ext.dpop-token-request-proof", "auth-ext.dpop-as-nonce")
@pytest.mark.parametrize("status", [400, 401])
@with_extensions
def test_the_nonce_of_a_token_endpoint_is_used_in_a_new_proof(revision: str, status: int) -> None:
    proofs, seen = proof_key(), []

    def endpoint(step: Fetch) -> Fetched:
        seen.append(verify_token(step.fields["DPoP"], proofs.key).claims)
        if "nonce" not in seen[-1]:
            return json_response({"error": "use_dpop_nonce"}, status, dpop_nonce="n-1")
        return json_response({**TOKEN, "token_type": "DPoP"})

    world = World({ENDPOINT: endpoint})
    assert (
        world.run(request_token(around(revision, proofs=proofs), GRANT, {}, PUBLIC)).token
        is not None
    )
    assert [claims.get("nonce") for claims in seen] == [None, "n-1"]
    assert seen[0]["jti"] != seen[1]["jti"]
    assert (seen[0]["htm"], seen[0]["htu"]) == ("POST", f"{ISSUER}/token")


def test_nonces_of_two_servers_are_kept_apart() -> None:
    proofs = proof_key()
    assert proofs.take_nonce("https://a.example/x", "of-a")
    assert not proofs.take_nonce("https://a.example/y", "of-a")
    assert "nonce" not in verify_token(proofs.proof("POST", SERVER), proofs.key).claims
    claims = verify_token(proofs.proof("POST", "https://a.example/z"), proofs.key).claims
    assert claims["nonce"] == "of-a"


@requirement(
    "auth-ext.wif-no-retry", "auth-ext.wif-non-interactive", "auth-ext.wif-errors-surfaced"
)
@pytest.mark.parametrize("code", ["invalid_grant", "invalid_scope", "unauthorized_client"])
@with_extensions
def test_a_refused_assertion_is_not_sent_again(code: str, revision: str) -> None:
    world = World({ENDPOINT: json_response({"error": code, "error_description": "expired"}, 400)})
    server = discover_server(world, revision)
    with pytest.raises(OAuthError, match=f"{code}: expired") as caught:
        world.run(workload_identity(around(revision), lambda *_: "jwt", PUBLIC, server, ()))
    assert caught.value.code == code
    assert world.urls() == [ENDPOINT]
    assert world.visited == []


IDP = IdentityProvider("https://idp.example/token", "at-idp", lambda: "id-token", "idp-secret")
JAG = {
    "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    "token_type": "N_A",
    "access_token": "id-jag",
}


@requirement(
    "auth-ext.ema-token-exchange",
    "auth-ext.ema-exchange-subject",
    "auth-ext.ema-exchange-audience",
    "auth-ext.ema-exchange-resource",
    "auth-ext.ema-exchange-client-auth",
    "auth-ext.ema-exchange-response",
    "auth-ext.ema-jwt-bearer",
    "auth-ext.ema-jwt-bearer-client-auth",
    "auth-ext.ema-no-redirect",
    "auth-ext.ema-no-leaks",
)
@with_extensions
def test_an_identity_provider_vouches_and_no_user_is_asked(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    world = World({"POST https://idp.example/token": json_response(JAG)})
    server = discover_server(world, revision)
    client = ClientIdentity("me", "s")
    grant = world.run(enterprise_managed(around(revision), IDP, client, server, ("a",)))
    assert world.urls() == ["POST https://idp.example/token", ENDPOINT]
    assert world.form(0) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "client_id": "at-idp",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "audience": ISSUER,
        "resource": SERVER,
        "subject_token": "id-token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "scope": "a",
    }
    first, second = (step.fields["Authorization"] for step in world.asked)
    assert base64.b64decode(first.split()[1]) == b"at-idp:idp-secret"
    assert base64.b64decode(second.split()[1]) == b"me:s"
    assert world.form(1) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "client_id": "me",
        "assertion": "id-jag",
        "scope": "a",
        "resource": SERVER,
    }
    assert grant.token is not None
    assert grant.token.value == "access-1"
    assert world.visited == []
    shown = f"{world.urls()} {grant!r} {world.asked!r} {caplog.text}"
    secrets = ("id-jag", "id-token", "idp-secret", "access-1", "refresh-1", first.split()[1])
    assert [secret for secret in secrets if secret in shown] == []


@requirement("auth-ext.ema-errors")
@pytest.mark.parametrize("at", ["https://idp.example/token", f"{ISSUER}/token"])
@with_extensions
def test_errors_of_both_endpoints_reach_the_caller(at: str, revision: str) -> None:
    world = World({"POST https://idp.example/token": json_response(JAG)})
    world.answers[f"POST {at}"] = json_response({"error": "invalid_grant"}, 400)
    server = discover_server(world, revision)
    with pytest.raises(OAuthError, match="invalid_grant") as caught:
        world.run(enterprise_managed(around(revision), IDP, PUBLIC, server, ()))
    assert caught.value.code == "invalid_grant"
    assert "id-jag" not in str(caught.value)
    assert world.visited == []


@pytest.mark.parametrize("member", [{"issued_token_type": "other"}, {"access_token": None}])
def test_another_token_of_an_identity_provider_ends_the_flow(member: dict[str, str | None]) -> None:
    world = World({"POST https://idp.example/token": json_response({**JAG, **member})})
    server = discover_server(world)
    with pytest.raises(AuthorizationError, match="the identity provider: expected an ID-JAG"):
        world.run(enterprise_managed(around(), IDP, PUBLIC, server, ()))
    plain = replace(IDP, token_endpoint="http://idp.example/token")
    with pytest.raises(AuthorizationError, match="https"):
        world.run(enterprise_managed(around(), plain, PUBLIC, server, ()))
    assert world.urls() == ["POST https://idp.example/token"]


def test_a_function_may_give_the_assertion_and_the_resource_may_be_left_out() -> None:
    world, asked = World(), []

    def fetch(issuer: str, resource: str) -> str:
        asked.append((issuer, resource))
        return "jag"

    context = around(send_resource=False)
    server = discover_server(world, send_resource=False)
    world.run(enterprise_managed(context, fetch, PUBLIC, server, ()))
    assert asked == [(ISSUER, SERVER)]
    assert world.form()["assertion"] == "jag"
    assert "resource" not in world.form()


@requirement("auth-ext.dpop-asymmetric-only", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("make", "text"),
    [
        *(
            (partial(PrivateKey.generate, algorithm), "expected an algorithm")
            for algorithm in ("HS256", "none", "ES999")
        ),
        *(
            (partial(PrivateKey, key, "ES256"), "expected a private key for ES256")
            for key in ("", "SECRET", '{"kty": "oct", "k": "U0VDUkVU"}')
        ),
        (lambda: OAuth(client_secret="SECRET"), "client_secret: expected a client_id"),
        (lambda: OAuth(interaction=Paste(), redirect=Paste()), "one of interaction and redirect"),
        (lambda: ClientCredentials("me"), "expected a client_secret or a key"),
    ],
)
def test_keys_and_settings_that_are_none_are_refused_without_showing_them(
    make: Callable[[], Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        make()
    assert "SECRET" not in repr(caught.value)
    assert caught.value.__cause__ is None
