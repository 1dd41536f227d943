"""Verifiers without a server: reasons of refusals, bounds at their value, requests."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from joserfc.jwk import OctKey

from kit.guarded import protected_settings
from kit.http_server import Asked, HttpServer, Reply
from kit.issuer import (
    IDP,
    KEY,
    RESOURCE,
    LoopbackIssuer,
    claims_of,
    jwk_set,
    new_key,
    proof_key,
    proof_of,
    serving_issuer,
    sign_token,
    token_of,
)
from kit.limits import SetLimit
from mcpgen_runtime import DpopValidation, Introspection, InvalidTokenError, JwtVerifier, Principal
from mcpgen_runtime.auth.address_rules import AddressCheck
from mcpgen_runtime.errors import ConnectFailedError, McpError, TransportError
from mcpgen_runtime.framing.http_hosts import AddressRules
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.request_context import PRINCIPAL
from mcpgen_runtime.server.auth import introspection, issuer_fetch
from mcpgen_runtime.server.auth.authenticator import Authenticator, FailureLog
from mcpgen_runtime.server.auth.dpop_validation import ProofValidator
from mcpgen_runtime.server.auth.issuer_fetch import IssuerHttp
from mcpgen_runtime.server.auth.jws_validation import (
    is_signed_by,
    jose_errors,
    parse_token,
    public_key,
    registry_of,
)
from mcpgen_runtime.server.auth.verifiers import PrincipalCache, TrustedIssuers, principal_of

pytestmark = [pytest.mark.anyio, pytest.mark.on_asyncio]


NOW = int(time.time())
CLIENT = proof_key()
TOKEN = token_of()
JWT = {"typ": "JWT"}
TRUSTED = TrustedIssuers(frozenset({"https://idp.example"}), frozenset({RESOURCE}))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time at which the tokens of this module were made."""
    monkeypatch.setattr(time, "time", lambda: float(NOW))


async def reason_of(token: str, **settings: Any) -> str | None:
    """The reason of a verifier to refuse a token; its subject if it does not."""
    how: dict[str, Any] = {"keys": jwk_set(KEY), **settings}
    verifier = JwtVerifier(**how)
    try:
        principal = await verifier.bind(protected_settings().trusted)(token)
    except InvalidTokenError as error:
        return str(error)
    return None if principal is None else principal.subject


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (TOKEN, "alice"),
        ("a.b", None),
        (token_of(iss="https://other.example"), None),
        ("a.b.c", None),
        (token_of(header={"crit": ["x"], "x": 1}), "crit: expected no critical header parameters"),
        (token_of(key=new_key("one")), "the signature matches no key of the issuer"),
        (token_of(key=new_key("two")), "the signature matches no key of the issuer"),
        (token_of(header={"typ": "dpop+jwt"}), "typ: expected an access token"),
        (token_of(header=JWT, nonce="n"), "expected an access token, got an ID token"),
        (token_of(header=JWT, at_hash="n"), "expected an access token, got an ID token"),
        (token_of(header=JWT, c_hash="n"), "expected an access token, got an ID token"),
        (token_of(header=JWT, typ="ID"), "expected an access token, got an ID token"),
        (token_of(header=JWT, token_use="id"), "expected an access token, got an ID token"),
        (token_of(header=JWT, typ="Bearer", token_use="access"), "alice"),
        (token_of(nonce="n"), "alice"),
        (token_of(aud="https://other"), "aud: expected this server"),
        (token_of(exp=None), "exp: expected a time in the future"),
        (token_of(exp=NOW - 29), "alice"),
        (token_of(exp=NOW - 30), "exp: expected a time in the future"),
        (token_of(exp="1"), "exp: expected a time in seconds"),
        (token_of(nbf=NOW + 30), "alice"),
        (token_of(nbf=NOW + 31), "nbf: expected a time in the past"),
        (token_of(iat=NOW + 30), "alice"),
        (token_of(iat=NOW + 31), "iat: expected a time in the past"),
        (token_of(iat=None), "alice"),
        (token_of(sub=None, client_id=None), "sub: expected a subject"),
        (token_of(scope='"'), "scope: expected scopes"),
    ],
)
async def test_a_refused_token_has_its_reason(token: str, reason: str | None) -> None:
    assert await reason_of(token) == reason


async def test_a_token_by_another_algorithm_says_which_are_allowed() -> None:
    allowed = ["ES384", "RS256"]
    assert await reason_of(TOKEN, algorithms=allowed) == "alg: expected one of ES384, RS256"


