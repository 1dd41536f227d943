"""One client's session over HTTP: where each message of the server goes, and what can be had again.

Source: basic/transports#streamable-http (to 2025-11-25).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection

import anyio

from ...channel import Channel, OutgoingMessage, RequestId
from ...errors import ConnectionClosedError, EndOfChannel, TransportError
from ...facts import Revision
from ...protocol.connection import Connection
from ...protocol.lifecycle import Session as Agreed
from ...protocol.lifecycle import State
from ...runtime.peer import Peer
from ..serving import Service, Session
from .load import MemoryBudget
from .post_response import SessionResponse
from .resumable_stream import ResumableStream
from .settings import HttpSettings

logger = logging.getLogger(__name__)

_ID_BYTES = 32
_URI = 100  # bytes that a text takes besides its characters, and its place in a set
_ABANDONED = 4  # streams without connection that still carry what belongs to no request


class HttpSession(Channel):
    """One client's session, over however many requests.

    It is the channel of its peer: an answer goes to the POST that asked, the rest to the stream
    that the client opened for it. Nothing goes to two.

    Args:
        service: What is served.
        settings: How.
        connection: The protocol, with the handshake already made.
        address: What stands for its client's address.
        budget: Where the bytes that it keeps are counted.
        touched: Called whenever a client ceases to use it.

    Attributes:
        id: Its id: 256 random bits.
        address: As given.
        kept: Bytes that it keeps of what its client said, and for it.
        peer: The protocol at work.
        news: What the server announces.
        answers: The POST that waits for each request being served.
        streams: The streams that are not over, by name.
        last_used: When it was last in use, on the clock of `anyio.current_time`.
        users: How many connections of its client use it.
        notes: How many POSTs that ask for no answer are being worked on.
        over: Whether it has ended.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        connection: Connection,
        address: str,
        budget: MemoryBudget,
        touched: Callable[[HttpSession], None],
    ) -> None:
        self.id = secrets.token_urlsafe(_ID_BYTES)
        self.peer = Peer(connection, self, service.application)
        self.news = Session(self.peer)
        self.answers: dict[RequestId, SessionResponse] = {}
        self.streams: dict[str, ResumableStream] = {}
        self.last_used = anyio.current_time()
        self.users = 0
        self.notes = 0
        self.address = address
        self.kept = 0
        self.over = False
        self._opened_with = 0  # bytes of the longest `initialize`
        self._followed = self._pending_size = 0  # bytes of URIs, and of messages
        self._budget = budget
        self._service = service
        self._settings = settings
        self._touched = touched
        http = self.revision.facts.http
        self._store = settings.events if http.resumable else None
        self._listening: list[ResumableStream] = []
        self._finished: list[str] = []
        self._pending: list[bytes] = []
        self._announcing: anyio.Lock | None = None
        self._prefix = secrets.token_hex(8)
        self._named = 0

    @property
    def revision(self) -> Revision:
        """What was agreed; another one if the client initializes the session again."""
        return self.peer.connection.revision

    @property
    def _agreed(self) -> Agreed:
        session = self.peer.session
        assert session is not None
        return session

    def open(self) -> None:
        """Begin to hear of what the server announces."""
        self._service.sessions.add(self.news)

    def enter(self) -> None:
        """A connection of the client begins to use it."""
        self.users += 1

    def leave(self) -> None:
        """A connection of the client has what it came for, or is gone."""
        self.users -= 1
        self.last_used = anyio.current_time()
        self._touched(self)

    @property
    def ready(self) -> bool:
        """Whether its client has confirmed the handshake, or made use of it."""
        return self._agreed.state is State.READY

    async def keep(self, size: int) -> bool:
        """Count bytes that it keeps; `False` if there is no room for them."""
        self.users += 1  # so that it is not ended to make room for itself
        try:
            if not await self._budget.reserve(size):
                return False
        finally:
            self.users -= 1
        self.kept += size
        if self.over:
            self.forget(size)
        return not self.over

    async def keep_initialize(self, size: int) -> bool:
        """Count the bytes of an `initialize`, of which the longest counts; `False` for no room."""
        more = size - self._opened_with
        if more > 0:
            if not await self.keep(more):
                return False
            self._opened_with = size
        return True

    def forget(self, size: int) -> None:
        """Count bytes no more."""
        self.kept -= size
        self._budget.release(size)

    def count_followed(self, taken: int) -> None:
        """Count the URIs that its client follows now, instead of before.

        Args:
            taken: Bytes that `keep` counted for a change of that.
        """
        if self.over:
            return
        followed = followed_size(self._agreed.subscriptions)
        self.forget(taken + self._followed - followed)
        self._followed = followed

    def new_stream(self) -> ResumableStream:
        """A stream of this session, under a name that no other has."""
        self._named += 1
        stream = self._stream(f"{self._prefix}-{self._named}")
        self.streams[stream.name] = stream
        return stream

    async def found(self, missed: str) -> ResumableStream | None:
        """The stream of this session that an event belongs to, over or not."""
        known = await self._store.after(missed) if self._store is not None else None
        if known is None or not known[0].startswith(f"{self._prefix}-"):
            return None
        stream = self.streams.get(known[0])
        if stream is None:
            stream = self._stream(known[0])
            stream.over = True
        return stream

    def ended(self, stream: ResumableStream) -> None:
        """Take note that a stream is over; what was said on it can still be had, for a while."""
        if self.streams.pop(stream.name, None) is not None and stream.resumable:
            self._finished.append(stream.name)

    def listen(self, stream: ResumableStream) -> None:
        """Send on a stream what belongs to no request, from the moment that it is connected."""
        if stream in self._listening:
            self._listening.remove(stream)
        self._listening.append(stream)

    async def tell_pending(self, stream: ResumableStream) -> None:
        """Send on a stream what waited for one."""
        while self._pending and stream.connected:
            message = self._pending.pop(0)
            if not await stream.put(message):
                self._pending.insert(0, message)
            elif not self.over:
                self._pending_size -= len(message)
                self.forget(len(message))

    def listens(self, stream: ResumableStream) -> bool:
        """Whether a stream carries what belongs to no request."""
        return stream in self._listening

    async def announce(self) -> None:
        """Send what the server announces, until cancelled; one task at a time does."""
        if self._announcing is None:
            self._announcing = anyio.Lock()
        async with self._announcing:
            await self.news.send_announced()

    async def receive(self) -> bytes:
        """Nothing comes this way: each POST hands in its own message."""
        raise EndOfChannel("messages come by POST")

    async def send(self, message: OutgoingMessage) -> None:
        """Send a message to the POST it belongs to, or on a stream of its own."""
        identifier = message.related_request_id
        answer = None if identifier is None else self.answers.get(identifier)
        if message.is_response and identifier is not None:
            self.answers.pop(identifier, None)
        if answer is not None:
            await answer.send(message)
        elif not message.is_response:
            await self.tell(message.data)

    async def close_sse_stream(self, identifier: RequestId) -> bool:
        """Close the connection of the POST that a request came by; the client comes back."""
        answer = self.answers.get(identifier)
        if answer is not None:
            await answer.release()
        return answer is not None

    async def tell(self, message: bytes) -> None:
        """Send what belongs to no request on the stream that was opened last; or keep it.

        Raises:
            ConnectionClosedError: The session has ended.
            TransportError: Too much waits for a stream already.
        """
        if self.over:
            raise ConnectionClosedError("the session has ended")
        for stream in reversed(self._listening):
            if stream.connected and await stream.put(message):
                return
        limits = self._settings.limits
        if len(self._pending) >= limits.pending:
            raise TransportError("the client opens no stream for this (Limits.pending)")
        if self._pending_size + len(message) > limits.pending_bytes:
            raise TransportError("the client opens no stream for this (Limits.pending_bytes)")
        if not await self.keep(len(message)):
            raise TransportError("too much is kept for all clients (Limits.session_bytes)")
        self._pending_size += len(message)
        self._pending.append(message)

    async def tidy(self) -> None:
        """Forget streams that no client is likely to come back to."""
        gone = [stream for stream in self._listening if not stream.connected]
        kept = [stream for stream in gone if stream.resumable][-_ABANDONED:]
        for stream in gone:
            if stream not in kept:
                self._listening.remove(stream)
                await self._drop(stream)
        while len(self._finished) > self._settings.limits.per_session:
            await self._discard(self._finished.pop(0))

    async def close(self) -> None:
        """End it: calls are cancelled, whoever else waits for the client fails, streams end.

        Does not wait for any of it.
        """
        if self.over:
            return
        self.over = True
        self._service.sessions.remove(self.news)
        self.peer.stop_serving()  # first: a call that waits for the client is no failure of its own
        await self.peer.close()
        for stream in list(self.streams.values()):
            stream.stop()
            await self._drop(stream)
        for name in self._finished:
            await self._discard(name)
        self._listening.clear()
        self._pending.clear()
        self.forget(self.kept)

    def _stream(self, name: str) -> ResumableStream:
        polling = self.revision.facts.http.polling
        return ResumableStream(name, self._store, polling, self._settings.retry)

    async def _drop(self, stream: ResumableStream) -> None:
        if self.streams.pop(stream.name, None) is not None:
            await self._discard(stream.name)

    async def _discard(self, name: str) -> None:
        if self._store is not None:
            try:
                await self._store.discard(name)
            except Exception as error:
                logger.error("the event store failed, so a stream is not forgotten: %r", error)


def followed_size(uris: Collection[str]) -> int:
    """Bytes that the URIs take which a client follows, about."""
    return sum(map(len, uris)) + _URI * len(uris)
