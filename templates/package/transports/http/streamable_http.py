"""Streamable HTTP on the client's side: each message is one POST.

The HTTP response carries the response to a request: as JSON, or as an event stream that a separate
task reads. `sessions` adds sessions.

Source: basic/transports (Streamable HTTP); 2026-07-28: basic/transports/streamable-http.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ...channel import OutgoingMessage, RequestId, logger
from ...errors import (
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestLost,
    ResponseLostError,
)
from ...facts import Revisions
from ...foreign_text import safe_repr, safe_text
from ...framing.http_headers import JSON
from ...framing.sse import MEDIA_TYPE
from ...protocol.jsonrpc import ParsedMessage
from ...runtime.time_limits import HttpTimeouts
from ..memory import MessageQueue
from .event_stream import EventStream, OnStream, Resume, StartSoon
from .http_client import POSTED, HeaderFields, HttpRequests, Posts, content_type
from .http_libraries import Response, format_url

if TYPE_CHECKING:
    from .sessions import ServerSessionState

ParamHeaders: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, str]]
"""Returns the encoded parameter headers for a tool's name and arguments."""


class OpenTransport(Protocol):
    """A transport over HTTP."""

    async def open(self) -> None: ...

    async def send(self, message: OutgoingMessage) -> None: ...

    def close_request_stream(self, identifier: RequestId) -> None: ...

    async def end(self) -> None: ...


class OlderTransport(OpenTransport, Protocol):
    """A transport that a server may have in place of Streamable HTTP."""

    def is_suggested_by(self, refusal: HttpStatusError) -> bool:
        """Whether its servers refuse `initialize` over Streamable HTTP like this."""
        ...


