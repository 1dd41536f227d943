"""Connections that are not waited for: those that send half a request, or read nothing.

An ASGI server hands a request over once its head is whole, and closes a connection only after what
was written has been read. So these two are seen by the protocol class alone, which is uvicorn's.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Protocol

from .settings import Limits

HEAD_BYTES = 64 * 1024
"""Bytes that the head of a request may have."""


class _Cycle(Protocol):
    """A request that was handed over."""

    response_complete: bool


class UvicornTimeouts(asyncio.Protocol):
    """What makes a protocol class of uvicorn's close connections that keep it waiting.

    It stands before that class: `cycle` is the request that was handed over last.
    """

    limits: ClassVar[Limits]
    cycle: _Cycle | None
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _unread = 0
    _size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._head_is_whole()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        before = self.cycle
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._head_is_whole()
            return
        self._size = len(data) if cycle is not before else self._size + len(data)
        if self._size > HEAD_BYTES:
            self.transport.abort()
        elif self._timer is None and not self.transport.is_closing():
            self._await_head()

    def pause_writing(self) -> None:
        """Called by the loop."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """Called by the loop."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        super().resume_writing()

    def _await_reading(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.limits.send_seconds, self._check_reading)

    def _check_reading(self) -> None:
        if self.transport.get_write_buffer_size() < self._unread:
            self._await_reading()  # slow, but it reads
        else:
            self.transport.abort()

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.limits.head_seconds, self.transport.abort)

    def _head_is_whole(self) -> None:
        self._size = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def impatient(base: type[asyncio.Protocol], limits: Limits) -> type[asyncio.Protocol]:
    """A protocol class of uvicorn's that closes connections which keep it waiting.

    Args:
        base: The class.
        limits: For how long it waits.
    """
    return type("ImpatientProtocol", (UvicornTimeouts, base), {"limits": limits})
