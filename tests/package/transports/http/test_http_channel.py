"""A client over Streamable HTTP: what it posts, and what it takes for an answer."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

import anyio
import pytest

from kit.http_script import (
    Script,
    connect_scripted,
    log_message,
    refuse_with,
    result,
    says,
    stay_silent,
    stream_events,
)
from kit.http_server import Asked, Handler, Reply
from kit.live import expect_refusal, handlers_with
from kit.rules import revision_fixture, revisions_holding
from kit.wire import (
    ACKNOWLEDGED,
    CHANGED,
    HANDSHAKE,
    LISTEN,
    PER_REQUEST,
    SESSIONS,
    STREAMABLE,
    UPDATED,
    facts,
    modern,
    opening_result,
    sessions,
    stream_message,
)
from mcpgen_runtime import (
    ClientHandlers,
    HttpStatusError,
    HttpTimeouts,
    ListeningAgain,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResourceUpdated,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
    TransportError,
)

pytestmark = pytest.mark.processes

revision = revision_fixture(STREAMABLE)


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


@pytest.mark.requirement("http.client-handles-both-types", "http-compat.implement-old-revision")
async def test_the_opening_may_be_answered_on_a_stream(revision: str) -> None:
    per_request = revision in PER_REQUEST
    script = Script(revision, session=None if per_request else "abc")
    members = opening_result(revision)

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream(**script.session_fields())
        await reply.event(result(asked, **members))
        await reply.end()

    script.on["server/discover" if per_request else "initialize"] = handler
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
    asked = server.of("tools/list")[0]
    assert asked.fields.get("mcp-session-id") == script.session


@pytest.mark.requirement("http.utf8", "http.client-handles-both-types", "http.comments-ignored")
async def test_json_and_streams_are_utf_8_though_nothing_says_so(revision: str) -> None:
    text = "gr\u00fc\u00dfe \U0001f30d \u4e16\u754c"

    def answer(asked: Asked) -> bytes:
        message = result(asked, content=[{"type": "text", "text": text}])
        return json.dumps(message, ensure_ascii=False).encode()

    async def as_json(asked: Asked, reply: Reply) -> None:
        await reply.json(answer(asked))

    async def as_event(asked: Asked, reply: Reply) -> None:
        begin, end = answer(asked).split(b'"id"')
        await reply.stream()
        await reply.part(b":\n\n: ping\r\ndata: " + begin + b"\n: a\n")
        await reply.part(b'data: "id"' + end + b"\n\n: b\n")
        await reply.end()

    script = Script(revision, once={"tools/call": [as_json, as_event, as_json]})
    async with connect_scripted(script) as (client, server):
        for _ in range(3):
            assert (await client.call_tool("echo", {"text": text})).content[0].text == text
    for asked in server.of("tools/call"):
        assert json.loads(asked.body.decode())["params"]["arguments"] == {"text": text}
    assert len(server.of("tools/call")) == 3


EXPECTED = "expected the answer to tools/call"
NO = b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no"}}'


WITHOUT_ID = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"why"}}'
BAD: dict[str, tuple[Handler, type[McpError], str]] = {
    "a page": (says(b"<html>", kind="text/html"), RemoteProtocolError, "text/html"),
    "no type": (says(b"{}", kind=""), RemoteProtocolError, "no content type"),
    "accepted": (says(b"", 202, ""), RemoteProtocolError, "HTTP 202"),
    "nothing": (says(b""), RemoteProtocolError, EXPECTED),
    "not UTF-8": (says(b'{"\xff"}'), RemoteProtocolError, EXPECTED),
    "an error without id": (says(WITHOUT_ID), RemoteError, "why"),
    "overloaded": (says(b"over \n loaded", 503, "text/plain"), HttpStatusError, "over loaded"),
    "an error without id in an outage": (says(WITHOUT_ID, 503), HttpStatusError, "HTTP 503"),
    "refused with null as id": (says(NO % b"null", 400), RemoteError, "no"),
    "refused with another id": (says(NO % b'"x"', 400), HttpStatusError, "HTTP 400"),
    "no credentials": (says(NO % b"null", 401), HttpStatusError, "HTTP 401"),
    "a redirect": (says(b"", 302), HttpStatusError, "HTTP 302"),
}


@pytest.mark.parametrize(("handler", "kind", "text"), BAD.values(), ids=BAD.keys())
async def test_a_bad_answer_fails_its_call_and_no_other(
    revision: str, handler: Handler, kind: type[McpError], text: str
) -> None:
    script = Script(revision, once={"tools/call": [handler]})
    async with connect_scripted(script) as (client, server):
        with pytest.raises(kind, match=text) as caught:
            await client.call_tool("echo", {})
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert type(caught.value) is kind
    assert server.of("notifications/cancelled") == []


async def answer_in_array(asked: Asked, reply: Reply) -> None:
    """A log message and the answer, in an array."""
    await reply.json([log_message("a"), result(asked)])


@pytest.mark.parametrize("revision", revisions_holding("http.post-body-forms-batch"))
async def test_an_answer_in_a_batch_is_taken_where_there_are_batches(revision: str) -> None:
    heard: list[str] = []
    handlers = handlers_with(logging_message=lambda params: heard.append(params.data))
    as_event = stream_events(lambda asked: [log_message("b"), result(asked)])
    script = Script(revision, once={"tools/call": [answer_in_array, as_event]})
    async with connect_scripted(script, handlers=handlers) as (client, _):
        for _ in range(2):
            assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert heard == ["a", "b"]


@pytest.mark.parametrize("revision", STREAMABLE[1:])
async def test_an_array_is_no_answer_where_there_are_no_batches(revision: str) -> None:
    script = Script(revision, on={"tools/call": answer_in_array})
    async with connect_scripted(script) as (client, _):
        with pytest.raises(RemoteProtocolError, match=EXPECTED):
            await client.call_tool("echo", {})


async def close_at_once(asked: Asked, reply: Reply) -> None:
    """Close the connection without a word."""
    await reply.cut()


async def break_body_off(asked: Asked, reply: Reply) -> None:
    """Break off within the body."""
    await reply.head(200, {"Content-Type": "application/json", "Content-Length": "100"})
    await reply.raw(b'{"jsonrpc":')
    await reply.cut()


NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
LOSSES = {
    "a stream that breaks": stream_events(b'id: 1\ndata: {"jsonrpc":', last=Reply.cut),
    "a stream that ends": stream_events(NOTE),
    "no response": close_at_once,
    "half a body": break_body_off,
}


@pytest.mark.requirement("http.no-sessions", "http.no-resumability", "http-compat.handle-removals")
@modern
async def test_a_session_id_is_ignored_and_nothing_is_opened_or_ended(revision: str) -> None:
    async def listing(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked), Mcp_Session_Id="abc")

    script = Script(revision, on={"tools/list": listing})
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        await client.call_tool("echo", {})
    assert server.order() == ["server/discover", "tools/list", "tools/call"]
    assert all("mcp-session-id" not in asked.fields for asked in server.asked)


@pytest.mark.requirement("http.unknown-method-404-client")
@modern
async def test_a_404_with_a_body_is_a_method_that_is_not_known(revision: str) -> None:
    script = Script(revision, on={"prompts/list": refuse_with(-32601, 404)})
    async with connect_scripted(script) as (client, server):
        with pytest.raises(RemoteError) as caught:
            await client.list_prompts()
        await client.list_tools()
    assert caught.value.code == -32601
    assert server.order() == ["server/discover", "prompts/list", "tools/list"]


@pytest.mark.requirement("http.broken-stream-reissue", "http.no-resumability")
@pytest.mark.requirement("jsonrpc.reissue-with-new-id")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@modern
async def test_safe_requests_alone_are_retried_with_a_new_id(revision: str, loss: Handler) -> None:
    script = Script(revision, once={"tools/list": [loss, loss], "tools/call": [loss]})
    async with connect_scripted(script) as (client, server):
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
        with pytest.raises(ResponseLostError, match="before the answer"):
            await client.call_tool("echo", {})
        assert len(server.of("tools/call")) == 1
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    lists, calls = server.of("tools/list"), server.of("tools/call")
    assert [len({each.id for each in asked}) for asked in (lists, calls)] == [3, 2]
    assert {each.verb for each in server.asked} == {"POST"}
    assert all("last-event-id" not in each.fields for each in server.asked)


@pytest.mark.requirement("http.client-cancels-by-closing", "custom-transport.cancellation-defined")
@pytest.mark.requirement("http.timeout-closes-stream")
@pytest.mark.parametrize("begun", [False, True], ids=["no head", "stream"])
@modern
async def test_giving_up_a_call_closes_its_connection_and_says_nothing(
    revision: str, begun: bool
) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        if begun:
            await reply.stream()
            await reply.part(b":\n\n")
        there.set()
        await reply.gone()

    there = anyio.Event()
    async with connect_scripted(Script(revision, on={"tools/call": call})) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {})
            await there.wait()
            tasks.cancel_scope.cancel()
        await server.until_left(1)
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.2)
        await server.until_left(2)
        await client.list_tools()
    assert server.order() == ["server/discover", "tools/call", "tools/call", "tools/list"]


@pytest.mark.requirement("http.client-sends-no-responses", "custom-transport.directions")
@modern
async def test_requests_of_a_server_on_a_stream_are_not_answered(revision: str) -> None:
    roots = handlers_with(list_roots=lambda params: pytest.fail("it was asked for"))
    methods = enumerate(("roots/list", "ping"), 1)
    requests = [{"jsonrpc": "2.0", "id": id, "method": method} for id, method in methods]
    script = Script(revision, on={"tools/call": stream_events(*requests, result)})
    async with connect_scripted(script, handlers=roots) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        await client.list_tools()
    assert server.order() == ["server/discover", "tools/call", "tools/list"]


RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
FORM = {"type": "object", "properties": {"city": {"type": "string"}}}
PARAMS = {"message": "Which city?", "requestedSchema": FORM, "_meta": RELATED}
QUESTION = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": PARAMS}
NOW = "2025-11-25T00:00:00Z"
TASK = {"taskId": "t1", "createdAt": NOW, "lastUpdatedAt": NOW, "ttl": 60000}


@pytest.mark.requirement("http.tasks-any-stream")
@pytest.mark.parametrize("revision", revisions_holding("http.tasks-any-stream"))
@pytest.mark.parametrize("stream", ["GET", "tasks/get"])
async def test_a_question_of_a_task_is_answered_on_any_stream(revision: str, stream: str) -> None:
    questions: list[Any] = []
    is_made, is_answered = anyio.Event(), anyio.Event()

    class User(ClientHandlers):
        async def elicit(self, params: Any, ctx: Any) -> Any:
            questions.append((params.message, dict(ctx.meta)))
            return {"action": "accept", "content": {"city": "Oslo"}}

    async def make_task(asked: Asked, reply: Reply) -> None:
        made = {"task": {**TASK, "status": "working"}}
        await reply.json({"jsonrpc": "2.0", "id": asked.id, "result": made})
        is_made.set()

    async def ask(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await is_made.wait()
        await reply.event(QUESTION)
        await is_answered.wait()
        if stream != "GET":
            await reply.event(result(asked, **TASK, status="completed"))
        await reply.end()

    async def take(asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        is_answered.set()

    script = Script(revision, "abc", on={"tools/call": make_task, "response": take, stream: ask})
    script.capabilities["tasks"] = {"requests": {"tools": {"call": {}}}}
    async with connect_scripted(script, handlers=User()) as (client, server):
        call = {"name": "plan", "arguments": {}, "task": {"ttl": 60000}}
        made = await client.request("tools/call", call)
        assert made.task.task_id == "t1"
        if stream != "GET":
            assert (await client.request("tasks/get", {"taskId": "t1"})).status == "completed"
        (answer,) = await server.until("response")
    assert questions == [("Which city?", RELATED)]
    content = {"action": "accept", "content": {"city": "Oslo"}}
    assert answer.message == {"jsonrpc": "2.0", "id": "q", "result": content}
    assert answer.fields["mcp-session-id"] == "abc"


TOOLS_CHANGED = CHANGED["toolsListChanged"]
AT_ONCE = (0.0, 0.0, 0.0)
FOR_A_WHILE = (0.05,) * 100
IDLE = 0.1


SOON = Timeouts(http=HttpTimeouts(first_pause=0.01, longest_pause=0.01))
scripted = partial(connect_scripted, timeouts=SOON)


class Listened(Script):
    """A server that holds streams open: one of each session, and those of subscriptions."""

    def __init__(self, revision: str, **planned: Any) -> None:
        super().__init__(revision, "s" if revision in SESSIONS else None, **planned)
        self.streams: list[tuple[Asked, Reply]] = []
        self.until_cut = anyio.Event()
        self.kind = "GET" if revision in SESSIONS else LISTEN
        self.on[self.kind] = self.keep_open

    async def keep_open(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream, and keep it open until the client goes."""
        await self.begin(asked, reply)
        await reply.gone()

    async def break_later(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream that will break."""
        await self.begin(asked, reply)
        await self.until_cut.wait()
        await reply.cut()

    async def begin(self, asked: Asked, reply: Reply) -> None:
        """Begin a stream; agree to all that a subscription wants."""
        self.streams.append((asked, reply))
        await reply.stream()
        if asked.what == LISTEN:
            wanted = asked.message["params"]["notifications"]
            await self.tell(ACKNOWLEDGED, notifications=wanted)

    async def tell(self, method: str = TOOLS_CHANGED, **params: Any) -> None:
        """Tell the last stream something; that the tools have changed by default."""
        asked, reply = self.streams[-1]
        if self.revision in SESSIONS:
            await reply.event({"jsonrpc": "2.0", "method": method})
        else:
            await reply.event(stream_message(self.revision, method, asked.id, **params))


@pytest.mark.requirement("subscriptions.cancel-http", "subscriptions.client-demultiplexes")
@modern
async def test_a_subscription_is_a_stream_that_closing_alone_ends(revision: str) -> None:
    script = Listened(revision)
    async with scripted(script) as (client, server):
        async with client.listen(tools=True) as first:
            async with client.listen(uris=["memo://one"]) as second:
                await script.tell(UPDATED, uri="memo://one")
                assert await anext(second) == ResourceUpdated("memo://one")
            await server.until_left(1)
            script.streams.pop()
            await script.tell()
            assert await anext(first) == ToolsChanged()
        await server.until_left(2)
        await client.list_tools()
    assert server.order() == ["server/discover", LISTEN, LISTEN, "tools/list"]
    for asked in server.of(LISTEN):
        assert asked.fields[str(facts(revision).headers.method).lower()] == LISTEN


@pytest.mark.requirement("subscriptions.unexpected-end")
@pytest.mark.parametrize("end", [Reply.cut, Reply.end], ids=["cut", "ended without a result"])
@modern
async def test_a_stream_that_breaks_is_asked_for_again_under_a_new_id(
    revision: str, end: Any
) -> None:
    async def listen(asked: Asked, reply: Reply) -> None:
        await script.begin(asked, reply)
        await end(reply)

    script = Listened(revision, once={LISTEN: [listen, listen]})
    async with scripted(script) as (client, server):
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            assert await anext(changes) == ListeningAgain()
            assert await anext(changes) == ListeningAgain()
            await script.tell()
            assert await anext(changes) == ToolsChanged()
        asked = server.of(LISTEN)
    assert len({each.id for each in asked}) == 3
    assert [each.message["params"]["notifications"] for each in asked] == [
        {"toolsListChanged": True}
    ] * 3


@pytest.mark.requirement("subscriptions.pattern-mandatory")
@modern
async def test_a_server_without_subscriptions_is_asked_once(revision: str) -> None:
    script = Listened(revision, once={LISTEN: [refuse_with(-32601, 404), says(b"", 403)]})
    async with scripted(script) as (client, server):
        for refusal in (RemoteError, HttpStatusError):
            with pytest.raises(refusal):
                await expect_refusal(client.listen(tools=True))
        assert len(server.of(LISTEN)) == 2


async def test_a_server_that_stays_away_is_an_error_of_the_iteration(revision: str) -> None:
    script = Listened(revision)
    async with scripted(script) as (client, server):
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            await server.until(script.kind)
            server.kill()
            with anyio.fail_after(10), pytest.raises(TransportError):
                await anext(changes)
        await server.start()
        await client.list_tools()


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_line_that_falls_silent_is_listened_on_again_or_an_error(
    revision: str, comes_back: bool
) -> None:
    async def fall_silent(asked: Asked, reply: Reply) -> None:
        if comes_back:
            script.on.pop(asked.what, None)
            script.on[script.kind] = script.keep_open
        await stay_silent(asked, reply)

    script = Listened(revision)
    retries = FOR_A_WHILE if comes_back else FOR_A_WHILE[:4]
    async with (
        scripted(script) as (client, server),
        client.listen(tools=True, idle_seconds=IDLE, retry_seconds=retries) as changes,
    ):
        await server.until(script.kind)
        sign_of_life = "ping" if revision in HANDSHAKE else "server/discover"
        script.on[sign_of_life] = script.on[script.kind] = fall_silent
        with anyio.fail_after(10):
            if not comes_back:
                with pytest.raises((TransportError, RequestTimeoutError)):
                    await anext(changes)
                return
            assert await anext(changes) == ListeningAgain()
            await script.tell()
            assert await anext(changes) == ToolsChanged()


@sessions
@pytest.mark.parametrize("status", [503, 409])
async def test_a_session_stream_that_is_reopened_is_listened_to_again(
    revision: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script = Listened(revision)
    script.once["GET"] = [script.break_later, *[says(b"", status)] * 3]
    async with scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, retry_seconds=FOR_A_WHILE) as changes:
            script.until_cut.set()
            with anyio.fail_after(10):
                assert await anext(changes) == ListeningAgain()
                await script.tell()
                assert await anext(changes) == ToolsChanged()
    assert caplog.text.count("the stream of events is gone") == 3


@sessions
@pytest.mark.parametrize(
    ("status", "kind"),
    [(503, HttpStatusError), (405, HttpStatusError), (409, ResponseLostError)],
)
async def test_a_session_stream_that_is_not_reopened_ends_listening(
    revision: str, status: int, kind: type[TransportError]
) -> None:
    script = Listened(revision)
    script.once["GET"] = [script.break_later]
    script.on["GET"] = says(b"", status)
    async with scripted(script) as (client, server):
        await server.until("GET")
        async with client.listen(tools=True, retry_seconds=FOR_A_WHILE[:4]) as changes:
            script.until_cut.set()
            with anyio.fail_after(10), pytest.raises(kind, match=f"HTTP {status}"):
                await anext(changes)
        with pytest.raises(kind):
            await expect_refusal(client.listen(tools=True, retry_seconds=FOR_A_WHILE[:4]))
        await client.list_tools()
