"""The server of the benchmark on the official SDK."""

from __future__ import annotations

import asyncio

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("bench", log_level="ERROR")


@server.tool(structured_output=False)
async def add(a: int, b: int) -> str:
    """The sum of two numbers, as text."""
    return str(a + b)


@server.tool()
async def total(ctx: Context, a: int, b: int) -> dict[str, int]:
    """The sum of two numbers, as an object; other tasks run before."""
    assert ctx.request_id is not None
    await asyncio.sleep(0)
    return {"total": a + b}


if __name__ == "__main__":
    server.run()
