"""Who may speak to a server: `Host` and `Origin` against a list, so that no web page can.

A page whose name an attacker points at a local address reaches a local server from the reader's
browser. The browser then names that page in both fields, and a list of known names refuses it. An
address that a request came in at is as good as a known name: nobody can point it elsewhere.

Both fields are parsed by the grammar of RFC 3986 and compared as a whole: a value that only begins
like a known name is another name.

Source: basic/transports (security warning), basic/security_best_practices.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple, TypeAlias

from ...foreign_text import safe_repr
from .request import Incoming
from .responses import Reply, refusal

_Host: TypeAlias = str | IPv4Address | IPv6Address

_ANY = "*"
_REMEMBERED = 100  # most clients say the same each time
_LARGEST_PORT = 65535

_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._~-]+))(?::([0-9]{1,5}))?", re.IGNORECASE)
_WEB_ORIGIN = re.compile(r"https?://([^/]+)", re.IGNORECASE)


class Authority(NamedTuple):
    """A parsed value of `Host`, or the part of an `Origin` that names a server.

    Attributes:
        host: An address, or a name in lower case.
        port: The port; `None` if there is none.
    """

    host: _Host
    port: int | None


LOOPBACK: frozenset[_Host] = frozenset({"localhost", IPv4Address("127.0.0.1"), IPv6Address("::1")})
"""Names that no other machine answers to."""

_WILDCARDS: frozenset[_Host] = frozenset({IPv4Address("0.0.0.0"), IPv6Address("::"), ""})
"""Addresses of a listener, and of nobody else."""


class Guard:
    """Checks `Host` and `Origin`.

    Args:
        hosts: Hosts that are served, with or without port; by default the names of loopback, and
            the address at which a request comes in.
        origins: Origins that are served; by default those whose host is served.
        status: The status of a refusal.

    Raises:
        ValueError: One of `hosts` is not a host with or without a port.
    """

    def __init__(
        self, hosts: Sequence[str] | None, origins: Sequence[str] | None, status: int
    ) -> None:
        self._all_hosts = hosts is not None and _ANY in hosts
        self._listed = None if hosts is None else frozenset(map(_listed, {*hosts} - {_ANY}))
        self._origins = None if origins is None else frozenset(map(_plain, origins))
        self._known = LOOPBACK
        self._status = status
        self._passed: set[tuple[bytes | None, bytes | None, str | None]] = set()

    def know(self, names: Collection[str]) -> None:
        """Serve more hosts by default: those that the server was told to listen at."""
        self._known |= {_host(name) for name in names} - _WILDCARDS

    def check(self, incoming: Incoming) -> Reply | None:
        """What refuses a request; `None` if nothing does."""
        bound = incoming.server[0] if incoming.server is not None else None
        seen = (incoming.raw(b"host"), incoming.raw(b"origin"), bound)
        if seen in self._passed:
            return None
        host, origin = incoming.field("Host") or "", incoming.field("Origin")
        if not self._serves(host, bound):
            return self._refuse("Host", host, "hosts")
        if origin is not None and not self._trusts(origin, bound):
            return self._refuse("Origin", origin, "origins")
        if len(self._passed) < _REMEMBERED:
            self._passed.add(seen)
        return None

    def _serves(self, text: str, bound: str | None) -> bool:
        if self._all_hosts:
            return True
        authority = parse_authority(text)
        if authority is None:
            return False
        host, port = authority
        if self._listed is not None:
            return (host, None) in self._listed or (host, port) in self._listed
        if host in self._known:
            return True
        return bound is not None and host not in _WILDCARDS and host == _host(bound)

    def _trusts(self, origin: str, bound: str | None) -> bool:
        if self._origins is not None:
            return _ANY in self._origins or origin.lower() in self._origins
        web = _WEB_ORIGIN.fullmatch(origin)
        return web is not None and self._serves(web[1], bound)

    def _refuse(self, field: str, value: str, setting: str) -> Reply:
        return refusal(
            self._status,
            f"{field}: {safe_repr(value)} is not served here; the setting {setting!r} of the "
            f"server lists what is",
        )


def parse_authority(text: str) -> Authority | None:
    """Host and port as `Host` has them: a name, an IPv4 address, or an IPv6 address in brackets.

    Names are of letters, digits and `-._~`; a port is 0 to 65535. An IPv6 address that stands for
    an IPv4 address is that; zone ids are for links, and have no place here.

    Returns:
        `None` if the text is something else, such as two values, or one with user and password.

    Source: RFC 9110 (Host), RFC 3986 (authority).
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    six, name, digits = match.groups()
    port = None if digits is None else int(digits)
    if port is not None and port > _LARGEST_PORT:
        return None
    if six is None:
        return Authority(_host(name), port)
    address = _host(six)
    return None if isinstance(address, str) or ":" not in six else Authority(address, port)


def _host(text: str) -> _Host:
    """A name or an address without brackets, as it is compared."""
    try:
        found = ip_address(text.partition("%")[0])  # sockets name the zone of a link
    except ValueError:
        return text.lower()
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _listed(text: str) -> Authority:
    """A host of the list, which may have an IPv6 address without brackets.

    Raises:
        ValueError: It is none.
    """
    bare = _plain(text)
    authority = parse_authority(f"[{bare}]") or parse_authority(bare)
    if authority is None:
        raise ValueError(f"hosts: expected a host, with or without a port, or '*', got {text!r}")
    return authority


def _plain(origin: str) -> str:
    """An entry of a list as it is compared."""
    return origin.lower().rstrip("/")
