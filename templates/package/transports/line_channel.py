"""Messages as lines over a source and a sink of bytes: the framing of stdio.

`Source` and `Sink` are the common interface of standard streams, pipes, sockets and threads.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    EndOfStream,
    Lock,
    move_on_after,
)
from anyio.abc import ByteStream

from ..channel import Channel, OutgoingMessage
from ..errors import ConnectionClosedError, EndOfChannel
from ..framing.line_framing import MESSAGE_LIMIT, LineReader, TooLong, frame_line

CHUNK = 64 * 1024
"""Bytes per read: the usual capacity of a pipe."""

FLUSH_SECONDS = 0.5
"""Seconds that closing waits for a message that is being written."""


class Source(Protocol):
    """A source of bytes. One task reads."""

    async def read(self) -> bytes:
        """Wait for some bytes; empty at the end, and once interrupted."""
        ...

    def interrupt(self) -> None:
        """Wake the task that waits in `read`; it gets empty bytes."""
        ...

    async def close(self) -> None:
        """Release the source; idempotent."""
        ...


class Sink(Protocol):
    """A sink of bytes. Several tasks write; the bytes of one call stay together."""

    async def write(self, data: bytes, *, more: bool = False) -> None:
        """Write all of it, or, if cancelled, all of it or nothing.

        Args:
            data: The bytes.
            more: Whether other messages are about to be written, which may then leave together.

        Raises:
            ConnectionClosedError: The other end no longer reads.
        """
        ...

    async def close(self) -> None:
        """Finish what is being written, within a time limit, and release the sink; idempotent."""
        ...


class LineChannel(Channel):
    """A channel whose messages are lines.

    Args:
        limit: Longest message accepted, in bytes.

    Source: basic/transports (stdio).
    """

    def __init__(self, source: Source, sink: Sink, limit: int = MESSAGE_LIMIT) -> None:
        self._source = source
        self._sink = sink
        self._reader = LineReader(limit)
        self._ready: deque[bytes | TooLong] = deque()
        self._ended = False

    async def receive(self) -> bytes:
        """Wait for the next line that is not blank, without its end.

        Raises:
            EndOfChannel: The other end was closed, or this one.
            FrameError: A line exceeded the limit and was dropped.
        """
        while not self._ready:
            if self._ended:
                raise EndOfChannel("the other end closed the stream")
            if data := await self._source.read():
                self._ready += self._reader.feed(data)
            else:
                self._ended = True
                self._ready += self._reader.end()
        message = self._ready.popleft()
        if isinstance(message, TooLong):
            raise message.error()
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Write one message as one line, whole.

        Raises:
            ConnectionClosedError: The other end no longer reads.
            LocalProtocolError: The message has a raw newline.
        """
        # Requests that came together are answered together.
        await self._sink.write(frame_line(message.data), more=bool(self._ready))

    async def end_sending(self) -> None:
        """Close the sink only: the peer sees the end of the stream, and can still respond."""
        await self._sink.close()

    def end_receiving(self) -> None:
        """Let `receive` raise `EndOfChannel` from now on; unread messages are dropped."""
        self._ended = True
        self._ready.clear()
        self._source.interrupt()

    async def drain(self) -> None:
        """Read and drop everything until the end, so that the peer does not block."""
        while await self._source.read():
            pass

    async def close(self) -> None:
        """Close both ends."""
        self.end_receiving()
        await self._sink.close()
        await self._source.close()


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
