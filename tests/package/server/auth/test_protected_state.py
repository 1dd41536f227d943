"""State bound to a principal: HTTP+SSE, streams, request states, lists, and other transports."""

from __future__ import annotations

import logging
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kit.asgi_client import SESSION, asgi
from kit.guarded import WHOAMI, WRITE, Guarded, challenge_in, protected_settings, signed_in
from kit.issuer import bearer, token_of
from kit.live import server_with
from kit.stdio_process import PATHS, script
from kit.wire import (
    INITIALIZED,
    SESSIONS,
    encode_message,
    initialize,
    legacy,
    modern,
    request,
    sessions,
    streamable,
)
from mcpgen_runtime import CacheHint, Context, JwtVerifier, Principal, Server
from package.tables import table
from requirements import EVERY_REVISION, requirement


async def verify_expiring(token: str) -> Principal:
    """A verifier whose principals expire soon; the token is their name."""
    name, _, seconds = token.partition("-")
    expires = time.time() + float(seconds or 600)
    return Principal(name, scopes={"mcp:read"}, expires=expires)


@requirement(
    "auth-security.session-user-bound",
    "auth-security.session-not-authentication",
    "transport-security.session-not-authentication",
    "transport-security.verify-every-request",
)
@legacy
async def test_posts_of_http_sse_belong_to_the_principal_of_the_stream(revision: str) -> None:
    guarded = Guarded()
    auth = protected_settings()
    async with asgi(guarded.server, auth=auth, sse_path="/sse") as http:
        assert (await http.get("/sse")).status == 401
        http.fields["authorization"] = bearer(token_of("alice"))
        async with http.stream("GET", path="/sse") as stream:
            endpoint = (await stream.event()).data.decode()
            assert (await http.post(initialize(revision), endpoint)).status == 202
            assert (await stream.message())["result"]["protocolVersion"] == revision
            await http.post(INITIALIZED, endpoint)
            call = request(revision, "tools/call", WHOAMI)
            unknown = await http.post(call, "/messages?session_id=unknown")
            stolen = await http.post(call, endpoint, Authorization=bearer(token_of("mallory")))
            assert (
                (stolen.status, stolen.body) == (unknown.status, unknown.body) == (404, stolen.body)
            )
            assert (await http.post(call, endpoint, Authorization=None)).status == 401
            write = request(revision, "tools/call", WRITE)
            refused = await http.post(write, endpoint)
            assert refused.status == 403
            assert "files:write" in challenge_in(refused).parameters["scope"]
            more = bearer(token_of("alice", "mcp:read files:write", client_id="registered-anew"))
            assert (await http.post(write, endpoint, Authorization=more)).status == 202
            message = await stream.message()
            assert message["result"]["content"][0]["text"] == "alice wrote a.txt"
    assert guarded.calls == ["alice write"]


@sessions
async def test_a_stream_ends_with_its_token_and_resumes_with_a_new_one(revision: str) -> None:
    auth = protected_settings(verifier=verify_expiring)
    async with asgi(Guarded().server, auth=auth) as http:
        http.fields["authorization"] = bearer("alice")
        await http.initialize(revision)
        async with http.stream("GET", fields={"authorization": bearer("alice-0.05")}) as stream:
            await stream.end()
            await stream.finished.wait()
        async with http.stream("GET") as stream:
            assert stream.status == 200


@modern
async def test_a_subscription_ends_with_its_token(revision: str) -> None:
    auth = protected_settings(verifier=verify_expiring)
    async with asgi(Guarded().server, auth=auth) as http:
        http.fields["authorization"] = bearer("alice-0.05")
        params = {"notifications": {"toolsListChanged": True}}
        async with http.asking(revision, "subscriptions/listen", params) as stream:
            messages = await stream.messages()
        assert messages[-1]["id"] == 1  # the response, which ends the subscription gracefully


@modern
async def test_a_request_state_of_another_principal_is_unknown(revision: str) -> None:
    @dataclass
    class Count:
        value: int

    async def order(ctx: Context) -> str:
        answer = await ctx.elicit("How many?", Count)
        return f"{ctx.principal.subject} {answer.action}"

    capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
    async with asgi(server_with(order, state_key=b"k" * 32), auth=protected_settings()) as http:

        async def call(subject: str, client: str = "agent", **more: Any) -> Any:
            http.fields["authorization"] = bearer(token_of(subject, client_id=client))
            params = {"name": "order", "arguments": {}, **more}
            return await http.ask(revision, "tools/call", params, capabilities=capabilities)

        asked = (await call("alice")).result
        (key,) = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"value": 3}}}
        state = asked["requestState"]
        stolen = await call("mallory", inputResponses=answers, requestState=state)
        unknown = await call("mallory", inputResponses=answers, requestState=f"{state}x")
        assert stolen.json["error"] == unknown.json["error"]
        itself = await call("alice", "alice", inputResponses=answers, requestState=state)
        assert itself.json["error"] == unknown.json["error"]
        own = await call("alice", "registered-anew", inputResponses=answers, requestState=state)
        assert own.text == "alice accept"


