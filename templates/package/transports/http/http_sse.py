"""HTTP+SSE on the client's side: one event stream to receive from, one endpoint to post to.

The first event of the stream has the URL of the endpoint. The session ends with the stream.

Source: basic/transports#http-with-sse (2024-11-05).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import anyio

from ...channel import OutgoingMessage, RequestId, TooLong, logger
from ...errors import (
    METHOD_NOT_FOUND,
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
)
from ...facts import Lifecycle, Revisions, has_streamable_http
from ...foreign_text import safe_repr, safe_text
from ...framing.http_hosts import format_url, join_urls, same_origin
from ...framing.sse import ENDPOINT, MEDIA_TYPE, MESSAGE
from ...framing.sse_decoder import EventDecoder, ServerSentEvent
from ...protocol.jsonrpc import ParsedMessage
from ...protocol.lifecycle import INITIALIZE
from ...protocol.negotiation import parse_batch
from ...runtime.time_limits import HttpTimeouts
from ..memory import MessageQueue
from .http_client import (
    LISTENING,
    POSTED,
    HeaderFields,
    HttpRequests,
    Posts,
    content_type,
)
from .http_library import Response, Secrets
from .sessions import facts_over_http, session_of
from .streamable_http import StartSoon

_REFUSALS = range(300, 500)  # statuses of a URL that may have no event stream


class HttpSse:
    """One session over HTTP+SSE.

    Args:
        requests: Sends HTTP requests.
        url: URL of the event stream.
        revisions: The revisions that the client supports.
        received: Queue for the received messages; closed when the stream ends.
        start_soon: Starts a task.
        timeouts: Timeouts.
    """

    def __init__(
        self,
        requests: HttpRequests,
        url: str,
        revisions: Revisions,
        received: MessageQueue,
        start_soon: StartSoon,
        timeouts: HttpTimeouts,
    ) -> None:
        self._requests = requests
        self._url = url
        self._revisions = revisions
        self._received = received
        self._start_soon = start_soon
        self._timeouts = timeouts
        self._only = "" if has_streamable_http(revisions) else _transport_reason(revisions)
        self._endpoint: str | None = None
        self._named = anyio.Event()
        self._refusal: McpError | None = None
        self._initialize: OutgoingMessage | None = None
        self._batching = False
        self._fields: HeaderFields = POSTED
        self._secrets = Secrets()
        self._reading = anyio.CancelScope()
        self._posts = Posts()

    async def open(self) -> None:
        """Open the stream, if it is not open, and wait for the endpoint.

        Raises:
            ConnectFailedError: The server cannot be reached.
            HttpStatusError: The server refused the request for the stream.
            RemoteProtocolError: The response is not an event stream, or has no endpoint.
            ConnectionClosedError: The channel was closed.
        """
        if self._endpoint is not None:
            return
        response = await self._request_stream()
        if not self._start_soon(self._read, response):
            await response.close()
            raise ConnectionClosedError("the connection is closed")
        with anyio.move_on_after(self._timeouts.endpoint):
            await self._named.wait()
        if self._endpoint is None:
            self._reading.cancel()
            raise self._refusal or RemoteProtocolError(
                f"{format_url(self._url)}: expected an event {ENDPOINT!r} within "
                f"{self._timeouts.endpoint:g} s{self._only}, came nothing"
            )

    def is_suggested_by(self, refusal: HttpStatusError) -> bool:
        """Whether servers of HTTP+SSE refuse like this, and per-request servers do not."""
        revisions = self._revisions
        offered = (revisions.of(Lifecycle.HANDSHAKE) or revisions).newest()
        status = str(refusal.status)
        patterns = facts_over_http(offered, offered, revisions).http.fallback
        if not any(fnmatchcase(status, pattern.replace("x", "?")) for pattern in patterns):
            return False
        failure = ParsedMessage.of(refusal.body).error_response()
        if failure is None:
            return True
        for modern in revisions.of(Lifecycle.PER_REQUEST).values():
            facts = modern.facts
            if failure.code in (facts.errors.defined or ()):
                return False
            if failure.code == METHOD_NOT_FOUND and refusal.status == facts.http.unknown_method:
                return False
        return True

    async def send(self, message: OutgoingMessage) -> None:
        """Post a message; return when the server has accepted the message.

        Raises:
            HttpStatusError: The server refused the message.
            ConnectFailedError: The server cannot be reached.
            ResponseLostError: The connection broke, or the server did not respond in time.
            ConnectionClosedError: The channel was closed.
        """
        assert self._endpoint is not None
        if message.method == INITIALIZE:
            self._initialize = message
        with self._posts.within(self._timeouts.accept, message.method, self._endpoint):
            response = await self._requests.open("POST", self._endpoint, self._fields, message.data)
            await self._requests.discard(response)

    def close_request_stream(self, identifier: RequestId) -> None:
        """Do nothing: all requests share one stream."""

    async def end(self) -> None:
        """End the posts; the task that reads the stream has ended, and with it the session."""
        self._posts.cancel()
        self._secrets.clear()

    async def _request_stream(self) -> Response:
        """Request the stream."""
        expected = f"a stream of events{self._only}"
        try:
            response = await self._requests.open("GET", self._url, LISTENING)
        except HttpStatusError as refusal:
            if refusal.status in _REFUSALS and not refusal.wants_credentials:
                raise refusal.with_more(f"expected {expected}") from None
            raise
        if content_type(response) == MEDIA_TYPE:
            return response
        raise await self._requests.unexpected_response(response, expected)

    async def _read(self, response: Response) -> None:
        decoder = EventDecoder(self._requests.limit)
        ended = "the server closed the stream of events"

        async def take(part: bytes) -> None:
            for event in decoder.feed(part):
                await self._take(event, response)

        with self._reading:
            try:
                await response.each_part(take)
            except ResponseLostError as error:
                ended = f"the stream of events broke: {error.__cause__ or error}"
            except McpError as error:
                self._refusal = error
            except Exception as error:
                logger.exception("the stream of events failed")
                ended = f"the stream of events failed: {safe_text(str(error))}"
            if self._endpoint is None:
                self._refusal = self._refusal or RemoteProtocolError(
                    f"{format_url(self._url)}: expected an event {ENDPOINT!r} first, but {ended}"
                )
            else:
                self._received.close(ended)
        self._named.set()

    async def _take(self, event: ServerSentEvent | TooLong, response: Response) -> None:
        if isinstance(event, TooLong):
            self._received.put_error(event.error())
        elif self._endpoint is None:
            self._endpoint = self._endpoint_in(event, response)
            self._secrets.add(urlsplit(self._endpoint).query)
            self._named.set()
        elif event.type == MESSAGE and event.data:
            await self._received.put(self._message(event.data))
        else:
            logger.debug("ignored: an event of type %s", safe_repr(event.type))

    def _endpoint_in(self, event: ServerSentEvent, response: Response) -> str:
        """The URL of the endpoint in the first event.

        Raises:
            RemoteProtocolError: The event has no URL, or a URL of another origin.
        """
        if event.type != ENDPOINT:
            raise RemoteProtocolError(
                f"{format_url(self._url)}: expected an event {ENDPOINT!r} first, "
                f"came {safe_repr(event.type)}"
            )
        text = event.data.decode(errors="replace").strip()
        endpoint = join_urls(response.url, text)
        if endpoint is None or not same_origin(response.url, endpoint):
            raise RemoteProtocolError(
                f"{format_url(self._url)}: expected an address of the same origin to post to, "
                f"came {safe_repr(text.partition('?')[0])}"
            )
        return endpoint

    def _message(self, data: bytes) -> ParsedMessage:
        """A message; the response to `initialize` sets the header field of the revision."""
        initialize = self._initialize
        message = ParsedMessage.of(data, parse_batch if self._batching else None)
        if initialize is None:
            return message
        assert initialize.id is not None
        result = message.results().get(initialize.id)
        if result is None:
            return message
        session = session_of(initialize, result, _no_header, self._revisions)
        if session is not None:
            self._initialize = None
            self._batching = session.agreed.batching
            name = session.agreed.facts.headers.protocol_version
            self._fields = POSTED if name is None else {**POSTED, name: session.agreed.name}
        return message


def _no_header(name: str) -> None:
    """Return `None`: HTTP+SSE has no header field with a session id."""


def _transport_reason(revisions: Revisions) -> str:
    """The reason for this transport, for errors: the server may support only Streamable HTTP."""
    return f" (over HTTP, {', '.join(revisions)} is spoken by HTTP+SSE alone)"
