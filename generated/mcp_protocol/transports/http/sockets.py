"""Bare TCP connections: anyio's, with errors of the operating system's kind."""

from __future__ import annotations

import select

import anyio
import anyio.abc

_RECEIVED = 64 * 1024


class Socket:
    """One connection. One task sends on it, then one receives.

    Args:
        stream: What anyio connected.
    """

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._descriptor = stream.extra(anyio.abc.SocketAttribute.raw_socket).fileno()

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
    return Socket(await anyio.connect_tcp(host, port))
