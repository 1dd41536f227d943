"""A server on FastMCP, over HTTP in the way that it is told: `http` or `sse`."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import mcp.types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.event_store import EventStore
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from interop import announcing

RETRY_MILLISECONDS = 100
GUEST = "guest"

server = FastMCP("fastmcp", instructions="Ask for a city.")
ended: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)


@dataclass
class Guest:
    """A visitor."""

    name: str
    nights: int = 2


def is_modern(ctx: Context) -> bool:
    """Whether the revision lets results ask for input, instead of servers asking."""
    assert ctx.request_context is not None
    return ctx.request_context.protocol_version in MODERN_PROTOCOL_VERSIONS


def input_request(method: str, params: dict[str, Any] | None) -> mcp.types.InputRequiredResult:
    """The result that asks for one input."""
    return mcp.types.InputRequiredResult.model_validate(
        {"inputRequests": {"it": {"method": method, "params": params}}, "requestState": "asked"}
    )


def previous_answer(ctx: Context) -> Any:
    """The answer to what the result before this one asked, if there was one."""
    answer = (ctx.input_responses or {}).get("it")
    return None if answer is None or ctx.request_state != "asked" else answer


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def count(to: int, ctx: Context) -> str:
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return f"counted to {to}"


@server.tool
async def note(text: str, ctx: Context) -> str:
    await ctx.warning(text, logger_name="notes")
    return "noted"


@server.tool
def fail() -> str:
    raise ToolError("out of order")


@server.tool
def refuse() -> str:
    raise MCPError(code=1050, message="not today", data={"retry": False})


@server.tool
async def district(
    city: str, area: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Area"})]
) -> str:
    """Takes an argument that HTTP clients repeat in a header field."""
    return f"{area} of {city}"


@server.tool
async def book(ctx: Context) -> Any:
    if not is_modern(ctx):
        answer: Any = await ctx.elicit("Who is coming?", Guest)
        return f"booked for {answer.data.name} ({answer.data.nights})"
    given = previous_answer(ctx)
    if given is None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"mode": "form", "message": "Who is coming?", "requestedSchema": schema}
        return input_request("elicitation/create", params)
    return f"booked for {given.content['name']} ({given.content['nights']})"


@server.tool
async def translate(text: str, ctx: Context) -> Any:
    said = mcp.types.SamplingMessage(role="user", content=mcp.types.TextContent(text=text))
    if not is_modern(ctx):
        answer: Any = await ctx.session.create_message(
            [said], max_tokens=50, related_request_id=ctx.request_id
        )
    else:
        answer = previous_answer(ctx)
        if answer is None:
            message = said.model_dump(mode="json", by_alias=True, exclude_none=True)
            return input_request("sampling/createMessage", {"messages": [message], "maxTokens": 50})
    return f"{answer.model} says: {answer.content.text}"


@server.tool
async def wait(name: str, ctx: Context) -> str:
    await ctx.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        ended[name].set()
    return "never"


@server.tool
async def was_cancelled(name: str) -> bool:
    with anyio.move_on_after(20):
        await ended[name].wait()
    return ended.pop(name).is_set()


@server.tool
async def change(ctx: Context) -> str:
    for kind in ("Tool", "Prompt", "Resource"):
        await ctx.send_notification(getattr(mcp.types, f"{kind}ListChangedNotification")())
    return "changed"


@server.tool
async def part(ctx: Context) -> str:
    await ctx.report_progress(1)
    await ctx.close_sse_stream()
    return "met again"


@server.resource("city://list", mime_type="text/plain")
def cities() -> str:
    return "Oslo\nOstrava\nPorto"


@server.resource("city://{name}/weather", mime_type="text/plain")
def weather(name: str) -> str:
    return f"sun in {name}"


@server.resource("city://map", mime_type="image/png")
def picture() -> bytes:
    return b"\x89PNG"


@server.prompt
def greet(city: str) -> str:
    return f"Greetings from {city}"


def application(kind: str) -> tuple[Any, str]:
    """An application for one of the ways over HTTP, and its path."""
    if kind == "sse":
        return server.http_app(path="/sse", transport="sse"), "/sse"
    made = server.http_app(path="/mcp", event_store=EventStore(), retry_interval=RETRY_MILLISECONDS)
    return made, "/mcp"


if __name__ == "__main__":
    announcing.run(*application(sys.argv[1]))
