"""The end of a server over HTTP while calls run: `drain` bounds it, and clients get an error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from mcpgen_runtime import Limits, MemoryBus, MemorySessionStore, SharedState
from mcpgen_runtime.server.asgi.app import AsgiApplication
from mcpgen_runtime.server.chosen import Context, Server
from package.asgi_client import Http, asgi, fields_of
from package.asgi_stream import Stream
from package.client.simulation import ASYNCIO
from package.server.raw_http import head, whole
from package.server.web_process import Started, rest, start_server, until, write_server
from package.wire import (
    HANDSHAKE,
    INITIALIZED,
    PER_REQUEST,
    SESSIONS,
    encode_message,
    facts,
    initialize,
    request,
)

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
every_revision = pytest.mark.parametrize("revision", [*SESSIONS, *PER_REQUEST])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a server in it."""
    write_server(tmp_path)
    return tmp_path


def post(
    server: Started, message: object, fields: Mapping[str, str] = {}, *, path: bytes = b"/mcp"
) -> bytes:
    """A POST of a revision with sessions."""
    body = encode_message(message)
    return (
        head(server.port, {"Content-Length": str(len(body)), **fields}).replace(b"/mcp", path, 1)
        + body
    )


def session_of(server: Started, revision: str) -> dict[str, str]:
    """Open a session; the header fields of its requests."""
    opened = until(server.ask(post(server, initialize(revision))), b'"jsonrpc"')
    match = re.search(rb"(?i)mcp-session-id: (\S+)", opened)
    assert match is not None
    fields = {"Mcp-Session-Id": match[1].decode()}
    name = facts(revision).headers.protocol_version
    if name is not None:
        fields[name] = revision
    until(server.ask(post(server, INITIALIZED, fields)), b" 202 ")
    return fields


@pytest.mark.requirement("lifecycle.shutdown-http")
@hosts
@every_revision
def test_a_call_gets_an_error_once_the_time_to_drain_is_over(
    folder: Path, host: str, revision: str
) -> None:
    params = {"name": "slow", "arguments": {"seconds": 600}}
    with start_server(folder, "-c", host) as server:
        if revision in PER_REQUEST:
            calling = server.ask(whole(server.port, revision, "tools/call", params))
        else:
            fields = session_of(server, revision)
            message = request(revision, "tools/call", params)
            calling = server.ask(post(server, message, fields))
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


@hosts
def test_a_call_on_the_older_transport_delays_no_shutdown(folder: Path, host: str) -> None:
    revision = HANDSHAKE[0]
    with start_server(folder, "-c", host) as server:
        stream = server.ask(head(server.port, {}, method="GET").replace(b"/mcp", b"/sse"))
        place = re.search(rb"data: (\S+)", until(stream, b"session_id="))
        assert place is not None
        path = b"/" + place[1].lstrip(b"./")
        params = {"name": "slow", "arguments": {"seconds": 600}}
        for message in (initialize(revision), INITIALIZED):
            until(server.ask(post(server, message, path=path)), b" 202 ")
        server.ask(post(server, request(revision, "tools/call", params), path=path))
        server.says("slow begins")
        _, _, err, took = server.end()
        rest(stream)
    assert "left\n" in err
    assert took < 5


# ---- hosts that end the lifespan, or cancel requests


class Endless:
    """A server with a tool that waits for ever, and says before that it begins."""

    def __init__(self, drain: float = 5) -> None:
        self.server = Server("endless", "1", drain=drain)
        self.cancelled = anyio.Event()
        self.server.tool()(self.wait)

    async def wait(self, ctx: Context) -> str:
        await ctx.progress(1)
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        raise AssertionError("it is never done")


def call(revision: str) -> object:
    params = {"name": "wait", "arguments": {}}
    return request(revision, "tools/call", params, meta={"progressToken": 1})


async def open_session(http: Http, revision: str) -> dict[str, str | None]:
    """Open a session where there is one; the header fields of a call."""
    if revision in SESSIONS:
        await http.initialize(revision)
    message = call(revision)
    assert isinstance(message, dict)
    return fields_of(revision, message)


