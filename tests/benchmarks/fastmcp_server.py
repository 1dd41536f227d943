"""The server of the benchmark on FastMCP."""

from __future__ import annotations

from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool(output_schema=None)
async def add(a: int, b: int) -> str:
    """The sum of two numbers, as text."""
    return str(a + b)
