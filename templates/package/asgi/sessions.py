"""One client's session over HTTP: where each message of the server goes, and what can be had again.

Source: basic/transports#streamable-http (to 2025-11-25).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

import anyio

from ..channel import RequestId
from ..core import jsonrpc
from ..core.connection import Connection
from ..errors import ConnectionClosedError, EndOfChannel, TransportError
from ..peer import Peer
from ..server import Service, Session
from .answers import SessionAnswer
from .settings import HttpSettings
from .streams import MessageStream

logger = logging.getLogger(__name__)

_ID_BYTES = 32
_ABANDONED = 4  # streams without connection that still carry what belongs to no request


class HttpSession:
    """One client's session, over however many requests.

    It is the channel of its peer: an answer goes to the POST that asked, the rest to the stream
    that the client opened for it. Nothing goes to two.

    Args:
        service: What is served.
        settings: How.
        connection: The protocol, with the handshake already made.
        touched: Called whenever a client ceases to use it.

    Attributes:
        id: Its id: 256 random bits.
        peer: The protocol at work.
        news: What the server announces.
        answers: The POST that waits for each request being served.
        streams: The streams that are not over, by name.
        last_used: When it was last in use, on the clock of `anyio.current_time`.
        users: How many connections of its client use it.
        over: Whether it has ended.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        connection: Connection,
        touched: Callable[[HttpSession], None],
    ) -> None:
        session = connection.session
        assert session is not None
        self.id = secrets.token_urlsafe(_ID_BYTES)
        self.revision = session.revision
        self.peer = Peer(connection, self, service.application)
        self.news = Session(self.peer)
        self.answers: dict[RequestId, SessionAnswer] = {}
        self.streams: dict[str, MessageStream] = {}
        self.last_used = anyio.current_time()
        self.users = 0
        self.over = False
        self._service = service
        self._settings = settings
        self._touched = touched
        http = self.revision.facts.http
        self._store = settings.events if http.resumable else None
        self._listening: list[MessageStream] = []
        self._finished: list[str] = []
        self._pending: list[bytes] = []
        self._announcing: anyio.Lock | None = None
        self._prefix = secrets.token_hex(8)
        self._named = 0

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

    def new_stream(self) -> MessageStream:
        """A stream of this session, under a name that no other has."""
        self._named += 1
        stream = self._stream(f"{self._prefix}-{self._named}")
        self.streams[stream.name] = stream
        return stream

    async def found(self, missed: str) -> MessageStream | None:
        """The stream of this session that an event belongs to, over or not."""
        known = await self._store.after(missed) if self._store is not None else None
        if known is None or not known[0].startswith(f"{self._prefix}-"):
            return None
        stream = self.streams.get(known[0])
        if stream is None:
            stream = self._stream(known[0])
            stream.over = True
        return stream

    def ended(self, stream: MessageStream) -> None:
        """Take note that a stream is over; what was said on it can still be had, for a while."""
        if self.streams.pop(stream.name, None) is not None and stream.resumable:
            self._finished.append(stream.name)

    def listen(self, stream: MessageStream) -> None:
        """Send on a stream what belongs to no request, from the moment that it is connected."""
        if stream in self._listening:
            self._listening.remove(stream)
        self._listening.append(stream)

    async def tell_pending(self, stream: MessageStream) -> None:
        """Send on a stream what waited for one."""
        while self._pending and stream.connected:
            message = self._pending.pop(0)
            if not await stream.put(message):
                self._pending.insert(0, message)

    def listens(self, stream: MessageStream) -> bool:
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

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        """Send a message to the POST it belongs to, or on a stream of its own."""
        answers = jsonrpc.is_answer(message)
        answer = None if about is None else self.answers.get(about)
        if answers and about is not None:
            self.answers.pop(about, None)
        if answer is not None:
            await answer.send(message, about)
        elif not answers:
            await self.tell(message)

    async def release(self, about: RequestId) -> None:
        """Close the connection of the POST that a request came by; the client comes back."""
        answer = self.answers.get(about)
        if answer is not None:
            await answer.release()

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
        if len(self._pending) >= self._settings.limits.pending:
            raise TransportError("the client opens no stream for this (Limits.pending)")
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

    def _stream(self, name: str) -> MessageStream:
        polling = self.revision.facts.http.polling
        return MessageStream(name, self._store, polling, self._settings.retry)

    async def _drop(self, stream: MessageStream) -> None:
        if self.streams.pop(stream.name, None) is not None:
            await self._discard(stream.name)

    async def _discard(self, name: str) -> None:
        if self._store is not None:
            try:
                await self._store.discard(name)
            except Exception as error:
                logger.error("the event store failed, so a stream is not forgotten: %r", error)
