"""A client over HTTP+SSE: one stream to hear by, one address to post to."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import httpx2
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.async_client import ClientHandlers, connect
from mcpgen_runtime.errors import (
    ConnectFailedError,
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    RevisionError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package.http_script import SseScript, connect_scripted, result
from package.http_server import Asked, Handler, HttpServer, Reply, unused_port
from package.rules import revisions_holding
from package.transports.http.test_client import ParseCount
from package.wire import HANDSHAKE, PER_REQUEST, SSE_ONLY

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture(params=SSE_ONLY)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.requirement("sse.post-to-endpoint")
async def test_the_stream_is_opened_first_and_gives_the_post_address(
    revision: str,
) -> None:
    async with connect_scripted(SseScript(revision)) as (client, server):
        assert client.revision == revision
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert server.order() == [
        "GET",
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    get, *posts = server.asked
    assert (get.target, get.fields["accept"]) == ("/mcp", "text/event-stream")
    assert {(asked.verb, asked.target) for asked in posts} == {
        ("POST", "/messages?session_id=5ec2e7")
    }
    assert {asked.fields["content-type"] for asked in posts} == {"application/json"}


async def test_each_response_is_parsed_once(revision: str) -> None:
    with ParseCount() as parsed:
        async with connect_scripted(SseScript(revision)) as (client, _server):
            await client.list_tools()
    assert parsed.count == 2  # of initialize and of tools/list


@pytest.mark.requirement("sse.endpoint-uri-resolution")
@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("/messages?s=1", "/messages?s=1"),
        ("messages?s=1", "/messages?s=1"),
        ("?s=1", "/mcp?s=1"),
        ("{origin}/there/messages", "/there/messages"),
        ("//{host}/there", "/there"),
        ("/a b/\u00e4", "/a%20b/%C3%A4"),
    ],
)
async def test_the_address_may_be_relative(revision: str, endpoint: str, target: str) -> None:
    script = SseScript(revision)

    async def get(asked: Asked, reply: Reply) -> None:
        host = asked.fields["host"]
        script.endpoint = endpoint.format(origin=f"http://{host}", host=host)
        del script.on["GET"]
        await script(asked, reply)

    script.on["GET"] = get
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
    assert {asked.target for asked in server.asked[1:]} == {target}


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:1/messages",
        "https://{host}/messages",
        "http://elsewhere.invalid/messages",
        "//elsewhere.invalid/messages",
        "http://[broken",
        "data:text/plain,x",
    ],
)
async def test_an_address_of_another_origin_gets_nothing(revision: str, endpoint: str) -> None:
    script = SseScript(revision)

    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(
            endpoint.replace("{host}", asked.fields["host"]).encode(), type="endpoint"
        )
        await reply.gone()

    script.on["GET"] = get
    async with HttpServer(script) as server:
        with pytest.raises(RemoteProtocolError, match="an address of the same origin"):
            async with connect(server.url, revision=revision):
                raise AssertionError("it was opened")
        await server.until_left()
    assert server.order() == ["GET"]


async def _html(asked: Asked, reply: Reply) -> None:
    await reply.whole(200, b"<html>", Content_Type="text/html")


async def _reply_nothing(asked: Asked, reply: Reply) -> None:
    await reply.stream()
    await reply.end()


async def _message_first(asked: Asked, reply: Reply) -> None:
    await reply.stream()
    await reply.event({"jsonrpc": "2.0", "method": "notifications/message"})
    await reply.gone()


async def _silence(asked: Asked, reply: Reply) -> None:
    await reply.stream()
    await reply.part(b": ping\n\n")
    await reply.gone()


async def _reply_not_found(asked: Asked, reply: Reply) -> None:
    await reply.whole(404)


async def _cut(asked: Asked, reply: Reply) -> None:
    await reply.stream()
    await reply.part(b"event: endpoint\ndata: /mess")
    await reply.cut()


@pytest.mark.parametrize(
    ("get", "kind", "text"),
    [
        (_html, RemoteProtocolError, "text/html"),
        (_reply_nothing, RemoteProtocolError, "expected an event 'endpoint' first"),
        (_message_first, RemoteProtocolError, "came 'message'"),
        (_silence, RemoteProtocolError, "within 0.3 s"),
        (_reply_not_found, HttpStatusError, "HTTP 404"),
        (_cut, RemoteProtocolError, "expected an event 'endpoint' first"),
    ],
)
async def test_a_stream_that_names_no_address_is_a_readable_error(
    revision: str,
    get: Handler,
    kind: type[McpError],
    text: str,
) -> None:
    script = SseScript(revision)
    script.on["GET"] = get
    with pytest.raises(kind, match=text):
        async with connect_scripted(script, timeouts=Timeouts(http=HttpTimeouts(endpoint=0.3))):
            raise AssertionError("it was opened")


@pytest.mark.requirement("sse.shutdown-by-close")
async def test_the_end_of_the_stream_is_the_end_of_the_session(revision: str) -> None:
    script = SseScript(revision)

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        assert script.stream is not None
        await script.stream.end()

    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, _):
        with pytest.raises(ConnectionClosedError, match="closed the stream of events"):
            await client.call_tool("echo", {})
        with pytest.raises(ConnectionClosedError):
            await client.list_tools()


@pytest.mark.requirement("sse.client-closes-stream", "sse.shutdown-by-close")
@pytest.mark.requirement("lifecycle.shutdown-http")
async def test_closing_closes_the_stream_and_says_nothing(revision: str) -> None:
    async with connect_scripted(SseScript(revision)) as (client, server):
        await client.list_tools()
        await client.close()
        await server.until_left()
        assert server.order()[-1] == "tools/list"


async def test_a_refused_post_fails_its_call_and_no_other(revision: str) -> None:
    async def refuse(asked: Asked, reply: Reply) -> None:
        await reply.whole(400, b"no", Content_Type="text/plain")

    script = SseScript(revision)
    script.once["tools/call"] = [refuse]
    async with connect_scripted(script) as (client, _):
        with pytest.raises(HttpStatusError, match="HTTP 400 Test: no"):
            await client.call_tool("echo", {})
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_messages_of_the_server_arrive_on_the_stream(revision: str) -> None:
    heard: list[str] = []

    class Handlers(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": []}

        async def logging_message(self, params: Any, ctx: Any) -> None:
            heard.append(params.data)

    script = SseScript(revision)

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        params = {"level": "info", "data": "a"}
        await script.say({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        await script.say({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
        script.on["response"] = answered(asked)

    def answered(call: Asked) -> Handler:
        async def response(asked: Asked, reply: Reply) -> None:
            await reply.whole(202)
            await script.say(b"", type="ping")
            await script.say(result(call))

        return response

    script.on["tools/call"] = call
    async with connect_scripted(script, handlers=Handlers()) as (client, server):
        await client.call_tool("echo", {})
    assert heard == ["a"]
    assert server.of("response")[0].message == {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}}


@pytest.mark.requirement("http.version-header-after-init")
@pytest.mark.parametrize("agreed", HANDSHAKE)
async def test_any_revision_with_a_handshake_may_be_agreed_on(agreed: str) -> None:
    async with connect_scripted(SseScript(agreed), revision=None, transport="sse") as (
        client,
        server,
    ):
        assert client.revision == agreed
        await client.list_tools()
    assert "server/discover" not in server.order()
    named = server.of("tools/list")[0].fields.get("mcp-protocol-version")
    assert named == (
        agreed if agreed in revisions_holding("http.version-header-after-init") else None
    )


@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_a_revision_without_handshake_cannot_be_asked_for(revision: str) -> None:
    with pytest.raises(RevisionError, match="a handshake"):
        async with connect("http://127.0.0.1/sse", revision=revision, transport="sse"):
            raise AssertionError("it was opened")


async def test_nobody_listening_is_a_readable_error(revision: str) -> None:
    with unused_port() as port:
        url = f"http://127.0.0.1:{port}/sse"
        with pytest.raises(ConnectFailedError, match=f"no connection to {url}"):
            async with connect(url, revision=revision):
                raise AssertionError("it was opened")


async def test_cancelling_says_so(revision: str) -> None:
    begun = anyio.Event()

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        begun.set()

    script = SseScript(revision)
    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {})
            await begun.wait()
            tasks.cancel_scope.cancel()
        (cancelled,) = await server.until("notifications/cancelled")
        assert cancelled.message["params"]["requestId"] == server.of("tools/call")[0].id
        await client.list_tools()


async def test_the_query_of_the_address_is_in_no_log(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with httpx2.AsyncClient() as own:
        for http_client in (None, own):
            async with connect_scripted(SseScript(revision), http_client=http_client) as (
                client,
                _,
            ):
                await client.list_tools()
    assert any(record.name == "httpx2" for record in caplog.records)
    assert "5ec2e7" not in caplog.text