class StreamableHttp:
    """The connection to one endpoint: its posts and streams.

    Args:
        requests: Sends HTTP requests.
        url: URL of the endpoint.
        revisions: The revisions that the client supports.
        received: Queue for the received messages.
        start_soon: Starts a task.
        timeouts: Timeouts.
        fields_of: Returns the header fields that a message without a session has besides.
        on_renewed: Called when a new session has replaced a lost session.
        on_stream: Called when the standalone stream is opened or cannot be reopened.
    """

    def __init__(
        self,
        requests: HttpRequests,
        url: str,
        revisions: Revisions,
        received: MessageQueue,
        start_soon: StartSoon,
        timeouts: HttpTimeouts,
        fields_of: Callable[[OutgoingMessage], HeaderFields] | None = None,
        on_renewed: Callable[[], None] | None = None,
        on_stream: OnStream | None = None,
    ) -> None:
        self._requests = requests
        self._url = url
        self._received = received
        self._start_soon = start_soon
        self._timeouts = timeouts
        self._fields_of = fields_of
        self._posts = Posts()
        self._streams: dict[RequestId, EventStream] = {}

    async def open(self) -> None:
        """Do nothing: each message is a request of its own."""

    async def send(self, message: OutgoingMessage) -> None:
        """Post a message; return with the response, or when its event stream has begun.

        Raises:
            HttpStatusError: The server refused the message.
            ConnectFailedError: The server cannot be reached.
            ResponseLostError: The connection broke.
            RemoteProtocolError: The response is invalid.
            SessionLostError: The server lost two sessions in a row.
            ConnectionClosedError: The channel was closed.
        """
        is_request = message.kind == "request"
        seconds = math.inf if is_request else self._timeouts.accept
        with self._posts.within(seconds, message.method, self._url):
            session, response = await self._post(message)
            if is_request:
                await self._receive_response(message, session, response)
            else:
                await self._requests.discard(response)
                self._accepted(message, session)

    def close_request_stream(self, identifier: RequestId) -> None:
        """Close the stream of a request whose response is no longer awaited."""
        stream = self._streams.pop(identifier, None)
        if stream is not None:
            stream.scope.cancel()

    async def end(self) -> None:
        """Close all streams and end the session."""
        self._posts.cancel()
        for stream in self._streams.values():
            stream.scope.cancel()

    # With sessions, `SessionHttp` extends or overrides these.

    async def _post(self, message: OutgoingMessage) -> tuple[ServerSessionState | None, Response]:
        """Post a message; returns the session that it belongs to, and the response."""
        fields = POSTED if self._fields_of is None else {**POSTED, **self._fields_of(message)}
        return None, await self._requests.open("POST", self._url, fields, message.data)

    def _accepted(self, message: OutgoingMessage, session: ServerSessionState | None) -> None:
        """Called when the server has accepted a message that is not a request."""

    def _answered(self, message: OutgoingMessage, result: bytes | None, response: Response) -> None:
        """Called with the result of a request, or `None` for an error, before it is passed on."""

    async def _lost(self, session: ServerSessionState | None, error: McpError) -> None:
        """Called with the reason why the response to a request was lost."""

    def _resume(self, session: ServerSessionState | None) -> Resume | None:
        """What resumes the stream of a request; `None` if streams cannot be resumed."""
        return None

    async def _receive_response(
        self, message: OutgoingMessage, session: ServerSessionState | None, response: Response
    ) -> None:
        """Receive the response to a request: a JSON body, or an event stream."""
        kind = content_type(response)
        if kind == MEDIA_TYPE:
            await self._open_stream(message, session, response)
            return
        if kind != JSON:
            raise await self._requests.unexpected_response(response, f"{JSON} or {MEDIA_TYPE}")
        body = parse_message(await self._requests.read(response), session)
        results = body.results()
        assert message.id is not None
        if message.id not in results:
            raise self._missing_response_error(message, body)
        self._answered(message, results[message.id], response)
        await self._received.put(body)

    def _missing_response_error(self, message: OutgoingMessage, body: ParsedMessage) -> McpError:
        failure = body.error_response()
        if failure is not None and failure.id is None:
            return RemoteError(failure.code, failure.message, failure.data, message.method)
        came = safe_repr(body[:200].decode(errors="replace"))
        where = format_url(self._url)
        text = f"{where}: expected the answer to {message.method}, came {came}"
        return RemoteProtocolError(text)

    async def _open_stream(
        self, message: OutgoingMessage, session: ServerSessionState | None, response: Response
    ) -> None:
        """Start a task that reads the event stream with the response."""
        identifier = message.id
        assert identifier is not None

        async def on_message(data: bytes) -> None:
            parsed = parse_message(data, session)
            answers = parsed.results()
            if identifier in answers:
                self._answered(message, answers[identifier], response)
            elif parsed.has_response and self._streams.keys().isdisjoint(answers):
                stream.unmatched = self._missing_response_error(message, parsed)
            await self._pass_on(parsed, answers)

        resume = self._resume(session)
        stream = EventStream(self._requests, resume, on_message, identifier, self._timeouts)
        self._streams[identifier] = stream
        if not self._start_soon(self._follow, stream, session, response):
            await response.close()
            raise ConnectionClosedError("the connection is closed")

    async def _pass_on(self, data: ParsedMessage, answers: Mapping[RequestId, object]) -> None:
        await self._received.put(data)
        for identifier in answers:
            if (stream := self._streams.get(identifier)) is not None:
                stream.mark_answered()

    async def _follow(
        self, stream: EventStream, session: ServerSessionState | None, response: Response
    ) -> None:
        """Read the stream of one request until its response, or until the response is lost."""
        identifier = stream.id
        assert identifier is not None
        with stream.scope:
            try:
                await stream.follow(response)
            except McpError as error:
                await self._lost(session, error)
                self._received.put_error(RequestLost(identifier, error))
            except Exception as error:
                logger.exception("a stream of events failed")
                lost = ResponseLostError(f"{format_url(self._url)}: {safe_text(str(error))}")
                self._received.put_error(RequestLost(identifier, lost))
        if self._streams.get(identifier) is stream:
            del self._streams[identifier]


def parse_message(data: bytes, session: ServerSessionState | None) -> ParsedMessage:
    """Parse a message of the server, once for the channel and its receiver."""
    return ParsedMessage.of(data, session is not None and session.agreed.batching)
