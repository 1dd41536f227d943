"""Identifiers of resources and issuers, and lists of scopes.

For identifiers: the canonical form, and the well-known URLs of their metadata. Resource
identifiers, issuers and request URLs are compared in canonical form, in which only scheme, host and
a path of a single slash are normalized. All other text is kept, because identifiers are sent and
compared as they were written.

Source: basic/authorization (canonical server URI, protected resource metadata discovery,
authorization server metadata discovery); RFC 3986, section 6.2; RFC 8414, section 3.1; RFC 9728,
section 3.1; OpenID Connect Discovery 1.0, section 4; RFC 6749, section 3.3 (scopes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit, urlunsplit

from ..foreign_text import is_scope

PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"

OFFLINE_ACCESS = "offline_access"
"""The scope that requests a refresh token. It concerns client and authorization server only, so
resource servers do not list it. Source: OpenID Connect Core, section 11."""

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_DOT_SEGMENT = re.compile(r"(\.|%2e){1,2}", re.IGNORECASE)


def canonical_uri(uri: str) -> str:
    """A URI with scheme and host in lower case, and without a path that is a single slash.

    Text without `://` is returned unchanged.
    """
    scheme, authority, rest = _split(uri)
    if not authority:
        return uri
    return f"{scheme.lower()}://{authority.lower()}{'' if rest == '/' else rest}"


def comparable_uri(uri: str) -> str:
    """The canonical URI, without the default port of its scheme: equal for equivalent URIs."""
    canonical = canonical_uri(uri)
    scheme, authority, rest = _split(canonical)
    port = _DEFAULT_PORTS.get(scheme)
    if port is None or not authority.endswith(port):
        return canonical
    return f"{scheme}://{authority.removesuffix(port)}{rest}"


def canonical_resource(url: str) -> str:
    """The resource identifier of a server, by its URL: the canonical URI without fragment."""
    return canonical_uri(url.partition("#")[0])


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, in lower case, without credentials and without a slash.

    Raises:
        ValueError: The URL is malformed.
    """
    split = urlsplit(url)
    return urlunsplit((split.scheme, split.netloc.rpartition("@")[2].lower(), "", "", ""))


def includes_url(resource: str, url: str) -> bool:
    """Whether a resource identifier is that of a server, or of a parent of the server.

    That is a URL of the same origin, whose path is the path of the server or its first segments, by
    whole segments; one slash at the end of either does not count. Nothing of a path is decoded, and
    a path with dot segments has no parent but its origin. An identifier with a query has to equal
    the URL, and a fragment is never part of one.

    Args:
        resource: The resource identifier.
        url: The URL of the server; its fragment is ignored.
    """
    whole = comparable_uri(url.partition("#")[0])
    parent = comparable_uri(resource)
    if parent in (whole, whole.partition("?")[0]):
        return True
    scheme, authority, path = _split(parent)
    own_scheme, own_authority, own_path = _split(whole.partition("?")[0])
    if not authority or (scheme, authority) != (own_scheme, own_authority):
        return False
    if "?" in path or "#" in path:
        return False
    parents, segments = path.removesuffix("/").split("/"), own_path.removesuffix("/").split("/")
    if len(parents) > 1 and any(_DOT_SEGMENT.fullmatch(each) for each in segments):
        return False
    return segments[: len(parents)] == parents


def protected_resource_url(resource: str) -> str:
    """The URL of the metadata of a protected resource: the well-known suffix before path and query.

    Args:
        resource: The resource identifier, an absolute URL. A path that is a single slash is
            omitted, and so is a fragment.

    Raises:
        ValueError: The identifier is malformed.
    """
    split = urlsplit(resource)
    path = "" if split.path == "/" else split.path
    inserted = split._replace(netloc=split.netloc.rpartition("@")[2], fragment="")
    return urlunsplit(inserted._replace(path=PROTECTED_RESOURCE + path))


def protected_resource_urls(endpoint: str) -> tuple[str, ...]:
    """The URLs to try for the metadata of an MCP server that named no URL.

    Args:
        endpoint: The URL of the server.

    Returns:
        The URL with the path of the endpoint, then the URL of the whole host. An endpoint without a
        path has only the latter.

    Raises:
        ValueError: The endpoint is malformed.
    """
    root = origin_of(endpoint) + PROTECTED_RESOURCE
    split = urlsplit(endpoint)
    if split.path in ("", "/") and not split.query:
        return (root,)
    return (protected_resource_url(urlunsplit(split._replace(netloc=split.netloc.lower()))), root)


def authorization_server_urls(issuer: str) -> tuple[str, ...]:
    """The possible URLs of the metadata of an authorization server, in the order to try.

    Args:
        issuer: The issuer identifier, an absolute URL. A trailing slash is omitted.

    Returns:
        The URL of RFC 8414, then those of OpenID Connect Discovery. For an issuer with a path, both
        insert the suffix before the path, and OpenID Connect also appends the suffix. The root of
        the host is not tried.

    Raises:
        ValueError: The identifier is malformed.
    """
    origin = origin_of(issuer)
    path = urlsplit(issuer).path.removesuffix("/")
    inserted = (origin + AUTHORIZATION_SERVER + path, origin + OPENID + path)
    return (*inserted, origin + path + OPENID) if path else inserted


def _split(uri: str) -> tuple[str, str, str]:
    """Scheme, authority, and the text after it, as written; no authority without `://`."""
    scheme, _, behind = uri.partition("://")
    end = min((at for at in map(behind.find, "/?#") if at >= 0), default=len(behind))
    return scheme, behind[:end], behind[end:]


def parse_scopes(text: str) -> tuple[str, ...]:
    """The scopes of a `scope` parameter, in order. Malformed scopes are ignored."""
    return union_of_scopes(text.split(" "))


def union_of_scopes(*several: Iterable[str]) -> tuple[str, ...]:
    """The union of lists of scopes, in order of first occurrence. Malformed scopes are ignored."""
    return tuple(dict.fromkeys(scope for scopes in several for scope in scopes if is_scope(scope)))
