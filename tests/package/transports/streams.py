"""A channel over a two-way byte stream of anyio's: a custom transport for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    EndOfStream,
    Event,
    Lock,
    create_task_group,
    move_on_after,
)
from anyio.abc import ByteStream, Listener

from mcpgen_runtime import ConnectionClosedError
from mcpgen_runtime.channel import MESSAGE_LIMIT
from mcpgen_runtime.transports.line_channel import FLUSH_SECONDS, LineChannel


class _StreamEnds:
    """Both ends of a stream; closed when no task uses the stream, as some streams require."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._closed = False
        self._reading = self._writing = CancelScope()
        self._read_lock = Lock()
        self._write_lock = Lock()

    async def read(self) -> bytes:
        async with self._read_lock:
            with CancelScope() as self._reading:
                try:
                    return b"" if self._closed else await self._stream.receive()
                except (EndOfStream, ClosedResourceError, BrokenResourceError):
                    pass
        return b""

    def interrupt(self) -> None:
        self._reading.cancel()

    async def write(self, data: bytes, *, more: bool = False) -> None:
        async with self._write_lock:
            with CancelScope() as self._writing:
                try:
                    if not self._closed:
                        await self._stream.send(data)
                        return
                except (ClosedResourceError, BrokenResourceError):
                    pass
        raise ConnectionClosedError("the stream is closed; nothing more can be sent")

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.interrupt()
        with move_on_after(FLUSH_SECONDS, shield=True):
            async with self._write_lock:
                pass
        self._writing.cancel()
        with CancelScope(shield=True):
            async with self._read_lock, self._write_lock:
                await self._stream.aclose()


def stream_channel(stream: ByteStream, limit: int = MESSAGE_LIMIT) -> LineChannel:
    """A channel over a two-way byte stream of anyio's, such as a TCP or Unix domain socket.

    A send that is cancelled half way leaves the stream unusable, as in anyio.

    Args:
        limit: Longest message accepted, in bytes.

    Source: basic/transports (custom transports).
    """
    ends = _StreamEnds(stream)
    return LineChannel(ends, ends, limit)


@asynccontextmanager
async def joined(
    listener: Listener[Any], connect: Callable[[], Awaitable[ByteStream]]
) -> AsyncIterator[tuple[LineChannel, LineChannel]]:
    """Channels over a connection to a listener: of the client, and of the listener."""
    accepted: list[ByteStream] = []
    arrived = Event()

    async def keep(stream: ByteStream) -> None:
        accepted.append(stream)
        arrived.set()

    async with listener, create_task_group() as tasks:
        tasks.start_soon(listener.serve, keep)
        client = await connect()
        await arrived.wait()
        tasks.cancel_scope.cancel()
    async with client, accepted[0]:
        yield stream_channel(client), stream_channel(accepted[0])
