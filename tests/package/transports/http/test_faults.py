"""Servers that die and come back, networks that lose and double, and bytes that mean nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.async_client import ClientHandlers
from mcpgen_runtime.errors import (
    ConnectFailedError,
    McpError,
    RequestTimeoutError,
    ResponseLostError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package import http_script
from package.faults import ONE_OF_EACH
from package.http_script import Script, SseScript, result
from package.http_server import Asked, Handler, Reply
from package.transports.http.broken_answers import (
    garbage,
    half_a_body,
    half_a_head,
    half_an_event,
    noisy,
)
from package.wire import SESSIONS, SSE_ONLY, STREAMABLE

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture(params=STREAMABLE)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


PAUSES = HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01, longest_pause=0.01)
scripted = partial(http_script.connect_scripted, timeouts=Timeouts(http=PAUSES))


class Mortal(Script):
    """A server that knows no session of a former life."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision, "s" if revision in SESSIONS else None)
        self.known: set[str] = set()

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        named = asked.fields.get("mcp-session-id")
        if named is not None and named not in self.known:
            await reply.whole(404)
        else:
            await super().__call__(asked, reply)

    def session_fields(self) -> dict[str, str]:
        fields = super().session_fields()
        self.known.update(fields.values())
        return fields


async def test_a_server_that_was_started_again_serves_the_next_call(revision: str) -> None:
    script = Mortal(revision)
    async with scripted(script) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        server.kill()
        with pytest.raises((ConnectFailedError, ResponseLostError)):
            await client.call_tool("echo", {})
        with pytest.raises(ConnectFailedError):
            await client.call_tool("echo", {})
        script.known.clear()
        await server.until_dead()
        await server.start()
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert len(server.of("initialize")) == (2 if revision in SESSIONS else 0)


async def test_a_call_that_was_under_way_is_lost_with_its_server(revision: str) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0")
        script.known.clear()
        server.kill()
        await anyio.lowlevel.checkpoint()

    script = Mortal(revision)
    script.on["tools/call"] = call
    async with scripted(script) as (client, server):
        with pytest.raises(ResponseLostError):
            await client.call_tool("echo", {})
        await revive(server)
        assert await client.list_tools()


async def test_an_interrupted_list_is_fetched_after_the_restart(
    revision: str,
) -> None:
    async def listing(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(id="1-0")
        script.known.clear()
        server.kill()
        await anyio.lowlevel.checkpoint()

    script = Mortal(revision)
    script.once["tools/list"] = [listing]
    async with scripted(script) as (client, server), anyio.create_task_group() as tasks:
        tasks.start_soon(revive, server)
        with anyio.fail_after(20):
            assert [tool.name for tool in await client.list_tools()] == ["echo"]
    first, *_, last = server.of("tools/list")
    assert first.id != last.id


async def revive(server: Any) -> None:
    """Start a server again once it is dead."""
    await server.until_dead()
    await server.start()


@pytest.mark.parametrize("half", [half_a_head, half_a_body, half_an_event])
async def test_half_an_answer_and_then_silence_ends_with_the_timeout(
    revision: str, half: Handler
) -> None:
    script = Script(revision)
    script.once["tools/call"] = [half]
    async with scripted(script) as (client, server):
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.1)
        await server.until_left()
        assert (await client.call_tool("echo", {})).content[0].text == "done"


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_body_that_stands_still_is_lost_without_a_timeout(revision: str) -> None:
    script = Script(revision)
    script.once["tools/call"] = [half_a_body]
    async with scripted(script, timeouts=Timeouts(silence=0.2, http=PAUSES)) as (client, server):
        with pytest.raises(ResponseLostError, match=r"made no progress for 0\.2 s"):
            await client.call_tool("echo", {})
        await server.until_left()


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


@pytest.mark.parametrize("revision", SESSIONS[-1:])
async def test_a_body_that_drips_without_end_is_lost(revision: str) -> None:
    async def dripping(asked: Asked, reply: Reply) -> None:
        await reply.head(200, {"Content-Type": "application/json", "Content-Length": "100000"})
        for _ in range(100_000):
            await reply.raw(b" ")
            with anyio.move_on_after(0.05):
                await reply.gone()
                return

    script = Script(revision)
    script.once["tools/call"] = [dripping]
    timeouts = Timeouts(silence=5, body=0.3, http=PAUSES)
    async with scripted(script, timeouts=timeouts) as (client, server):
        with pytest.raises(ResponseLostError, match=r"the response body took more than 0\.3 s"):
            await client.call_tool("echo", {})
        await server.until_left()


