"""URLs in error texts, and errors of connections with the reason that the system or TLS gives.

HTTP libraries wrap these reasons in exceptions with vague texts.
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterable, Iterator
from urllib.parse import urljoin, urlsplit, urlunsplit

from ...errors import ConnectFailedError, ResponseLostError
from ...foreign_text import safe_text

PORTS = range(1, 65536)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def shown(url: str) -> str:
    """An address for an error text: shortened, without credentials, query and fragment."""
    try:
        scheme, netloc, path, _, _ = urlsplit(url)
    except ValueError:
        return safe_text(url.partition("?")[0].rpartition("@")[2])
    return safe_text(urlunsplit((scheme, netloc.rpartition("@")[2], path, "", "")))


def checked_url(text: str) -> str:
    """An address, without its fragment.

    Raises:
        ConnectFailedError: The text is no address with a host.
    """
    try:
        split = urlsplit(text)
        port, host = split.port, split.hostname
        if not text.isprintable():
            raise ValueError("it holds characters that are not printable")
    except (ValueError, TypeError) as error:
        raise ConnectFailedError("the server", f"not a URL: {safe_text(str(error))}") from None
    if not host:
        raise ConnectFailedError(shown(text), "the URL names no host")
    if port is not None and port not in PORTS:
        raise ConnectFailedError(shown(text), f"expected a port from 1 to {PORTS[-1]}")
    return urlunsplit(split._replace(fragment=""))


def joined(url: str, reference: str) -> str | None:
    """The URL of a reference relative to another URL; `None` if malformed."""
    try:
        return checked_url(urljoin(url, reference))
    except (ConnectFailedError, ValueError):
        return None


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses have scheme, host and port in common."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    split = urlsplit(url)
    return split.scheme, split.hostname, split.port or _DEFAULT_PORTS.get(split.scheme)


def lost(url: str, error: Exception, reason: str = "") -> ResponseLostError:
    """The error for a connection that broke."""
    return ResponseLostError(
        f"{shown(url)}: the connection broke before the answer was there: "
        f"{reason or reason_of(error)}"
    )


def reason_of(error: Exception) -> str:
    """The reason for a failure, in the words of the operating system or TLS if they caused it."""
    reasons = dict.fromkeys(_words(cause) for cause in _causes(error))
    return "; ".join(reasons) or safe_text(str(error)) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[OSError]:
    """The system's errors below an exception; several where several addresses were tried."""
    several: Iterable[BaseException] | None = getattr(error, "exceptions", None)  # of a group
    if several is not None:
        for each in several:
            yield from _causes(each)
    elif isinstance(error, OSError) and error.errno is not None:
        yield error
    elif error is not None:
        # "from None" replaces the exception it came from; any other context is chance.
        replaced = error.__context__ if error.__suppress_context__ else None
        yield from _causes(error.__cause__ or replaced)


def _words(error: OSError) -> str:
    number = error.errno or 0
    if number in errno.errorcode and not isinstance(error, ssl.SSLError) and os.name == "posix":
        return os.strerror(number)  # elsewhere the numbers of sockets have no names
    return safe_text(error.strerror or str(error))
