"""Messages as lines: framing without I/O, a channel over bytes, and descriptors as its two ends.

A message is one line. A chunk may end anywhere, so the reader keeps the incomplete tail, and
searches only new bytes for newlines: feeding byte by byte is not quadratic.

The event loop waits for descriptors that it can poll (pipes, sockets, terminals on POSIX); threads
serve all others (regular files, the null device, anything on Windows). Each end with a thread has a
daemon thread of its own, because a read that never returns must not keep the process alive. The
thread starts with the first read or write, and closes the descriptor when it ends.

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
from typing import TYPE_CHECKING, Any, Protocol

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
from ..errors import ConnectionClosedError, EndOfChannel, LocalProtocolError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task

CHUNK = 64 * 1024
"""Bytes per read: the usual capacity of a pipe."""

FLUSH_SECONDS = 0.5
"""Seconds that closing waits for a message that is being written."""

_CLOSED = -1  # in place of a descriptor
_BATCH = 2048  # most bytes of a batch; with larger batches, both ends would alternately wait


class LineReader:
    """Splits a byte stream into messages.

    Lines end with LF or CRLF. Blank lines are skipped.

    Args:
        limit: Longest message accepted, in bytes; it bounds the memory that a peer can use.

    Source: basic/transports (stdio).
    """

    __slots__ = ("_dropping", "_limit", "_tail")

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Feed the next bytes of the stream; return the messages that they complete, in order.

        A message over the limit is reported once, as soon as the limit is exceeded; the rest of its
        line is dropped.
        """
        first, *rest = data.split(b"\n")
        if not rest:
            return self._keep(first)
        messages: list[bytes | TooLong] = []
        if self._tail:
            self._tail += first
            first = bytes(self._tail)
            self._tail.clear()
        if self._dropping:
            self._dropping = False
        else:
            self._add(first, messages)
        last = rest.pop()
        for line in rest:
            self._add(line, messages)
        messages += self._keep(last)
        return messages

    def end(self) -> list[bytes | TooLong]:
        """End the stream; return the last message if it has no newline."""
        return self.feed(b"\n") if self._tail else []

    def _keep(self, data: bytes) -> list[bytes | TooLong]:
        if not self._dropping:
            self._tail += data
            # One more byte may be the CR of a CRLF.
            if len(self._tail) > self._limit + 1:
                self._tail.clear()
                self._dropping = True
                return [TooLong(self._limit)]
        return []

    def _add(self, line: bytes, messages: list[bytes | TooLong]) -> None:
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) > self._limit:
            messages.append(TooLong(self._limit))
        elif line and not line.isspace():
            messages.append(line)


def frame_line(message: bytes) -> bytes:
    """Frame one message as a line.

    Raises:
        LocalProtocolError: The message has a raw newline, so it would be two lines.

    Source: basic/transports (stdio).
    """
    if b"\n" in message:
        at = message.index(b"\n")
        raise LocalProtocolError(f"expected a message on one line, came a newline at byte {at}")
    return message + b"\n"


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
            ConnectionClosedError: The other end no longer reads, or this end was closed.
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


def open_source(fd: int) -> PolledSource | ThreadedSource:
    """A source for the running event loop; it owns the descriptor."""
    return PolledSource(fd) if _can_be_polled(fd) else ThreadedSource(fd)


def open_sink(fd: int) -> PolledSink | ThreadedSink:
    """A sink that owns the descriptor; a descriptor that can be polled becomes non-blocking."""
    return PolledSink(fd) if _can_be_polled(fd) else ThreadedSink(fd)


def _can_be_polled(fd: int) -> bool:
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            selector.select(0)
    except (OSError, ValueError):
        return False
    return True


def _asyncio_loop() -> AbstractEventLoop | None:
    loop: Any = current_token().native_token
    return loop if hasattr(loop, "add_reader") else None


def _set_blocking(fd: int, blocking: bool) -> bool:
    """Set the blocking mode and return the previous mode."""
    if sys.platform == "win32":
        return blocking  # no descriptor can be polled there
    before = os.get_blocking(fd)
    os.set_blocking(fd, blocking)
    return before


