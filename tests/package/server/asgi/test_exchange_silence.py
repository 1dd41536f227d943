"""Calls that say nothing for long before their answer: when the response to the POST begins."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.asgi_client import BOTH, JSON, SSE, asgi, speaking
from kit.asgi_stream import Reply
from kit.simulation import on_virtual_clock
from kit.waiting import WaitingServer
from kit.wire import SESSIONS, facts, request, streamable, text_in

pytestmark = pytest.mark.processes

POLLING = [revision for revision in SESSIONS if facts(revision).http.polling]
WITH_BATCHES = "2025-03-26"
OFTEN = 0.02
COMMENT = b":\n\n"


@pytest.mark.requirement("http.prime-event")
@pytest.mark.parametrize("revision", POLLING)
@pytest.mark.parametrize("back", ["before the answer", "after the answer"])
async def test_a_break_before_the_answer_of_a_silent_call_is_harmless(
    revision: str, back: str, waiting: WaitingServer
) -> None:
    async with speaking(waiting.server, revision, keep_alive=OFTEN) as http:
        async with waiting.calling(http, revision, 1, "wait") as stream:
            await stream.until(COMMENT)
            last = stream.decoder.last_id
            assert last
        if back == "after the answer":
            waiting.go.set()
            await waiting.until(returned=1)
        async with http.stream("GET", fields={"last-event-id": last}) as stream:
            if back == "before the answer":
                await stream.until(COMMENT)
                waiting.go.set()
            assert text_in(await stream.message()) == "done"


@on_virtual_clock
@streamable
@pytest.mark.parametrize(("answers", "accept"), [("auto", JSON), ("sse", JSON), ("json", BOTH)])
async def test_an_answer_that_has_to_be_json_is_waited_for_in_silence(
    revision: str, answers: Any, accept: str, waiting: WaitingServer
) -> None:
    async with speaking(waiting.server, revision, answers=answers) as http:
        http.fields["accept"] = accept
        async with waiting.calling(http, revision, 1, "wait") as stream:
            await anyio.sleep(60)
            assert stream.status == 0
            waiting.go.set()
            await stream.end()
            assert stream.fields["content-type"] == JSON


@on_virtual_clock
@streamable
async def test_a_document_that_is_read_slowly_stays_one_document(
    revision: str, waiting: WaitingServer
) -> None:
    async with speaking(waiting.server, revision, keep_alive=5.0) as http:
        async with waiting.calling(http, revision, 1, "wait") as stream:
            await waiting.until(begun=1)
            stream.stop_reading()
            waiting.go.set()
            await anyio.sleep(20)
            stream.read_on()
            await stream.end()
            await stream.finished.wait()
        reply = Reply(stream)
        assert (reply.text, reply.fields["content-type"]) == ("done", JSON)


@streamable
@pytest.mark.parametrize(("answers", "accept"), [("sse", BOTH), ("auto", SSE)])
async def test_a_stream_on_request_opens_before_the_handler_answers(
    revision: str, answers: Any, accept: str, waiting: WaitingServer
) -> None:
    async with asgi(waiting.server, answers=answers, keep_alive=None) as http:
        http.fields["accept"] = accept
        await http.begin(revision)
        async with waiting.calling(http, revision, 1, "wait", begun=True) as stream:
            assert (stream.status, stream.fields["content-type"]) == (200, SSE)
            await stream.until(b"id: " if revision in POLLING else b"")
            assert waiting.returned == []
            waiting.go.set()
            assert text_in(await stream.message()) == "done"


@on_virtual_clock
async def test_no_answer_of_a_batch_is_lost_while_its_stream_opens(waiting: WaitingServer) -> None:
    plain: dict[str, Any] = {"name": "plain", "arguments": {}}
    calls = [plain, plain, {"name": "wait", "arguments": {"number": 3}}]
    batch = [request(WITH_BATCHES, "tools/call", call, id=id) for id, call in enumerate(calls, 1)]
    async with (
        speaking(waiting.server, WITH_BATCHES, keep_alive=1.0) as http,
        http.stream("POST", batch, begun=False) as stream,
    ):
        stream.stop_reading()
        await waiting.until(begun=1)
        await anyio.sleep_until(5.0)  # the stream waits to be read
        waiting.go.set()
        await waiting.until(returned=1)
        stream.read_on()
        assert sorted(answer["id"] for answer in await stream.messages()) == [1, 2, 3]
