"""Calls over streams: each reaches the tool of its name, and keeps no other from its response."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import asgi, fields_of
from kit.asgi_stream import text_in
from kit.varied_tools import REQUESTS, varied_server
from kit.wire import STREAMABLE, every, request, speaking_to
from mcpgen_runtime import Context, Server

pytestmark = [every, pytest.mark.processes]


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("meta", [{}, {"progressToken": 5}], ids=["", "with progress"])
async def test_streams_and_http_carry_the_same_messages(
    revision: str, case: str, meta: dict[str, Any]
) -> None:
    if revision not in STREAMABLE:
        pytest.skip("this revision has no Streamable HTTP")
    method, params = REQUESTS[case]
    async with speaking_to(varied_server(), revision) as end:
        response = await end.ask(method, params, id=7, meta=meta)
        over_stream = [*end.heard, response]
    async with asgi(varied_server()) as http:
        await http.begin(revision)
        message = request(revision, method, params, id=7, meta=meta)
        reply = await http.post(message, **fields_of(revision, message))
    assert [*reply.messages] == over_stream


async def test_a_call_reaches_the_tool_that_has_the_name_now(revision: str) -> None:
    server = Server("changing")
    texts: list[str] = []
    server.add_tool(lambda: "before", name="tool", threads=False)
    async with speaking_to(server, revision) as end:
        await end.ask("tools/call", {"name": "tool"})  # the next one repeats what this one stated
        for _ in range(2):
            answer = await end.ask("tools/call", {"name": "tool"})
            texts.append(text_in(answer))
            server.remove_tool("tool")
            server.add_tool(lambda: "after", name="tool", threads=False)
    assert texts == ["before", "after"]


@pytest.mark.on_asyncio
async def test_a_context_outlives_its_call_without_harm(revision: str) -> None:
    server, later = Server("late"), list[asyncio.Task[None]]()

    @server.tool()
    async def leaves(ctx: Context) -> str:
        later.append(asyncio.create_task(ctx.progress(1)))
        return "left"

    async with speaking_to(server, revision) as end:
        for _ in range(2):  # the id is not taken by what comes late
            assert text_in(await end.ask("tools/call", {"name": "leaves"}, id=1)) == "left"
            await later[-1]


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "waits"])
async def test_context_variables_of_a_tool_do_not_reach_the_next_call(
    revision: str, waits: bool
) -> None:
    server, state = Server("stateful"), ContextVar("state", default="clean")

    @server.tool()
    async def use() -> str:
        before = state.get()
        state.set("used")
        if waits:
            await anyio.lowlevel.checkpoint()
        return f"{before} {state.get()}"

    async with speaking_to(server, revision) as end:
        for _ in range(3):
            answer = await end.ask("tools/call", {"name": "use"})
            assert text_in(answer) == "clean used"
