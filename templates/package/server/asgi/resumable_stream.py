"""Streams of server-sent events that outlive the connections that carry them, and their sessions.

An event is stored first, if there is a store, and then written to the connection, if there is one.
A client whose connection broke, or was closed by the server, resumes the stream with the id of the
last event it received.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import anyio

from ...channel import RequestId
from ...foreign_text import safe_repr
from ...framing.sse import encode_event
from ...protocol.connection import Connection
from ..serving import Service
from . import http_response
from .event_store import EventStore, MemoryEventStore, StoredEvent, StoredEvents
from .exchange import PostResponse
from .http_response import Refused, SseResponse
from .http_session import HttpSession, SessionExchanges, SessionStream
from .request import HttpRequest
from .settings import HttpSettings, check_seconds

logger = logging.getLogger(__name__)

_NO_HEADERS: Mapping[str, str] = {}
_WRITE_SECONDS = 0.5  # for a write to the previous connection, once the client resumes
_DISCONNECTED_STREAMS = 4  # disconnected GET streams that the client may resume
_DISCARDED_SHARE = 8  # 1/8 of the streams that may be resumed is discarded by one task


class ResumableStream(SessionStream):
    """One stream. All connections carry the events in the same order.

    Args:
        session: Id of the session.
        name: The name, unique over all sessions.
        store: Stores the events; `None` for a stream that can't be resumed.
        polling: Whether the stream starts with an event that has an id and no data.
        retry: Seconds that a client is told to wait before it reconnects.
        requests_of: Returns the ids of the requests without response of a stream.

    Attributes:
        name: As passed.
        requests_of: As passed.
        followed_until: Time on the clock of the event loop; until then, a client counts as reading
            the stream at another process.
    """

    def __init__(
        self,
        session: str,
        name: str,
        store: EventStore | None,
        polling: bool,
        retry: float,
        requests_of: Callable[[ResumableStream], Sequence[RequestId]],
    ) -> None:
        super().__init__()
        self.name = name
        self.requests_of = requests_of
        self.followed_until = 0.0
        self._session = session
        self._store = store
        self._polling = polling and store is not None
        self._retry = max(1, round(retry * 1000))
        self._last_id: str | None = None

    @property
    def attended(self) -> bool:
        """Whether a client reads the stream, at this or another process."""
        return self.connected or self.followed_until > anyio.current_time()

    async def open(
        self,
        response: SseResponse,
        headers: Mapping[str, str] = _NO_HEADERS,
        messages: Sequence[bytes] = (),
        stored: Sequence[StoredEvent] = (),
    ) -> None:
        """Start the response; in some revisions with an event that has an id only.

        Args:
            response: The connection.
            headers: Further header fields of the response.
            messages: Sent before the messages of other tasks, the first with that event.
            stored: Stored events of a stream that this stream continues.
        """
        async with self._turns:
            await self._connect(response, headers, holds=self._polling or bool(messages))
            if stored:
                await self._replay(stored)
            first = b""
            if self._polling:
                event_id = await self._store_event(b"")
                if messages:
                    first = encode_event(b"", id=event_id, retry=self._retry)
                elif not self.over:
                    await self._write(b"", event_id, self._retry)
            for message in messages:
                await self._send(message, first)
                first = b""

    async def resume(self, response: SseResponse, event_id: str) -> bool:
        """Continue on another connection, after an event.

        Returns:
            `False`, and nothing was written, if the event is unknown, or the stream has ended
            without later events.
        """
        await self._end_write()
        async with self._turns:
            stored = None
            if self._store is not None:
                stored = await self._store.after(self._session, event_id)
            if stored is None or (self.over and not any(each.message for each in stored.events)):
                return False
            before, self._response = self._response, response
            if before is not None:
                await before.close()
            await self._connect(response, holds=False)
            await self._replay(stored.events)
            if self.over:
                await self._close_response()
            return True

    async def close_connection(self) -> None:
        """Close the connection, not the stream, so that the client resumes.

        No-op in revisions whose clients would not resume.
        """
        if self._polling:
            async with self._turns:
                if not self.over:
                    await self._write(b"", self._last_id, self._retry)
                    await self._close_response()

    async def drop_connection(self) -> None:
        """Close the connection, not the stream: the client has another connection."""
        await self._end_write()
        async with self._turns:
            await self._close_response()

    async def _end_write(self) -> None:
        """Wait for the current write, but cancel it if the client does not read."""
        with anyio.move_on_after(_WRITE_SECONDS) as waiting:
            async with self._turns:
                pass
        if waiting.cancelled_caught and self._response is not None:
            self._response.cancel_write()

    async def _replay(self, events: Sequence[StoredEvent]) -> None:
        for event in events:
            if event.message:
                await self._write(event.message, event.id)

    async def _send(self, message: bytes, before: bytes = b"") -> bool:
        event_id = await self._store_event(message)
        if self.over:
            return False
        return await self._write(message, event_id, before=before) or event_id is not None

    async def _send_last(self, message: bytes) -> None:
        event_id = await self._store_event(message, is_last=True)
        if message and not self.over:
            await self._write(message, event_id, is_last=True)

    async def _store_event(self, message: bytes, *, is_last: bool = False) -> str | None:
        """Store an event and return its id; `None` if the store failed.

        The stream is stopped if another process has ended it in the store.
        """
        store, session = self._store, self._session
        if store is None:
            return None
        try:
            if is_last:
                event_id = await store.finish(session, self.name, message)
            else:
                event_id = await store.add(session, self.name, message, self.requests_of(self))
        except Exception as error:
            logger.error("the event store failed, so an event can't be had again: %r", error)
            return None
        if event_id is None:
            self.stop()
            await self._close_response()
        else:
            self._last_id = event_id
        return event_id


class ResumeOptions(TypedDict, total=False):
    """The attributes of `ResumeSettings`, as keyword arguments."""

    events: EventStore | None
    retry: float


@dataclass(frozen=True)
class ResumeSettings(HttpSettings):
    """The settings of streams that clients resume.

    Attributes:
        events: Stores the events of streams; `None` for streams that can't be resumed.
        retry: Seconds that a client is told to wait before it resumes a stream whose connection
            the server closed (from 2025-11-25 on).
    """

    events: EventStore | None = field(default_factory=MemoryEventStore)
    retry: float = 1.0

    def __post_init__(self) -> None:
        check_seconds("retry", self.retry)
        super().__post_init__()

    @property
    def session_type(self) -> type[ResumableSession]:
        """See `HttpSettings`."""
        return ResumableSession


class ResumableSession(HttpSession):
    """A session whose client may resume streams; see `HttpSession`.

    Attributes:
        named: The streams that have not ended, by name.
        ended: Names of streams that have ended and may be resumed.
    """

    def __init__(
        self,
        service: Service,
        settings: ResumeSettings,
        connection: Connection,
        network: str,
        exchanges: SessionExchanges,
        on_leave: Callable[[HttpSession], None],
    ) -> None:
        super().__init__(service, settings, connection, network, exchanges, on_leave)
        self.named: dict[str, ResumableStream] = {}
        self.ended: list[str] = []
        is_kept = self.revision.facts.http.resumable and self._lasts
        self._store = settings.events if is_kept else None
        self._retry = settings.retry
        self._prefix = secrets.token_hex(8)
        self._stream_count = 0

    def new_stream(self, response: PostResponse | None = None) -> ResumableStream:
        """See `HttpSession`; with a unique name."""
        self._stream_count += 1
        stream = self._make_stream(self._stream_name(self._stream_count, response))
        self.streams[stream] = None
        self.named[stream.name] = stream
        return stream

    async def open_stream(self, request: HttpRequest, response: SseResponse) -> SessionStream:
        """Open a stream by GET, or resume the stream of the event that the request names.

        Raises:
            Refused: No further event can come.
        """
        name = self.revision.facts.headers.last_event_id
        last_event_id = request.field(name)
        if last_event_id is None:
            return await super().open_stream(request, response)
        stream = None
        try:
            if self._store is not None:
                stored = await self._store.after(self.id, last_event_id)
                if stored is not None:
                    stream = await self._continue(stored, last_event_id, response)
        except Exception as error:
            logger.error("the event store failed: %r", error)
            text = f"{name}: what came after that event can't be had now"
            raise Refused(http_response.unavailable(text)) from None
        if stream is None:
            text = f"{name}: {safe_repr(last_event_id)} is no event that more can come after"
            raise Refused(http_response.refusal(self.revision.facts.http.rejected, text))
        return stream

    async def _continue(
        self, stored: StoredEvents, last_event_id: str, response: SseResponse
    ) -> ResumableStream | None:
        """Resume a stream on a connection; `None` if no further event can come."""
        stream = self.named.get(stored.stream)
        if stream is None:
            stream = self._make_stream(stored.stream)
            stream.over = True
        if not await stream.resume(response, last_event_id):
            return None
        if stream in self.listening:
            self.listening.remove(stream)
            self.listening.append(stream)
        return stream

    def end_stream(self, stream: SessionStream) -> None:
        """See `HttpSession`; the events of the stream remain available for a while."""
        assert isinstance(stream, ResumableStream)
        if self._store is not None and stream in self.listening and not (stream.over or self.over):
            if len(self._lost_streams()) > _DISCONNECTED_STREAMS:
                self._background.start_soon(self._discard_old_streams)
            return
        super().end_stream(stream)
        if self.named.pop(stream.name, None) is not None and self._store is not None:
            self.ended.append(stream.name)
            if len(self.ended) > self.settings.limits.per_session:
                self._background.start_soon(self._discard_old_streams)

    async def close_sse_stream(self, identifier: RequestId) -> bool:
        """Close the connection of the POST of a request; the client resumes the stream."""
        exchange = self.exchanges.get(identifier)
        if exchange is None:
            return False
        response = exchange.writer()
        await response.start_early()
        if isinstance(response.stream, ResumableStream):
            await response.stream.close_connection()
        return True

    def _lost_streams(self) -> list[SessionStream]:
        return [stream for stream in self.listening if not stream.connected]

    async def _discard_old_streams(self) -> None:
        """Discard streams that the client is unlikely to resume."""
        for stream in self._lost_streams()[:-_DISCONNECTED_STREAMS]:
            assert isinstance(stream, ResumableStream)
            super().end_stream(stream)
            if self.named.pop(stream.name, None) is not None:
                await self._discard_events(stream.name)
        limit = self.settings.limits.per_session
        if len(self.ended) > limit:
            while len(self.ended) > limit - limit // _DISCARDED_SHARE:
                await self._discard_events(self.ended.pop(0))

    def _stream_name(self, number: int, response: PostResponse | None) -> str:
        return f"{self._prefix}-{number}"

    def _make_stream(self, name: str) -> ResumableStream:
        polling = self.revision.facts.http.polling
        return ResumableStream(self.id, name, self._store, polling, self._retry, self._requests_of)

    def _requests_of(self, stream: ResumableStream) -> Sequence[RequestId]:
        """The ids of the requests whose responses are due on a stream."""
        return [
            key
            for key, each in self.exchanges.items()
            if each.response is not None and each.response.stream is stream
        ]

    async def _end_streams(self) -> None:
        """Stop all streams, and discard their events so that none can be resumed."""
        await super()._end_streams()
        self.named.clear()
        await self._discard_events()

    async def _discard_events(self, name: str | None = None) -> None:
        """Discard the events of a stream, or of all streams."""
        if self._store is not None:
            try:
                await self._store.discard(self.id, name)
            except Exception as error:
                logger.error("the event store failed, so a stream is not forgotten: %r", error)
