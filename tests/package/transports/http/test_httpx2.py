"""The same client where httpx2 makes the requests: with a client of the user's own, as with TLS."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

import anyio
import httpx2
import pytest

from mcpgen_runtime import Timeouts
from mcpgen_runtime.errors import (
    ConnectFailedError,
    McpError,
    RequestTimeoutError,
    ResponseLostError,
)
from mcpgen_runtime.runtime.time_limits import HttpTimeouts
from package import http_script
from package.http_script import Script, SseScript, answer_on_stream, result
from package.http_server import Asked, Handler, Reply
from package.transports.http.broken_answers import half_a_body, half_a_head, half_an_event, noisy
from package.wire import SESSIONS, SSE_ONLY, STREAMABLE

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture(params=STREAMABLE)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


PAUSES = HttpTimeouts(first_pause=0.01, shortest_pause=0.01, longest_poll=0.01)
QUICK = Timeouts(retries=(0.0,), http=PAUSES)


@pytest.fixture
async def own() -> AsyncIterator[httpx2.AsyncClient]:
    """A client of httpx2's own making."""
    async with httpx2.AsyncClient() as client:
        yield client


scripted = partial(http_script.connect_scripted, timeouts=QUICK)


async def break_stream(asked: Asked, reply: Reply) -> None:
    """Break a stream off after an event."""
    await reply.stream()
    await reply.event(id="1-0")
    await reply.cut()


async def test_answers_come_as_json_and_on_streams(revision: str, own: httpx2.AsyncClient) -> None:
    script = Script(revision)
    script.once["tools/call"] = [answer_on_stream]
    async with scripted(script, http_client=own, timeouts=QUICK) as (client, _):
        for _ in range(2):
            assert (await client.call_tool("echo", {})).content[0].text == "done"


@pytest.mark.requirement("http.resume-always-get", "http.stream-any-disconnect")
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_stream_is_taken_up_again(revision: str, own: httpx2.AsyncClient) -> None:
    async def rest(asked: Asked, reply: Reply) -> None:
        if asked.fields.get("last-event-id") != "1-0":
            await reply.whole(405)
            return
        await reply.stream()
        await reply.event(result(server.of("tools/call")[0]))
        await reply.end()

    script = Script(revision)
    script.on = {"tools/call": break_stream, "GET": rest}
    async with scripted(script, http_client=own, timeouts=QUICK) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_lost_requests_are_retried_only_if_they_are_safe(
    revision: str, own: httpx2.AsyncClient
) -> None:
    async def cut(asked: Asked, reply: Reply) -> None:
        await reply.cut()

    script = Script(revision)
    script.once = {"tools/list": [cut], "tools/call": [cut]}
    async with scripted(script, http_client=own, timeouts=QUICK) as (client, server):
        assert await client.list_tools()
        with pytest.raises(ResponseLostError):
            await client.call_tool("echo", {})
    assert len({asked.id for asked in server.of("tools/list")}) == 2


@pytest.mark.parametrize("half", [half_a_head, half_a_body, half_an_event])
async def test_half_an_answer_ends_at_the_timeout_and_closes(
    revision: str, half: Handler, own: httpx2.AsyncClient
) -> None:
    script = Script(revision)
    script.once["tools/call"] = [half]
    async with scripted(script, http_client=own, timeouts=QUICK) as (client, server):
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.1)
        await server.until_left()
        assert (await client.call_tool("echo", {})).content[0].text == "done"


async def test_a_body_that_stands_still_is_lost(revision: str, own: httpx2.AsyncClient) -> None:
    script = Script(revision)
    script.once["tools/call"] = [half_a_body]
    timeouts = Timeouts(silence=0.2, retries=(0.0,), http=PAUSES)
    async with scripted(script, http_client=own, timeouts=timeouts) as (client, _):
        with pytest.raises(ResponseLostError, match="made no progress"):
            await client.call_tool("echo", {})


async def test_cancelling_and_closing_close_the_connections(
    revision: str, own: httpx2.AsyncClient
) -> None:
    there = anyio.Event()

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        there.set()
        await reply.gone()

    async def calling() -> None:
        with suppress(McpError):
            await client.call_tool("echo", {})

    script = Script(revision)
    script.on["tools/call"] = call
    async with scripted(script, http_client=own, timeouts=QUICK) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(calling)
            await there.wait()
            tasks.cancel_scope.cancel()
        await server.until_left()
        there = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(calling)
            await there.wait()
            await client.close()
        await server.until_left(2)


async def test_a_server_that_was_started_again_is_found_again(
    revision: str, own: httpx2.AsyncClient
) -> None:
    async with scripted(Script(revision), http_client=own, timeouts=QUICK) as (client, server):
        await client.call_tool("echo", {})
        server.kill()
        await server.until_dead()
        with pytest.raises((ConnectFailedError, ResponseLostError)):
            await client.call_tool("echo", {})
        with pytest.raises(ConnectFailedError):
            await client.call_tool("echo", {})
        await server.start()
        assert (await client.call_tool("echo", {})).content[0].text == "done"


@pytest.mark.parametrize("seed", range(4))
async def test_garbage_fails_calls_readably_and_never_hangs(
    revision: str, seed: int, own: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    noise = random.Random(f"httpx2 {revision} {seed}")
    script = Script(revision)
    async with scripted(script, http_client=own, timeouts=QUICK) as (client, _):
        for what in ("tools/call", "tools/list", "GET"):
            script.on[what] = noisy(noise)
        for _ in range(15):
            for call in (client.list_tools, lambda: client.call_tool("echo", {})):
                with suppress(McpError):
                    await call()
        script.on.clear()
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("revision", SSE_ONLY)
async def test_the_older_transport_works_too(revision: str, own: httpx2.AsyncClient) -> None:
    async with scripted(SseScript(revision), http_client=own, timeouts=QUICK) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        await client.close()
        await server.until_left()


@pytest.mark.parametrize("revision", SESSIONS)
async def test_an_accepted_notification_keeps_its_connection(
    revision: str, own: httpx2.AsyncClient
) -> None:
    async def accept(asked: Asked, reply: Reply) -> None:
        await reply.whole(202, b"accepted")

    name = "notifications/roots/list_changed"
    script = Script(revision)
    script.on[name] = accept
    able = {"roots": {"listChanged": True}}
    async with scripted(script, capabilities=able, http_client=own) as (client, server):
        await server.until("GET")
        for _ in range(5):
            await client.notify(name)
        assert server.connections <= 2  # that of GET may be another one