@pytest.mark.requirement("http.shutdown-by-close")
@pytest.mark.parametrize("half", [half_a_head, half_a_body, half_an_event])
async def test_closing_does_not_wait_for_the_other_half(revision: str, half: Handler) -> None:
    script = Script(revision)
    script.on["tools/call"] = half
    failures: list[type] = []
    async with scripted(script) as (client, server), anyio.create_task_group() as tasks:

        async def calling() -> None:
            try:
                await client.call_tool("echo", {})
            except McpError as error:
                failures.append(type(error))

        tasks.start_soon(calling)
        await server.until("tools/call")
        with anyio.fail_after(5):
            await client.close()
    assert len(failures) == 1


async def test_a_proxy_that_buffers_to_the_end_only_delays(
    revision: str,
) -> None:
    heard: list[float] = []

    async def call(asked: Asked, reply: Reply) -> None:
        token = asked.message["params"]["_meta"]["progressToken"]
        note = {"progressToken": token, "progress": 1}
        events = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": note}]
        data = b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in events)
        data += b"data: %b\n\n" % json.dumps(result(asked)).encode()
        await reply.whole(200, data, Content_Type="text/event-stream")

    script = Script(revision)
    script.on["tools/call"] = call
    async with scripted(script) as (client, _):
        await client.call_tool("echo", {}, on_progress=lambda done, *_: heard.append(done))
    assert heard == [1]


async def test_duplicated_responses_are_handled_once(revision: str) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        for _ in range(3):
            await reply.event(result(asked))
        await reply.end()

    script = Script(revision)
    script.on["tools/call"] = call
    async with scripted(script) as (client, server):
        for _ in range(3):
            assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert len(server.of("tools/call")) == 3


@pytest.mark.parametrize("revision", SESSIONS)
async def test_events_that_a_proxy_drops_are_resumed(revision: str) -> None:
    """Each connection breaks after some bytes; the server repeats what comes after an event."""
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
        for number in range(20):
            params = {"level": "info", "data": number}
            log = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
            events.append(b"id: %d\ndata: %b\n\n" % (number, json.dumps(log).encode()))
        events.append(b"id: 20\ndata: %b\n\n" % json.dumps(result(asked)).encode())
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


OPENINGS: dict[str, Callable[[str], Script]] = dict.fromkeys(STREAMABLE, Script)
OPENINGS.update(dict.fromkeys(SSE_ONLY, SseScript))


@pytest.mark.parametrize("seed", range(2))
async def test_garbage_fails_calls_readably_and_never_hangs(
    revision: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    noise = random.Random(f"{revision} {seed}")
    script = Script(revision)
    async with scripted(script, timeouts=Timeouts(retries=(0.0,), http=PAUSES)) as (client, _):
        for what in ("tools/call", "tools/list", "GET"):
            script.on[what] = noisy(noise)
        for _ in range(10):
            for call in (client.list_tools, lambda: client.call_tool("echo", {})):
                with suppress(McpError):
                    await call()
        script.on.clear()
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("revision", SSE_ONLY)
@pytest.mark.parametrize("seed", range(4))
async def test_garbage_on_the_one_stream_is_passed_over(
    revision: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    noise = random.Random(f"{revision} {seed}")
    script = SseScript(revision)

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        assert script.stream is not None
        for _ in range(noise.randrange(5)):
            await script.stream.part(garbage(noise) + b"\n\n")
        await script.say(result(asked))

    script.on["tools/call"] = call
    async with scripted(script) as (client, _):
        for _ in range(30):
            assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("name", OPENINGS)
@pytest.mark.parametrize("seed", range(6))
async def test_garbage_fails_the_opening_readably(
    name: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    noise = random.Random(f"{name} {seed}")
    script = OPENINGS[name](name)
    for what in ("server/discover", "initialize", "notifications/initialized", "GET"):
        script.on[what] = noisy(noise)
    timeouts = Timeouts(probe=0.5, opening=2, http=PAUSES)
    with suppress(McpError):
        async with scripted(script, revision=noise.choice([None, name]), timeouts=timeouts):
            pass
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
