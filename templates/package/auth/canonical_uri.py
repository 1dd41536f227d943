"""Canonical URIs: resource identifiers, issuers and request URLs are compared in this form.

Only scheme, host and a path of a single slash are normalized. All other text is kept, because
identifiers are sent and compared as they were written.

Source: basic/authorization (canonical server URI); RFC 3986, section 6.2.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


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


def _split(uri: str) -> tuple[str, str, str]:
    """Scheme, authority, and everything behind it, as written; no authority without `://`."""
    scheme, _, behind = uri.partition("://")
    end = min((at for at in map(behind.find, "/?#") if at >= 0), default=len(behind))
    return scheme, behind[:end], behind[end:]
