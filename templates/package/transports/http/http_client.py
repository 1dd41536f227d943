"""HTTP requests of the client: header fields, access tokens, redirects, refusals, limits.

Redirects are followed only if method and body are kept (307, 308) and the origin is the same:
credentials and session ids are sent to no other origin. An `Authorizer` adds an access token to
requests, and obtains a new token if a server requires it; `Bearer` gets it from the application.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from inspect import isawaitable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import anyio

from ...channel import MESSAGE_LIMIT
from ...errors import (
    AuthorizationError,
    ConnectFailedError,
    ConnectionClosedError,
    HttpStatusError,
    LocalProtocolError,
    RemoteProtocolError,
    ResponseLostError,
    was_begun,
)
from ...facts import Revisions
from ...foreign_text import safe_text
from ...framing.http_headers import JSON, is_field_value, is_visible_ascii, media_type
from ...framing.http_hosts import (
    PUBLIC,
    AddressRules,
    check_token_target,
    format_url,
    join_urls,
    same_origin,
)
from ...framing.sse import MEDIA_TYPE
from ...protocol.jsonrpc import ParsedMessage
from ...runtime.time_limits import pausable
from .http_library import Httpx2Library, Library, Response

HeaderFields: TypeAlias = Mapping[str, str]
"""Header fields by name."""


class HttpxAuth(Protocol):
    """An authentication of httpx2, such as its `BasicAuth`; types need no httpx2 this way."""

    def async_auth_flow(self, request: Any, /) -> AsyncGenerator[Any, Any]: ...


class HttpxClient(Protocol):
    """An `AsyncClient` of httpx2."""

    def build_request(self, *args: Any, **options: Any) -> Any: ...

    async def send(self, *args: Any, **options: Any) -> Any: ...


OpenLibrary: TypeAlias = Callable[..., Library]
"""Opens an HTTP library, with the arguments of `Httpx2Library`."""

MakeFields: TypeAlias = Callable[[], Awaitable[HeaderFields]]
"""Returns the user's header fields; called before each HTTP request."""

POSTED: HeaderFields = {"Accept": f"{JSON}, {MEDIA_TYPE}", "Content-Type": JSON}
"""Header fields of a message."""

LISTENING: HeaderFields = {"Accept": MEDIA_TYPE, "Cache-Control": "no-store"}
"""Header fields of a request for a stream of events."""

REFUSAL_LIMIT = 1024 * 1024
"""Most bytes of the body of a refusal that are read."""

DISCARD_SECONDS = 5.0
"""Seconds for reading the body of a refusal, or a body that is not needed."""

REDIRECTS = 5
"""Redirects that are followed for one message."""

