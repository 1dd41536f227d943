"""HTTP requests as this package makes them: fields, redirects, limits, and errors of its own.

httpx2 does the work. It is an extra, imported when the first request is made ready. Requests that
need nothing of what it can do take a shorter way, see `http1`.

Redirects are followed only where method and body stay (307, 308) and the origin does: credentials
and session ids go nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from ...errors import (
    ConnectFailedError,
    HttpStatusError,
    LocalProtocolError,
    MissingExtraError,
    RemoteProtocolError,
    ResponseLostError,
)
from ...foreign_text import safe_text
from ...framing.http_headers import JSON
from ...framing.line_framing import MESSAGE_LIMIT, TooLong
from ...framing.sse import MEDIA_TYPE
from .http1 import Http1Client, Http1Response
from .http_errors import Httpx2Errors, has_proxy, reason_of
from .response import Response, kind_of, same_origin, shown

if TYPE_CHECKING:
    import httpx2

Fields: TypeAlias = Mapping[str, str]
"""Header fields by name."""

MakeFields: TypeAlias = Callable[[], Awaitable[Fields]]
"""Called before each HTTP request for the fields that the user wants it to have."""

POSTED: Fields = {"Accept": f"{JSON}, {MEDIA_TYPE}", "Content-Type": JSON}
"""Fields of a message."""

LISTENING: Fields = {"Accept": MEDIA_TYPE, "Cache-Control": "no-store"}
"""Fields of a request for a stream of events."""

REFUSAL_LIMIT = 1024 * 1024
"""Bytes that are read of the body of a refusal."""

PART = 64 * 1024
"""Bytes of a body that are taken at once; what was compressed may come in larger parts."""

PATIENCE = 5.0
"""Seconds in which the body of a refusal, or one that nobody wants, is read."""

PORTS = range(1, 65536)

SUCCESS = range(200, 300)
REDIRECTION = range(300, 400)

# At most a thousand bytes come of one that was compressed so; other codings have no such bound.
_CODINGS = ("gzip", "deflate")

_NO_SECRET = re.compile(r"(?<=//)[^/?#]*@|[?#].*", re.DOTALL)

REDIRECTS = 5
"""Redirects that are followed for one message."""

KEEP_ALIVE = 3.0
"""Seconds an idle connection is kept. Many servers close theirs after 5, and an answer is lost if
they do so just when a request is on its way."""


@dataclass(frozen=True)
class HttpSettings:
    """What a user may say of how HTTP requests are made.

    Attributes:
        headers: Makes fields for each request; those of the protocol go first. `None` for none.
        auth: An authentication of httpx2's, asked with each request.
        client: A client of httpx2's own making, which is not closed; `None` to have one made.
        connect_timeout: Seconds to make a connection.
        silence: Seconds that a body which has begun, or the taking of ours, may stand still.
    """

    headers: MakeFields | None = None
    auth: Any = None
    client: httpx2.AsyncClient | None = None
    connect_timeout: float = 10.0
    silence: float = 60.0


def load_httpx2() -> Any:
    """The module httpx2.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import httpx2
    except ImportError:
        raise MissingExtraError("a client over HTTP", "httpx2") from None
    return httpx2


