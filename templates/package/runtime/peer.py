"""One peer at work: a connection, a channel and an application joined by tasks.

One task reads, and serves what it reads for as long as nothing makes it wait (see `handover`); when
something does, a fresh task reads on. Each request of ours waits in its caller's task, where
progress callbacks run too, so that they may do whatever the caller may. A limit holds for the
handlers that wait at a time: beyond it nothing is served until one of them has ended. Everything
that is a rule of the protocol is decided by `Connection`; here is only who waits for whom. Runs on
asyncio and trio.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
from msgspec import Raw

from ..channel import Channel, RequestId, close_sse_stream_of, transport_of
from ..errors import (
    ConnectionClosedError,
    FrameError,
    InternalError,
    McpError,
    ParseError,
    ProtocolError,
    RequestLost,
    ServerStartError,
    TransportError,
)
from ..foreign_text import safe_repr, safe_text
from ..protocol.connection import Connection
from ..protocol.events import (
    CancelReceived,
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
)
from ..protocol.lifecycle import Session
from .eager import check_own_failure, noticing
from .initialization import Initialization
from .one_shot_event import OneShotEvent, wakeup_type
from .pending_requests import PARTING_SECONDS, OnProgress, PendingRequests, Waiter
from .request_context import Application, exchange_of

logger = logging.getLogger(__name__.partition(".")[0])

CONCURRENT_REQUESTS = 256
"""Handlers of requests and notifications that one connection may have waiting, by default."""

HOLD_SECONDS = 60.0
"""How long reading stops at that limit at a time: the end of a connection must not stay unseen."""

_IN_A_ROW = 64  # messages read before other tasks get their turn


def check_concurrent_requests(limit: int) -> None:
    """See that `max_concurrent_requests` lets anything be served.

    Raises:
        ValueError: It does not.
    """
    if limit < 1:
        raise ValueError(f"max_concurrent_requests: expected at least 1, got {limit}")


class Peer:
    """Runs one connection over one channel.

    Args:
        connection: The protocol.
        channel: The transport; closed when the peer ends.
        application: Who answers the other side's requests.
        drain: Seconds that requests being served may still take once the other side is gone.
        max_concurrent_requests: Handlers that may be waiting at a time, each until its answer is
            handed to the channel. At the limit reading stops at the next request, until a handler
            ends; or, while this side waits for answers itself, further requests are refused
            (-32603) and further notifications dropped.
    """

    def __init__(
        self,
        connection: Connection,
        channel: Channel,
        application: Application,
        *,
        drain: float = 0.0,
        max_concurrent_requests: int = CONCURRENT_REQUESTS,
    ) -> None:
        self.connection = connection
        self._channel = channel
        self._application = application
        self._drain = drain
        self._limit = max_concurrent_requests
        self._busy = 0  # handlers that wait
        self._room: anyio.Event | None = None  # set when reading, stopped at the limit, may go on
        self._crowded = False  # nothing ended while reading stood still
        self._overflowed = False  # something was refused or dropped since a handler ended
        self._scopes: dict[RequestId, anyio.CancelScope] = {}
        self._unhandled: deque[Event] = deque()
        self._read_in_a_row = 0
        self._idle: anyio.Event | None = None
        self._closing = False
        self._cause: Exception | None = None
        self._tasks: anyio.abc.TaskGroup | None = None

    # Made when first used: a peer that answers one request and is gone needs none of these.

    @cached_property
    def callers(self) -> PendingRequests:
        """Who waits for the other side."""
        return PendingRequests(self.connection, self._channel)

    @cached_property
    def _agreement(self) -> Initialization:
        return Initialization(self.connection, self._channel, self._handle, self._new_wakeup)

    @cached_property
    def _new_wakeup(self) -> Callable[[], OneShotEvent]:
        return wakeup_type()

    @cached_property
    def _silent(self) -> anyio.Event:
        return anyio.Event()

    @property
    def transport(self) -> str:
        """What messages go over, such as `stdio`."""
        return transport_of(self._channel)

    @property
    def session(self) -> Session | None:
        """What was agreed with the other side, if there is a session."""
        return self.connection.session

    async def run(self) -> None:
        """Serve until the other side is gone, then finish what is being served.

        Failures of handlers and of the transport end in answers and in waiting callers, so none
        is raised here.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._read)
                await self._silent.wait()
                await self._finish()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.close()

    async def close(self) -> None:
        """End the connection; `run` then returns. Works from any task."""
        self._closing = True
        with anyio.move_on_after(PARTING_SECONDS):
            for send in self.connection.close_streams():
                await self._send(send.message, send.about)
        self._let_go()
        self.connection.closed()
        self._silent.set()
        await self._channel.close()

    async def open(self, probe_timeout: float, timeout: float) -> None:
        """Come to an agreement with a server; see `Initialization.reach`."""
        await self._agreement.reach(probe_timeout, timeout)

    async def request(
        self,
        name: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        limit: float | None = None,
        on_progress: OnProgress | None = None,
        serving: RequestId | None = None,
    ) -> Any:
        """Send a request and wait for its typed result.

        Args:
            name: The method.
            params: Its typed params, or a wire object, or raw JSON.
            meta: What to add to `_meta`.
            timeout: Seconds without answer or progress; `None` for no limit.
            limit: Seconds in all, whatever progress comes; `None` for no limit.
            on_progress: Called with each progress report; asks for them. What it raises leaves
                here, and the request is cancelled.
            serving: The received request on whose behalf it is made.

        Raises:
            RemoteError: The other side answered with an error.
            RemoteProtocolError: Its answer broke a rule.
            RequestTimeoutError: No answer in time; it was cancelled there.
            ConnectionClosedError: The connection ended first.
            ProtocolError: The request must not be sent (see `Sender.request`).
        """
        response = await self.callers.ask(
            Waiter(self._new_wakeup, on_progress),
            name,
            params,
            meta=meta,
            timeout=timeout,
            limit=limit,
            progress=on_progress is not None,
            serving=serving,
        )
        return response.result

    async def request_raw(
        self, name: str, params: Any = None, *, timeout: float | None = None
    ) -> Raw:
        """Like `request`, but give the result as it came, unknown members included."""
        waiter = Waiter(self._new_wakeup)
        return (await self.callers.ask(waiter, name, params, timeout=timeout)).raw

    async def notify(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        serving: RequestId | None = None,
    ) -> None:
        """Send a notification, to whoever wants it."""
        for send in self.connection.notify(name, params, serving):
            await self._send(send.message, send.about)

    async def report(
        self, identifier: RequestId, progress: float, total: float | None, message: str | None
    ) -> None:
        """Send progress of a request that is being served, if it is wanted."""
        if (report := self.connection.progress(identifier, progress, total, message)) is not None:
            await self._send(report, identifier)

    async def log(
        self, identifier: RequestId | None, level: str, data: Any, logger: str | None
    ) -> None:
        """Send a log message, if it is wanted."""
        if (message := self.connection.log(identifier, level, data, logger)) is not None:
            await self._send(message, identifier)

    async def release(self, identifier: RequestId) -> None:
        """Close the connection that a request is answered on, where the other side comes back."""
        if (release := close_sse_stream_of(self._channel)) is not None:
            await release(identifier)

    def stop_serving(self) -> None:
        """Cancel whatever is being served: nobody is there to be answered."""
        for scope in list(self._scopes.values()):
            scope.cancel()

    async def take(self, event: Event, scope: anyio.CancelScope | None = None) -> None:
        """Do what an event asks for, to its end, in this task.

        For transports that bring each message in a task of its own: they hand the events of
        `connection.receive` in here, and `run` is not used. A request is cancelled by its scope.
        """
        if isinstance(event, RequestReceived):
            if scope is not None:
                await self._serve(event, scope)
            else:
                with anyio.CancelScope() as scope:
                    await self._serve(event, scope)
        elif isinstance(event, NotificationReceived):
            await self._note(event)
        elif isinstance(event, ResponseReceived):
            self.callers.answered(event)
        else:
            await self._handle(event)

    async def _read(self) -> None:
        """Read and handle, until the end or until a handler makes this task wait."""
        tasks = self._tasks
        assert tasks is not None
        reading = True

        def hand_over() -> None:
            nonlocal reading
            reading = False
            self._busy += 1
            tasks.start_soon(self._read)

        try:
            with anyio.CancelScope() as scope:
                while reading:
                    if not self._unhandled and not await self._receive():
                        return
                    while reading and self._unhandled:
                        event = self._unhandled.popleft()
                        if isinstance(event, RequestReceived):
                            if self._busy < self._limit or await self._has_room(event):
                                await noticing(self._serve(event, scope), hand_over)
                        elif isinstance(event, NotificationReceived):
                            if self._busy < self._limit or await self._has_room(event):
                                await noticing(self._note(event), hand_over)
                        elif isinstance(event, ResponseReceived):
                            self.callers.answered(event)
                        else:
                            await self._handle(event)
        finally:
            if not reading:
                self._busy -= 1
                self._crowded = self._overflowed = False
                self._read_on()

    async def _has_room(self, event: RequestReceived | NotificationReceived) -> bool:
        """Wait for a handler to end; `False` if reading has to go on, and the event was refused."""
        while self._busy >= self._limit:
            if self._crowded or self.connection.open_calls:
                await self._turn_away(event)
                return False
            self._room = anyio.Event()
            self.callers.on_start = self._read_on  # an answer will come that has to be read
            with anyio.move_on_after(HOLD_SECONDS) as held:
                await self._room.wait()
            self._crowded = held.cancelled_caught
        return True

    def _read_on(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = self.callers.on_start = None

    async def _turn_away(self, event: RequestReceived | NotificationReceived) -> None:
        level = logging.DEBUG if self._overflowed else logging.WARNING
        self._overflowed = True
        why = f"{self._limit} handlers are at work, the limit is max_concurrent_requests"
        logger.log(level, "%s is not served: %s", event.method.name, why)
        if isinstance(event, NotificationReceived):
            self.callers.changed(event)
            return
        refusal = self._refusal(event, InternalError(f"too much at once: {why}"))
        if refusal is not None:
            await self._send(refusal, event.id)

    async def _receive(self) -> bool:
        """Take the next message; `False` if none will come."""
        self._read_in_a_row += 1
        if self._read_in_a_row % _IN_A_ROW == 0:
            await anyio.lowlevel.checkpoint()
        try:
            data = await self._channel.receive()
        except FrameError as error:
            bad = ParseError(str(error), code=error.code)
            self._unhandled += self.connection.unreadable(bad)
        except RequestLost as lost:
            self._unhandled += self.connection.lost(lost.id, lost.error)
        except Exception as error:
            if not isinstance(error, TransportError):
                logger.exception("the channel failed")
            self._cause = error
            self._silent.set()
            return False
        else:
            now = anyio.current_time() if self.callers.timed else 0.0
            self._unhandled += self.connection.receive(data, now)
        return True

    async def _serve(self, event: RequestReceived, scope: anyio.CancelScope) -> None:
        """Answer one request, unless it is cancelled.

        Args:
            scope: That of this task. By the time a cancellation can be read, the task has handed
                the reading over and does nothing but this.
        """
        self._scopes[event.id] = scope
        try:
            message = await self._answer(event, scope)
            if message is not None:
                await self._send(message, event.id)
        finally:
            if self._scopes.get(event.id) is scope:
                del self._scopes[event.id]
            if self._idle is not None and not self._scopes:
                self._idle.set()

    async def _answer(self, event: RequestReceived, scope: anyio.CancelScope) -> bytes | None:
        try:
            result = await self._application.handle(exchange_of(self, event))
            # Whoever cancelled it may use the id again, for what this is no answer to.
            if self._scopes.get(event.id) is not scope:
                return None
            return self.connection.respond(event.id, result)
        except ProtocolError as error:
            if isinstance(error, InternalError):
                logger.error("%s", error)
            failure = error
        except BaseException as error:
            await check_own_failure(error)
            logger.exception("%s failed", event.method.name)
            failure = InternalError("internal error")
        if self._scopes.get(event.id) is not scope:
            return None
        return self._refusal(event, failure)

    def _refusal(self, event: RequestReceived, failure: ProtocolError) -> bytes | None:
        try:
            return self.connection.fail(event.id, failure)
        except Exception:
            logger.exception("%s: an error that has no JSON form", event.method.name)
            return self.connection.fail(event.id, InternalError("internal error"))

    async def _note(self, event: NotificationReceived) -> None:
        self.callers.changed(event)
        try:
            await self._application.notified(exchange_of(self, event))
        except BaseException as error:
            await check_own_failure(error)
            logger.exception("%s failed", event.method.name)

    async def _handle(self, event: Event) -> None:
        """Do what an event asks for that needs neither application nor caller."""
        match event:
            case Send(message=message, opens=True):
                await self._agreement.ask(message)
            case Send(message=message, about=about):
                await self._send(message, about)
            case ProgressReceived():
                self.callers.progressed(event)
            case RequestFailed(id=identifier, error=error):
                self.callers.failed(identifier, error)
            case CancelReceived(id=identifier, reason=reason):
                why = safe_text(reason or "no reason")
                logger.debug("request %s was cancelled: %s", safe_repr(identifier), why)
                if (scope := self._scopes.pop(identifier, None)) is not None:
                    scope.cancel()
            case Opened():
                self._agreement.end()
            case OpenFailed(error=error):
                self._agreement.end(error)
            case Ignored(reason=reason):
                logger.debug("ignored: %s", reason)
            case RequestReceived() | NotificationReceived() | ResponseReceived():
                raise AssertionError("the reading task serves these")

    async def _send(self, message: bytes, about: RequestId | None = None) -> None:
        """Send, unless the transport is gone: the reading side will notice, and end."""
        try:
            await self._channel.send(message, about)
        except Exception as error:
            logger.debug("not sent: %s", error)

    async def _finish(self) -> None:
        """The other side says no more: let what is being served come to its end, for a while."""
        self._let_go()
        if self._scopes and not self._closing:
            self._idle = anyio.Event()
            with anyio.move_on_after(self._drain):
                await self._idle.wait()

    def _let_go(self) -> None:
        """Let everyone who waits for the other side know that it is gone, and why."""
        self._agreement.end(self._gone())
        self.callers.end(self._gone)

    def _gone(self) -> McpError:
        if isinstance(self._cause, ServerStartError):
            return self._cause
        why = f": {self._cause}" if self._cause is not None else ""
        return ConnectionClosedError(f"the connection is closed{why}")
