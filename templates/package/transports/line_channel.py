"""Messages as lines over a source and a sink of bytes, and file descriptors as both.

`Source` and `Sink` are the common interface of standard streams, pipes, sockets and threads. The
event loop waits for descriptors that it can poll (pipes, sockets, terminals on POSIX); threads
serve all others (regular files, the null device, anything on Windows). Each end with threads has a
daemon thread, because a read that never returns must not keep the process alive. The thread starts
with the first read or write, and closes the descriptor when it ends.

A descriptor that can be polled is read only when it is ready, so it can stay blocking. The
non-blocking flag would affect all processes that share the open file.
"""

from __future__ import annotations

import os
import selectors
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Protocol, TypeGuard

from anyio import (
    ClosedResourceError,
    Event,
    Lock,
    from_thread,
    move_on_after,
    notify_closing,
    wait_readable,
    wait_writable,
)
from anyio.lowlevel import EventLoopToken, current_token

from ..channel import MESSAGE_LIMIT, Channel, OutgoingMessage, TooLong
from ..errors import ConnectionClosedError, EndOfChannel
from ..framing.line_framing import LineReader, frame_line

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task

CHUNK = 64 * 1024
"""Bytes per read: the usual capacity of a pipe."""

FLUSH_SECONDS = 0.5
"""Seconds that closing waits for a message that is being written."""


class Source(Protocol):
    """A source of bytes. One task reads."""

    async def read(self) -> bytes:
        """Wait for bytes; empty at the end of the stream, and after an interruption."""
        ...

    def interrupt(self) -> None:
        """Wake the task that waits in `read`, which then returns empty bytes."""
        ...

    async def close(self) -> None:
        """Release the source; idempotent."""
        ...


class Sink(Protocol):
    """A sink of bytes. Several tasks write; the bytes of one call stay together."""

    async def write(self, data: bytes, *, more: bool) -> None:
        """Write all bytes; if cancelled, all or none.

        Args:
            data: The bytes.
            more: Whether other messages are about to be written, which may be written together.

        Raises:
            ConnectionClosedError: The other end no longer reads.
        """
        ...

    async def close(self) -> None:
        """Complete a message that is being written, within a time limit, and release the sink."""
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
        """Wait for the next line that is not blank, without its line ending.

        Raises:
            EndOfChannel: The other end or this end was closed.
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
        """Write one complete message as one line.

        Raises:
            ConnectionClosedError: The other end no longer reads.
            LocalProtocolError: The message has a raw newline.
        """
        # Responses to requests that arrived together are written together.
        await self._sink.write(frame_line(message.data), more=bool(self._ready))

    async def end_sending(self) -> None:
        """Close the sink only: the peer sees the end of the stream, and can still respond."""
        await self._sink.close()

    def end_receiving(self) -> None:
        """Make `receive` raise `EndOfChannel` from now on; unread messages are dropped."""
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


_CLOSED = -1  # in place of a descriptor
_BATCH = 2048  # most bytes of a batch; with larger batches, both ends would alternately wait


def open_source(fd: int) -> AsyncioSource | PolledSource | ThreadedSource:
    """A source for the running event loop; it owns the descriptor."""
    if not _can_be_polled(fd):
        return ThreadedSource(fd)
    loop = current_token().native_token
    return AsyncioSource(fd, loop) if _is_asyncio(loop) else PolledSource(fd)


def open_sink(fd: int) -> PolledSink | ThreadedSink:
    """A sink that owns the descriptor; a descriptor that can be polled becomes non-blocking."""
    if not _can_be_polled(fd):
        return ThreadedSink(fd)
    loop = current_token().native_token
    return AsyncioSink(fd, loop) if _is_asyncio(loop) else PolledSink(fd)


def _is_asyncio(loop: object) -> TypeGuard[AbstractEventLoop]:
    return hasattr(loop, "add_reader")


def _can_be_polled(fd: int) -> bool:
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            selector.select(0)
    except (OSError, ValueError):
        return False
    return True


def _read_some(fd: int) -> bytes | None:
    """Read the available bytes; empty at the end of the stream; `None` if there are none yet."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


if sys.platform == "win32":

    def unread_bytes(_fd: int) -> int:
        """Return zero: the number is unknown on this system."""
        return 0

    def _set_blocking(_fd: int, _blocking: bool) -> bool:
        return True  # no descriptor can be polled on Windows

else:
    import fcntl
    import termios

    def unread_bytes(fd: int) -> int:
        """The number of unread bytes in a pipe; zero if unknown."""
        try:
            return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        except OSError:
            return 0

    def _set_blocking(fd: int, blocking: bool) -> bool:
        """Set the blocking mode and return the previous mode."""
        before = os.get_blocking(fd)
        os.set_blocking(fd, blocking)
        return before


