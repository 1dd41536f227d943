"""Applications for hosts of others: one whose calls last, and one below a prefix in two ways."""

from __future__ import annotations

from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.routing import Mount

from interop.our_app import app as ours
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
mounted = Starlette(routes=[Mount(PREFIX, ours)])


async def stripped_app(scope: Any, receive: Any, send: Any) -> None:
    """The application as behind a proxy that takes the prefix away and says nothing of it."""
    if scope["type"] == "http":
        scope = {**scope, "path": scope["path"].removeprefix(PREFIX)}
    await ours(scope, receive, send)
