"""Servers that die and come back, networks that lose and double, and bytes that mean nothing."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import httpx2
import pytest

from kit import http_script
from kit.faults import Outcome, check_quiet, text_of
from kit.http_process import SECONDS, http_process
from kit.http_script import Forgetful, Script, result, says, stream_events
from kit.http_server import BROKEN, Asked, Handler, HttpServer, Reply
from kit.rules import revision_fixture
from kit.wire import ONE_OF_EACH, SESSIONS, STREAMABLE
from mcpgen_runtime import (
    ConnectFailedError,
    HttpTimeouts,
    McpError,
    RequestTimeoutError,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
    connect,
)

pytestmark = pytest.mark.processes
revision = revision_fixture(STREAMABLE)
PAUSES = HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01, longest_pause=0.01)
scripted = partial(http_script.connect_scripted, timeouts=Timeouts(http=PAUSES))


@pytest.fixture(params=[False, True], ids=["default", "httpx2"])
async def library(request: pytest.FixtureRequest) -> AsyncIterator[dict[str, Any]]:
    """Options of `connect` for each HTTP library: the one for the event loop, and the user's."""
    async with httpx2.AsyncClient() as own:
        yield {"http_client": own} if request.param else {}


def mortal(revision: str, **planned: Any) -> Forgetful:
    """A server that knows no session of a former life."""
    return Forgetful(revision, "s" if revision in SESSIONS else None, **planned)


async def revive(server: HttpServer) -> None:
    """Start a server again once it is dead."""
    await server.until_dead()
    await server.start()


async def test_a_server_that_was_started_again_serves_the_next_call(
    revision: str, library: dict[str, Any]
) -> None:
    script = mortal(revision)
    async with scripted(script, **library) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        server.kill()
        with pytest.raises((ConnectFailedError, ResponseLostError)):
            await client.call_tool("echo", {})
        with pytest.raises(ConnectFailedError):
            await client.call_tool("echo", {})
        script.forgotten.add("s")
        await revive(server)
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert len(server.of("initialize")) == (2 if revision in SESSIONS else 0)


async def test_a_server_that_dies_loses_calls_and_gets_safe_requests_again(revision: str) -> None:
    async def die(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0")
        script.forgotten |= {"s", f"s{script.sessions}"}
        server.kill()
        await anyio.lowlevel.checkpoint()

    script = mortal(revision, on={"tools/call": die}, once={"tools/list": [die]})
    async with scripted(script) as (client, server), anyio.create_task_group() as tasks:
        with pytest.raises(ResponseLostError):
            await client.call_tool("echo", {})
        await revive(server)
        tasks.start_soon(revive, server)
        with anyio.fail_after(20):
            assert [tool.name for tool in await client.list_tools()] == ["echo"]
    first, *_, last = server.of("tools/list")
    assert first.id != last.id


async def half_a_head(asked: Asked, reply: Reply) -> None:
    await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await reply.gone()


async def half_a_body(asked: Asked, reply: Reply) -> None:
    await reply.head(200, {"Content-Type": "application/json", "Content-Length": "1000"})
    await reply.raw(b'{"jsonrpc": "2.0",')
    await reply.gone()


HALF_AN_EVENT = stream_events(b'data: {"jsonrpc": "2.0",', last=Reply.gone)


@pytest.mark.requirement("http.shutdown-by-close")
@pytest.mark.parametrize("half", [half_a_head, half_a_body, HALF_AN_EVENT])
async def test_half_an_answer_and_then_silence_ends_with_the_timeout_or_by_closing(
    revision: str, half: Handler, library: dict[str, Any]
) -> None:
    script, outcome = Script(revision, on={"tools/call": half}), Outcome()
    async with scripted(script, **library) as (client, server), anyio.create_task_group() as tasks:
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.1)
        await server.until_left()
        assert await client.list_tools()
        tasks.start_soon(outcome.run, partial(client.call_tool, "echo", {}))
        await server.until("tools/call", times=2)
        with anyio.fail_after(5):
            await client.close()
        await outcome.failed()
        await server.until_left(2)


