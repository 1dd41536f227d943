"""Requests of ours and the tasks that wait for their answers.

Each request waits in its caller's task; the task that reads settles it. Whatever happens, it is
settled once, and whoever stops waiting before that takes the request back.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec

from ..channel import Channel, RequestId, close_request_stream_of
from ..errors import McpError, RequestTimeoutError
from ..protocol.connection import Connection
from ..protocol.events import NotificationReceived, ProgressReceived, ResponseReceived
from .one_shot_event import OneShotEvent

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]
"""Called with progress, total and message, in the task that waits for the result."""

PARTING_SECONDS = 1.0
"""How long a message that no caller waits for any more may take to leave."""

NEWS = 1024
"""Pieces of news that may lie untold; of more than that, the oldest are dropped."""


class Awaited(Protocol):
    """What stands for an open request of ours: told of what happens meanwhile, and settled once.

    Attributes:
        settled: Whether nothing more will come.
    """

    settled: bool

    def settle(
        self, response: ResponseReceived | None = None, failure: Exception | None = None
    ) -> None:
        """Take the answer, or the reason why there is none; only the first one counts."""
        ...

    def tell(self, *news: Any) -> None:
        """Take a notification that belongs to the request."""
        ...


class Waiter(msgspec.Struct, eq=False):
    """One who waits. It settles once: with a response, with a failure, or as done.

    Attributes:
        new_wakeup: Makes what to wait for.
        on_news: Told of what happens meanwhile, in the task that waits: it may do whatever the
            caller may, and what it raises reaches the caller.
        settled: Whether the waiting is over.
        response: The answer, if there was one.
        failure: Why there is none.
        scope: What ends the waiting at its deadline, if it has one.
        news: What happened and is not told yet.
        woken: What the waiting task waits for.
    """

    new_wakeup: Callable[[], OneShotEvent]
    on_news: Callable[..., Awaitable[None] | None] | None = None
    settled: bool = False
    response: ResponseReceived | None = None
    failure: Exception | None = None
    scope: anyio.CancelScope | None = None
    news: deque[tuple[Any, ...]] | None = None
    woken: OneShotEvent | None = None

    def settle(
        self, response: ResponseReceived | None = None, failure: Exception | None = None
    ) -> None:
        """End the waiting; whatever comes after the first time changes nothing."""
        if not self.settled:
            self.settled = True
            self.response = response
            self.failure = failure
            self._wake()

    def tell(self, *news: Any) -> None:
        """Have a piece of news told: these are the arguments for it."""
        if self.on_news is not None and not self.settled:
            if self.news is None:
                self.news = deque(maxlen=NEWS)
            self.news.append(news)
            self._wake()

    async def wait(self) -> None:
        """Wait until settled, telling the news that come meanwhile."""
        while True:
            if self.news:
                await self._tell_news()
            if self.settled:
                return
            self.woken = self.new_wakeup()
            await self.woken.wait()

    def _wake(self) -> None:
        if self.woken is not None:
            self.woken.set()

    async def _tell_news(self) -> None:
        while self.news and self.on_news is not None:
            told = self.on_news(*self.news.popleft())
            if inspect.isawaitable(told):
                await told


class PendingRequests:
    """All who wait for the answer to a request.

    Attributes:
        timed: How many of them have a deadline.
        gone: Makes the error for those who ask when nobody answers any more; `None` before.
        listeners: Told of each notification that belongs to no request; settled in the end.
        on_start: Called when a request is about to be sent, if somebody has to know.
    """

    def __init__(self, connection: Connection, channel: Channel) -> None:
        self._connection = connection
        self._channel = channel
        self._abandon = close_request_stream_of(channel)
        self._waiters: dict[RequestId, Awaited] = {}
        self.timed = 0
        self.gone: Callable[[], McpError] | None = None
        self.listeners: set[Awaited] = set()
        self.on_start: Callable[[], None] | None = None

    def check_open(self) -> None:
        """Raise the error for those who ask when nobody answers any more."""
        if self.gone is not None:
            raise self.gone()

    async def ask(
        self,
        waiter: Waiter,
        name: str,
        params: Any,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        progress: bool = False,
        serving: RequestId | None = None,
    ) -> ResponseReceived:
        """Send a request and wait for its answer; see `Peer.request`."""
        self.check_open()
        timed = timeout is not None or limit is not None
        now = anyio.current_time() if timed else 0.0
        identifier, message = self._connection.request(
            name,
            params,
            meta=meta,
            progress=progress,
            serving=serving,
            timeout=timeout,
            limit=limit,
            now=now,
        )
        self._waiters[identifier] = waiter
        if self.on_start is not None:
            self.on_start()
        try:
            if timed:
                await self._in_time(waiter, identifier, message, serving)
            else:
                await self._send(identifier, message, serving)
                await waiter.wait()
            if not waiter.settled:
                at_limit = (
                    limit is not None and self._connection.deadline(identifier) == now + limit
                )
                raise RequestTimeoutError(name, (limit if at_limit else timeout) or 0.0)
        finally:
            await self.stop(identifier)
        if waiter.response is None:
            assert waiter.failure is not None
            raise waiter.failure
        return waiter.response

    async def start(
        self, waiter: Awaited, name: str, params: Any, *, meta: Mapping[str, Any] | None = None
    ) -> RequestId:
        """Send a request that stays open until it is settled, or `stop` takes it back; its id."""
        self.check_open()
        identifier, message = self._connection.request(name, params, meta=meta)
        self._waiters[identifier] = waiter
        if self.on_start is not None:
            self.on_start()
        try:
            await self._send(identifier, message, None)
        except BaseException:
            await self.stop(identifier)
            raise
        return identifier

    async def stop(self, identifier: RequestId) -> None:
        """Tell of a request no more; take it back if it is not settled."""
        waiter = self._waiters.pop(identifier, None)
        if waiter is not None and not waiter.settled:
            await self._take_back(identifier)

    def answered(self, response: ResponseReceived) -> None:
        """Settle a request with its result."""
        if (waiter := self._waiters.get(response.id)) is not None:
            waiter.settle(response=response)

    def failed(self, identifier: RequestId, error: McpError) -> None:
        """Settle a request that failed; what may still come on its stream is of no use."""
        if (waiter := self._waiters.get(identifier)) is not None:
            waiter.settle(failure=error)
        if self._abandon is not None:
            self._abandon(identifier)

    def progressed(self, report: ProgressReceived) -> None:
        """Pass a progress report on; the deadline may have moved."""
        waiter = self._waiters.get(report.id)
        if isinstance(waiter, Waiter):
            deadline = self._connection.deadline(report.id)
            if waiter.scope is not None and deadline is not None:
                waiter.scope.deadline = deadline
            waiter.tell(report.progress, report.total, report.message)

    def changed(self, change: NotificationReceived) -> None:
        """Pass a notification on to the subscription it is sent for, or to all listeners."""
        if change.subscription is None:
            for listener in self.listeners:
                listener.tell(change)
        elif type(change.subscription) in (int, str):  # a client may say anything
            waiter = self._waiters.get(change.subscription)
            if waiter is not None:
                waiter.tell(change)

    def end(self, gone: Callable[[], McpError]) -> None:
        """Nobody answers any more: settle all, and refuse new requests."""
        self.gone = gone
        for waiter in (*self._waiters.values(), *self.listeners):
            waiter.settle(failure=gone())

    async def _in_time(
        self, waiter: Waiter, identifier: RequestId, message: bytes, serving: RequestId | None
    ) -> None:
        """Send and wait until the deadline at most, which progress may move."""
        deadline = self._connection.deadline(identifier)
        assert deadline is not None
        self.timed += 1
        try:
            with anyio.CancelScope(deadline=deadline) as waiter.scope:
                await self._send(identifier, message, serving)
                await waiter.wait()
        finally:
            self.timed -= 1

    async def _send(self, identifier: RequestId, message: bytes, serving: RequestId | None) -> None:
        """Send a request; one that could not be delivered has not to be taken back."""
        try:
            await self._channel.send(message, serving)
        except Exception:
            self._connection.cancel(identifier)
            raise

    async def _take_back(self, identifier: RequestId) -> None:
        """Cancel a request whose caller waits no more, by its stream or by a notification."""
        if self._abandon is None:
            message = self._connection.cancel(identifier)
        else:
            self._abandon(identifier)
            message = self._connection.abandoned(identifier)
        if message is not None:
            with anyio.move_on_after(PARTING_SECONDS, shield=True), suppress(Exception):
                await self._channel.send(message)
