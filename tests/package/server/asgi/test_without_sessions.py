"""`stateless=True`: revisions with sessions, served without them, by any process."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from mcpgen_runtime import Context, Server, connect
from mcpgen_runtime.server.asgi.event_store import MemoryEventStore
from package.asgi_client import SESSION, asgi
from package.server.asgi.web import Web
from package.wire import INITIALIZED, SESSIONS, facts, initialize, request
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes

CALL = {"name": "echo", "arguments": {"text": "hei"}}
ASKING: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}

sessions = pytest.mark.parametrize("revision", SESSIONS)
outer = pytest.mark.parametrize("revision", [SESSIONS[0], SESSIONS[-1]])


def server_of() -> Server:
    server = Server("tester", subscribe=True)

    @server.tool()
    async def echo(text: str, ctx: Context) -> str:
        await ctx.progress(1)
        return text

    @server.tool()
    def about(ctx: Context) -> str:
        return f"{ctx.revision} {ctx.session_id}"

    @server.tool()
    async def roots(ctx: Context) -> str:
        return str(await ctx.list_roots())

    @server.tool()
    async def ping(ctx: Context) -> str:
        return str(await ctx.request("ping"))

    @server.resource("note://today")
    def note() -> str:
        return "sun"

    return server


def version(revision: str) -> dict[str, Any]:
    return {"MCP-Protocol-Version": revision}


@sessions
async def test_each_request_may_reach_another_process(revision: str) -> None:
    async with asgi(server_of(), stateless=True) as one, asgi(server_of(), stateless=True) as two:
        answer = await one.post(initialize(revision, ASKING))
        assert answer.result["protocolVersion"] == revision
        assert SESSION not in answer.fields
        assert (await two.post(INITIALIZED, **version(revision))).status == 202
        for http in (one, two):
            reply = await http.post(request(revision, "tools/call", CALL), **version(revision))
            assert reply.result["content"][0]["text"] == "hei"


@outer
async def test_clients_of_this_package_need_no_session(revision: str) -> None:
    transport = httpx2.ASGITransport(server_of().asgi(stateless=True))
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        connect("http://127.0.0.1/mcp", http_client=http, revision=revision) as client,
    ):
        assert client.revision == revision
        result = await client.call_tool("echo", {"text": "hei"})
        assert result.content[0].text == "hei"


@outer
async def test_a_session_id_of_before_is_ignored(revision: str) -> None:
    async with asgi(server_of(), stateless=True) as http:
        fields = {SESSION: "gone", **version(revision)}
        about = {"name": "about", "arguments": {}}
        reply = await http.post(request(revision, "tools/call", about), **fields)
        assert reply.result["content"][0]["text"] == f"{revision} None"


@pytest.mark.requirement("http.version-header-missing-default", revisions=EVERY_REVISION)
async def test_without_a_header_the_revision_is_that_of_silent_clients() -> None:
    async with asgi(server_of(), stateless=True) as http:
        about = {"name": "about", "arguments": {}}
        reply = await http.post(request("2025-03-26", "tools/call", about))
        assert reply.result["content"][0]["text"] == "2025-03-26 None"


@pytest.mark.requirement("http.get-reply", "http.session-delete-405", revisions=SESSIONS[-1:])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_no_stream_to_open_and_no_session_to_end(method: str) -> None:
    async with asgi(server_of(), stateless=True) as http:
        reply = await http.request(method, **version(SESSIONS[-1]))
        assert (reply.status, reply.fields["allow"]) == (405, "POST")


@outer
async def test_capabilities_that_need_a_session_are_not_declared(revision: str) -> None:
    async with asgi(server_of(), stateless=True) as http:
        result = (await http.post(initialize(revision))).result
        assert result["capabilities"] == {"tools": {}, "resources": {}}


@outer
@pytest.mark.parametrize(
    ("method", "params"),
    [("resources/subscribe", {"uri": "note://today"}), ("logging/setLevel", {"level": "info"})],
)
async def test_requests_that_need_a_session_are_refused_with_a_reason(
    revision: str, method: str, params: Any
) -> None:
    async with asgi(server_of(), stateless=True) as http:
        reply = await http.post(request(revision, method, params), **version(revision))
        assert reply.json["error"]["code"] == -32601
        assert "needs a session, and this server keeps none" in reply.json["error"]["message"]


@outer
@pytest.mark.parametrize("tool", ["roots", "ping"])
async def test_a_tool_that_asks_the_client_gets_an_error(revision: str, tool: str) -> None:
    async with asgi(server_of(), stateless=True) as http:
        call = {"name": tool, "arguments": {}}
        reply = await http.post(request(revision, "tools/call", call), **version(revision))
        assert "keeps none (stateless=True)" in reply.json["error"]["message"]


@outer
async def test_progress_is_sent_on_the_stream_of_the_call(revision: str) -> None:
    async with asgi(server_of(), stateless=True) as http:
        call = request(revision, "tools/call", CALL, meta={"progressToken": "t"})
        reply = await http.post(call, **version(revision))
        assert [each.get("method") for each in reply.messages] == ["notifications/progress", None]


async def test_a_batch_is_answered_where_the_revision_has_batches() -> None:
    async with asgi(server_of(), stateless=True) as http:
        batch = [request("2025-03-26", "tools/call", CALL, id=number) for number in (1, 2)]
        replies = (await http.post(batch, accept="application/json")).json
        assert sorted(each["id"] for each in replies) == [1, 2]
        reply = await http.post(batch, **version("2025-06-18"))
        assert reply.status == 400


async def test_revisions_without_sessions_are_served_at_the_same_place() -> None:
    async with asgi(server_of(), stateless=True) as http:
        reply = await http.ask("2026-07-28", "tools/call", CALL)
        assert reply.result["content"][0]["text"] == "hei"


def test_http_sse_which_has_sessions_only_is_refused() -> None:
    with pytest.raises(ValueError, match="HTTP\\+SSE has sessions only"):
        server_of().asgi(stateless=True, sse_path="/sse")


@sessions
async def test_a_stream_without_sessions_stores_no_events(revision: str) -> None:
    store = MemoryEventStore()
    async with asgi(server_of(), stateless=True, events=store, answers="sse") as http:
        for message in (initialize(revision), request(revision, "tools/call", CALL)):
            reply = await http.post(message, **version(revision))
            assert [event.id for event in reply.events] == [""]
        assert len(store) == 0


async def test_silence_means_the_oldest_where_all_name_a_revision() -> None:
    web = Web()

    @web.server.tool()
    def about(ctx: Context) -> str:
        return ctx.revision

    named = [each for each in SESSIONS if facts(each).headers.protocol_version]
    assert len(named) > 1
    async with asgi(web.only(*named, stateless=True)) as http:
        reply = await http.post(request(named[0], "tools/call", {"name": "about"}))
        assert reply.result["content"][0]["text"] == named[0]
