"""How many handlers one peer may have at work: bounded on both sides, whatever the peer sends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kit.live import FakeServer, text_of
from kit.respondent import text_in
from kit.wire import (
    ALL,
    HANDSHAKE,
    RawEnd,
    cancelled_notification,
    request,
    speaking_to,
)
from mcpgen_runtime import ClientHandlers, Context, Server, connect, connect_sync
from mcpgen_runtime.runtime.peer import HELD_BYTES

SESSION = HANDSHAKE[-1]
LIMIT = 3


class Gate:
    """Handlers that wait until they are let through, and how many do."""

    def __init__(self) -> None:
        self.waiting = self.most = self.done = 0
        self._open = anyio.Event()
        self._news = anyio.Event()

    async def pass_through(self) -> None:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        self._tell()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1
            self.done += 1
            self._tell()

    async def reach(self, *, waiting: int = 0, done: int = 0) -> None:
        """Wait until so many wait, or have ended."""
        with anyio.fail_after(10):
            while self.waiting < waiting or self.done < done:
                await self._news.wait()

    def open(self) -> None:
        self._open.set()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


def gated_server(gate: Gate, limit: int = LIMIT) -> Server:
    """A server whose tools wait at the gate, on their own or for the client as well."""
    server = Server("gated", version="1", max_concurrent_requests=limit, drain=0)

    @server.tool()
    async def wait() -> str:
        await gate.pass_through()
        return "through"

    @server.tool()
    async def ask(ctx: Context) -> str:
        await gate.pass_through()
        await ctx.list_roots()
        return "told"

    return server


def call(revision: str, tool: str, id: int | str) -> dict[str, Any]:
    return request(revision, "tools/call", {"name": tool, "arguments": {}}, id=id)


@asynccontextmanager
async def at_the_limit(revision: str, tool: str = "wait") -> AsyncIterator[tuple[RawEnd, Gate]]:
    """A client whose server has as many handlers at work as it may."""
    gate = Gate()
    async with speaking_to(gated_server(gate), revision, {"roots": {}}) as end:
        for id in range(LIMIT):
            await end.send(call(revision, tool, id))
        await gate.reach(waiting=LIMIT)
        yield end, gate


@pytest.mark.parametrize("revision", ALL)
async def test_a_server_serves_only_so_many_requests_at_once_and_pings(revision: str) -> None:
    async with at_the_limit(revision) as (end, gate):
        if revision in HANDSHAKE:
            assert (await end.ask("ping", id="ping"))["result"] == {}
        for id in range(LIMIT, 10 * LIMIT):
            await end.send(call(revision, "wait", id))
        await anyio.wait_all_tasks_blocked()
        assert gate.most == LIMIT
        gate.open()
        answers = [await end.receive() for _ in range(10 * LIMIT)]
        assert sorted(answer["id"] for answer in answers) == list(range(10 * LIMIT))
        assert all("result" in answer for answer in answers)
        assert gate.most == LIMIT


@pytest.mark.parametrize("revision", ALL)
async def test_a_request_that_is_cancelled_frees_its_place(revision: str) -> None:
    async with at_the_limit(revision) as (end, gate):
        await end.send(cancelled_notification(1))
        await gate.reach(done=1)
        await end.send(call(revision, "wait", "next"))
        await gate.reach(waiting=LIMIT)
        gate.open()
        assert {(await end.receive())["id"] for _ in range(LIMIT)} == {0, 2, "next"}


async def test_answers_that_handlers_wait_for_are_read_at_the_limit() -> None:
    async with at_the_limit(SESSION, "ask") as (end, gate):
        await end.send(call(SESSION, "wait", "held"))  # reading stops at this one
        await anyio.wait_all_tasks_blocked()
        gate.open()
        asked = [await end.receive() for _ in range(LIMIT + 1)]
        roots = [message for message in asked if message.get("method") == "roots/list"]
        assert len(roots) == LIMIT
        for message in roots:
            await end.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
        told = [await end.receive() for _ in range(LIMIT)]
        assert sorted(message["id"] for message in told) == list(range(LIMIT))


async def test_requests_are_refused_while_handlers_wait_for_the_peer() -> None:
    gate = Gate()
    gate.open()
    async with speaking_to(gated_server(gate), SESSION, {"roots": {}}) as end:
        for id in range(LIMIT):
            await end.send(call(SESSION, "ask", id))
        asked = [await end.receive() for _ in range(LIMIT)]
        for name in ("one", "two"):
            refused = await end.ask("tools/call", {"name": "wait", "arguments": {}}, id=name)
            assert refused["error"]["code"] == -32603
            assert "max_concurrent_requests" in refused["error"]["message"]
            assert str(LIMIT) in refused["error"]["message"]
        for message in asked:
            await end.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
        for _ in range(LIMIT):
            assert "result" in await end.receive()
        again = await end.ask("tools/call", {"name": "wait", "arguments": {}}, id="again")
        assert text_in(again) == "through"


LONG = HELD_BYTES // 4


async def test_long_requests_of_one_client_are_bounded_in_bytes() -> None:
    gate = Gate()
    server = Server("gated", version="1", drain=0)

    @server.tool
    async def hold(text: str) -> str:
        await gate.pass_through()
        return "through"

    async with speaking_to(server, SESSION) as end:
        params = {"name": "hold", "arguments": {"text": "x" * LONG}}
        for id in range(7):
            await end.send(request(SESSION, "tools/call", params, id=id))
        await gate.reach(waiting=4)
        await anyio.wait_all_tasks_blocked()
        assert gate.most == 4
        gate.open()
        assert all(["result" in await end.receive() for _ in range(7)])


async def test_long_requests_of_one_server_are_bounded_in_bytes() -> None:
    server, handlers = FakeServer(SESSION), Waiting()
    async with connect(server, revision=SESSION, handlers=handlers):
        for id in range(7):
            await server.say(request(SESSION, "roots/list", meta={"a/b": "x" * LONG}, id=id))
        await handlers.gate.reach(waiting=4)
        await anyio.wait_all_tasks_blocked()
        assert handlers.gate.most == 4
        handlers.gate.open()
        assert all(["result" in await server.next() for _ in range(7)])


class Waiting(ClientHandlers):
    """Answers and hears when the gate is open."""

    def __init__(self) -> None:
        self.gate = Gate()

    async def list_roots(self, params: Any, ctx: Any) -> Any:
        await self.gate.pass_through()
        return {"roots": []}

    async def tool_list_changed(self, params: Any, ctx: Any) -> None:
        await self.gate.pass_through()


async def test_a_client_waiting_for_an_answer_refuses_excess_requests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "mcpgen_runtime")
    server, handlers = FakeServer(SESSION), Waiting()
    async with (
        connect(
            server, revision=SESSION, handlers=handlers, max_concurrent_requests=LIMIT
        ) as client,
        anyio.create_task_group() as tasks,
    ):
        results: list[Any] = []

        async def call_it() -> None:
            results.append(await client.call_tool("x"))

        for id in range(LIMIT):
            await server.say(request(SESSION, "roots/list", id=id))
        await handlers.gate.reach(waiting=LIMIT)
        await server.say(request(SESSION, "roots/list", id="held"))
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(call_it)
        heard = [await server.next(), await server.next()]
        refused = next(message for message in heard if message.get("id") == "held")
        asked = next(message for message in heard if message.get("method") == "tools/call")
        assert "max_concurrent_requests" in refused["error"]["message"]
        for _ in range(5):
            await server.notify("notifications/tools/list_changed", {})
        await server.answer(asked, {"content": [{"type": "text", "text": "done"}]})
        with anyio.fail_after(10):
            while not results:
                await anyio.lowlevel.checkpoint()
        assert text_of(results[0]) == "done"
        assert handlers.gate.most == LIMIT
        handlers.gate.open()
    dropped = [record for record in caplog.records if "max_concurrent_requests" in record.message]
    assert len(dropped) == 1


async def test_a_client_closes_while_its_handlers_and_requests_wait() -> None:
    server, handlers = FakeServer(SESSION), Waiting()
    with anyio.fail_after(10):
        async with connect(server, revision=SESSION, handlers=handlers, max_concurrent_requests=1):
            for id in range(5):
                await server.say(request(SESSION, "roots/list", id=id))
            await handlers.gate.reach(waiting=1)
            await anyio.wait_all_tasks_blocked()
    assert handlers.gate.done == 1


async def test_a_limit_that_lets_nothing_be_served_is_refused() -> None:
    with pytest.raises(ValueError, match="max_concurrent_requests: expected at least 1"):
        Server("x", max_concurrent_requests=0)
    with pytest.raises(ValueError, match="max_concurrent_requests"):
        connect_sync(Server("x"), max_concurrent_requests=0)


async def test_a_client_serves_only_so_many_requests_and_notifications_at_once() -> None:
    server, handlers = FakeServer(SESSION), Waiting()
    async with connect(server, revision=SESSION, handlers=handlers, max_concurrent_requests=LIMIT):
        for id in range(5 * LIMIT):
            await server.say(request(SESSION, "roots/list", id=id))
            await server.notify("notifications/tools/list_changed", {})
        await handlers.gate.reach(waiting=LIMIT)
        await anyio.wait_all_tasks_blocked()
        handlers.gate.open()
        await handlers.gate.reach(done=10 * LIMIT)
        assert handlers.gate.most == LIMIT
        assert all(["result" in await server.next() for _ in range(5 * LIMIT)])
