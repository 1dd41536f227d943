"""Background tasks that no request owns."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from kit.simulation import simulate
from mcpgen_runtime.runtime.task_scope import TaskScope, Turns

both = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@both
def test_a_loop_that_ends_leaves_no_coroutine_unawaited(backend: str) -> None:
    async def start() -> None:
        scope = TaskScope(nullcontext, lambda: None)
        go = anyio.Event()

        async def start_another() -> None:
            await go.wait()
            scope.start_soon(anyio.sleep_forever)  # the loop ends before the first step of it

        await scope.start()
        scope.start_soon(start_another)
        await anyio.lowlevel.checkpoint()
        go.set()

    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        anyio.run(start, backend=backend)
        gc.collect()
    assert noted == []


class Lifespan:
    """A lifespan that is recorded."""

    def __init__(self) -> None:
        self.record: list[str] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[str]:
        self.record.append("begin")
        yield "state"
        self.record.append("end")

    def on_end(self) -> None:
        self.record.append("on_end")


async def test_a_scope_enters_its_lifespan_once_and_exits_it() -> None:
    async def note() -> None:
        notes.append(1)
        noted.set()

    notes: list[int] = []
    noted = anyio.Event()
    lifespan = Lifespan()
    scope = TaskScope(lifespan, lifespan.on_end, note)
    await scope.stop()  # nothing was started
    assert not scope.running
    for _ in range(2):
        await scope.start()
        assert (scope.running, scope.state) == (True, "state")
    with anyio.fail_after(5):
        await noted.wait()
        await scope.stop()
        await scope.stop()
    assert (scope.running, lifespan.record) == (False, ["begin", "end", "on_end"])
    scope.start_soon(note)  # does nothing after the end
    scope.start_together(note)
    await anyio.wait_all_tasks_blocked()
    assert len(notes) == 1


@pytest.fixture
async def scope() -> AsyncIterator[TaskScope]:
    """A scope that was started."""
    scope = TaskScope(nullcontext, lambda: None)
    await scope.start()
    yield scope
    await scope.stop()


async def test_a_failing_task_is_logged_and_others_go_on(
    scope: TaskScope, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(text: str) -> None:
        raise ValueError(text)

    async def finish() -> None:
        done.set()

    done = anyio.Event()
    scope.start_soon(fail, "no")
    scope.start_together(partial(fail, "no"))
    scope.start_together(finish)
    with anyio.fail_after(5):
        await done.wait()
    await anyio.wait_all_tasks_blocked()
    texts = sorted(record.getMessage() for record in caplog.records)
    assert len(texts) == 2
    assert texts[1].endswith("fail failed")
    assert {record.exc_info is not None for record in caplog.records} == {True}


async def test_other_tasks_run_between_many_functions(scope: TaskScope) -> None:
    async def note() -> None:
        noted.append(1)

    noted: list[int] = []
    for _ in range(1000):
        scope.start_together(note)
    while not noted:
        await anyio.lowlevel.checkpoint()
    assert len(noted) < 1000


async def test_work_that_outlives_its_caller_is_finished(
    scope: TaskScope, anyio_backend_name: str
) -> None:
    steps: list[str] = []
    go, ended = anyio.Event(), anyio.Event()

    async def work(own: anyio.CancelScope) -> None:
        steps.append("begun")
        await go.wait()
        steps.append("done")
        ended.set()

    async def call() -> None:
        with whole:
            try:
                with anyio.CancelScope() as caller:
                    await scope.outlive(caller, work)
            finally:
                steps.append("left")

    whole = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        whole.cancel()
        await anyio.wait_all_tasks_blocked()
        go.set()
    with anyio.fail_after(5):
        await ended.wait()
    # a host of trio waits for cancelled tasks, so that these don't wait for the work
    last = {"asyncio": ["done", "left"], "trio": ["left", "done"]}[anyio_backend_name]
    assert steps == ["begun", *last]


async def test_the_failure_of_work_that_may_outlive_its_caller_is_raised(scope: TaskScope) -> None:
    async def fail(own: anyio.CancelScope) -> None:
        raise ValueError("no")

    with anyio.fail_after(5), pytest.raises(ValueError, match="no"):
        with anyio.CancelScope() as caller:
            await scope.outlive(caller, fail)


@pytest.mark.parametrize("seen", [True, False])
async def test_a_turn_that_is_given_up_is_that_of_the_next(seen: bool) -> None:
    turns, taken, given_up = Turns(), list[str](), anyio.CancelScope()

    async def take(name: str) -> None:
        async with turns:
            taken.append(f"{name} begins")
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            taken.append(f"{name} ends")

    async def give_up() -> None:
        with given_up:
            await take("given up")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            async with turns:
                tasks.start_soon(give_up)
                for name in ("first", "second"):
                    await anyio.wait_all_tasks_blocked()
                    tasks.start_soon(take, name)
                await anyio.wait_all_tasks_blocked()
                given_up.cancel()
                if seen:
                    await anyio.wait_all_tasks_blocked()
                assert taken == []
            await take("last")
            async with turns:
                given_up = anyio.CancelScope()
                tasks.start_soon(give_up)
                await anyio.wait_all_tasks_blocked()
                given_up.cancel()  # so that nobody waits any more
            await take("later")
    names = ("first", "second", "last", "later")
    assert taken == [f"{name} {step}" for name in names for step in ("begins", "ends")]


@pytest.mark.on_asyncio
async def test_a_turn_that_comes_as_a_host_cancels_the_task_is_passed_on() -> None:
    async def take() -> None:
        async with turns:
            await anyio.lowlevel.checkpoint()

    turns = Turns()
    async with turns:
        tasks = [asyncio.create_task(take()) for _ in range(2)]
        await anyio.wait_all_tasks_blocked()
    tasks[0].cancel()
    with anyio.fail_after(5):
        await tasks[1]
    assert tasks[0].cancelled()


@both
def test_a_background_task_that_fails_begins_again(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    times: list[float] = []

    async def start() -> None:
        done = anyio.Event()

        async def watch() -> None:
            times.append(anyio.current_time())
            if len(times) < 4:
                raise RuntimeError("a fault")
            done.set()
            await anyio.sleep_forever()

        scope = TaskScope(nullcontext, lambda: None, watch)
        await scope.start()
        await done.wait()
        await scope.stop()

    simulate(backend, 0, start)
    assert [round(time - times[0], 3) for time in times] == [0, 1, 2, 3]
    assert len([each for each in caplog.records if each.exc_info]) == 3
    assert caplog.text.count("watch failed; it begins again in 1 s") == 3
