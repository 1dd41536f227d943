"""The context of a plain function, which runs in a worker thread: its coroutines are called there.

A coroutine function of the context blocks the thread until it is done, and returns its result. In
the event loop it returns a coroutine as ever, so `anyio.from_thread.run(ctx.progress, 1)` works.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.from_thread

from .context import Context


class ThreadContext(Context[Any]):
    """A `Context` for a worker thread."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not inspect.iscoroutinefunction(value):
            return value
        return partial(_ask_all if name == "ask_all" else _call, value)


def use_in_thread(context: Context[Any]) -> None:
    """Make a context one for a worker thread."""
    context.__class__ = ThreadContext


def _call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a coroutine function of a context, from a worker thread or from the event loop.

    Raises:
        RuntimeError: The thread was started by neither the server nor anyio.
    """
    try:
        anyio.get_current_task()
    except RuntimeError:  # no event loop in this thread
        return anyio.from_thread.run(partial(function, *arguments, **options))
    return function(*arguments, **options)


def _ask_all(function: Callable[..., Any], *questions: Any) -> Any:
    """Answers are what they are: a worker thread has asked for them one after another."""
    if any(map(inspect.isawaitable, questions)):
        return _call(function, *questions)
    return questions
