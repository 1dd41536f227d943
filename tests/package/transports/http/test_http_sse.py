"""A client over HTTP+SSE: one stream for what the server sends, one address to post to."""

from __future__ import annotations

import logging

import anyio
import httpx2
import pytest

from kit.http_script import (
    Script,
    SseScript,
    connect_scripted,
    fail_to_open,
    log_message,
    result,
    says,
)
from kit.http_server import Asked, Handler, Reply
from kit.live import handlers_with
from kit.rules import revision_fixture, revisions_holding
from kit.simulation import URL, MemoryReply, StreamResponse, reach, simulate
from kit.wire import HANDSHAKE, SSE_ONLY, modern
from mcpgen_runtime import (
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
    RevisionError,
)

pytestmark = pytest.mark.processes

revision = revision_fixture(SSE_ONLY)


@pytest.mark.requirement("sse.post-to-endpoint")
async def test_the_stream_is_opened_first_and_gives_the_post_address(revision: str) -> None:
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


def stream(events: bytes, failure: Exception | None = None, *, silent: bool = False) -> Handler:
    """A handler with a stream that ends, breaks or stays open after some events."""

    async def handler(asked: Asked, reply: Reply) -> None:
        assert isinstance(reply, MemoryReply)
        reply.response = StreamResponse(events, failure, silent=silent)

    return handler


def endpoint(url: str) -> Handler:
    """A handler with a stream that begins with an address for messages."""
    return stream(b"event: endpoint\ndata: %b\n\n" % url.encode(), silent=True)


ONLY = rf" \(over HTTP, {SSE_ONLY[0]} is spoken by HTTP\+SSE alone\)"
EXPECTED = "expected an event 'endpoint'"
FIRST = f"{EXPECTED} first"
NO_ADDRESS = rf"{URL}: expected an address of the same origin to post to, came "


NO_STREAM = f"expected a stream of events{ONLY}"
CUT = stream(b"event: endpoint\ndata: /mess", ResponseLostError("cut"))
ELSEWHERE = (
    *("http://mcp.example/messages", "https://mcp.example:1/messages", "//elsewhere.invalid/"),
    *("http://[broken", "//[", "data:text/plain,x"),
)
WITH_SECRET = "https://other.example/b?secret"
NAMELESS: dict[str, tuple[Handler, type[McpError], str]] = {
    "a page": (
        says(b"<html>", kind="text/html"),
        RemoteProtocolError,
        f"{NO_STREAM}, came HTTP 200, text/html",
    ),
    **{
        f"HTTP {status} of a server without the transport": (
            says(b"", status),
            HttpStatusError,
            f"GET {URL} answered HTTP {status}; {NO_STREAM}",
        )
        for status in (300, 399, 404, 405, 499)
    },
    **{
        f"HTTP {status}": (says(b"", status), HttpStatusError, f"HTTP {status}($|; auth)")
        for status in (199, 401, 500)
    },
    "silence": (
        stream(b": a comment\n\n", silent=True),
        RemoteProtocolError,
        f"{EXPECTED} within 5 s{ONLY}, came nothing",
    ),
    "the end": (stream(b": none\n\n"), RemoteProtocolError, f"{FIRST}, but the server closed"),
    "a broken stream": (CUT, RemoteProtocolError, f"{FIRST}, but the stream of events broke: cut"),
    "another failure": (
        stream(b": none\n\n", ValueError("odd")),
        RemoteProtocolError,
        f"{FIRST}, but the stream of events failed: odd",
    ),
    "a message first": (
        stream(b"event: message\ndata: x\n\n"),
        RemoteProtocolError,
        f"{FIRST}, came 'message'",
    ),
    **{f"elsewhere: {url}": (endpoint(url), RemoteProtocolError, NO_ADDRESS) for url in ELSEWHERE},
    "a secret": (
        endpoint(WITH_SECRET),
        RemoteProtocolError,
        f"{NO_ADDRESS}'https://other.example/b'$",
    ),
}


@pytest.mark.parametrize(("get", "kind", "text"), NAMELESS.values(), ids=NAMELESS.keys())
def test_a_stream_that_names_no_address_is_a_readable_error(
    revision: str, get: Handler, kind: type[McpError], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        await fail_to_open(URL, revision=revision)

    # The answer of `Script` to a message would be a failure of another kind.
    reach(Script(revision, on={"GET": get}), monkeypatch)
    with pytest.raises(kind, match=text) as caught:
        simulate("asyncio", 0, main)
    assert type(caught.value) is kind


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
    script = SseScript(revision, once={"tools/call": [says(b"no", 400, "text/plain")]})
    async with connect_scripted(script) as (client, _):
        with pytest.raises(HttpStatusError, match="HTTP 400 Test: no"):
            await client.call_tool("echo", {})
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_messages_of_the_server_arrive_on_the_stream(revision: str) -> None:
    heard: list[str] = []
    handlers = handlers_with(
        list_roots={"roots": []}, logging_message=lambda params: heard.append(params.data)
    )
    script = SseScript(revision)
    calls: list[Asked] = []

    async def call(asked: Asked, reply: Reply) -> None:
        calls.append(asked)
        await reply.whole(202)
        await script.say(log_message("a"))
        await script.say({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})

    async def response(asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        await script.say(b"", type="ping")
        await script.say(result(calls[0]))

    script.on = {"tools/call": call, "response": response}
    async with connect_scripted(script, handlers=handlers) as (client, server):
        await client.call_tool("echo", {})
    assert heard == ["a"]
    assert server.of("response")[0].message == {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}}


@pytest.mark.requirement("http.version-header-after-init")
@pytest.mark.parametrize("agreed", HANDSHAKE)
async def test_any_revision_with_a_handshake_may_be_agreed_on(agreed: str) -> None:
    script = SseScript(agreed)
    async with connect_scripted(script, revision=None, transport="sse") as (client, server):
        assert client.revision == agreed
        await client.list_tools()
    assert "server/discover" not in server.order()
    named = agreed in revisions_holding("http.version-header-after-init")
    field = server.of("tools/list")[0].fields.get("mcp-protocol-version")
    assert field == (agreed if named else None)


@modern
async def test_a_revision_without_handshake_cannot_be_asked_for(revision: str) -> None:
    with pytest.raises(RevisionError, match="a handshake"):
        await fail_to_open("http://127.0.0.1/sse", revision=revision, transport="sse")


async def test_cancelling_says_so(revision: str) -> None:
    script = SseScript(revision, on={"tools/call": says(b"", 202)})
    async with connect_scripted(script) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {})
            await server.until("tools/call")
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
            how = {"http_client": http_client}
            async with connect_scripted(SseScript(revision), **how) as (client, _):
                await client.list_tools()
    assert any(record.name == "httpx2" for record in caplog.records)
    assert "5ec2e7" not in caplog.text