class PolledSource:
    """A descriptor that an event loop can wait for.

    A loop of asyncio watches it as long as a task reads: `wait_readable`, which other loops use,
    would take two more system calls per message.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = _asyncio_loop()
        self._waits = True
        self._watched = False
        self._waiter: Future[None] | None = None
        self._chunk: bytes | None = None

    async def read(self) -> bytes:
        """Some bytes; empty at the end, when interrupted and when the other end broke."""
        if self._chunk is None and self._waits:
            if self._loop is None:
                await self._wait()
            else:
                if not self._watched:
                    self._loop.add_reader(self._fd, self._take)
                    self._watched = True
                self._waiter = self._loop.create_future()
                await self._waiter
        # Not stored in the waiter: a reader that is cancelled now must not lose bytes.
        chunk, self._chunk = self._chunk, None
        if chunk is None and not self._waits:
            chunk = self._read_some()
        return chunk or b""

    def interrupt(self) -> None:
        """Wake a waiting reader."""
        if self._loop is not None:
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
        elif self._fd != _CLOSED:
            notify_closing(self._fd)

    def stop_waiting(self) -> None:
        """Stop waiting: available bytes can still be read, then the source ends."""
        self._end_waiting()
        _set_blocking(self._fd, False)

    async def close(self) -> None:
        """Close the descriptor."""
        self._end_waiting()
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    async def _wait(self) -> None:
        """Wait for bytes by anyio."""
        with suppress(ClosedResourceError, OSError):
            while self._chunk is None and self._waits:
                await wait_readable(self._fd)
                self._chunk = self._read_some()

    def _take(self) -> None:
        """Read when the loop of asyncio has found the descriptor ready."""
        if self._waiter is None or self._waiter.done():
            # No task reads. The bytes stay in the pipe, which slows the peer down.
            self._unwatch()
        else:
            self._chunk = self._read_some()
            if self._chunk is not None:
                self._waiter.set_result(None)
            if self._chunk == b"":
                self._unwatch()

    def _read_some(self) -> bytes | None:
        """Read the available bytes; empty at the end of the stream; `None` if there are none."""
        try:
            return os.read(self._fd, CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _end_waiting(self) -> None:
        self._unwatch()
        self._waits = False
        self.interrupt()

    def _unwatch(self) -> None:
        if self._watched and self._loop is not None:
            self._loop.remove_reader(self._fd)
        self._watched = False


class PolledSink:
    """A descriptor that an event loop can wait for, written without blocking.

    A message whose writing has begun is completed even if its task is cancelled: the next writer,
    or closing, writes the rest first.

    On asyncio the first message of an iteration of the loop is written at once, unless more
    messages follow; the others are written by one call when the iteration ends. A failure of this
    call is reported by the next write.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = _asyncio_loop()
        self._was_blocking = _set_blocking(fd, False)
        self._rest = memoryview(b"")
        self._lock = Lock(fast_acquire=True)
        self._in_turn = False  # a message was written in this iteration of the loop
        self._batch = bytearray()
        self._finishing: Task[None] | None = None  # asyncio keeps no strong reference to a task

    async def write(self, data: bytes, *, more: bool) -> None:
        """Write all bytes, now or at the end of the iteration; wait while the other end is slow.

        Args:
            data: The bytes.
            more: Whether other messages are about to be written.

        Raises:
            ConnectionClosedError: The other end no longer reads, or this end was closed.
        """
        # Most messages are written by one call; only the others need the lock.
        is_free = not self._rest and not self._lock.locked()
        if self._loop is not None:
            joined = self._in_turn or more
            if not self._in_turn:
                self._in_turn = True
                self._loop.call_soon(self._end_turn)
            fits = len(self._batch) + len(data) <= _BATCH and self._fd != _CLOSED
            if joined and is_free and fits:
                self._batch += data
                return
            if self._batch:
                self._flush()
                is_free = not self._rest
        if is_free:
            sent = self._write_some(data)
            if sent < len(data):
                self._rest = memoryview(data)[sent:]
                await self._finish()
        else:
            async with self._lock:
                await self._write_rest()
                self._rest = memoryview(data)
                await self._write_rest()

    async def close(self) -> None:
        """Complete the messages that are being written, within a time limit, and close."""
        self._flush()
        if self._rest:
            with move_on_after(FLUSH_SECONDS, shield=True), suppress(ConnectionClosedError):
                await self._finish()
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:
            notify_closing(fd)
            _set_blocking(fd, self._was_blocking)
            os.close(fd)

    def _end_turn(self) -> None:
        self._in_turn = False
        self._flush()

    def _flush(self) -> None:
        """Write the batch; it is empty while a writer waits, so the order is kept."""
        if self._batch and self._loop is not None:
            batch, self._batch = bytes(self._batch), bytearray()
            with suppress(ConnectionClosedError):
                self._rest = memoryview(batch)[self._write_some(batch) :]
            if self._rest:
                self._finishing = self._loop.create_task(self._finish_batch())

    async def _finish_batch(self) -> None:
        with suppress(ConnectionClosedError):
            await self._finish()

    async def _finish(self) -> None:
        async with self._lock:
            await self._write_rest()

    async def _write_rest(self) -> None:
        while self._rest:
            with suppress(ClosedResourceError, OSError, ValueError):  # writing fails then
                await wait_writable(self._fd)
            self._rest = self._rest[self._write_some(self._rest) :]

    def _write_some(self, data: bytes | memoryview) -> int:
        if self._fd == _CLOSED:
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as gone:
            raise ConnectionClosedError("the other end no longer reads") from gone


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
        self._chunks.clear()
        self._room.release()
        self.stop_waiting()

    def _pump(self, token: EventLoopToken) -> None:
        data = b"any"
        with suppress(RuntimeError):  # the event loop has ended
            while data and not self._ended:
                self._room.acquire()
                try:
                    data = os.read(self._fd, CHUNK)
                except OSError:
                    data = b""
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
        """Write all bytes, even if the task is cancelled; see `Sink.write`."""
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
                rest = memoryview(job.data)
                try:
                    while rest and not broken:
                        rest = rest[os.write(self._fd, rest) :]
                except OSError:
                    broken = True
                job.written = not broken
                if job in self._open_jobs:  # otherwise the event loop may have ended
                    from_thread.run_sync(job.done.set, token=token)
        os.close(self._fd)


def _start(pump: Callable[[EventLoopToken], None], name: str) -> Thread:
    thread = Thread(target=pump, args=(current_token(),), name=name, daemon=True)
    thread.start()
    return thread