@pytest.mark.parametrize("revision", SESSIONS[-1:])
async def test_a_body_that_comes_slowly_is_not_lost(revision: str) -> None:
    async def slow(asked: Asked, reply: Reply) -> None:
        body = json.dumps(result(asked)).encode()
        length = str(len(body))
        await reply.head(200, {"Content-Type": "application/json", "Content-Length": length})
        for at in range(0, len(body), len(body) // 4):
            with anyio.move_on_after(0.15):
                await reply.gone()
            await reply.raw(body[at : at + len(body) // 4])

    script = Script(revision, on={"tools/call": slow})
    async with scripted(script, timeouts=Timeouts(silence=0.45, http=PAUSES)) as (client, _):
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def dripping(asked: Asked, reply: Reply) -> None:
    await reply.head(200, {"Content-Type": "application/json", "Content-Length": "100000"})
    for _ in range(100_000):
        await reply.raw(b" ")
        with anyio.move_on_after(0.05):
            await reply.gone()
            return


@pytest.mark.parametrize("revision", ONE_OF_EACH)
@pytest.mark.parametrize(
    ("body", "timeouts", "reason"),
    [
        (half_a_body, Timeouts(silence=0.2, http=PAUSES), r"made no progress for 0\.2 s"),
        (dripping, Timeouts(body=0.3, http=PAUSES), r"the response body took more than 0\.3 s"),
    ],
)
async def test_a_body_that_stands_still_or_drips_is_lost(
    revision: str, body: Handler, timeouts: Timeouts, reason: str, library: dict[str, Any]
) -> None:
    script = Script(revision, once={"tools/call": [body]})
    async with scripted(script, timeouts=timeouts, **library) as (client, server):
        with pytest.raises(ResponseLostError, match=reason):
            await client.call_tool("echo", {})
        await server.until_left()


@pytest.mark.parametrize("revision", SESSIONS)
async def test_an_accepted_notification_keeps_its_connection(
    revision: str, library: dict[str, Any]
) -> None:
    name = "notifications/roots/list_changed"
    script = Script(revision, on={name: says(b"accepted", 202, "text/plain")})
    able = {"roots": {"listChanged": True}}
    async with scripted(script, capabilities=able, **library) as (client, server):
        await server.until("GET")
        for _ in range(5):
            await client.notify(name)
        assert server.connections <= 2  # that of GET may be another one


def garbage(noise: random.Random) -> bytes:
    """Bytes that look more or less like what could come."""
    pieces = [b"data: ", b"id: 1\n", b"\n\n", b"event: message\n", b"retry: 1\n", b":", b"\r", b"{"]
    pieces += [b'{"jsonrpc":"2.0"', b'"id":', b"[]", b"null", b"\0", b"\xff\xfe", b'"result":{}}']
    pieces += [
        b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n',
        b"event: endpoint\ndata: x\n\n",
    ]
    return b"".join(
        noise.choice(pieces) if noise.random() < 0.8 else noise.randbytes(noise.randrange(20))
        for _ in range(noise.randrange(40))
    )


def noisy(noise: random.Random) -> Handler:
    """A handler whose response is garbage, in one of several places."""

    async def handler(asked: Asked, reply: Reply) -> None:
        data, text = garbage(noise), garbage(noise).decode("latin-1")
        match noise.randrange(5):
            case 0:
                await reply.stream()
                await reply.part(data)
                await (reply.end() if noise.random() < 0.5 else reply.cut())
            case 1:
                await reply.json(data, status=noise.choice([200, 202, 400, 404, 500]))
            case 2:
                await reply.raw(data)
                await reply.cut()
            case 3:
                fields = {text: garbage(noise).decode("latin-1")}
                await reply.head(200, {"Content-Type": "application/json", **fields})
                await reply.cut()
            case _:
                kind = text.replace("\r", "").replace("\n", "")
                await reply.whole(200, data, Content_Type=kind)

    return handler


@pytest.mark.parametrize("seed", range(4))
async def test_garbage_fails_calls_readably_and_never_hangs(
    revision: str, seed: int, library: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    noise = random.Random(f"{revision} {seed}")
    script = Script(revision)
    timeouts = Timeouts(retries=(0.0,), http=PAUSES)
    async with scripted(script, timeouts=timeouts, **library) as (client, _):
        for what in ("tools/call", "tools/list", "GET"):
            script.on[what] = noisy(noise)
        for _ in range(10):
            for call in (client.list_tools, lambda: client.call_tool("echo", {})):
                with suppress(McpError):
                    await call()
        script.on.clear()
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


LOST = (ResponseLostError, ConnectFailedError, RequestTimeoutError)
QUICK = Timeouts(
    retries=(0.0, 0.01, 0.02, 0.04),
    http=HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01),
)


class LossyProxy:
    """Forwards each request over a connection of its own; while `lossy`, it loses a third."""

    def __init__(self, port: int, seed: int) -> None:
        self.lossy = False
        self._port = port
        self._random = Random(seed)

    async def forward(self, asked: Asked, reply: Reply) -> None:
        """Forward a request and its response, perhaps in part; then close the connection."""
        fields = [*asked.pairs, ("Connection", "close")]
        lines = [f"{asked.verb} {asked.target} HTTP/1.1", *(": ".join(pair) for pair in fields)]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1") + asked.body
        draw, place = self._random.random() if self.lossy else 1.0, self._random.randrange(800)
        async with (
            await anyio.connect_tcp("127.0.0.1", self._port) as server,
            anyio.create_task_group() as tasks,
        ):

            async def until_gone() -> None:
                await reply.gone()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_gone)
            await server.send(request[:place] if draw < 0.12 else request)
            left = 0 if draw < 0.12 else place if draw < 0.35 else 1 << 40
            try:
                while left > 0:
                    part = await server.receive()
                    await reply.raw(part[:left])
                    left -= len(part)
            except BROKEN:
                pass
            if 0.32 <= draw < 0.35 and asked.what == "tools/call":
                await anyio.sleep_forever()  # silence, until the client gives up
            tasks.cancel_scope.cancel()
        await reply.cut()


async def make_calls(client: Any, name: str, answered: list[str], lost: list[Exception]) -> None:
    """Call three tools in turn; store the marks that were answered, and the errors."""
    for number in range(7):
        key, text = f"{name}-{number}", str(number + 1)
        for tool, arguments, expected in (
            ("add", {"a": number, "b": 1}, text),
            ("count", {"to": number + 1, "width": 100}, text),
            ("mark", {"key": key}, key),
        ):
            heard = [0.0]

            def hear(value: float, *more: object, heard: list[float] = heard) -> None:
                heard.append(value)

            try:
                result = await client.call_tool(tool, arguments, timeout=0.2, on_progress=hear)
            except LOST as error:
                text_of(error)
                lost.append(error)
                continue
            assert result.content[0].text == expected
            # A retried call counts anew; within one response no report is missing or duplicate.
            assert all(after in (before + 1, 1) for before, after in pairwise(heard))
            assert tool != "count" or heard[-1] == number + 1
            answered += [key] if tool == "mark" else []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_under_random_loss_no_call_hangs_or_runs_twice(
    revision: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    answered, lost = list[str](), list[Exception]()
    with http_process(retry=0.01) as process, anyio.fail_after(SECONDS):
        proxy = LossyProxy(process.port, seed)
        async with (
            HttpServer(proxy.forward) as server,
            connect(server.url, revision=revision, timeouts=QUICK) as client,
            client.listen(tools=True, retry_seconds=[0.01] * 10_000) as changes,
        ):
            await client.list_tools()  # which ones are safe to call again
            proxy.lossy = True
            async with anyio.create_task_group() as tasks:
                for number in range(4):
                    tasks.start_soon(make_calls, client, str(number), answered, lost)
            proxy.lossy = False
            await client.call_tool("grow", {"name": "grown"})
            while await anext(changes) != ToolsChanged():
                pass
            done = (await client.call_tool("marks", {})).content[0].text.split()
    assert answered
    assert lost
    assert set(answered) <= set(done)
    assert len(done) == len(set(done))
    check_quiet(caplog)
