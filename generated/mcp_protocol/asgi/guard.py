"""Who may speak to a server: `Host` and `Origin` against a list, so that no web page can.

A page whose name an attacker points at a local address reaches a local server from the reader's
browser. The browser then names that page in both fields, and a list of known names refuses it. An
address that a request came in at is as good as a known name: nobody can point it elsewhere.

Source: basic/transports (security warning), basic/security_best_practices.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from .incoming import Incoming
from .replies import Reply, refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names that no other machine answers to."""

_ANY = "*"
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # addresses of a listener, and of nobody else
_REMEMBERED = 100  # most clients say the same each time


class Guard:
    """Checks `Host` and `Origin`.

    Args:
        hosts: Hosts that are served, with or without port; by default the names of loopback, and
            the address at which a request comes in.
        origins: Origins that are served; by default those whose host is served.
        status: The status of a refusal.
    """

    def __init__(
        self, hosts: Sequence[str] | None, origins: Sequence[str] | None, status: int
    ) -> None:
        self._listed = None if hosts is None else frozenset(_listed(host) for host in hosts)
        self._origins = None if origins is None else frozenset(_plain(text) for text in origins)
        self._known = LOOPBACK
        self._status = status
        self._passed: set[tuple[bytes | None, bytes | None, str | None]] = set()

    def know(self, names: Collection[str]) -> None:
        """Serve more hosts by default: those that the server was told to listen at."""
        self._known |= {_plain(name) for name in names} - _WILDCARDS

    def check(self, incoming: Incoming) -> Reply | None:
        """What refuses a request; `None` if nothing does."""
        bound = incoming.server[0] if incoming.server is not None else None
        seen = (incoming.raw(b"host"), incoming.raw(b"origin"), bound)
        if seen in self._passed:
            return None
        host, origin = incoming.field("Host") or "", incoming.field("Origin")
        if not self._serves(_plain(host), bound):
            return self._refuse("Host", host, "hosts")
        if origin is not None and not self._trusts(_plain(origin), bound):
            return self._refuse("Origin", origin, "origins")
        if len(self._passed) < _REMEMBERED:
            self._passed.add(seen)
        return None

    def _serves(self, host: str, bound: str | None) -> bool:
        name = _name(host)
        if self._listed is not None:
            return _ANY in self._listed or host in self._listed or name in self._listed
        return name in self._known or (bound is not None and _same(name, _plain(bound)))

    def _trusts(self, origin: str, bound: str | None) -> bool:
        if self._origins is not None:
            return _ANY in self._origins or origin in self._origins
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._serves(host, bound)

    def _refuse(self, field: str, value: str, setting: str) -> Reply:
        return refusal(
            self._status,
            f"{field}: {value!r:.200} is not served here; the setting {setting!r} of the server "
            f"lists what is",
        )


def _plain(text: str) -> str:
    """A host or an origin as it is compared."""
    return text.lower().rstrip("/")


def _listed(host: str) -> str:
    """A host of the list: as it is compared, or without a port as `_name` gives it."""
    plain = _plain(host)
    return plain[1:-1] if plain.startswith("[") and plain.endswith("]") else plain


def _name(host: str) -> str:
    """The name or address without its port; an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdecimal() or not port) and ":" not in name else host


def _same(name: str, bound: str) -> bool:
    """Whether a name is the address that a request came in at, however that is written."""
    if bound in _WILDCARDS:
        return False
    if name == bound:
        return True
    try:
        return _address(name) == _address(bound)
    except ValueError:
        return False


def _address(text: str) -> IPv4Address | IPv6Address:
    found = ip_address(text)
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
