"""Tasks of an application that no request owns, and the lifespan of what is served.

Whoever runs the application may run its lifespan too, or not; then all begins with the first
request. Either way one task holds them, so that a lifespan is left in the task that entered it.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.abc

from ...errors import ConnectionClosedError

logger = logging.getLogger(__name__)

_STARTED: set[Any] = set()  # asyncio keeps no strong reference to a task


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def running_loop() -> object:
    """What stands for the event loop that runs: the same object as long as it does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return anyio.lowlevel.current_token()


class TaskScope:
    """Runs a lifespan, and tasks in it, from `start` to `stop` or to the end of the event loop.

    Args:
        lifespan: Makes what is entered.
        ended: Called when it is over, however that came about.
        first: The tasks to begin with.

    Attributes:
        state: What the lifespan yielded.
        running: Whether it has started, and not stopped.
    """

    def __init__(
        self,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]],
        ended: Callable[[], None],
        *first: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._lifespan = lifespan
        self._ended = ended
        self._first = first
        self._tasks: anyio.abc.TaskGroup | None = None
        self._starting: anyio.Event | None = None
        self._stopping = anyio.Event()
        self._stopped = anyio.Event()
        self._failure: Exception | None = None
        self.state: Any = None
        self.running = False

    async def start(self) -> None:
        """Enter the lifespan, unless that is done; several tasks may ask for it.

        Raises:
            Exception: Whatever the lifespan raised.
        """
        if self._starting is None:
            self._starting = anyio.Event()
            _spawn(self._hold)
        if not self.running:
            await self._starting.wait()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Cancel the tasks and leave the lifespan.

        Raises:
            Exception: Whatever the lifespan raised in the end.
        """
        if self._starting is None:
            return
        self._stopping.set()
        await self._stopped.wait()
        if self._failure is not None:
            raise self._failure

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        """Run a coroutine function beside all requests; not at all if everything is over."""
        if self._tasks is not None:
            self._tasks.start_soon(_guarded, function, *args)

    async def outlive(self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        """Run a coroutine function that goes on if the calling task is cancelled, and wait for it.

        On trio it has a task of its own: a host there waits for the tasks that it cancels before it
        ends the lifespan, and a shield would hold it up. On asyncio a host's own cancellation
        passes each shield, and none is called for.

        Raises:
            Exception: Whatever it raised, unless the calling task was cancelled before that.
        """
        if self._tasks is None or _on_asyncio():
            with anyio.CancelScope(shield=True):
                await function(*args)
            return
        failures: list[Exception] = []
        done = anyio.Event()

        async def run() -> None:
            try:
                await function(*args)
            except Exception as error:
                failures.append(error)
            finally:
                done.set()

        self._tasks.start_soon(run)
        await done.wait()
        if failures:
            raise failures[0]

    async def _hold(self) -> None:
        assert self._starting is not None
        try:
            async with self._lifespan() as self.state, anyio.create_task_group() as tasks:
                self._tasks = tasks
                for function in self._first:
                    self.start_soon(function)
                self.running = True
                self._starting.set()
                await self._stopping.wait()
                tasks.cancel_scope.cancel()
        except Exception as error:
            self._failure = error
        except BaseException as error:
            self._failure = ConnectionClosedError(f"the server has ended: {error!r}")
            raise
        finally:
            self._tasks = None
            self.running = False
            self._ended()
            self._starting.set()
            self._stopped.set()


async def _guarded(function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """What fails must not take the others with it."""
    try:
        await function(*args)
    except Exception:
        logger.exception("%s failed", getattr(function, "__qualname__", function))


def _spawn(function: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Start a task that nobody waits for, on whatever loop runs."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        importlib.import_module("trio").lowlevel.spawn_system_task(function)
        return
    task = loop.create_task(function())
    _STARTED.add(task)
    task.add_done_callback(_STARTED.discard)
