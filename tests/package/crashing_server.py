"""A server that ends when it is told to; each start adds a line to a file, or fails by one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcpgen_runtime import Context, Server, ToolAnnotations

starts = Path(sys.argv[1])
server = Server("crashing", subscribe=True)


@server.tool()
async def number() -> int:
    """Of this start, from 1 on."""
    return len(starts.read_text().split())


@server.tool()
async def pid() -> int:
    """The id of this process."""
    return os.getpid()


@server.tool()
async def crash() -> None:
    """End at once."""
    os._exit(3)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def crash_once() -> int:
    """End, unless this is no longer the first start."""
    if await number() == 1:
        os._exit(3)
    return await number()


@server.tool()
async def touch(ctx: Context) -> None:
    """Change the resource, and log at two levels."""
    server.resource_updated("memo://one")
    await ctx.info("touched")
    await ctx.error("touched hard")


@server.tool()
async def ask(ctx: Context) -> int:
    """Ask the client for its roots."""
    return len(await ctx.list_roots())


@server.resource("memo://one")
def one() -> str:
    """The resource."""
    return "one"


if __name__ == "__main__":
    if "fail" in starts.read_text():
        sys.exit("not today")
    with starts.open("a") as file:
        file.write("start\n")
    server.run()
