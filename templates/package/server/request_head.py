"""The head of an HTTP request, as handlers read it: each part is computed on access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cached_property
from typing import Protocol


class ReceivedRequest(Protocol):
    """The head of an HTTP request as received.

    Attributes:
        method: The method, in upper case.
        path: The path below the mount point.
        headers: Header fields by lower-case name.
    """

    method: str
    path: str
    headers: Mapping[bytes, bytes]

    @property
    def query(self) -> bytes:
        """The query string, undecoded."""
        ...

    @property
    def client(self) -> tuple[str, int] | None:
        """Address of the client, if known."""
        ...


HTTP_REQUEST: ContextVar[ReceivedRequest | None] = ContextVar("http_request", default=None)
"""The HTTP request that the current task serves; `None` over other transports."""


def current_request() -> RequestHead | None:
    """The head of the HTTP request that the current task serves; `None` over other transports."""
    received = HTTP_REQUEST.get()
    return None if received is None else RequestHead(received)


class HttpContext:
    """The HTTP request of a context; a base of `Context`."""

    __slots__ = ()

    @property
    def http_request(self) -> RequestHead | None:
        """The HTTP request: headers, query, cookies and client; `None` over other transports."""
        return current_request()


class HeaderFields(Mapping[str, str]):
    """Header fields by case-insensitive name; repeated fields are joined by commas.

    Args:
        fields: By lower-case name, as received.
    """

    def __init__(self, fields: Mapping[bytes, bytes]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower().encode("latin-1", "replace")].decode("latin-1").strip()

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        """The names only: values may be credentials."""
        return f"<{type(self).__name__} {', '.join(self)}>"


class RequestHead:
    """The head of the HTTP request that carried a message.

    Over HTTP+SSE it is the head of the request that opened the stream.

    Args:
        received: The request.

    Attributes:
        method: The method, in upper case.
        path: The path below the mount point.
        headers: Header fields by case-insensitive name.
        client: Address and port of the client as the ASGI server reports them: behind a proxy,
            those of the proxy unless the server is configured to trust its header fields.
    """

    def __init__(self, received: ReceivedRequest) -> None:
        self.method = received.method
        self.path = received.path
        self.headers = HeaderFields(received.headers)
        self.client = received.client
        self._query = received.query

    @property
    def query_string(self) -> str:
        """The query of the URL, undecoded."""
        return self._query.decode("latin-1")

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query; of a repeated name, the last value."""
        from urllib.parse import parse_qsl  # loads slowly, and few servers need it

        return dict(parse_qsl(self.query_string, keep_blank_values=True))

    @cached_property
    def cookies(self) -> Mapping[str, str]:
        """The cookies by name, without quotes around values (RFC 6265); first of a name wins."""
        cookies: dict[str, str] = {}
        for pair in self.headers.get("cookie", "").split(";"):
            name, equals, value = pair.partition("=")
            if equals:
                cookies.setdefault(name.strip(), value.strip().strip('"'))
        return cookies

    def __repr__(self) -> str:
        """The request without query and header values, which may hold credentials."""
        return f"<{type(self).__name__} {self.method} {self.path}>"
