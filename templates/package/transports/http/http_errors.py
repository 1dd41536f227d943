"""What goes wrong below HTTP, as errors of this package, and why: libraries are vague about that.

The operating system and TLS know the reason, and what they say lies under what others made of it.
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from ...errors import ConnectFailedError, LocalProtocolError, ResponseLostError
from ...foreign_text import safe_text
from .response import shown

if TYPE_CHECKING:
    import httpx2


class Httpx2Errors:
    """Knows the errors of httpx2.

    Args:
        library: The module.
        timeout: The limits of its requests.
        own: Whether they are made by a client of our making, which heeds the environment.
    """

    def __init__(self, library: Any, timeout: Any, *, own: bool) -> None:
        self._library = library
        self._timeout = timeout
        self._own = own

    @contextmanager
    def within(self, url: httpx2.URL) -> Generator[None]:
        """Within, what httpx2 raises becomes an error of this package.

        Raises:
            ConnectFailedError: No connection; nothing was sent.
            AnswerLostError: The connection broke.
            LocalProtocolError: A header field can't be sent.
        """
        library = self._library
        try:
            yield
        except (
            library.ConnectError,
            library.ConnectTimeout,
            library.PoolTimeout,
            library.ProxyError,
            library.UnsupportedProtocol,
        ) as error:
            asked = _asked(error, url)
            reason = f"{self._reason(error)}{self._by_proxy(asked)}"
            raise ConnectFailedError(shown(asked), reason) from error
        except library.LocalProtocolError:
            # Its text has the value, which may be a secret.
            raise LocalProtocolError(f"{shown(url)}: a header field can't be sent") from None
        except (library.RequestError, library.StreamError, OSError, ExceptionGroup) as error:
            raise ResponseLostError(
                f"{shown(_asked(error, url))}: the connection broke before the answer was there: "
                f"{self._reason(error)}"
            ) from error

    def _reason(self, error: Exception) -> str:
        """Why httpx2 failed; its timeouts say nothing of themselves."""
        library, timeout = self._library, self._timeout
        match error:
            case library.ConnectTimeout():
                return f"none within {timeout.connect:g} s"
            case library.PoolTimeout():
                return f"the HTTP client had none free within {timeout.pool:g} s"
            case library.WriteTimeout():
                return f"nothing more was taken within {timeout.write:g} s"
            case _:
                return reason_of(error)

    def _by_proxy(self, url: httpx2.URL) -> str:
        """A word on whom there is no connection to, if it may not be the server."""
        named = self._own and has_proxy(url.scheme)
        return " (the environment names a proxy)" if named else ""


def has_proxy(scheme: str) -> bool:
    """Whether the environment names a proxy for a kind of addresses."""
    return not getproxies().keys().isdisjoint((scheme, "all"))


def reason_of(error: Exception) -> str:
    """The reason for a failure, as the operating system or TLS gives it, if it was one of those."""
    reasons = dict.fromkeys(_words(cause) for cause in _causes(error))
    return "; ".join(reasons) or safe_text(str(error)) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[OSError]:
    """The system's errors that one stands for; several where several addresses were tried."""
    several: Iterable[BaseException] | None = getattr(error, "exceptions", None)  # of a group
    if several is not None:
        for each in several:
            yield from _causes(each)
    elif isinstance(error, OSError) and error.errno is not None:
        yield error
    elif error is not None:
        # "from None" stands in the place of what it came from; any other context is chance.
        replaced = error.__context__ if error.__suppress_context__ else None
        yield from _causes(error.__cause__ or replaced)


def _words(error: OSError) -> str:
    number = error.errno or 0
    if number in errno.errorcode and not isinstance(error, ssl.SSLError) and os.name == "posix":
        return os.strerror(number)  # elsewhere the numbers of sockets have no names
    return safe_text(error.strerror or str(error))


def _asked(error: Exception, url: httpx2.URL) -> httpx2.URL:
    """Where a request went that failed: an authentication may make some of its own."""
    try:
        request: httpx2.Request | None = getattr(error, "request", None)
    except RuntimeError:  # an error of httpx2's that has none
        return url
    return url if request is None else request.url
