"""What adds an access token to HTTP requests, and gets another one when a server wants that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:  # what only names a type is not loaded for those without authorization
    from ...facts import Revisions
    from .http_libraries import Response


class Authorizer(Protocol):
    """The token of one connection."""

    async def fields(self, method: str, url: str) -> Mapping[str, str]:
        """The header fields of a request; none if there is no token yet.

        Raises:
            AuthorizationError: The token has ended, and no other could be had.
        """
        ...

    async def wants_retry(
        self,
        response: Response,
        sent: Mapping[str, str],
        request: tuple[str, str, bytes | None],
        attempts: int,
    ) -> bool:
        """Look at a response; whether the request is to be sent again with other fields.

        Args:
            response: The response, whose body has not been read.
            sent: What `fields` gave for the request.
            request: Its method, address and body.
            attempts: How often the request was sent before.

        Raises:
            AuthorizationError: The server wants another token, and none could be had.
        """
        ...

    async def close(self) -> None:
        """Close the connections for authorization. Idempotent."""
        ...


@runtime_checkable
class Authorization(Protocol):
    """How a client comes to a token: what `connect` takes as `auth`.

    Attributes:
        extensions: Identifiers of the extensions that a client with it declares.
    """

    extensions: tuple[str, ...]

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """The authorizer of a connection to a server.

        Args:
            url: The server.
            revisions: The revisions that the client offers.
        """
        ...
