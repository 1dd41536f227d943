"""A client over Streamable HTTP: what it posts, and what it takes for an answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import anyio
import pytest

from mcpgen_runtime.client.async_client import ClientHandlers
from mcpgen_runtime.errors import HttpStatusError, McpError, RemoteError, RemoteProtocolError
from mcpgen_runtime.protocol.jsonrpc import parse
from package.http_script import (
    Script,
    answer_on_stream,
    connect_scripted,
    discover_result,
    error,
    initialize_result,
    result,
    says,
)
from package.http_server import Asked, Handler, Reply
from package.rules import revisions_holding
from package.wire import PER_REQUEST, SESSIONS, STREAMABLE

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

MODULE = parse.__code__.co_filename


@pytest.fixture(params=STREAMABLE)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.requirement(
    "http.one-post-per-message",
    "http.post-accept-both",
    "http.post-content-type",
    "http.post-body-forms-batch",
    "http.post-body-single",
    "http.post-body-request-or-notification",
)
async def test_each_message_is_its_own_post_that_accepts_both_kinds(revision: str) -> None:
    async with connect_scripted(Script(revision)) as (client, server):
        await client.list_tools()
        await client.call_tool("echo", {})
        await client.call_tool("echo", {"a": 1})
    posts = [asked for asked in server.asked if asked.verb == "POST"]
    assert [asked.what for asked in posts][-3:] == ["tools/list", "tools/call", "tools/call"]
    for asked in posts:
        assert asked.target == "/mcp"
        accepted = {kind.strip() for kind in asked.fields["accept"].split(",")}
        assert {"application/json", "text/event-stream"} <= accepted
        assert asked.fields["content-type"] == "application/json"
        assert isinstance(asked.message, dict)


@pytest.mark.requirement("http.client-handles-both-types")
async def test_an_answer_may_be_json_or_a_stream_each_time(revision: str) -> None:
    script = Script(revision)
    script.once = {"tools/call": [answer_on_stream]}
    async with connect_scripted(script) as (client, server):
        first = await client.call_tool("echo", {})
        second = await client.call_tool("echo", {})
    assert first.content[0].text == second.content[0].text == "done"
    assert server.order().count("tools/call") == 2


@pytest.mark.requirement("http.client-handles-both-types", "http-compat.implement-old-revision")
async def test_the_opening_may_be_answered_on_a_stream(revision: str) -> None:
    script = Script(revision, session=None if revision in PER_REQUEST else "abc")
    opening = "server/discover" if revision in PER_REQUEST else "initialize"

    async def handler(asked: Asked, reply: Reply) -> None:
        members = (
            discover_result(revision) if revision in PER_REQUEST else initialize_result(revision)
        )
        await reply.stream(**script.session_fields())
        await reply.event(result(asked, **members))
        await reply.end()

    script.on[opening] = handler
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
    asked = server.of("tools/list")[0]
    assert asked.fields.get("mcp-session-id") == script.session


class ParseCount:
    """Counts the messages that are parsed within a block.

    Attributes:
        count: How many.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> ParseCount:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        self.count += event == "call" and (code.co_name, code.co_filename) == ("parse", MODULE)


@pytest.mark.parametrize("streams", [False, True], ids=["JSON", "stream"])
async def test_a_response_is_parsed_once(revision: str, streams: bool) -> None:
    script = Script(revision)
    script.once = {"tools/call": [answer_on_stream] if streams else []}
    async with connect_scripted(script) as (client, _server):
        await client.list_tools()
        with ParseCount() as parsed:
            await client.call_tool("echo", {})
    assert parsed.count == 1


