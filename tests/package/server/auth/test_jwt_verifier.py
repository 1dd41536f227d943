"""JWTs as access tokens: what is wrong with those that are refused."""

from __future__ import annotations

import base64
import hmac
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import JWKRegistry, OctKey, OKPKey
from syrupy.assertion import SnapshotAssertion

from kit.asgi_client import asgi
from kit.faults import refusals
from kit.guarded import Guarded, protected_settings
from kit.issuer import (
    IDP,
    KEY,
    RESOURCE,
    bearer,
    claims_of,
    jwk_set,
    new_key,
    serving_issuer,
    sign_token,
    token_of,
)
from kit.wire import SESSIONS, initialize
from mcpgen_runtime import DpopValidation, JwtVerifier, MissingExtraError
from mcpgen_runtime.server.auth.jws_validation import jose_errors
from requirements import EVERY_REVISION, requirement

HELLO = initialize(SESSIONS[-1])


async def status_of(token: str, **settings: Any) -> int:
    """The status of a request with a token."""
    async with asgi(Guarded().server, auth=protected_settings(**settings)) as http:
        status: int = (await http.post(HELLO, Authorization=bearer(token))).status
        return status


def encode_segment(data: bytes) -> str:
    """Bytes as in a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned_token(**header: Any) -> str:
    """A token without signature, as attackers make them."""
    parts = (header, claims_of())
    return ".".join(encode_segment(json.dumps(part).encode()) for part in parts) + "."


def signed_by_public_key() -> str:
    """A token signed by HS256, with the public key as the secret."""
    text = unsigned_token(alg="HS256", kid="one")[:-1]
    secret = KEY.as_bytes(encoding="PEM", private=False)
    return f"{text}.{encode_segment(hmac.digest(secret, text.encode(), 'sha256'))}"


NOW = int(time.time())


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time at which the tokens of this module were made: a test may run minutes later."""
    monkeypatch.setattr(time, "time", lambda: float(NOW))


UNKNOWN = "no verifier knows the token"
ALGORITHM = "alg: expected one of "
SIGNATURE = "the signature matches no key of the issuer"
CRITICAL = "crit: expected no critical header parameters"
EXPIRY, AUDIENCE = "exp: expected a time in the future", "aud: expected this server"
ID_TOKEN = "expected an access token, got an ID token"
JWT = {"typ": "JWT"}
IN_HEADER = {"jwk": (own := new_key("own")).as_dict(private=False), "kid": None}

REFUSED: dict[str, tuple[str, str]] = {
    "three parts": ("a.b.c", UNKNOWN),
    "alg none": (unsigned_token(alg="none"), ALGORITHM),
    "HS256 with the public key": (signed_by_public_key(), ALGORITHM),
    "key of someone else": (token_of(key=new_key("one")), SIGNATURE),
    "unknown kid": (token_of(key=new_key("two")), SIGNATURE),
    "critical header": (token_of(header={"crit": ["exp"], "exp": 1}), CRITICAL),
    "key in the header": (token_of(key=own, header=IN_HEADER), SIGNATURE),
    "other issuer": (token_of(iss="https://other.example"), UNKNOWN),
    "no issuer": (token_of(iss=None), UNKNOWN),
    "expired": (token_of(exp=NOW - 30), EXPIRY),
    "no expiry": (token_of(exp=None), EXPIRY),
    "expiry is text": (token_of(exp="9999999999"), "exp: expected a time in seconds"),
    "expiry beyond all times": (token_of(exp=10**400), "exp: expected a time in seconds"),
    "not yet valid": (token_of(nbf=NOW + 31), "nbf: expected a time in the past"),
    "issued in the future": (token_of(iat=NOW + 31), "iat: expected a time in the past"),
    "other audience": (token_of(aud="https://other.example/mcp"), AUDIENCE),
    "sibling": (token_of(aud="https://h/other"), AUDIENCE),
    "no audience": (token_of(aud=None), AUDIENCE),
    "audience is no text": (token_of(aud={"https://h/mcp": 1}), AUDIENCE),
    "no subject": (token_of(sub=None, client_id=None), "sub: expected a subject"),
    "ID token by typ claim": (token_of(header=JWT, typ="ID"), ID_TOKEN),
    "ID token by nonce": (token_of(header=JWT, nonce="n"), ID_TOKEN),
    "ID token of Cognito": (token_of(header=JWT, token_use="id"), ID_TOKEN),
    "DPoP proof": (token_of(header={"typ": "dpop+jwt"}), "typ: expected an access token"),
    "scope with a quote": (token_of(scope='a"b'), "scope: expected scopes"),
}


