"""Calls whose handlers wait: open requests for whoever asks, although nothing was made for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen_runtime import Context, Server
from mcpgen_runtime.runtime.pending_requests import PARTING_SECONDS
from mcpgen_runtime.server.asgi import exchange
from mcpgen_runtime.server.asgi.settings import Limits
from package.asgi_client import Http, asgi, fields_of
from package.asgi_stream import SECONDS, Reply, Stream
from package.client.simulation import ASYNCIO
from package.wire import HANDSHAKE, SESSIONS, STREAMABLE, encode_message, request

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

sessions = pytest.mark.parametrize("revision", SESSIONS)
streamable = pytest.mark.parametrize("revision", STREAMABLE)


class Waiting:
    """A server whose tool waits for the test.

    Attributes:
        server: The server.
        go: Set to let the tool end.
        begun: Number of calls that have begun.
        ends: How each call has ended.
        moments: When calls were cancelled.
    """

    def __init__(self) -> None:
        self.server = Server("waiting")
        self.go = anyio.Event()
        self.begun = 0
        self.ends: list[str] = []
        self.moments: list[float] = []
        self.server.tool()(self.wait)
        self.server.tool()(self.speak_and_wait)
        self.server.tool()(self.report)

    async def wait(self, stubborn: bool = False) -> str:
        self.begun += 1
        try:
            with anyio.CancelScope():  # scopes of the tool nest in that of the request
                await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.ends.append("cancelled")
            self.moments.append(anyio.current_time())
            if not stubborn:
                raise
            return "stubborn"
        self.ends.append("returned")
        return "waited"

    async def speak_and_wait(self, ctx: Context) -> str:
        await ctx.progress(1)
        return await self.wait()

    async def report(self, ctx: Context) -> str:
        await anyio.lowlevel.checkpoint()
        await ctx.progress(1)
        return f"{ctx.request_id} {ctx.raw_params is not None} {ctx.is_retry}"

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(SECONDS):
            while not condition():
                await anyio.sleep(0)


async def ready(http: Http, revision: str) -> None:
    """Have a client say everything that later calls repeat."""
    if revision in HANDSHAKE:
        await http.initialize(revision)
    await http.ask(revision, "tools/call", {"name": "report"})


async def end_of(stream: Stream) -> Reply:
    """The answer of a request, once it has come."""
    await stream.end()
    return Reply(stream)


def cancellation(identifier: int) -> dict[str, Any]:
    params = {"requestId": identifier}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


@streamable
async def test_a_tool_reports_after_it_has_waited(revision: str) -> None:
    async with asgi(Waiting().server) as http:
        await ready(http, revision)
        for _ in range(2):
            meta = {"progressToken": 4}
            params = {"name": "report"}
            async with http.asking(revision, "tools/call", params, id=3, meta=meta) as stream:
                assert (await stream.message())["method"] == "notifications/progress"
                text = (await stream.message())["result"]["content"][0]["text"]
                assert text == "3 True False"
            reply = await http.ask(revision, "tools/call", params, id=3)
            assert reply.result["content"][0]["text"] == "3 True False"


@sessions
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_waiting_call_is_cancelled_and_its_id_used_again(
    revision: str, stubborn: bool
) -> None:
    waiting = Waiting()
    call = {"name": "wait", "arguments": {"stubborn": stubborn}}
    async with asgi(waiting.server) as http:
        await ready(http, revision)
        async with http.asking(revision, "tools/call", call, begun=False) as stream:
            await waiting.until(lambda: waiting.begun == 1)
            await http.post(cancellation(1))
            waiting.go.set()
            reply = await http.ask(revision, "tools/call", call)
            assert reply.result["content"][0]["text"] == "waited"
            assert b"result" not in (await end_of(stream)).body
        assert waiting.ends == ["cancelled", "returned"]


@sessions
async def test_the_id_of_a_waiting_call_is_refused_to_another(revision: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await ready(http, revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False) as stream:
            await waiting.until(lambda: waiting.begun == 1)
            reply = await http.ask(revision, "tools/call", {"name": "wait"})
            assert "error" in reply.json
            waiting.go.set()
            assert (await end_of(stream)).result["content"][0]["text"] == "waited"
        assert waiting.begun == 1


@sessions
async def test_a_session_has_so_many_waiting_calls_at_most(revision: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server, limits=Limits(per_session=2)) as http:
        await ready(http, revision)
        async with (
            http.asking(revision, "tools/call", {"name": "wait"}, id=1, begun=False),
            http.asking(revision, "tools/call", {"name": "wait"}, id=2, begun=False),
        ):
            await waiting.until(lambda: waiting.begun == 2)
            reply = await http.ask(revision, "tools/call", {"name": "wait"}, id=3)
            assert (reply.status, waiting.begun) == (503, 2)
            waiting.go.set()
            await waiting.until(lambda: len(waiting.ends) == 2)
        reply = await http.ask(revision, "tools/call", {"name": "wait"}, id=4)
        assert reply.result["content"][0]["text"] == "waited"


@sessions
async def test_the_end_of_a_session_cancels_its_waiting_call(revision: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await ready(http, revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False):
            await waiting.until(lambda: waiting.begun == 1)
            assert (await http.delete()).status == 200
            await waiting.until(lambda: waiting.ends == ["cancelled"])


waiting_tools = pytest.mark.parametrize("tool", ["wait", "speak_and_wait"])


@streamable
@waiting_tools
async def test_the_end_of_a_server_fails_its_waiting_call(revision: str, tool: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await ready(http, revision)
        async with http.asking(revision, "tools/call", {"name": tool}, begun=False) as stream:
            await waiting.until(lambda: waiting.begun == 1)
            await http.shut_down()
            reply = await end_of(stream)
            assert "ending" in reply.error["message"]
            assert reply.status == (200 if revision in HANDSHAKE else 503)
        assert waiting.ends == ["cancelled"]


@pytest.mark.parametrize("revision", [each for each in STREAMABLE if each not in HANDSHAKE])
@waiting_tools
async def test_a_waiting_call_ends_with_its_connection(revision: str, tool: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await ready(http, revision)
        async with http.asking(revision, "tools/call", {"name": tool}, begun=False) as stream:
            await waiting.until(lambda: waiting.begun == 1)
            stream.disconnect()
            await waiting.until(lambda: waiting.ends == ["cancelled"])


@streamable
@waiting_tools
async def test_a_host_that_cancels_a_waiting_call_gets_its_task_back(
    revision: str, tool: str
) -> None:
    waiting, sent = Waiting(), list[Any]()
    async with asgi(waiting.server) as http:
        await ready(http, revision)
        message = request(revision, "tools/call", {"name": tool})
        scope = http.scope_of("POST", None, fields_of(revision, message))

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": encode_message(message), "more_body": False}

        async def send(each: Any) -> None:
            await anyio.lowlevel.checkpoint()
            sent.append(each)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(http.app, scope, receive, send)
            await waiting.until(lambda: waiting.begun == 1)
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
            waiting.go.set()  # a session's call goes on
        ends = ["returned"] if revision in HANDSHAKE else ["cancelled"]
        await waiting.until(lambda: waiting.ends == ends)
        if revision not in HANDSHAKE:
            assert [each.get("status") for each in sent] == [503, None]


on_virtual_clock = pytest.mark.parametrize(
    "anyio_backend", [pytest.param(ASYNCIO, id="virtual clock")]
)


@streamable
@on_virtual_clock
async def test_silence_begins_when_a_handler_begins_to_wait(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "monotonic", anyio.current_time)
    async with asgi(Waiting().server, keep_alive=8.0) as http:
        await ready(http, revision)
        await anyio.sleep_until(1.0)
        async with http.asking(revision, "tools/call", {"name": "wait"}):
            assert anyio.current_time() == 9.0


@pytest.mark.parametrize("revision", [each for each in STREAMABLE if each not in HANDSHAKE])
@on_virtual_clock
@pytest.mark.parametrize(
    ("keep_alive", "cancelled"), [(None, 0.25), (10.0, 0.25), (0.5, 0.25), (0.25, 0.125)]
)
async def test_clients_of_waiting_calls_are_looked_at_at_intervals(
    revision: str, keep_alive: float | None, cancelled: float
) -> None:
    waiting = Waiting()
    async with asgi(waiting.server, keep_alive=keep_alive) as http:
        await ready(http, revision)
        for number in (1, 2, 3):
            await anyio.sleep_until(number)
            async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False):
                await waiting.until(lambda: waiting.begun == len(waiting.ends) + 1)
        await anyio.sleep_until(4)
    assert waiting.moments == [number + cancelled for number in (1, 2, 3)]


@pytest.mark.parametrize("revision", [each for each in STREAMABLE if each not in HANDSHAKE])
@on_virtual_clock
async def test_a_body_without_room_ends_calls_whose_clients_left(revision: str) -> None:
    waiting = Waiting()
    long = request(revision, "tools/list", meta={"example.com/padding": "x" * 100_000})
    async with asgi(waiting.server, limits=Limits(bodies=100_000)) as http:
        await ready(http, revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False):
            await waiting.until(lambda: waiting.begun == 1)
        assert (await http.post(long, **fields_of(revision, long))).status == 503
        await anyio.wait_all_tasks_blocked()
        assert waiting.moments == [0.0]


@streamable
@waiting_tools
@on_virtual_clock
async def test_the_end_of_a_server_waits_a_second_for_a_client(revision: str, tool: str) -> None:
    waiting = Waiting()
    async with asgi(waiting.server) as http:
        await ready(http, revision)
        params, meta = {"name": tool}, {"progressToken": 1}
        async with http.asking(revision, "tools/call", params, meta=meta, begun=False) as stream:
            await waiting.until(lambda: waiting.begun == 1)
            if tool == "speak_and_wait":
                await stream.message()
            stream.stop_reading()
            await http.shut_down()
            assert anyio.current_time() == PARTING_SECONDS
            if revision not in HANDSHAKE:
                await stream.finished.wait()
                assert anyio.current_time() == PARTING_SECONDS
        assert waiting.ends == ["cancelled"]


@sessions
@on_virtual_clock
@pytest.mark.parametrize("seen", [0.0, 9.0])
@pytest.mark.parametrize(("moment", "status"), [(49.0, 200), (51.0, 404)])
async def test_a_session_is_idle_once_its_waiting_call_ended(
    revision: str, seen: float, moment: float, status: int
) -> None:
    waiting = Waiting()
    async with asgi(waiting.server, keep_alive=None, limits=Limits(idle=20.0)) as http:
        await ready(http, revision)
        async with http.asking(revision, "tools/call", {"name": "wait"}, begun=False) as stream:
            await waiting.until(lambda: waiting.begun == 1)
            await anyio.sleep_until(seen)
            if seen:
                assert (await http.ask(revision, "ping", id=2)).status == 200
            await anyio.sleep_until(30.0)
            waiting.go.set()
            await stream.end()
        await anyio.sleep_until(moment)
        assert (await http.ask(revision, "ping", id=2)).status == status


@sessions
@on_virtual_clock
@pytest.mark.parametrize(("moment", "status"), [(34.0, 200), (36.0, 404)])
async def test_a_call_keeps_its_session_for_the_idle_time(
    revision: str, moment: float, status: int
) -> None:
    async with asgi(Waiting().server, limits=Limits(idle=20.0)) as http:
        await ready(http, revision)
        for at, expected in ((0.0, 200), (15.0, 200), (moment, status)):
            await anyio.sleep_until(at)
            assert (await http.ask(revision, "tools/list", {}, id=2)).status == expected


@streamable
@on_virtual_clock
async def test_one_task_waits_for_the_client_of_a_waiting_call(revision: str) -> None:
    waiting, received = Waiting(), list[float]()
    async with asgi(waiting.server, keep_alive=None) as http, anyio.create_task_group() as tasks:
        await ready(http, revision)
        message = request(revision, "tools/call", {"name": "wait"})
        scope = http.scope_of("POST", None, fields_of(revision, message))

        async def receive() -> dict[str, Any]:
            received.append(anyio.current_time())
            if len(received) > 1:
                await anyio.sleep_forever()
            return {"type": "http.request", "body": encode_message(message), "more_body": False}

        async def send(each: Any) -> None:
            assert len(received) == 2

        tasks.start_soon(http.app, scope, receive, send)
        await anyio.sleep_until(99.0)
        waiting.go.set()
    assert len(received) == 2
