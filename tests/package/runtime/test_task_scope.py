"""Background tasks that no request owns."""

from __future__ import annotations

import gc
import warnings
from contextlib import nullcontext
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from mcp_protocol.runtime.task_scope import TaskScope


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
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


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_functions_share_a_task_until_one_waits(backend: str) -> None:
    tasks: dict[int, int] = {}

    async def start_all() -> None:
        scope = TaskScope(nullcontext, lambda: None)
        go, ended = anyio.Event(), anyio.Event()

        async def run(number: int) -> None:
            tasks[number] = anyio.get_current_task().id
            if number == 3:
                await go.wait()
                ended.set()
            if number == 4:
                raise RuntimeError("logged, and the others run")

        await scope.start()
        for number in range(100):
            scope.start_together(partial(run, number))
        with anyio.fail_after(5):
            while len(tasks) < 100:
                await anyio.lowlevel.checkpoint()
            go.set()
            await ended.wait()
            scope.start_together(partial(run, 100))
            while len(tasks) < 101:
                await anyio.lowlevel.checkpoint()
        await scope.stop()

    anyio.run(start_all, backend=backend)
    assert {tasks[number] for number in range(4)} == {tasks[3]}
    assert {tasks[number] for number in range(4, 100)} == {tasks[4]}
    assert tasks[3] != tasks[4]