_SUCCESS = range(200, 300)
_REDIRECTION = range(300, 400)
_SECRET_PARTS = re.compile(r"(?<=//)[^/?#]*@|[?#].*", re.DOTALL)
_REASON = re.compile(
    r"""(?:^|[\s,])(error|error_description)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))""",
    re.IGNORECASE | re.DOTALL,
)
"""The parameters of a challenge that say why a token was refused (RFC 6750, section 3)."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_is_name = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_OF_LIBRARY = frozenset({"accept-encoding", "connection", "content-length", "transfer-encoding"})


class HttpRequests:
    """Sends HTTP requests; returns responses whose body has not been read.

    Args:
        headers: Returns the user's header fields; those of the protocol take precedence.
        auth: An authentication of httpx2.
        client: A client of httpx2, which is not closed. Its read timeout is ignored.
        connect_timeout: Seconds to open a connection.
        silence: Seconds for which a body, received or sent, may pause.
        body_seconds: Seconds for a received body, except an event stream.
        limit: Longest message accepted, in bytes.
        authorizer: Adds an access token to each request.
        open_library: Opens the HTTP library; `None` for httpx2.

    Attributes:
        limit: As passed.

    Raises:
        MissingExtraError: The HTTP library is not installed.
    """

    def __init__(
        self,
        headers: MakeFields | None = None,
        auth: HttpxAuth | None = None,
        client: HttpxClient | None = None,
        connect_timeout: float = 10.0,
        silence: float = 60.0,
        body_seconds: float = 600.0,
        limit: int = MESSAGE_LIMIT,
        authorizer: Authorizer | None = None,
        open_library: OpenLibrary | None = None,
    ) -> None:
        self.limit = limit
        self._authorizer = authorizer
        self._silence = silence
        self._body_seconds = body_seconds
        self._make_fields = headers
        self._auth = auth
        self._moved: dict[str, str] = {}
        opener: OpenLibrary = open_library or Httpx2Library
        self._library = opener(connect_timeout, silence, client=client, auth=auth)

    async def close(self) -> None:
        """Close all connections, except those of the user's client. Idempotent."""
        if self._authorizer is not None:
            await self._authorizer.close()
        await self._library.close()

    async def open(
        self, method: str, url: str, fields: HeaderFields, body: bytes | None = None
    ) -> Response:
        """Send a request and wait for the head of a successful response.

        Raises:
            ConnectFailedError: There is no connection; nothing was sent.
            HttpStatusError: The status is not successful.
            ResponseLostError: The connection broke before the head of the response arrived.
            LocalProtocolError: A header field can't be sent.
            RemoteProtocolError: The body has a content coding that was not accepted.
            AuthorizationError: The server requires a token, and none could be obtained.
        """
        library, authorizer = self._library, self._authorizer
        if self._moved:
            url = self._moved.get(url, url)
        redirects = attempts = 0
        token: HeaderFields = {}
        while redirects < REDIRECTS:
            every = fields if self._make_fields is None else await self._with_user_fields(fields)
            if authorizer is not None and (token := await authorizer.fields(method, url)):
                every = {**every, **token}
            response = await library.send(method, url, every, body)
            if coding := response.header("content-encoding"):
                await self._check_coding(response, coding)
            if authorizer is not None:
                request = (method, url, body)
                try:
                    retry = await authorizer.wants_retry(response, token, request, attempts)
                except BaseException:
                    await response.close()
                    raise
                if retry:
                    attempts += 1
                    await self.discard(response)
                    continue
            if response.status in _SUCCESS:
                return response
            url = await self._redirect_target(method, url, response, every)
            redirects += 1
        raise ConnectFailedError(format_url(url), f"more than {REDIRECTS} redirects")

    async def read(self, response: Response) -> bytes:
        """Read the whole body of a response; see `Response.read`."""
        return await response.read(self.limit, self._silence, self._body_seconds)

    async def discard(self, response: Response) -> bytes:
        """Finish a response; return the beginning of its body, read within a short timeout.

        The connection can be reused after a short body.
        """
        body = bytearray()

        async def take(part: bytes) -> None:
            if len(body) < REFUSAL_LIMIT:
                body.extend(part)
            else:
                scope.cancel()

        with anyio.move_on_after(DISCARD_SECONDS) as scope, suppress(ResponseLostError):
            await response.each_part(take)
        return bytes(body[:REFUSAL_LIMIT])

    async def unexpected_response(self, response: Response, expected: str) -> RemoteProtocolError:
        """Discard a response of an unexpected content type, and return the error for it."""
        await self.discard(response)
        came = safe_text(content_type(response)) or "no content type"
        return RemoteProtocolError(
            f"{format_url(response.url)}: expected {expected}, came HTTP {response.status}, {came}"
        )

    async def _with_user_fields(self, own: HeaderFields) -> HeaderFields:
        assert self._make_fields is not None
        user_fields = await self._make_fields()
        if not user_fields:
            return own
        taken = _OF_LIBRARY.union(name.lower() for name in own)
        try:
            fields = {name: user_fields[name] for name in user_fields if name.lower() not in taken}
            if not all(_is_name(name) and is_field_value(fields[name]) for name in fields):
                raise ValueError
        except (AttributeError, TypeError, ValueError):
            # The text does not quote the value, which may be a secret.
            raise LocalProtocolError("headers: a header field can't be sent") from None
        return {**fields, **own}

    async def _check_coding(self, response: Response, coding: str) -> None:
        codings = self._library.codings
        expected = "a body as it is" if codings == "identity" else codings
        if coding.strip().lower() not in ("", "identity", *codings.split(", ")):
            await response.close()
            raise RemoteProtocolError(
                f"{format_url(response.url)}: expected {expected}, came {safe_text(coding)}"
            )

    async def _redirect_target(
        self, method: str, url: str, response: Response, sent: HeaderFields
    ) -> str:
        """The target of a redirect that may be followed; raises for any other response."""
        target = None
        if response.status in (307, 308):
            target = join_urls(url, response.header("location") or "")
        if target is None or target == url or not same_origin(url, target):
            raise await self._refusal(method, url, response, sent)
        if response.status == 308:
            self._moved[url] = target
        await self.discard(response)
        return target

    async def _refusal(
        self, method: str, url: str, response: Response, sent: HeaderFields
    ) -> HttpStatusError:
        body = await self.discard(response)
        reason, location = response.reason, response.header("location")
        if location is not None and response.status in _REDIRECTION:
            reason = f"{safe_text(reason)} (a redirect to {_SECRET_PARTS.sub('', location)})"
        more = ""
        if response.status in (401, 403):
            more = "; ".join(self._authorization_advice(response, sent, body))
        failure = ParsedMessage.of(body).error_response()
        return HttpStatusError(
            f"{method} {format_url(url)}",
            response.status,
            reason,
            body,
            more,
            retry_seconds(response.header("retry-after"), datetime.now(UTC)),
            None if failure is None else was_begun(failure.data),
        )

    def _authorization_advice(
        self, response: Response, sent: HeaderFields, body: bytes
    ) -> list[str]:
        """The server's reasons for a refusal, and advice on `auth`, for the error text."""
        texts: dict[str, list[str]] = {}
        for name, quoted, plain in _REASON.findall(response.header("www-authenticate") or ""):
            text = _ESCAPE.sub(r"\1", quoted) or plain
            if text and text.encode() not in body:
                texts.setdefault(name.lower(), []).append(safe_text(text))
        reasons = texts.get("error_description") or texts.get("error") or []
        advice = [f"the server's reason: {reason}" for reason in dict.fromkeys(reasons[:2])]
        if response.status != 401:
            return advice
        if self._auth is not None or any(name.lower() == "authorization" for name in sent):
            return [*advice, "the credentials of auth= or headers= were refused"]
        return [*advice, "auth=OAuth('Name of the client') signs in, auth='...' sends a token"]