async def test_a_verified_token_is_not_checked_anew_for_300_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verifier = JwtVerifier(keys=jwk_set(KEY))
    verify = verifier.bind(protected_settings().trusted)
    token = token_of(header=JWT)
    assert await verify(token)
    verifier.typed = True
    monkeypatch.setattr(time, "time", lambda: NOW + 299.0)
    assert await verify(token)
    monkeypatch.setattr(time, "time", lambda: NOW + 300.0)
    with pytest.raises(InvalidTokenError, match="typ: expected"):
        await verify(token)


async def test_fixed_keys_are_those_of_the_issuer_and_may_have_no_id() -> None:
    nameless = {name: each for name, each in jwk_set(KEY)["keys"][0].items() if name != "kid"}
    assert await reason_of(TOKEN, keys={"keys": [nameless]}) == "alice"
    assert await reason_of(TOKEN, keys={IDP: jwk_set(KEY)}) == "alice"
    other = {"https://other.example": jwk_set(KEY)}
    assert await reason_of(TOKEN, keys=other) == "the signature matches no key of the issuer"


@pytest.mark.parametrize(
    ("members", "allowed", "is_signed"),
    [
        ({}, ["ES256"], True),
        ({"alg": "ES256"}, ["ES384", "ES256"], True),
        ({"use": "enc"}, ["ES256"], False),
        ({"use": "other"}, ["ES256"], False),
        ({"key_ops": ["verify"], "use": "sig"}, ["ES256"], True),
        ({"key_ops": ["encrypt"]}, ["ES256"], False),
        ({"alg": "ES384"}, ["ES256"], False),
        ({}, ["ES384"], False),
    ],
)
def test_a_key_verifies_what_it_is_for(
    members: dict[str, str], allowed: list[str], is_signed: bool
) -> None:
    token, key = parse_token(TOKEN), public_key({**KEY.as_dict(private=False), **members})
    assert token is not None
    assert (key is not None and is_signed_by(token, key, allowed)) is is_signed


def test_a_public_key_has_no_secret_members() -> None:
    public = KEY.as_dict(private=False)
    key = public_key(public)
    assert key is not None
    assert key.thumbprint() == KEY.thumbprint()
    secret = OctKey.generate_key(256).as_dict()
    for other in (KEY.as_dict(private=True), secret, {**public, "x": ""}, {"kty": "EC"}, [public]):
        assert public_key(other) is None


