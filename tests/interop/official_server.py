"""A stdio server on the official SDK with one of everything, for our client to talk to."""

from __future__ import annotations

import warnings

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

server = MCPServer("official")
CITIES = ("Oslo", "Ostrava", "Porto")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports each number."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return f"counted to {to}"


@server.tool()
async def note(text: str, ctx: Context) -> str:
    """Logs a text to the client."""
    with warnings.catch_warnings(action="ignore"):
        await ctx.log("warning", text, logger_name="notes")
    return "noted"


@server.tool()
def fail() -> str:
    """Fails on every call."""
    raise RuntimeError("out of order")


@server.tool()
def refuse() -> str:
    """Refuses with a JSON-RPC error."""
    raise MCPError(code=1050, message="not today", data={"retry": False})


@server.resource("city://list", mime_type="text/plain")
def cities() -> str:
    """The cities, one per line."""
    return "\n".join(CITIES)


@server.resource("city://{name}/weather", mime_type="text/plain")
def weather(name: str) -> str:
    """The weather of a city."""
    return f"sun in {name}"


@server.prompt()
def greet(city: str) -> str:
    """A greeting from a city."""
    return f"Greetings from {city}"


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    return Completion(values=[city for city in CITIES if city.startswith(argument.value)])


if __name__ == "__main__":
    server.run()
