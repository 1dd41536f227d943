"""What the client reads of a response, whoever made the request; and how it is told of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Protocol

from ...foreign_text import safe_text
from ...framing.http_headers import media_type

if TYPE_CHECKING:
    import httpx2


class Response(Protocol):
    """A response whose body is not read yet; httpx2's own is one."""

    @property
    def status_code(self) -> int:
        """Its status."""
        ...

    @property
    def reason_phrase(self) -> str:
        """What the status is called; may be empty."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Its header fields; names may be given in any case."""
        ...

    @property
    def url(self) -> httpx2.URL:
        """Where the request went."""
        ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The parts of the body, as they come."""
        ...

    async def aclose(self) -> None:
        """Be done with it. Idempotent."""
        ...


def shown(url: httpx2.URL) -> str:
    """An address without what may be secret in it, credentials and query; cut if it is long."""
    return safe_text(str(url.copy_with(userinfo=b"", query=None, fragment=None)))


def same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether two addresses have scheme, host and port in common."""
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def kind_of(response: Response) -> str:
    """The media type of a response; empty if it names none."""
    return media_type(response.headers.get("content-type", ""))
