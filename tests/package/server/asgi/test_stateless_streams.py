"""A POST answered by a stream: when, with what on it, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpgen_runtime.server.asgi.settings import Answers
from mcpgen_runtime.server.chosen import Context
from package.asgi_client import BOTH, SESSION, asgi
from package.rules import revisions_holding
from package.server.asgi.web import Web
from package.wire import PER_REQUEST

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("revision", PER_REQUEST),
    pytest.mark.processes,
]

JSON, EVENTS = "application/json", "text/event-stream"
COUNTS = {"name": "counts", "arguments": {"to": 3}}


def progress_meta(**more: Any) -> dict[str, Any]:
    return {"progressToken": "p", **more}


@pytest.mark.requirement(
    "http.request-reply-type",
    "http.stream-notifications",
    "http.final-response-ends-stream",
    "http.x-accel-buffering",
    "http.no-resumability",
    "http.no-sessions",
)
async def test_messages_before_the_result_make_the_answer_a_stream(revision: str) -> None:
    async with asgi(Web().server) as http:
        reply = await http.ask(revision, "tools/call", COUNTS, meta=progress_meta())
    assert (reply.status, reply.fields["content-type"]) == (200, EVENTS)
    assert reply.fields["x-accel-buffering"] == "no"
    assert "no-cache" in reply.fields["cache-control"]
    assert SESSION not in reply.fields
    *told, last = reply.messages
    assert [each["params"]["progress"] for each in told] == [1, 2, 3]
    assert {each["params"]["progressToken"] for each in told} == {"p"}
    assert last["result"]["content"][0]["text"] == "counted to 3"
    assert b"id:" not in reply.body
    assert b"retry:" not in reply.body


@pytest.mark.parametrize("accept", [JSON, f"{JSON}, {EVENTS};q=0", "application/*;q=0.5"])
async def test_a_client_that_takes_no_events_gets_the_result_alone(
    revision: str, accept: str
) -> None:
    async with asgi(Web().server) as http:
        http.fields["accept"] = accept
        reply = await http.ask(revision, "tools/call", COUNTS, meta=progress_meta())
    assert reply.json["result"]["content"][0]["text"] == "counted to 3"


@pytest.mark.parametrize("accept", [EVENTS, f"{EVENTS}, {JSON};q=0", "text/*"])
async def test_a_client_that_takes_events_only_gets_results_as_such(
    revision: str, accept: str
) -> None:
    async with asgi(Web().server) as http:
        http.fields["accept"] = accept
        reply = await http.ask(revision, "tools/list")
        assert [each["id"] for each in reply.messages] == [1]
        assert reply.fields["content-type"] == EVENTS
        refused = await http.ask(revision, "no/such")
        assert refused.status == 404  # an error has a status, which a stream has not


@pytest.mark.parametrize("accept", [None, "*/*", BOTH, f"text/html, {JSON}, {EVENTS};q=0.1"])
async def test_a_client_that_takes_both_gets_json(revision: str, accept: str | None) -> None:
    async with asgi(Web().server) as http:
        http.fields["accept"] = accept
        assert (await http.ask(revision, "tools/list")).fields["content-type"] == JSON


@pytest.mark.parametrize("accept", ["text/html", "", "image/*", f"{JSON};q=0, {EVENTS};q=0.0"])
async def test_a_client_that_takes_neither_is_refused(revision: str, accept: str) -> None:
    async with asgi(Web().server) as http:
        http.fields["accept"] = accept
        reply = await http.ask(revision, "tools/list")
    assert (reply.status, "id" in reply.json) == (406, False)
    assert "Accept" in reply.error["message"]


@pytest.mark.parametrize("type", [None, "text/plain", "application/jsonp", ""])
async def test_a_body_of_another_type_is_refused(revision: str, type: str | None) -> None:
    async with asgi(Web().server) as http:
        http.fields["content-type"] = type
        reply = await http.post({}, **{"content-type": type})
    assert reply.status == 415


@pytest.mark.parametrize(("coding", "status"), [("gzip", 415), ("identity", 200)])
async def test_a_body_comes_as_it_is(revision: str, coding: str, status: int) -> None:
    async with asgi(Web().server) as http:
        http.fields["content-encoding"] = coding
        assert (await http.ask(revision, "tools/list")).status == status


async def test_a_trace_has_messages_in_both_directions(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace"
    monkeypatch.setenv("MCP_TRACE", str(path))
    async with asgi(Web().server) as http:
        await http.ask(revision, "tools/call", COUNTS, meta=progress_meta())
        await http.post(
            {"jsonrpc": "2.0", "method": "notifications/acme"}, **{"mcp-protocol-version": revision}
        )
        await http.post(b"{")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = [(line["direction"], line["message"]) for line in lines]
    assert [direction for direction, _ in told] == [
        "received",
        *["sent"] * 4,
        "received",
        "received",
        "sent",
    ]
    assert told[-2] == ("received", "{")
    assert told[4][1]["result"]["content"][0]["text"] == "counted to 3"


@pytest.mark.parametrize(
    ("answers", "accept", "type"),
    [
        ("json", BOTH, JSON),
        ("sse", BOTH, EVENTS),
        ("sse", "*/*", EVENTS),
        ("json", EVENTS, EVENTS),
        ("sse", JSON, JSON),
    ],
)
async def test_answers_have_a_chosen_form_among_those_accepted(
    revision: str, answers: Answers, accept: str, type: str
) -> None:
    async with asgi(Web().server, answers=answers) as http:
        http.fields["accept"] = accept
        for params in (COUNTS, {"name": "logs"}):
            reply = await http.ask(revision, "tools/call", params, meta=progress_meta())
            assert reply.fields["content-type"] == type
            assert "result" in reply.messages[-1]


@pytest.mark.requirement("http.stream-notifications-relate")
async def test_each_stream_has_what_belongs_to_its_own_request(revision: str) -> None:
    web = Web()
    async with asgi(web.server) as http:
        heard: dict[str, list[Any]] = {}

        async def call(token: str) -> None:
            params = {"name": "counts", "arguments": {"to": 2, "wait": True}}
            reply = await http.ask(revision, "tools/call", params, meta={"progressToken": token})
            heard[token] = reply.messages

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "a")
            tasks.start_soon(call, "b")
            await web.begun.wait()
            web.server.remove_tool("logs")  # a change, which is on no stream of a request
            web.released.set()
    for token, (*told, last) in heard.items():
        assert [each["params"]["progressToken"] for each in told] == [token, token]
        assert "result" in last


@pytest.mark.requirement("http.stream-no-server-requests")
async def test_a_question_to_the_client_is_in_the_result(revision: str) -> None:
    web = Web()

    @web.server.tool()
    async def asks(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.list_roots()
        return "never"

    async with asgi(web.server) as http:
        reply = await http.ask(
            revision,
            "tools/call",
            {"name": "asks"},
            meta=progress_meta(),
            capabilities={"roots": {}},
        )
    assert [each for each in reply.messages if "method" in each and "id" in each] == []
    assert reply.result["resultType"] == "input_required"
    assert reply.result["inputRequests"]


async def test_an_error_after_something_was_said_is_the_last_event(revision: str) -> None:
    web = Web()

    @web.server.method("acme/fails")
    async def fails(ctx: Context) -> None:
        await ctx.progress(1)
        raise RuntimeError

    async with asgi(web.server) as http:
        reply = await http.ask(revision, "acme/fails", meta=progress_meta())
    assert reply.status == 200
    assert [each.get("error", {}).get("code") for each in reply.messages] == [None, -32603]


@pytest.mark.requirement("http.keepalive-comments")
async def test_a_silent_stream_gets_comments(revision: str) -> None:
    web = Web()
    params = {"name": "counts", "arguments": {"to": 1, "wait": True}}
    async with (
        asgi(web.server, keep_alive=0.02) as http,
        http.asking(revision, "tools/call", params, meta=progress_meta()) as stream,
    ):
        await stream.message()
        await stream.until(b":\n\n:\n\n")
        web.released.set()
        assert "result" in await stream.message()


@pytest.mark.requirement("http.independent-process")
@pytest.mark.parametrize("at_once", [50])
async def test_many_streams_at_once(revision: str, at_once: int) -> None:
    web = Web()
    params = {"name": "counts", "arguments": {"to": 2, "wait": True}}
    ended: list[int] = []

    async with asgi(web.server) as http, anyio.create_task_group() as tasks:

        async def call(number: int) -> None:
            async with http.asking(
                revision, "tools/call", params, id=number, meta=progress_meta()
            ) as stream:
                *_, last = await stream.messages()
                ended.append(last["id"])

        for number in range(at_once):
            tasks.start_soon(call, number)
        await web.begun.wait()
        web.released.set()
    assert sorted(ended) == list(range(at_once))


assert set(PER_REQUEST) == set(revisions_holding("http.no-resumability"))
