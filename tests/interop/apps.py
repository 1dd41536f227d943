"""Applications for hosts of others: ours, below a prefix in two ways, and one whose calls last."""

from __future__ import annotations

from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.routing import Mount

from interop.our_server import RETRY_SECONDS
from interop.our_server import server as city
from mcpgen_runtime import Context, Server

DRAIN = 0.5
PREFIX = "/team/tools"

server = Server("lasting", "1", drain=DRAIN)


@server.tool()
async def last(seconds: float, ctx: Context) -> str:
    """Report progress, then wait."""
    await ctx.progress(1)
    await anyio.sleep(seconds)
    return "done"


lasting = server.asgi(sse_path="/sse")
ours = city.asgi(sse_path="/sse", retry=RETRY_SECONDS)
mounted = Starlette(routes=[Mount(PREFIX, ours)])


async def stripped_app(scope: Any, receive: Any, send: Any) -> None:
    """The application as behind a proxy that takes the prefix away and says nothing of it."""
    if scope["type"] == "http":
        scope = {**scope, "path": scope["path"].removeprefix(PREFIX)}
    await ours(scope, receive, send)