class PolledSource:
    """A descriptor that an event loop can wait for."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waits = True

    async def read(self) -> bytes:
        """Some bytes; empty at the end, when interrupted and when the other end broke."""
        while self._fd != _CLOSED and self._waits:
            try:
                await wait_readable(self._fd)
            except (ClosedResourceError, OSError):
                break
            chunk = _read_some(self._fd)
            if chunk is not None:
                return chunk
        return b"" if self._fd == _CLOSED or self._waits else _read_some(self._fd) or b""

    def interrupt(self) -> None:
        """Wake a waiting reader."""
        if self._fd != _CLOSED:
            notify_closing(self._fd)

    def stop_waiting(self) -> None:
        """Stop waiting: available bytes can still be read, then the source ends."""
        self._waits = False
        _set_blocking(self._fd, False)
        self.interrupt()

    async def close(self) -> None:
        """Close the descriptor."""
        self.interrupt()
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)


class AsyncioSource(PolledSource):
    """A descriptor that an asyncio loop watches while a task reads.

    Registering for each read, as `PolledSource` does, costs two more system calls per message.
    """

    def __init__(self, fd: int, loop: AbstractEventLoop) -> None:
        super().__init__(fd)
        self._loop = loop
        self._watched = False
        self._waiter: Future[None] | None = None
        self._chunk: bytes | None = None

    async def read(self) -> bytes:
        """Some bytes; empty at the end, when interrupted and when the other end broke."""
        if self._chunk is None and self._waits:
            if not self._watched:
                self._loop.add_reader(self._fd, self._take)
                self._watched = True
            self._waiter = self._loop.create_future()
            await self._waiter
        # Not stored in the waiter: a reader that is cancelled now must not lose bytes.
        chunk, self._chunk = self._chunk, None
        if chunk is not None or self._waits or self._fd == _CLOSED:
            return chunk or b""
        return _read_some(self._fd) or b""

    def interrupt(self) -> None:
        """Wake a waiting reader."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def stop_waiting(self) -> None:
        """Stop waiting: available bytes can still be read, then the source ends."""
        self._unwatch()
        super().stop_waiting()

    async def close(self) -> None:
        """Close the descriptor."""
        self._unwatch()
        self._waits = False
        await super().close()

    def _take(self) -> None:
        if self._waiter is None or self._waiter.done():
            # No task reads. The bytes stay in the pipe, which slows the peer down.
            self._unwatch()
        else:
            self._chunk = _read_some(self._fd)
            if self._chunk is not None:
                self._waiter.set_result(None)
            if self._chunk == b"":
                self._unwatch()

    def _unwatch(self) -> None:
        if self._watched:
            self._loop.remove_reader(self._fd)
        self._watched = False


