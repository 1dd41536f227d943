"""Validation of `Host` and `Origin`, which prevents DNS rebinding, and sharing with listed origins.

An attacker can point the name of a web page at a local address, so that the page reaches a local
server from a browser. The browser then sends that name in both fields, and the request is refused,
as the name is not allowed. The address that received a request is allowed: DNS can't change it.

Both fields are parsed by the grammar of RFC 3986 and compared as a whole: a value that only begins
like an allowed name is not allowed.

Pages of listed origins make requests and read responses (CORS). Before a request with JSON or with
fields of the protocol, a browser sends a preflight request (OPTIONS), which has no credentials.
Cookies are never shared: pages send access tokens themselves.

Source: basic/transports (security warning), basic/security_best_practices;
fetch.spec.whatwg.org/#http-cors-protocol.
"""

from __future__ import annotations

import re
from collections.abc import Collection, MutableMapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple, TypeAlias

from ...foreign_text import safe_repr
from .http_response import HttpResponse, Refused, Send, refusal
from .request import HttpRequest

_Host: TypeAlias = str | IPv4Address | IPv6Address

_ANY = "*"
_LARGEST_PORT = 65535

_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._~-]+))(?::([0-9]{1,5}))?", re.IGNORECASE)
_WEB_ORIGIN = re.compile(r"https?://([^/]+)", re.IGNORECASE)


_ALLOWED = b"access-control-allow-origin"
_SHARED = (
    (b"vary", b"origin"),
    (
        b"access-control-expose-headers",
        b"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After, Allow, ETag",
    ),
)

PREFLIGHT = HttpResponse(
    200,
    headers={
        "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
        "Access-Control-Allow-Headers": "*, Authorization",  # which the wildcard leaves out
        "Access-Control-Max-Age": "7200",  # the most that browsers accept
    },
)
"""The response to a preflight request, besides the fields of all shared responses."""


class Authority(NamedTuple):
    """A parsed value of `Host`: an address, or a name in lower case, and the port, if any."""

    host: _Host
    port: int | None


LOOPBACK: frozenset[_Host] = frozenset({"localhost", IPv4Address("127.0.0.1"), IPv6Address("::1")})
"""Names and addresses of the local machine."""

_WILDCARDS: frozenset[_Host] = frozenset({IPv4Address("0.0.0.0"), IPv6Address("::"), ""})
"""Addresses to listen at, but not to connect to."""


class HostOriginValidator:
    """Checks `Host` and `Origin`.

    Args:
        hosts: Allowed hosts, with or without port; by default the names of loopback, and the
            address that received the request.
        origins: Allowed origins; by default the origins whose host is allowed.
        status: The status of a refusal.

    Raises:
        ValueError: One of `hosts` is not a host with or without a port.
    """

    def __init__(
        self, hosts: Sequence[str] | None, origins: Sequence[str] | None, status: int
    ) -> None:
        self._all_hosts = hosts is not None and _ANY in hosts
        self._listed = None if hosts is None else frozenset(map(_parse_listed, {*hosts} - {_ANY}))
        self._origins = None if origins is None else frozenset(map(_normalize, origins))
        self._allowed = LOOPBACK
        self._status = status

    def allow(self, names: Collection[str]) -> None:
        """Allow more hosts by default: the names that the server listens at."""
        self._allowed |= {_parse_host(name) for name in names} - _WILDCARDS

    def check(self, request: HttpRequest, *, any_origin: bool = False) -> None:
        """Check a request; with `any_origin`, only its `Host`.

        Raises:
            Refused: One of the two is not allowed.
        """
        bound = request.server[0] if request.server is not None else None
        host, origin = request.field("Host") or "", request.field("Origin")
        if not self._allows_host(host, bound):
            raise self._refuse("Host", host, "hosts")
        if any_origin:
            return
        if origin is not None and not self._allows_origin(origin, bound):
            raise self._refuse("Origin", origin, "origins")

    def listed_origin(self, request: HttpRequest) -> bytes | None:
        """The origin of a request, if the settings list it."""
        if self._origins is None:
            return None
        origin = request.headers.get(b"origin")
        if origin is None or not self._allows_origin(origin.decode("latin-1"), None):
            return None
        return origin

    def _allows_host(self, text: str, bound: str | None) -> bool:
        if self._all_hosts:
            return True
        authority = parse_authority(text)
        if authority is None:
            return False
        host, port = authority
        if self._listed is not None:
            return (host, None) in self._listed or (host, port) in self._listed
        if host in self._allowed:
            return True
        return bound is not None and host not in _WILDCARDS and host == _parse_host(bound)

    def _allows_origin(self, origin: str, bound: str | None) -> bool:
        if self._origins is not None:
            return _ANY in self._origins or origin.lower() in self._origins
        web = _WEB_ORIGIN.fullmatch(origin)
        return web is not None and self._allows_host(web[1], bound)

    def _refuse(self, field: str, value: str, setting: str) -> Refused:
        text = f"{field}: {safe_repr(value)} is not served here; the setting {setting!r} of the "
        return Refused(refusal(self._status, f"{text}server lists what is"), "unread")


def parse_authority(text: str) -> Authority | None:
    """Parse host and port in the form of `Host`: a name, an IPv4 or a bracketed IPv6 address.

    Names consist of letters, digits and `-._~`; a port is 0 to 65535. An IPv4-mapped IPv6 address
    becomes the IPv4 address; zone ids are not accepted.

    Returns:
        `None` for anything else, such as two values, or a value with user and password.

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
        return Authority(_parse_host(name), port)
    address = _parse_host(six)
    return None if isinstance(address, str) or ":" not in six else Authority(address, port)


def _parse_host(text: str) -> _Host:
    """Normalize a name or an address without brackets."""
    try:
        address = ip_address(text.partition("%")[0])  # sockets add the zone id
    except ValueError:
        return text.lower()
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _parse_listed(text: str) -> Authority:
    """Parse a host of the settings; an IPv6 address may have no brackets.

    Raises:
        ValueError: The text is not a host.
    """
    bare = _normalize(text)
    authority = parse_authority(f"[{bare}]") or parse_authority(bare)
    if authority is None:
        raise ValueError(f"hosts: expected a host, with or without a port, or '*', got {text!r}")
    return authority


def _normalize(origin: str) -> str:
    """Normalize a value of the settings: lower case, without a trailing slash."""
    return origin.lower().rstrip("/")


def is_preflight(request: HttpRequest) -> bool:
    """Whether a browser asks by a request whether a page may send another one."""
    return request.method == "OPTIONS" and b"access-control-request-method" in request.headers


def share_responses(send: Send, origin: bytes) -> Send:
    """An ASGI send callable whose responses pages of an origin may read.

    A response that states by itself who may read it stays as it is.
    """

    async def send_shared(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            fields = [*message.get("headers", ())]
            if not any(name.lower() == _ALLOWED for name, _ in fields):
                message = {**message, "headers": [*fields, (_ALLOWED, origin), *_SHARED]}
        await send(message)

    return send_shared
