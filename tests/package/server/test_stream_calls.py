"""Calls over streams: each reaches the tool of its name, and keeps no other from its response."""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.asgi_client import asgi, fields_of
from kit.asgi_stream import text_in
from kit.varied_tools import REQUESTS, varied_server
from kit.wire import (
    ALL,
    STREAMABLE,
    cancelled_notification,
    request,
    speaking_to,
)
from mcpgen_runtime import Server

pytestmark = [pytest.mark.parametrize("revision", ALL), pytest.mark.processes]


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


async def test_a_call_that_waits_is_cancelled(revision: str) -> None:
    server, ends = Server("slow"), list[str]()
    begun = anyio.Event()

    @server.tool()
    async def waits() -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")
        return "never"

    async with speaking_to(server, revision) as end:
        await end.ask("tools/list")
        await end.ask("tools/call", {"name": "no-such"})  # states what the next one repeats
        await end.send(request(revision, "tools/call", {"name": "waits"}, id=7))
        await begun.wait()
        await end.send(cancelled_notification(7))
        await end.send(request(revision, "tools/call", {"name": "no-such"}, id=7))
        answer = await end.receive()  # the id is free again; the cancelled call has no answer
        assert answer["id"] == 7
        assert "no-such" in json.dumps(answer)
    assert ends == ["cancelled"]


async def test_a_waiting_call_keeps_no_other_from_its_answer(revision: str) -> None:
    server, may_end = Server("slow"), anyio.Event()

    @server.tool()
    async def waits() -> str:
        await may_end.wait()
        return "waited"

    @server.tool()
    async def ends() -> str:
        may_end.set()
        return "ended"

    async with speaking_to(server, revision) as end:
        await end.ask("tools/call", {"name": "no-such"})
        await end.send(request(revision, "tools/call", {"name": "waits"}, id=7))
        await end.send(request(revision, "tools/call", {"name": "waits"}, id=7))
        refused = await end.receive()
        assert "7 belongs to an open request" in refused["error"]["message"]
        await end.send(request(revision, "tools/call", {"name": "ends"}, id=8))
        texts = [text_in(await end.receive()) for _ in range(2)]
    assert texts == ["ended", "waited"]


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
