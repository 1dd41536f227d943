"""Streams of a session: each outlives the connections that carry it.

An event is stored first, if there is a store, and then written to the connection, if there is one.
A client whose connection broke, or was closed by the server, resumes the stream with the id of the
last event it received.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio

from ...errors import ConnectionClosedError
from .event_store import EventStore
from .sse_response import SseResponse

logger = logging.getLogger(__name__)

_NO_HEADERS: Mapping[str, str] = {}
_WRITE_SECONDS = 0.5  # for a write to the previous connection, once the client resumes


class ResumableStream:
    """One stream. Any number of tasks may send; all connections see the events in one order.

    Args:
        name: The name, unique over all sessions.
        store: Stores the events; `None` for a stream that can't be resumed.
        polling: Whether the stream starts with an event that has an id and no data.
        retry: Seconds that a client is told to wait before it reconnects.

    Attributes:
        name: As passed.
        over: Whether nothing more is sent.
        held: The scope that keeps a GET connection open.
    """

    def __init__(self, name: str, store: EventStore | None, polling: bool, retry: float) -> None:
        self.name = name
        self.over = False
        self.held: anyio.CancelScope | None = None
        self._store = store
        self._polling = polling and store is not None
        self._retry = max(1, round(retry * 1000))
        self._response: SseResponse | None = None
        self._writing: anyio.CancelScope | None = None
        self._last_id: str | None = None
        self._lock = anyio.Lock()

    @property
    def connected(self) -> bool:
        """Whether there is an open connection."""
        return self._response is not None and self._response.is_open

    @property
    def resumable(self) -> bool:
        """Whether a client may resume the stream."""
        return self._store is not None

    async def open(
        self,
        response: SseResponse,
        headers: Mapping[str, str] = _NO_HEADERS,
        messages: Sequence[bytes] = (),
    ) -> None:
        """Start the response; in some revisions with an event that only has an id.

        Args:
            response: The connection.
            headers: Further header fields of the response.
            messages: Sent before the messages of other tasks.
        """
        async with self._lock:
            self._response = response
            try:
                await response.open(headers)
            except ConnectionClosedError:
                self._response = None
            if self._polling:
                await self._send(b"", self._retry)
            for message in messages:
                await self._send(message)

    async def put(self, message: bytes) -> bool:
        """Store a message, and write it if there is a connection.

        Returns:
            Whether it was written, or can be had by resuming.
        """
        async with self._lock:
            return not self.over and await self._send(message)

    async def resume(self, response: SseResponse, event_id: str) -> bool:
        """Continue on another connection, after an event.

        Returns:
            `False`, and nothing was written, if the event is unknown, or the stream has ended and
            there is no later event.
        """
        await self._end_write()
        async with self._lock:
            known = await self._store.after(event_id) if self._store is not None else None
            if known is None or (self.over and not known[1]):
                return False
            before, self._response = self._response, response
            if before is not None:
                await _close(before)
            try:
                await response.open()
            except ConnectionClosedError:
                self._response = None
            for event in known[1]:
                if event.message:
                    await self._write(event.message, event.id)
            if self.over:
                await self._close_response()
            return True

    async def close_connection(self) -> None:
        """Close the connection, not the stream, so that the client resumes.

        No-op in revisions whose clients would not.
        """
        if self._polling:
            async with self._lock:
                if not self.over:
                    await self._write(b"", self._last_id, self._retry)
                    await self._close_response()

    def disconnect(self, response: SseResponse) -> None:
        """Record that the client of a connection is gone."""
        response.abort()
        if self._response is response:
            self._response = None
            self._cancel_write()

    async def close(self, response: SseResponse) -> None:
        """Close a connection, not the stream."""
        async with self._lock:  # waits for another task that closes it
            if self._response is response:
                await self._close_response()

    async def end(self) -> None:
        """End the stream, after the event that is being written."""
        async with self._lock:
            self.over = True
            await self._close_response()
        self.stop()

    def stop(self) -> None:
        """Send nothing more. The task that holds a GET connection then closes it."""
        self.over = True
        if self.held is not None:
            self.held.cancel()

    async def _end_write(self) -> None:
        """Wait for the current write, but cancel it if the client does not read."""
        with anyio.move_on_after(_WRITE_SECONDS) as waiting:
            async with self._lock:
                return
        if waiting.cancelled_caught:
            self._cancel_write()

    def _cancel_write(self) -> None:
        if self._writing is not None:
            self._writing.cancel()

    async def _close_response(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await _close(response)

    async def _send(self, message: bytes, retry: int | None = None) -> bool:
        event_id = await self._store_event(message)
        written = await self._write(message, event_id, retry)
        return written or event_id is not None

    async def _store_event(self, message: bytes) -> str | None:
        if self._store is None:
            return None
        try:
            self._last_id = await self._store.add(self.name, message)
        except Exception as error:
            logger.error("the event store failed, so an event can't be had again: %r", error)
            return None
        return self._last_id

    async def _write(self, message: bytes, event_id: str | None, retry: int | None = None) -> bool:
        """Write an event; `False` if there is no connection, or not any more."""
        response = self._response
        if response is None:
            return False
        try:
            with anyio.CancelScope() as self._writing:
                await response.event(message, id=event_id, retry=retry)
                return True
        except ConnectionClosedError:
            pass
        finally:
            self._writing = None
        self.disconnect(response)
        return False


async def _close(response: SseResponse) -> None:
    with suppress(ConnectionClosedError):
        await response.close()
