"""Requests taken back while they are worked on: what stops, and whom the races disturb.

Source: basic/utilities/cancellation; 2026-07-28: basic/patterns/cancellation.
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer, live, text_of
from kit.wire import (
    ALL,
    CANCELLED,
    HANDSHAKE,
    PER_REQUEST,
    cancelled_notification,
    request,
    speaking_to,
)
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import RemoteError
from mcpgen_runtime.server.chosen import Context, Server

every = pytest.mark.parametrize("revision", ALL)


class Stubborn:
    """A server whose one tool shows when it is stopped, and does not let that be its end."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.stopped = anyio.Event()
        self.server = Server("stubborn", drain=0)

        @self.server.tool()
        async def work(ctx: Context, then: str) -> str:
            self.started.set()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await ctx.progress(1)
                    await ctx.error("stopped")
                self.stopped.set()
                if then == "go":
                    raise
                if then == "raise":
                    raise ValueError("anyway") from None
            return "anyway"


@pytest.mark.requirement(
    "cancellation.client-signals",
    "cancellation.stdio-notification",
    "cancellation.stops-processing",
    "cancellation.nothing-further",
    "custom-transport.cancellation-defined",
    "stdio.cancel-by-notification",
    "stdio.cancel-server-stops",
    "stdio.cancel-server-silent",
)
@every
@pytest.mark.parametrize("then", ["go", "return", "raise"])
async def test_a_cancelled_caller_stops_the_tool_and_gets_no_more(revision: str, then: str) -> None:
    stubborn = Stubborn()
    async with live(stubborn.server, revision) as (client, record):
        client.ask_for_logs("debug")
        heard: list[float] = []
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await client.call_tool(
                    "work", {"then": then}, on_progress=lambda value, *_: heard.append(value)
                )

            tasks.start_soon(call)
            with anyio.fail_after(10):
                await stubborn.started.wait()
                tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await stubborn.stopped.wait()
        before = len(record.received)
        await client.list_tools()
    (call_id,) = [m["id"] for m in record.sent if m.get("method") == "tools/call"]
    assert record.sent_as(CANCELLED) == [{"requestId": call_id}]
    assert len(record.received) == before + 1
    assert heard == []


@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_a_reused_id_gets_only_the_answer_to_its_second_request(
    revision: str,
) -> None:
    stubborn = Stubborn()

    @stubborn.server.tool()
    async def fresh() -> str:
        await stubborn.stopped.wait()
        await anyio.lowlevel.checkpoint()
        return "fresh"

    async with speaking_to(stubborn.server, revision) as end:
        params = {"name": "work", "arguments": {"then": "return"}}
        await end.send(request(revision, "tools/call", params, id="x"))
        with anyio.fail_after(10):
            await stubborn.started.wait()
        await end.send(cancelled_notification("x"))
        await end.send(request(revision, "tools/call", {"name": "fresh"}, id="x"))
        answer = await end.receive()
        assert answer["result"]["content"][0]["text"] == "fresh"


@pytest.mark.requirement("cancellation.reason-logged")
@every
async def test_the_reason_of_a_cancellation_is_in_the_log(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mcpgen_runtime")
    stubborn = Stubborn()
    async with speaking_to(stubborn.server, revision) as end:
        params = {"name": "work", "arguments": {"then": "go"}}
        await end.send(request(revision, "tools/call", params, id="x"))
        with anyio.fail_after(10):
            await stubborn.started.wait()
            await end.send(cancelled_notification("x", reason="coffee is ready"))
            await stubborn.stopped.wait()
    assert "coffee is ready" in caplog.text


@pytest.mark.requirement("cancellation.races", "cancellation.late-response-ignored")
@every
async def test_an_answer_that_crosses_the_cancellation_disturbs_nobody(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "slow")
            asked = await server.next()
            tasks.cancel_scope.cancel()
        assert (await server.next())["params"] == {"requestId": asked["id"]}
        await server.answer(asked, TEXT)
        await server.say(
            {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": 1, "message": "no"}}
        )
        async with anyio.create_task_group() as tasks:

            async def answer() -> None:
                await server.answer(await server.next(), TEXT)

            tasks.start_soon(answer)
            assert text_of(await client.call_tool("quick")) == "done"


@pytest.mark.requirement("cancellation.races")
@every
async def test_an_answer_before_the_cancellation_needs_none(
    revision: str,
) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client:
        with anyio.CancelScope() as scope:

            async def stop(*news: Any) -> None:
                await server.answer(asked, TEXT)
                await anyio.wait_all_tasks_blocked()  # the answer is taken by now
                scope.cancel()
                await anyio.lowlevel.checkpoint()

            async with anyio.create_task_group() as tasks:

                async def call() -> None:
                    await client.call_tool("slow", on_progress=stop)

                tasks.start_soon(call)
                asked = await server.next()
                token = asked["params"]["_meta"]["progressToken"]
                await server.notify(
                    "notifications/progress", {"progressToken": token, "progress": 1}
                )
        assert scope.cancel_called
    assert [said.get("method") for said in server.heard] == ["tools/call"]


@pytest.mark.requirement("cancellation.either-side")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_server_that_is_cancelled_cancels_its_own_request(revision: str) -> None:
    server = Server("asks")

    @server.tool()
    async def ask_back(ctx: Context) -> str:
        await ctx.request("roots/list")
        return "answered"

    async with speaking_to(server, revision, {"roots": {}}) as end:
        await end.send(request(revision, "tools/call", {"name": "ask_back"}, id="x"))
        asked = await end.receive()
        assert asked["method"] == "roots/list"
        await end.send(cancelled_notification("x"))
        assert await end.receive() == cancelled_notification(asked["id"])
        await end.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
        assert (await end.ask("ping"))["result"] == {}


@every
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio's can't be raised by hand
async def test_a_tool_that_raises_a_cancelled_error_is_answered(
    revision: str,
) -> None:
    server = Server("fails")

    @server.tool()
    async def wait_for_another() -> str:
        raise anyio.get_cancelled_exc_class()

    async with live(server, revision) as (client, _):
        with anyio.fail_after(10), pytest.raises(RemoteError) as failed:
            await client.call_tool("wait_for_another")
        assert failed.value.code == -32603
        assert await client.list_tools()
