"""Tokens that break parsers, and verifiers that fail: refused, with little in the log."""

from __future__ import annotations

import base64
import json
import logging
import re

import pytest

from kit.asgi_client import asgi
from kit.guarded import Guarded, challenge_in, protected_settings
from kit.issuer import (
    KEY,
    bearer,
    claims_of,
    jwk_set,
    proof_key,
    proof_of,
    serving_issuer,
    sign_token,
    token_of,
)
from kit.wire import SESSIONS, initialize
from mcpgen_runtime import AnyOf, DpopValidation, JwtVerifier, Principal
from mcpgen_runtime.server.auth.authenticator import FailureLog
from mcpgen_runtime.server.auth.jws_validation import parse_token
from requirements import EVERY_REVISION, requirement

HELLO = initialize(SESSIONS[-1])
BOUND = proof_key()
NESTED = b"[" * 2500 + b"]" * 2500
DIGITS = b"9" * 6000


def compact(header: bytes, claims: bytes, signature: bytes = b"x") -> str:
    """A token in compact serialization, whatever its parts are."""
    parts = (base64.urlsafe_b64encode(part).rstrip(b"=") for part in (header, claims, signature))
    return b".".join(parts).decode()


HEAD = b'{"alg": "ES256", "kid": "one"}'
CLAIMS = json.dumps(claims_of()).encode()
TOKENS = {
    "deep header": compact(b'{"alg": "ES256", "kid": ' + NESTED + b"}", CLAIMS),
    "deep claims": compact(HEAD, b'{"iss": ' + NESTED * 4 + b"}"),
    "deep array as claims": compact(HEAD, NESTED),
    "digits without end in the header": compact(
        b'{"alg": "ES256", "kid": ' + DIGITS + b"}", CLAIMS
    ),
    "digits without end as expiry": compact(HEAD, b'{"exp": ' + DIGITS + b"}"),
    "no number as expiry": compact(HEAD, b'{"exp": NaN}'),
    "a surrogate": compact(b'{"alg": "ES256", "kid": "\\ud800"}', CLAIMS),
    "no text": compact(b"\xff\xfe", b"\xff"),
    "an array as algorithm": compact(b'{"alg": [["ES256"]]}', CLAIMS),
    "an array as header": compact(b"[]", CLAIMS),
    "expiry beyond all floats": token_of(exp=10**400),
    "expiry before all floats": token_of(exp=-(10**400)),
    "issued beyond all floats": token_of(iat=10**400),
    "valid beyond all floats": token_of(nbf=10**400),
}


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("scheme", ["Bearer", "DPoP"])
async def test_a_token_beyond_any_parser_gets_401(
    name: str, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    auth = protected_settings(dpop=DpopValidation())
    async with asgi(Guarded().server, auth=auth) as http:
        reply = await http.post(HELLO, Authorization=f"{scheme} {TOKENS[name]}")
    assert reply.status == 401
    assert challenge_in(reply, scheme).parameters["error"] == "invalid_token"
    assert "Traceback" not in caplog.text
    assert len(caplog.text) < 500


BOUND_TOKEN = token_of(cnf={"jkt": BOUND.thumbprint()})
PROOFS = {
    "deep key": compact(b'{"typ": "dpop+jwt", "alg": "ES256", "jwk": ' + NESTED + b"}", b"{}"),
    "deep member of the key": proof_of(
        BOUND, BOUND_TOKEN, header={"jwk": {"kty": "EC", "x": [[]]}}
    ),
    "deep claims": compact(b'{"typ": "dpop+jwt", "alg": "ES256"}', NESTED),
    "time beyond all floats": proof_of(BOUND, BOUND_TOKEN, iat=10**400),
    "time before all floats": proof_of(BOUND, BOUND_TOKEN, iat=-(10**400)),
    "a truth as time": proof_of(BOUND, BOUND_TOKEN, iat=True),
    "a huge nonce": proof_of(BOUND, BOUND_TOKEN, nonce=10**400),
}


@pytest.mark.parametrize("name", PROOFS)
async def test_a_proof_beyond_any_parser_gets_401(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    auth = protected_settings(dpop=DpopValidation(nonce=name == "a huge nonce"))
    async with asgi(Guarded().server, auth=auth) as http:
        reply = await http.post(HELLO, Authorization=f"DPoP {BOUND_TOKEN}", DPoP=PROOFS[name])
    assert reply.status == 401
    assert "Traceback" not in caplog.text
    assert len(caplog.text) < 500


def test_a_header_of_a_token_has_8192_characters_at_most() -> None:
    def token(characters: int) -> str:
        filler = characters * 3 // 4 - len('{"alg":"ES256","x":""}')
        return sign_token({"alg": "ES256", "x": "x" * filler}, claims_of(), KEY)

    longest, longer = token(8192), token(8194)
    assert [len(each.partition(".")[0]) for each in (longest, longer)] == [8192, 8194]
    assert [parse_token(each) is None for each in (longest, longer)] == [False, True]


def test_a_failure_is_new_once_in_10_seconds_for_each_kind() -> None:
    log = FailureLog()
    times = [("a", 0.0), ("a", 9.5), ("b", 9.5), ("a", 10.0), ("a", 19.5), ("b", 19.5)]
    assert [log.is_new(kind, now) for kind, now in times] == [True, False, True, True, False, True]


@requirement("auth-resource-server.generic-error-detail", revisions=EVERY_REVISION)
@pytest.mark.parametrize("failure", [ConnectionError, RecursionError])
async def test_a_verifier_that_fails_fills_no_log(
    failure: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(token: str) -> Principal | None:
        raise failure(f"db host {token * 100}")

    auth = protected_settings(verifier=AnyOf(JwtVerifier(keys=jwk_set(KEY)), failing))
    async with asgi(Guarded().server, auth=auth) as http:
        for number in range(20):
            reply = await http.post(HELLO, Authorization=bearer(f"opaque-{number}"))
            assert reply.status == 503
            incident = re.search(rb"under (\w{8})\b", reply.body)
            assert incident is not None
            assert incident[1].decode() in caplog.text
            assert b"db host" not in reply.body
            assert b"opaque" not in reply.body
    assert caplog.text.count("Traceback") == 1
    assert "opaque" not in caplog.text
    assert len(caplog.text) < 20_000


async def test_an_issuer_that_fails_is_logged_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving_issuer() as issuer:
        issuer.failing = True
        auth = protected_settings(
            issuers=[issuer.url], verifier=JwtVerifier(jwks=f"{issuer.url}/jwks")
        )
        async with asgi(Guarded().server, auth=auth) as http:
            for number in range(20):
                token = token_of(str(number), iss=issuer.url)
                assert (await http.post(HELLO, Authorization=bearer(token))).status == 503
        assert len(issuer.requests) == 1
    assert len(caplog.records) == 2  # the fetch, and that a token could not be verified
