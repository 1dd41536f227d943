"""Addresses that a server listens at."""

from __future__ import annotations

import socket
from typing import Any, TypeAlias

from ...errors import ListenFailedError

Address: TypeAlias = tuple[str, int]
"""A host and a port."""

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8000

_REACHED_AT = {"0.0.0.0": LOOPBACK, "::": "::1"}


def address_of(call: str, http: str | None, host: str | None, port: int | None) -> Address:
    """The address that the arguments of a method name: `http`, or `host` and `port`.

    Args:
        call: The method, such as `server.run`.
        http: See `parse_address`.
        host: The host; by default loopback.
        port: The port; by default 8000.

    Raises:
        TypeError: `http` is given together with another one.
        ValueError: They are not an address.
    """
    if http is not None:
        if host is not None or port is not None:
            raise TypeError(f"{call}: expected http={http!r}, or host and port, got both")
        return parse_address(http)
    number = DEFAULT_PORT if port is None else port
    if not 0 <= number <= 65535:
        raise ValueError(f"{call}: port: expected a number from 0 to 65535, got {port}")
    return host or LOOPBACK, number


def parse_address(text: str) -> Address:
    """Parse an address such as `127.0.0.1:8000`, `[::1]:8000` or `:8000` into host and port.

    The default host is loopback; port 0 means any free port.

    Raises:
        ValueError: The text is not an address of this form.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if ":" not in text or not is_port or (":" in bare and bare == host):
        raise ValueError(f"expected HOST:PORT, such as 127.0.0.1:8000, got {text!r}")
    return bare or LOOPBACK, int(port)


def listener_at(host: str, port: int) -> socket.socket:
    """A socket that listens at an address.

    Raises:
        ListenFailedError: The address can't be bound.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, *_, bound = min(addresses, key=lambda each: each[0] != socket.AF_INET)
        listener = socket.create_server(bound, family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]
        raise ListenFailedError(f"can't listen at {host}:{port}: {why.lower()}") from error
    # Connections inherit the option. Without it, a response in two writes is delayed by 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return listener


def reached_at(bound: tuple[Any, ...]) -> str:
    """Host and port at which a listener is reached."""
    host = str(_REACHED_AT.get(bound[0], bound[0]))
    return f"[{host}]:{bound[1]}" if ":" in host else f"{host}:{bound[1]}"
