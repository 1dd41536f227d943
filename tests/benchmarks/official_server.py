"""The server of the benchmark on the official SDK."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("bench", log_level="ERROR")


@server.tool(structured_output=False)
async def add(a: int, b: int) -> str:
    """The sum of two numbers, as text."""
    return str(a + b)


if __name__ == "__main__":
    server.run()
