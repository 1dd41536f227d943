"""Bare TCP connections: anyio's, with errors of the operating system's kind."""

from __future__ import annotations

import select
import socket

import anyio
import anyio.abc

_RECEIVED = 64 * 1024

KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""When the system probes a silent connection, how often then, and how many times in vain, where it
can be told. A stream of events whose connection was dropped on the way breaks within a minute."""


class Socket:
    """One connection. One task sends on it, then one receives.

    Args:
        stream: What anyio connected.

    Attributes:
        raw: The system's socket, for its options.
    """

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self.raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        self._descriptor = self.raw.fileno()

    @property
    def is_quiet(self) -> bool:
        """Whether it is open, and nothing came that was not received."""
        if hasattr(select, "poll"):  # select itself takes low descriptors only
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            return not poll.poll(0)
        return not select.select([self._descriptor], [], [], 0)[0]

    async def send(self, data: bytes) -> None:
        """Send; returns once the system has taken nearly all of it.

        Raises:
            ConnectionError: The connection broke, or was closed.
        """
        try:
            await self._stream.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ConnectionError("the connection broke") from error

    async def receive(self) -> bytes:
        """What came, once something did; nothing if the other side closed.

        Raises:
            ConnectionError: The connection broke.
        """
        try:
            return await self._stream.receive(_RECEIVED)
        except anyio.EndOfStream:
            return b""
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ConnectionError("the connection broke") from error

    async def close(self) -> None:
        """Close it at once. Idempotent."""
        await anyio.aclose_forcefully(self._stream)


async def connect(host: str, port: int) -> Socket:
    """Connect to an address.

    Raises:
        OSError: It can't be reached.
    """
    made = Socket(await anyio.connect_tcp(host, port))
    made.raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            made.raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
