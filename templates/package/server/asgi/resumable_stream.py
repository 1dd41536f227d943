"""Streams of a session: each outlives the connections that carry it.

What is said on a stream is kept first, if there is a store, and then written to whoever is
connected. A client whose connection broke, or was closed by the server, comes back with the id of
the last event it saw.

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

_NO_FIELDS: Mapping[str, str] = {}
_PATIENCE = 0.5  # seconds that a write to a reader who is no longer wanted may still take


class ResumableStream:
    """One stream. Any number of tasks may speak on it; what they say comes in one order.

    Args:
        name: Names it, over all sessions.
        store: Keeps what is said; `None` for a stream that can't be taken up again.
        polling: Whether it opens with an event that has an id and no data.
        retry: Seconds a client is told to wait before it comes back.

    Attributes:
        name: As given.
        over: Whether nothing more will be said.
        held: What keeps a connection open for it that is no answer to a POST.
    """

    def __init__(self, name: str, store: EventStore | None, polling: bool, retry: float) -> None:
        self.name = name
        self.over = False
        self.held: anyio.CancelScope | None = None
        self._store = store
        self._polling = polling and store is not None
        self._retry = max(1, round(retry * 1000))
        self._wire: SseResponse | None = None
        self._writing: anyio.CancelScope | None = None
        self._last: str | None = None
        self._lock = anyio.Lock()

    @property
    def connected(self) -> bool:
        """Whether somebody is there to read."""
        return self._wire is not None and self._wire.is_open

    @property
    def resumable(self) -> bool:
        """Whether a client may come back to it."""
        return self._store is not None

    async def open(
        self,
        wire: SseResponse,
        fields: Mapping[str, str] = _NO_FIELDS,
        messages: Sequence[bytes] = (),
    ) -> None:
        """Begin the response, in some revisions with an id for the way back.

        Args:
            wire: The connection.
            fields: Header fields of the response.
            messages: What to say before anybody else does.
        """
        async with self._lock:
            self._wire = wire
            try:
                await wire.open(fields)
            except ConnectionClosedError:
                self._wire = None
            if self._polling:
                await self._say(b"", self._retry)
            for message in messages:
                await self._say(message)

    async def put(self, message: bytes) -> bool:
        """Say something: keep it, and write it if somebody is connected.

        Returns:
            Whether it was written, or can be had by coming back.
        """
        async with self._lock:
            return not self.over and await self._say(message)

    async def resume(self, wire: SseResponse, missed: str) -> bool:
        """Go on over another connection, with what came after an event.

        Returns:
            Whether it does: nothing was sent if the event is not known any more, or if the stream
            is over and nothing came after it.
        """
        await self._free()
        async with self._lock:
            found = await self._store.after(missed) if self._store is not None else None
            if found is None or (self.over and not found[1]):
                return False
            before, self._wire = self._wire, wire
            if before is not None:
                await _close(before)
            try:
                await wire.open()
            except ConnectionClosedError:
                self._wire = None
            for event in found[1]:
                if event.message:
                    await self._write(event.message, event.id)
            if self.over:
                await self._hang_up()
            return True

    async def release(self) -> None:
        """Close the connection, not the stream: the client is to come back for the rest.

        Does nothing where a client would not.
        """
        if self._polling:
            async with self._lock:
                if not self.over:
                    await self._write(b"", self._last, self._retry)
                    await self._hang_up()

    def leave(self, wire: SseResponse) -> None:
        """Take note that the client of a connection is gone."""
        wire.cut()
        if self._wire is wire:
            self._wire = None
            self._stop_writing()

    async def close(self, wire: SseResponse) -> None:
        """Close a connection, not the stream."""
        async with self._lock:  # it may be being closed already: that is waited for
            if self._wire is wire:
                await self._hang_up()

    async def end(self) -> None:
        """Nothing more will be said, once what is being said is."""
        async with self._lock:
            self.over = True
            await self._hang_up()
        self.stop()

    def stop(self) -> None:
        """Let nothing more be said. Whoever has a connection open for it then closes that."""
        self.over = True
        if self.held is not None:
            self.held.cancel()

    async def _free(self) -> None:
        """Wait for what is being written, but not for one who does not read."""
        with anyio.move_on_after(_PATIENCE) as waiting:
            async with self._lock:
                return
        if waiting.cancelled_caught:
            self._stop_writing()

    def _stop_writing(self) -> None:
        """Write no further to one who does not read."""
        if self._writing is not None:
            self._writing.cancel()

    async def _hang_up(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await _close(wire)

    async def _say(self, message: bytes, retry: int | None = None) -> bool:
        identifier = await self._keep(message)
        written = await self._write(message, identifier, retry)
        return written or identifier is not None

    async def _keep(self, message: bytes) -> str | None:
        if self._store is None:
            return None
        try:
            self._last = await self._store.add(self.name, message)
        except Exception as error:
            logger.error("the event store failed, so an event can't be had again: %r", error)
            return None
        return self._last

    async def _write(
        self, message: bytes, identifier: str | None, retry: int | None = None
    ) -> bool:
        """Write an event to whoever is connected; `False` if that is nobody, or not any more."""
        wire = self._wire
        if wire is None:
            return False
        try:
            with anyio.CancelScope() as self._writing:
                await wire.event(message, id=identifier, retry=retry)
                return True
        except ConnectionClosedError:
            pass
        finally:
            self._writing = None
        self.leave(wire)
        return False


async def _close(wire: SseResponse) -> None:
    with suppress(ConnectionClosedError):
        await wire.close()
