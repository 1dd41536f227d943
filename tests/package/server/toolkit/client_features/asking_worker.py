"""One of several workers that serve one thing: a server that asks."""

from __future__ import annotations

from mcpgen_runtime import Accepted, Context, Server

server = Server("asking", state_key=b"one key for all of them")


@server.tool()
async def route(start: str, ctx: Context) -> str:
    """A way through three cities, each asked for once the one before is known."""
    places = [start]
    for _ in range(3):
        answer = await ctx.elicit(f"Where to from {places[-1]}?", str)
        if not isinstance(answer, Accepted):
            break
        places.append(answer.content)
    return " ".join(places)
