"""Eager execution of coroutines: in the current task, with a callback when they first suspend.

Most handlers finish without suspending. A task of its own would cost more than such a handler, so
the reading task runs it, and passes reading on to a new task only if the handler suspends. A
coroutine stays in one task from start to end, so what asyncio, trio and anyio keep per task (cancel
scopes, timeouts, locks) works as usual.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from operator import call
from typing import Any, TypeAlias, TypeVar

import anyio

Result = TypeVar("Result")
Step: TypeAlias = Callable[..., Any]


def run_eagerly(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object]
) -> Awaitable[Result]:
    """Run a coroutine in a copy of the context; call `on_wait` once when it first suspends."""
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
    """Run a coroutine to its end, each step by `step`."""
    try:
        awaited = step(coroutine.send, None)
    except StopIteration as end:
        result: Result = end.value
        return result
    on_wait()
    while True:
        thrown: BaseException | None = None
        value: Any = None
        try:
            value = yield awaited
        except GeneratorExit:
            step(coroutine.close)
            raise
        except BaseException as error:  # a cancellation, for the coroutine to handle
            thrown = error
        try:
            awaited = (
                step(coroutine.send, value) if thrown is None else step(coroutine.throw, thrown)
            )
        except StopIteration as end:
            result = end.value
            return result


async def check_own_failure(error: BaseException) -> None:
    """Raise `error` if it ends the task; return if it is a failure of the handler.

    A handler may raise the exception of a cancellation without being cancelled, for example when
    it awaited a task that was cancelled.
    """
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    from anyio.lowlevel import checkpoint_if_cancelled  # loaded with the event loop

    await checkpoint_if_cancelled()
    if isinstance(error, anyio.get_cancelled_exc_class()) and _cancelled_by_loop():
        raise error


def _cancelled_by_loop() -> bool:
    """Whether asyncio itself cancelled this task, which anyio does not report."""
    import asyncio  # already loaded if it runs the loop

    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0
