"""Running a coroutine in this task, and noticing when it first waits.

Most handlers answer without waiting for anything. A task of their own would cost more than they
do, so the task that reads runs them itself; only one that waits makes it give the reading away.
From its first step to its last a coroutine stays in one task, so all that asyncio, trio and anyio
keep by task (cancel scopes, timeouts, locks) works as ever. Context variables that it sets are its
own, as if it had a task to itself.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from operator import call
from typing import Any, TypeAlias, TypeVar

import anyio.lowlevel

Result = TypeVar("Result")
Step: TypeAlias = Callable[..., Any]


def noticing(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object]
) -> Awaitable[Result]:
    """Run a coroutine to its end; call `on_wait` once if it has to wait for something."""
    return _driven(coroutine, on_wait, copy_context().run)


def pausing(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object]
) -> Awaitable[Result]:
    """The same for a coroutine of our own, whose context variables are those of this task."""
    return _driven(coroutine, on_wait, call)


@types.coroutine
def _driven(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object], step: Step
) -> Generator[Any, Any, Result]:
    """Run a coroutine of Python's kind to its end, each of its steps by `step`."""
    try:
        awaited = step(coroutine.send, None)
    except StopIteration as end:
        result: Result = end.value
        return result
    on_wait()
    while True:
        thrown: BaseException | None = None
        given: Any = None
        try:
            given = yield awaited
        except GeneratorExit:
            step(coroutine.close)
            raise
        except BaseException as error:  # a cancellation: the coroutine's to deal with
            thrown = error
        try:
            awaited = (
                step(coroutine.send, given) if thrown is None else step(coroutine.throw, thrown)
            )
        except StopIteration as end:
            result = end.value
            return result


async def check_own_failure(error: BaseException) -> None:
    """Let pass what ends the task; return if `error` is a handler's own failure.

    A handler may fail with the exception that tells of a cancellation though nobody cancelled it,
    for example when it waited for a task that was.
    """
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    await anyio.lowlevel.checkpoint_if_cancelled()
    if isinstance(error, anyio.get_cancelled_exc_class()) and _cancelled_by_loop():
        raise error


def _cancelled_by_loop() -> bool:
    """Whether asyncio's own means cancelled this task: anyio sees no more than its own."""
    import asyncio  # loaded already, where it runs the loop

    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0
