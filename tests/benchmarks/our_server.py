"""The server under test. `work.py` says what its tools are for."""

from __future__ import annotations

import asyncio

from mcpgen_runtime import Context, Server

server = Server("bench", version="1.0")


@server.tool(structured=False)
async def add(a: int, b: int) -> str:
    """The sum of two numbers, as text."""
    return str(a + b)


@server.tool()
async def total(ctx: Context, a: int, b: int) -> dict[str, int]:
    """The sum of two numbers, as an object; other tasks run before."""
    assert ctx.request_id is not None
    await asyncio.sleep(0)
    return {"total": a + b}


@server.tool(structured=False)
async def report(ctx: Context, a: int, b: int) -> str:
    """The sum of two numbers, as text; reports progress before."""
    await ctx.progress(0.5, 1.0)
    return str(a + b)


if __name__ == "__main__":
    server.run()
