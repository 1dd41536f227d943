"""Eager execution in one task, failures of handlers, and one-shot events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen_runtime.runtime.concurrency import check_own_failure, event_type, outcome
from mcpgen_runtime.runtime.eager_tasks import resume, run_eagerly

pytestmark = [pytest.mark.anyio, pytest.mark.on_asyncio]
own: ContextVar[str] = ContextVar("own", default="before")


class Waits:
    """Counts how often a coroutine has first suspended."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


async def test_a_coroutine_that_never_waits_hands_nothing_over() -> None:
    async def work() -> int:
        own.set("within")
        return 7

    token = own.set("before")
    waits = Waits()
    assert await run_eagerly(work(), waits) == 7
    assert waits.count == 0
    assert own.get() == "within"
    own.reset(token)


async def test_the_first_wait_hands_over_once() -> None:
    async def work() -> str:
        own.set("within")
        await anyio.lowlevel.checkpoint()
        assert waits.count == 1
        await anyio.lowlevel.checkpoint()
        return own.get()

    waits = Waits()
    assert await run_eagerly(work(), waits) == "within"
    assert waits.count == 1


@pytest.mark.parametrize("suspends", [False, True])
async def test_an_exception_passes_to_the_caller(suspends: bool) -> None:
    async def work() -> None:
        if suspends:
            await anyio.lowlevel.checkpoint()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run_eagerly(work(), Waits())


async def test_a_cancellation_is_for_the_coroutine_to_handle() -> None:
    seen: list[str] = []

    async def work() -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            seen.append("cancelled")
            raise
        return "never"

    with anyio.CancelScope() as scope:
        scope.cancel()
        await run_eagerly(work(), Waits())
    assert seen == ["cancelled"]
    assert scope.cancelled_caught


def test_a_closed_run_closes_its_coroutine() -> None:
    seen: list[str] = []

    class Suspension:
        def __await__(self) -> Any:
            yield "awaited"

    async def work() -> None:
        try:
            await Suspension()
        finally:
            seen.append("closed")

    async def outer() -> None:
        await run_eagerly(work(), Waits())

    running = outer()
    assert running.send(None) == "awaited"
    running.close()
    assert seen == ["closed"]


async def test_a_started_coroutine_is_resumed_in_its_task() -> None:
    async def work() -> list[int]:
        got = [0]
        for _ in range(2):
            await anyio.lowlevel.checkpoint()
            got.append(len(got))
        return got

    coroutine: Coroutine[Any, Any, list[int]] = work()
    assert await resume(coroutine, coroutine.send(None)) == [0, 1, 2]


async def suspend() -> None:
    await anyio.lowlevel.checkpoint()


async def test_the_outcome_of_a_call_is_returned_or_raised() -> None:
    assert await outcome(7, None) == 7
    with pytest.raises(ValueError, match="no"):
        await outcome(None, ValueError("no"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
async def test_the_end_of_a_task_is_no_failure_of_its_handler(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await check_own_failure(error)


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), SystemExit(1)])
async def test_other_failures_are_those_of_the_handler(error: BaseException) -> None:
    passed: list[BaseException] = []
    await check_own_failure(error)
    passed.append(error)
    assert passed == [error]


async def test_a_cancelled_task_ends_whatever_its_handler_raises() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await check_own_failure(ValueError("no"))
    assert scope.cancelled_caught


async def test_a_task_that_asyncio_cancels_ends() -> None:
    seen: list[type[BaseException]] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError as error:
            try:
                await check_own_failure(error)
            except asyncio.CancelledError:
                seen.append(asyncio.CancelledError)
                raise

    task = asyncio.create_task(work())
    await anyio.lowlevel.checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [asyncio.CancelledError]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_event_wakes_the_task_that_waits(backend: str) -> None:
    async def main() -> None:
        event = event_type()()
        steps: list[str] = []

        async def wait() -> None:
            await event
            steps.append("woken")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert (event.done(), steps) == (False, [])
            event.set_result(None)
            assert event.done()
        assert steps == ["woken"]
        assert isinstance(event, asyncio.Future) is (backend == "asyncio")

    anyio.run(main, backend=backend)


def test_events_need_no_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, "asyncio")
            make = event_type()
        assert not isinstance(make(), asyncio.Future)

    anyio.run(main, backend="trio")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_earlier_cancellation_is_a_failure_of_the_handler(backend: str) -> None:
    async def main() -> None:
        caught: list[BaseException] = []
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.sleep_forever()
            except BaseException as error:
                caught.append(error)
                raise
        await check_own_failure(caught[0])
        passed.append(backend)

    passed: list[str] = []
    anyio.run(main, backend=backend)
    assert passed == [backend]
