"""Tasks that begin at once, whose failure a failure is, and the end of a connection's tasks."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.simulation import on_virtual_clocks
from kit.wire import HANDSHAKE, request, speaking_to
from mcpgen_runtime import Server
from mcpgen_runtime.runtime.concurrency import check_own_failure
from mcpgen_runtime.runtime.eager_tasks import begin_task

place: ContextVar[str] = ContextVar("place", default="outside")
on_asyncio = pytest.mark.on_asyncio


@on_asyncio
async def test_a_coroutine_keeps_its_first_task_and_context() -> None:
    async def work_at_once() -> str:
        place.set("inside")
        return place.get()

    done = begin_task(work_at_once())
    assert (done.done(), done.result(), place.get()) == (True, "inside", "outside")
    seen: list[tuple[Any, str]] = []

    async def work() -> str:
        place.set("inside")
        for _ in range(3):
            seen.append((asyncio.current_task(), place.get()))
            await asyncio.sleep(0)
        return "done"

    here = asyncio.current_task()
    task = begin_task(work())
    assert asyncio.current_task() is here
    assert not task.done()
    assert await task == "done"
    assert seen == [(task, "inside")] * 3

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await begin_task(fail())


@on_asyncio
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
async def test_an_end_of_the_program_reaches_the_starter(error: type[BaseException]) -> None:
    async def work() -> None:
        raise error

    with pytest.raises(error):
        begin_task(work())


@on_asyncio
@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_a_task_is_cancelled_where_it_waits(turns: int) -> None:
    ended: list[str] = []

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("cleaned up")
            raise

    task = begin_task(run())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"]


class Waiting:
    """A server with a tool that waits, and cleans up when it is cancelled."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.begun = anyio.Event()
        self.server = Server("waiting", drain=0)
        self.server.tool()(self.hold)
        self.server.tool()(self.ignore)

    async def hold(self) -> str:
        """Wait until cancelled."""
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.seen.append("cleaned up")
        return ""

    async def ignore(self) -> str:
        """Go on after the first cancellation."""
        self.begun.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.seen.append("ignored")
        await anyio.sleep_forever()
        return ""


@pytest.mark.parametrize("ends", ["by the client", "by the host"])
async def test_a_handler_has_ended_when_its_connection_has(ends: str) -> None:
    waiting = Waiting()
    with anyio.CancelScope() as host:
        async with speaking_to(waiting.server, HANDSHAKE[-1]) as end:
            await end.send(request(HANDSHAKE[-1], "tools/call", {"name": "hold"}))
            await waiting.begun.wait()
            if ends == "by the host":
                host.cancel()
                await anyio.lowlevel.checkpoint()
    assert waiting.seen == ["cleaned up"]


@on_virtual_clocks
async def test_a_handler_that_goes_on_is_cancelled_again() -> None:
    waiting = Waiting()
    with anyio.fail_after(2):
        async with speaking_to(waiting.server, HANDSHAKE[-1]) as end:
            await end.send(request(HANDSHAKE[-1], "tools/call", {"name": "ignore"}))
            await waiting.begun.wait()
    assert waiting.seen == ["ignored"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
async def test_the_end_of_a_task_is_no_failure_of_its_handler(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await check_own_failure(error)


async def test_a_cancelled_task_ends_whatever_its_handler_raises() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await check_own_failure(ValueError("no"))
    assert scope.cancelled_caught


async def test_an_earlier_cancellation_is_a_failure_of_the_handler() -> None:
    caught: list[BaseException] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            caught.append(error)
            raise
    await check_own_failure(caught[0])  # it returns
    assert scope.cancelled_caught
