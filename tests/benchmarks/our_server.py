"""The server under test: one tool."""

from __future__ import annotations

from mcpgen_runtime import Server

server = Server("bench", version="1.0")


@server.tool(structured=False)
async def add(a: int, b: int) -> str:
    """The sum of two numbers, as text."""
    return str(a + b)


if __name__ == "__main__":
    server.run()
