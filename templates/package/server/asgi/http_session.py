"""Sessions over HTTP: one client's session, its streams, and the POSTs in it.

A client that closes its connection cancels nothing. Its call continues, but does not count as in
flight any more, and is cancelled unless the client resumes the stream in time.

A response is sent to the POST of its request, other messages to a stream that the client opened by
GET. No message is sent twice. The response to a POST without requests comes first, since a handler
may wait for the next message of the client.

Source: basic/transports#session-management, #streamable-http, #sending-messages-to-the-server
(to 2025-11-25).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol

import anyio

from ...channel import MessageSender, OutgoingMessage, RequestId
from ...errors import (
    INTERRUPTED,
    ConnectionClosedError,
    InternalError,
    ProtocolError,
    TransportError,
)
from ...facts import Revision
from ...protocol.connection import Connection
from ...protocol.events import (
    CancelReceived,
    SendError,
    SendResponse,
)
from ...protocol.lifecycle import Session, State
from ...runtime.peer import Peer
from ...runtime.pending_requests import PARTING_SECONDS, PendingRequests
from ...runtime.request_context import Identity, RequestContext
from ...runtime.task_scope import TaskScope, Turns
from ..serving import AnnouncementQueue, Service
from . import http_response
from .exchange import RESPONSES, Exchange, OpenExchanges, PostResponse, log_failures
from .http_response import NO_HEADERS, SHUTTING_DOWN, HttpResponse, Receive, Refused, SseResponse
from .http_response import Send as AsgiSend
from .quotas import Quotas, subscriptions_size
from .request import HttpRequest
from .settings import HttpSettings, Limits

_ID_BYTES = 32
_ENDED = "the session has ended"


class SessionStream:
    """A stream of a session. Any number of tasks may send; each event goes out whole.

    Attributes:
        over: Whether nothing more is sent.
        held: The scope that keeps a GET connection open.
    """

    def __init__(self) -> None:
        self.over = False
        self.held: anyio.CancelScope | None = None
        self._response: SseResponse | None = None
        self._turns = Turns()

    @property
    def connected(self) -> bool:
        """Whether there is an open connection."""
        return self._response is not None and self._response.is_open

    @property
    def attended(self) -> bool:
        """Whether a client reads the stream."""
        return self.connected

    async def open(
        self,
        response: SseResponse,
        headers: Mapping[str, str] = NO_HEADERS,
        messages: Sequence[bytes] = (),
    ) -> None:
        """Start the response, with messages that come before those of other tasks."""
        async with self._turns:
            await self._connect(response, headers, holds=bool(messages))
            for message in messages:
                await self._send(message)

    async def put(self, message: bytes) -> bool:
        """Send a message; returns whether the client gets it, perhaps after resuming."""
        async with self._turns:
            return not self.over and await self._send(message)

    def disconnect(self, response: SseResponse) -> None:
        """Record that the client of a connection is gone."""
        if self._response is response:
            response.cancel_write()
            self._response = None

    async def close(self, response: SseResponse) -> None:
        """Close a connection."""
        async with self._turns:  # another task may be closing the connection
            if self._response is response:
                await self._close_response()

    async def end(self, message: bytes = b"") -> None:
        """End the stream after the event that is being written, or after one more message."""
        async with self._turns:
            if not self.over:
                await self._send_last(message)
            self.over = True
            await self._close_response()
        self.stop()

    def stop(self) -> None:
        """Send nothing more. The task that holds a GET connection closes the connection.

        A client that does not read has `PARTING_SECONDS` for the end.
        """
        self.over = True
        if self._response is not None:
            self._response.end_within(PARTING_SECONDS)
        if self.held is not None:
            self.held.cancel()

    async def _connect(
        self, response: SseResponse, headers: Mapping[str, str] = NO_HEADERS, *, holds: bool
    ) -> None:
        """Start a response; if its client is gone, the stream has no connection."""
        self._response = response
        with suppress(ConnectionClosedError):
            await response.open(headers, holds=holds)

    async def _close_response(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await response.close()

    async def _send(self, message: bytes, before: bytes = b"") -> bool:
        return await self._write(message, before=before)

    async def _send_last(self, message: bytes) -> None:
        if message:
            await self._write(message, is_last=True)

    async def _write(
        self,
        message: bytes,
        event_id: str | None = None,
        retry: int | None = None,
        *,
        is_last: bool = False,
        before: bytes = b"",
    ) -> bool:
        """Write an event; `False` if there is no connection, or the connection broke."""
        response = self._response
        if response is None:
            return False
        try:
            await response.write_event(
                message, id=event_id, retry=retry, is_last=is_last, before=before
            )
        except ConnectionClosedError:
            return False
        return True


class Abandonable(Protocol):
    """Work for a client that may be gone."""

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, perhaps after resuming it."""
        ...

    async def fail(self, text: str) -> None:
        """Respond with an error, unless there is a response, and cancel the work."""
        ...


