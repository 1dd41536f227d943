"""Requests of this side and the tasks that wait for their responses.

Each request waits in its caller's task; the reading task settles the request, once. A caller that
stops waiting before that cancels the request.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec
from msgspec import Raw

from ..channel import MessageSender, OutgoingMessage, RequestId, logger
from ..errors import McpError, RequestTimeoutError
from ..protocol.connection import Connection
from ..protocol.events import (
    CancelRequest,
    NotificationReceived,
    ProgressReceived,
    ResponseReceived,
    SendNotification,
    SendRequest,
)
from .concurrency import OneShotEvent, event_type

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]
"""Called with progress, total and message, in the task that waits for the result."""

PARTING_SECONDS = 1.0
"""Seconds for sending a message that no caller waits for."""

NOTIFICATIONS = 1024
"""Most notifications that may wait for one task; then the oldest are dropped."""

NOTIFICATION_BYTES = 4 * 1024 * 1024
"""Most bytes of those notifications, but for the newest; then the oldest are dropped."""

_NO_DEADLINE = nullcontext()


class Listener(Protocol):
    """Receives notifications, and is told of the end of the connection."""

    def settle(
        self, response: ResponseReceived | None = None, failure: Exception | None = None
    ) -> None:
        """Set the response or the failure; only the first call has an effect."""

    def deliver(self, *arguments: Any) -> None:
        """Pass on a notification."""


class Awaited(Listener, Protocol):
    """An open request of this side: receives its notifications, and is settled once.

    Attributes:
        settled: Whether the outcome is known.
    """

    settled: bool


class NotificationQueue:
    """The newest notifications that wait for one task, within the limits."""

    def __init__(self) -> None:
        self._items: deque[tuple[Any, ...]] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, arguments: tuple[Any, ...]) -> None:
        """Add the arguments of one notification; drop the oldest beyond the limits."""
        self._items.append(arguments)
        self._size += _size_of(arguments)
        while len(self._items) > NOTIFICATIONS or self._size > NOTIFICATION_BYTES:
            if len(self._items) == 1:
                break
            self.take()

    def take(self) -> tuple[Any, ...]:
        """Remove and return the oldest."""
        arguments = self._items.popleft()
        self._size -= _size_of(arguments)
        return arguments

    def take_all(self) -> list[tuple[Any, ...]]:
        """Remove and return all, the oldest first."""
        return [self.take() for _ in range(len(self))]


def _size_of(arguments: tuple[Any, ...]) -> int:
    """Bytes of a notification that may be long: its params, or the text of a progress report."""
    return sum(
        len(each) if isinstance(each, str) else memoryview(each.raw_params or b"").nbytes
        for each in arguments
        if isinstance(each, str | NotificationReceived)
    )


class Waiter(msgspec.Struct, eq=False):
    """A task that waits. It is settled once: with a response, with a failure, or with neither.

    Attributes:
        new_event: Creates the event to wait for.
        on_notification: Called with each notification in the waiting task; exceptions propagate to
            the caller.
        scope: Ends the waiting at the deadline, if there is one.
    """

    new_event: Callable[[], OneShotEvent]
    on_notification: Callable[..., Awaitable[None] | None] | None = None
    settled: bool = False
    response: ResponseReceived | None = None
    failure: Exception | None = None
    scope: anyio.CancelScope | None = None
    notifications: NotificationQueue | None = None
    event: OneShotEvent | None = None

    def settle(
        self, response: ResponseReceived | None = None, failure: Exception | None = None
    ) -> None:
        """End the waiting; further calls have no effect."""
        if not self.settled:
            self.settled = True
            self.response = response
            self.failure = failure
            self._wake()

    def deliver(self, *arguments: Any) -> None:
        """Queue a notification for `on_notification`; the oldest are dropped beyond the limits."""
        if self.on_notification is not None and not self.settled:
            if self.notifications is None:
                self.notifications = NotificationQueue()
            self.notifications.add(arguments)
            self._wake()

    async def wait(self) -> None:
        """Wait until settled, and handle the notifications that come before that."""
        while True:
            if self.notifications:
                await self._handle_notifications()
            if self.settled:
                return
            self.event = self.new_event()
            await self.event

    def _wake(self) -> None:
        if self.event is not None and not self.event.done():
            self.event.set_result(None)

    async def _handle_notifications(self) -> None:
        while self.notifications and self.on_notification is not None:
            handled = self.on_notification(*self.notifications.take())
            if inspect.isawaitable(handled):
                await handled


class PendingRequests:
    """The messages of this side, and the tasks that wait for responses.

    Args:
        connection: The protocol.
        channel: The transport.

    Attributes:
        timed: The number of requests with a deadline.
        gone: Creates the error for requests after the connection has ended; `None` before that.
        listeners: Receive each notification that belongs to no request; settled at the end.
        on_start: Called when a request is about to be sent, if set.
        on_sent: Called when a message was sent that no caller waits for, if set.
        unsent: Bytes of such messages that are being sent.
    """

    def __init__(self, connection: Connection, channel: MessageSender) -> None:
        self.connection = connection
        self.channel = channel
        self._waiters: dict[RequestId, Awaited] = {}
        self._new_event: Callable[[], OneShotEvent] | None = None
        self.timed = 0
        self.gone: Callable[[], McpError] | None = None
        self.listeners: set[Listener] = set()
        self.on_start: Callable[[], None] | None = None
        self.on_sent: Callable[[], None] | None = None
        self.unsent = 0

    def check_open(self) -> None:
        """Raise if the connection has ended."""
        if self.gone is not None:
            raise self.gone()

    async def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        on_progress: OnProgress | None = None,
        related_request_id: RequestId | None = None,
    ) -> Any:
        """Send a request and wait for its typed result.

        Args:
            name: The method.
            params: Typed params, a wire object, or raw JSON.
            meta: Members to add to `_meta`.
            timeout: Seconds without response or progress; `None` for no limit.
            limit: Seconds in all, despite progress; `None` for no limit.
            on_progress: Called with each progress report; progress is requested only with it. Its
                exceptions propagate, and the request is cancelled.
            related_request_id: The received request on whose behalf this request is sent.

        Raises:
            RemoteError: The peer answered with an error.
            RemoteProtocolError: The response broke a rule.
            RequestTimeoutError: No response in time; the request was cancelled.
            ConnectionClosedError: The connection ended first.
            ProtocolError: The request must not be sent (see `Connection.send`).
        """
        asks = on_progress is not None
        request = SendRequest(name, params, meta, asks, related_request_id, timeout, limit)
        return (await self.ask(self.waiter(on_progress), request)).result

    async def request_raw(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        related_request_id: RequestId | None = None,
    ) -> Raw:
        """Send a request as `request` does, and return the result as received, not decoded."""
        asks = on_progress is not None
        request = SendRequest(name, params, meta, asks, related_request_id, timeout, None, False)
        return (await self.ask(self.waiter(on_progress), request)).raw

    def waiter(
        self, on_notification: Callable[..., Awaitable[None] | None] | None = None
    ) -> Waiter:
        """A waiter for the running task."""
        if self._new_event is None:
            self._new_event = event_type()
        return Waiter(self._new_event, on_notification)

    async def ask(self, waiter: Waiter, request: SendRequest) -> ResponseReceived:
        """Send a request and wait for its response; see `request`."""
        if self.gone is not None:
            raise self.gone()
        timeout, limit = request.timeout, request.limit
        timed = timeout is not None or limit is not None
        now = anyio.current_time() if timed else 0.0
        (message,) = self.connection.send(request, now)
        identifier = self._add(message, waiter)
        deadline = self.connection.state.outbound.deadline(identifier) if timed else None
        self.timed += timed
        try:
            if deadline is not None:
                waiter.scope = anyio.CancelScope(deadline=deadline)
            with waiter.scope or _NO_DEADLINE:
                try:
                    await self.channel.send(message)
                except Exception:  # it was not delivered: there is nothing to cancel
                    self.connection.send(CancelRequest(identifier))
                    raise
                await waiter.wait()
            if not waiter.settled:
                at_limit = (
                    limit is not None
                    and self.connection.state.outbound.deadline(identifier) == now + limit
                )
                raise RequestTimeoutError(request.name, (limit if at_limit else timeout) or 0.0)
        finally:
            self.timed -= timed
            if waiter.settled:
                del self._waiters[identifier]
            else:
                await self.stop(identifier)
        if waiter.response is None:
            assert waiter.failure is not None
            raise waiter.failure
        return waiter.response

    async def start(
        self, waiter: Awaited, name: str, params: Any, *, meta: Mapping[str, Any] | None = None
    ) -> RequestId:
        """Send a request that stays open until it is settled or until `stop`; return its id."""
        self.check_open()
        (message,) = self.connection.send(SendRequest(name, params, meta))
        identifier = self._add(message, waiter)
        try:
            await self.channel.send(message)
        except BaseException as error:
            if isinstance(error, Exception):
                self.connection.send(CancelRequest(identifier))
            await self.stop(identifier)
            raise
        return identifier

    async def stop(self, identifier: RequestId) -> None:
        """Remove a waiter; cancel its request if it is not settled."""
        waiter = self._waiters.pop(identifier, None)
        if waiter is None or waiter.settled:
            return
        closed = self.channel.close_request_stream(identifier)
        command = CancelRequest(identifier, stream_closed=closed)
        for message in self.connection.send(command):
            with anyio.move_on_after(PARTING_SECONDS, shield=True), suppress(Exception):
                await self.channel.send(message)

    async def notify(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        related_request_id: RequestId | None = None,
    ) -> None:
        """Send a notification to all subscribers, or to the peer if it needs no subscription."""
        await self.send(*self.connection.send(SendNotification(name, params, related_request_id)))

    async def send(self, *messages: OutgoingMessage) -> None:
        """Send messages. Failures are logged; the reading task sees them too."""
        for message in messages:
            size = len(message.data)
            self.unsent += size
            try:
                await self.channel.send(message)
            except Exception as error:
                logger.debug("not sent: %s", error)
            finally:
                self.unsent -= size
                if self.on_sent is not None:
                    self.on_sent()

    def handle_response(self, response: ResponseReceived) -> None:
        """Settle a request with its result."""
        if (waiter := self._waiters.get(response.id)) is not None:
            waiter.settle(response=response)

    def handle_failure(self, identifier: RequestId, error: McpError) -> None:
        """Settle a request that failed, and close its stream."""
        if (waiter := self._waiters.get(identifier)) is not None:
            waiter.settle(failure=error)
        self.channel.close_request_stream(identifier)

    def handle_progress(self, report: ProgressReceived) -> None:
        """Pass on a progress report, and move the deadline."""
        waiter = self._waiters.get(report.id)
        if isinstance(waiter, Waiter):
            deadline = self.connection.state.outbound.deadline(report.id)
            if waiter.scope is not None and deadline is not None:
                waiter.scope.deadline = deadline
            waiter.deliver(report.progress, report.total, report.message)

    def handle_notification(self, change: NotificationReceived) -> None:
        """Pass on a notification to its subscription, or to all listeners if it names none."""
        if change.subscription is None:
            for listener in self.listeners:
                listener.deliver(change)
        elif type(change.subscription) in (int, str):  # a client may send any JSON value
            waiter = self._waiters.get(change.subscription)
            if waiter is not None:
                waiter.deliver(change)

    def end(self, gone: Callable[[], McpError]) -> None:
        """Settle all requests and refuse new ones, after the connection has ended."""
        self.gone = gone
        for waiter in (*self._waiters.values(), *self.listeners):
            waiter.settle(failure=gone())

    def _add(self, message: OutgoingMessage, waiter: Awaited) -> RequestId:
        """Add the waiter of a request that is about to be sent; returns the id."""
        assert message.id is not None
        self._waiters[message.id] = waiter
        if self.on_start is not None:
            self.on_start()
        return message.id
