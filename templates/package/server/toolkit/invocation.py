"""Calling registered functions: coroutine functions here, plain ones in a worker thread."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import anyio.to_thread

Caller: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Takes keyword arguments as a mapping, gives what the function returns."""


def caller(function: Callable[..., Any]) -> Caller:
    """A way to call a function without blocking the event loop.

    A plain function runs in a worker thread. When its request is cancelled the thread is left
    behind, since nothing can stop it.
    """
    if _is_coroutine_function(function):

        def call(arguments: Mapping[str, Any]) -> Awaitable[Any]:
            awaitable: Awaitable[Any] = function(**arguments)
            return awaitable

        return call

    async def call_in_thread(arguments: Mapping[str, Any]) -> Any:
        work = partial(function, **arguments)
        result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result

    return call_in_thread


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    kind: Any = type(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(kind.__call__)


def source_name(function: Callable[..., Any]) -> str:
    """The name a function was defined with, or that of its class."""
    inner: Any = getattr(function, "func", function)
    name: str = getattr(inner, "__name__", type(inner).__name__)
    return name