@requirement(
    "auth-resource-server.401-invalid-token",
    "auth-resource-server.tokens-validated",
    "auth-resource-server.audience-validated",
    "auth-resource-server.audience-missing-rejected",
    "auth-resource-server.only-own-tokens",
    "auth-resource-server.no-other-tokens",
    "auth-resource-server.token-not-for-server-refused",
    "auth-resource-server.single-issuer",
    "auth-resource-server.specific-audience",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("name", REFUSED)
async def test_a_wrong_token_is_refused(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    token, reason = REFUSED[name]
    assert await status_of(token) == 401
    assert f"a token was refused: {reason}" in caplog.text


ACCEPTED = {
    "access token": token_of(),
    "without typ": token_of(header={"typ": None}),
    "media type": token_of(header={"typ": "application/at+JWT"}),
    "one of several audiences": token_of(aud=["https://other.example", RESOURCE]),
    "upper case": token_of(aud="HTTPS://H/mcp"),
    "default port": token_of(aud="https://h:443/mcp"),
    "no kid": token_of(header={"kid": None}),
    "scopes as an array": token_of(scope=None, scp=["mcp:read"]),
    "client without user": token_of(sub=None),
    "clocks that differ": token_of(exp=NOW - 29, iat=NOW + 30, nbf=NOW + 30),
    "typ at+jwt with a claim of ID tokens": token_of(nonce="n"),
    "typ JWT with other values of Keycloak and Cognito": token_of(
        header=JWT, typ="Bearer", token_use="access"
    ),
    "unknown header": token_of(header={"x5t": "abc", "custom": 1}),
}


@requirement(
    "auth-resource-server.audience-validated",
    "auth-flow.resource-accept-uppercase",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("name", ACCEPTED)
async def test_a_right_token_is_accepted(name: str) -> None:
    assert await status_of(ACCEPTED[name]) == 200


@pytest.mark.parametrize(
    ("kind", "crv", "algorithm"),
    [
        ("RSA", 2048, "RS256"),
        ("RSA", 2048, "PS256"),
        ("EC", "P-384", "ES384"),
        ("OKP", "Ed25519", "Ed25519"),
    ],
)
async def test_algorithms_are_those_of_the_allow_list(
    kind: str, crv: str | int, algorithm: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    key = new_key("one", kind, crv)
    token = token_of(key=key, header={"alg": algorithm})
    keys = jwk_set(key)
    assert await status_of(token, verifier=JwtVerifier(keys=keys)) == 200
    other = JwtVerifier(keys=keys, algorithms=["ES256", "ES512"])
    assert await status_of(token, verifier=other) == 401
    assert "alg: expected one of ES256, ES512" in caplog.text


async def test_a_token_signed_with_the_older_eddsa_name_is_accepted() -> None:
    key = JWKRegistry.generate_key("OKP", "Ed25519", {"kid": "one"})
    token = token_of(key=key, header={"alg": "Ed25519"})
    payload = token.split(".")[1]
    head = encode_segment(b'{"alg":"EdDSA","kid":"one"}')
    assert isinstance(key, OKPKey)
    private: Any = key.private_key
    signature = private.sign(f"{head}.{payload}".encode())
    token = f"{head}.{payload}.{encode_segment(signature)}"
    assert await status_of(token, verifier=JwtVerifier(keys=jwk_set(key))) == 200


def test_settings_that_verify_nothing_are_refused(snapshot: SnapshotAssertion) -> None:
    settings: list[dict[str, Any]] = [
        *({"algorithms": each} for each in (["ES256", "HS256"], ["none"], [])),
        *({"jwks": each} for each in ("http://h/jwks", {"a": "https://h/a", "b": "http://h/b"})),
        {"jwks": "https://h/jwks", "keys": {"keys": []}},
    ]
    assert refusals(lambda each: JwtVerifier(**each), settings) == snapshot


@pytest.mark.parametrize("settings", [JwtVerifier, DpopValidation])
def test_a_missing_library_is_an_error_of_the_settings(
    settings: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    jose_errors.cache_clear()
    monkeypatch.setitem(sys.modules, "joserfc.errors", None)
    with pytest.raises(MissingExtraError, match="pip install joserfc"):
        settings()


async def test_typed_tokens_can_be_required() -> None:
    verifier = JwtVerifier(keys=jwk_set(KEY), typed=True)
    assert await status_of(token_of(), verifier=verifier) == 200
    assert await status_of(token_of(header={"typ": "JWT"}), verifier=verifier) == 401


async def test_symmetric_and_unreadable_keys_of_a_set_are_left_out() -> None:
    keys = jwk_set(KEY)
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"}
    keys["keys"] = [secret, {"kty": "new"}, {"kty": "EC"}, "text", {}, *keys["keys"]]
    assert await status_of(token_of(), verifier=JwtVerifier(keys=keys)) == 200
    token = sign_token(
        {"alg": "HS256", "kid": "secret"}, claims_of(), OctKey.import_key(b"secret" * 8)
    )
    assert await status_of(token, verifier=JwtVerifier(keys=keys)) == 401


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"alg": "ES256"}, 200),
        ({"key_ops": ["verify"], "use": "sig"}, 200),
        ({"kid": None}, 200),
        ({"use": "enc"}, 401),
        ({"key_ops": ["encrypt"]}, 401),
        ({"alg": "ES384"}, 401),
        ({"x": ""}, 401),
    ],
)
async def test_a_key_is_used_only_for_what_it_is_for(members: dict[str, Any], status: int) -> None:
    key = {**jwk_set(KEY)["keys"][0], **members}
    key = {name: value for name, value in key.items() if value is not None}
    assert await status_of(token_of(), verifier=JwtVerifier(keys={"keys": [key]})) == status


async def test_several_issuers_have_keys_of_their_own() -> None:
    other, key = "https://other.example", new_key("one")
    verifier = JwtVerifier(keys={IDP: jwk_set(KEY), other: jwk_set(key)})
    settings: dict[str, Any] = {"issuers": [IDP, other], "verifier": verifier}
    assert await status_of(token_of(), **settings) == 200
    assert await status_of(token_of(key=key, iss=other), **settings) == 200
    assert await status_of(token_of(key=key), **settings) == 401
    assert await status_of(token_of(iss=other), **settings) == 401


@requirement("auth-resource-server.token-cache-eviction", revisions=EVERY_REVISION)
async def test_a_verified_token_is_refused_once_it_has_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = token_of(exp=NOW + 60)
    async with asgi(Guarded().server, auth=protected_settings()) as http:
        for after, status in ((0, 200), (59, 200), (120, 401)):
            monkeypatch.setattr(time, "time", lambda after=after: NOW + after)
            assert (await http.post(HELLO, Authorization=bearer(token))).status == status


@pytest.mark.parametrize(
    ("claims", "principal"),
    [
        ({"sub": "a", "client_id": "c", "scope": "x y"}, ("a", "c", {"x", "y"})),
        ({"sub": "a", "azp": "c", "scp": ["x", 5, "y"]}, ("a", "c", {"x", "y"})),
        ({"sub": "", "client_id": "c"}, ("c", "c", set[str]())),
        ({"sub": 5, "azp": "c", "scope": 7}, ("c", "c", set[str]())),
        ({"sub": "a", "client_id": 5, "scope": "x", "scp": "y"}, ("a", None, {"x"})),
    ],
)
async def test_a_principal_is_what_claims_say(claims: dict[str, Any], principal: Any) -> None:
    absent: dict[str, Any] = {"client_id": None, "scope": None}
    token = token_of(**{**absent, "subject": claims.get("sub"), **claims, "sub": claims.get("sub")})
    made = await JwtVerifier(keys=jwk_set(KEY)).bind(protected_settings().trusted)(token)
    assert made is not None
    assert (made.subject, made.client_id, made.scopes, made.issuer) == (*principal, IDP)


async def test_keys_are_found_by_the_metadata_of_the_issuer() -> None:
    with serving_issuer() as issuer:
        settings: dict[str, Any] = {"issuers": [issuer.url], "verifier": JwtVerifier()}
        token = token_of(iss=issuer.url, header={"kid": None})
        assert await status_of(token, **settings) == 200
        assert issuer.requests == ["/.well-known/oauth-authorization-server", "/jwks"]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"issuer": "https://other.example", "jwks_uri": "URL/jwks"}', "its issuer and jwks_uri"),
        (b"[" * 200_000 + b"]" * 200_000, "expected a JSON object"),
        (b'{"issuer": "URL", "jwks_uri": "URL/x"}', "the JWK set of the issuer: expected status"),
        (b'{"issuer": "URL", "jwks_uri": "URL/x", "keys": {}}', "the JWK set of the issuer"),
    ],
)
async def test_an_issuer_without_keys_gives_503_and_is_asked_once(
    raw: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving_issuer() as issuer:
        issuer.raw = raw.replace(b"URL", issuer.url.encode())
        auth = protected_settings(issuers=[issuer.url], verifier=JwtVerifier())
        async with asgi(Guarded().server, auth=auth) as http:
            token = bearer(token_of(iss=issuer.url))
            for _ in "ab":
                reply = await http.post(HELLO, Authorization=token)
                assert (reply.status, reply.fields["retry-after"]) == (503, "1")
                assert issuer.url.encode() not in reply.body
        assert len({*issuer.requests}) == len(issuer.requests) > 0
    assert reason in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "jwks_uri",
    [
        "https://localhost:1/jwks",
        "https://169.254.169.254/latest",
        "https://[::ffff:127.0.0.1]:1/jwks",
        "https://2130706433:1/jwks",
        "http://example.com/jwks",
    ],
)
async def test_keys_are_not_fetched_from_private_metadata_addresses(
    jwks_uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving_issuer() as issuer:
        issuer.jwks_uri = jwks_uri
        settings: dict[str, Any] = {"issuers": [issuer.url], "verifier": JwtVerifier()}
        assert await status_of(token_of(iss=issuer.url), **settings) == 503
    reasons = ("expected an https URL", "expected a public address", "InvalidUrlClientError")
    assert any(reason in caplog.text for reason in reasons)
