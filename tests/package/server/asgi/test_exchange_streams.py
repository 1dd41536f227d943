"""How a POST is answered: by JSON, or by a stream that says more before the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from kit.asgi_client import BOTH, JSON, SSE, asgi, fields_of, speaking
from kit.live import server_with
from kit.web import Web
from kit.wire import CHANGED, PER_REQUEST, SESSIONS, modern, request, sessions, streamable, text_in
from mcpgen_runtime import Context

pytestmark = [pytest.mark.processes, pytest.mark.workers]

META = {"progressToken": "p"}


def counts(to: int = 3, **more: Any) -> dict[str, Any]:
    """A call that tells of its progress."""
    return {"name": "counts", "arguments": {"to": to, **more}}


@pytest.mark.requirement("http.request-reply-type")
@streamable
@pytest.mark.parametrize(
    ("answers", "accept", "alone", "after_others"),
    [
        ("auto", JSON, JSON, JSON),
        ("auto", f"{JSON}, {SSE};q=0", JSON, JSON),
        ("auto", "application/*;q=0.5", JSON, JSON),
        ("auto", SSE, SSE, SSE),
        ("auto", f"{SSE}, {JSON};q=0", SSE, SSE),
        ("auto", "text/*", SSE, SSE),
        ("auto", None, JSON, SSE),
        ("auto", BOTH, JSON, SSE),
        ("auto", f"text/html, {JSON}, {SSE};q=0.1", JSON, SSE),
        ("sse", "*/*", SSE, SSE),
        ("sse", BOTH, SSE, SSE),
        ("sse", JSON, JSON, JSON),
        ("json", BOTH, JSON, JSON),
        ("json", SSE, SSE, SSE),
        *(("auto", accept, None, None) for accept in ("text/html", "", f"{JSON};q=0, {SSE};q=0.0")),
    ],
)
async def test_answers_have_a_chosen_form_among_those_accepted(
    revision: str, answers: Any, accept: str | None, alone: str | None, after_others: str | None
) -> None:
    async with speaking(Web().server, revision, answers=answers) as http:
        http.fields["accept"] = accept
        reply = await http.ask(revision, "tools/list")
        if alone is None:
            assert (reply.status, "id" in reply.json) == (406, False)
            assert "Accept" in reply.error["message"]
            return
        assert reply.fields["content-type"] == alone
        assert [each["id"] for each in reply.messages] == [1]
        reply = await http.ask(revision, "tools/call", counts(), meta=META)
        assert (reply.fields["content-type"], reply.text) == (after_others, "counted to 3")
        assert len(reply.messages) == (1 if after_others == JSON else 4)
        if revision in PER_REQUEST:  # an error has a status, which a stream has not
            assert (await http.ask(revision, "no/such")).status == 404


@streamable
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
    async with speaking(Web().server, revision) as http:
        message = request(revision, "tools/list")
        reply = await http.post(message, **(fields_of(revision, message) | fields))
        assert reply.status == status


@pytest.mark.requirement(
    "http.stream-notifications-relate", "http.keepalive-comments", "http.independent-process"
)
@pytest.mark.requirement("http.multiple-streams")
@pytest.mark.one_process
@streamable
async def test_many_streams_at_once_have_what_belongs_to_their_own_request(revision: str) -> None:
    web, silent, heard = Web(), list[int](), dict[int, list[Any]]()
    async with asgi(web.server, keep_alive=0.02) as http, anyio.create_task_group() as tasks:
        await http.begin(revision)

        async def call(number: int) -> None:
            params, meta = counts(2, wait=True), {"progressToken": number}
            asking = http.asking(revision, "tools/call", params, id=number, meta=meta)
            async with asking as stream:
                await stream.until(b":\n\n:\n\n")  # comments
                silent.append(number)
                if len(silent) == 20:
                    web.server.remove_tool("logs")  # a change, which is on no stream of a request
                    web.released.set()
                heard[number] = await stream.messages()

        for number in range(20):
            tasks.start_soon(call, number)
    for number in range(20):
        *told, last = heard[number]
        assert [each["params"]["progressToken"] for each in told] == [number, number]
        assert (last["id"], text_in(last)) == (number, "counted to 2")


async def asks(ctx: Context) -> str:
    return str(len(await ctx.list_roots()))


ASKS = {"name": "asks", "arguments": {}}


@pytest.mark.requirement("http.stream-server-messages", "http.get-stream-messages")
@sessions
@pytest.mark.parametrize("answers", ["auto", "json"])
async def test_a_client_request_comes_on_a_stream_and_is_answered_by_a_post(
    revision: str, answers: Any
) -> None:
    async with speaking(server_with(asks), revision, {"roots": {}}, answers=answers) as http:
        call = http.asking(revision, "tools/call", ASKS, begun=answers == "auto")
        async with http.stream("GET") as opened, call as mine:
            question = await (opened if answers == "json" else mine).message()
            assert question["method"] == "roots/list"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
            reply = await http.post(answer)
            assert (reply.status, reply.body) == (202, b"")
            await mine.end()
            assert b'"0"' in mine.raw
        assert await opened.messages() == []


@pytest.mark.requirement("ping.answered")
@pytest.mark.one_process
@sessions
async def test_an_id_in_use_is_refused_and_its_first_use_answered(revision: str) -> None:
    async with speaking(server_with(asks), revision, {"roots": {}}) as http:
        async with http.asking(revision, "tools/call", ASKS, id=5) as first:
            question = await first.message()
            again = await http.ask(revision, "ping", id=5)
            assert (again.json["id"], again.code) == (5, -32600)
            stranger = http.another()
            await stranger.initialize(revision)
            assert (await stranger.ask(revision, "ping", id=5)).result == {}
            await http.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
            assert text_in(await first.message()) == "0"
        assert (await http.ask(revision, "ping", id=5)).result == {}


@pytest.mark.requirement("http.stream-no-server-requests")
@modern
async def test_without_sessions_a_question_to_the_client_is_in_the_result(revision: str) -> None:
    able: dict[str, Any] = {"roots": {}}
    async with asgi(server_with(asks)) as http:
        reply = await http.ask(revision, "tools/call", ASKS, capabilities=able)
    assert [each for each in reply.messages if "method" in each and "id" in each] == []
    assert reply.result["resultType"] == "input_required"
    assert reply.result["inputRequests"]


@streamable
@pytest.mark.parametrize("answers", ["auto", "json"])
async def test_an_error_after_something_was_said_is_last_and_tells_no_secret(
    revision: str, answers: Any
) -> None:
    web = Web()

    @web.server.method("acme/fails")
    async def fails(ctx: Context) -> None:
        await ctx.progress(1)
        raise RuntimeError("secret")

    async with speaking(web.server, revision, answers=answers) as http:
        reply = await http.ask(revision, "acme/fails", meta=META, id=8)
    assert reply.status == 200
    assert [each.get("id") for each in reply.messages] == [None, 8][answers == "json" :]
    assert reply.messages[-1]["error"]["code"] == -32603
    assert b"secret" not in reply.body


@pytest.mark.one_process
@streamable
async def test_a_trace_has_the_messages_of_streams_and_no_other_event(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, web, changed = tmp_path / "trace", Web(), CHANGED["toolsListChanged"]
    monkeypatch.setenv("MCP_TRACE", str(path))
    async with speaking(web.server, revision, answers="sse") as http:
        await http.ask(revision, "tools/call", counts(), meta=META)
        async with http.listening(revision) as stream:
            web.server.remove_tool("logs")
            while (await stream.message())["method"] != changed:
                pass
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = [(each["direction"], each["message"].get("method")) for each in lines]
    call = told[(at := told.index(("received", "tools/call"))) : at + 5]
    assert call == [told[at], *[("sent", "notifications/progress")] * 3, ("sent", None)]
    assert ("sent", changed) in told
    assert len(told) == at + (6 if revision in SESSIONS else 8)
