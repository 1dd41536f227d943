"""Values that a handler keeps while its request is open, however often the handler runs."""

from __future__ import annotations

import itertools
from typing import Any

import anyio
import pytest

from kit.respondent import accept_result, connect_respondent, text_in
from kit.rules import revisions_holding
from mcpgen_runtime import Context, Server

with_forms = pytest.mark.parametrize("revision", revisions_holding("elicitation.message-required"))

FORM: dict[str, Any] = {"type": "object", "properties": {}}
ANSWERS = {"elicitation/create": accept_result()}


@with_forms
async def test_values_that_differ_between_rounds_can_be_kept(revision: str) -> None:
    server = Server("keeping")
    made = itertools.count()

    async def make() -> list[int]:
        return [next(made)]

    @server.tool()
    async def ask(ctx: Context) -> str:
        token = await ctx.once("token", make)
        other = await ctx.once("other", lambda: "plain")
        await ctx.elicit(f"Number {token[0]}?", FORM)
        return f"{token} {other} {await ctx.once('token', make)}"

    @server.tool()
    async def odd(ctx: Context) -> str:
        return str(await ctx.once("odd", lambda: {1, 2}))

    async with connect_respondent(server, revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "[0] plain [0]"
        assert text_in(await client.call("ask")) == "[1] plain [1]"
        assert (await client.call("odd"))["result"]["isError"]


@with_forms
async def test_a_stored_value_stays_unchanged_whatever_a_handler_does(revision: str) -> None:
    server = Server("keeping")

    @server.tool()
    async def ask(ctx: Context) -> str:
        places: list[str] = await ctx.once("places", lambda: ["Oslo"])
        places.append("Moss")
        await ctx.elicit("Go on?", FORM)
        return " ".join(await ctx.once("places", lambda: ["never"]))

    async with connect_respondent(server, revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "Oslo"


@with_forms
async def test_two_tasks_that_ask_for_a_value_at_once_get_the_same(revision: str) -> None:
    server = Server("keeping")
    made = itertools.count()

    async def make() -> int:
        value = next(made)
        for _ in range(5):  # so that the other begins meanwhile
            await anyio.sleep(0)
        return value

    @server.tool()
    async def ask(ctx: Context) -> str:
        one, two = await ctx.ask_all(ctx.once("n", make), ctx.once("n", make))
        await ctx.elicit("Go on?", FORM)
        return str(one == two == await ctx.once("n", make))

    async with connect_respondent(server, revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "True"