def server_with_scopes(**settings: Any) -> Server:
    """A server with scopes on each kind of item."""
    server = Server("everything", subscribe=True, **settings)
    server.add_tool(lambda: "free", name="free")
    server.add_tool(lambda: "secret", name="secret", scopes=["s"])
    server.resource("data://free", name="free")(lambda: "free")
    public = CacheHint(1000, "public")
    server.resource("data://secret", name="secret", scopes=["s"], cache=public)(lambda: "secret")
    server.resource("item://{name}", name="items", scopes=["s"])(lambda name: name)
    server.prompt(name="plan", scopes=["s"])(lambda city: city)
    server.completion(prompt="plan", argument="city")(lambda value: ["Oslo"])
    server.completion(template="item://{name}", argument="name")(lambda value: ["a"])
    server.method("acme/secret", scopes=["s"])(lambda: None)
    return server


CALLS: list[list[Any]] = table("scoped_calls")


@streamable
async def test_listed_items_without_their_scopes_get_403(revision: str) -> None:
    public = CacheHint(1000, "public")
    server = server_with_scopes(cache={"tools": public})
    async with signed_in(server, revision, token_of(scope="mcp:read")) as http:
        listed = (await http.ask(revision, "tools/list")).result
        assert [tool["name"] for tool in listed["tools"]] == ["free", "secret"]
        assert listed.get("cacheScope", "public") == "public"
        for method, params in CALLS:
            reply = await http.ask(revision, method, params)
            assert (method, reply.status) == (method, 403)
            assert challenge_in(reply).parameters["scope"].split()[:2] == ["mcp:read", "s"]
        http.fields["authorization"] = bearer(token_of(scope="mcp:read s"))
        for method, params in CALLS:
            assert "result" in (await http.ask(revision, method, params)).json
        read = (await http.ask(revision, "resources/read", {"uri": "data://secret"})).result
        assert read.get("cacheScope", "private") == "private"


@streamable
async def test_hidden_items_look_as_if_they_did_not_exist(revision: str) -> None:
    public = CacheHint(1000, "public")
    server = server_with_scopes(forbidden_items="hidden", cache=public, page_size=1)
    async with signed_in(server, revision, token_of(scope="mcp:read")) as http:
        first = (await http.ask(revision, "tools/list")).result
        assert [tool["name"] for tool in first["tools"]] == ["free"]
        assert "nextCursor" not in first
        assert first.get("cacheScope", "private") == "private"
        templates = (await http.ask(revision, "resources/templates/list")).result
        assert templates["resourceTemplates"] == []
        for method, params in CALLS:
            reply = await http.ask(revision, method, params)
            assert reply.status in (200, 404)
            assert "scope" not in reply.json["error"]["message"]
            if "name" in params:  # of a tool or a prompt
                other = await http.ask(revision, method, {**params, "name": "unknwn"})
                assert shape(reply, params["name"]) == shape(other, "unknwn")
        http.fields["authorization"] = bearer(token_of(scope="mcp:read s"))
        first = (await http.ask(revision, "tools/list")).result
        rest = (await http.ask(revision, "tools/list", {"cursor": first["nextCursor"]})).result
        assert [tool["name"] for tool in rest["tools"]] == ["secret"]
        for method, params in CALLS:
            assert "result" in (await http.ask(revision, method, params)).json


@pytest.mark.parametrize("forbidden", ["listed", "hidden"])
@sessions
async def test_only_the_scopes_of_a_resource_allow_a_subscription(
    revision: str, forbidden: str
) -> None:
    server = server_with_scopes(forbidden_items=forbidden)
    async with signed_in(server, revision, token_of(scope="mcp:read")) as http:
        assert (
            "result"
            in (await http.ask(revision, "resources/subscribe", {"uri": "data://free"})).json
        )
        for params in ({"uri": "data://secret"}, {"uri": "item://a"}):
            refused = await http.ask(revision, "resources/subscribe", params)
            assert "error" in refused.json
            assert refused.status == 403 or forbidden == "hidden"
        http.fields["authorization"] = bearer(token_of(scope="mcp:read s"))
        assert "result" in (await http.ask(revision, "resources/subscribe", params)).json


def shape(reply: Any, name: str) -> Any:
    """Status and error of a response, without the name that was asked for."""
    error = reply.json["error"]
    return reply.status, error["code"], error["message"].replace(name, "...")


