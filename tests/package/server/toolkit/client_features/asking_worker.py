"""One of several workers that serve one thing: a server that asks, told all by its environment.

KEY is its `state_key`, none if empty; SECONDS its `state_seconds`.
"""

from __future__ import annotations

import os
from typing import TypedDict

from mcpgen_runtime import Accepted, Context, Server

server = Server(
    "asking",
    state_key=os.environ["KEY"].encode() or None,
    state_seconds=float(os.environ["SECONDS"]),
)


class City(TypedDict):
    """A form that the tool asks the user to fill in."""

    name: str


@server.tool()
async def route(start: str, ctx: Context) -> str:
    """A way through three cities, each asked for once the one before is known."""
    places = [start]
    for _ in range(3):
        answer = await ctx.elicit(f"Where to from {places[-1]}?", City)
        if not isinstance(answer, Accepted):
            break
        places.append(answer.content["name"])
    return " ".join(places)


@server.prompt()
async def travel(ctx: Context) -> str:
    """Another method that asks."""
    return (await ctx.elicit("Where to from Oslo?", City)).action
