"""The running peer: a connection, a channel and an application joined by tasks.

    receive -> read -> register -> begin a task: handler -> response -> send

One task reads the messages, in order; each handler begins at once in a task of its own (see
`tasks`). Each request of this side waits in its caller's task, where progress callbacks run too.
The number of handlers that wait is limited: at the limit no handler is started until one has ended.
`Connection` implements the rules of the protocol. Runs on asyncio and trio.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import anyio

from ..channel import Channel, MessageSender, OutgoingMessage, RequestId, logger
from ..errors import (
    NOT_BEGUN,
    ConnectionClosedError,
    FrameError,
    InternalError,
    McpError,
    ProtocolError,
    RemoteProtocolError,
    RequestLost,
    ServerStartError,
    TransportError,
)
from ..foreign_text import safe_repr, safe_text
from ..protocol import jsonrpc
from ..protocol.connection import Connection
from ..protocol.events import (
    CancelReceived,
    CloseStreams,
    Event,
    Ignored,
    NotificationReceived,
    Opened,
    OpenFailed,
    ProgressReceived,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
    SendError,
    SendResponse,
    UnmatchedResponse,
)
from ..protocol.lifecycle import Session
from .concurrency import check_own_failure, failure_of
from .pending_requests import PARTING_SECONDS, PendingRequests
from .request_context import Application, RequestContext

if TYPE_CHECKING:
    import anyio.abc

    from .eager_tasks import Cancellable, HandlerTasks

CONCURRENT_REQUESTS = 256
"""Most waiting handlers of a connection, by default."""

HELD_BYTES = 64 * 1024 * 1024
"""Bytes of the peer's messages with waiting handlers, and of messages that wait until the peer
reads, at which no handler is started. A single message may have more."""

UNMATCHED_SECONDS = 60.0
"""Seconds after which open requests fail, by default, if a response came that may be theirs and
that nobody can read or match."""

_IN_A_ROW = 64  # messages read before other tasks may run


def check_concurrent_requests(limit: int) -> None:
    """Check `max_concurrent_requests`.

    Raises:
        ValueError: The limit is less than 1.
    """
    if limit < 1:
        raise ValueError(f"max_concurrent_requests: expected at least 1, got {limit}")


class Peer:
    """Runs one connection over one channel.

    Args:
        connection: The protocol.
        channel: The transport; closed when the peer ends. `run` needs a `Channel`.
        application: Handles the peer's requests and notifications.
        drain: Seconds for open requests to finish after the peer is gone.
        max_concurrent_requests: Most waiting handlers, each until its response is passed to the
            channel. At the limit, and at `HELD_BYTES`, reading stops at the next request until a
            handler ends; while this side waits for responses itself, further requests are refused
            (-32603) and further notifications are dropped.
        longest_hold: Most seconds for which reading stops; only reading detects the end of a
            connection.
        unmatched_seconds: Seconds after which open requests fail if a response came that nobody can
            read or match.

    Attributes:
        connection: As passed.
        scopes: The scopes of the tasks that serve the peer's requests, by id.
        callers: The requests of this side and the tasks that wait for responses.
    """

    def __init__(
        self,
        connection: Connection,
        channel: MessageSender,
        application: Application,
        *,
        drain: float = 0.0,
        max_concurrent_requests: int = CONCURRENT_REQUESTS,
        longest_hold: float = 60.0,
        unmatched_seconds: float = UNMATCHED_SECONDS,
    ) -> None:
        self.connection = connection
        self.callers = PendingRequests(connection, channel)
        self._channel = channel
        self._application = application
        self._drain = drain
        self._limit = max_concurrent_requests
        self._longest_hold = longest_hold
        self._unmatched_seconds = unmatched_seconds
        self._doubtful: dict[RequestId, tuple[float, str]] = {}  # until when they wait, and why
        self._next_warning = -math.inf  # for further warnings of responses without a request
        self._room: anyio.Event | None = None  # set when reading may continue after the limit
        self._stalled = False  # no handler ended during the last pause of reading
        self._overflowed = False  # a message was refused or dropped since a handler ended
        self.scopes: dict[RequestId, Cancellable] = {}
        self._is_receiving = False  # all earlier messages are handled
        self._idle: anyio.Event | None = None
        self._closing = False
        self._cause: Exception | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._handlers: HandlerTasks | None = None

    @cached_property  # a peer that answers one request needs none
    def _channel_ended(self) -> anyio.Event:
        return anyio.Event()

    @property
    def transport(self) -> str:
        """Name of the transport, such as `stdio`."""
        return self._channel.transport or type(self._channel).__name__

    @property
    def session(self) -> Session | None:
        """The session with the peer; `None` without a session."""
        return self.connection.session

    async def run(self) -> None:
        """Serve until the channel ends, then let open requests finish.

        Failures of handlers become error responses, and failures of the transport are raised to the
        callers of requests; none is raised here.
        """
        from .eager_tasks import HandlerTasks  # loads the event loop

        channel = cast("Channel", self._channel)  # a sender alone has nothing to run
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self._handlers = handlers = HandlerTasks(tasks)
                channel.settle_by(self._settle)
                tasks.start_soon(self._read, channel, handlers)
                await self._channel_ended.wait()
                await self._finish()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if self._handlers is not None:
                    await self._handlers.end()
                await self.close()

    async def close(self) -> None:
        """End the connection; `run` then returns. Works from any task."""
        self._closing = True
        with anyio.move_on_after(PARTING_SECONDS):
            await self.callers.send(*self.connection.send(CloseStreams()))
        self._settle_all()
        self.connection.closed()
        self._channel_ended.set()
        await self._channel.close()

    def start_soon(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task beside `run`, which cancels the task when the connection ends.

        Raises:
            ConnectionClosedError: The connection has ended.
        """
        self.callers.check_open()
        assert self._tasks is not None
        self._tasks.start_soon(function)

    def stop_serving(self) -> None:
        """Cancel all handlers of requests: the peer is gone."""
        for scope in list(self.scopes.values()):
            scope.cancel()

    async def handle(self, event: Event, scope: anyio.CancelScope | None = None) -> None:
        """Handle an event completely, in this task.

        For transports that receive each message in a task of its own: they pass the events of
        `connection.receive` to this method, and `run` is not used.

        Args:
            event: The event.
            scope: The scope that a cancellation of the request cancels; by default a new scope.
        """
        if isinstance(event, RequestReceived):
            with nullcontext(scope) if scope is not None else anyio.CancelScope() as own:
                await self._answer(event, lambda: own)
        elif isinstance(event, NotificationReceived):
            await self._notified(event)
        elif isinstance(event, ResponseReceived):
            self.callers.handle_response(event)
        else:
            await self._handle(event)

    async def _read(self, channel: Channel, handlers: HandlerTasks) -> None:
        """Take messages until the channel ends."""
        in_a_row = 0
        while True:
            in_a_row += 1
            if in_a_row % _IN_A_ROW == 0:
                from anyio.lowlevel import checkpoint  # loaded with the event loop

                await checkpoint()
            self._is_receiving = True
            try:
                data = await channel.receive()
            except (FrameError, RequestLost) as report:
                events = self.connection.receive(report)
            except Exception as error:
                if not isinstance(error, TransportError):
                    logger.exception("the channel failed")
                self._cause = error
                self._channel_ended.set()
                return
            else:
                now = anyio.current_time() if self.callers.timed else 0.0
                events = self.connection.receive(data, now)
            self._is_receiving = False
            for event in events:
                if isinstance(event, RequestReceived | NotificationReceived):
                    if self._is_full(handlers) and not await self._has_room(event, handlers):
                        continue
                    if isinstance(event, RequestReceived):
                        handler = self._answer(event, handlers.own)
                    else:
                        handler = self._notified(event)
                    raw = event.raw_params
                    size = 0 if raw is None else memoryview(raw).nbytes
                    if (begun := handlers.begin(handler, size)) is not None:
                        await begun
                elif isinstance(event, ResponseReceived):
                    self.callers.handle_response(event)
                else:
                    await self._handle(event)

    def _is_full(self, handlers: HandlerTasks) -> bool:
        """Whether a further handler has to wait: the limit is reached."""
        return handlers.waiting >= self._limit or handlers.size + self.callers.unsent >= HELD_BYTES

    async def _has_room(
        self, event: RequestReceived | NotificationReceived, handlers: HandlerTasks
    ) -> bool:
        """Wait until a handler ends; `False` if the event was refused and reading continues."""
        while self._is_full(handlers):
            handlers.on_end = self._handler_ended
            if self._stalled or len(self.connection.state.outbound):
                await self._refuse(event, handlers)
                return False
            self._room = anyio.Event()
            self.callers.on_start = self._resume_reading  # the response has to be read
            self.callers.on_sent = self._resume_reading
            with anyio.move_on_after(self._longest_hold) as hold:
                await self._room.wait()
            self._stalled = hold.cancelled_caught
        return True

    def _handler_ended(self) -> None:
        self._stalled = self._overflowed = False
        self._resume_reading()

    def _resume_reading(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = self.callers.on_start = self.callers.on_sent = None

    async def _refuse(
        self, event: RequestReceived | NotificationReceived, handlers: HandlerTasks
    ) -> None:
        level = logging.DEBUG if self._overflowed else logging.WARNING
        self._overflowed = True
        if handlers.waiting >= self._limit:
            why = f"{self._limit} handlers are at work, the limit is max_concurrent_requests"
        else:
            why = f"messages of {HELD_BYTES} bytes are handled or wait to be read"
        logger.log(level, "%s is not served: %s", event.method.name, why)
        if isinstance(event, NotificationReceived):
            self.callers.handle_notification(event)
            return
        text = f"too much at once: {why}; the request was not begun"
        refusal = InternalError(text, data=NOT_BEGUN)
        await self.callers.send(*self.error_response(event, refusal))

    def _settle(self, data: bytes) -> bool:
        """Settle a request of this side when its result arrives; `_read` handles other messages."""
        connection = self.connection
        if connection.session is None or not len(connection.state.outbound):
            return False
        if not self._is_receiving:  # messages before this one are not handled yet
            return False
        message = jsonrpc.parse(data)
        if not isinstance(message, jsonrpc.Result):
            return False
        for event in connection.receive(message):
            if isinstance(event, ResponseReceived):
                self.callers.handle_response(event)
            elif isinstance(event, RequestFailed):
                self.callers.handle_failure(event.id, event.error)
            elif isinstance(event, UnmatchedResponse):
                self._handle_unmatched(event)
        return True

    def _handle_unmatched(self, event: UnmatchedResponse) -> None:
        """Log a response that may be that of any open request, and limit the time of all these."""
        now = anyio.current_time()
        level = logging.WARNING if now >= self._next_warning else logging.DEBUG
        self._next_warning = until = now + self._unmatched_seconds
        waiting = f" (open requests: {len(event.ids)})" if event.ids else ""
        logger.log(level, "a response that belongs to no request: %s%s", event.reason, waiting)
        if self._tasks is None:  # each message comes by HTTP, whose response says what is wrong
            return
        is_watching = bool(self._doubtful)
        for identifier in event.ids:
            self._doubtful.setdefault(identifier, (until, event.reason))
        if self._doubtful and not is_watching:
            self._tasks.start_soon(self._fail_doubtful)

    async def _fail_doubtful(self) -> None:
        """Fail requests that got no response since one came that nobody can match."""
        while self._doubtful:
            identifier, (until, reason) = next(iter(self._doubtful.items()))
            await anyio.sleep_until(until)
            if self._doubtful.pop(identifier, None) is not None:
                seconds = self._unmatched_seconds
                text = f"no response within {seconds:g} s after one that belongs to no request"
                error = RemoteProtocolError(f"{text}: {reason}")
                for event in self.connection.receive(RequestLost(identifier, error)):
                    await self._handle(event)

    async def _answer(self, event: RequestReceived, own: Callable[[], Cancellable]) -> None:
        """Run the handler of a request and send its response, unless it is cancelled.

        `own` returns what cancels this task, which only serves the request.
        """
        scopes, scope = self.scopes, own()
        scopes[event.id] = scope
        # After a cancellation the peer may reuse the id, for a request with another scope.
        failure: ProtocolError | None = None
        messages: Sequence[OutgoingMessage] = ()
        try:
            try:
                context = RequestContext(
                    self.callers,
                    event.method,
                    event.params,
                    event.raw_params,
                    event.meta,
                    event.revision,
                    event.id,
                    event.peer_info,
                    event.peer_capabilities,
                )
                result = await self._application.handle(context)
                if scopes.get(event.id) is not scope:
                    return
                messages = self.connection.send(SendResponse(event.id, result))
            except BaseException as error:
                failure = await failure_of(event, error)
            if failure is not None:
                if scopes.get(event.id) is not scope:
                    return
                messages = self.error_response(event, failure)
            await self.callers.send(*messages)
        finally:
            if scopes.get(event.id) is scope:
                del scopes[event.id]
            if self._idle is not None and not scopes:
                self._idle.set()

    def error_response(
        self, event: RequestReceived, failure: ProtocolError
    ) -> Sequence[OutgoingMessage]:
        """The error response; none if the request was cancelled."""
        try:
            return self.connection.send(SendError(event.id, failure))
        except Exception:
            logger.exception("%s: an error that has no JSON form", event.method.name)
            return self.connection.send(SendError(event.id, InternalError("internal error")))

    async def _notified(self, event: NotificationReceived) -> None:
        self.callers.handle_notification(event)
        session = self.connection.session
        context = RequestContext(
            self.callers,
            event.method,
            event.params,
            event.raw_params,
            event.meta,
            event.revision,
            None,
            None if session is None else session.peer_info,
            {} if session is None else session.peer_capabilities,
        )
        try:
            await self._application.notified(context)
        except BaseException as error:
            await check_own_failure(error)
            logger.exception("%s failed", event.method.name)

    async def _handle(self, event: Event) -> None:
        """Handle an event that concerns neither the application nor a response."""
        match event:
            case Send(message=message):
                await self.callers.send(message)
            case ProgressReceived():
                self._doubtful.pop(event.id, None)  # its response is still to come
                self.callers.handle_progress(event)
            case RequestFailed(id=identifier, error=error):
                self.callers.handle_failure(identifier, error)
            case CancelReceived(id=identifier, reason=reason):
                why = safe_text(reason or "no reason")
                logger.debug("request %s was cancelled: %s", safe_repr(identifier), why)
                if (scope := self.scopes.pop(identifier, None)) is not None:
                    scope.cancel()
            case UnmatchedResponse():
                self._handle_unmatched(event)
            case Ignored(reason=reason):
                logger.debug("ignored: %s", reason)
            case RequestReceived() | NotificationReceived() | ResponseReceived():
                raise AssertionError("the reading task serves these")
            case Opened() | OpenFailed():
                raise AssertionError("a client opens the session")

    async def _finish(self) -> None:
        """Let open requests finish within the drain time, after the channel has ended."""
        self._settle_all()
        if self.scopes and not self._closing:
            self._idle = anyio.Event()
            with anyio.move_on_after(self._drain):
                await self._idle.wait()

    def _settle_all(self) -> None:
        """Settle all pending requests with the reason why the connection ended."""
        self.callers.end(self._closed_error)

    def _closed_error(self) -> McpError:
        if isinstance(self._cause, ServerStartError):
            return self._cause
        why = f": {self._cause}" if self._cause is not None else ""
        return ConnectionClosedError(f"the connection is closed{why}")
