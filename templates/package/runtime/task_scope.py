"""The lifespan of a server, and background tasks that no request owns.

One task holds them, so that the lifespan is left in the task that entered it: the host may send
lifespan events, or the first request may start everything.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any
from weakref import WeakSet

import anyio
import anyio.abc
import anyio.lowlevel

from ..errors import ConnectionClosedError
from .concurrency import pausing

logger = logging.getLogger(__name__)

_IN_A_ROW = 32  # functions that one task runs before others have their turn

_STARTED: set[Any] = set()  # asyncio keeps no strong reference to a task


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def scope_type() -> Callable[[], anyio.CancelScope]:
    """Makes cancel scopes of the running event loop.

    `anyio.CancelScope` finds the loop out for each scope, which costs as much as the scope does.
    """
    return type(anyio.CancelScope())


def loop_clock() -> Callable[[], float]:
    """The clock of the running event loop, as `anyio.current_time` has it."""
    try:
        return asyncio.get_running_loop().time
    except RuntimeError:
        return anyio.current_time


def running_loop() -> object:
    """An object that identifies the running event loop."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return anyio.lowlevel.current_token()


class TaskScope:
    """Runs a lifespan, and tasks in it, from `start` to `stop` or to the end of the event loop.

    Args:
        lifespan: Makes the context manager to enter.
        on_end: Called at the end.
        initial: Tasks to start with.

    Attributes:
        state: What the lifespan yielded.
        running: Whether the lifespan was entered, and not left.
        on_asyncio: Whether the event loop is one of asyncio.
    """

    def __init__(
        self,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]],
        on_end: Callable[[], None],
        *initial: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._lifespan = lifespan
        self._on_end = on_end
        self._initial = initial
        self._tasks: anyio.abc.TaskGroup | None = None
        self._coroutines: WeakSet[Coroutine[Any, Any, None]] = WeakSet()
        self._starting: anyio.Event | None = None
        self._stopping = anyio.Event()
        self._stopped = anyio.Event()
        self._together: deque[Callable[[], Coroutine[Any, Any, object]]] = deque()
        self._is_taking = False
        self.on_asyncio = _on_asyncio()
        self._failure: Exception | None = None
        self.state: Any = None
        self.running = False

    async def start(self) -> None:
        """Enter the lifespan. Idempotent; any number of tasks may call this.

        Raises:
            Exception: Whatever the lifespan raised.
        """
        if self._starting is None:
            self._starting = anyio.Event()
            spawn(self._run)
        if not self.running:
            await self._starting.wait()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Cancel the tasks and leave the lifespan.

        Raises:
            Exception: Whatever the lifespan raised on leaving.
        """
        if self._starting is None:
            return
        self._stopping.set()
        await self._stopped.wait()
        if self._failure is not None:
            raise self._failure

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, object]], *args: Any) -> None:
        """Run a coroutine function in the background; no-op after the end."""
        if self._tasks is not None:
            self._tasks.start_soon(self._begun, function, *args)

    def start_together(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine function likewise, in one task with others as long as none has to wait.

        A task costs more than to tell one client of a change, and there may be thousands.
        """
        self._together.append(function)
        self._take_together()

    def _take_together(self) -> None:
        if self._together and not self._is_taking and self._tasks is not None:
            self._is_taking = True
            self.start_soon(self._run_together)

    async def _run_together(self) -> None:
        """Run one after the other; the first that has to wait leaves the rest to another task."""
        has_left = False

        def leave() -> None:
            nonlocal has_left
            has_left, self._is_taking = True, False
            self._take_together()

        for count in itertools.count(1):
            if not self._together:
                break
            await pausing(_logging_failures(self._together.popleft()), leave)
            if has_left:
                return
            if count % _IN_A_ROW == 0:  # other tasks run, and what was written is sent
                await anyio.lowlevel.checkpoint()
        self._is_taking = False

    def _begun(
        self, function: Callable[..., Coroutine[Any, Any, object]], *args: Any
    ) -> Coroutine[Any, Any, None]:
        """The coroutine of a task; it is closed at the end of all, if its task never ran."""
        coroutine = _logging_failures(function, *args)
        self._coroutines.add(coroutine)
        return coroutine

    def outlive(
        self,
        scope: anyio.CancelScope,
        function: Callable[[anyio.CancelScope], Coroutine[Any, Any, None]],
    ) -> Awaitable[None]:
        """Run a coroutine function that continues if the calling task is cancelled.

        On asyncio `scope`, the caller's own, is shielded. A host's cancellation of the task passes
        each shield there. On trio the function runs in a task of its own: hosts wait for the tasks
        that they cancel before they end the lifespan, and a shield would block them.

        Args:
            scope: The scope of the calling task.
            function: Called with the scope that it runs in.

        Raises:
            Exception: Whatever it raised, unless the calling task was cancelled before that.
        """
        if self._tasks is None or self.on_asyncio:
            scope.shield = True
            return function(scope)
        return self._in_own_task(self._tasks, function)

    async def _in_own_task(
        self,
        tasks: anyio.abc.TaskGroup,
        function: Callable[[anyio.CancelScope], Coroutine[Any, Any, None]],
    ) -> None:
        failures: list[Exception] = []
        done = anyio.Event()

        async def run() -> None:
            try:
                with anyio.CancelScope() as scope:
                    await function(scope)
            except Exception as error:
                failures.append(error)
            finally:
                done.set()

        tasks.start_soon(run)
        await done.wait()
        if failures:
            raise failures[0]

    async def _run(self) -> None:
        assert self._starting is not None
        try:
            async with self._lifespan() as self.state, anyio.create_task_group() as tasks:
                self._tasks = tasks
                for function in self._initial:
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
            for coroutine in self._coroutines:  # those that have ended stay as they are
                coroutine.close()
            self._tasks = None
            self.running = False
            self._on_end()
            self._starting.set()
            self._stopped.set()


async def _logging_failures(
    function: Callable[..., Coroutine[Any, Any, object]], *args: Any
) -> None:
    """Call a function; an exception is logged and does not end the other tasks."""
    try:
        await function(*args)
    except Exception:
        logger.exception("%s failed", getattr(function, "__qualname__", function))


def spawn(function: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Start a task on the running loop, whether asyncio's or trio's.

    The task belongs to no other one, and ends with the loop at the latest. The function must not
    raise an `Exception`.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        importlib.import_module("trio").lowlevel.spawn_system_task(function)
        return
    task = loop.create_task(function())
    _STARTED.add(task)
    task.add_done_callback(_STARTED.discard)