@pytest.mark.requirement("http.utf8")
@pytest.mark.parametrize("stream", [False, True], ids=["JSON", "stream"])
async def test_text_is_utf_8_both_ways_though_nothing_says_so(revision: str, stream: bool) -> None:
    text = "gr\u00fc\u00dfe \U0001f30d \u4e16\u754c"

    async def handler(asked: Asked, reply: Reply) -> None:
        answer = result(asked, content=[{"type": "text", "text": text}])
        raw = json.dumps(answer, ensure_ascii=False).encode()
        if stream:
            await reply.stream()
            await reply.event(raw)
            await reply.end()
        else:
            await reply.json(raw)

    script = Script(revision)
    script.on["tools/call"] = handler
    async with connect_scripted(script) as (client, server):
        got = await client.call_tool("echo", {"text": text})
    assert got.content[0].text == text
    asked = server.of("tools/call")[0]
    assert json.loads(asked.body.decode())["params"]["arguments"] == {"text": text}


@pytest.mark.requirement("http.comments-ignored")
@pytest.mark.parametrize("comment", [b":\n", b": ping\r\n", b":\r", b":\n\n", b": a\n\n: b\n"])
async def test_comments_on_a_stream_are_no_messages(revision: str, comment: bytes) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        begin, end = json.dumps(result(asked)).encode().split(b'"id"')
        await reply.stream()
        await reply.part(comment + b"data: " + begin + b"\n")
        await reply.part(comment.replace(b"\n\n", b"\n") + b'data: "id"' + end + b"\n\n" + comment)
        await reply.end()

    script = Script(revision)
    script.on["tools/call"] = handler
    async with connect_scripted(script) as (client, _):
        assert (await client.call_tool("echo", {})).content[0].text == "done"


BAD_ANSWERS: Mapping[str, tuple[Handler, type[McpError], str]] = {
    "HTML": (says(b"<html>", kind="text/html"), RemoteProtocolError, "text/html"),
    "no type": (says(b"{}", kind=""), RemoteProtocolError, "no content type"),
    "accepted": (says(b"", status=202, kind=""), RemoteProtocolError, "HTTP 202"),
    "no JSON": (says(b"{"), RemoteProtocolError, "expected the answer to tools/call"),
    "empty": (says(b""), RemoteProtocolError, "expected the answer to tools/call"),
    "not UTF-8": (says(b'{"\xff"}'), RemoteProtocolError, "expected the answer"),
    "other id": (
        says(b'{"jsonrpc":"2.0","id":"other","result":{}}'),
        RemoteProtocolError,
        "expected the answer to tools/call",
    ),
    "error without id": (
        says(b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"why"}}'),
        RemoteError,
        "why",
    ),
    "503": (says(b"over \n loaded", status=503, kind="text/plain"), HttpStatusError, "over loaded"),
    "503 as JSON": (
        says(b'{"jsonrpc":"2.0","error":{"code":-32603,"message":"no"}}', status=503),
        HttpStatusError,
        "HTTP 503",
    ),
    "refused without id": (
        says(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}', status=400),
        RemoteError,
        "no",
    ),
    "refused with another id": (
        says(b'{"jsonrpc":"2.0","id":"x","error":{"code":-32000,"message":"no"}}', status=400),
        HttpStatusError,
        "HTTP 400",
    ),
    "credentials": (
        says(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}', status=401),
        HttpStatusError,
        "HTTP 401",
    ),
    "redirect": (says(b"", status=302), HttpStatusError, "HTTP 302"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_a_bad_answer_fails_its_call_and_no_other(revision: str, name: str) -> None:
    handler, kind, text = BAD_ANSWERS[name]
    script = Script(revision)
    script.once["tools/call"] = [handler]
    async with connect_scripted(script) as (client, server):
        with pytest.raises(kind, match=text) as caught:
            await client.call_tool("echo", {})
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert type(caught.value) is kind
    assert server.of("notifications/cancelled") == []


async def test_a_refusal_that_is_a_json_rpc_error_is_the_answer(revision: str) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32602, "bad", why="so"), status=400)

    script = Script(revision)
    script.on["tools/call"] = handler
    async with connect_scripted(script) as (client, _):
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("echo", {})
    assert (caught.value.code, caught.value.data) == (-32602, {"why": "so"})


