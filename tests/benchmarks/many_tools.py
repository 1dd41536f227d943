"""A server with 2,000 tools: its list, and a call of one tool among them, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import orjson

from mcpgen_runtime import OutgoingMessage, Server
from mcpgen_runtime.transports.memory import MemoryChannel, memory_pair

from .calls import one_by_one
from .measure import FLOOR, OURS, AtMost, Line, medians_async
from .work import HANDSHAKE

TOOLS = 2000
LISTS = 20
WHOLE = "a request and a response go through client and server, besides the encoding"
"""Why a list may take longer than its encoding."""


def server_with(tools: int) -> Server:
    """A server with so many tools that add two numbers."""
    server = Server("many")

    async def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    for number in range(tools):
        server.tool(f"add_{number}")(add)
    return server


@asynccontextmanager
async def session(server: Server) -> AsyncIterator[MemoryChannel]:
    """A channel to a server, with an open session."""
    near, far = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": client}
        await ask(near, "initialize", params)
        initialized = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        await near.send(OutgoingMessage(initialized))
        yield near
        await near.close()


async def ask(channel: MemoryChannel, method: str, params: Mapping[str, Any]) -> bytes:
    """Send a request, and receive its response."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    await channel.send(OutgoingMessage(orjson.dumps(message)))
    return await channel.receive()


async def _measure_calls(rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    call = {"name": "add_0", "arguments": {"a": 1, "b": 2}}
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(session(server_with(1)))
        many = await stack.enter_async_context(session(server_with(TOOLS)))
        listed = await ask(many, "tools/list", {})
        tools = orjson.loads(listed)["result"]
        assert len(tools["tools"]) == TOOLS

        async def encode_anew() -> bytes:
            return orjson.dumps(tools)

        calls = await medians_async(
            {
                OURS: partial(one_by_one, partial(ask, many, "tools/call", call)),
                FLOOR: partial(one_by_one, partial(ask, one, "tools/call", call)),
            },
            rounds,
        )
        lists = await medians_async(
            {
                OURS: partial(one_by_one, partial(ask, many, "tools/list", {}), LISTS),
                FLOOR: partial(one_by_one, encode_anew, LISTS),
            },
            rounds,
        )
    return calls, lists


def many_tools(rounds: int) -> Iterable[Line]:
    """Rows on a server with many tools."""
    calls, lists = asyncio.run(_measure_calls(rounds))
    note = "the floor is a call of the only tool"
    yield Line(f"a call among {TOOLS:,} tools", calls, (AtMost(FLOOR, 1.15),), note)
    note = "the floor is `orjson.dumps` of the list"
    yield Line(f"a list of {TOOLS:,} tools", lists, (AtMost(FLOOR, 1.0, WHOLE),), note)
