"""How often a user is asked, whatever a server refuses and whoever calls the redirect URI."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.auth_answers import REDIRECT_URI
from kit.http_server import Asked, Reply
from kit.rules import revisions_holding
from kit.wire import SESSIONS
from mcpgen_runtime import (
    AuthorizationError,
    Device,
    HttpStatusError,
    MemoryStore,
    OAuth,
    Redirect,
)
from mcpgen_runtime.auth.identifiers import canonical_resource
from mcpgen_runtime.auth.token_endpoint import grant_key
from mcpgen_runtime.client.auth.interactions import PROMPT_SECONDS, PROMPTS, PromptLimit
from package.client.auth.protected import (
    Protected,
    agreeing_user,
    client_of,
    run_issuer,
    run_protected_server,
    serve_script,
)
from package.client.auth.test_device_flow import DeviceIssuer

pytestmark = pytest.mark.anyio

every_revision = pytest.mark.parametrize(
    "revision", revisions_holding("auth-flow.401-at-any-request")
)
with_sessions = pytest.mark.parametrize(
    "revision",
    [each for each in revisions_holding("auth-flow.401-at-any-request") if each in SESSIONS],
)
with_step_up = pytest.mark.parametrize("revision", revisions_holding("auth-scope.step-up-parse"))


class Clock:
    """A clock that is set."""

    time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_a_user_is_asked_so_often_within_a_time_for_each_server() -> None:
    clock = Clock()
    limit = PromptLimit(clock)
    for _ in range(PROMPTS):
        limit.add("https://a.example")
        clock.time += 1
    limit.add("https://b.example")
    with pytest.raises(AuthorizationError, match=f"next authorization in {300 - PROMPTS} s"):
        limit.add("https://a.example")
    clock.time += PROMPT_SECONDS - PROMPTS
    limit.add("https://a.example")  # the first one is past
    with pytest.raises(AuthorizationError, match="next authorization in 1 s"):
        limit.check("https://a.example")


class Once(Protected):
    """A server that takes each token for one call, and then no more."""

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        await super().__call__(asked, reply)
        if asked.target == "/mcp" and asked.what == "tools/call":
            self.issuer.valid.clear()
            self.issuer.refresh_tokens.clear()


async def refused_calls(client: Any, *names: str) -> list[str]:
    """The errors of calls of tools."""
    errors = []
    for name in names:
        try:
            await client.call_tool(name)
        except (AuthorizationError, HttpStatusError) as error:
            errors.append(str(error))
    return errors


@every_revision
async def test_a_server_that_forgets_tokens_opens_so_many_windows(revision: str) -> None:
    async with run_issuer() as issuer, serve_script(script := Once(issuer, revision)):
        auth = agreeing_user(issuer)
        async with client_of(script, auth) as client:
            errors = await refused_calls(client, *["echo"] * 10)
        assert len(errors) == 10 - PROMPTS
        assert all(f"{PROMPTS} times" in error for error in errors)
        with pytest.raises(AuthorizationError, match=f"{PROMPTS} times"):  # another connection
            async with client_of(script, auth):
                pass
        assert len(issuer.visits) == PROMPTS
        if not script.own_issuer:
            async with run_issuer() as script.issuer:  # nor are clients registered elsewhere
                with pytest.raises(AuthorizationError, match=f"{PROMPTS} times"):
                    async with client_of(script, auth):
                        pass
            assert script.issuer.registered == {}


async def test_requests_that_wait_for_a_user_share_the_refusal() -> None:
    async with run_protected_server() as (script, _):

        async def visit(url: str) -> str:
            agreed = await script.issuer.visit(url)
            if len(script.issuer.visits) == 1:
                return agreed
            while len(refusals) < 10:
                await anyio.lowlevel.checkpoint()
            return agreed.replace("code=", "error=access_denied&x=")

        refusals: list[None] = []

        async def refuse(asked: Asked, reply: Reply) -> None:
            refusals.append(None)
            await reply.whole(401, WWW_Authenticate="Bearer")

        auth = OAuth("Agent", redirect=Redirect(REDIRECT_URI, visit))
        async with client_of(script, auth) as client:
            script.issuer.refresh_tokens.clear()
            errors: list[str] = []

            async def call() -> None:
                errors.extend(await refused_calls(client, "echo"))

            await client.list_tools()
            script.issuer.valid.clear()
            script.on["tools/call"] = refuse
            script.open = lambda asked: asked.what == "tools/call"
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(call)
            assert len(errors) == 10
            assert all("access_denied" in error for error in errors)
            visits = len(script.issuer.visits)
            assert 2 <= visits <= 4  # a call whose refusal arrived later asks again
            await refused_calls(client, "echo")
            assert len(script.issuer.visits) == visits + 1


async def test_codes_for_other_devices_count_too() -> None:
    shown: list[Any] = []
    async with run_protected_server(issuer=DeviceIssuer()) as (script, _):
        auth = OAuth("Agent", interaction=Device(shown.append), store=(store := MemoryStore()))
        key = grant_key(canonical_resource(script.url))
        for _ in range(PROMPTS - 1):
            auth.settings.prompts.add(key)
        async with client_of(script, auth):
            pass
        await store.save(key, None)
        with pytest.raises(AuthorizationError, match=f"{PROMPTS} times"):
            async with client_of(script, auth):
                pass
        assert len(shown) == 1


@with_sessions
async def test_nobody_is_asked_for_the_end_of_a_session(revision: str) -> None:
    async with run_protected_server(revision, session="s") as (script, server):
        async with client_of(script, agreeing_user(script.issuer)) as client:
            await client.list_tools()
            script.issuer.valid.clear()
            script.issuer.refresh_tokens.clear()
        assert "DELETE" in [asked.verb for asked in server.asked]
        assert len(script.issuer.visits) == 1