async def test_a_refusal_says_where_and_how_without_what_is_secret() -> None:
    script = Script(SESSIONS[-1])
    script.on["tools/call"] = says(b"down", status=503, kind="text/plain")
    headers = {"Authorization": "Bearer verysecret"}
    async with connect_scripted(script, headers=headers) as (client, server):
        with pytest.raises(HttpStatusError) as caught:
            await client.call_tool("echo", {})
    assert (caught.value.status, caught.value.body) == (503, b"down")
    doubt = "the server may or may not have worked on tools/call"
    assert str(caught.value) == f"POST {server.url} answered HTTP 503 Test: down; {doubt}"


@pytest.mark.parametrize("revision", revisions_holding("http.post-body-forms-batch"))
async def test_an_answer_in_a_batch_is_taken_where_there_are_batches(revision: str) -> None:
    heard: list[str] = []

    class Handlers(ClientHandlers):
        async def logging_message(self, params: Any, ctx: Any) -> None:
            heard.append(params.data)

    note = {"jsonrpc": "2.0", "method": "notifications/message"}

    async def as_json(asked: Asked, reply: Reply) -> None:
        await reply.json([{**note, "params": {"level": "info", "data": "a"}}, result(asked)])

    async def as_event(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event([{**note, "params": {"level": "info", "data": "b"}}, result(asked)])
        await reply.end()

    script = Script(revision)
    script.once["tools/call"] = [as_json, as_event]
    async with connect_scripted(script, handlers=Handlers()) as (client, _):
        for _ in range(2):
            assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert heard == ["a", "b"]


@pytest.mark.parametrize("revision", [name for name in STREAMABLE if name != STREAMABLE[0]])
async def test_an_array_is_no_answer_where_there_are_no_batches(revision: str) -> None:
    async def as_json(asked: Asked, reply: Reply) -> None:
        await reply.json([result(asked)])

    script = Script(revision)
    script.on["tools/call"] = as_json
    async with connect_scripted(script) as (client, _):
        with pytest.raises(RemoteProtocolError, match="expected the answer to tools/call"):
            await client.call_tool("echo", {})


@pytest.mark.parametrize("revision", SESSIONS)
async def test_requests_of_a_server_on_a_stream_are_answered_by_a_post(revision: str) -> None:
    class Handlers(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": [{"uri": "file:///here"}]}

    answered = anyio.Event()

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"})
        await answered.wait()
        await reply.event(result(asked))
        await reply.end()

    async def response(asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        answered.set()

    script = Script(revision, session="abc")
    script.on = {"tools/call": call, "response": response}
    async with connect_scripted(script, handlers=Handlers()) as (client, server):
        await client.call_tool("echo", {})
    (post,) = server.of("response")
    assert post.message["id"] == "s1"
    assert post.message["result"]["roots"] == [{"uri": "file:///here"}]
    assert post.fields["mcp-session-id"] == "abc"


@pytest.mark.requirement("http.multiple-streams")
async def test_calls_are_under_way_at_the_same_time(revision: str) -> None:
    waiting: list[Asked] = []
    all_there = anyio.Event()

    async def call(asked: Asked, reply: Reply) -> None:
        waiting.append(asked)
        if len(waiting) == 20:
            all_there.set()
        await reply.stream()
        await all_there.wait()
        await reply.event(result(asked, content=[{"type": "text", "text": str(asked.id)}]))
        await reply.end()

    script = Script(revision)
    script.on["tools/call"] = call
    texts: set[str] = set()
    async with connect_scripted(script) as (client, _), anyio.create_task_group() as tasks:

        async def one() -> None:
            texts.add((await client.call_tool("echo", {})).content[0].text)

        for _ in range(20):
            tasks.start_soon(one)
    assert len(texts) == 20
