"""Sources and sinks that use threads, for descriptors that no event loop can poll.

Each end has a daemon thread, because a read that never returns must not keep the process alive. The
thread starts with the first read or write, and closes the descriptor when it ends.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Semaphore, Thread

from anyio import Event, from_thread, move_on_after
from anyio.lowlevel import EventLoopToken, current_token

from ..errors import ConnectionClosedError
from .line_channel import CHUNK, FLUSH_SECONDS


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
        """Stop waiting: bytes that were read are still returned, then the source ends."""
        self._ended = True
        self.interrupt()

    async def close(self) -> None:
        """Stop reading. The thread, if any, closes the descriptor when its read returns."""
        if self._thread is None and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
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
    """Bytes to write, and the outcome."""

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

    async def write(self, data: bytes, *, more: bool = False) -> None:
        """Write all of it, even if the task is cancelled.

        Args:
            data: The bytes.
            more: Not used: the thread writes each message at once.

        Raises:
            ConnectionClosedError: The other end no longer reads, or this one was closed.
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
