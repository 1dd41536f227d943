"""How calls over HTTP end before their time: cancelled, left, outlived by their session."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kit.asgi_client import BOTH, JSON, SSE, asgi
from kit.asgi_stream import SECONDS
from kit.simulation import on_virtual_clocks
from kit.waiting import WaitingServer
from kit.wire import SESSIONS, cancelled_notification, request
from mcpgen_runtime import Context, Limits, Server
from mcpgen_runtime.server.asgi.settings import Answers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

sessions = pytest.mark.parametrize("revision", SESSIONS)
OLDER = "2025-06-18"


@pytest.mark.requirement("cancellation.stops-processing", "cancellation.no-response")
@sessions
async def test_a_cancelled_call_ends_its_stream_without_an_answer(
    revision: str, waiting: WaitingServer
) -> None:
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with waiting.calling(http, revision) as stream:
            assert (await stream.message())["method"] == "notifications/progress"
            assert (await http.post(cancelled_notification(1))).status == 202
            assert await stream.messages() == []
            await waiting.until(cancelled=1)


@pytest.mark.requirement("http.request-reply-type")
@sessions
@pytest.mark.parametrize(("answers", "accept"), [("auto", BOTH), ("json", BOTH), ("auto", JSON)])
async def test_a_cancelled_silent_call_gets_nothing_in_an_accepted_form(
    revision: str, answers: Answers, accept: str, waiting: WaitingServer
) -> None:
    async with asgi(waiting.server, answers=answers) as http:
        await http.initialize(revision)
        http.fields["accept"] = accept
        async with waiting.calling(http, revision, 1, "wait") as stream:
            await waiting.until(begun=1)
            await http.post(cancelled_notification(1))
            await stream.end()
        expected = (202, None) if accept == JSON else (200, SSE)
        assert (stream.status, stream.fields.get("content-type")) == expected
        assert stream.raw == b""


@sessions
@pytest.mark.parametrize("id", [2, "1", None, "init"])
async def test_cancelling_what_is_no_open_request_changes_nothing(
    revision: str, id: Any, waiting: WaitingServer
) -> None:
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with waiting.calling(http, revision) as stream:
            await stream.message()
            assert (await http.post(cancelled_notification(id))).status == 202
            stranger = http.another()
            await stranger.initialize(revision)
            assert (await stranger.post(cancelled_notification(1))).status == 202
            waiting.go.set()
            assert "result" in await stream.message()


@pytest.mark.requirement("http.disconnect-not-cancel", "cancellation.http-close-is-not-signal")
@pytest.mark.requirement("http.stream-any-disconnect")
@sessions
@pytest.mark.parametrize("tool", ["wait", "speak_and_wait"])
async def test_a_client_that_leaves_does_not_cancel(
    revision: str, tool: str, waiting: WaitingServer
) -> None:
    async with asgi(waiting.server, keep_alive=0.01) as http:
        await http.initialize(revision)
        async with waiting.calling(http, revision, 1, tool) as stream:
            await waiting.until(begun=1)
            stream.disconnect()
            assert (await http.ask(revision, "ping", id=2)).result == {}
            waiting.go.set()
            await waiting.until(returned=1)
            with anyio.fail_after(SECONDS):
                await stream.finished.wait()


@pytest.mark.requirement("http.stream-session-expiry", "http.session-gone-404")
@sessions
@pytest.mark.parametrize("tool", ["speak_and_wait", "ask"])
async def test_the_end_of_a_session_cancels_its_calls_and_streams(
    revision: str, tool: str, waiting: WaitingServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with waiting.calling(http, revision, 1, tool) as stream:
            await stream.message()
            await waiting.until(begun=1)
            assert (await http.delete()).status == 200
            await waiting.until(cancelled=1)
            assert [each for each in await stream.messages() if "method" not in each] == []
        assert [(await http.ask(revision, "ping")).status, (await http.get()).status] == [404, 404]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@sessions
async def test_a_call_without_a_stream_gets_503_when_its_session_ends(
    revision: str, waiting: WaitingServer
) -> None:
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with waiting.calling(http, revision, 1, "wait") as stream:
            await waiting.until(begun=1)
            await http.delete()
            await stream.end()
        assert stream.status == 503  # a client may take 404 as leave to send it again
        assert b"session ended" in stream.raw


@pytest.mark.requirement("http.session-terminate", revisions=("2025-06-18",))
@pytest.mark.one_process  # the clock jumps, while an engine takes real time
@on_virtual_clocks
@pytest.mark.parametrize("leaves", [True, False])
async def test_a_long_call_keeps_its_session_as_long_as_its_client_waits(
    leaves: bool, waiting: WaitingServer
) -> None:
    async with asgi(waiting.server, keep_alive=2.0, limits=Limits(idle=5)) as http:
        await http.initialize(OLDER)
        async with waiting.calling(http, OLDER, 1, "ask") as stream:
            await stream.message()
            question = await stream.message()
            if leaves:
                stream.disconnect()
            await anyio.sleep(20)
            assert waiting.cancelled == [1] * leaves
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {}}
            assert (await http.post(answer)).status == (404 if leaves else 202)
            await stream.finished.wait()


@sessions
async def test_who_does_not_read_is_cut_off_and_holds_nobody_up(revision: str) -> None:
    server, done = Server("tester"), anyio.Event()

    @server.tool()
    async def flood(ctx: Context) -> str:
        for number in range(20):
            await ctx.info("x" * 1000 + str(number))
        done.set()
        return "flooded"

    message = request(revision, "tools/call", {"name": "flood", "arguments": {}})
    async with asgi(server, limits=Limits(send_seconds=0.01)) as http:
        await http.initialize(revision)
        async with http.stream("POST", message) as stream:
            stream.stop_reading()
            with anyio.fail_after(SECONDS):
                await done.wait()
            assert (await http.ask(revision, "ping", id=2)).result == {}
            stream.disconnect()
            with anyio.fail_after(SECONDS):
                await stream.finished.wait()


@pytest.mark.one_process  # the clock jumps, while an engine takes real time
@on_virtual_clocks
@pytest.mark.parametrize("silent", [("GET",), ("POST",), ("GET", "POST")], ids="+".join)
@pytest.mark.parametrize("flooding", [False, True])
@sessions
async def test_streams_that_nobody_reads_end_soon_after_their_server(
    revision: str, silent: tuple[str, ...], flooding: bool
) -> None:
    server = Server("tester", drain=0)

    @server.tool
    async def flood(ctx: Context) -> None:
        await ctx.info("begun")
        for _ in range(20 if flooding else 0):
            await ctx.info("x" * 1000)
        await anyio.sleep_forever()

    message = request(revision, "tools/call", {"name": "flood", "arguments": {}})
    async with asgi(server) as http:
        await http.initialize(revision)
        async with http.stream("GET") as opened, http.stream("POST", message) as stream:
            await stream.message()
            for method, each in (("GET", opened), ("POST", stream)):
                if method in silent:
                    each.stop_reading()
            server.tool(name="added")(flood)  # is announced
            await anyio.wait_all_tasks_blocked()
            began = anyio.current_time()
            await http.lifespans[0].end()
            with anyio.fail_after(SECONDS):
                await opened.finished.wait()
                await stream.finished.wait()
            assert anyio.current_time() - began < 3  # and not `Limits.send_seconds`