@modern
async def test_listening_needs_the_scopes_of_the_resources(revision: str) -> None:
    async with signed_in(server_with_scopes(), revision, token_of(scope="mcp:read")) as http:
        params = {"notifications": {"resourceSubscriptions": ["data://free", "data://secret"]}}
        reply = await http.ask(revision, "subscriptions/listen", params)
        assert (reply.status, challenge_in(reply).parameters["scope"]) == (403, "mcp:read s")


@requirement("auth-security.no-credential-logging", "auth-ext.ema-no-leaks")
@streamable
async def test_no_token_is_in_logs_traces_errors_and_representations(
    revision: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    trace = tmp_path / "trace.jsonl"
    monkeypatch.setenv("MCP_TRACE", str(trace))
    caplog.set_level(logging.DEBUG)
    guarded = Guarded()
    shown: list[Any] = []

    @guarded.server.tool()
    async def show(ctx: Context) -> str:
        names: tuple[str, ...] = Context.__slots__
        slots = [getattr(ctx, name) for name in names if name[0] != "_"]
        shown.append(repr((ctx.principal, ctx.request_context.principal, slots)))
        assert ctx.principal.token is None
        raise RuntimeError("failed")

    tokens = [token_of(), token_of(exp=1), "opaque-secret", token_of(scope="")]
    auth = protected_settings(verifier=JwtVerifier(keys={"keys": []}))
    for settings in (auth, protected_settings()):
        async with asgi(guarded.server, auth=settings) as http:
            for token in tokens:
                http.fields |= {"authorization": bearer(token), SESSION: None}
                reply = await http.post(initialize(SESSIONS[-1]))
                http.fields[SESSION] = reply.fields.get(SESSION)
                replies = [reply, await http.ask(revision, "tools/call", {"name": "show"})]
                replies.append(await http.ask(revision, "tools/call", WRITE))
                shown += [(each.body, each.fields) for each in replies]
        shown.append(repr((settings, http.app)))
    assert "Principal" in str(shown)
    text = "\n".join([caplog.text, *capfd.readouterr(), str(shown), trace.read_text()])
    for token in tokens:
        assert token not in text
        assert token.rpartition(".")[2] not in text


def test_a_principal_shows_neither_token_nor_claims() -> None:
    principal = Principal("a", scopes={"s"}, claims={"email": "x@y"}, token="secret-1", issuer="i")
    assert repr(principal) == "Principal('a', scopes=['s'], issuer='i')"
    assert principal.has_scopes("s")
    assert not principal.has_scopes("s", "t")
    assert Principal.local().has_scopes("anything")
    assert hash(principal) != hash(Principal("b"))


@pytest.mark.parametrize("scopes", [["a b"], ['"'], [""], ["\xe4"], "files:write"])
def test_scopes_are_a_collection_of_words(scopes: Any) -> None:
    for use in (lambda: Principal("a", scopes=scopes), lambda: Server("s").tool(scopes=scopes)):
        with pytest.raises((TypeError, ValueError), match="scopes: expected"):
            use()


STDIO_SERVER = """
import os
from mcpgen_runtime import Context, Principal, Server

server = Server("local")

@server.tool(scopes=["files:write"])
async def write(ctx: Context) -> str:
    return f"{ctx.principal.subject} {ctx.principal.token}"

server.run(principal=%s)
"""


@requirement("auth-flow.stdio-environment", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("principal", "answer"),
    [
        ('Principal.local(token=os.environ["ACME_TOKEN"])', "local secret-1"),
        ('Principal("bob", scopes={"files:write"})', "bob None"),
        ("None", "write' needs the scopes files:write"),
    ],
)
def test_a_local_server_serves_on_behalf_of_its_principal(principal: str, answer: str) -> None:
    call = request(SESSIONS[-1], "tools/call", {"name": "write", "arguments": {}})
    lines = [encode_message(each) for each in (initialize(SESSIONS[-1]), INITIALIZED, call)]
    done = subprocess.run(
        script(STDIO_SERVER % principal),
        input=b"\n".join([*lines, b""]),
        capture_output=True,
        env={**PATHS, "ACME_TOKEN": "secret-1"},
        timeout=60,
        check=True,
    )
    assert answer in done.stdout.decode().splitlines()[-1]


@streamable
async def test_tools_and_methods_of_a_mounted_server_need_their_scopes(revision: str) -> None:
    outer = Server("outer", subscribe=True)
    outer.mount(server_with_scopes(), prefix="in")
    async with signed_in(outer, revision, token_of(scope="mcp:read")) as http:
        calls = [("tools/call", {"name": "in_secret"}), ("acme/secret", {})]
        assert [(await http.ask(revision, *call)).status for call in calls] == [403, 403]