class SessionExchanges(OpenExchanges):
    """The exchanges in sessions, and the work that their clients abandoned, the first first."""

    def __init__(
        self, background: TaskScope, quotas: Quotas, interval: float, limits: Limits
    ) -> None:
        super().__init__(background, quotas, interval)
        self._limits = limits
        self.abandoned: OrderedDict[Abandonable, float] = OrderedDict()  # with deadlines
        self._cancelled = set[Abandonable]()
        self._abandonment = anyio.Event()

    def abandon(self, work: Abandonable) -> None:
        """Count work as abandoned: its client disconnected, or has its response already."""
        if work in self.abandoned:
            return
        self.quotas.in_flight -= 1
        self.abandoned[work] = self._deadline()
        most = self._limits.abandoned
        while len(self.abandoned) - len(self._cancelled) > most:
            if not self.cancel_first_abandoned("abandoned"):
                break
        self._abandonment.set()

    def end(self, work: Abandonable) -> None:
        """Stop counting work as abandoned; count it as in flight until its HTTP request ends."""
        if self.abandoned.pop(work, None) is not None:
            self.quotas.in_flight += 1
            self._cancelled.discard(work)

    def cancel_first_abandoned(self, limit: str) -> bool:
        """Cancel the work that was abandoned first and not resumed; `False` if there is none."""
        for work in self.abandoned:
            if work not in self._cancelled and not work.attended:
                self._cancel(work, limit)
                return True
        return False

    async def expire_abandoned(self) -> None:
        """Cancel work that has been abandoned for too long, until cancelled."""
        while True:
            while not self.abandoned:  # work may end in the turn in which it was abandoned
                self._abandonment = anyio.Event()
                await self._abandonment.wait()
            work, deadline = next(iter(self.abandoned.items()))
            if deadline > anyio.current_time():
                await anyio.sleep_until(deadline)
            elif work.attended:
                self._postpone(work)
            else:
                self._cancel(work, "abandoned_seconds")

    def _failing(self) -> list[Callable[[str], Awaitable[None]]]:
        works: dict[Any, None] = {**self.open, **dict.fromkeys(self.abandoned)}
        return [each.fail for each in works]

    def _deadline(self) -> float:
        return anyio.current_time() + self._limits.abandoned_seconds

    def _postpone(self, work: Abandonable) -> None:
        self.abandoned[work] = self._deadline()
        self.abandoned.move_to_end(work)

    def _cancel(self, work: Abandonable, limit: str) -> None:
        self._cancelled.add(work)
        self._postpone(work)  # retry if the handler ignores the cancellation
        text = f"the client was not there for its answer (Limits.{limit})"
        self.background.start_soon(log_failures, work.fail, text)


