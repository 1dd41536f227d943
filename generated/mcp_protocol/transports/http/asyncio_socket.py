"""A bare TCP connection on asyncio's own terms; see `sockets`."""

from __future__ import annotations

import asyncio

_HIGH = 256 * 1024
"""Bytes that may lie unread before the other side is made to wait."""


class AsyncioSocket(asyncio.Protocol):
    """A connection; see `Socket`."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._paused = False
        self._ended = False
        self._failure: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def is_quiet(self) -> bool:
        """See `Socket`."""
        return not self._received and not self._ended

    async def send(self, data: bytes) -> None:
        """See `Socket`."""
        if self._ended or self._transport is None:
            raise self._failure or ConnectionError("the connection is closed")
        self._transport.write(data)
        if self._room is not None:
            await self._room
            if self._failure is not None:
                raise self._failure

    async def receive(self) -> bytes:
        """See `Socket`."""
        if not self._received and not self._ended:
            self._news = asyncio.get_running_loop().create_future()
            try:
                await self._news
            finally:
                self._news = None
        if self._received:
            data = bytes(self._received)
            self._received.clear()
            if self._paused and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            return data
        if self._failure is not None:
            raise self._failure
        return b""

    async def close(self) -> None:
        """See `Socket`."""
        if self._transport is not None:
            self._transport.abort()
            await asyncio.sleep(0)  # when the loop closes it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        self._received += data
        if len(self._received) > _HIGH and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Called by the loop, which then closes."""
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._ended = True
        self._failure = exc
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        """Called by the loop."""
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Called by the loop."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


async def connect_asyncio(host: str, port: int) -> AsyncioSocket:
    """Connect to an address; if the host has several, they are tried one after the other.

    Raises:
        OSError: It can't be reached.
    """
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(AsyncioSocket, host, port)
    return made
