"""Eager execution: a coroutine runs until it first waits before its starter goes on.

Most handlers never wait, and those that do keep their order. Eager tasks of asyncio (from Python
3.12 on) cost little more than a call; `begin_task` does the same on Python 3.11. On trio the
starter waits until the coroutine has suspended. `run_eagerly` needs no task: the coroutine stays in
the caller's task from start to end, so the state of anyio for each task (cancel scopes, timeouts,
locks) works as usual.

On asyncio a cancellation is delivered once, at the next await, as by `asyncio.Task.cancel`: a scope
of anyio for each handler would cost more than most handlers.
"""

from __future__ import annotations

import asyncio
import asyncio.tasks
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio

from ..channel import logger

if TYPE_CHECKING:
    import anyio.abc

Result = TypeVar("Result")

AGAIN_SECONDS = 1.0
"""Seconds that a cancelled handler has to clean up at the end of its connection."""


class Cancellable(Protocol):
    """A task of asyncio or a cancel scope."""

    def cancel(self) -> object: ...


def begin_task(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
    """Run a coroutine until it has ended or waits.

    Returns:
        The task that goes on with it, or a future with the outcome if it has ended.
    """
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(coroutine, loop=loop, eager_start=True)
    # As eager tasks do: docs.python.org/3/library/asyncio-extending.html#task-lifetime-support
    context = copy_context()
    begun = _Begun(coroutine)
    task = asyncio.Task(begun, loop=loop, context=context)
    starter = asyncio.current_task(loop)
    if starter is not None:
        asyncio.tasks._leave_task(loop, starter)
    asyncio.tasks._enter_task(loop, task)
    ended: asyncio.Future[Any] = loop.create_future()
    try:
        begun.awaited = context.run(coroutine.send, None)
        begun.has_ended = False
        return task
    except StopIteration as end:
        ended.set_result(end.value)
    except asyncio.CancelledError:
        ended.cancel()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        ended.set_exception(error)
    finally:
        asyncio.tasks._leave_task(loop, task)
        if starter is not None:
            asyncio.tasks._enter_task(loop, starter)
    return ended


_NOTHING = object()


class _Begun(Coroutine[Any, Any, Any]):
    """A coroutine that has begun, for a task whose first step it was."""

    __slots__ = ("_coroutine", "awaited", "has_ended")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.awaited: Any = _NOTHING  # what the coroutine has yielded, until its task has it
        self.has_ended = True  # in its first step
        self._coroutine = coroutine

    def send(self, value: Any) -> Any:
        """Go on; in the first step of the task, pass on what the coroutine awaits."""
        if self.awaited is not _NOTHING:
            awaited, self.awaited = self.awaited, _NOTHING
            return awaited
        if self.has_ended:
            raise StopIteration
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an exception where the coroutine waits."""
        if asyncio.isfuture(self.awaited):
            self.awaited.cancel()  # the task does this from its first step on
        self.awaited = _NOTHING
        if self.has_ended:
            raise StopIteration
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coroutine, name)  # what `inspect` tells of a coroutine


async def run_eagerly(
    coroutine: Coroutine[Any, Any, Result], on_wait: Callable[[], object]
) -> Result:
    """Run a coroutine in this task; call `on_wait` once when it first suspends."""
    try:
        awaited = coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    on_wait()
    return await resume(coroutine, awaited)


@types.coroutine
def resume(coroutine: Coroutine[Any, Any, Result], awaited: Any) -> Generator[Any, Any, Result]:
    """Run a coroutine to its end that was started in this task and has suspended.

    Args:
        coroutine: The coroutine.
        awaited: The object that it yielded.
    """
    while True:
        thrown: BaseException | None = None
        value: Any = None
        try:
            value = yield awaited
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # a cancellation, for the coroutine to handle
            thrown = error
        try:
            awaited = coroutine.send(value) if thrown is None else coroutine.throw(thrown)
        except StopIteration as end:
            result: Result = end.value
            return result


def on_asyncio() -> bool:
    """Whether the running event loop is one of asyncio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_SCOPE: ContextVar[anyio.CancelScope] = ContextVar("scope")


class HandlerTasks:
    """The tasks of handlers: each begins at once, and those that wait are counted.

    Args:
        group: The parent of the tasks on trio.

    Attributes:
        waiting: The number of handlers that wait.
        size: The bytes of the messages of these.
        on_end: Called once, when the next handler has ended that waited.
        own: Returns what cancels the handler of the running task.
    """

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self.waiting = 0
        self.size = 0
        self.on_end: Callable[[], None] | None = None
        self._group = group
        self._sizes: dict[asyncio.Future[None], int] = {}
        self._is_asyncio = on_asyncio()
        self.own: Callable[[], Any] = asyncio.current_task if self._is_asyncio else _SCOPE.get

    def begin(self, handler: Coroutine[Any, Any, None], size: int) -> Awaitable[None] | None:
        """Begin a handler of a message of some bytes; it goes on in a task of its own if it waits.

        Returns:
            To be awaited until the handler has ended or waits; `None` if that is so already.
        """
        if not self._is_asyncio:
            return self._begin_in_scope(handler, size)
        task = begin_task(handler)
        if task.done():
            if not task.cancelled():
                task.result()
            return None
        self.waiting += 1
        self.size += size
        self._sizes[task] = size
        task.add_done_callback(self._ended)
        return None

    async def end(self) -> None:
        """Cancel all handlers, and wait until they have ended.

        One that goes on in spite of its cancellation is cancelled again after `AGAIN_SECONDS`.
        """
        while self._sizes:
            for task in self._sizes:
                task.cancel()
            await asyncio.wait(list(self._sizes), timeout=AGAIN_SECONDS)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self.waiting -= 1
        self.size -= self._sizes.pop(task)
        if self.on_end is not None:
            on_end, self.on_end = self.on_end, None
            on_end()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a handler failed", exc_info=error)

    async def _begin_in_scope(self, handler: Coroutine[Any, Any, None], size: int) -> None:
        begun = anyio.Event()

        def wait() -> None:
            self.waiting += 1
            self.size += size
            begun.set()

        async def run() -> None:
            try:
                with anyio.CancelScope() as scope:
                    _SCOPE.set(scope)
                    await run_eagerly(handler, wait)
            finally:
                if begun.is_set():
                    self.waiting -= 1
                    self.size -= size
                    if self.on_end is not None:
                        on_end, self.on_end = self.on_end, None
                        on_end()
                begun.set()

        self._group.start_soon(run)
        await begun.wait()
