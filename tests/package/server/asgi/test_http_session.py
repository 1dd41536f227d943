"""Sessions over HTTP: the stream that a GET opens, and how calls end before their time."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kit.asgi_client import BOTH, JSON, SSE, speaking
from kit.asgi_stream import SECONDS, Stream
from kit.asgi_wire import Wire
from kit.simulation import on_virtual_clocks
from kit.waiting import WaitingServer
from kit.wire import UPDATED, cancelled_notification, legacy, request, sessions
from mcpgen_runtime import Context, Limits, Server
from requirements import INTERIM

pytestmark = [pytest.mark.processes, pytest.mark.workers]

OLDER = "2025-06-18"
LIST_CHANGED = "notifications/tools/list_changed"


class Kept:
    """A server, and the context of a request that it answered already."""

    def __init__(self) -> None:
        self.server = Server("tester", subscribe=True)
        self.ctx: Context

        @self.server.tool()
        async def keep(ctx: Context) -> str:
            self.ctx = ctx
            await ctx.info("kept")
            return "kept"

        @self.server.resource("memo://one")
        def one() -> str:
            return "one"

    def change(self, name: str) -> None:
        """Change the list of tools."""

        @self.server.tool(name)
        def added() -> str:
            return name

    async def ask(self) -> None:
        """Ask the client something on behalf of no request."""
        await self.ctx.request_context.peer.request("ping")


CALL = {"name": "keep", "arguments": {}}


async def unread(stream: Stream) -> list[Any]:
    """Messages of a stream that were sent but not read yet."""
    await anyio.wait_all_tasks_blocked()
    stream.disconnect()
    return await stream.messages()


@pytest.mark.requirement("http.get-reply", "http.endpoint-post-get")
@pytest.mark.requirement("http.get-server-close", "http.stream-session-expiry")
@legacy
async def test_a_get_opens_a_stream_until_the_session_ends(revision: str) -> None:
    async with speaking(Kept().server, revision, keep_alive=0.01) as http:
        assert (await http.get(accept="application/json")).status == 406
        async with http.stream("GET") as one, http.stream("GET") as two:
            for stream in (one, two):
                assert (stream.status, stream.fields["content-type"]) == (200, "text/event-stream")
                assert stream.fields["x-accel-buffering"] == "no"
                await stream.until(b":\n\n:\n\n")
            await http.delete()
            await one.end()
            await two.end()


@pytest.mark.one_process
@pytest.mark.requirement(
    "http.stream-messages-relate", "http.get-stream-unrelated", "http.get-stream-no-response"
)
@pytest.mark.requirement("http.interim-stream-messages-relate", revisions=INTERIM)
@sessions
async def test_each_message_takes_the_stream_that_it_belongs_to(revision: str) -> None:
    kept = Kept()

    @kept.server.tool()
    async def busy(ctx: Context) -> str:
        await ctx.progress(1)
        kept.change("during")
        await ctx.progress(2)
        return "done"

    message = request(
        revision,
        "tools/call",
        {"name": "busy", "arguments": {}},
        meta={"progressToken": "t"},
    )
    async with speaking(kept.server, revision) as http, http.stream("GET") as opened:
        reply = await http.post(message)
        said = [each.get("method") for each in reply.messages]
        assert said == ["notifications/progress"] * 2 + [None]
        assert (await opened.message())["method"] == LIST_CHANGED
        kept.change("after")
        assert (await opened.message())["method"] == LIST_CHANGED
        assert await unread(opened) == []


@pytest.mark.one_process
@pytest.mark.requirement("http.no-broadcast", "http.multiple-streams")
@sessions
async def test_of_the_streams_of_a_session_one_gets_each_message_that_it_asked_for(
    revision: str,
) -> None:
    kept = Kept()
    async with speaking(kept.server, revision) as http:
        stranger = http.another()
        await stranger.initialize(revision)
        await http.ask(revision, "resources/subscribe", {"uri": "memo://one"})
        async with (
            http.stream("GET") as one,
            http.stream("GET") as two,
            stranger.stream("GET") as theirs,
        ):
            for number in range(3):
                kept.change(f"tool{number}")
                assert (await two.message())["method"] == LIST_CHANGED
            kept.server.resource_updated("memo://one")
            assert (await two.message())["method"] == UPDATED
            assert await unread(one) == []
            assert {each["method"] for each in await unread(theirs)} == {LIST_CHANGED}


@pytest.mark.one_process
@pytest.mark.parametrize("streams", [0, 1], ids=["first", "next"])
@sessions
async def test_announcements_wait_once_for_a_stream_to_be_opened(
    revision: str, streams: int
) -> None:
    kept = Kept()
    async with speaking(kept.server, revision) as http:
        for _ in range(streams):
            async with http.stream("GET") as before:
                pass
            await before.finished.wait()
        for name in "abc":
            kept.change(name)
            await anyio.wait_all_tasks_blocked()
        async with http.stream("GET") as stream:
            assert (await stream.message())["method"] == LIST_CHANGED
            kept.server.remove_tool("a")
            assert (await stream.message())["method"] == LIST_CHANGED
            assert await unread(stream) == []


async def test_who_waits_for_a_client_whose_session_ends_is_told() -> None:
    kept = Kept()
    failed: list[Exception] = []

    async def ask() -> None:
        try:
            await kept.ask()
        except Exception as error:
            failed.append(error)

    async with speaking(kept.server, "2025-06-18") as http:
        await http.ask("2025-06-18", "tools/call", CALL)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await http.delete()
        await ask()
    assert [type(error).__name__ for error in failed] == ["ConnectionClosedError"] * 2


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
    revision: str, tool: str, answers: Any, accept: str, waiting: WaitingServer
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


@pytest.mark.one_process  # likewise
@on_virtual_clocks
async def test_a_session_is_unused_from_the_end_of_its_last_call_on(waiting: WaitingServer) -> None:
    async with speaking(waiting.server, OLDER, limits=Limits(idle=5)) as http:
        async with waiting.calling(http, OLDER, 1, "wait") as stream:
            await anyio.sleep(4)
            waiting.go.set()
            await stream.end()
        await anyio.sleep(4)
        assert (await http.ask(OLDER, "ping", id=2)).status == 200


@pytest.mark.one_process  # likewise
@on_virtual_clocks
async def test_a_write_ends_with_the_connection_that_it_waits_for() -> None:
    kept, left_at = Kept(), anyio.current_time() + 5
    wire = Wire((left_at, "http.disconnect"))
    async with speaking(kept.server, OLDER) as http:
        async with anyio.create_task_group() as tasks:
            scope = http.scope_of("GET", None, {})
            tasks.start_soon(http.app, scope, wire.receive, wire.send)
            await anyio.sleep(1)
            wire.stop_reading()
            kept.change("added")
        assert anyio.current_time() == left_at