class PolledSink:
    """A descriptor that an event loop can wait for, written without blocking.

    A message whose writing has begun is completed even if its task is cancelled: the next writer,
    or closing, writes the rest first.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._was_blocking = _set_blocking(fd, False)
        self._rest = memoryview(b"")
        self._lock = Lock(fast_acquire=True)

    async def write(self, data: bytes, *, more: bool) -> None:
        """Write all bytes; wait while the other end is slow.

        Args:
            data: The bytes.
            more: Not used: each call writes at once.

        Raises:
            ConnectionClosedError: The other end no longer reads, or this end was closed.
        """
        # Most messages are written by one call; only the others need the lock.
        if not self._rest and not self._lock.locked():
            sent = self._write_some(data)
            if sent == len(data):
                return
            self._rest = memoryview(data)[sent:]
            async with self._lock:
                await self._write_rest()
        else:
            async with self._lock:
                await self._write_rest()
                self._rest = memoryview(data)
                await self._write_rest()

    async def close(self) -> None:
        """Complete a message that is being written, within a time limit, and close."""
        if self._fd == _CLOSED:
            return
        if self._rest:
            with move_on_after(FLUSH_SECONDS, shield=True), suppress(ConnectionClosedError):
                async with self._lock:
                    await self._write_rest()
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:
            notify_closing(fd)
            _set_blocking(fd, self._was_blocking)
            os.close(fd)

    async def _write_rest(self) -> None:
        while self._rest:
            try:
                await wait_writable(self._fd)
            except (ClosedResourceError, OSError, ValueError) as gone:
                raise ConnectionClosedError("the channel was closed; nothing was sent") from gone
            self._rest = self._rest[self._write_some(self._rest) :]

    def _write_some(self, data: bytes | memoryview) -> int:
        if self._fd == _CLOSED:
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as gone:
            self._rest = memoryview(b"")
            raise ConnectionClosedError("the other end no longer reads") from gone


class AsyncioSink(PolledSink):
    """A descriptor that receives the messages of one iteration of an asyncio loop in one write.

    The first message of an iteration is written at once, unless more messages follow; the others
    are written by one call when the iteration ends. A failure of this call is reported by the next
    write.
    """

    def __init__(self, fd: int, loop: AbstractEventLoop) -> None:
        super().__init__(fd)
        self._loop = loop
        self._in_turn = False
        self._batch = bytearray()
        self._finishing: Task[None] | None = None

    async def write(self, data: bytes, *, more: bool) -> None:
        """Write all bytes, now or at the end of the iteration; wait while the other end is slow.

        Args:
            data: The bytes.
            more: Whether other messages are about to be written.

        Raises:
            ConnectionClosedError: The other end no longer reads, or this end was closed.
        """
        joined = self._in_turn or more
        if not self._in_turn:
            self._in_turn = True
            self._loop.call_soon(self._end_turn)
        blocked = self._fd == _CLOSED or self._rest or self._lock.locked()
        if joined and not blocked and len(self._batch) + len(data) <= _BATCH:
            self._batch += data
            return
        self._flush()
        await super().write(data, more=more)

    async def close(self) -> None:
        """Complete the messages that are being written, within a time limit, and close."""
        self._flush()
        await super().close()

    def _end_turn(self) -> None:
        self._in_turn = False
        self._flush()

    def _flush(self) -> None:
        """Write the batch; it is empty while a writer waits, so the order is kept."""
        if self._batch:
            batch, self._batch = bytes(self._batch), bytearray()
            with suppress(ConnectionClosedError):
                self._rest = memoryview(batch)[self._write_some(batch) :]
            if self._rest:
                self._finishing = self._loop.create_task(self._finish())

    async def _finish(self) -> None:
        with suppress(ConnectionClosedError):
            async with self._lock:
                await self._write_rest()


class ThreadedSource:
    """A descriptor read by a thread, a few chunks ahead."""

    def __init__(self, fd: int, ahead: int = 4) -> None:
        self._fd = fd
        self._chunks: deque[bytes] = deque()
        self._room = Semaphore(ahead)
        self._arrived: Event | None = None
        self._ended = False
        self._thread: Thread | None = None

    async def read(self) -> bytes:
        """Some bytes; empty at the end and when interrupted."""
        if self._thread is None and not self._ended:
            self._thread = _start(self._pump, "mcp reader")
        if not self._chunks and not self._ended:
            self._arrived = Event()
            await self._arrived.wait()
        if not self._chunks:
            return b""
        self._room.release()
        return self._chunks.popleft()

    def interrupt(self) -> None:
        """Wake a waiting reader."""
        if self._arrived is not None:
            self._arrived.set()

    def stop_waiting(self) -> None:
        """Stop reading: bytes that were read are still returned, then the source ends."""
        self._ended = True
        self.interrupt()

    async def close(self) -> None:
        """Stop reading. The thread, if any, closes the descriptor when its read returns."""
        if self._thread is None and self._fd != _CLOSED:
            os.close(self._fd)
            self._fd = _CLOSED
        self._ended = True
        self._chunks.clear()
        self._room.release()
        self.interrupt()

    def _pump(self, token: EventLoopToken) -> None:
        data = b"any"
        with suppress(RuntimeError):  # the event loop has ended
            while data and not self._ended:
                self._room.acquire()
                data = _read(self._fd)
                if not self._ended:  # after the end the event loop may not respond
                    from_thread.run_sync(self._take, data, token=token)
        os.close(self._fd)

    def _take(self, data: bytes) -> None:
        if data and not self._ended:
            self._chunks.append(data)
        else:
            self._ended = True
        self.interrupt()


@dataclass(eq=False)
class _Job:
    """Bytes to write, and the result of the write."""

    data: bytes
    done: Event
    written: bool = False


class ThreadedSink:
    """A descriptor written by a thread, in order. The thread completes each message."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._open_jobs: set[_Job] = set()
        self._closed = False
        self._thread: Thread | None = None

    async def write(self, data: bytes, *, more: bool) -> None:
        """Write all bytes, even if the task is cancelled.

        Args:
            data: The bytes.
            more: Not used: the thread writes each message at once.

        Raises:
            ConnectionClosedError: The other end no longer reads, or this end was closed.
        """
        if self._closed:
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")
        if not await self._pass_on(data):
            raise ConnectionClosedError("the other end no longer reads")

    async def close(self) -> None:
        """Wait for open writes, within a time limit. The thread, if any, closes the descriptor."""
        if self._closed:
            return
        self._closed = True
        if self._thread is None:
            os.close(self._fd)
            return
        with move_on_after(FLUSH_SECONDS, shield=True):
            await self._pass_on(b"")
        self._queue.put(None)
        for job in self._open_jobs:
            job.done.set()

    async def _pass_on(self, data: bytes) -> bool:
        if self._thread is None:
            self._thread = _start(self._pump, "mcp writer")
        job = _Job(data, Event())
        self._open_jobs.add(job)
        self._queue.put(job)
        try:
            await job.done.wait()
        finally:
            self._open_jobs.discard(job)
        return job.written

    def _pump(self, token: EventLoopToken) -> None:
        broken = False
        with suppress(RuntimeError):  # the event loop has ended
            while job := self._queue.get():
                broken = broken or not _write(self._fd, job.data)
                job.written = not broken
                if job in self._open_jobs:  # otherwise the event loop may have ended
                    from_thread.run_sync(job.done.set, token=token)
        os.close(self._fd)


def _start(pump: Callable[[EventLoopToken], None], name: str) -> Thread:
    thread = Thread(target=pump, args=(current_token(),), name=name, daemon=True)
    thread.start()
    return thread


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK)
    except OSError:
        return b""


def _write(fd: int, data: bytes) -> bool:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        return False
    return True
