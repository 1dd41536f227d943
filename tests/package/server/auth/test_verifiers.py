"""Tokens that an operator writes down: who is let in, and what the others learn."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest
from syrupy.assertion import SnapshotAssertion

from kit.asgi_client import asgi
from kit.faults import refusals
from kit.guarded import (
    PRM,
    WHOAMI,
    WRITE,
    Guarded,
    call_with,
    challenge_in,
    protected_settings,
    signed_in,
)
from kit.issuer import bearer
from kit.live import open_and_close
from kit.wire import SESSIONS, request, streamable
from mcpgen_runtime import (
    AnyOf,
    DpopValidation,
    HttpStatusError,
    JwtVerifier,
    Principal,
    Protected,
    Server,
    ServerHttpSettings,
    StaticTokens,
    connect,
)

TOKENS = StaticTokens({"alice-1": "alice", "bob-1": Principal("bob", scopes=["files:write"])})


@streamable
async def test_a_static_token_stands_for_its_principal(revision: str) -> None:
    async with signed_in(Guarded().server, revision, "alice-1", TOKENS) as http:
        assert (await http.ask(revision, "tools/call", WHOAMI)).text == "alice"
        refused = await http.ask(revision, "tools/call", WRITE)
        assert refused.status == 403
        assert challenge_in(refused).parameters["scope"] == "files:write"
        assert "resource_metadata" not in challenge_in(refused).parameters
        assert (await http.get(f"{PRM}/mcp")).status == 404
    async with signed_in(Guarded().server, revision, "bob-1", TOKENS) as http:
        assert (await http.ask(revision, "tools/call", WRITE)).text == "bob wrote a.txt"


@pytest.mark.parametrize("token", [None, "alice-2", "alice-11", "alice", "", "\xe4"])
@streamable
async def test_other_tokens_get_a_plain_bearer_challenge(token: str | None, revision: str) -> None:
    guarded = Guarded()
    async with asgi(guarded.server, auth=TOKENS) as http:
        reply = await call_with(http, revision, None if token is None else f"Bearer {token}")
    if token is None:
        assert (reply.status, challenge_in(reply).parameters) == (401, {"realm": "mcp"})
    else:
        assert reply.status in (400, 401)
        assert "resource_metadata" not in challenge_in(reply).parameters
        assert challenge_in(reply).parameters["error"] in ("invalid_token", "invalid_request")
    assert guarded.calls == []


@streamable
async def test_a_coroutine_function_alone_verifies_tokens_too(revision: str) -> None:
    async def verify(token: str) -> Principal | None:
        return Principal("build") if token == "key-1" else None

    async with signed_in(Guarded().server, revision, "key-1", verify) as http:
        assert (await http.ask(revision, "tools/call", WHOAMI)).text == "build"


@streamable
async def test_protected_without_issuers_requires_scopes(revision: str) -> None:
    auth = Protected(verifier=TOKENS, scopes=["files:write"])
    async with asgi(Guarded().server, auth=auth) as http:
        reply = await call_with(http, revision, "Bearer alice-1")
        assert reply.status == 403
        assert challenge_in(reply).parameters["scope"] == "files:write"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@streamable
async def test_one_line_on_both_sides_opens_a_session(revision: str) -> None:
    server = Guarded(drain=0.1).server
    async with anyio.create_task_group() as tasks:
        url = await tasks.start(partial(server.run_async, http="127.0.0.1:0", auth=TOKENS))
        async with connect(url, auth="alice-1", revision=revision) as client:
            assert (await client.call_tool("whoami", {})).content[0].text == "alice"
        with pytest.raises(HttpStatusError, match="401") as refused:
            await open_and_close(connect(url, auth="alice-2", revision=revision))
        assert "the credentials" in str(refused.value)
        assert "alice-2" not in str(refused.value)
        with pytest.raises(HttpStatusError, match=r"expected an access token.*auth='\.\.\.' sends"):
            await open_and_close(connect(url, revision=revision))
        tasks.cancel_scope.cancel()


NOBODY: list[Any] = [
    *({}, {"": "alice"}, {"a b": "alice"}, {"Bearer abc": "alice"}, {"=": "a"}, "abc"),
    *({"abc": owner} for owner in ("", Principal(""), None, {"client_id": "x"})),
]


def test_tokens_that_nobody_could_send_are_refused(snapshot: SnapshotAssertion) -> None:
    errors = refusals(StaticTokens, NOBODY)
    assert errors == snapshot
    assert "abc" not in "".join(errors)
    for shown in (TOKENS, ServerHttpSettings(auth=TOKENS), Protected(verifier=TOKENS)):
        assert "alice-1" not in repr(shown)


@pytest.mark.parametrize(
    "auth", [lambda token: None, "s3cret", {"t": "alice"}, Protected, JwtVerifier(), True]
)
def test_auth_of_another_kind_names_what_it_takes(auth: Any) -> None:
    server = Server("guarded")
    for make in (lambda: server.asgi(auth=auth), lambda: server.run(http="x:1", auth=auth)):
        with pytest.raises(
            TypeError, match=r"auth: expected StaticTokens\(\{token: subject\}\)"
        ) as e:
            make()
        for name in ("Protected(", "coroutine function"):
            assert name in str(e.value)
        assert "s3cret" not in str(e.value)


OF_ISSUERS: list[dict[str, Any]] = [
    *({"verifier": JwtVerifier()}, {"verifier": AnyOf(TOKENS)}),
    *(
        {"verifier": TOKENS, **more}
        for more in (
            *({"issuers": ["https://idp"]}, {"metadata": {"a": 1}}),
            *({"metadata_url": "https://h/a"}, {"scopes_supported": ["a"]}, {"audiences": ["a"]}),
            *({"resource": "http://h/mcp"}, {"dpop": DpopValidation()}),
        )
    ),
]


def test_without_issuers_settings_of_theirs_are_refused(snapshot: SnapshotAssertion) -> None:
    assert refusals(lambda settings: Protected(**settings), OF_ISSUERS) == snapshot
    with pytest.raises(ValueError, match="AnyOf: expected at least one verifier"):
        AnyOf()


async def test_the_first_verifier_that_knows_a_token_decides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    both = AnyOf(StaticTokens({"a": "first"}), StaticTokens({"a": "second", "b": "other"}))
    verify = both.bind(protected_settings().trusted)
    principals = [await verify(token) for token in "abc"]
    assert [each and each.subject for each in principals] == ["first", "other", None]
    async with asgi(Guarded().server, auth=protected_settings(verifier=both)) as http:
        message = request(SESSIONS[-1], "tools/call", WHOAMI)
        assert (await http.post(message, Authorization=bearer("c"))).status == 401
    assert "a token was refused: no verifier knows the token" in caplog.text
