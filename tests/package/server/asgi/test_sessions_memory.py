"""Memory of sessions: many abandoned ones give it back; many streams are open at once."""

from __future__ import annotations

import gc
import sys
from contextlib import AsyncExitStack

import anyio
import pytest
from trio.testing import MockClock

from mcp_protocol import Context, Server
from mcp_protocol.server.asgi.event_store import MemoryEventStore
from mcp_protocol.server.asgi.settings import Limits
from package.asgi_client import SESSION, Http, asgi
from package.wire import INITIALIZED, initialize, request

REVISION = "2025-11-25"
MANY = 1000


def server_of() -> Server:
    server = Server("tester")

    @server.tool()
    async def chatty(ctx: Context) -> str:
        await ctx.info("x" * 1000)
        return "said"

    return server


CALL = request(REVISION, "tools/call", {"name": "chatty", "arguments": {}})


async def open_and_abandon(http: Http, number: int) -> None:
    """Open a session, use it in one of three ways, and never come back to it."""
    identifier = (await http.post(initialize(REVISION))).fields[SESSION]
    fields = {SESSION: identifier}
    await http.post(INITIALIZED, **fields)
    if number % 3 == 1:
        await http.post(CALL, **fields)
    elif number % 3 == 2:
        async with http.stream("GET", fields=fields) as stream:
            await stream.event()
        await stream.finished.wait()


def blocks() -> int:
    """Blocks of memory that Python's objects take now."""
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize(
    "anyio_backend",
    # A clock that jumps when everybody waits: half an hour passes at once.
    [pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio")],
)
async def test_abandoned_sessions_give_their_memory_back() -> None:
    store = MemoryEventStore()
    async with asgi(server_of(), events=store, limits=Limits(sessions=MANY)) as http:
        idle = Limits().idle
        assert idle is not None
        for number in range(60):  # what is made once, and kept
            await open_and_abandon(http, number)
        await anyio.sleep(2 * idle)
        before = blocks()
        for number in range(MANY):
            await open_and_abandon(http, number)
        held = blocks()
        await anyio.sleep(2 * idle)
        after = blocks()
        assert len(store) == 0
        assert held - before > 50 * MANY  # they did take something
        assert after - before < 0.05 * (held - before)
        assert after < 1.2 * before


async def test_sessions_take_bounded_memory_though_none_is_idle() -> None:
    store = MemoryEventStore()
    async with asgi(server_of(), events=store, limits=Limits(sessions=10)) as http:
        for number in range(100):
            await open_and_abandon(http, number)
        assert len(store) <= 10


@pytest.mark.requirement("http.independent-process", revisions=(REVISION,))
async def test_five_hundred_streams_are_open_at_once() -> None:
    server = server_of()
    async with asgi(server) as http, AsyncExitStack() as stack:
        streams = []
        for _ in range(500):
            client = http.another()
            await client.initialize(REVISION)
            streams.append(await stack.enter_async_context(client.stream("GET")))
        server.remove_tool("chatty")
        for stream in streams:
            assert (await stream.message())["method"] == "notifications/tools/list_changed"