@pytest.mark.anyio
@every_revision
async def test_the_end_of_the_lifespan_ends_calls_with_an_error(revision: str) -> None:
    endless = Endless()
    async with asgi(endless.server) as http:
        fields = await open_session(http, revision)
        async with http.stream("POST", call(revision), fields=fields) as stream:
            assert (await stream.message())["method"] == "notifications/progress"
            await http.shut_down()
            assert endless.cancelled.is_set()
            (answer,) = await stream.messages()
    assert (answer["id"], answer["error"]["message"]) == (1, ENDING)


@pytest.mark.anyio
@every_revision
async def test_calls_may_finish_while_the_application_drains(revision: str) -> None:
    endless = Endless()
    app = endless.server.asgi()
    async with asgi(app) as http:
        fields = await open_session(http, revision)
        async with http.stream("POST", call(revision), fields=fields) as stream:
            await stream.message()
            app.start_drain()
            await anyio.wait_all_tasks_blocked()
            assert not endless.cancelled.is_set()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
@every_revision
async def test_calls_have_the_seconds_to_drain_and_then_fail(revision: str) -> None:
    endless = Endless(drain=5)
    app = endless.server.asgi()
    async with asgi(app) as http:
        fields = await open_session(http, revision)
        async with http.stream("POST", call(revision), fields=fields) as stream:
            await stream.message()
            for _ in range(2):
                app.start_drain()
                await anyio.wait_all_tasks_blocked()
            (answer,) = await stream.messages()
            assert (answer["error"]["message"], anyio.current_time()) == (ENDING, 5)
        await anyio.wait_all_tasks_blocked()
        assert endless.cancelled.is_set()
        assert app.counts["sessions"] == 0


@pytest.mark.anyio
@pytest.mark.parametrize("revision", SESSIONS)
async def test_an_application_that_drains_keeps_no_idle_session(revision: str) -> None:
    app = Endless().server.asgi()
    async with asgi(app) as http:
        await http.initialize(revision)
        app.start_drain()
        await anyio.wait_all_tasks_blocked()
        assert (await http.ask(revision, "tools/list")).status == 404
        assert (await http.another().post(initialize(revision))).status == 503


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_trio_host_cancels_a_request_and_the_lifespan_the_call(
    revision: str,
) -> None:
    endless = Endless()
    async with asgi(endless.server) as http:
        fields = await open_session(http, revision)
        stream = Stream([encode_message(call(revision))], unfinished=False)
        async with anyio.create_task_group() as tasks:
            scope = http.scope_of("POST", None, fields)
            tasks.start_soon(stream.run, http.app, scope)
            await stream.message()
            tasks.cancel_scope.cancel()
        assert not endless.cancelled.is_set()
        await http.shut_down()
        assert endless.cancelled.is_set()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_an_asyncio_host_cancels_a_request_and_sends_an_error(
    revision: str,
) -> None:
    import asyncio

    endless = Endless()
    async with asgi(endless.server) as http:
        fields = await open_session(http, revision)
        stream = Stream([encode_message(call(revision))], unfinished=False)
        task = asyncio.create_task(stream.run(http.app, http.scope_of("POST", None, fields)))
        await stream.message()
        task.cancel()
        answer = await stream.message()
        assert (answer["id"], answer["error"]["message"]) == (1, ENDING)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert endless.cancelled.is_set()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_session_call_goes_on_if_the_host_cancels_its_post(
    revision: str,
) -> None:
    import asyncio

    endless = Endless()
    async with asgi(endless.server) as http:
        fields = await open_session(http, revision)
        stream = Stream([encode_message(call(revision))], unfinished=False)
        task = asyncio.create_task(stream.run(http.app, http.scope_of("POST", None, fields)))
        await stream.message()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not endless.cancelled.is_set()
    assert endless.cancelled.is_set()


def application(http: Http) -> AsgiApplication:
    """The application that a client calls."""
    assert isinstance(http.app, AsgiApplication)
    return http.app


@pytest.mark.one_process
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_server_that_ends_says_so_to_those_who_open_a_session(revision: str) -> None:
    async with asgi(Server("tester"), limits=Limits(sessions=1)) as http:
        await http.initialize(revision)
        await application(http).close_streams()
        refused = await http.another().post(initialize(revision))
    assert (refused.status, refused.fields["retry-after"]) == (503, "1")
    assert refused.error == {"code": -32603, "message": REFUSED, "data": {"begun": False}}


@pytest.mark.one_process
@pytest.mark.parametrize("revision", SESSIONS)
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