class HttpRequests:
    """Makes HTTP requests, and gives responses whose body is not read yet.

    Args:
        settings: What the user said.
        limit: Longest message that is taken, in bytes.

    Attributes:
        limit: The same.
    """

    def __init__(self, settings: HttpSettings, limit: int = MESSAGE_LIMIT) -> None:
        self._httpx2 = load_httpx2()
        self._settings = settings
        self.limit = limit
        self._moved: dict[httpx2.URL, httpx2.URL] = {}
        self._client = settings.client
        self._timeout = self._time_limits()
        self._errors = Httpx2Errors(self._httpx2, self._timeout, own=self._client is None)
        self._auth = self._httpx2.USE_CLIENT_DEFAULT if settings.auth is None else settings.auth
        self._plain = None if self._needs_httpx2() else self._plain_client()

    def _time_limits(self) -> Any:
        """The limits for each request; for an answer there is none, since streams may be silent."""
        settings, client = self._settings, self._settings.client
        if client is None:
            return self._httpx2.Timeout(
                connect=settings.connect_timeout, read=None, write=settings.silence, pool=None
            )
        own = client.timeout
        return self._httpx2.Timeout(connect=own.connect, read=None, write=own.write, pool=own.pool)

    def _own_client(self) -> httpx2.AsyncClient:
        """A client of our own: it reads certificates, so it is made when it is needed."""
        limits = self._httpx2.Limits(
            max_connections=None, max_keepalive_connections=100, keepalive_expiry=KEEP_ALIVE
        )
        client: httpx2.AsyncClient = self._httpx2.AsyncClient(timeout=self._timeout, limits=limits)
        return client

    def _plain_client(self) -> Http1Client:
        settings = self._settings
        return Http1Client(settings.connect_timeout, settings.silence, KEEP_ALIVE)

    def _needs_httpx2(self) -> bool:
        """Whether all requests are httpx2's: by the user's word, or to find their proxy."""
        asked = self._settings.client is not None or self._settings.auth is not None
        return asked or has_proxy("http")

    async def close(self) -> None:
        """Close all connections, but those of the user's own client. Idempotent."""
        if self._plain is not None:
            await self._plain.aclose()
        if self._client is not None and self._client is not self._settings.client:
            await self._client.aclose()

    def url(self, text: str) -> httpx2.URL:
        """An address.

        Raises:
            ConnectFailedError: It is none.
        """
        try:
            url: httpx2.URL = self._httpx2.URL(text)
        except (self._httpx2.InvalidURL, ValueError, TypeError) as error:
            raise ConnectFailedError("the server", f"not a URL: {error}") from None
        if not url.host:
            raise ConnectFailedError(shown(url), "the URL names no host")
        if url.port is not None and url.port not in PORTS:
            raise ConnectFailedError(shown(url), f"expected a port from 1 to {PORTS[-1]}")
        return url

    def joined(self, url: httpx2.URL, reference: str) -> httpx2.URL | None:
        """The address that a reference means, seen from another; `None` if it means none."""
        try:
            return url.join(reference)
        except (self._httpx2.InvalidURL, ValueError):
            return None

    async def open(
        self, method: str, url: httpx2.URL, fields: Fields, body: bytes | None = None
    ) -> Response:
        """Make a request and wait for the head of its response, which has to say success.

        Raises:
            ConnectFailedError: No connection; nothing was sent.
            HttpStatusError: The status is not one of success.
            AnswerLostError: The connection broke before the head of the response was there.
            LocalProtocolError: A field can't be sent.
            RemoteProtocolError: The body is compressed, which it must not be.
        """
        url = self._moved.get(url, url) if self._moved else url
        for _ in range(REDIRECTS):
            response = await self._send(method, url, fields, body)
            if response.status_code in SUCCESS:
                return response
            target = self._target(url, response) if response.status_code in (307, 308) else None
            if target is None:
                raise await self._refusal(method, url, response)
            if response.status_code == 308:
                self._moved[url] = target
            await self.discard(response)
            url = target
        raise ConnectFailedError(shown(url), f"more than {REDIRECTS} redirects")

    async def read(self, response: Response) -> bytes:
        """The whole body of a response.

        Raises:
            FrameError: It is over the limit.
            AnswerLostError: The connection broke, or stood still.
        """
        silence = self._settings.silence
        if isinstance(response, Http1Response):
            return await response.read(self.limit, silence)
        body = bytearray()

        async def take(part: bytes) -> None:
            scope.deadline = anyio.current_time() + silence
            body.extend(part)
            if len(body) > self.limit:
                raise TooLong(self.limit).error()

        with anyio.CancelScope(deadline=anyio.current_time() + silence) as scope:
            await self.each_part(response, take)
            return bytes(body)
        raise ResponseLostError(f"{shown(response.url)}: the answer stood still for {silence:g} s")

    async def each_part(self, response: Response, take: Callable[[bytes], Awaitable[None]]) -> None:
        """Give the parts of a body to `take` as they come; close the response in the end.

        What ends the reading early, be it what `take` raises, ends it from within, at the next
        wait for the network: the generators of httpx2 do not bear to be left half way.

        Raises:
            AnswerLostError: The connection broke.
        """
        failure: BaseException | None = None
        try:
            with anyio.CancelScope() as scope, self._errors.within(response.url):
                async for part in response.aiter_bytes():
                    if failure is None:
                        try:
                            for start in range(0, len(part), PART):
                                await take(part[start : start + PART])
                        except BaseException as error:
                            failure = error
                            scope.cancel()
        finally:
            await self.release(response)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # a frame that holds the exception that holds the frame

    async def release(self, response: Response) -> None:
        """Close a response, whatever of it was read. Idempotent."""
        with anyio.CancelScope(shield=True):
            await response.aclose()

    async def discard(self, response: Response) -> None:
        """Be done with a response; a short body is read, so that the connection can be used on."""
        await self._beginning(response)

    async def unexpected(self, response: Response, expected: str) -> RemoteProtocolError:
        """The error for a response of a kind that does not fit, which is discarded."""
        await self.discard(response)
        came = safe_text(kind_of(response)) or "no content type"
        return RemoteProtocolError(
            f"{shown(response.url)}: expected {expected}, came HTTP {response.status_code}, {came}"
        )

    async def _send(
        self, method: str, url: httpx2.URL, fields: Fields, body: bytes | None
    ) -> Response:
        every = await self._with_user_fields(fields)
        if self._plain is not None and self._plain.serves(url):
            response = await self._plain.send(method, url, every, body)
            if "content-encoding" in response.headers:
                await self._check_coding(response, (), "a body as it is")
            return response
        client = self._client or self._made_ready(url)
        try:
            request = client.build_request(
                method, url, headers=every, content=body, timeout=self._timeout
            )
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"headers: {error}") from error
        codings = _accepted(request.headers.get("accept-encoding", ""))
        request.headers["accept-encoding"] = codings
        with self._errors.within(url):
            answer = await client.send(
                request, stream=True, auth=self._auth, follow_redirects=False
            )
        await self._check_coding(answer, _CODINGS, codings)
        return answer

    async def _check_coding(
        self, response: Response, codings: Collection[str], expected: str
    ) -> None:
        """Refuse a body that is compressed in another way than those that were asked for."""
        coding = response.headers.get("content-encoding", "").strip()
        if coding.lower() not in ("", "identity", *codings):
            await self.release(response)
            raise RemoteProtocolError(
                f"{shown(response.url)}: expected {expected}, came {safe_text(coding)}"
            )

    def _made_ready(self, url: httpx2.URL) -> httpx2.AsyncClient:
        """A client of our own.

        Raises:
            ConnectFailedError: The environment asks for a proxy or certificates that are of no use.
        """
        try:
            self._client = self._own_client()
        except (ImportError, OSError, ValueError, self._httpx2.InvalidURL) as error:
            reason = f"what the environment says of proxies and certificates: {reason_of(error)}"
            raise ConnectFailedError(shown(url), reason) from error
        return self._client

    async def _with_user_fields(self, own: Fields) -> Fields:
        make = self._settings.headers
        given = None if make is None else await make()
        if not given:
            return own
        taken = {name.lower() for name in own}
        return {**{name: given[name] for name in given if name.lower() not in taken}, **own}

    def _target(self, url: httpx2.URL, response: Response) -> httpx2.URL | None:
        """Where a redirect leads, if it may be followed."""
        target = self.joined(url, response.headers.get("location", ""))
        if target is None or target == url or not same_origin(url, target):
            return None
        return target

    async def _refusal(self, method: str, url: httpx2.URL, response: Response) -> HttpStatusError:
        body = await self._beginning(response)
        reason = response.reason_phrase
        location = response.headers.get("location")
        if location is not None and response.status_code in REDIRECTION:
            reason = f"{safe_text(reason)} (a redirect to {_NO_SECRET.sub('', location)})"
        return HttpStatusError(f"{method} {shown(url)}", response.status_code, reason, body)

    async def _beginning(self, response: Response) -> bytes:
        """What a body begins with, as far as it comes soon."""
        body = bytearray()

        async def take(part: bytes) -> None:
            if len(body) < REFUSAL_LIMIT:
                body.extend(part)
            else:
                scope.cancel()

        with anyio.move_on_after(PATIENCE) as scope, suppress(ResponseLostError):
            await self.each_part(response, take)
        return bytes(body[:REFUSAL_LIMIT])


def _accepted(codings: str) -> str:
    """Of the ways to compress a body that a client takes, those that cannot fill our memory."""
    names = [each.partition(";")[0].strip().lower() for each in codings.split(",")]
    return ", ".join(name for name in _CODINGS if name in names) or "identity"