class HttpSession(MessageSender):
    """One client's session, over any number of HTTP requests; sends the messages of its peer.

    A session without lasting state (see `Session.lacks`) ends with its POST.

    Attributes:
        id: The session id: 256 random bits.
        session_id: Equal to `id`; in a session that lasts for one POST, the id that the client
            sent, or `None` if the server keeps no sessions.
        network: The client's address, or its network; see `request.network_of`.
        kept: Bytes kept for the client.
        exchanges: The requests without response, by id.
        open_exchanges: The exchanges of all sessions.
        listening: The streams opened by GET, the newest last.
        streams: The streams that have not ended.
        stores: Whether `store_changes` does anything.
        last_used: Time of last use, on the clock of the event loop.
        users: Number of the client's connections.
        on_leave: Called each time one of them ends.
        handling: Number of POSTs without requests being handled.
        over: Whether the session has ended.
        owner: The identity of the principal that opened the session, if it was authenticated.
    """

    stores: ClassVar[bool] = False

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        connection: Connection,
        network: str,
        exchanges: SessionExchanges,
        on_leave: Callable[[HttpSession], None],
    ) -> None:
        self.id = secrets.token_urlsafe(_ID_BYTES)
        self.peer = Peer(connection, self, service.application)
        self._lasts = not self._negotiated.lacks
        self.session_id = self.id if self._lasts else None
        self.queue = AnnouncementQueue(self.peer)
        self.exchanges: dict[RequestId, SessionExchange] = {}
        self.streams: dict[SessionStream, None] = {}
        self.last_used = anyio.current_time()
        self.users = 0
        self.handling = 0
        self.network = network
        self.kept = 0
        self.over = False
        self.owner: Identity | None = None
        self._initialize_size = 0  # bytes of the longest `initialize`
        self._subscriptions_size = self._pending_size = 0  # bytes of URIs, and of messages
        self.service = service
        self.settings = settings
        self.open_exchanges = exchanges
        self._memory = exchanges.quotas.memory
        self._background = exchanges.background
        self.on_leave = on_leave
        self.listening: list[SessionStream] = []
        self._pending: list[bytes] = []
        self._held = 0  # connections of streams opened by GET

    @property
    def revision(self) -> Revision:
        """The negotiated revision."""
        return self.peer.connection.revision

    @property
    def _negotiated(self) -> Session:
        session = self.peer.session
        assert session is not None
        return session

    @property
    def ready(self) -> bool:
        """Whether the client has confirmed the initialization, or used the session."""
        return self._negotiated.state is State.READY

    async def store_changes(self) -> None:
        """Store the changes of a message, if processes share sessions."""

    def open(self) -> None:
        """Subscribe the session to announcements of the server."""
        self.service.announcer.add(self.queue)

    def leave(self) -> None:
        """Stop counting a connection of the client."""
        self.users -= 1
        self.on_leave(self)

    async def reserve(self, size: int) -> bool:
        """Count bytes as kept; `False` if there is no room for them."""
        self.users += 1  # otherwise the session might be ended to make room for itself
        try:
            if not await self._memory.reserve(size):
                return False
        finally:
            self.users -= 1
        self.kept += size
        if self.over:
            self.release_memory(size)
        return not self.over

    async def reserve_message(self, size: int) -> int:
        """Count the bytes that are kept of a message; returns them.

        Raises:
            Refused: There is no room for them, or the session has ended.
        """
        if await self.reserve(size):
            return size
        if self.over:
            status = self.revision.facts.http.unknown_session
            raise Refused(http_response.unknown_session(status))
        raise Refused(http_response.over_limit("session_bytes"))

    async def reserve_initialize(self, size: int) -> None:
        """Count the bytes of the longest `initialize`.

        Raises:
            Refused: There is no room for them, or the session has ended.
        """
        more = size - self._initialize_size
        if more > 0:
            await self.reserve_message(more)
            self._initialize_size = size

    def release_memory(self, size: int) -> None:
        """Stop counting bytes as kept."""
        self.kept -= size
        self._memory.release(size)

    def count_subscriptions(self, reserved: int) -> None:
        """Count the URIs that the client subscribes to now, and release what was reserved."""
        if self.over:
            return
        size = subscriptions_size(self._negotiated.subscriptions)
        self.release_memory(reserved + self._subscriptions_size - size)
        self._subscriptions_size = size

    def new_stream(self, response: PostResponse | None = None) -> SessionStream:
        """A new stream, of a response or opened by GET."""
        stream = SessionStream()
        self.streams[stream] = None
        return stream

    async def open_stream(self, request: HttpRequest, response: SseResponse) -> SessionStream:
        """Open a stream by GET.

        Raises:
            Refused: The client asks for a stream that can't be had.
        """
        stream = self.new_stream()
        self.listening.append(stream)
        await stream.open(response)
        return stream

    def end_stream(self, stream: SessionStream) -> None:
        """Record that a stream has ended, or that the client that opened it by GET is gone."""
        self.streams.pop(stream, None)
        if stream in self.listening:
            self.listening.remove(stream)

    async def send_pending(self, stream: SessionStream) -> None:
        """Send the messages that wait for a stream."""
        while self._pending and stream.connected:
            message = self._pending.pop(0)
            if not await stream.put(message):
                self._pending.insert(0, message)
                return
            if not self.over:
                self._pending_size -= len(message)
                self.release_memory(len(message))

    def start_announcing(self) -> None:
        """Send announcements, now that a stream is held open for them."""
        self._held += 1
        self.queue.send_by(self._background.start_together)

    def stop_announcing(self) -> None:
        """Stop counting a stream that was held open; without streams, hold announcements."""
        self._held -= 1
        if not self._held:
            self.queue.hold()

    async def send(self, message: OutgoingMessage) -> None:
        """Send a message to the POST that it belongs to, or on a stream opened by GET."""
        related = message.related_request_id
        is_response = message.kind in RESPONSES
        exchange: SessionExchange | None = None
        if related is not None:
            exchange = (self.exchanges.pop if is_response else self.exchanges.get)(related, None)
        if exchange is not None:
            await exchange.writer().send(message)
        elif not is_response:
            await self.send_unrelated(message.data)

    async def send_unrelated(self, message: bytes) -> None:
        """Send a message that belongs to no request on the newest GET stream, or queue it.

        Raises:
            ConnectionClosedError: The session has ended.
            TransportError: Too many messages wait for a stream, or the session lasts for one POST.
        """
        if not self._lasts:
            raise TransportError(f"a stream of the client needs {self._negotiated.lacks}")
        if self.over:
            raise ConnectionClosedError(_ENDED)
        for stream in reversed(self.listening):
            if stream.connected and await stream.put(message):
                return
        limits = self.settings.limits
        if len(self._pending) >= limits.pending:
            raise TransportError("the client opens no stream for this (Limits.pending)")
        if self._pending_size + len(message) > limits.pending_bytes:
            raise TransportError("the client opens no stream for this (Limits.pending_bytes)")
        if not await self.reserve(len(message)):
            if self.over:
                raise ConnectionClosedError(_ENDED)
            raise TransportError("too much is kept for all clients (Limits.session_bytes)")
        self._pending_size += len(message)
        self._pending.append(message)

    async def close(self) -> None:
        """End the session: cancel its calls and end its streams, without waiting for them."""
        if self.over:
            return
        self.over = True
        self.service.announcer.remove(self.queue)
        self.peer.stop_serving()  # first, so that handlers waiting for the client do not fail
        await self.peer.close()
        await self._end_streams()
        self._pending.clear()
        self.release_memory(self.kept)

    async def _end_streams(self) -> None:
        for stream in self.streams:
            stream.stop()


