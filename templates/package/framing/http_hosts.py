"""URLs of HTTP: valid ones, origins, hosts in all their forms, and where a token may be sent."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from ..errors import AuthorizationError, ConnectFailedError
from ..foreign_text import safe_text

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = range(1, 65536)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class AddressRules:
    """Allowed addresses besides public https addresses, for example those of a private network.

    Attributes:
        private: Whether addresses of private networks are allowed; link-local addresses never are.
        plain_http: Whether http is allowed for hosts other than loopback.
    """

    private: bool = False
    plain_http: bool = False


PUBLIC = AddressRules()
"""Only public https addresses."""


def check_token_target(url: str, rules: AddressRules) -> None:
    """Check that a token may be sent to an MCP server: over TLS, or to loopback.

    Raises:
        AuthorizationError: The URL is not https and its host is not loopback, or the URL has
            credentials.
    """
    try:
        split = split_url(url)
    except ValueError as error:
        raise AuthorizationError(f"the server's URL: {error}") from None
    if split.scheme == "http" and not (rules.plain_http or is_loopback(split.hostname or "")):
        raise AuthorizationError("the server's URL: expected https for authorization")
    if "@" in split.netloc:
        raise AuthorizationError("the server's URL: expected no credentials beside `auth`")


def split_url(url: str) -> SplitResult:
    """The parts of an http or https URL.

    Raises:
        ValueError: The URL is malformed, has no host, or has another scheme. The text does not
            repeat the URL.
    """
    split = None
    try:
        split = urlsplit(url)
        has_valid_port = split.port != 0
    except ValueError:
        has_valid_port = False
    if split is None or not has_valid_port or not split.hostname:
        raise ValueError("expected an http or https URL with a host")
    if split.scheme not in ("http", "https"):
        raise ValueError("expected an http or https URL with a host")
    return split


def is_loopback(host: str) -> bool:
    """Whether a host name or an address is that of the loopback interface."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = literal_address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address is not None and address.is_loopback


def literal_address(host: str) -> IpAddress | None:
    """The IP address that a host consists of; `None` for a name.

    All forms that resolvers accept are recognized: also decimal, octal and hexadecimal numbers, and
    fewer than four parts, as `inet_aton` does.
    """
    host = host.rstrip(".")
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    with suppress(OSError, ValueError):
        return ipaddress.IPv4Address(socket.inet_aton(host))
    return None


def format_url(url: str) -> str:
    """An address for an error text: shortened, without credentials, query and fragment."""
    try:
        scheme, netloc, path, _, _ = urlsplit(url)
    except ValueError:
        return safe_text(url.partition("?")[0].rpartition("@")[2])
    return safe_text(urlunsplit((scheme, netloc.rpartition("@")[2], path, "", "")))


def checked_url(text: str) -> str:
    """A valid URL without its fragment.

    Raises:
        ConnectFailedError: The text is not a URL with a host.
    """
    try:
        split = urlsplit(text)
        port, host = split.port, split.hostname
        if not text.isprintable():
            raise ValueError("it holds characters that are not printable")
    except (ValueError, TypeError) as error:
        raise ConnectFailedError("the server", f"not a URL: {safe_text(str(error))}") from None
    if not host:
        raise ConnectFailedError(format_url(text), "the URL names no host")
    if port is not None and port not in _PORTS:
        raise ConnectFailedError(format_url(text), f"expected a port from 1 to {_PORTS[-1]}")
    return urlunsplit(split._replace(fragment=""))


def join_urls(url: str, reference: str) -> str | None:
    """Resolve a reference relative to a URL; `None` if it is malformed."""
    with suppress(ConnectFailedError, ValueError):
        return checked_url(urljoin(url, reference))
    return None


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    split = urlsplit(url)
    return split.scheme, split.hostname, split.port or _DEFAULT_PORTS.get(split.scheme)
