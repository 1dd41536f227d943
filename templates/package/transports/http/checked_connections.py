"""Connections of httpx2 to addresses that are checked after a name was resolved.

The connection is made to the address that was checked, so a name that resolves to another address
the next time changes nothing.
"""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    import httpx2


def check_connections(transport: httpx2.AsyncHTTPTransport, permits: Callable[[str], bool]) -> None:
    """Have a transport connect to permitted addresses only."""
    # httpx2 has no public way to hand a network backend to the pool that it makes.
    pool: Any = transport._pool  # pyright: ignore[reportPrivateUsage] - see above
    pool._network_backend = _CheckedBackend(pool._network_backend, permits)


class _CheckedBackend:
    """The backend of a pool, which resolves names itself."""

    def __init__(self, backend: Any, permits: Callable[[str], bool]) -> None:
        self._backend = backend
        self._permits = permits

    async def connect_tcp(self, host: str, port: int, **options: Any) -> Any:
        """Connect to the first permitted address of a host that accepts."""
        import httpcore2

        try:
            addresses = await _addresses(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        refused = OSError(errno.EACCES, "the address is private or reserved")
        failure: Exception = httpcore2.ConnectError(str(refused))
        failure.__cause__ = refused
        for address in addresses:
            if self._permits(address):
                try:
                    return await self._backend.connect_tcp(address, port, **options)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                    failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait, as the backend does."""
        await self._backend.sleep(seconds)


async def _addresses(host: str, port: int) -> list[str]:
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        found = await anyio.getaddrinfo(host, port)
        return list(dict.fromkeys(str(each[4][0]) for each in found))
