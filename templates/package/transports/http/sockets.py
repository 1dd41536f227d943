"""Bare TCP connections, by whatever costs the running loop least.

anyio's own wait twice more for each message on asyncio, and ask the system three times more; of the
time that a call to a server nearby takes, that is a fifth.
"""

from __future__ import annotations

import select
import sys
from ipaddress import ip_address
from typing import Protocol

import anyio
import anyio.abc

_RECEIVED = 64 * 1024


class Socket(Protocol):
    """One connection. One task sends on it, then one receives."""

    @property
    def is_quiet(self) -> bool:
        """Whether it is open, and nothing came that was not received."""
        ...

    async def send(self, data: bytes) -> None:
        """Send; returns once the system has taken nearly all of it.

        Raises:
            OSError: The connection broke, or was closed.
        """
        ...

    async def receive(self) -> bytes:
        """What came, once something did; nothing if the other side closed.

        Raises:
            OSError: The connection broke.
        """
        ...

    async def close(self) -> None:
        """Close it at once. Idempotent."""
        ...


async def connect(host: str, port: int) -> Socket:
    """Connect to an address.

    Raises:
        OSError: It can't be reached.
    """
    if _on_asyncio() and _is_plain(host):
        from .asyncio_socket import connect_asyncio

        return await connect_asyncio(host, port)
    return AnyioSocket(await anyio.connect_tcp(host, port))


class AnyioSocket:
    """A connection on any loop."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._descriptor = stream.extra(anyio.abc.SocketAttribute.raw_socket).fileno()

    @property
    def is_quiet(self) -> bool:
        """See `Socket`."""
        if hasattr(select, "poll"):  # select itself takes low descriptors only
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            return not poll.poll(0)
        return not select.select([self._descriptor], [], [], 0)[0]

    async def send(self, data: bytes) -> None:
        """See `Socket`."""
        try:
            await self._stream.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ConnectionError("the connection broke") from error

    async def receive(self) -> bytes:
        """See `Socket`."""
        try:
            return await self._stream.receive(_RECEIVED)
        except anyio.EndOfStream:
            return b""
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ConnectionError("the connection broke") from error

    async def close(self) -> None:
        """See `Socket`."""
        await anyio.aclose_forcefully(self._stream)


def _is_plain(host: str) -> bool:
    """Whether a host needs no choice of addresses, which anyio tries side by side."""
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _on_asyncio() -> bool:
    """Whether a task of asyncio runs; under trio as a guest there is a loop, but no task of it."""
    if "asyncio" not in sys.modules:
        return False
    import asyncio

    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False
