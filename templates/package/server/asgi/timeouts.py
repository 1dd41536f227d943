"""Waiting with a limit. What need not wait pays little for it: the clock starts at the first pause.

The scope that ends the waiting is entered before all else, for what is waited for may enter others.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

from ...runtime.eager import pausing

Result = TypeVar("Result")


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
