"""Tools, resources and a prompt for servers on the official SDK and on FastMCP, and a host."""

from __future__ import annotations

import socket
from collections import defaultdict
from typing import Annotated, Any, get_type_hints

import anyio
from mcp import MCPError
from pydantic import Field

CITIES = ("Oslo", "Ostrava", "Porto")
ended: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)


def add(a: int, b: int) -> int:
    return a + b


async def count(to: int, ctx: Any) -> str:
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return f"counted to {to}"


def refuse() -> str:
    raise MCPError(code=1050, message="not today", data={"retry": False})


async def district(
    city: str, area: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Area"})]
) -> str:
    """Takes an argument that HTTP clients repeat in a header field."""
    return f"{area} of {city}"


async def wait(name: str, ctx: Any) -> str:
    await ctx.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        ended[name].set()
    return "never"


async def was_cancelled(name: str) -> bool:
    with anyio.move_on_after(20):
        await ended[name].wait()
    return ended.pop(name).is_set()


async def part(ctx: Any) -> str:
    """Closes the stream that it is answered on, so that the client has to come back."""
    await ctx.report_progress(1)
    await ctx.close_sse_stream()
    return "met again"


def cities() -> str:
    return "\n".join(CITIES)


def weather(name: str) -> str:
    return f"sun in {name}"


def greet(city: str) -> str:
    return f"Greetings from {city}"


def add_city(server: Any, context: Any) -> None:
    """Add all of these to a server, whose contexts are of a class."""
    functions: tuple[Any, ...] = (add, count, refuse, district, wait, was_cancelled, part)
    for function in functions:
        hints = get_type_hints(function, include_extras=True)
        function.__annotations__ = {**hints, **({"ctx": context} if "ctx" in hints else {})}
        server.tool()(function)
    server.resource("city://list", mime_type="text/plain")(cities)
    server.resource("city://{name}/weather", mime_type="text/plain")(weather)
    server.prompt()(greet)


def run_application(application: Any, path: str) -> None:
    """Serve an ASGI application on a free port until SIGTERM, and print where."""
    import uvicorn  # of no use over pipes

    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
        # What clients keep open does not hold it back.
        config = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=0)
        uvicorn.Server(config).run(sockets=[listener])
