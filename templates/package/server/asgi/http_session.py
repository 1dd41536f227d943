"""Sessions over HTTP: one client's session, and the registry of all sessions.

A client that closes its connection cancels nothing. Its call continues, but does not count as in
flight any more, and is cancelled unless the client resumes the stream in time.

A response is sent to the POST of its request, other messages to a stream that the client opened by
GET. No message is sent twice.

When a session has to be ended to make room, likely parts of a flood are ended first: sessions whose
client did nothing after `initialize`, then sessions of the address that has most. So a client that
keeps opening sessions mostly ends its own sessions.

Source: basic/transports#session-management, #streamable-http (to 2025-11-25).
"""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import anyio
from msgspec import Struct

from ...channel import MessageSender, OutgoingMessage, RequestId
from ...errors import ConnectionClosedError, TransportError
from ...facts import Revision
from ...protocol.connection import Connection
from ...protocol.lifecycle import Session, State
from ...runtime.peer import Peer
from ...runtime.request_context import Identity
from ...runtime.task_scope import TaskScope, loop_clock
from ..serving import AnnouncementQueue, Service
from . import http_response
from .exchange import Exchange, Failable, OpenExchanges, log_failures
from .http_response import Refused
from .quotas import MemoryQuota, Quotas, subscriptions_size
from .request import HttpRequest
from .settings import HttpSettings, Limits
from .sse_response import RESPONSES, PostResponse, SessionStream, SseResponse

logger = logging.getLogger(__name__)

_ID_BYTES = 32
_ENDED = "the session has ended"
_UNCONFIRMED_SHARE = 100  # unconfirmed sessions end first above 1/100 of the limit


class Abandonable(Failable, Protocol):
    """Work for a client that may be gone."""

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, perhaps after resuming it."""
        ...


class _Abandoned(Struct):
    deadline: float
    cancelled: bool = False


class SessionExchanges(OpenExchanges):
    """The exchanges in sessions, and other work for their clients that clients abandoned.

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

    def _all(self) -> Sequence[Failable]:
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
        self.background.start_soon(log_failures, work.fail, text)


