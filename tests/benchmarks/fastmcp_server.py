"""The server of the benchmark on FastMCP."""

from __future__ import annotations

import asyncio

from fastmcp import Context, FastMCP

server = FastMCP("bench")


@server.tool(output_schema=None)
async def add(a: int, b: int) -> str:
    """The sum of two numbers, as text."""
    return str(a + b)


@server.tool
async def total(ctx: Context, a: int, b: int) -> dict[str, int]:
    """The sum of two numbers, as an object; other tasks run before."""
    assert ctx.request_id is not None
    await asyncio.sleep(0)
    return {"total": a + b}
