"""A POST answered by a stream: when, with what on it, and how it ends."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.asgi_client import BOTH, SESSION, asgi, fields_of
from kit.asgi_stream import text_in
from kit.rules import revisions_holding
from kit.web import Web
from kit.wire import PER_REQUEST, request
from mcpgen_runtime import Context

pytestmark = [
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
    assert text_in(last) == "counted to 3"
    assert b"id:" not in reply.body
    assert b"retry:" not in reply.body


@pytest.mark.parametrize(
    ("accept", "alone", "after_others"),
    [
        (JSON, JSON, JSON),
        (f"{JSON}, {EVENTS};q=0", JSON, JSON),
        ("application/*;q=0.5", JSON, JSON),
        (EVENTS, EVENTS, EVENTS),
        (f"{EVENTS}, {JSON};q=0", EVENTS, EVENTS),
        ("text/*", EVENTS, EVENTS),
        (None, JSON, EVENTS),
        ("*/*", JSON, EVENTS),
        (BOTH, JSON, EVENTS),
        (f"text/html, {JSON}, {EVENTS};q=0.1", JSON, EVENTS),
        *((accept, None, None) for accept in ("text/html", "", "image/*")),
        (f"{JSON};q=0, {EVENTS};q=0.0", None, None),
    ],
)
async def test_a_client_gets_what_it_takes(
    revision: str, accept: str | None, alone: str | None, after_others: str | None
) -> None:
    async with asgi(Web().server) as http:
        http.fields["accept"] = accept
        reply = await http.ask(revision, "tools/list")
        if alone is None:
            assert (reply.status, "id" in reply.json) == (406, False)
            assert "Accept" in reply.error["message"]
            return
        assert reply.fields["content-type"] == alone
        assert [each["id"] for each in reply.messages] == [1]
        reply = await http.ask(revision, "tools/call", COUNTS, meta=progress_meta())
        assert (reply.fields["content-type"], reply.text) == (after_others, "counted to 3")
        # An error has a status, which a stream has not.
        assert (await http.ask(revision, "no/such")).status == 404


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        *(({"content-type": kind}, 415) for kind in (None, "text/plain", "application/jsonp", "")),
        ({"content-encoding": "gzip"}, 415),
        ({"content-encoding": "identity"}, 200),
    ],
)
async def test_a_body_is_json_as_it_is(
    revision: str, fields: dict[str, str | None], status: int
) -> None:
    async with asgi(Web().server) as http:
        message = request(revision, "tools/list")
        reply = await http.post(message, **(fields_of(revision, message) | fields))
        assert reply.status == status


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


@pytest.mark.requirement("http.keepalive-comments", "http.independent-process")
async def test_many_streams_at_once_get_comments_and_their_own_result(revision: str) -> None:
    web, silent, ended = Web(), list[int](), list[int]()
    params = {"name": "counts", "arguments": {"to": 2, "wait": True}}

    async with asgi(web.server, keep_alive=0.02) as http, anyio.create_task_group() as tasks:

        async def call(number: int) -> None:
            asking = http.asking(revision, "tools/call", params, id=number, meta=progress_meta())
            async with asking as stream:
                await stream.until(b":\n\n:\n\n")
                silent.append(number)
                if len(silent) == 50:
                    web.released.set()
                *_, last = await stream.messages()
                ended.append(last["id"])

        for number in range(50):
            tasks.start_soon(call, number)
    assert sorted(ended) == list(range(50))


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


assert set(PER_REQUEST) == set(revisions_holding("http.no-resumability"))
