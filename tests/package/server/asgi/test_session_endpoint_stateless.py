"""`stateless=True`: revisions with sessions, served without them, by any process."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from kit.asgi_client import SESSION, asgi
from kit.live import text_of
from kit.wire import INITIALIZED, PER_REQUEST, SESSIONS, initialize, request
from mcpgen_runtime import Context, Server, connect
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


VERSION = "mcp-protocol-version"


@sessions
async def test_each_request_may_reach_another_process(revision: str) -> None:
    async with asgi(server_of(), stateless=True) as one, asgi(server_of(), stateless=True) as two:
        answer = await one.post(initialize(revision, ASKING))
        assert answer.result["protocolVersion"] == revision
        assert answer.result["capabilities"] == {"tools": {}, "resources": {}}
        assert SESSION not in answer.fields
        assert (await two.post(INITIALIZED, **{VERSION: revision})).status == 202
        for http in (one, two):
            call = request(revision, "tools/call", CALL, meta={"progressToken": "t"})
            reply = await http.post(call, **{VERSION: revision})
            assert reply.text == "hei"
            assert [each.get("method") for each in reply.messages] == [
                "notifications/progress",
                None,
            ]


@pytest.mark.parametrize("revision", [*SESSIONS, PER_REQUEST[-1]])
async def test_clients_of_this_package_need_no_session(revision: str) -> None:
    transport = httpx2.ASGITransport(server_of().asgi(stateless=True))
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        connect("http://127.0.0.1/mcp", http_client=http, revision=revision) as client,
    ):
        assert client.revision == revision
        assert text_of(await client.call_tool("echo", {"text": "hei"})) == "hei"


@pytest.mark.requirement("http.version-header-missing-default", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("named", "used"), [(None, "2025-03-26"), *((revision, revision) for revision in SESSIONS)]
)
async def test_the_revision_is_in_the_header_and_a_session_id_of_before_ignored(
    named: str | None, used: str
) -> None:
    async with asgi(server_of(), stateless=True) as http:
        call = request(used, "tools/call", {"name": "about", "arguments": {}})
        reply = await http.post(call, **{VERSION: named, SESSION: "gone"})
        assert reply.text == f"{used} None"


@pytest.mark.requirement("http.get-reply", "http.session-delete-405", revisions=SESSIONS[-1:])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_no_stream_to_open_and_no_session_to_end(method: str) -> None:
    async with asgi(server_of(), stateless=True) as http:
        reply = await http.request(method, **{VERSION: SESSIONS[-1]})
        assert (reply.status, reply.fields["allow"]) == (405, "POST")
    with pytest.raises(ValueError, match=r"HTTP\+SSE has sessions only"):
        server_of().asgi(stateless=True, sse_path="/sse")


@outer
@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("resources/subscribe", {"uri": "note://today"}, "a session, and this server keeps none"),
        ("logging/setLevel", {"level": "info"}, "a session, and this server keeps none"),
        ("tools/call", {"name": "roots", "arguments": {}}, "keeps none (stateless=True)"),
        ("tools/call", {"name": "ping", "arguments": {}}, "keeps none (stateless=True)"),
    ],
)
async def test_what_needs_a_session_is_refused_with_that_reason(
    revision: str, method: str, params: Any, error: str
) -> None:
    async with asgi(server_of(), stateless=True) as http:
        reply = await http.post(request(revision, method, params), **{VERSION: revision})
        assert (reply.status, error in reply.error["message"]) == (200, True)