class HttpSession(MessageSender):
    """One client's session, over any number of HTTP requests; sends the messages of its peer.

    A session without lasting state (see `Session.lacks`) ends with its POST.

    Args:
        service: The service of the server.
        settings: The HTTP settings.
        connection: The initialized protocol connection.
        network: The client's address, or its network; see `request.network_of`.
        exchanges: The open exchanges of all sessions.
        on_leave: Called each time a connection of the client ends.

    Attributes:
        id: The session id: 256 random bits.
        session_id: Equal to `id`; in a session that lasts for one POST, the id that the client
            sent, or `None` if the server keeps no sessions.
        kept: Bytes kept for the client.
        peer: The running protocol.
        queue: Announcements of the server.
        exchanges: The requests without response, by id.
        listening: The streams opened by GET, the newest last.
        open_exchanges: The open exchanges of all sessions.
        stores: Whether `store_changes` does anything.
        streams: The streams that have not ended.
        last_used: Time of last use, on the clock of the event loop.
        users: Number of the client's connections.
        handling: Number of POSTs without requests being handled.
        over: Whether the session has ended.
        owner: The identity of the principal that opened the session; `None` if the application is
            not protected.
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
        self.exchanges: dict[RequestId, Exchange[Any, Any]] = {}
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
        self._on_leave = on_leave
        self.listening: list[SessionStream] = []
        self._pending: list[bytes] = []
        self._held = 0  # connections of streams opened by GET

    @property
    def revision(self) -> Revision:
        """The negotiated revision; it may change when the client initializes again."""
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
        self._on_leave(self)

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
        """Count the URIs that the client subscribes to now.

        Args:
            reserved: Bytes reserved for the change; released.
        """
        if self.over:
            return
        size = subscriptions_size(self._negotiated.subscriptions)
        self.release_memory(reserved + self._subscriptions_size - size)
        self._subscriptions_size = size

    def new_stream(self, response: PostResponse | None = None) -> SessionStream:
        """A new stream.

        Args:
            response: The response that the stream belongs to; `None` for a stream opened by GET.
        """
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
        if self.listening and stream in self.listening:
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
        exchange: Exchange[Any, Any] | None = None
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
        self.streams.clear()


_Sessions: TypeAlias = OrderedDict[str, HttpSession]


class SessionRegistry:
    """The sessions of one application, ordered by last use; the longest unused is first.

    Args:
        limits: The limits of number and idle time.
        memory: Counts the bytes that the sessions keep.

    Attributes:
        by_id: The sessions.
    """

    def __init__(self, limits: Limits, memory: MemoryQuota) -> None:
        self._limits = limits
        self._now = loop_clock()
        self.by_id: _Sessions = OrderedDict()
        self._unconfirmed: _Sessions = OrderedDict()
        self._by_network: defaultdict[str, _Sessions] = defaultdict(OrderedDict)
        self._added = anyio.Event()
        self._closed = False
        memory.end_idle_session = self.end_largest

    def __len__(self) -> int:
        """Number of sessions."""
        return len(self.by_id)

    def get(self, identifier: str) -> HttpSession | None:
        """A session by its id."""
        return self.by_id.get(identifier)

    def all(self) -> Sequence[HttpSession]:
        """All sessions."""
        return tuple(self.by_id.values())

    def touch(self, session: HttpSession) -> None:
        """Record that a session was used just now."""
        session.last_used = self._now()
        if session.id in self.by_id:
            self.by_id.move_to_end(session.id)
            if session.id not in self._unconfirmed:
                self._by_network[session.network].move_to_end(session.id)
            elif session.ready:
                del self._unconfirmed[session.id]
                self._by_network[session.network][session.id] = session
            else:
                self._unconfirmed.move_to_end(session.id)

    async def add(self, session: HttpSession) -> None:
        """Add a session.

        Raises:
            Refused: There is no room for it, or the server ends.
        """
        if self._closed:
            raise Refused(http_response.ending())
        evicted = None
        if len(self.by_id) >= self._limits.sessions:
            evicted = self._session_to_evict()
            if evicted is None:
                raise Refused(http_response.over_limit("sessions"))
        self.by_id[session.id] = self._unconfirmed[session.id] = session
        session.open()
        self._added.set()
        if evicted is not None:
            await self.end(evicted)

    async def end_largest(self, size: int) -> None:
        """End the idle session that keeps most bytes, of those with more than `size` bytes."""
        idle = [each for each in self.by_id.values() if not each.users and each.kept > size]
        if idle:
            await self.end(max(idle, key=lambda each: (each.id in self._unconfirmed, each.kept)))

    async def end(self, session: HttpSession) -> None:
        """End a session. Failures are logged."""
        is_registered = self.by_id.pop(session.id, None) is not None
        if is_registered and self._unconfirmed.pop(session.id, None) is None:
            of_network = self._by_network[session.network]
            del of_network[session.id]
            if not of_network:
                del self._by_network[session.network]
        try:
            with anyio.CancelScope(shield=True):
                await session.close()
        except Exception:
            logger.exception("a session did not end well")

    async def expire(self) -> None:
        """End sessions that have been idle for too long, until cancelled."""
        seconds = self._limits.idle
        while seconds is not None:
            if not self.by_id:
                self._added = anyio.Event()
                await self._added.wait()
            await anyio.sleep_until(await self._end_idle(seconds))

    async def close_idle(self) -> None:
        """End all sessions without connections, and accept no new ones."""
        self._closed = True
        for session in list(self.by_id.values()):
            if not session.users:
                await self.end(session)

    async def close(self) -> None:
        """End all sessions."""
        while self.by_id:
            await self.end(next(iter(self.by_id.values())))

    async def _end_idle(self, seconds: float) -> float:
        """End sessions that have been idle for too long; returns the time of the next check."""
        now = self._now()
        for session in list(self.by_id.values()):
            if session.users:
                continue
            if session.last_used + seconds > now:
                return session.last_used + seconds
            await self.end(session)
        return now + seconds

    def _session_to_evict(self) -> HttpSession | None:
        """The idle session to end for a new session; `None` if no session is idle."""
        if len(self._unconfirmed) > self._limits.sessions // _UNCONFIRMED_SHARE:
            unconfirmed = _first_idle(self._unconfirmed)
            if unconfirmed is not None:
                return unconfirmed
        most = max(self._by_network.values(), key=len, default=self.by_id)
        return _first_idle(most) or _first_idle(self.by_id)


def _first_idle(sessions: _Sessions) -> HttpSession | None:
    return next((session for session in sessions.values() if not session.users), None)
