"""A server that asks its client, beyond what the documents show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, assert_type

import anyio

from mcpgen_runtime import (
    Accepted,
    CacheHint,
    Cancelled,
    Context,
    Declined,
    InputRequired,
    Root,
    Sampled,
    Server,
    TaskHandle,
    ToolUseResult,
    titles,
)


@dataclass
class City:
    name: str
    size: Annotated[Literal["s", "m"], titles(s="Small", m="Medium")] = "s"


class Where(TypedDict):
    name: str


server = Server("asking", state_key=b"0123456789abcdef", cache={"tools": CacheHint(1000, "public")})


@server.tool()
async def book(ctx: Context) -> str | InputRequired:
    answer = await ctx.elicit("Which city?", City)
    if answer.action == "accept":
        assert_type(answer.content, City)
        return answer.content.name
    assert_type(answer, Declined | Cancelled)
    where = await ctx.elicit("Where?", Where)
    if isinstance(where, Accepted):
        return where.content["name"]
    match await ctx.elicit("Where?", {"type": "object", "properties": {}}):
        case Accepted(content=content):
            assert_type(content, dict[str, Any])
            return str(content)
        case Declined() | Cancelled():
            return "refused"


@server.tool()
async def several(ctx: Context) -> str:
    city, roots, said = await ctx.ask_all(
        ctx.elicit("Which city?", City),
        ctx.list_roots(),
        ctx.sample("Hello", max_tokens=5),
    )
    assert_type(roots, list[Root])
    assert_type(said, Sampled)
    results = [ToolUseResult(use.id, ["done"]) for use in said.tool_uses]
    said = await ctx.sample(["Hello", said, *results], max_tokens=5)
    return f"{city.action} {said.text}"


@server.tool()
def plain(ctx: Context) -> str:
    return anyio.from_thread.run(ctx.list_roots)[0].uri


@server.tool()
async def ask_for_tasks(ctx: Context) -> str:
    asked = await ctx.elicit("Which city?", City, task=True)
    answer = await asked.result()
    assert_type(answer, Accepted[City] | Declined | Cancelled)
    sampled: TaskHandle[Sampled] = await ctx.sample("Hello", task={"ttl": 1000})
    async for update in sampled:
        print(update.status, update.progress)
    return (await sampled.result()).text
