"""How calls over HTTP end before their time: cancelled, left, outlived by their session."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpgen_runtime import Context, Server
from mcpgen_runtime.server.asgi.settings import Answers, Limits
from package.asgi_client import JSON, SESSION, SSE, asgi
from package.asgi_stream import SECONDS
from package.server.asgi.test_abandoned_calls import JUMPING
from package.wire import SESSIONS, cancelled_notification, request

pytestmark = [pytest.mark.processes, pytest.mark.workers]

sessions = pytest.mark.parametrize("revision", SESSIONS)


class Waiting:
    """A server whose tool waits until it is let go, and tells what became of it."""

    def __init__(self) -> None:
        self.server = Server("tester")
        self.begun = anyio.Event()
        self.go = anyio.Event()
        self.ended = anyio.Event()
        self.outcome = ""

        @self.server.tool()
        async def wait(ctx: Context, quiet: bool = False) -> str:
            if not quiet:
                await ctx.info("begun")
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
        async def asks(ctx: Context) -> str:
            self.begun.set()
            try:
                await ctx.request("ping")
            except BaseException:
                self.outcome = "cancelled"
                raise
            finally:
                self.ended.set()
            return "asked"

    async def end(self) -> str:
        """Wait for the end of the call; what became of it."""
        with anyio.fail_after(10):
            await self.ended.wait()
        return self.outcome


def call(revision: str, *, quiet: bool = False, name: str = "wait") -> dict[str, Any]:
    arguments = {"quiet": quiet} if name == "wait" else {}
    return request(revision, "tools/call", {"name": name, "arguments": arguments}, id=1)


@pytest.mark.requirement("cancellation.stops-processing", "cancellation.no-response")
@sessions
async def test_a_cancelled_call_ends_its_stream_without_an_answer(revision: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with http.stream("POST", call(revision)) as stream:
            assert (await stream.message())["method"] == "notifications/message"
            assert (await http.post(cancelled_notification(1))).status == 202
            assert await stream.messages() == []
            assert await waiting.end() == "cancelled"


@pytest.mark.requirement("http.request-reply-type")
@sessions
@pytest.mark.parametrize("answers", ["auto", "json"])
async def test_a_cancelled_silent_call_gets_a_stream_without_events(
    revision: str, answers: Answers
) -> None:
    waiting = Waiting()
    async with asgi(waiting.server, answers=answers) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                await waiting.begun.wait()
                await http.post(cancelled_notification(1))

            tasks.start_soon(cancel)
            reply = await http.post(call(revision, quiet=True))
        assert (reply.status, reply.fields["content-type"]) == (200, SSE)
        assert reply.body == b""


async def test_a_cancelled_call_of_who_takes_json_only_gets_no_body() -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize("2025-06-18")
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                await waiting.begun.wait()
                await http.post(cancelled_notification(1))

            tasks.start_soon(cancel)
            reply = await http.post(call("2025-06-18", quiet=True), accept=JSON)
        assert (reply.status, reply.body) == (202, b"")


@sessions
@pytest.mark.parametrize("id", [2, "1", None, "init"])
async def test_cancelling_what_is_no_open_request_changes_nothing(revision: str, id: Any) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with http.stream("POST", call(revision)) as stream:
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
@pytest.mark.parametrize("quiet", [False, True])
async def test_a_client_that_leaves_does_not_cancel(revision: str, quiet: bool) -> None:
    waiting = Waiting()
    async with asgi(waiting.server, keep_alive=0.01) as http:
        await http.initialize(revision)
        async with http.stream("POST", call(revision, quiet=quiet), begun=not quiet) as stream:
            await waiting.begun.wait()
            stream.disconnect()
            assert (await http.ask(revision, "ping", id=2)).result == {}
            waiting.go.set()
            assert await waiting.end() == "done"
            with anyio.fail_after(5):
                await stream.finished.wait()


@pytest.mark.requirement("http.stream-session-expiry", "http.session-gone-404")
@sessions
async def test_the_end_of_a_session_cancels_its_calls_and_streams(
    revision: str,
) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with http.stream("POST", call(revision)) as stream:
            await stream.message()
            assert (await http.delete()).status == 200
            assert await waiting.end() == "cancelled"
            assert await stream.messages() == []
        assert [(await http.ask(revision, "ping")).status, (await http.get()).status] == [404, 404]


@sessions
async def test_a_call_without_a_stream_gets_503_when_its_session_ends(revision: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with anyio.create_task_group() as tasks:

            async def delete() -> None:
                await waiting.begun.wait()
                await http.delete()

            tasks.start_soon(delete)
            reply = await http.post(call(revision, quiet=True))
        assert reply.status == 503  # a client may take 404 as leave to send it again
        assert "session ended" in reply.json["error"]["message"]


@sessions
async def test_a_handler_waiting_for_its_client_ends_with_the_session(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with http.stream("POST", call(revision, name="asks")) as stream:
            await stream.message()
            await http.delete()
            assert await waiting.end() == "cancelled"
            await stream.end()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.requirement("http.session-terminate", revisions=("2025-06-18",))
async def test_a_session_of_a_lost_client_ends_while_a_handler_waits() -> None:
    waiting = Waiting()
    limits = Limits(idle=0.01)
    async with asgi(waiting.server, keep_alive=0.01, limits=limits) as http:
        await http.initialize("2025-06-18")
        async with http.stream("POST", call("2025-06-18", name="asks")) as stream:
            await stream.message()
            stream.disconnect()
            assert await waiting.end() == "cancelled"
            with anyio.fail_after(5):
                await stream.finished.wait()
        assert (await http.ask("2025-06-18", "ping", id=2)).status == 404


async def test_a_waiting_client_keeps_its_session_for_a_long_call() -> None:
    waiting = Waiting()
    limits = Limits(idle=0.01)
    async with asgi(waiting.server, keep_alive=0.01, limits=limits) as http:
        await http.initialize("2025-06-18")
        async with http.stream("POST", call("2025-06-18")) as stream:
            await stream.until(b"\n\n:\n\n:\n\n:\n\n")
            waiting.go.set()
            await stream.message()
            assert "result" in await stream.message()


@sessions
async def test_who_does_not_read_is_cut_off_and_holds_nobody_up(revision: str) -> None:
    server = Server("tester")
    done = anyio.Event()

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
            with anyio.fail_after(5):
                await done.wait()
            assert (await http.ask(revision, "ping", id=2)).result == {}
            stream.disconnect()
            with anyio.fail_after(5):
                await stream.finished.wait()


@sessions
async def test_a_session_can_be_ended_though_its_client_reads_nothing(revision: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize(revision)
        async with http.stream("POST", call(revision)) as stream, http.stream("GET") as opened:
            await stream.message()
            stream.stop_reading()
            opened.stop_reading()
            waiting.go.set()
            await waiting.end()
            assert (await http.delete()).status == 200


@pytest.mark.one_process  # the clock jumps, while an engine takes real time
@pytest.mark.parametrize("anyio_backend", JUMPING)
@pytest.mark.parametrize("silent", [("GET",), ("POST",), ("GET", "POST")], ids="+".join)
@pytest.mark.parametrize("flooding", [False, True])
@sessions
async def test_streams_that_nobody_reads_end_soon_after_their_server(
    revision: str, silent: tuple[str, ...], flooding: bool, anyio_backend: Any
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


async def test_the_session_id_of_a_client_that_left_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await http.initialize("2025-06-18")
        async with http.stream("POST", call("2025-06-18"), begun=False) as stream:
            stream.disconnect()
            waiting.go.set()
            await stream.finished.wait()
        assert str(http.fields[SESSION]) not in caplog.text
    assert "Traceback" not in caplog.text
