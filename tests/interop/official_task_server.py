"""A server on the last release of the official SDK that has tasks; runs in its own environment."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import anyio

types: Any = import_module("mcp.types")
server: Any = import_module("mcp.server.lowlevel").Server("official")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


@server.list_tools()
async def list_tools() -> Any:
    return [types.Tool(name="ask", inputSchema={"type": "object"})]


@server.call_tool()
async def call_tool(name: str, arguments: Any) -> Any:
    requests = server.request_context.session.experimental
    answer = await requests.elicit_as_task("Who?", FORM, ttl=60_000)
    text = types.TextContent(type="text", text=f"Greet {answer.content['name']}")
    messages = [types.SamplingMessage(role="user", content=text)]
    message = await requests.create_message_as_task(messages, max_tokens=9, ttl=60_000)
    return [message.content]


async def main() -> None:
    async with import_module("mcp.server.stdio").stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
