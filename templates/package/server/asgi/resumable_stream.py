"""Streams of server-sent events that outlive the connections that carry them.

An event is stored first, if there is a store, and then written to the connection, if there is one.
A client whose connection broke, or was closed by the server, resumes the stream with the id of the
last event it received.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import anyio

from ...channel import RequestId
from ...errors import ConnectionClosedError
from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.task_scope import Turns
from .event_store import EventStore, StoredEvent
from .sse_response import SseResponse

logger = logging.getLogger(__name__)

_NO_HEADERS: Mapping[str, str] = {}
_WRITE_SECONDS = 0.5  # for a write to the previous connection, once the client resumes


class ResumableStream:
    """One stream. Many tasks may send; all connections carry the events in the same order.

    Args:
        session: Id of the session.
        name: The name, unique over all sessions.
        store: Stores the events; `None` for a stream that can't be resumed.
        polling: Whether the stream starts with an event that has an id and no data.
        retry: Seconds that a client is told to wait before it reconnects.
        requests: Returns the ids of the requests without response.

    Attributes:
        name: As passed.
        requests: As passed.
        over: Whether nothing more is sent.
        held: The scope that keeps a GET connection open.
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
        requests: Callable[[], Sequence[RequestId]],
    ) -> None:
        self.name = name
        self.over = False
        self.held: anyio.CancelScope | None = None
        self.followed_until = 0.0
        self._session = session
        self.requests = requests
        self._store = store
        self._polling = polling and store is not None
        self._retry = max(1, round(retry * 1000))
        self._response: SseResponse | None = None
        self._was_connected = False
        self._last_id: str | None = None
        self._turns = Turns()

    @property
    def connected(self) -> bool:
        """Whether there is an open connection."""
        return self._response is not None and self._response.is_open

    @property
    def lost(self) -> bool:
        """Whether the stream had a connection, and has none now."""
        return self._was_connected and not self.connected

    @property
    def attended(self) -> bool:
        """Whether a client reads the stream, at this or another process."""
        return self.connected or self.followed_until > anyio.current_time()

    @property
    def resumable(self) -> bool:
        """Whether a client may resume the stream."""
        return self._store is not None

    async def open(
        self,
        response: SseResponse,
        headers: Mapping[str, str] = _NO_HEADERS,
        messages: Sequence[bytes] = (),
        before: Sequence[StoredEvent] = (),
    ) -> None:
        """Start the response; in some revisions with an event that has an id only.

        Args:
            response: The connection.
            headers: Further header fields of the response.
            messages: Sent before the messages of other tasks.
            before: Stored events of a stream that this stream continues.
        """
        async with self._turns:
            await self._connect(response, headers, holds=self._polling or bool(messages))
            if before:
                await self._replay(before)
            if self._polling:
                await self._send(b"", self._retry)
            for message in messages:
                await self._send(message)

    async def put(self, message: bytes) -> bool:
        """Store a message, and write it if there is a connection.

        Returns:
            Whether the message was written, or was stored for resuming.
        """
        async with self._turns:
            return not self.over and await self._send(message)

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
                await _close(before)
            await self._connect(response)
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

    def disconnect(self, response: SseResponse) -> None:
        """Record that the client of a connection is gone."""
        response.abort()
        if self._response is response:
            self._cancel_write()
            self._response = None

    async def close(self, response: SseResponse) -> None:
        """Close a connection, not the stream."""
        async with self._turns:  # another task may be closing the connection
            if self._response is response:
                await self._close_response()

    async def end(self, message: bytes = b"") -> None:
        """End the stream after the event that is being written, or after one more message."""
        async with self._turns:
            if not self.over:
                if message:
                    await self._send(message, is_last=True)
                else:
                    await self._store_event(b"", is_last=True)
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

    async def _end_write(self) -> None:
        """Wait for the current write, but cancel it if the client does not read."""
        with anyio.move_on_after(_WRITE_SECONDS) as waiting:
            async with self._turns:
                pass
        if waiting.cancelled_caught:
            self._cancel_write()

    def _cancel_write(self) -> None:
        if self._response is not None:
            self._response.cancel_write()

    async def _connect(
        self,
        response: SseResponse,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        holds: bool = False,
    ) -> None:
        """Start a response; if its client is gone, the stream has no connection."""
        self._response = response
        self._was_connected = True
        with suppress(ConnectionClosedError):
            await response.open(headers, holds=holds)

    async def _close_response(self) -> None:
        response, self._response = self._response, None
        if response is not None and response.is_open:
            await _close(response)

    async def _replay(self, events: Sequence[StoredEvent]) -> None:
        for event in events:
            if event.message:
                await self._write(event.message, event.id)

    async def _send(
        self, message: bytes, retry: int | None = None, *, is_last: bool = False
    ) -> bool:
        event_id = await self._store_event(message, is_last=is_last)
        if self.over:
            return False
        written = await self._write(message, event_id, retry, is_last=is_last)
        return written or event_id is not None

    async def _store_event(self, message: bytes, *, is_last: bool) -> str | None:
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
                event_id = await store.add(session, self.name, message, self.requests())
        except Exception as error:
            logger.error("the event store failed, so an event can't be had again: %r", error)
            return None
        if event_id is None:
            self.stop()
            await self._close_response()
        else:
            self._last_id = event_id
        return event_id

    async def _write(
        self,
        message: bytes,
        event_id: str | None,
        retry: int | None = None,
        *,
        is_last: bool = False,
    ) -> bool:
        """Write an event; `False` if there is no connection, or the connection broke."""
        response = self._response
        if response is None:
            return False
        try:
            await response.write_event(message, id=event_id, retry=retry, is_last=is_last)
        except ConnectionClosedError:
            self.disconnect(response)
            return False
        return True


async def _close(response: SseResponse) -> None:
    with suppress(ConnectionClosedError):
        await response.close()
