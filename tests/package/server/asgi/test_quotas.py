"""Quotas of streams and memory; many abandoned sessions give theirs back."""

from __future__ import annotations

import gc
import sys

import anyio
import pytest

from kit.asgi_client import SESSION, Http, asgi
from kit.simulation import on_virtual_clock
from kit.web import Web
from kit.wire import INITIALIZED, initialize, request
from mcpgen_runtime import Limits, MemoryEventStore
from mcpgen_runtime.server.asgi.quotas import MemoryQuota, StreamMemory

pytestmark = pytest.mark.processes

REVISION = "2025-11-25"
MANY = 1000
CALL = request(REVISION, "tools/call", {"name": "logs", "arguments": {}})


async def open_and_abandon(http: Http, number: int) -> None:
    """Open a session, use it in one of three ways, and never come back to it."""
    http.scope["client"] = (f"192.0.{number % 250}.{number // 250}", 1)
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


@on_virtual_clock
async def test_abandoned_sessions_give_their_memory_back() -> None:
    store = MemoryEventStore()
    async with asgi(Web().server, events=store, limits=Limits(sessions=MANY)) as http:
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


async def test_the_largest_other_stream_ends_if_that_makes_room() -> None:
    memory = MemoryQuota(limit=10)
    ended: list[str] = []
    small, large = StreamMemory(lambda: ended.append("s")), StreamMemory(lambda: ended.append("l"))
    await memory.reserve(3, small)
    await memory.reserve(7, large)
    assert not await memory.reserve(7, large)
    assert not await memory.reserve(7)  # more than 7 have to be free for 7
    assert ended == []
    assert await memory.reserve(6)
    assert (ended, memory.size) == (["l"], 9)


async def test_memory_is_returned_once() -> None:
    memory, stream = MemoryQuota(limit=10), StreamMemory(lambda: None)
    assert await memory.reserve(4)
    assert await memory.reserve(6, stream)
    assert not await memory.reserve(1, stream)
    memory.release(2, stream)
    assert (memory.size, stream.size) == (8, 4)
    for _ in range(2):
        memory.close(stream)
        memory.release(3, stream)
        assert memory.size == 4
