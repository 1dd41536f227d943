"""The end of a server over HTTP while calls run: `drain` bounds it, and clients get an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from kit.asgi_client import SSE, Http, asgi, fields_of, speaking
from kit.asgi_stream import Reply, Stream
from kit.raw_http import message_bytes, session_fields, whole
from kit.simulation import on_virtual_clock, on_virtual_clocks
from kit.waiting import WaitingServer
from kit.web_process import rest, start_server
from kit.wire import (
    PER_REQUEST,
    SESSIONS,
    encode_message,
    request,
    sessions,
    streamable,
)
from mcpgen_runtime import Limits, MemoryBus, MemorySessionStore, Server, SharedState

pytestmark = pytest.mark.processes

ENDING = "the server is ending; the request may have been acted on"
REFUSED = "the server is ending; the request was not begun"
UVICORN = (
    "import socket, sys, uvicorn, web\n"
    "listener = socket.create_server(('127.0.0.1', 0))\n"
    "print('serving at http://127.0.0.1:%d/mcp' % listener.getsockname()[1], "
    "file=sys.stderr, flush=True)\n"
    "app = web.server.asgi(sse_path='/sse')\n"
    "uvicorn.Server(uvicorn.Config(app, log_level='error', "
    "timeout_graceful_shutdown=1)).run([listener])\n"
)
OURS = "import web; web.server.run(http='127.0.0.1:0', sse_path='/sse')"
hosts = pytest.mark.parametrize("host", [OURS, UVICORN], ids=["Server.run", "uvicorn"])


@pytest.mark.requirement("lifecycle.shutdown-http")
@hosts
@streamable
def test_a_call_gets_an_error_once_the_time_to_drain_is_over(
    folder: Path, host: str, revision: str
) -> None:
    params = {"name": "slow", "arguments": {"seconds": 600}}
    with start_server(folder, "-c", host) as server:
        if revision in PER_REQUEST:
            calling = server.ask(whole(server.port, revision, "tools/call", params))
        else:
            fields = anyio.run(session_fields, server.port, revision)
            message = request(revision, "tools/call", params)
            calling = server.ask(message_bytes(server.port, message, fields))
        server.says("slow begins")
        _, _, err, took = server.end()
        answer = rest(calling)
    assert "left\n" in err
    assert took < 5
    drained = host == OURS or revision in PER_REQUEST
    assert answer.startswith(
        b"HTTP/1.1 200" if drained and revision in SESSIONS else b"HTTP/1.1 503"
    )
    error = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (error.get("id"), error["error"]["message"]) == (1 if drained else None, ENDING)


@hosts
@pytest.mark.parametrize("tool", ["slow", "stuck"])
def test_a_call_of_a_plain_function_holds_nothing_up(folder: Path, host: str, tool: str) -> None:
    arguments = {"seconds": 600} if tool == "slow" else {}
    with start_server(folder, "-c", host + "\nimport os; os._exit(0)") as server:
        calling = server.call(tool, **arguments)
        server.says(f"{tool} begins")
        _, _, _, took = server.end()
        assert ENDING.encode() in rest(calling)
    assert took < 5


tools = pytest.mark.parametrize("tool", ["wait", "speak_and_wait"])


@pytest.mark.requirement("http.shutdown-by-close", "lifecycle.shutdown-http")
@streamable
@tools
async def test_the_end_of_the_lifespan_ends_calls_with_an_error_and_streams(
    revision: str, tool: str, waiting: WaitingServer
) -> None:
    async with (
        speaking(waiting.server, revision) as http,
        waiting.calling(http, revision, 1, tool) as stream,
        http.listening(revision) as got,
    ):
        await waiting.until(begun=1)
        await http.shut_down()
        assert waiting.cancelled == [1]
        await stream.end()
        await got.end()
        answer = Reply(stream).messages[-1]
        said = stream.fields["content-type"] == SSE or revision in SESSIONS
        assert stream.status == (200 if said else 503)
    assert (answer["id"], answer["error"]["message"]) == (1, ENDING)


@on_virtual_clock
@streamable
@tools
async def test_the_end_of_a_server_waits_a_second_for_a_client_that_does_not_read(
    revision: str, tool: str, waiting: WaitingServer
) -> None:
    async with (
        speaking(waiting.server, revision) as http,
        waiting.calling(http, revision, 1, tool) as stream,
    ):
        await waiting.until(begun=1)
        stream.stop_reading()
        await http.shut_down()
        assert (anyio.current_time(), waiting.cancelled) == (1.0, [1])


@on_virtual_clock
@streamable
async def test_a_result_that_is_read_slowly_is_sent_though_the_server_drains(
    revision: str, waiting: WaitingServer
) -> None:
    async with (
        speaking(waiting.server, revision) as http,
        waiting.calling(http, revision, 1, "wait") as stream,
    ):
        await waiting.until(begun=1)
        stream.stop_reading()
        waiting.go.set()
        application(http).start_drain()
        await anyio.sleep(6)
        stream.read_on()
        await stream.end()
        assert Reply(stream).text == "done"


@on_virtual_clock
@streamable
async def test_calls_have_the_seconds_to_drain_and_then_fail(
    revision: str, waiting: WaitingServer
) -> None:
    app = waiting.server.asgi()
    async with speaking(app, revision) as http:
        async with waiting.calling(http, revision) as stream:
            await stream.message()
            for _ in range(2):
                app.start_drain()
                await anyio.wait_all_tasks_blocked()
            (answer,) = await stream.messages()
            assert (answer["error"]["message"], anyio.current_time()) == (ENDING, 5)
        await anyio.wait_all_tasks_blocked()
        assert waiting.cancelled == [1]
        assert app.counts["sessions"] == 0


def application(http: Http) -> Any:
    """The application that a client calls."""
    return http.app


@on_virtual_clocks
@pytest.mark.parametrize(
    "revision", [*SESSIONS, *PER_REQUEST], ids=lambda each: f"{each in SESSIONS} {each}"
)
@tools
async def test_a_host_that_cancels_a_request_ends_its_call_only_without_sessions(
    revision: str, tool: str, waiting: WaitingServer
) -> None:
    params, meta = {"name": tool, "arguments": {"number": 1}}, {"progressToken": 1}
    message = request(revision, "tools/call", params, meta=meta)
    limits = Limits(abandoned_seconds=5)
    async with speaking(waiting.server, revision, limits=limits, keep_alive=1) as http:
        stream = Stream([encode_message(message)], unfinished=False)
        async with anyio.create_task_group() as tasks:
            scope = http.scope_of("POST", None, fields_of(revision, message))
            tasks.start_soon(stream.run, http.app, scope)
            await waiting.until(begun=1)
            tasks.cancel_scope.cancel()
        if revision in SESSIONS:
            stream.disconnect()
            await anyio.sleep(4.9)
            assert (waiting.cancelled, application(http).counts["requests"]) == ([], 0)
            await anyio.sleep(0.2)
        else:
            assert ENDING in str(Reply(stream).messages[-1])
        assert (waiting.cancelled, application(http).counts["requests"]) == ([1], 0)


@pytest.mark.one_process
@sessions
async def test_a_server_that_ends_takes_no_session_of_another_process(revision: str) -> None:
    state = SharedState(MemoryBus(), MemorySessionStore())
    server = Server("tester")
    async with asgi(server, shared=state) as first, asgi(server, shared=state) as second:
        await first.initialize(revision)
        second.fields = first.fields
        assert (await second.ask(revision, "ping")).status == 200
        await application(second).close_streams()
        refused = await second.ask(revision, "ping", id=2)
        assert (refused.status, refused.error["message"]) == (503, REFUSED)
        assert (await first.ask(revision, "ping", id=3)).status == 200
