"""How a client leaves: by its body, by another task, or because its server crashes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kit.live import FakeServer
from kit.wire import ALL
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import ConnectionClosedError
from mcpgen_runtime.server.chosen import Server

FAILURES: list[Callable[[], BaseException]] = [
    lambda: ValueError("mine"),
    lambda: ExceptionGroup("mine", [ValueError("inner")]),
    lambda: KeyboardInterrupt("mine"),
    lambda: SystemExit(3),
    lambda: BaseExceptionGroup("mine", [KeyboardInterrupt()]),
    lambda: StopAsyncIteration("mine"),
    lambda: ConnectionClosedError("mine"),
]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("target", ["server", "channel"])
async def test_errors_of_the_body_propagate_unchanged(
    failure: Callable[[], BaseException], target: str
) -> None:
    raised = failure()
    server: Any = Server("any") if target == "server" else FakeServer(ALL[-1])
    with pytest.raises(type(raised)) as caught:
        async with connect(server):
            raise raised
    assert caught.value is raised


@pytest.mark.parametrize("target", ["server", "channel"])
async def test_a_body_that_is_cancelled_is_just_cancelled(target: str) -> None:
    server: Any = Server("any") if target == "server" else FakeServer(ALL[-1])
    with anyio.CancelScope() as scope:
        async with connect(server) as client:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            pytest.fail("it was cancelled")
    assert scope.cancelled_caught
    with pytest.raises(ConnectionClosedError):
        await client.list_tools()


async def test_a_client_is_of_no_use_after_its_body() -> None:
    async with connect(Server("any")) as client:
        pass
    with pytest.raises(ConnectionClosedError, match="the connection is closed"):
        await client.list_tools()


async def test_nothing_can_be_done_with_a_client_that_was_closed() -> None:
    async with connect(Server("any")) as client:
        await client.close()
        await client.close()
        for call in (
            client.list_tools(),
            client.list_tools_page(),
            client.call_tool("any"),
            client.request("tools/list"),
            client.request_raw("tools/list"),
            client.notify("notifications/progress", {"progressToken": 1, "progress": 1}),
            client.listen(tools=True).__aenter__(),
        ):
            with pytest.raises(ConnectionClosedError):
                await call


async def test_other_tasks_may_use_and_close_a_session() -> None:
    server = Server("shared")
    server.tool("one")(lambda: "1")
    async with connect(server) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(client.list_tools)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.close)
        with pytest.raises(ConnectionClosedError):
            await client.list_tools()


@pytest.mark.parametrize("when", ["before", "during", "after"])
async def test_a_server_in_memory_that_crashes_gives_its_own_error(when: str) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if when == "before":
            raise LookupError("no database")
        yield
        if when == "after":
            raise LookupError("no database")

    class Crashing(Server):
        async def serve(self, channel: Any) -> None:
            if when == "during":
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(super().serve, channel)
                    await crash.wait()
                    tasks.cancel_scope.cancel()
                raise LookupError("no database")
            await super().serve(channel)

    crash = anyio.Event()
    with anyio.fail_after(10), pytest.raises(LookupError, match="no database"):
        async with connect(Crashing("any", lifespan=lifespan)) as client:
            if when == "during":
                crash.set()
                await anyio.wait_all_tasks_blocked()
                await client.request("tools/list")


async def test_the_bodys_own_error_wins_over_the_servers() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield
        raise LookupError("no database")

    with pytest.raises(ValueError, match="mine"):
        async with connect(Server("any", lifespan=lifespan)):
            raise ValueError("mine")
