"""Tokens that are bound to a key: every request needs a proof by that key."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import time
from itertools import product
from typing import Any

import pytest
from joserfc.jwk import OctKey

from kit.asgi_client import asgi, fields_of
from kit.guarded import WHOAMI, WRITE, Guarded, challenge_in, protected_settings
from kit.issuer import bearer, proof_key, proof_of, token_of
from kit.wire import SESSIONS, initialize, request, streamable
from mcpgen_runtime import DpopValidation
from requirements import EVERY_REVISION, requirement

KEY = proof_key()
OTHER = proof_key()
TOKEN = token_of(cnf={"jkt": KEY.thumbprint()})
HELLO = initialize(SESSIONS[-1])


async def reply_to(proof: str | None, token: str = TOKEN, **settings: Any) -> Any:
    """The response to a request with a proof."""
    dpop = DpopValidation(**settings)
    async with asgi(Guarded().server, auth=protected_settings(dpop=dpop)) as http:
        return await http.post(HELLO, Authorization=f"DPoP {token}", DPoP=proof)


@requirement("auth-ext.dpop-server-validates")
@streamable
async def test_a_bound_token_with_proofs_is_accepted(revision: str) -> None:
    guarded = Guarded()
    async with asgi(guarded.server, auth=protected_settings(dpop=DpopValidation())) as http:
        http.fields["authorization"] = f"DPoP {TOKEN}"
        if revision in SESSIONS:
            http.fields["dpop"] = proof_of(KEY, TOKEN)
            reply = await http.post(initialize(revision))
            http.fields["mcp-session-id"] = reply.fields["mcp-session-id"]
        http.fields["dpop"] = proof_of(KEY, TOKEN)
        reply = await http.ask(revision, "tools/call", {"name": "whoami"})
        assert reply.text == "alice"
        http.fields["dpop"] = proof_of(KEY, TOKEN)
        refused = await http.ask(revision, "tools/call", WRITE)
        assert challenge_in(refused, "DPoP").parameters["error"] == "insufficient_scope"
        http.fields["authorization"] = bearer(token_of())  # a token without key may be a bearer
        http.fields["dpop"] = None
        assert (await http.ask(revision, "tools/call", {"name": "whoami"})).text == "alice"


def without_signature(proof: str) -> str:
    """A proof whose header says that it needs no signature."""
    head, claims, _ = proof.split(".")
    header = json.loads(base64.urlsafe_b64decode(head + "=="))
    head = base64.urlsafe_b64encode(json.dumps({**header, "alg": "none"}).encode()).decode()
    return f"{head.rstrip('=')}.{claims}."


NOW = int(time.time())


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time at which the proofs of this module were made: a test may run minutes later."""
    monkeypatch.setattr(time, "time", lambda: float(NOW))


SECRET = OctKey.generate_key(256)

PARTS, KEY_EXPECTED = "DPoP: expected one signed proof", "jwk: expected a public key"
SIGNATURE, BOUND = "the signature does not match the key", "jwk: expected the key that the token"
METHOD, URL = "htm: expected POST", "htu: expected https://h/mcp"
DIGEST, TIME = "ath: expected the digest of the token", "iat: expected the current time"
ID, ALGORITHM = "jti: expected an id", "alg: expected one of "
OF_SECRET = {"jwk": SECRET.as_dict(private=True)}
OF_PRIVATE = {"jwk": KEY.as_dict(private=True)}

BROKEN: dict[str, tuple[str | None, str]] = {
    "no proof": (None, PARTS),
    "two proofs": (f"{proof_of(KEY, TOKEN)}, {proof_of(KEY, TOKEN)}", PARTS),
    "typ": (proof_of(KEY, TOKEN, header={"typ": "jwt"}), "typ: expected dpop+jwt"),
    "symmetric": (proof_of(KEY, TOKEN, header={"alg": "HS256"}, sign_with=SECRET), ALGORITHM),
    "alg none": (without_signature(proof_of(KEY, TOKEN)), ALGORITHM),
    "signed by another key": (proof_of(KEY, TOKEN, sign_with=OTHER), SIGNATURE),
    "key of someone else": (proof_of(OTHER, TOKEN), BOUND),
    "private key in the header": (proof_of(KEY, TOKEN, header=OF_PRIVATE), KEY_EXPECTED),
    "symmetric key in the header": (proof_of(KEY, TOKEN, header=OF_SECRET), KEY_EXPECTED),
    "no key in the header": (proof_of(KEY, TOKEN, header={"jwk": {}}), KEY_EXPECTED),
    "critical header": (proof_of(KEY, TOKEN, header={"crit": ["x"], "x": 1}), "crit: expected no"),
    "htm": (proof_of(KEY, TOKEN, method="GET"), METHOD),
    "htu of a sibling": (proof_of(KEY, TOKEN, url="https://h/other"), URL),
    "htu by http": (proof_of(KEY, TOKEN, url="http://h/mcp"), URL),
    "htu is no text": (proof_of(KEY, TOKEN, htu=5), URL),
    "ath of another token": (proof_of(KEY, token_of("bob")), DIGEST),
    "too old": (proof_of(KEY, TOKEN, iat=NOW - 301), TIME),
    "from the future": (proof_of(KEY, TOKEN, iat=NOW + 301), TIME),
    "no iat": (proof_of(KEY, TOKEN, iat=None), TIME),
    "no jti": (proof_of(KEY, TOKEN, jti=None), ID),
    "long jti": (proof_of(KEY, TOKEN, jti="x" * 1025), ID),
    "empty jti": (proof_of(KEY, TOKEN, jti=""), ID),
}


