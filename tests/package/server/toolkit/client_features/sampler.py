"""A server that has the client's model say something, and what passes for that."""

from __future__ import annotations

from typing import Any

from kit.respondent import ASK, EVERYTHING, SAMPLED, connect_respondent, text_in
from mcpgen_runtime import Context, Sampled, Server


async def sample(
    revision: str,
    messages: Any = "hi",
    answer: Any = SAMPLED,
    capabilities: Any = EVERYTHING,
    **options: Any,
) -> tuple[Any, Sampled]:
    """The params that a client gets, and what the handler is told.

    What the handler raises takes the place of both.
    """
    server = Server("sampling")
    results: list[Any] = []

    @server.tool()
    async def ask(ctx: Context) -> str:
        try:
            results.append(await ctx.sample(messages, **{"max_tokens": 5, **options}))
        except Exception as error:
            results.append(error)
        return "asked"

    async with connect_respondent(server, revision, {ASK: answer}, capabilities) as client:
        assert text_in(await client.call("ask")) == "asked"
        asked = client.asked
    if isinstance(results[-1], Exception):
        raise results[-1]
    ((_, params),) = asked
    return params, results[-1]
