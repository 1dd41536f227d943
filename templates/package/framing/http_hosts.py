"""Hosts in URLs of HTTP: addresses in all their forms, loopback, and where a token may be sent."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ..errors import AuthorizationError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


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
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None