@requirement(
    "auth-ext.dpop-server-validates",
    "auth-ext.dpop-asymmetric-only",
    "auth-ext.dpop-server-iat",
    "auth-ext.dpop-server-401",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_proof_is_refused(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    proof, reason = BROKEN[name]
    reply = await reply_to(proof)
    assert reply.status == 401
    assert f"a DPoP proof was refused: {reason}" in caplog.text
    challenge = challenge_in(reply, "DPoP")
    assert challenge.parameters["error"] == "invalid_dpop_proof"
    algorithms = challenge.parameters["algs"].split()
    assert "ES256" in algorithms
    assert "none" not in algorithms


@requirement("auth-ext.dpop-server-iat", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    "proof",
    [
        proof_of(KEY, TOKEN, iat=NOW - 300),
        proof_of(KEY, TOKEN, iat=NOW + 300),
        *(proof_of(KEY, TOKEN, jti="x" * count) for count in (1, 1024)),
        proof_of(KEY, TOKEN, url="HTTPS://H:443/mcp?x=1#part"),
        proof_of(KEY, TOKEN, htu="https://h/mcp/"),
    ],
)
async def test_an_unusual_proof_is_accepted(proof: str) -> None:
    assert (await reply_to(proof)).status == 200


@requirement("auth-ext.dpop-server-validates", revisions=EVERY_REVISION)
async def test_a_proof_is_accepted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asgi(Guarded().server, auth=protected_settings(dpop=DpopValidation())) as http:
        proof = proof_of(KEY, TOKEN, iat=NOW + 300)
        http.fields |= {"authorization": f"DPoP {TOKEN}", "dpop": proof}
        assert [(await http.post(HELLO)).status for _ in range(2)] == [200, 401]
        later = time.time() + 599
        monkeypatch.setattr(time, "time", lambda: later)
        assert (await http.post(HELLO)).status == 401
        same_id = proof_of(OTHER, other := token_of("bob", cnf={"jkt": OTHER.thumbprint()}))
        http.fields |= {"authorization": f"DPoP {other}", "dpop": same_id}
        assert (await http.post(HELLO)).status == 200


def test_processes_of_equal_settings_share_the_key_of_nonces() -> None:
    settings = DpopValidation(nonce=True)
    copy = pickle.loads(pickle.dumps(settings))  # as workers get it
    assert copy.nonce_key == settings.nonce_key
    assert DpopValidation(nonce=True).nonce_key != settings.nonce_key
    assert len(settings.nonce_key or b"") == 32
    assert repr(settings) == "DpopValidation(required=False, nonce=True)"
    auth = protected_settings(dpop=settings)
    assert [limit.text for limit in auth.process_limits()] == [
        "a DPoP proof is accepted once by each worker, for at most 600 s"
    ]
    assert protected_settings().process_limits() == []


OTHERWISE, UNBOUND = token_of(cnf={"x5t#S256": "abc"}), token_of()
ELSEWHERE = token_of(aud="https://other", cnf={"jkt": KEY.thumbprint()})
ACCEPTING, REQUIRING = DpopValidation(), DpopValidation(required=True)


@requirement(
    "auth-ext.dpop-server-no-downgrade",
    "auth-ext.off-by-default",
    "auth-ext.dpop-server-audience",
    "auth-ext.baseline-holds",
    revisions=EVERY_REVISION,
)
@pytest.mark.parametrize(
    ("dpop", "scheme", "token", "has_proof"),
    [
        *product([None, ACCEPTING, REQUIRING], ["Bearer"], [TOKEN], [False, True]),
        *product([None, ACCEPTING], ["Bearer"], [OTHERWISE], [False]),
        (None, "DPoP", TOKEN, True),
        (ACCEPTING, "DPoP", UNBOUND, True),
        (ACCEPTING, "DPoP", ELSEWHERE, True),
    ],
)
async def test_a_token_is_of_use_in_the_way_that_it_is_bound_alone(
    dpop: DpopValidation | None, scheme: str, token: str, has_proof: bool
) -> None:
    proof = proof_of(KEY, token) if has_proof else None
    async with asgi(Guarded().server, auth=protected_settings(dpop=dpop)) as http:
        reply = await http.post(HELLO, Authorization=f"{scheme} {token}", DPoP=proof)
    assert reply.status == 401
    challenge = reply.fields["www-authenticate"]
    assert "invalid_token" in challenge
    assert dpop is not None or "DPoP" not in challenge


@requirement("auth-ext.dpop-server-401", "auth-ext.graceful-degradation")
@streamable
@pytest.mark.parametrize("required", [False, True])
async def test_both_schemes_are_offered_unless_one_is_required(
    required: bool, revision: str
) -> None:
    guarded = Guarded()
    dpop = DpopValidation(required=required, algorithms=("ES256", "Ed25519"))
    first = request(revision, "tools/call", WHOAMI)
    if revision in SESSIONS:
        first = initialize(revision)
    fields = fields_of(revision, first)
    async with asgi(guarded.server, auth=protected_settings(dpop=dpop)) as http:
        reply = await http.post(first, **fields)
        assert reply.status == 401
        assert challenge_in(reply, "DPoP").parameters["algs"] == "ES256 Ed25519"
        assert ("Bearer" in reply.fields["www-authenticate"]) is not required
        unbound = await http.post(first, **fields, Authorization=bearer(token_of()))
        assert unbound.status == (401 if required else 200)
        if required:
            assert challenge_in(unbound, "DPoP").parameters["error"] == "invalid_token"
    assert guarded.calls == ([] if required or revision in SESSIONS else ["alice whoami"])


@requirement("auth-ext.dpop-server-nonce", revisions=EVERY_REVISION)
async def test_a_nonce_of_the_server_can_be_required(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = DpopValidation(nonce=True, nonce_key=b"k" * 16)
    foreign = DpopValidation(nonce=True)
    nonces = []
    for dpop in (foreign, settings):
        async with asgi(Guarded().server, auth=protected_settings(dpop=dpop)) as http:
            http.fields["authorization"] = f"DPoP {TOKEN}"
            reply = await http.post(HELLO, DPoP=proof_of(KEY, TOKEN))
            assert reply.status == 401
            assert challenge_in(reply, "DPoP").parameters["error"] == "use_dpop_nonce"
            nonces.append(reply.fields["dpop-nonce"])
    async with asgi(
        Guarded().server, auth=protected_settings(dpop=settings)
    ) as http:  # another process
        http.fields["authorization"] = f"DPoP {TOKEN}"
        for nonce in (nonces[0], "", "x", "\xe4", 7):
            reply = await http.post(HELLO, DPoP=proof_of(KEY, TOKEN, nonce=nonce))
            assert (reply.status, "dpop-nonce" in reply.fields) == (401, True)
        assert (await http.post(HELLO, DPoP=proof_of(KEY, TOKEN, nonce=nonces[1]))).status == 200
        for seconds, status in ((-301, 401), (-300, 200), (300, 200), (301, 401)):
            monkeypatch.setattr(time, "time", lambda now=NOW + seconds: float(now))
            proof = proof_of(KEY, TOKEN, nonce=nonces[1])
            assert (await http.post(HELLO, DPoP=proof)).status == status


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithms": ("HS256",)},
        {"algorithms": ()},
        {"algorithms": ("none",)},
        {"seconds": 0},
        {"nonce_key": b"k" * 15},
    ],
)
@requirement("auth-ext.dpop-asymmetric-only", revisions=EVERY_REVISION)
def test_weak_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        DpopValidation(**settings)


@pytest.mark.parametrize(
    ("resource", "root", "path", "url"),
    [
        ("https://h/team/mcp", "/team", "/team/mcp", "https://h/team/mcp"),
        ("https://h/mcp", "", "/mcp/", "https://h/mcp"),
        ("https://h", "", "/mcp", "https://h"),
        ("https://h/team/mcp", "", "/sse", "https://h/team/sse"),
        ("https://h/other", "", "/sse", "https://h/other/sse"),
    ],
)
async def test_the_url_of_a_proof_is_that_of_the_outside(
    resource: str, root: str, path: str, url: str
) -> None:
    token = token_of(aud=resource, cnf={"jkt": KEY.thumbprint()})
    auth = protected_settings(resource=resource, dpop=DpopValidation())
    method = "GET" if path == "/sse" else "POST"
    async with asgi(Guarded().server, auth=auth, sse_path="/sse") as http:
        http.scope = {"root_path": root}
        http.fields["authorization"] = f"DPoP {token}"
        for place, status in (("http://127.0.0.1:8000/mcp", 401), (url, 200)):
            proof = proof_of(KEY, token, method=method, url=place)
            message = HELLO if method == "POST" else None
            async with http.stream(method, message, path, fields={"dpop": proof}) as stream:
                assert stream.status == status
