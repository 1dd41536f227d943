"""How a POST in a session is answered: by JSON, or by a stream that says more before the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kit.asgi_client import JSON, SSE, asgi
from kit.asgi_stream import text_in
from kit.wire import SESSIONS, request
from mcpgen_runtime import Context, Server
from mcpgen_runtime.server.asgi.settings import Answers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

sessions = pytest.mark.parametrize("revision", SESSIONS)


def tools() -> Server:
    server = Server("tester")

    @server.tool()
    def plain() -> str:
        return "plain"

    @server.tool()
    async def steps(ctx: Context) -> str:
        for number in range(3):
            await ctx.progress(number, 2)
        await ctx.info("done")
        return "stepped"

    @server.tool()
    async def asks(ctx: Context) -> str:
        result = await ctx.request("roots/list")
        return str(len(result.roots))

    @server.tool()
    async def fails(ctx: Context) -> str:
        await ctx.info("about to fail")
        raise RuntimeError("secret")

    return server


def call(revision: str, name: str, id: int = 1, **more: Any) -> dict[str, Any]:
    return request(revision, "tools/call", {"name": name, "arguments": {}}, id=id, **more)


def answer_to(question: Any, *, roots: int = 0) -> dict[str, Any]:
    """The answer with so many roots."""
    listed = [{"uri": f"file:///{number}"} for number in range(roots)]
    return {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": listed}}


def methods(messages: list[Mapping[str, Any]]) -> list[str]:
    """The kind of each message: its method, or `result` or `error`."""
    return [each.get("method") or ("result" if "result" in each else "error") for each in messages]


@pytest.mark.requirement(
    "http.request-reply-type",
    "http.stream-response",
    "http.stream-server-messages",
    "http.stream-end-after-response",
    "http.stream-not-closed-early",
    "http.event-id-unique",
)
@sessions
async def test_messages_before_a_result_come_on_a_stream_it_ends(revision: str) -> None:
    async with asgi(tools()) as http:
        await http.initialize(revision)
        reply = await http.post(call(revision, "steps", 5, meta={"progressToken": "t"}))
        assert reply.fields["content-type"] == SSE
        assert reply.fields["x-accel-buffering"] == "no"
        assert "no-transform" in reply.fields["cache-control"]
        said = methods(reply.messages)
        assert said == ["notifications/progress"] * 3 + ["notifications/message", "result"]
        assert reply.messages[-1]["id"] == 5
        ids = [event.id for event in reply.events]
        assert len(set(ids)) == len(ids)


@pytest.mark.requirement("http.stream-resumable", "http.event-id")
@sessions
async def test_without_a_store_events_carry_no_ids(revision: str) -> None:
    async with asgi(tools(), events=None) as http:
        await http.initialize(revision)
        reply = await http.post(call(revision, "steps"))
        assert methods(reply.messages) == ["notifications/message", "result"]
        assert b"id:" not in reply.body.replace(b'"id":', b"")
        assert b"retry:" not in reply.body


@pytest.mark.requirement("http.request-reply-type")
@sessions
@pytest.mark.parametrize(
    ("answers", "accept", "kind"),
    [
        ("sse", f"{JSON}, {SSE}", SSE),
        ("sse", "*/*", SSE),
        ("sse", JSON, JSON),
        ("json", f"{JSON}, {SSE}", JSON),
        ("json", SSE, SSE),
        ("auto", f"{JSON}, {SSE}", JSON),
        ("auto", SSE, SSE),
        ("auto", JSON, JSON),
    ],
)
async def test_answers_have_a_chosen_form_among_those_accepted(
    revision: str, answers: Answers, accept: str, kind: str
) -> None:
    async with asgi(tools(), answers=answers) as http:
        http.fields["accept"] = accept
        await http.initialize(revision)
        reply = await http.post(call(revision, "plain", 5))
        assert (reply.fields["content-type"], reply.text) == (kind, "plain")
        assert reply.messages[-1]["id"] == 5
        if kind == JSON:
            assert reply.fields["content-length"] == str(len(reply.body))
            assert b"\n" not in reply.body
        reply = await http.post(call(revision, "steps"))
        assert reply.text == "stepped"
        # Messages cannot precede an answer in JSON.
        has_more = kind == SSE or (answers == "auto" and accept != JSON)
        assert (len(reply.messages) > 1) is has_more


@pytest.mark.requirement("http.stream-server-messages")
@sessions
async def test_a_client_request_comes_on_the_stream_and_gets_a_post(
    revision: str,
) -> None:
    async with asgi(tools()) as http:
        await http.initialize(revision, {"roots": {}})
        async with http.stream("GET") as other, http.stream("POST", call(revision, "asks")) as mine:
            question = await mine.message()
            assert question["method"] == "roots/list"
            reply = await http.post(answer_to(question))
            assert (reply.status, reply.body) == (202, b"")
            assert text_in(await mine.message()) == "0"
            await mine.end()
        assert await other.messages() == []


@sessions
async def test_a_malformed_answer_fails_the_call_waiting_for_it(revision: str) -> None:
    async with asgi(tools()) as http:
        await http.initialize(revision, {"roots": {}})
        async with http.stream("POST", call(revision, "asks")) as mine:
            question = await mine.message()
            reply = await http.post({"jsonrpc": "2.0", "id": question["id"], "result": 5})
            assert reply.status == 400
            assert [each["id"] for each in await mine.messages()] == [1]


@sessions
@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_a_handler_that_fails_is_answered_and_tells_no_secret(
    revision: str, answers: Answers
) -> None:
    async with asgi(tools(), answers=answers) as http:
        await http.initialize(revision)
        reply = await http.post(call(revision, "fails", 8))
        assert reply.status == 200
        assert reply.messages[-1]["id"] == 8
        assert "secret" not in str(reply.messages)
        wrong = await http.post(call(revision, "no such tool", 9))
        assert (wrong.status, wrong.messages[-1]["error"]["code"]) == (200, -32602)


@pytest.mark.requirement("ping.answered")
@sessions
async def test_pings_and_unknown_methods_get_ordinary_answers(revision: str) -> None:
    async with asgi(tools()) as http:
        await http.initialize(revision)
        assert (await http.ask(revision, "ping", id="p")).json["result"] == {}
        reply = await http.ask(revision, "no/such", id=3)
        assert (reply.status, reply.code, reply.json["id"]) == (200, -32601, 3)


@pytest.mark.one_process
@sessions
async def test_an_id_in_use_is_refused_and_its_first_use_answered(
    revision: str,
) -> None:
    async with asgi(tools()) as http:
        await http.initialize(revision, {"roots": {}})
        async with http.stream("POST", call(revision, "asks", 5)) as first:
            question = await first.message()
            again = await http.post(call(revision, "plain", 5))
            assert (again.json["id"], again.code) == (5, -32600)
            stranger = http.another()
            await stranger.initialize(revision)
            assert "result" in (await stranger.post(call(revision, "plain", 5))).json
            await http.post(answer_to(question))
            assert text_in(await first.message()) == "0"
        assert "result" in (await http.post(call(revision, "plain", 5))).json


@pytest.mark.requirement("http.multiple-streams")
@sessions
async def test_several_open_streams_each_get_their_own_result(revision: str) -> None:
    async with asgi(tools()) as http:
        await http.initialize(revision, {"roots": {}})
        async with (
            http.stream("GET") as opened,
            http.stream("POST", call(revision, "asks", 1)) as one,
            http.stream("POST", call(revision, "asks", 2)) as two,
            http.stream("POST", call(revision, "asks", 3)) as three,
        ):
            for stream, count in ((three, 3), (one, 1), (two, 2)):
                question = await stream.message()
                assert (await http.post(answer_to(question, roots=count))).status == 202
                result = await stream.message()
                assert result["id"] == count
                assert text_in(result) == str(count)
            assert not opened.ended
