"""Rules for the URLs and addresses that authorization may connect to.

Most URLs that a client fetches come from an MCP server that is not trusted yet. These URLs must be
https, and must not lead into networks that the MCP server itself cannot reach (server-side request
forgery). The text of a URL is checked here; each address that the host resolves to is checked again
when a connection is opened.

Source: basic/security_best_practices (server-side request forgery, URL handling); RFC 6890 and the
IANA registries of special-purpose addresses; RFC 4291; RFC 5214 (ISATAP); RFC 6052 (NAT64).
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from ..errors import AuthorizationError
from ..framing.http_hosts import (
    AddressRules,
    IpAddress,
    check_token_target,
    is_loopback,
    literal_address,
    split_url,
)

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

URL_CHARACTERS = 8192
"""Longest URL that is accepted from a document, a challenge or an authorization server."""

_UNRESERVED = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@&+,=%]+\Z")
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?\Z")
_NUMBER = re.compile(r"([0-9]+|0[xX][0-9A-Fa-f]*)\Z")


def _networks(*networks: str) -> tuple[IpNetwork, ...]:
    return tuple(map(ipaddress.ip_network, networks))


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # other IPv6 addresses are reserved
_ISATAP = (0x00005EFE, 0x02005EFE)  # begin interface identifiers that end in an IPv4 address
_PRIVATE = _networks("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
_RESERVED = _networks(  # the `is_global` of some versions of Python lets these pass
    *("192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15"),
    *("2001:2::/48", "2001:10::/28", "2001:db8::/32", "3fff::/20"),
)


class AddressCheck:
    """Checks the URLs and addresses for one MCP server.

    Args:
        server_url: The URL of the MCP server. Loopback is allowed only if this is loopback.
        rules: The addresses that are allowed besides public https addresses.
    """

    def __init__(self, server_url: str, rules: AddressRules) -> None:
        self._rules = rules
        self._loopback = is_loopback(urlsplit(server_url).hostname or "")

    def check(self, url: object, name: str) -> str:
        """Check that a URL may be fetched or opened in a browser, and return the URL.

        Args:
            url: The value in a document or a header.
            name: The member or parameter with the value, for the error.

        Raises:
            AuthorizationError: The URL is not allowed. The text contains the name, not the URL.
        """
        if not isinstance(url, str) or _UNRESERVED.match(url) is None:
            raise AuthorizationError(f"{name}: expected a URL without special characters")
        if len(url) > URL_CHARACTERS:
            raise AuthorizationError(f"{name}: expected at most {URL_CHARACTERS} characters")
        split = _split_foreign(url, name)
        if "@" in split.netloc:
            raise AuthorizationError(f"{name}: expected a URL without credentials")
        host = split.hostname or ""
        if not is_plain_host(host) or ("[" in split.netloc and ":" not in host):
            raise AuthorizationError(f"{name}: expected a URL with a name or an address as host")
        if split.scheme == "http" and not self._may_be_plain(host):
            raise AuthorizationError(f"{name}: expected https; http is for loopback only")
        address = literal_address(host)
        if address is not None and not self._permits(address):
            raise AuthorizationError(f"{name}: the URL leads to a private or reserved address")
        if address is None and is_loopback(host) and not self._loopback:
            raise AuthorizationError(f"{name}: the URL leads to this machine")
        return url

    def check_server(self, url: str) -> None:
        """Check that a token may be sent to an MCP server; see `check_token_target`."""
        check_token_target(url, self._rules)

    def permits(self, address: str) -> bool:
        """Whether a connection to an address that a host resolved to is allowed."""
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
            if not all(self._permits(each) for each in _embedded_addresses(address)):
                return False
            if address.ipv4_mapped is not None or address in _NAT64:
                return True
        if address.is_loopback:
            return self._loopback
        if any(address in network for network in _PRIVATE):
            return self._rules.private
        return _is_public(address)


def _is_public(address: IpAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if any(address in network for network in _RESERVED):
        return False
    return address.is_global and not address.is_multicast


def checked_https_url(name: str, url: str) -> str:
    """Check a configured URL that receives tokens, or whose host is trusted, and return the URL.

    Args:
        name: The name of the setting, for the error.
        url: The value of the setting.

    Raises:
        ValueError: The URL is neither https nor http to loopback, or has a fragment or credentials.
    """
    try:
        split = split_url(url)
    except ValueError:
        raise ValueError(f"{name}: expected an https URL with a host, got {url!r}") from None
    if split.fragment or "@" in split.netloc:
        raise ValueError(
            f"{name}: expected an https URL without fragment and credentials, got {url!r}"
        )
    if split.scheme != "https" and not is_loopback(split.hostname or ""):
        raise ValueError(f"{name}: expected https, or http to a loopback address, got {url!r}")
    return url


def _split_foreign(url: str, name: str) -> SplitResult:
    """See `split_url`."""
    try:
        return split_url(url)
    except ValueError as error:
        raise AuthorizationError(f"{name}: {error}") from None


def is_plain_host(host: str) -> bool:
    """Whether a host is an IP address, or a name that no library interprets as an IP address.

    Libraries and resolvers decode `%`, drop zone ids and convert digits and dots of Unicode in
    different ways, and may then connect to another host than the text shows. Some interpret names
    whose last label is a number as IPv4 addresses (WHATWG URL Standard, "ends in a number").
    """
    if "%" in host:
        return False
    if literal_address(host) is not None:
        return True
    last = host.rstrip(".").rpartition(".")[2]
    return _NAME.match(host) is not None and _NUMBER.match(last) is None


def _embedded_addresses(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that an IPv6 address embeds, to which a gateway would connect."""
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    is_isatap = int(address) >> 32 & 0xFFFFFFFF in _ISATAP
    if address in _NAT64 or is_isatap:
        embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in embedded if each is not None]
