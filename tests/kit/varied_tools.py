"""A server whose tools return, fail, wait and ask for their client; and requests to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import anyio

from mcpgen_runtime import Context, Server, ToolError


@dataclass
class Point:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ZeroDivisionError("not there")


def varied_server() -> Server:
    """A server whose tools return, fail, wait and ask for their client."""
    server = Server("varied")

    @server.tool()
    async def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool()
    async def object() -> dict[str, float]:
        return {"x": 1.5}

    @server.tool()
    async def not_finite() -> dict[str, float]:
        return {"x": float("nan")}

    @server.tool()
    async def refuses() -> str:
        raise ToolError("no")

    @server.tool()
    async def crashes() -> str:
        raise RuntimeError("no luck")

    @server.tool()
    async def cancels_itself() -> str:
        raise anyio.get_cancelled_exc_class()()

    @server.tool()
    async def waits() -> str:
        await anyio.lowlevel.checkpoint()
        return "waited"

    @server.tool()
    async def waits_and_fails() -> str:
        with anyio.move_on_after(60):
            await anyio.lowlevel.checkpoint()
        raise ToolError("later")

    @server.tool()
    async def reports(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.error("something")
        return "reported"

    add_others(server)
    return server


def add_others(server: Server) -> None:
    """Add further tools, a prompt and a resource."""

    @server.tool()
    async def dated(day: date, more: Point | None = None) -> str:
        return f"{day.year} {more}"

    @server.tool()
    async def knows(ctx: Context) -> str:
        return f"{ctx.request_id} {ctx.revision} {ctx.session_id is None} {ctx.principal.subject}"

    @server.tool()
    async def reads_meta(ctx: Context, data: dict[str, int]) -> str:
        return f"{sorted(ctx.request_context.meta)} {data}"

    @server.tool()
    def threaded() -> str:
        return "in a thread"

    @server.prompt()
    async def greeting(who: str) -> str:
        return f"Hello {who}"

    @server.resource("memo://one")
    async def memo() -> str:
        return "one"


def tool(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a result": tool("add", a=1, b=2),
    "converted arguments": tool("add", a="1", b=2.0),
    "wrong arguments": tool("add", a="x"),
    "an unknown tool": tool("no-such"),
    "a structured result": tool("object"),
    "a result without JSON form": tool("not_finite"),
    "an argument that JSON has no type for": tool("dated", day="2026-07-28", more={"x": 1}),
    "an argument whose type fails": tool("dated", day="2026-07-28", more={"x": -1}),
    "a tool error": tool("refuses"),
    "a failure": tool("crashes"),
    "a cancellation that is none": tool("cancels_itself"),
    "a tool that waits": tool("waits"),
    "a tool that waits and fails": tool("waits_and_fails"),
    "messages before the response": tool("reports"),
    "a tool that looks at its request": tool("knows"),
    "_meta that is an argument": tool("reads_meta", data={"_meta": 1}),
    "a plain function": tool("threaded"),
    "a list": ("tools/list", {}),
    "a prompt": ("prompts/get", {"name": "greeting", "arguments": {"who": "you"}}),
    "a resource": ("resources/read", {"uri": "memo://one"}),
    "an unknown method": ("no/such", {}),
}
