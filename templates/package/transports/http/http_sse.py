"""HTTP+SSE as a client speaks it: one stream of events to hear by, one address to post to.

The first event of the stream names the address. When the stream ends, so does the connection.

Source: basic/transports#http-with-sse (2024-11-05).
"""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import anyio

from ...channel import OutgoingMessage, RequestId
from ...errors import (
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
)
from ...facts import Revisions, has_streamable_http
from ...foreign_text import safe_repr, safe_text
from ...framing.line_framing import TooLong
from ...framing.sse import ENDPOINT, MEDIA_TYPE, MESSAGE, EventDecoder, ServerSentEvent
from ...protocol.jsonrpc import results_in
from ...protocol.lifecycle import INITIALIZE
from ..http_timeouts import HttpTimeouts
from ..message_queue import MessageQueue
from .event_stream import StartSoon
from .http_client import (
    LISTENING,
    POSTED,
    HeaderFields,
    HttpRequests,
    Posts,
    content_type,
)
from .http_errors import joined, same_origin, shown
from .http_libraries import Response
from .log_redaction import Secrets
from .session import session_of

logger = logging.getLogger(__name__.partition(".")[0])

_REFUSALS = range(300, 500)  # the statuses that may say that there is no such stream


class HttpSse:
    """One server's pair of endpoints.

    Args:
        requests: Makes HTTP requests.
        url: Address of the stream.
        revisions: The revisions that the client speaks.
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
        self._only = "" if has_streamable_http(revisions) else _only_way(revisions)
        self._endpoint: str | None = None
        self._named = anyio.Event()
        self._refusal: McpError | None = None
        self._initialize: OutgoingMessage | None = None
        self._fields: HeaderFields = POSTED
        self._secrets = Secrets()
        self._reading = anyio.CancelScope()
        self._posts = Posts()

    async def open(self) -> None:
        """Open the stream, unless it is, and wait until it has named the address.

        Raises:
            ConnectFailedError: The server can't be reached.
            HttpStatusError: It refused.
            RemoteProtocolError: It gave something else than such a stream.
            ConnectionClosedError: The channel was closed.
        """
        if self._endpoint is not None:
            return
        response = await self._asked()
        if not self._start_soon(self._read, response):
            await response.close()
            raise ConnectionClosedError("the connection is closed")
        with anyio.move_on_after(self._timeouts.endpoint):
            await self._named.wait()
        if self._endpoint is None:
            self._reading.cancel()
            raise self._refusal or RemoteProtocolError(
                f"{shown(self._url)}: expected an event {ENDPOINT!r} within "
                f"{self._timeouts.endpoint:g} s{self._only}, came nothing"
            )

    async def send(self, message: OutgoingMessage) -> None:
        """Post a message, once it is known where to; returns when the server has accepted it.

        Raises:
            HttpStatusError: The server refused it.
            ConnectFailedError: The server can't be reached.
            AnswerLostError: The connection broke, or the server did not react.
            ConnectionClosedError: The channel was closed.
        """
        assert self._endpoint is not None
        if message.method == INITIALIZE:
            self._initialize = message
        with self._posts.within(self._timeouts.accept, message.method, self._endpoint):
            response = await self._requests.open("POST", self._endpoint, self._fields, message.data)
            await self._requests.discard(response)

    def close_request_stream(self, identifier: RequestId) -> None:
        """Nothing: all requests share the stream."""

    async def end(self) -> None:
        """Close the stream, which ends the session."""
        self._reading.cancel()
        self._posts.cancel()
        self._secrets.clear()

    async def _asked(self) -> Response:
        """Ask for the stream."""
        expected = f"a stream of events{self._only}"
        try:
            response = await self._requests.open("GET", self._url, LISTENING)
        except HttpStatusError as refusal:
            if refusal.status in _REFUSALS and not refusal.wants_credentials:
                raise refusal.with_more(f"expected {expected}") from None
            raise
        if content_type(response) == MEDIA_TYPE:
            return response
        raise await self._requests.unexpected(response, expected)

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
                    f"{shown(self._url)}: expected an event {ENDPOINT!r} first, but {ended}"
                )
            else:
                self._received.close(ended)
        self._named.set()

    async def _take(self, event: ServerSentEvent | TooLong, response: Response) -> None:
        if isinstance(event, TooLong):
            self._received.put_error(event.error())
        elif self._endpoint is None:
            self._endpoint = self._named_by(event, response)
            self._secrets.add(urlsplit(self._endpoint).query)
            self._named.set()
        elif event.type == MESSAGE and event.data:
            self._note(event.data)
            await self._received.put(event.data)
        else:
            logger.debug("ignored: an event of type %s", safe_repr(event.type))

    def _named_by(self, event: ServerSentEvent, response: Response) -> str:
        """The address to post to.

        Raises:
            RemoteProtocolError: The event names none, or one of another origin.
        """
        if event.type != ENDPOINT:
            raise RemoteProtocolError(
                f"{shown(self._url)}: expected an event {ENDPOINT!r} first, "
                f"came {safe_repr(event.type)}"
            )
        text = event.data.decode(errors="replace").strip()
        endpoint = joined(response.url, text)
        if endpoint is None or not same_origin(response.url, endpoint):
            raise RemoteProtocolError(
                f"{shown(self._url)}: expected an address of the same origin to post to, "
                f"came {safe_repr(text.partition('?')[0])}"
            )
        return endpoint

    def _note(self, data: bytes) -> None:
        """Learn from the answer to `initialize` which revision was agreed."""
        initialize = self._initialize
        if initialize is None:
            return
        result = results_in(data, False).get(initialize.id or 0)
        if result is None:
            return
        session = session_of(initialize, result, _no_header, self._revisions)
        if session is not None:
            self._initialize = None
            name = session.agreed.facts.headers.protocol_version
            self._fields = POSTED if name is None else {**POSTED, name: session.agreed.name}


def _no_header(name: str) -> None:
    """No header field: HTTP+SSE has no session id."""


def _only_way(revisions: Revisions) -> str:
    """Why it has to be this transport; a server that has another one may puzzle its user."""
    return f" (over HTTP, {', '.join(revisions)} is spoken by HTTP+SSE alone)"
