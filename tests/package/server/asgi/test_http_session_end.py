"""How calls over HTTP end before their time: cancelled, left, outlived by their session."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kit.asgi_client import BOTH, JSON, SSE, speaking
from kit.asgi_stream import SECONDS
from kit.simulation import on_virtual_clocks
from kit.waiting import WaitingServer
from kit.wire import SESSIONS, cancelled_notification
from mcpgen_runtime import Limits
from mcpgen_runtime.server.asgi.settings import Answers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

sessions = pytest.mark.parametrize("revision", SESSIONS)
OLDER = "2025-06-18"


@pytest.mark.requirement("cancellation.stops-processing", "cancellation.no-response")
@pytest.mark.requirement("http.request-reply-type")
@sessions
@pytest.mark.parametrize(
    ("tool", "answers", "accept"),
    [
        ("speak_and_wait", "auto", BOTH),
        ("wait", "auto", BOTH),
        ("wait", "json", BOTH),
        ("wait", "auto", JSON),
    ],
)
async def test_a_cancelled_call_gets_no_answer_in_an_accepted_form(
    revision: str, tool: str, answers: Answers, accept: str, waiting: WaitingServer
) -> None:
    async with speaking(waiting.server, revision, answers=answers) as http:
        http.fields["accept"] = accept
        async with waiting.calling(http, revision, 1, tool) as stream:
            await waiting.until(begun=1)
            assert (await http.post(cancelled_notification(1))).status == 202
            await stream.end()
            await waiting.until(cancelled=1)
        expected = (202, None) if accept == JSON else (200, SSE)
        assert (stream.status, stream.fields.get("content-type")) == expected
        assert b"result" not in stream.raw


@sessions
@pytest.mark.parametrize("id", [2, "1", None, "init"])
async def test_cancelling_what_is_no_open_request_changes_nothing(
    revision: str, id: Any, waiting: WaitingServer
) -> None:
    async with (
        speaking(waiting.server, revision) as http,
        waiting.calling(http, revision) as stream,
    ):
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
    async with (
        speaking(waiting.server, revision, keep_alive=0.01) as http,
        waiting.calling(http, revision, 1, tool) as stream,
    ):
        await waiting.until(begun=1)
        stream.disconnect()
        assert (await http.ask(revision, "ping", id=2)).result == {}
        waiting.go.set()
        await waiting.until(returned=1)
        with anyio.fail_after(SECONDS):
            await stream.finished.wait()


@pytest.mark.requirement("http.stream-session-expiry", "http.session-gone-404")
@sessions
@pytest.mark.parametrize("tool", ["wait", "speak_and_wait", "ask"])
async def test_the_end_of_a_session_cancels_its_calls_and_streams(
    revision: str, tool: str, waiting: WaitingServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with speaking(waiting.server, revision) as http:
        async with waiting.calling(http, revision, 1, tool) as stream:
            await waiting.until(begun=1)
            assert (await http.delete()).status == 200
            await waiting.until(cancelled=1)
            await stream.end()
        if tool == "wait":  # a client may take 404 as leave to send it again
            assert (stream.status, b"session ended" in stream.raw) == (503, True)
        else:
            assert [each for each in await stream.messages() if "method" not in each] == []
        assert [(await http.ask(revision, "ping")).status, (await http.get()).status] == [404, 404]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.requirement("http.session-terminate", revisions=("2025-06-18",))
@pytest.mark.one_process  # the clock jumps, while an engine takes real time
@on_virtual_clocks
@pytest.mark.parametrize("leaves", [True, False])
async def test_a_long_call_keeps_its_session_as_long_as_its_client_waits(
    leaves: bool, waiting: WaitingServer
) -> None:
    async with (
        speaking(waiting.server, OLDER, keep_alive=2.0, limits=Limits(idle=5)) as http,
        waiting.calling(http, OLDER, 1, "ask") as stream,
    ):
        await stream.message()
        question = await stream.message()
        if leaves:
            stream.disconnect()
        await anyio.sleep(20)
        assert waiting.cancelled == [1] * leaves
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {}}
        assert (await http.post(answer)).status == (404 if leaves else 202)
        await stream.finished.wait()
