"""The server under test with tools that take more: `python -m tests.benchmarks.http_server varied`.

Each does what `add` does, and in addition what its name says.
"""

from __future__ import annotations

import anyio

from mcpgen_runtime import Context, Server

server = Server("bench", version="1.0")


@server.tool(structured=False)
async def add_with_context(ctx: Context, a: int, b: int) -> str:
    """The sum of two numbers, as text; knows its request."""
    assert ctx.request_id
    return str(a + b)


@server.tool(structured=False)
async def add_after_waiting(a: int, b: int) -> str:
    """The sum of two numbers, as text; other tasks run before."""
    await anyio.sleep(0)
    return str(a + b)
