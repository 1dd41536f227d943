"""Servers that die and come back, networks that lose and double, and bytes that mean nothing."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from kit import http_script
from kit.faults import ONE_OF_EACH, Outcome, call_text, check_quiet, client_of, text_of
from kit.http_process import SECONDS, HttpProcess, http_process
from kit.http_script import Forgetful, Script, SseScript, log_message, result
from kit.http_server import BROKEN, Asked, Handler, HttpServer, Reply, read_request
from kit.rules import revision_fixture
from kit.wire import SESSIONS, SSE_ONLY, STREAMABLE
from mcpgen_runtime import (
    ClientHandlers,
    ConnectFailedError,
    HttpTimeouts,
    McpError,
    RequestTimeoutError,
    ResponseLostError,
    Timeouts,
    ToolsChanged,
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


def mortal(revision: str) -> Forgetful:
    """A server that knows no session of a former life."""
    return Forgetful(revision, "s" if revision in SESSIONS else None)


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

    script = mortal(revision)
    script.on["tools/call"] = die
    script.once["tools/list"] = [die]
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


async def half_an_event(asked: Asked, reply: Reply) -> None:
    await reply.stream()
    await reply.part(b'data: {"jsonrpc": "2.0",')
    await reply.gone()


halves = pytest.mark.parametrize("half", [half_a_head, half_a_body, half_an_event])


@halves
async def test_half_an_answer_and_then_silence_ends_with_the_timeout(
    revision: str, half: Handler, library: dict[str, Any]
) -> None:
    script = Script(revision)
    script.once["tools/call"] = [half]
    async with scripted(script, **library) as (client, server):
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.1)
        await server.until_left()
        assert (await client.call_tool("echo", {})).content[0].text == "done"


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

    script = Script(revision)
    script.on["tools/call"] = slow
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
    script = Script(revision)
    script.once["tools/call"] = [body]
    async with scripted(script, timeouts=timeouts, **library) as (client, server):
        with pytest.raises(ResponseLostError, match=reason):
            await client.call_tool("echo", {})
        await server.until_left()


@pytest.mark.requirement("http.shutdown-by-close")
@halves
async def test_closing_does_not_wait_for_the_other_half(
    revision: str, half: Handler, library: dict[str, Any]
) -> None:
    script, outcome = Script(revision), Outcome()
    script.on["tools/call"] = half
    async with scripted(script, **library) as (client, server), anyio.create_task_group() as tasks:
        tasks.start_soon(outcome.run, partial(client.call_tool, "echo", {}))
        await server.until("tools/call")
        with anyio.fail_after(5):
            await client.close()
        await outcome.failed()
        await server.until_left()


@pytest.mark.parametrize("revision", SESSIONS)
async def test_an_accepted_notification_keeps_its_connection(
    revision: str, library: dict[str, Any]
) -> None:
    async def accept(asked: Asked, reply: Reply) -> None:
        await reply.whole(202, b"accepted")

    name = "notifications/roots/list_changed"
    script = Script(revision)
    script.on[name] = accept
    able = {"roots": {"listChanged": True}}
    async with scripted(script, capabilities=able, **library) as (client, server):
        await server.until("GET")
        for _ in range(5):
            await client.notify(name)
        assert server.connections <= 2  # that of GET may be another one


@pytest.mark.parametrize("revision", SESSIONS)
async def test_events_that_a_proxy_drops_are_resumed(revision: str) -> None:
    heard: list[Any] = []

    class Handlers(ClientHandlers):
        async def logging_message(self, params: Any, ctx: Any) -> None:
            heard.append(params.data)

    noise = random.Random(revision)
    events: list[bytes] = []

    async def some(reply: Reply, after: int) -> None:
        await reply.stream()
        left = b"".join(events[after:])
        at = noise.randrange(len(events[after]), len(left) + 1)
        await reply.part(left[:at])
        await (reply.end() if at == len(left) else reply.cut())

    async def call(asked: Asked, reply: Reply) -> None:
        messages = [*map(log_message, range(20)), result(asked)]
        for number, message in enumerate(messages):
            events.append(b"id: %d\ndata: %b\n\n" % (number, json.dumps(message).encode()))
        await some(reply, 0)

    async def get(asked: Asked, reply: Reply) -> None:
        last = asked.fields.get("last-event-id")
        if last is None:
            await reply.whole(405)
        else:
            await some(reply, int(last) + 1)

    script = Script(revision)
    script.on = {"tools/call": call, "GET": get}
    async with scripted(script, handlers=Handlers()) as (client, _):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert heard == list(range(20))


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


def check_no_error(caplog: pytest.LogCaptureFixture) -> None:
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


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
    check_no_error(caplog)


@pytest.mark.parametrize("revision", [*STREAMABLE, *SSE_ONLY])
@pytest.mark.parametrize("seed", range(6))
async def test_garbage_fails_the_opening_readably(
    revision: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    noise = random.Random(f"{revision} {seed}")
    script = (SseScript if revision in SSE_ONLY else Script)(revision)
    for what in ("server/discover", "initialize", "notifications/initialized", "GET"):
        script.on[what] = noisy(noise)
    timeouts = Timeouts(probe=0.5, opening=2, http=PAUSES)
    with suppress(McpError):
        async with scripted(script, revision=noise.choice([None, revision]), timeouts=timeouts):
            pass
    check_no_error(caplog)


CALL_SECONDS = 0.2
LOST = (ResponseLostError, ConnectFailedError, RequestTimeoutError)
QUICK = Timeouts(
    retries=(0.0, 0.01, 0.02, 0.04),
    http=HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01),
)


@dataclass(frozen=True)
class Fault:
    """So many bytes of a request and of its answer pass; then comes an end, or silence."""

    up: int | None = None
    down: int | None = None
    silence: bool = False


class Proxy:
    """Passes requests to a server, each over a connection of its own, as `plan` has it."""

    def __init__(self, port: int) -> None:
        self.plan: Callable[[Asked], Fault] = lambda asked: Fault()
        self._port = port

    async def serve(self, client: SocketStream) -> None:
        """Serve one connection until either side is gone."""
        async with client, anyio.create_task_group() as tasks:
            buffered = BufferedByteReceiveStream(client)
            last = anyio.CancelScope()
            try:
                while True:
                    asked = await read_request(buffered)
                    last.cancel()  # its answer is whole, or there would be no other request
                    last = anyio.CancelScope()
                    tasks.start_soon(self._pass_on, asked, client, last, tasks)
            except (*BROKEN, anyio.IncompleteRead):
                tasks.cancel_scope.cancel()

    async def _pass_on(
        self, asked: Asked, client: SocketStream, last: anyio.CancelScope, connection: Any
    ) -> None:
        lines = [f"{asked.verb} {asked.target} HTTP/1.1", *(f"{n}: {v}" for n, v in asked.pairs)]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1") + asked.body
        fault = self.plan(asked)
        with last:
            try:
                async with await anyio.connect_tcp("127.0.0.1", self._port) as server:
                    await server.send(request[: fault.up])
                    left = 1 << 40 if fault.down is None else fault.down
                    while left > 0 and fault.up is None:
                        part = await server.receive()
                        await client.send(part[:left])
                        left -= len(part)
                    if fault.silence:
                        await anyio.sleep_forever()
            except (*BROKEN, OSError):
                pass
            connection.cancel_scope.cancel()


@asynccontextmanager
async def run_proxy(port: int) -> AsyncIterator[tuple[str, Proxy]]:
    """The URL of a proxy, and the proxy."""
    proxy = Proxy(port)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy.serve)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/mcp", proxy
        tasks.cancel_scope.cancel()


def chaos(seed: int) -> Callable[[Asked], Fault]:
    """A plan: of three requests one is lost, or its answer, somewhere."""
    random = Random(seed)

    def plan(asked: Asked) -> Fault:
        draw, place = random.random(), random.randrange(800)
        if draw < 0.12:
            return Fault(up=place)
        if draw < 0.32:
            return Fault(down=place)
        if draw < 0.35 and asked.what == "tools/call":
            return Fault(down=place, silence=True)
        return Fault()

    return plan


async def make_calls(client: Any, name: str, answered: list[str], lost: list[Exception]) -> None:
    """Make calls of three tools; the marks that were answered, and the errors, are added."""
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

            how: Any = {"timeout": CALL_SECONDS, "on_progress": hear}
            try:
                result = await client.call_tool(tool, arguments, **how)
            except LOST as error:
                text_of(error)
                lost.append(error)
                continue
            assert result.content[0].text == expected
            # What is asked again counts anew; within one answer nothing is missing or twice.
            assert all(after in (before + 1, 1) for before, after in pairwise(heard))
            assert tool != "count" or heard[-1] == number + 1
            answered += [key] if tool == "mark" else []


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    """A server that waits for what a proxy cuts."""
    with http_process(retry=0.01) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_whatever_is_dropped_no_call_hangs_or_runs_twice(
    revision: str,
    seed: int,
    server: HttpProcess,
    anyio_backend: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = f"{revision}-{anyio_backend}-{seed}"
    answered, lost = list[str](), list[Exception]()
    async with (
        run_proxy(server.port) as (url, proxy),
        client_of(server, revision, url=url, timeouts=QUICK) as client,
        client.listen(tools=True, retry_seconds=[0.01] * 10_000) as changes,
    ):
        proxy.plan = chaos(seed)
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(make_calls, client, f"{name}-{number}", answered, lost)
        proxy.plan = lambda asked: Fault()
        await call_text(client, "grow", name=name)
        with anyio.fail_after(SECONDS):
            while await anext(changes) != ToolsChanged():
                pass
        done = (await call_text(client, "marks")).split()
    assert len(done) == len(set(done))
    assert set(answered) <= set(done)
    assert answered
    assert lost
    check_quiet(caplog)