class Posts:
    """The messages that are being posted over one transport."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()

    @contextmanager
    def within(self, seconds: float, method: str | None, url: str) -> Generator[None]:
        """Limit the time of a post; `cancel` ends the post early.

        Args:
            method: The method of the message; `None` for a response.

        Raises:
            ResponseLostError: The time limit was exceeded.
            ConnectionClosedError: The post was cancelled by `cancel`.
        """
        with anyio.move_on_after(seconds) as scope, pausable(scope):
            self._scopes.add(scope)
            try:
                yield
                return
            finally:
                self._scopes.discard(scope)
        if anyio.current_time() >= scope.deadline:
            raise ResponseLostError(
                f"{format_url(url)}: {method or 'an answer'} was not accepted within {seconds:g} s"
            )
        raise ConnectionClosedError("the connection is closed")

    def cancel(self) -> None:
        """Cancel all posts."""
        for scope in self._scopes:
            scope.cancel()


def content_type(response: Response) -> str:
    """The media type of a response; empty if it has none."""
    return media_type(response.header("content-type") or "")


def retry_seconds(value: str | None, now: datetime) -> float | None:
    """The seconds that `Retry-After` states; `None` if it is absent or malformed.

    Args:
        value: The value of the field: seconds, or a date.
        now: The current time.

    Source: RFC 9110, section 10.2.3.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


class Authorizer(Protocol):
    """Authorizes the requests of one connection with a token."""

    async def fields(self, method: str, url: str) -> Mapping[str, str]:
        """The header fields with the token for a request; empty without a token.

        Raises:
            AuthorizationError: The token has expired, and no other could be obtained.
        """
        ...

    async def wants_retry(
        self,
        response: Response,
        sent: Mapping[str, str],
        request: tuple[str, str, bytes | None],
        attempts: int,
    ) -> bool:
        """Whether to send a request again; obtain another token if the response requires it.

        Args:
            response: The response, whose body has not been read.
            sent: The result of `fields` for the request.
            request: Method, address and body of the request.
            attempts: Number of earlier retries of the request.

        Raises:
            AuthorizationError: The server requires another token, and none could be obtained.
        """
        ...

    async def close(self) -> None:
        """Close the connections for authorization. Idempotent."""
        ...


@runtime_checkable
class Authorization(Protocol):
    """Obtains tokens for a client: the argument `auth` of `connect`.

    Attributes:
        extensions: Identifiers of the extensions that the client then declares.
    """

    extensions: tuple[str, ...]

    def authorizer(self, url: str, revisions: Revisions) -> Authorizer:
        """The authorizer of a connection to a server.

        Args:
            url: The server.
            revisions: The revisions that the client offers.
        """
        ...


class Bearer:
    """Sends an access token that the application obtains itself.

    Args:
        token: The token, or a function or coroutine function that returns it. The function is
            called again if the server refuses the token.
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
        check_token_target(url, self._addresses)
        return _BearerAuthorizer(self._token, url)


class _BearerAuthorizer:
    """Adds the token of the application; see `Authorizer`."""

    def __init__(self, token: str | Callable[[], str | Awaitable[str]], url: str) -> None:
        self._token = token
        self._url = url
        self._fields: Mapping[str, str] = {}

    async def fields(self, method: str, url: str) -> Mapping[str, str]:
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
        if response.status != 401 or attempts or isinstance(self._token, str):
            return False
        if sent == self._fields:
            self._fields = {}
        return bool(await self.fields(request[0], request[1]))

    async def close(self) -> None: ...
