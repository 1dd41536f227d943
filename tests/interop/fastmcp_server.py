"""A server on FastMCP, over HTTP in the way that it is told: `http` or `sse`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import mcp.types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.event_store import EventStore
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from interop.city import add_city, run_application

RETRY_MILLISECONDS = 100

server = FastMCP("fastmcp", instructions="Ask for a city.")
add_city(server, Context)


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
async def note(text: str, ctx: Context) -> str:
    await ctx.warning(text, logger_name="notes")
    return "noted"


@server.tool
def fail() -> str:
    raise ToolError("out of order")


@server.tool
async def book(ctx: Context) -> Any:
    if not is_modern(ctx):
        answer: Any = await ctx.elicit("Who is coming?", Guest)
        return f"booked for {answer.data.name} ({answer.data.nights})"
    given = previous_answer(ctx)
    if given is None:
        fields = {"name": {"type": "string"}, "nights": {"type": "integer"}}
        schema = {"type": "object", "properties": fields}
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
async def change(ctx: Context) -> str:
    for kind in ("Tool", "Prompt", "Resource"):
        await ctx.send_notification(getattr(mcp.types, f"{kind}ListChangedNotification")())
    return "changed"


@server.resource("city://map", mime_type="image/png")
def picture() -> bytes:
    return b"\x89PNG"


def application(kind: str) -> tuple[Any, str]:
    """An application for one of the ways over HTTP, and its path."""
    if kind == "sse":
        return server.http_app(path="/sse", transport="sse"), "/sse"
    made = server.http_app(path="/mcp", event_store=EventStore(), retry_interval=RETRY_MILLISECONDS)
    return made, "/mcp"


if __name__ == "__main__":
    run_application(*application(sys.argv[1]))
