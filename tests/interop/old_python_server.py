"""A server on an old release of the official Python SDK, over pipes; run in its environment."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import TextContent, Tool

server: Any = Server("old")  # today's types are others
MakeTool: Any = Tool

NUMBER = {"type": "integer"}
ADD = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}


@server.list_tools()
async def list_tools() -> list[Tool]:
    return [MakeTool(name="add", description="The sum of two numbers.", inputSchema=ADD)]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> list[TextContent]:
    return [TextContent(type="text", text=str(arguments["a"] + arguments["b"]))]


async def main() -> None:
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