class SessionResponse(PostResponse):
    """The response to one request in a session, and the messages that precede it.

    Counts a connection of the client, until the client has the response or is gone.

    Attributes:
        attended: Whether the client waits for a response and was not found to be disconnected.
        disconnected: Whether it was found to be disconnected before the response was sent.
        stream: The stream that carries the response, if it is one.
        unfinished: Whether a JSON-RPC response is missing.
    """

    def __init__(
        self, request: HttpRequest, receive: Receive, send: AsgiSend, session: HttpSession
    ) -> None:
        super().__init__(request, receive, send, session.settings)
        session.users += 1
        self._session = session
        self.stream: SessionStream | None = None
        self.attended = self.unfinished = True
        self.disconnected = False

    @property
    def connected(self) -> bool:
        """Whether a client reads the stream, over this or a later connection."""
        return self.stream is not None and self.stream.attended

    async def send(self, message: OutgoingMessage) -> None:
        """Send the response, or a message that precedes it.

        No message can precede JSON: requests to the client are sent on another stream, other
        messages are dropped.

        Raises:
            TransportError: The session has no stream for a request.
        """
        is_response = message.kind in RESPONSES
        if self.done or (self._json_only and not self._streaming and not is_response):
            if message.kind == "request":
                await self._session.send_unrelated(message.data)
        elif not is_response and self.stream is not None:
            await self.stream.put(message.data)
        elif not is_response:
            await self._open((message.data,))
        elif self._streaming or self.events_only:
            self.unfinished = False  # before other tasks send
            if self.stream is None:
                await self._open()
            await self._end(message.data)
        else:
            self.unfinished, self.done = False, True
            await HttpResponse(200, message.data, self.headers).send(self._send)

    async def open_stream(self, *, holds: bool = False) -> None:
        """Start the stream, regardless of the settings; see `PostResponse`."""
        await self._open()

    async def _open(self, messages: Sequence[bytes] = ()) -> None:
        self._streaming = True
        self.stream = self._session.new_stream(self)
        await self.stream.open(self.sse, self.headers, messages)

    def disconnect(self) -> None:
        """Called when the client was found to be gone."""
        if self.stream is not None:
            self.stream.disconnect(self.sse)
        self.disconnected = self.attended and self.unfinished
        self.leave()

    def leave(self) -> None:
        """Record that the client disconnected, or has all responses."""
        if self.attended:
            self.attended = False
            self._session.leave()

    async def finish(self, instead: HttpResponse | None = None) -> None:
        """End the response, by `instead` if nothing was sent yet."""
        self.stop()
        if instead is not None and self.stream is None:
            await self.respond(instead)
        elif self.unfinished:
            await self._end()

    def stop(self) -> None:
        """Count the client as gone, and stop waiting for its disconnect."""
        self.leave()
        if self._watching is not None:
            self._watching.cancel()

    async def _end(self, last: bytes = b"") -> None:
        """End the response, with a last event if it is a stream."""
        if self.stream is not None:
            self.done = True
            try:
                await self.stream.end(last)
            finally:  # afterwards, since another worker would take a missing stream for lost
                self._session.end_stream(self.stream)
        elif self._request.accepts_events and not self.done:
            # The request was cancelled. A JSON body has to be a response; a stream may be empty.
            self.done = True
            with suppress(ConnectionClosedError):
                await self.sse.open(self.headers)
                await self.sse.close()
        else:
            accepted = self._session.revision.facts.http.accepted
            await self.respond(HttpResponse(accepted, headers=self.headers))


