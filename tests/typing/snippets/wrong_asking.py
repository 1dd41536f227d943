"""Type errors in a server that asks its client."""

from __future__ import annotations

from dataclasses import dataclass

from mcpgen_runtime import CacheHint, Context, Server


@dataclass
class City:
    name: str


server = Server("asking", state_key="text")  # expect: error
hint = CacheHint(1000, "shared")  # expect: error


@server.tool()
async def book(ctx: Context) -> str:
    answer = await ctx.elicit("Which city?", City)
    if answer.action == "accept":
        print(answer.content.country)  # expect: error
    await ctx.elicit("Which city?", "City")  # expect: error
    await ctx.sample()  # expect: error
    await ctx.sample("Hello", max_tokens=5, tool_choice="any")  # expect: error
    task = await ctx.sample("Hello", task=True)
    print(task.text)  # expect: error
    await ctx.sample("Hello", task=5)  # expect: error
    return answer.content.name  # expect: error
