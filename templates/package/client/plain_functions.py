"""Plain functions as handlers and callbacks: they run in worker threads, and so may block."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from anyio import to_thread


def in_thread(function: Callable[..., Any] | None) -> Any:
    """A coroutine function that calls a plain function in a thread; others are returned as is."""
    if function is None or inspect.iscoroutinefunction(function):
        return function

    async def called(*arguments: Any) -> Any:
        result = await to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result

    return called
