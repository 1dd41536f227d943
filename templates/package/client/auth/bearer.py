"""Authorization by an access token that the application obtains itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING

from ...auth.address_rules import PUBLIC, AddressCheck, AddressRules
from ...errors import AuthorizationError
from ...facts import Revisions
from ...framing.http_headers import is_visible_ascii
from ...transports.http.http_libraries import same_origin

if TYPE_CHECKING:
    from ...transports.http.http_client import Authorizer
    from ...transports.http.http_libraries import Response


class Bearer:
    """Sends an access token that the application obtains itself.

    Args:
        token: The token, or a function that returns it; may be a coroutine function. It is called
            again if the server refuses the token.
        addresses: Whether servers without TLS are allowed.
    """

    extensions: tuple[str, ...] = ()

    def __init__(
        self,
        token: str | Callable[[], str | Awaitable[str]],
        *,
        addresses: AddressRules = PUBLIC,
    ) -> None:
        self._token = token
        self._addresses = addresses

    def __repr__(self) -> str:
        return "<Bearer>"

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """See `Authorization.authorizer`."""
        AddressCheck(url, self._addresses).check_server(url)
        return _BearerAuthorizer(self._token, url)


class _BearerAuthorizer:
    """Adds the token of the application; see `Authorizer`."""

    def __init__(self, token: str | Callable[[], str | Awaitable[str]], url: str) -> None:
        self._token = token
        self._url = url
        self._fields: Mapping[str, str] = {}

    async def fields(self, method: str, url: str) -> Mapping[str, str]:
        """See `Authorizer.fields`."""
        if url != self._url and not same_origin(url, self._url):
            return {}
        if not self._fields:
            value = self._token if isinstance(self._token, str) else self._token()
            token = await value if isawaitable(value) else value
            if not is_visible_ascii(token):
                raise AuthorizationError("token: expected visible ASCII, which a header can carry")
            self._fields = {"Authorization": f"Bearer {token}"}
        return self._fields

    async def wants_retry(
        self,
        response: Response,
        sent: Mapping[str, str],
        request: tuple[str, str, bytes | None],
        attempts: int,
    ) -> bool:
        """See `Authorizer.wants_retry`."""
        if response.status != 401 or attempts or isinstance(self._token, str):
            return False
        if sent == self._fields:
            self._fields = {}
        return bool(await self.fields(request[0], request[1]))

    async def close(self) -> None:
        """See `Authorizer.close`."""
