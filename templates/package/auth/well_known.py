"""Well-known URLs: where metadata of a protected resource and of an authorization server lies.

Nothing is normalized: an identifier is compared as it was written, so its text is kept.

Source: RFC 9728, section 3.1; RFC 8414, section 3.1; OpenID Connect Discovery 1.0, section 4;
basic/authorization (protected resource metadata discovery, authorization server metadata
discovery).
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


class ProtectedResourceUrl(NamedTuple):
    """Where a document about a protected resource may lie.

    Attributes:
        url: The address of the document.
        resource: The identifier that the document has to give as `resource`.
    """

    url: str
    resource: str


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, in lower case, without credentials and without a slash.

    Raises:
        ValueError: The address is malformed.
    """
    split = urlsplit(url)
    return urlunsplit((split.scheme, split.netloc.rpartition("@")[2].lower(), "", "", ""))


def protected_resource_url(resource: str) -> str:
    """The address of the metadata of a protected resource: the suffix before path and query.

    Args:
        resource: The identifier of the resource, an absolute URL. A slash right after the host that
            ends the identifier is dropped; a fragment is, too.

    Raises:
        ValueError: The identifier is malformed.
    """
    split = urlsplit(resource)
    path = "" if split.path == "/" else split.path
    inserted = split._replace(netloc=split.netloc.rpartition("@")[2], fragment="")
    return urlunsplit(inserted._replace(path=PROTECTED_RESOURCE + path))


def protected_resource_urls(endpoint: str) -> tuple[ProtectedResourceUrl, ...]:
    """Where a client looks for the metadata of a server that named no address.

    Args:
        endpoint: The URL of the server.

    Returns:
        The form with the path of the endpoint, then the one of the whole host. An endpoint without
        a path has the second only.

    Raises:
        ValueError: The endpoint is malformed.
    """
    origin = origin_of(endpoint)
    root = ProtectedResourceUrl(origin + PROTECTED_RESOURCE, origin)
    split = urlsplit(endpoint)
    if split.path in ("", "/") and not split.query:
        return (root,)
    resource = urlunsplit(
        split._replace(netloc=split.netloc.rpartition("@")[2].lower(), fragment="")
    )
    return (ProtectedResourceUrl(protected_resource_url(resource), resource), root)


def authorization_server_urls(issuer: str) -> tuple[str, ...]:
    """Where the metadata of an authorization server may lie, in the order of trying.

    Args:
        issuer: The issuer identifier, an absolute URL. A slash that ends it is dropped.

    Returns:
        RFC 8414 before OpenID Connect Discovery. For an issuer with a path, both insert the suffix
        before the path, and OpenID also appends it; the root of the host is not tried.

    Raises:
        ValueError: The identifier is malformed.
    """
    origin = origin_of(issuer)
    path = urlsplit(issuer).path.removesuffix("/")
    inserted = (origin + AUTHORIZATION_SERVER + path, origin + OPENID + path)
    return (*inserted, origin + path + OPENID) if path else inserted
