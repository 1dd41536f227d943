"""Which addresses a client fetches for authorization: those that no server may misuse it for.

A server that is not trusted yet names most of these URLs. They have to be https and may not lead
into networks that the server itself can't reach. The text is checked here, and every address that a
name resolves to is checked again when a connection is made.

Source: security best practices (server-side request forgery, URL handling).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ..errors import AuthorizationError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_PLAIN = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@&+,=%]+\Z")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PRIVATE = tuple(
    ipaddress.ip_network(network)
    for network in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "fc00::/7",
    )
)


@dataclass(frozen=True)
class AddressRules:
    """What may be fetched beyond the rules, for networks of one's own.

    Attributes:
        private: Whether addresses of private networks are allowed; link-local ones never are.
        plain_http: Whether http is allowed for hosts other than loopback.
    """

    private: bool = False
    plain_http: bool = False


PUBLIC = AddressRules()
"""Nothing beyond the rules."""


class AddressCheck:
    """The rules for one MCP server.

    Args:
        server_url: The URL of the server. Loopback is allowed only if this is loopback.
        rules: What is allowed beyond.
    """

    def __init__(self, server_url: str, rules: AddressRules) -> None:
        self._rules = rules
        self._loopback = is_loopback(urlsplit(server_url).hostname or "")

    def check(self, url: object, member: str) -> str:
        """A URL that may be fetched, or opened in a browser.

        Args:
            url: What a document or a header gives.
            member: Where it comes from, for the error.

        Raises:
            AuthorizationError: It may not. The text names the member and does not repeat the URL.
        """
        if not isinstance(url, str) or _PLAIN.match(url) is None:
            raise AuthorizationError(f"{member}: expected a URL without special characters")
        split = split_url(url, member)
        if split.scheme == "http" and not self._may_be_plain(split.hostname or ""):
            raise AuthorizationError(f"{member}: expected https; http is for loopback only")
        address = literal_address(split.hostname or "")
        if address is not None and not self._permits(address):
            raise AuthorizationError(f"{member}: the URL leads to a private or reserved address")
        if address is None and is_loopback(split.hostname or "") and not self._loopback:
            raise AuthorizationError(f"{member}: the URL leads to this machine")
        return url

    def check_server(self, url: str) -> None:
        """Refuse to send a token to a server without TLS.

        Raises:
            AuthorizationError: The URL is not https, and the host is not loopback.
        """
        split = split_url(url, "the server's URL")
        plain = self._rules.plain_http or is_loopback(split.hostname or "")
        if split.scheme == "http" and not plain:
            raise AuthorizationError("the server's URL: expected https for authorization")
        if "@" in split.netloc:
            raise AuthorizationError("the server's URL: expected no credentials beside `auth`")

    def permits(self, address: str) -> bool:
        """Whether a connection may be made to an address that a name was resolved to."""
        try:
            return self._permits(ipaddress.ip_address(address))
        except ValueError:
            return False

    def _may_be_plain(self, host: str) -> bool:
        return self._rules.plain_http or (self._loopback and is_loopback(host))

    def _permits(self, address: IpAddress) -> bool:
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id is not None:
                return False
            if not all(self._permits(each) for each in _embedded(address)):
                return False
            if address.ipv4_mapped is not None:
                return True
        if address.is_loopback:
            return self._loopback
        if any(address in network for network in _PRIVATE):
            return self._rules.private
        return address.is_global and not address.is_multicast


def split_url(url: str, member: str) -> SplitResult:
    """The parts of an http or https URL with a host.

    Raises:
        AuthorizationError: It is none, or it holds credentials or a fragment of a port.
    """
    try:
        split = urlsplit(url)
        well_formed = split.port != 0 and bool(split.hostname)
    except ValueError:
        raise AuthorizationError(f"{member}: malformed URL") from None
    if split.scheme not in ("http", "https") or not well_formed:
        raise AuthorizationError(f"{member}: expected an http or https URL with a host")
    if "@" in split.netloc and member != "the server's URL":
        raise AuthorizationError(f"{member}: expected a URL without credentials")
    return split


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, is this machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = literal_address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address is not None and address.is_loopback


def literal_address(host: str) -> IpAddress | None:
    """The address that a host is written as, in any form that resolvers accept; `None` for a name.

    The forms are those of `inet_aton`: decimal, octal, hexadecimal, and fewer than four parts.
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


def _embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The addresses of version 4 that a gateway would take from one of version 6."""
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in embedded if each is not None]
