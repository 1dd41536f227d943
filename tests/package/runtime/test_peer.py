"""A peer at work: who waits for whom, and whose answer goes where."""

from __future__ import annotations

import gc
import json
import logging
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kit.live import TEXT, App, FakeServer, live, names_back, text_of
from kit.rules import revisions_holding
from kit.samples import CALL
from kit.wire import ALL, HANDSHAKE, request, speaking_to
from mcpgen_runtime.client.async_client import ClientHandlers, connect
from mcpgen_runtime.errors import RemoteError
from mcpgen_runtime.runtime.request_context import RequestContext

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)


@pytest.mark.requirement("stdio.shared-channel-correlation")
@every
async def test_answers_find_their_callers_in_whatever_order_they_come(revision: str) -> None:
    server = FakeServer(revision)
    got: dict[str, str] = {}

    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def call(name: str) -> None:
            got[name] = text_of(await client.call_tool(name))

        for number in range(50):
            tasks.start_soon(call, f"tool{number}")
        asked = [await server.next() for _ in range(50)]
        for message in reversed(asked):
            text = message["params"]["name"]
            await server.answer(message, {"content": [{"type": "text", "text": text}]})
    assert got == {f"tool{number}": f"tool{number}" for number in range(50)}


@every
async def test_many_calls_at_once_each_get_their_own_result(revision: str) -> None:
    async def later(ctx: RequestContext) -> Any:
        await anyio.lowlevel.checkpoint()
        return await names_back(ctx)

    async with live(App(later), revision) as (client, _), anyio.create_task_group() as tasks:

        async def calls(lane: int) -> None:
            for number in range(10):
                name = f"{lane}.{number}"
                assert text_of(await client.call_tool(name)) == name

        for lane in range(50):
            tasks.start_soon(calls, lane)


@every
@pytest.mark.parametrize("blocks", ["waits", "thread"])
async def test_other_requests_are_answered_while_one_blocks(revision: str, blocks: str) -> None:
    from threading import Event

    freed, started = Event(), anyio.Event()

    async def block(ctx: RequestContext) -> Any:
        if ctx.params.name == "block":
            started.set()
            if blocks == "waits":
                while not freed.is_set():
                    await anyio.lowlevel.checkpoint()
            else:
                await anyio.to_thread.run_sync(freed.wait, 10)
        return await names_back(ctx)

    async with speaking_to(App(block), revision) as end:
        await end.send(request(revision, "tools/call", {**CALL, "name": "block"}, id="slow"))
        with anyio.fail_after(10):
            await started.wait()
        name = "ping" if revision in HANDSHAKE else "server/discover"
        assert "result" in await end.ask(name)
        answer = await end.ask("tools/call", {**CALL, "name": "other"})
        assert answer["result"]["content"][0]["text"] == "other"
        assert end.heard == []
        freed.set()
        assert (await end.receive())["id"] == "slow"


@pytest.mark.slow
@every
async def test_nothing_grows_with_the_number_of_calls(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait(ctx: RequestContext) -> Any:
        await ctx.progress(1)
        if ctx.params.name == "waits":
            await anyio.lowlevel.checkpoint()
        if ctx.params.name == "fails":
            raise ValueError
        return await names_back(ctx)

    caplog.set_level(logging.CRITICAL, "mcpgen_runtime")  # a call fails a thousand times over
    async with live(App(wait), revision) as (client, record):

        async def calls(count: int) -> int:
            for _ in range(count):
                await client.call_tool("quick", on_progress=lambda *news: None)
                await client.call_tool("waits", timeout=10)
                with pytest.raises(RemoteError):
                    await client.call_tool("fails")
                with anyio.move_on_after(0):
                    await client.call_tool("quick")
            record.sent.clear()
            record.received.clear()
            gc.collect()
            return len(gc.get_objects())

        await calls(20)
        before = await calls(20)
        assert await calls(200) - before < 200


@pytest.mark.requirement("jsonrpc.batch-receive", "stdio.batch-line")
@pytest.mark.parametrize("revision", revisions_holding("stdio.batch-line"))
async def test_the_messages_of_a_batch_are_served_side_by_side(revision: str) -> None:
    finish = anyio.Event()

    async def work(ctx: RequestContext) -> Any:
        if ctx.params.name == "slow":
            await finish.wait()
        return await names_back(ctx)

    async with speaking_to(App(work), revision) as end:
        calls = [
            request(revision, "tools/call", {**CALL, "name": name}, id=name)
            for name in ("slow", "quick", "slow2")
        ]
        calls[2]["params"]["name"] = "slow"
        stop = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        ping = request(revision, "ping", id="ping")
        await end.send([*calls, {**stop, "params": {"requestId": "slow2"}}, ping])
        assert [(await end.receive())["id"] for _ in range(2)] == ["quick", "ping"]
        finish.set()
        assert (await end.receive())["id"] == "slow"
        assert (await end.ask("ping"))["result"] == {}


@every
async def test_a_raw_result_keeps_what_no_type_knows(revision: str) -> None:
    server = FakeServer(revision)
    unknown = {**TEXT, "future": {"a": [1.0, None]}, "_meta": {"x": 1}}
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def answer() -> None:
            await server.answer(await server.next(), unknown)

        tasks.start_soon(answer)
        raw = await client.request_raw("tools/call", {"name": "any", "arguments": {"b": 1.0}})
    assert json.loads(bytes(raw)).items() >= unknown.items()
    assert server.heard[0]["params"]["arguments"] == {"b": 1.0}


@legacy
async def test_both_sides_ask_each_other_at_once(revision: str) -> None:
    class Roots(ClientHandlers):
        async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
            assert ctx.revision.name == revision
            return {"roots": [{"uri": "file:///a"}]}

    async def ask_back(ctx: RequestContext) -> Any:
        roots = (await ctx.request("roots/list")).roots
        return {"content": [{"type": "text", "text": roots[0].uri}]}

    async with (
        live(App(ask_back), revision, handlers=Roots()) as (client, _),
        anyio.create_task_group() as tasks,
    ):

        async def calls() -> None:
            for _ in range(5):
                assert text_of(await client.call_tool("roots")) == "file:///a"

        for _ in range(20):
            tasks.start_soon(calls)
