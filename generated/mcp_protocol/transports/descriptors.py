"""File descriptors as sources and sinks of bytes.

What an event loop can wait for (pipes, sockets, terminals on POSIX) is waited for there. The rest
(regular files, the null device, anything on Windows) has a thread of its own, which dies with the
process: a read that never returns must not keep it alive.

A descriptor is read only when it is ready, so it need not be non-blocking: that flag belongs to all
processes that share the open file, and some of them would break.
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

from ..errors import ConnectionClosedError
from .lines import FLUSH_SECONDS

CHUNK = 64 * 1024
"""Bytes read at once: what a pipe usually holds."""


def open_source(fd: int) -> PolledSource | ThreadedSource:
    """The descriptor as a source that owns it."""
    return PolledSource(fd) if _can_be_polled(fd) else ThreadedSource(fd)


def open_sink(fd: int) -> PolledSink | ThreadedSink:
    """The descriptor as a sink that owns it. Sets it non-blocking where it can be waited for."""
    return PolledSink(fd) if _can_be_polled(fd) else ThreadedSink(fd)


def _can_be_polled(fd: int) -> bool:
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            selector.select(0)
    except (OSError, ValueError):
        return False
    return True


if sys.platform == "win32":

    def _set_blocking(_fd: int, _blocking: bool) -> bool:
        return True  # no descriptor can be polled there

else:

    def _set_blocking(fd: int, blocking: bool) -> bool:
        """Set it, and return what it was."""
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
        while self._fd >= 0:
            try:
                if self._waits:
                    await wait_readable(self._fd)
                return os.read(self._fd, CHUNK)
            except BlockingIOError:
                if not self._waits:
                    break
            except ClosedResourceError:
                if self._waits:
                    break
            except OSError:
                break
        return b""

    def interrupt(self) -> None:
        """Wake a waiting reader."""
        if self._fd >= 0:
            notify_closing(self._fd)

    def cut(self) -> None:
        """Wait no more: what is there already can still be read, then comes the end."""
        self._waits = False
        _set_blocking(self._fd, False)
        self.interrupt()

    async def close(self) -> None:
        """Close the descriptor."""
        self.interrupt()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class PolledSink:
    """A descriptor that an event loop can wait for, written without blocking.

    A message begun is finished, whatever becomes of the task that began it: the next writer, or
    closing, carries the rest out first.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._was_blocking = _set_blocking(fd, False)
        self._rest = memoryview(b"")
        self._lock = Lock(fast_acquire=True)

    async def write(self, data: bytes) -> None:
        """Write all of it; waits while the other end is slow.

        Raises:
            ConnectionClosedError: Nobody reads the other end, or this one was closed.
        """
        # Most messages fit at once; only the others pay for a lock.
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
        """Finish a message that was begun, as far as the other end takes it, and close."""
        if self._fd < 0:
            return
        if self._rest:
            with move_on_after(FLUSH_SECONDS, shield=True), suppress(ConnectionClosedError):
                async with self._lock:
                    await self._write_rest()
        fd, self._fd = self._fd, -1
        if fd >= 0:
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
        if self._fd < 0:
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0
        except OSError as gone:
            self._rest = memoryview(b"")
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

    def cut(self) -> None:
        """Wait no more: what was read already can still be had, then comes the end."""
        self._ended = True
        self.interrupt()

    async def close(self) -> None:
        """Read no more. The thread, if any, closes the descriptor when its read returns."""
        if self._thread is None and not self._ended:
            os.close(self._fd)
        self._ended = True
        self._chunks.clear()
        self._room.release()
        self.interrupt()

    def _pump(self, token: EventLoopToken) -> None:
        data = b"any"
        with suppress(RuntimeError):  # the event loop is gone, and with it the reader
            while data and not self._ended:
                self._room.acquire()
                data = _read_blocking(self._fd)
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
    """Bytes to write, and what became of them."""

    data: bytes
    done: Event
    written: bool = False


class ThreadedSink:
    """A descriptor written by a thread, in order. A message begun is finished there in any case."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._open_jobs: set[_Job] = set()
        self._closed = False
        self._thread: Thread | None = None

    async def write(self, data: bytes) -> None:
        """Write all of it. If cancelled, it is written all the same.

        Raises:
            ConnectionClosedError: Nobody reads the other end, or this one was closed.
        """
        if self._closed:
            raise ConnectionClosedError("the channel is closed; nothing more can be sent")
        if not await self._pass_on(data):
            raise ConnectionClosedError("the other end no longer reads")

    async def close(self) -> None:
        """Wait a bounded time for what was begun. The thread, if any, closes the descriptor."""
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
        with suppress(RuntimeError):  # the event loop is gone, and with it the writers
            while job := self._queue.get():
                broken = broken or not _write_blocking(self._fd, job.data)
                job.written = not broken
                from_thread.run_sync(job.done.set, token=token)
        os.close(self._fd)


def _start(pump: Callable[[EventLoopToken], None], name: str) -> Thread:
    thread = Thread(target=pump, args=(current_token(),), name=name, daemon=True)
    thread.start()
    return thread


def _read_blocking(fd: int) -> bytes:
    try:
        return os.read(fd, CHUNK)
    except OSError:
        return b""


def _write_blocking(fd: int, data: bytes) -> bool:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        return False
    return True
