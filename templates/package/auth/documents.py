"""Metadata documents of protected resources and authorization servers.

Errors name the document and the member, and contain no text of the document.

Source: RFC 9728, sections 2 and 3.3; RFC 8414, sections 2 and 3.3; OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import msgspec

from ..errors import AuthorizationError

DOCUMENT_LIMIT = 512 * 1024
"""Longest document, or other response of an authorization server, in bytes."""


@dataclass(frozen=True)
class ResourceMetadata:
    """The metadata of a protected resource.

    Attributes:
        resource: The resource identifier, as written.
        authorization_servers: The issuers, as written; at least one.
        scopes_supported: The supported scopes; `None` if absent.
    """

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...] | None


@dataclass(frozen=True)
class AuthorizationServerMetadata:
    """The metadata of an authorization server.

    Attributes:
        issuer: The issuer identifier, as written.
        members: The whole document.
    """

    issuer: str
    members: Mapping[str, Any]

    def strings(self, name: str) -> tuple[str, ...] | None:
        """A member that is an array of strings, without items of other types; `None` if absent."""
        return _strings(self.members.get(name))

    def is_true(self, name: str) -> bool:
        """Whether a member is `true`."""
        return self.members.get(name) is True


def read_object(body: bytes, where: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        AuthorizationError: The body is not a JSON object.
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
        AuthorizationError: The document is malformed, or names no authorization server.
    """
    members = read_object(body, where)
    resource = members.get("resource")
    if not isinstance(resource, str):
        raise AuthorizationError(f"{where}: expected the string `resource`")
    servers = _strings(members.get("authorization_servers"))
    if not servers:
        raise AuthorizationError(f"{where}: expected an authorization server")
    return ResourceMetadata(resource, servers, _strings(members.get("scopes_supported")))


def read_server_metadata(body: bytes, where: str, issuer: str) -> AuthorizationServerMetadata:
    """The metadata of an authorization server.

    Args:
        body: The document.
        where: The document, for errors.
        issuer: The issuer that the document must name, character by character.

    Raises:
        AuthorizationError: The document is malformed, or names another issuer.
    """
    members = read_object(body, where)
    if members.get("issuer") != issuer:
        raise AuthorizationError(f"{where}: `issuer` is not the expected issuer")
    return AuthorizationServerMetadata(issuer, members)


def _strings(value: object) -> tuple[str, ...] | None:
    if not _is_array(value):
        return None
    return tuple(each for each in value if isinstance(each, str))


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list)
