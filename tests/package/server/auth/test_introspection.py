"""Opaque tokens: the authorization server is asked about them."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kit.asgi_client import asgi
from kit.guarded import Guarded, challenge_in, protected_settings
from kit.issuer import KEY, RESOURCE, LoopbackIssuer, bearer, jwk_set, serving_issuer, token_of
from kit.limits import SetLimit
from kit.wire import SESSIONS, initialize
from mcpgen_runtime import AnyOf, Introspection, JwtVerifier
from package.tables import table
from requirements import EVERY_REVISION, requirement

HELLO = initialize(SESSIONS[-1])
REFUSED: dict[str, dict[str, Any]] = table("introspection_answers")
"""Members of an answer, and the reason that is logged."""


@pytest.fixture
def issuer() -> Iterator[LoopbackIssuer]:
    """An issuer with one active token."""
    with serving_issuer() as serving:
        serving.active["opaque"] = answer()
        yield serving


def answer(**more: Any) -> dict[str, Any]:
    """The introspection response for an active token; `None` leaves a member out."""
    members = {
        "active": True,
        "sub": "alice",
        "client_id": "agent",
        "scope": "mcp:read",
        "aud": RESOURCE,
        "exp": int(time.time()) + 600,
        **more,
    }
    return {name: value for name, value in members.items() if value is not None}


def settings(issuer: LoopbackIssuer, **more: Any) -> Any:
    """Settings of a server that asks the issuer."""
    endpoint = f"{issuer.url}/introspect"
    verifier = Introspection(endpoint, "mcp server", "s:ecret", **more)
    return protected_settings(issuers=[issuer.url], verifier=verifier)


async def statuses(issuer: LoopbackIssuer, *tokens: str, **more: Any) -> list[int]:
    """The status of a request with each token."""
    async with asgi(Guarded().server, auth=settings(issuer, **more)) as http:
        return [(await http.post(HELLO, Authorization=bearer(t))).status for t in tokens]


@requirement("auth-resource-server.tokens-validated", revisions=EVERY_REVISION)
async def test_the_endpoint_gets_one_request_with_server_credentials(
    issuer: LoopbackIssuer,
) -> None:
    assert await statuses(issuer, "opaque", "opaque", "other", "other") == [200, 200, 401, 401]
    assert [form["token"] for _, form in issuer.forms] == [["opaque"], ["other"]]
    pair = base64.b64encode(b"mcp%20server:s%3Aecret").decode()
    assert {credentials for credentials, _ in issuer.forms} == {f"Basic {pair}"}
    assert await statuses(issuer, "opaque", "opaque", seconds=0) == [200, 200]
    assert len(issuer.forms) == 4


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
@requirement("auth-resource-server.audience-missing-rejected", revisions=EVERY_REVISION)
async def test_an_answer_that_does_not_fit_is_refused(
    issuer: LoopbackIssuer,
    case: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    issuer.active["opaque"] = answer(**case["members"])
    assert await statuses(issuer, "opaque") == [401]
    assert f"a token was refused: {case['reason']}" in caplog.text


@requirement("auth-resource-server.audience-missing-rejected", revisions=EVERY_REVISION)
async def test_the_endpoint_may_vouch_for_the_audience(issuer: LoopbackIssuer) -> None:
    issuer.active |= {"none": answer(aud=None), "other": answer(aud="https://other")}
    assert await statuses(issuer, "none", "other", any_audience=True) == [200, 401]


@requirement("auth-resource-server.token-cache-eviction", revisions=EVERY_REVISION)
async def test_a_kept_answer_ends_with_its_token_and_with_its_time(
    issuer: LoopbackIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = float(int(time.time()))
    issuer.active |= {"short": answer(exp=int(now) + 30), "long": answer()}
    async with asgi(Guarded().server, auth=settings(issuer)) as http:
        for after, status in ((0, 200), (30, 401)):
            monkeypatch.setattr(time, "time", lambda after=after: now + after)
            assert (await http.post(HELLO, Authorization=bearer("short"))).status == status
        assert (await http.post(HELLO, Authorization=bearer("long"))).status == 200
        del issuer.active["long"]  # revoked
        assert (await http.post(HELLO, Authorization=bearer("long"))).status == 200
        monkeypatch.setattr(time, "time", lambda: now + 100)
        assert (await http.post(HELLO, Authorization=bearer("long"))).status == 401


async def test_of_too_many_tokens_the_least_used_is_asked_for_again(
    issuer: LoopbackIssuer, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.auth.verifiers.STORED_TOKENS", 2)
    assert await statuses(issuer, *"abacab") == [401] * 6
    assert [form["token"] for _, form in issuer.forms] == [["a"], ["b"], ["c"], ["b"]]


async def test_an_inactive_token_is_asked_for_again_after_5_seconds(
    issuer: LoopbackIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    async with asgi(Guarded().server, auth=settings(issuer)) as http:
        for after, status in ((0, 401), (4.9, 401), (5.1, 200)):
            monkeypatch.setattr(time, "time", lambda after=after: now + after)
            assert (await http.post(HELLO, Authorization=bearer("new"))).status == status
            issuer.active["new"] = answer()


async def test_of_several_issuers_an_answer_names_its_own(issuer: LoopbackIssuer) -> None:
    issuer.active |= {"named": answer(iss=issuer.url), "nameless": answer()}
    verifier = Introspection(f"{issuer.url}/introspect", "id", "secret")
    auth = protected_settings(issuers=[issuer.url, "https://other.example"], verifier=verifier)
    async with asgi(Guarded().server, auth=auth) as http:
        for token, status in (("named", 200), ("nameless", 401)):
            assert (await http.post(HELLO, Authorization=bearer(token))).status == status


async def test_an_endpoint_that_fails_verifies_no_token(
    issuer: LoopbackIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.failing = True
    assert await statuses(issuer, "opaque") == [503]
    assert "the introspection endpoint: expected status 200" in caplog.text


async def test_jwts_are_verified_first_and_other_tokens_introspected(
    issuer: LoopbackIssuer,
) -> None:
    ask = Introspection(f"{issuer.url}/introspect", "id", "secret")
    verifier = AnyOf(JwtVerifier(keys=jwk_set(KEY)), ask)
    auth = protected_settings(issuers=[issuer.url], verifier=verifier)
    async with asgi(Guarded().server, auth=auth) as http:
        jwt = await http.post(HELLO, Authorization=bearer(token_of(iss=issuer.url)))
        assert (jwt.status, issuer.forms) == (200, [])
        forged = await http.post(HELLO, Authorization=bearer(token_of(iss=issuer.url, aud="x")))
        assert (forged.status, issuer.forms) == (401, [])
        assert (await http.post(HELLO, Authorization=bearer("opaque"))).status == 200
        unknown = await http.post(HELLO, Authorization=bearer("what"))
        assert challenge_in(unknown).parameters["error"] == "invalid_token"


def test_the_secret_is_not_shown() -> None:
    assert "secret" not in repr(Introspection("https://idp/introspect", "id", "secret"))


@pytest.mark.parametrize(
    ("endpoint", "seconds"), [("http://idp/introspect", 1), ("https://idp/introspect", -1)]
)
def test_weak_settings_are_refused(endpoint: str, seconds: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        Introspection(endpoint, "id", "secret", seconds=seconds)
