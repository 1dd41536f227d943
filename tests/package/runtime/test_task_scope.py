"""Background tasks that no request owns."""

from __future__ import annotations

import gc
import warnings
from contextlib import nullcontext

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