class SessionExchange(Exchange[HttpSession, SessionResponse]):
    """A request in a session, its owner; `kept` bytes are reserved for changed subscriptions."""

    kept: int = 0

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, perhaps after resuming it."""
        return self.response is not None and self.response.connected

    async def serve_on_trio(self) -> None:
        """See `Exchange`; in a task of the lifespan, which goes on if the POST is cancelled."""
        with anyio.CancelScope() as scope:
            try:
                await self._owner.open_exchanges.background.outlive(scope, self.serve)
            except anyio.get_cancelled_exc_class():
                self._leave_post()
                raise

    def new_response(self) -> SessionResponse:
        """See `Exchange`."""
        session = self._owner
        response = SessionResponse(self._request, self._receive, self._send, session)
        session.users -= 1  # the response counts the client
        return response

    def begin(self) -> PendingRequests:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        peer = session.peer
        if self.response is None:
            session.users += 1
        session.exchanges[identifier] = self
        peer.scopes[identifier] = self
        exchanges = session.open_exchanges
        exchanges.open[self] = None
        if exchanges.added is not None:
            exchanges.wake()
        return peer.callers

    async def stream(self, context: RequestContext) -> Any:
        """See `Exchange`."""
        await self.writer().start()
        return await self._owner.service.application.handle(context)

    def respond(self, result: Any) -> OutgoingMessage | None:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        if session.peer.scopes.get(identifier) is not self:
            return None  # and its id may be that of another request
        (message,) = session.peer.connection.send(SendResponse(identifier, result)) or (None,)
        session.exchanges.pop(identifier, None)
        return message

    def respond_failure(self, failure: ProtocolError) -> OutgoingMessage | None:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        if session.peer.scopes.get(identifier) is not self:
            return None
        session.exchanges.pop(identifier, None)
        (message,) = session.peer.error_response(self.event, failure) or (None,)
        return message

    async def reply(self, message: OutgoingMessage | None) -> None:
        """See `Exchange`."""
        if self._owner.stores:
            await self._owner.store_changes()
        if message is not None:
            await (self.response or self.writer()).send(message)
        else:
            await self._finish()

    async def cancelled(self) -> None:
        """See `Exchange`."""
        if self.cancel_called:  # the client cancelled the request
            await self._finish()
        else:  # the server ends
            await self.fail(SHUTTING_DOWN)

    async def host_cancelled(self, task: asyncio.Future[None]) -> None:
        """See `Exchange`; the request goes on."""
        self._leave_post()

    def take_place(self) -> None:
        """Take a place among the messages in flight, besides that of the POST."""
        self.places += 1
        self._owner.open_exchanges.quotas.in_flight += 1

    def _leave_post(self) -> None:
        """Go on without the POST, which the host cancelled: its client is gone."""
        if self in self._owner.open_exchanges.open:
            self.take_place()
            self._owner.open_exchanges.abandon(self)

    async def watch(self) -> None:
        """See `Exchange`. If the client disconnects, the whole POST is abandoned."""
        response = self.writer()
        await response.watch()
        if response.disconnected:
            for exchange in list(self._owner.exchanges.values()):
                if exchange.response is response:
                    self._owner.open_exchanges.abandon(exchange)

    async def fail(self, text: str) -> None:
        """See `Exchange`; responds for up to `PARTING_SECONDS`."""
        session, identifier = self._owner, self.event.id
        if session.exchanges.get(identifier) is not self:
            return
        error = InternalError(text, data=INTERRUPTED)
        for message in session.peer.connection.send(SendError(identifier, error)):
            with (
                anyio.move_on_after(PARTING_SECONDS, shield=True) as waiting,
                suppress(Exception),  # exceptions of the ASGI server
            ):
                await session.send(message)
            if waiting.cancelled_caught and self.response is not None:
                self.response.sse.abort()
            await session.peer.handle(CancelReceived(identifier, text))

    async def end(self) -> None:
        """See `Exchange`."""
        session, identifier, exchanges = self._owner, self.event.id, self._owner.open_exchanges
        scopes = session.peer.scopes
        if session.exchanges.get(identifier) is self:
            del session.exchanges[identifier]
        if scopes.get(identifier) is self:
            del scopes[identifier]
        del exchanges.open[self]
        if exchanges.abandoned:
            exchanges.end(self)
        exchanges.quotas.in_flight -= self.places
        if self.response is None:
            session.users -= 1
            session.on_leave(session)
        else:
            self.response.stop()
        if self.kept:
            session.count_subscriptions(self.kept)

    async def _finish(self) -> None:
        """End the response of a request that was cancelled, or whose session has ended."""
        with anyio.CancelScope(shield=True):
            over = self._owner.over
            await self.writer().finish(http_response.session_ended() if over else None)
