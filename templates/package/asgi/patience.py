"""Waiting with a limit. What need not wait pays little for it: the clock starts at the first pause.

The scope that ends the waiting is entered before all else, for what is waited for may enter others.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

import anyio

Result = TypeVar("Result")


@types.coroutine
def pausing(
    coroutine: Coroutine[Any, Any, Result], on_pause: Callable[[], object]
) -> Generator[Any, Any, Result]:
    """Run a coroutine to its end in this task, in this task's own context.

    Args:
        coroutine: A coroutine of our own: Python's kind.
        on_pause: Called once if it has to wait for something.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    on_pause()
    while True:
        thrown: BaseException | None = None
        given: Any = None
        try:
            given = yield awaited
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # a cancellation: the coroutine's to deal with
            thrown = error
        try:
            awaited = coroutine.send(given) if thrown is None else coroutine.throw(thrown)
        except StopIteration as end:
            result = end.value
            return result


async def within(
    seconds: float, coroutine: Coroutine[Any, Any, Result], *, shield: bool = False
) -> Result:
    """Run a coroutine to its end in this task, but not for ever.

    Args:
        seconds: How long it may take from its first pause on.
        coroutine: A coroutine of our own: Python's kind.
        shield: Whether it goes on though this task is cancelled.

    Raises:
        TimeoutError: It took too long, and was cancelled.
    """
    with anyio.CancelScope(shield=shield) as scope:

        def start_the_clock() -> None:
            scope.deadline = anyio.current_time() + seconds

        return await pausing(coroutine, start_the_clock)
    raise TimeoutError
