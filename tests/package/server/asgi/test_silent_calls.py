"""Calls that say nothing for long before their answer: when the response to the POST begins."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen_runtime import Server
from mcpgen_runtime.framing.sse import encode_comment
from mcpgen_runtime.server.asgi.settings import Answers
from package.asgi_client import BOTH, JSON, SSE, Http, asgi
from package.asgi_stream import SECONDS
from package.faults import EACH
from package.wire import PER_REQUEST, SESSIONS, cancelled_notification, facts, request

pytestmark = pytest.mark.processes

each = pytest.mark.parametrize("revision", EACH)
POLLING = [revision for revision in SESSIONS if facts(revision).http.polling]
WITH_BATCHES = "2025-03-26"
OFTEN = 0.02
COMMENT = encode_comment()


class Silent:
    """A server with tools that say nothing until they are let go.

    Attributes:
        server: The server.
        begun: Set once a call has begun.
        go: Set to let the calls end.
        ended: Set once a call has ended.
        outcome: How it ended.
    """

    def __init__(self) -> None:
        self.server = Server("tester")
        self.begun, self.go, self.ended = anyio.Event(), anyio.Event(), anyio.Event()
        self.outcome = ""

        @self.server.tool()
        async def wait() -> str:
            self.begun.set()
            try:
                await self.go.wait()
                self.outcome = "done"
                return "done"
            except BaseException:
                self.outcome = "cancelled"
                raise
            finally:
                self.ended.set()

        @self.server.tool()
        async def plain() -> str:
            return "plain"

        @self.server.method("acme/fails")
        async def fails() -> None:
            self.begun.set()
            await self.go.wait()
            raise RuntimeError("secret")

    async def end(self) -> str:
        """Wait for the end of a call; how it ended."""
        with anyio.fail_after(SECONDS):
            await self.ended.wait()
        return self.outcome


async def open_session(http: Http, revision: str) -> None:
    """Open a session in revisions that have sessions."""
    if revision in SESSIONS:
        await http.initialize(revision)


@pytest.mark.requirement("http.keepalive-comments", "http.x-accel-buffering")
@each
async def test_a_silent_call_gets_a_stream_with_comments_first(revision: str) -> None:
    silent = Silent()
    async with asgi(silent.server, keep_alive=OFTEN) as http:
        await open_session(http, revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}) as stream:
            assert (stream.status, stream.fields["content-type"]) == (200, SSE)
            assert stream.fields["x-accel-buffering"] == "no"
            await stream.until(COMMENT * 2)
            assert silent.outcome == ""
            silent.go.set()
            assert (await stream.message())["result"]["content"][0]["text"] == "done"
            await stream.end()


@pytest.mark.requirement("http.prime-event")
@pytest.mark.parametrize("revision", POLLING)
@pytest.mark.parametrize("back", ["before the answer", "after the answer"])
async def test_a_break_before_the_answer_of_a_silent_call_is_harmless(
    revision: str, back: str
) -> None:
    silent = Silent()
    async with asgi(silent.server, keep_alive=OFTEN) as http:
        await http.initialize(revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}) as stream:
            await stream.until(COMMENT)
            last = stream.decoder.last_id
            assert last
        if back == "after the answer":
            silent.go.set()
            assert await silent.end() == "done"
        async with http.stream("GET", fields={"last-event-id": last}) as stream:
            if back == "before the answer":
                await stream.until(COMMENT)
                silent.go.set()
            assert (await stream.message())["result"]["content"][0]["text"] == "done"


@each
async def test_an_answer_that_takes_less_than_keep_alive_is_json(revision: str) -> None:
    silent = Silent()
    async with asgi(silent.server) as http, anyio.create_task_group() as tasks:
        await open_session(http, revision)

        async def let_go() -> None:
            await silent.begun.wait()
            silent.go.set()

        tasks.start_soon(let_go)
        reply = await http.ask(revision, "tools/call", {"name": "wait"})
        assert reply.json["result"]["content"][0]["text"] == "done"


@each
@pytest.mark.parametrize(("answers", "accept"), [("auto", JSON), ("sse", JSON), ("json", BOTH)])
async def test_an_answer_that_has_to_be_json_is_waited_for_in_silence(
    revision: str, answers: Answers, accept: str
) -> None:
    silent, noisy = Silent(), Silent()
    async with (
        asgi(silent.server, keep_alive=OFTEN, answers=answers) as http,
        asgi(noisy.server, keep_alive=OFTEN) as other,
    ):
        http.fields["accept"] = accept
        await open_session(http, revision)
        await open_session(other, revision)
        params = {"name": "wait"}
        async with http.asking(revision, "tools/call", params, begun=False) as stream:
            await silent.begun.wait()
            async with other.asking(revision, "tools/call", params) as comments:
                await comments.until(COMMENT * 3)
            assert stream.status == 0
            silent.go.set()
            await stream.end()
            assert stream.fields["content-type"] == JSON


@each
@pytest.mark.parametrize(("answers", "accept"), [("sse", BOTH), ("auto", SSE)])
async def test_a_stream_on_request_opens_before_the_handler_answers(
    revision: str, answers: Answers, accept: str
) -> None:
    silent = Silent()
    async with asgi(silent.server, answers=answers, keep_alive=None) as http:
        http.fields["accept"] = accept
        await open_session(http, revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}) as stream:
            assert (stream.status, stream.fields["content-type"]) == (200, SSE)
            await stream.until(b"id: " if revision in POLLING else b"")
            assert silent.outcome == ""
            silent.go.set()
            assert (await stream.message())["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_immediate_refusals_have_their_status_despite_streaming(
    revision: str,
) -> None:
    async with asgi(Silent().server, answers="sse", keep_alive=OFTEN) as http:
        names = facts(revision).headers
        message = request(revision, "tools/call", {"name": "wait"})
        assert names.protocol_version is not None
        reply = await http.post(message, **{names.protocol_version: revision})
        assert reply.status == facts(revision).http.header_mismatch
        reply = await http.ask(revision, "acme/nothing")
        assert reply.status == facts(revision).http.unknown_method


@pytest.mark.parametrize("revision", SESSIONS)
async def test_an_unknown_session_is_refused_despite_streaming(revision: str) -> None:
    async with asgi(Silent().server, answers="sse", keep_alive=OFTEN) as http:
        await http.initialize(revision)
        message = request(revision, "tools/call", {"name": "wait"})
        assert (await http.post(message, **{"mcp-session-id": "unknown"})).status == 404


@each
async def test_an_error_after_a_long_silence_ends_the_stream(
    revision: str,
) -> None:
    silent = Silent()
    async with asgi(silent.server, keep_alive=OFTEN) as http:
        await open_session(http, revision)
        async with http.asking(revision, "acme/fails") as stream:
            await stream.until(COMMENT)
            silent.go.set()
            (answer,) = await stream.messages()
            assert (answer["id"], answer["error"]["code"]) == (1, -32603)


@pytest.mark.requirement("http.disconnect-not-cancel", "cancellation.http-close-is-not-signal")
@each
async def test_leaving_a_silent_call_cancels_where_closing_means_that(
    revision: str,
) -> None:
    silent = Silent()
    async with asgi(silent.server, keep_alive=OFTEN) as http:
        await open_session(http, revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}) as stream:
            await stream.until(COMMENT)
        if revision in SESSIONS:
            assert (await http.ask(revision, "ping", id=2)).result == {}
            silent.go.set()
            assert await silent.end() == "done"
        else:
            assert await silent.end() == "cancelled"


@pytest.mark.requirement("cancellation.stops-processing", "cancellation.no-response")
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_cancelled_silent_call_ends_its_stream_without_answer(
    revision: str,
) -> None:
    silent = Silent()
    async with asgi(silent.server, keep_alive=OFTEN) as http:
        await http.initialize(revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}) as stream:
            await stream.until(COMMENT)
            assert (await http.post(cancelled_notification(1))).status == 202
            assert await stream.messages() == []
            assert await silent.end() == "cancelled"


def batch(*names: str) -> list[dict[str, Any]]:
    """Calls of tools, with ids from 1 on."""
    calls = enumerate(names, 1)
    return [request(WITH_BATCHES, "tools/call", {"name": name}, id=id) for id, name in calls]


async def test_ready_answers_of_a_batch_come_when_its_stream_opens() -> None:
    silent = Silent()
    async with asgi(silent.server, keep_alive=OFTEN) as http:
        await http.initialize(WITH_BATCHES)
        async with http.stream("POST", batch("plain", "wait", "plain")) as stream:
            await stream.until(COMMENT)
            assert {(await stream.message())["id"] for _ in range(2)} == {1, 3}
            silent.go.set()
            assert [answer["id"] for answer in await stream.messages()] == [2]


async def test_no_answer_of_a_batch_is_lost_while_its_stream_opens() -> None:
    silent, noisy = Silent(), Silent()
    async with (
        asgi(silent.server, keep_alive=OFTEN) as http,
        asgi(noisy.server, keep_alive=OFTEN) as other,
    ):
        await http.initialize(WITH_BATCHES)
        await other.initialize(WITH_BATCHES)
        message = batch("plain", "plain", "wait")
        async with http.stream("POST", message, begun=False) as stream:
            stream.stop_reading()
            await silent.begun.wait()
            async with other.asking(WITH_BATCHES, "tools/call", {"name": "wait"}) as comments:
                await comments.until(COMMENT * 3)
            silent.go.set()
            await silent.end()
            stream.read_on()
            assert sorted(answer["id"] for answer in await stream.messages()) == [1, 2, 3]
