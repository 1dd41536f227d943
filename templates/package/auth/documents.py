"""Metadata documents of a protected resource and of an authorization server, read and checked.

Errors name the address and the member, and repeat nothing of a document.

Source: RFC 9728, sections 2 and 3.3; RFC 8414, sections 2 and 3.3; OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import msgspec

from ..errors import AuthorizationError

DOCUMENT_LIMIT = 512 * 1024
"""Bytes of a document or of another response of an authorization server."""


@dataclass(frozen=True)
class ResourceMetadata:
    """What a protected resource says of itself.

    Attributes:
        resource: Its identifier, as it was written.
        authorization_servers: Issuers, as they were written.
        scopes_supported: Its scopes; `None` if it lists none.
    """

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...] | None


@dataclass(frozen=True)
class IssuerMetadata:
    """What an authorization server says of itself. Absent members are `None` or empty.

    Attributes:
        issuer: Its identifier, as it was written.
        members: The whole document.
    """

    issuer: str
    members: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A member that is a string."""
        value = self.members.get(name)
        return value if isinstance(value, str) else None

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A member that is an array of strings; others in it are left out."""
        return _texts(self.members.get(name))

    def says(self, name: str) -> bool:
        """Whether a member is `true`."""
        return self.members.get(name) is True


def read_object(body: bytes, where: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        AuthorizationError: The body is none.
    """
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AuthorizationError(f"{where}: expected a JSON object") from None
    if not _is_object(value):
        raise AuthorizationError(f"{where}: expected a JSON object")
    return value


def read_resource_metadata(body: bytes, where: str) -> ResourceMetadata:
    """The metadata of a protected resource.

    Raises:
        AuthorizationError: It is malformed, or names no authorization server.
    """
    members = read_object(body, where)
    resource = members.get("resource")
    if not isinstance(resource, str):
        raise AuthorizationError(f"{where}: expected the string `resource`")
    servers = _texts(members.get("authorization_servers"))
    if not servers:
        raise AuthorizationError(f"{where}: expected an authorization server")
    return ResourceMetadata(resource, servers, _texts(members.get("scopes_supported")))


def read_issuer_metadata(body: bytes, where: str, issuer: str) -> IssuerMetadata:
    """The metadata of an authorization server.

    Args:
        body: The document.
        where: Its address, for errors.
        issuer: The identifier that it has to give, to the letter.

    Raises:
        AuthorizationError: It is malformed, or is one of another issuer.
    """
    members = read_object(body, where)
    if members.get("issuer") != issuer:
        raise AuthorizationError(f"{where}: `issuer` is not the issuer that was asked for")
    return IssuerMetadata(issuer, members)


def same_resource(given: str, expected: str) -> bool:
    """Whether an identifier of a resource is the expected one.

    Scheme and host are compared without case, and a host without path equals one with a slash;
    nothing else is normalized.
    """
    return _canonical(given) == _canonical(expected)


def canonical_resource(url: str) -> str:
    """The identifier of a server by its URL: no fragment, scheme and host in lower case, and no
    slash where there is no path.

    Source: basic/authorization (canonical server URI).
    """
    return _canonical(url.partition("#")[0])


def _canonical(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    path = "" if rest[end:] == "/" else rest[end:]
    return f"{scheme.lower()}://{rest[:end].lower()}{path}"


def _texts(value: object) -> tuple[str, ...] | None:
    if not _is_array(value):
        return None
    return tuple(each for each in value if isinstance(each, str))


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list)
