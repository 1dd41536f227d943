"""The lifespan of a server over HTTP, background tasks that no request owns, and scopes and turns.

One task runs lifespan and background tasks, so the lifespan is exited in the task that entered it,
whether lifespan events of the host or the first request start it.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any
from weakref import WeakSet

import anyio
import anyio.abc
import anyio.lowlevel

from ..errors import ConnectionClosedError
from .concurrency import OneShotEvent, event_type
from .eager_tasks import on_asyncio, run_eagerly

logger = logging.getLogger(__name__)

_IN_A_ROW = 32  # functions that one task runs before it yields to other tasks

AGAIN_SECONDS = 1.0
"""Seconds after which a background task that failed begins again."""

_STARTED: set[Any] = set()  # asyncio keeps no strong reference to a task


class NativeScope:
    """A cancel scope by the means of asyncio alone.

    It need not nest with scopes of anyio: a coroutine that was begun before the scope was entered
    may go on in it. Its cancellation is delivered once.

    Attributes:
        cancel_called: Whether it was cancelled, or its deadline passed.
        shield: Has no effect.
    """

    __slots__ = ("__weakref__", "_deadline", "_task", "_timer", "cancel_called", "shield")

    def __init__(self) -> None:
        self.cancel_called = self.shield = False
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> NativeScope:
        self._task = asyncio.current_task()
        return self

    def __exit__(self, kind: Any, error: Any, frames: Any) -> bool:
        self.deadline = math.inf
        task, self._task = self._task, None
        if not self.cancel_called or task is None:
            return False
        return task.uncancel() == 0 and kind is asyncio.CancelledError

    @property
    def deadline(self) -> float:
        """When the scope cancels itself, on the clock of the loop."""
        return self._deadline

    @deadline.setter
    def deadline(self, value: float) -> None:
        self._deadline = value
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if value != math.inf:
            self._timer = asyncio.get_running_loop().call_at(value, self.cancel)

    def cancel(self) -> None:
        """Cancel the task in the scope."""
        if not self.cancel_called and self._task is not None:
            self.cancel_called = True
            self._task.cancel()


class Turns:
    """Lets tasks use something one after the other, each in an `async with` block."""

    __slots__ = ("_is_taken", "_waiting")

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: deque[OneShotEvent] | None = None

    async def _wait(self) -> None:
        """Wait for the turn."""
        waiting = self._waiting
        if waiting is None:
            waiting = self._waiting = deque()
        event = event_type()()
        waiting.append(event)
        try:
            await event
        except BaseException:
            if event in waiting:
                waiting.remove(event)
            else:  # the turn came and is not used
                self._pass_on(waiting)
            raise

    def _pass_on(self, waiting: deque[OneShotEvent]) -> None:
        """Give the turn to the task that has waited longest, of those that were not cancelled."""
        for event in waiting:
            if not event.done():  # else its task takes it out itself
                waiting.remove(event)
                event.set_result(None)
                return
        self._is_taken = False

    async def __aenter__(self) -> None:
        if self._is_taken:
            await self._wait()
        self._is_taken = True

    async def __aexit__(self, *_: object) -> None:
        if self._waiting:
            self._pass_on(self._waiting)
        else:
            self._is_taken = False


def loop_clock() -> Callable[[], float]:
    """The clock of the running event loop; the same clock as `anyio.current_time`."""
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
    """Runs a lifespan with tasks, from `start` to `stop` or to the end of the event loop.

    Args:
        lifespan: Creates the context manager to enter.
        on_end: Called at the end.
        initial: Tasks to start with. One that raises is logged, and begins again.

    Attributes:
        state: The value that the lifespan yielded.
        running: Whether the lifespan was entered, and not exited.
        on_asyncio: Whether the event loop belongs to asyncio.
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
        self.on_asyncio = on_asyncio()
        self._failure: Exception | None = None
        self.state: Any = None
        self.running = False

    async def start(self) -> None:
        """Enter the lifespan. Idempotent; any number of tasks may call this.

        Raises:
            Exception: The exception of the lifespan.
        """
        if self._starting is None:
            self._starting = anyio.Event()
            spawn(self._run)
        if not self.running:
            await self._starting.wait()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Cancel the tasks and exit the lifespan.

        Raises:
            Exception: The exception of the lifespan on exit.
        """
        if self._starting is None:
            return
        self._stopping.set()
        await self._stopped.wait()
        if self._failure is not None:
            raise self._failure

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, object]], *args: Any) -> None:
        """Run a coroutine function in a background task; do nothing after the end."""
        if self._tasks is not None:
            self._tasks.start_soon(self._create_coroutine, function, *args)

    def start_together(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine function in the background, in one task with others while none suspends.

        A task costs more than notifying one client of a change, and there may be thousands.
        """
        self._together.append(function)
        self._take_together()

    def _take_together(self) -> None:
        if self._together and not self._is_taking and self._tasks is not None:
            self._is_taking = True
            self.start_soon(self._run_together)

    async def _run_together(self) -> None:
        """Run the functions in order; when a function suspends, another task runs the rest."""
        has_suspended = False

        def hand_over() -> None:
            nonlocal has_suspended
            has_suspended, self._is_taking = True, False
            self._take_together()

        for count in itertools.count(1):
            if not self._together:
                break
            await run_eagerly(_log_failures(self._together.popleft()), hand_over)
            if has_suspended:
                return
            if count % _IN_A_ROW == 0:  # other tasks run, and written data is sent
                await anyio.lowlevel.checkpoint()
        self._is_taking = False

    def _create_coroutine(
        self, function: Callable[..., Coroutine[Any, Any, object]], *args: Any
    ) -> Coroutine[Any, Any, None]:
        """The coroutine of a task; closed at the end of the scope if the task never ran."""
        coroutine = _log_failures(function, *args)
        self._coroutines.add(coroutine)
        return coroutine

    def outlive(
        self,
        scope: anyio.CancelScope,
        function: Callable[[anyio.CancelScope], Coroutine[Any, Any, None]],
    ) -> Awaitable[None]:
        """Run a coroutine function that continues if the calling task is cancelled.

        On asyncio the caller's scope is shielded; cancellation of the task itself by a host passes
        the shield there. On trio the function runs in a task of its own: hosts wait for cancelled
        tasks before they end the lifespan, and a shield would block them. The function is called
        with the scope that it runs in.

        Raises:
            Exception: The exception of the function, unless the calling task was cancelled before.
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
                    self.start_soon(keep_running, function)
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
            for coroutine in self._coroutines:  # no effect on those that have ended
                coroutine.close()
            self._tasks = None
            self.running = False
            self._on_end()
            self._starting.set()
            self._stopped.set()


async def keep_running(function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Call a function that runs until cancelled; after an exception, log it and call again.

    Each call follows the last one after a second, since its cause may last.
    """
    while True:
        try:
            await function(*args)
            return  # nothing to do here, as without a limit for idle sessions
        except Exception:
            name = getattr(function, "__qualname__", function)
            logger.exception("%s failed; it begins again in %g s", name, AGAIN_SECONDS)
        await anyio.sleep(AGAIN_SECONDS)


async def _log_failures(function: Callable[..., Coroutine[Any, Any, object]], *args: Any) -> None:
    """Call a function; an exception is logged and does not end the other tasks."""
    try:
        await function(*args)
    except Exception:
        logger.exception("%s failed", getattr(function, "__qualname__", function))


def spawn(function: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Start a task on the running event loop of asyncio or trio.

    The task has no parent, and ends with the event loop at the latest. The function must not raise
    an `Exception`.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        importlib.import_module("trio").lowlevel.spawn_system_task(function)
        return
    task = loop.create_task(function())
    _STARTED.add(task)
    task.add_done_callback(_STARTED.discard)
