"""A server on an old release of the official Python SDK, over pipes; run in its environment.

`greet` asks the client by tasks, which few releases have.
"""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import SamplingMessage, TextContent, Tool

server: Any = Server("old")  # today's types are others
MakeTool: Any = Tool

NUMBER = {"type": "integer"}
ADD = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


@server.list_tools()
async def list_tools() -> list[Tool]:
    return [
        MakeTool(name="add", description="The sum of two numbers.", inputSchema=ADD),
        MakeTool(name="greet", description="A greeting.", inputSchema={"type": "object"}),
    ]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> list[Any]:
    if name == "add":
        return [TextContent(type="text", text=str(arguments["a"] + arguments["b"]))]
    requests = server.request_context.session.experimental
    answer = await requests.elicit_as_task("Who?", FORM, ttl=60_000)
    text = TextContent(type="text", text=f"Greet {answer.content['name']}")
    messages = [SamplingMessage(role="user", content=text)]
    message = await requests.create_message_as_task(messages, max_tokens=9, ttl=60_000)
    return [message.content]


async def main() -> None:
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