def test_an_algorithm_is_available_if_it_is_allowed() -> None:
    assert registry_of(("EdDSA",)).get_alg("EdDSA").name == "EdDSA"
    for allowed, other in (("ES256", "EdDSA"), ("EdDSA", "ES256"), ("ES256", "HS256")):
        with pytest.raises(jose_errors()):
            registry_of((allowed,)).get_alg(other)
    with pytest.raises(ValueError, match="algorithms: expected at least one"):
        registry_of(())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"jwks": "https://h/jwks", "keys": {"keys": []}}, "expected either jwks or keys"),
        ({"jwks": "http://h/jwks"}, "jwks: expected https"),
        ({"jwks": {"a": "https://h/jwks", "b": "http://h/jwks"}}, "jwks: expected https"),
        ({"algorithms": ["ES256", "HS256"]}, r"PS512, got \['HS256'\]"),
        ({"algorithms": []}, "PS512, got none"),
    ],
)
def test_settings_of_a_verifier_are_refused_with_the_reason(
    settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        JwtVerifier(**settings)


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
def test_a_principal_is_what_claims_say(claims: dict[str, Any], principal: Any) -> None:
    made = principal_of(claims, "https://idp", 5.0)
    assert (made.subject, made.client_id, made.scopes) == principal
    assert (made.issuer, made.expires, made.claims) == ("https://idp", 5.0, claims)


class Used:
    """A store of used ids, which keeps what it is told."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def use(self, digest: bytes, seconds: float) -> bool:
        """Store an id."""
        self.seconds.append(seconds)
        return True

    async def is_used(self, digest: bytes) -> bool:
        """Nothing asks."""
        raise NotImplementedError


async def proof_reason(proof: str | None, **settings: Any) -> str:
    """The reason to refuse a proof; for how long its id is stored if it is accepted."""
    used = Used()
    validator = ProofValidator(DpopValidation(**settings), used)
    try:
        await validator.check(proof, TOKEN, CLIENT.thumbprint(), "POST", RESOURCE)
    except McpError as error:
        assert used.seconds == []
        return str(error)
    return f"stored for {used.seconds[0]:g} s"


STORED = "stored for 600 s"
EARLIER = "iat: expected the current time"


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        (proof_of(CLIENT, TOKEN), STORED),
        (None, "DPoP: expected one signed proof"),
        ("a.b.c", "DPoP: expected one signed proof"),
        (proof_of(CLIENT, TOKEN, header={"typ": "jwt"}), "typ: expected dpop+jwt"),
        (
            proof_of(CLIENT, TOKEN, header={"crit": ["x"], "x": 1}),
            "crit: expected no critical header parameters",
        ),
        (proof_of(CLIENT, TOKEN, header={"jwk": {}}), "jwk: expected a public key"),
        (
            proof_of(proof_key(), TOKEN),
            "jwk: expected the key that the token is bound to",
        ),
        (
            proof_of(CLIENT, TOKEN, sign_with=proof_key()),
            "the signature does not match the key",
        ),
        (proof_of(CLIENT, TOKEN, method="GET"), "htm: expected POST"),
        (proof_of(CLIENT, TOKEN, htu=5), "htu: expected https://h/mcp"),
        (proof_of(CLIENT, TOKEN, url="https://h/"), "htu: expected https://h/mcp"),
        (proof_of(CLIENT, TOKEN, ath=5), "ath: expected the digest of the token"),
        (proof_of(CLIENT, "other"), "ath: expected the digest of the token"),
        (proof_of(CLIENT, TOKEN, iat=NOW - 300), STORED),
        (proof_of(CLIENT, TOKEN, iat=NOW - 301), EARLIER),
        (proof_of(CLIENT, TOKEN, iat=NOW + 300), STORED),
        (proof_of(CLIENT, TOKEN, iat=NOW + 301), EARLIER),
        (proof_of(CLIENT, TOKEN, jti="x" * 1024), STORED),
        (proof_of(CLIENT, TOKEN, jti="x" * 1025), "jti: expected an id"),
        (proof_of(CLIENT, TOKEN, jti="x"), STORED),
        (proof_of(CLIENT, TOKEN, jti=""), "jti: expected an id"),
        (proof_of(CLIENT, TOKEN, jti=5), "jti: expected an id"),
    ],
)
async def test_a_refused_proof_has_its_reason(proof: str | None, reason: str) -> None:
    assert await proof_reason(proof) == reason


async def test_a_proof_by_another_algorithm_says_which_are_allowed() -> None:
    reason = await proof_reason(proof_of(CLIENT, TOKEN), algorithms=("ES384", "RS256"))
    assert reason == "alg: expected one of ES384, RS256"


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [(300, STORED), (-300, STORED), (301, "nonce"), (-301, "nonce")],
)
async def test_a_nonce_is_fresh_for_so_many_seconds(
    seconds: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonce = ProofValidator(DpopValidation(nonce=True, nonce_key=b"k" * 16)).nonce()
    monkeypatch.setattr(time, "time", lambda: float(NOW + seconds))
    proof = proof_of(CLIENT, TOKEN, nonce=nonce, iat=NOW + seconds)
    assert (await proof_reason(proof, nonce=True, nonce_key=b"k" * 16)).startswith(reason)


def test_proofs_may_be_valid_for_less_than_a_second() -> None:
    assert DpopValidation(seconds=0.5).seconds == 0.5
    with pytest.raises(ValueError, match="seconds: expected more than 0, got 0"):
        DpopValidation(seconds=0)


def test_keys_of_nonces_have_16_bytes_at_least() -> None:
    assert len(DpopValidation().nonce_key or b"") == 32
    with pytest.raises(ValueError, match="nonce_key: expected at least 16 bytes, got 15"):
        DpopValidation(nonce_key=b"k" * 15)
    with pytest.raises(ValueError, match="seconds: expected more than 0, got 0"):
        DpopValidation(seconds=0)
    assert repr(DpopValidation(nonce=True)) == "DpopValidation(required=False, nonce=True)"


def test_a_header_of_a_token_has_8192_characters_at_most() -> None:
    def token(characters: int) -> str:
        filler = characters * 3 // 4 - len('{"alg":"ES256","x":""}')
        return sign_token({"alg": "ES256", "x": "x" * filler}, claims_of(), KEY)

    longest = token(8192)
    assert len(longest.partition(".")[0]) == 8192
    assert parse_token(longest) is not None
    longer = token(8194)
    assert len(longer.partition(".")[0]) == 8194
    assert parse_token(longer) is None


def test_a_failure_is_new_once_in_10_seconds_for_each_kind() -> None:
    log = FailureLog()
    times = [("a", 0.0), ("a", 9.5), ("b", 9.5), ("a", 10.0), ("a", 19.5), ("b", 19.5)]
    assert [log.is_new(kind, now) for kind, now in times] == [True, False, True, True, False, True]


def test_a_cached_principal_ends_with_its_time_or_its_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = PrincipalCache(60)
    cache.add("long", Principal("a", expires=NOW + 100.0))
    cache.add("short", Principal("b", expires=NOW + 30.0))
    cache.add("own", Principal("c"), 10)
    cache.add("unknown", None)
    alive = {}
    for after in (9, 10, 29, 30, 59, 60):
        monkeypatch.setattr(time, "time", lambda after=after: float(NOW + after))
        names = [name for name in ("long", "short", "own", "unknown") if cache.get(name)]
        alive[after] = (names, len(cache))
    assert alive == {
        9: (["long", "short", "own", "unknown"], 4),
        10: (["long", "short", "unknown"], 3),
        29: (["long", "short", "unknown"], 3),
        30: (["long", "unknown"], 2),
        59: (["long", "unknown"], 2),
        60: ([], 0),
    }


@pytest.mark.parametrize(("left", "seconds"), [(None, float("inf")), (50.0, 50), (-50.0, 0)])
async def test_a_request_may_last_as_long_as_its_token(left: float | None, seconds: float) -> None:
    expires = None if left is None else NOW + left
    authenticator = Authenticator(protected_settings(), REVISIONS, lambda message: (), "/mcp")
    PRINCIPAL.set(Principal("a", expires=expires))
    now = anyio.current_time()
    assert authenticator.deadline() == pytest.approx(now + seconds, abs=0.9)


@pytest.fixture
def issuer() -> Iterator[LoopbackIssuer]:
    with serving_issuer() as serving:
        yield serving


@pytest.mark.parametrize(
    ("raw", "limit", "fetched"),
    [
        (b'{"a": "b"}', 10, {"a": "b"}),
        (b'{"a": "bc"}', 10, "expected at most 10 bytes"),
        (b"[1]", 10, "expected a JSON object"),
        (b"x", 10, "expected a JSON object"),
        (None, 1000, None),
    ],
)
async def test_a_document_of_an_issuer_is_fetched_or_refused(
    issuer: LoopbackIssuer,
    raw: bytes | None,
    limit: int,
    fetched: Any,
    set_limit: SetLimit,
) -> None:
    set_limit("pkg.server.auth.issuer_fetch.DOCUMENT_LIMIT", limit)
    issuer.raw = raw
    http = IssuerHttp([issuer.url])
    url = f"{issuer.url}/jwks" if raw is not None else f"{issuer.url}/nowhere"
    if isinstance(fetched, str):
        with pytest.raises(TransportError, match=fetched):
            await http.get(url)
    else:
        assert await http.get(url) == fetched
    assert len(issuer.requests) == 1


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://other.example", "jwks_uri": "{}/jwks"},
        {"issuer": "{}"},
        {"issuer": "{}", "jwks_uri": 5},
    ],
)
async def test_metadata_that_names_no_keys_of_its_issuer_is_refused(
    issuer: LoopbackIssuer, document: dict[str, Any]
) -> None:
    text = json.dumps(document).replace("{}", issuer.url)
    issuer.raw = text.encode()
    verify = JwtVerifier().bind(TrustedIssuers(frozenset({issuer.url}), frozenset({RESOURCE})))
    error = "the metadata of the issuer: expected its issuer and jwks_uri"
    for reason in (error, "the last fetch of the keys of the issuer failed"):
        with pytest.raises(TransportError) as caught:
            await verify(token_of(iss=issuer.url))
        assert str(caught.value) == reason
    assert len(issuer.requests) == 2


@pytest.mark.parametrize("raw", [b"{}", b'{"keys": {}}', None])
async def test_keys_of_an_issuer_are_an_array(issuer: LoopbackIssuer, raw: bytes | None) -> None:
    issuer.raw, issuer.failing = raw, raw is None
    trusted = TrustedIssuers(frozenset({issuer.url}), frozenset({RESOURCE}))
    verify = JwtVerifier(jwks={issuer.url: f"{issuer.url}/jwks"}).bind(trusted)
    with pytest.raises(TransportError, match="the JWK set of the issuer: expected status 200"):
        await verify(token_of(iss=issuer.url))
    assert issuer.requests == ["/jwks"]


async def test_a_form_is_posted_with_its_credentials(issuer: LoopbackIssuer) -> None:
    http = IssuerHttp([issuer.url])
    reply = await http.post(issuer.url, {"Authorization": "Basic x"}, b"token=a")
    assert reply == {"active": False}
    assert issuer.forms == [("Basic x", {"token": ["a"]})]


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of every name, to be set by the test."""
    addresses: list[str] = []
    known = socket.getaddrinfo

    def resolve(host: Any, port: Any, *arguments: Any, **more: Any) -> Any:
        lists = [known(each, port, *arguments, **more) for each in addresses]
        return [entry for entries in lists for entry in entries]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return addresses


async def test_a_name_that_leads_to_a_private_address_is_not_reached(
    resolved: list[str],
) -> None:
    resolved.append("127.0.0.1")
    with pytest.raises(ConnectFailedError, match="expected a public address"):
        await IssuerHttp([]).get("https://keys.example/jwks")


async def test_a_checked_address_is_the_one_that_is_reached(
    issuer: LoopbackIssuer, resolved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    local = AddressCheck("http://localhost", AddressRules())
    monkeypatch.setattr(issuer_fetch, "_PUBLIC_ONLY", local)  # for which loopback is allowed
    resolved.append("127.0.0.1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    issuer.raw = b'{"a": "b"}'
    port = issuer.url.rpartition(":")[2]
    assert await IssuerHttp([]).get(f"http://localhost:{port}/jwks") == {"a": "b"}
    assert await IssuerHttp([issuer.url]).get(f"{issuer.url}/jwks") == {"a": "b"}
    resolved.append("10.0.0.1")
    with pytest.raises(ConnectFailedError, match="expected a public address"):
        await IssuerHttp([]).get(f"http://localhost:{port}/jwks")


async def test_a_redirect_of_an_issuer_is_not_followed() -> None:
    async def redirect(asked: Asked, reply: Reply) -> None:
        await reply.whole(302, Location="/elsewhere")

    async with HttpServer(redirect) as server:
        assert await IssuerHttp([server.url]).get(server.url) is None
        assert len(server.asked) == 1


async def test_an_endpoint_that_is_not_reached_is_asked_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr(introspection, "monotonic", lambda: clock[0])
    verify = Introspection("http://127.0.0.1:1/introspect", "i", "s").bind(TRUSTED)
    for pause in (1, 2, 4, 8, 10, 10):
        with pytest.raises(ConnectFailedError):
            await verify("token")
        clock[0] += pause - 0.5
        with pytest.raises(TransportError, match="the introspection endpoint did not respond"):
            await verify("token")
        clock[0] += 0.5


async def test_an_endpoint_that_responds_again_is_asked_as_before(
    issuer: LoopbackIssuer, resolved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(introspection, "monotonic", lambda: clock[0])
    endpoint = issuer.url.replace("127.0.0.1", "localhost")
    verify = Introspection(endpoint, "i", "s", seconds=0).bind(TRUSTED)
    for _ in range(3):
        resolved[:] = ["127.0.0.2"]  # where nobody listens
        with pytest.raises(ConnectFailedError):
            await verify("token")
        clock[0] += 1
        resolved[:] = ["127.0.0.1"]
        assert await verify("token") is None


@pytest.mark.parametrize(
    ("members", "failing", "error"),
    [
        ({"exp": NOW}, False, "exp: expected a time in the future"),
        ({"exp": NOW + 1}, False, None),
        ({"exp": "soon"}, False, "exp: expected a time in seconds"),
        ({"aud": "https://other"}, False, "aud: expected this server"),
        ({"iss": 7}, False, "iss: expected an issuer of this server"),
        ({}, True, "the introspection endpoint: expected status 200"),
    ],
)
async def test_an_introspected_token_is_refused_with_its_reason(
    issuer: LoopbackIssuer, members: dict[str, Any], failing: bool, error: str | None
) -> None:
    issuer.active["token"] = {"active": True, "sub": "ann", "aud": RESOURCE, **members}
    issuer.failing = failing
    verify = Introspection(f"{issuer.url}/introspect", "i", "s").bind(TRUSTED)
    if error is None:
        principal = await verify("token")
        assert principal is not None
        assert (principal.subject, principal.expires) == ("ann", NOW + 1)
        return
    with pytest.raises(McpError) as caught:
        await verify("token")
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("url", "trusted", "reason"),
    [
        ("http://127.0.0.1:1/x", True, "Error"),
        ("https://localhost:1/x", False, "expected (a public address|an https URL of a public)"),
        ("https://127.0.0.1:1/x", False, "expected an https URL of a public host"),
        ("http://idp.example/x", True, "expected an https URL of a public host"),
    ],
)
async def test_an_address_that_is_not_reached_is_an_error(
    url: str, trusted: bool, reason: str
) -> None:
    with pytest.raises(ConnectFailedError, match=reason):
        await IssuerHttp([url] if trusted else []).get(url)
