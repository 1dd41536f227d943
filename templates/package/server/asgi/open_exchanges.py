"""The POSTs that are being served: whose clients are watched, and which clients left.

Most handlers take a short time. A task per POST that waits for the client to disconnect would cost
more than the handler. So one task looks at all POSTs periodically, and starts a watching task for
each that is there.

In a session, a client that closes its connection cancels nothing. Its call continues, but does not
count as in flight any more, and is cancelled unless the client resumes the stream in time.

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
from msgspec import Struct

from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.task_scope import TaskScope
from .quotas import Quotas
from .settings import Limits

logger = logging.getLogger(__name__)

_SEARCH_INTERVAL = 0.25  # seconds between two searches for disconnected clients, at least


class Watched(Protocol):
    """An exchange; see `Exchange`."""

    watched: bool

    async def watch(self) -> None: ...

    async def fail(self, text: str) -> None: ...


class OpenExchanges:
    """The exchanges of an endpoint.

    Args:
        background: Runs the tasks that wait for clients to disconnect.
        quotas: Counts the messages in flight.
        interval: Seconds after which an exchange is watched.

    Attributes:
        background: As passed.
        quotas: As passed.
        open: The exchanges; after one was added, call `wake` unless `added` is `None`.
        added: Set when an exchange is added while the watching task waits for one.
        tasks: The tasks of asyncio that serve them, beyond those that have ended at once.
    """

    def __init__(self, background: TaskScope, quotas: Quotas, interval: float) -> None:
        self.background = background
        self.quotas = quotas
        self.open: dict[Any, None] = {}
        self.tasks: set[asyncio.Future[None]] = set()
        self._interval = interval
        self.added: anyio.Event | None = None
        self._next_search = 0.0
        quotas.find_disconnected.append(self._find_disconnected)

    def wake(self) -> None:
        """Wake the watching task: there is an exchange now."""
        if self.added is not None:
            self.added.set()
            self.added = None

    def own(self, task: asyncio.Task[None]) -> None:
        """Own a task until it ends; its POST, which waits for it, may end before."""
        self.tasks.add(task)
        task.add_done_callback(self._disown)

    def _disown(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("a request ended with an exception: %r", error)

    async def own_tasks(self) -> None:
        """Wait until cancelled; then cancel the tasks and wait for them."""
        try:
            await anyio.sleep_forever()
        finally:
            tasks = list(self.tasks)
            for task in tasks:
                task.cancel()
            if tasks:
                with anyio.CancelScope(shield=True):
                    await asyncio.wait(tasks, timeout=PARTING_SECONDS)

    async def watch(self) -> None:
        """Start watching the open exchanges periodically, until cancelled."""
        while True:
            if not self.open:
                self.added = anyio.Event()
                await self.added.wait()
            await anyio.sleep(self._interval)
            self.watch_all()

    def watch_all(self) -> None:
        """Start watching the clients of all open exchanges."""
        for exchange in list(self.open):
            if not exchange.watched:
                exchange.watched = True
                self.background.start_soon(_log_failures, exchange.watch)

    async def fail_all(self, text: str) -> None:
        """Respond to all requests with an error, and cancel them."""
        async with anyio.create_task_group() as tasks:
            for exchange in self._all():
                tasks.start_soon(_log_failures, exchange.fail, text)

    def _all(self) -> list[Any]:
        return list(self.open)

    def _find_disconnected(self) -> None:
        """Start watching all connections, at most every `_SEARCH_INTERVAL` seconds."""
        now = anyio.current_time()
        if now >= self._next_search:
            self._next_search = now + _SEARCH_INTERVAL
            self.watch_all()


class Abandonable(Protocol):
    """Work for a client that may be gone."""

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, perhaps after resuming it."""
        ...

    async def fail(self, text: str) -> None:
        """Respond with an error, unless there is a response, and cancel the work."""
        ...


class _Abandoned(Struct):
    deadline: float
    cancelled: bool = False


class SessionExchanges(OpenExchanges):
    """The exchanges in sessions, and other work for their clients that clients abandoned.

    Args:
        background: See `OpenExchanges`.
        quotas: See `OpenExchanges`.
        interval: See `OpenExchanges`.
        limits: The limits.

    Attributes:
        abandoned: The abandoned work, the first first.
    """

    def __init__(
        self, background: TaskScope, quotas: Quotas, interval: float, limits: Limits
    ) -> None:
        super().__init__(background, quotas, interval)
        self._limits = limits
        self.abandoned: OrderedDict[Abandonable, _Abandoned] = OrderedDict()
        self._count = 0  # of those that are not cancelled
        self._abandonment = anyio.Event()

    def abandon(self, work: Abandonable) -> None:
        """Count work as abandoned: its client disconnected, or has its response already."""
        if work in self.abandoned:
            return
        self.quotas.in_flight -= 1
        self.abandoned[work] = _Abandoned(self._deadline())
        self._count += 1
        while self._count > self._limits.abandoned and self.cancel_first_abandoned("abandoned"):
            pass
        self._abandonment.set()

    def end(self, work: Abandonable) -> None:
        """Stop counting work as abandoned; count it as in flight until its HTTP request ends."""
        abandoned = self.abandoned.pop(work, None)
        if abandoned is not None:
            self.quotas.in_flight += 1
            if not abandoned.cancelled:
                self._count -= 1

    def cancel_first_abandoned(self, limit: str) -> bool:
        """Cancel the work that was abandoned first, of that whose stream was not resumed.

        Returns:
            Whether any was cancelled.
        """
        for work, abandoned in self.abandoned.items():
            if not abandoned.cancelled and not work.attended:
                self._cancel(work, limit)
                return True
        return False

    async def expire_abandoned(self) -> None:
        """Cancel work that has been abandoned for too long, until cancelled."""
        while True:
            while not self.abandoned:  # work may end in the turn in which it was abandoned
                self._abandonment = anyio.Event()
                await self._abandonment.wait()
            work, first = next(iter(self.abandoned.items()))
            if first.deadline > anyio.current_time():
                await anyio.sleep_until(first.deadline)
            elif work.attended:
                first.deadline = self._deadline()
                self.abandoned.move_to_end(work)
            else:
                self._cancel(work, "abandoned_seconds")

    def _all(self) -> list[Any]:
        return list(dict.fromkeys([*self.open, *self.abandoned]))

    def _deadline(self) -> float:
        return anyio.current_time() + self._limits.abandoned_seconds

    def _cancel(self, work: Abandonable, limit: str) -> None:
        abandoned = self.abandoned[work]
        if not abandoned.cancelled:
            abandoned.cancelled = True
            self._count -= 1
        abandoned.deadline = self._deadline()  # retry if the handler ignores the cancellation
        self.abandoned.move_to_end(work)
        text = f"the client was not there for its answer (Limits.{limit})"
        self.background.start_soon(_log_failures, work.fail, text)


async def _log_failures(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Call a function and log its exceptions, such as exceptions of the ASGI server."""
    try:
        await function(*arguments)
    except Exception as error:
        logger.debug("a connection failed: %r", error)
