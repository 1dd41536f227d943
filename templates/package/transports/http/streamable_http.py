"""Streamable HTTP on the client's side: each message is one POST.

The HTTP response carries the response to a request: as JSON, or as an event stream that a separate
task reads. `sessions` adds sessions.

The stream of a request ends with the response. If the connection ends before, the client resumes
the stream with a GET that has the last event id, if the revision allows resumption and the events
have ids. A server may also close a connection to make the client poll. The standalone stream, which
belongs to no request, stays open as long as the server offers it.

Source: basic/transports (sending, listening, resumability and redelivery); 2026-07-28:
basic/transports/streamable-http.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

import anyio

from ...channel import OutgoingMessage, RequestId, TooLong, logger
from ...errors import (
    ConnectFailedError,
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestLost,
    ResponseLostError,
    TransportError,
)
from ...facts import Revisions
from ...foreign_text import safe_repr, safe_text
from ...framing.http_headers import JSON, is_field_value
from ...framing.http_hosts import format_url
from ...framing.sse import MEDIA_TYPE, MESSAGE
from ...framing.sse_decoder import EventDecoder, ServerSentEvent
from ...protocol.jsonrpc import ParsedMessage
from ...protocol.negotiation import parse_batch
from ...runtime.time_limits import HttpTimeouts
from ..memory import MessageQueue
from .http_client import POSTED, HeaderFields, HttpRequests, Posts, content_type
from .http_library import Response

ParamHeaders: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, str]]
"""Returns the encoded parameter headers for a tool's name and arguments."""


Resume: TypeAlias = "Callable[[str | None], Awaitable[Response]]"
"""Sends the GET for the events after the event with an id, or for new events."""

OnMessage: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Called with each message of a stream, in order."""

Session: TypeAlias = Any
"""A `ServerSessionState` of `sessions`, or `None`, as always in revisions without sessions."""

StartSoon: TypeAlias = Callable[..., bool]
"""Starts a task that ends with the channel; `False` once the channel is closed."""

OnStream: TypeAlias = Callable[[McpError | None], None]
"""Called with the reason why the standalone stream is not open, and with `None` when it is open."""

_CONFLICT = 409  # the server has not detected yet that the previous stream is closed

ATTEMPTS = 5
"""Consecutive failed attempts after which the response to a request is lost."""


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
        """End the posts and the session; the tasks that read streams have ended."""
        self._posts.cancel()

    # With sessions, `SessionHttp` extends or overrides these.

    async def _post(self, message: OutgoingMessage) -> tuple[Session, Response]:
        """Post a message; returns the session that it belongs to, and the response."""
        fields = POSTED if self._fields_of is None else {**POSTED, **self._fields_of(message)}
        return None, await self._requests.open("POST", self._url, fields, message.data)

    def _accepted(self, message: OutgoingMessage, session: Session) -> None:
        """Called when the server has accepted a message that is not a request."""

    def _answered(self, message: OutgoingMessage, result: bytes | None, response: Response) -> None:
        """Called with the result of a request, or `None` for an error, before it is passed on."""

    async def _lost(self, session: Session, error: McpError) -> None:
        """Called with the reason why the response to a request was lost."""

    def _resume(self, session: Session) -> Resume | None:
        """The function that resumes the stream of a request; `None` if it cannot be resumed."""
        return None

    async def _receive_response(
        self, message: OutgoingMessage, session: Session, response: Response
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
        self, message: OutgoingMessage, session: Session, response: Response
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

    async def _follow(self, stream: EventStream, session: Session, response: Response) -> None:
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


class EventStream:
    """One stream.

    Args:
        requests: Reads responses.
        resume: Sends the GET; `None` if streams cannot be resumed.
        on_message: Called with each message, in order.
        id: The request whose response the stream carries; `None` for the standalone stream.
        timeouts: Pauses between connections.

    Attributes:
        id: As passed.
        answered: Whether the response was received.
        unmatched: The error if something came in place of the response; the stream is not resumed
            then.
        connected: Whether a GET ever succeeded.
        idle: Consecutive connections without a message, including those of a replaced stream.
        scope: Ends the stream when cancelled.
    """

    def __init__(
        self,
        requests: HttpRequests,
        resume: Resume | None,
        on_message: OnMessage,
        id: RequestId | None,
        timeouts: HttpTimeouts,
    ) -> None:
        self.id = id
        self._timeouts = timeouts
        self.answered = False
        self.unmatched: McpError | None = None
        self.connected = False
        self.idle = 0
        self.scope = anyio.CancelScope()
        self._requests = requests
        self._resume = resume
        self._on_message = on_message
        self._reading: anyio.CancelScope | None = None
        self._last_id: str | None = None
        self._retry: int | None = None
        self._failed_attempts = 0
        self._refused_for = 0.0  # seconds that the last refusal asked to wait
        self._break_reason = ""

    def mark_answered(self) -> None:
        """End the stream soon: the response was received, on this stream or another."""
        self.answered = True
        if self._reading is None:
            self.scope.cancel()
        else:
            self._reading.deadline = anyio.current_time() + self._timeouts.linger

    async def follow(self, response: Response) -> None:
        """Read until the response is received, starting with the HTTP response to the request.

        Raises:
            ResponseLostError: The response is lost.
            FrameError: An event was too long.
            RemoteProtocolError: Something else came in place of the response.
            RemoteError: An error without an id came.
        """
        await self._read(response)
        while not self.answered:
            if self.unmatched is not None:
                raise self.unmatched
            await self._read(await self._reconnect(format_url(response.url)))

    async def listen(self, on_stream: OnStream) -> None:
        """Read the standalone stream as long as the server offers it.

        Args:
            on_stream: Called when the stream is open, and after each failed attempt to reopen it.

        Raises:
            HttpStatusError: The server does not offer the stream, or no longer offers it.
            RemoteProtocolError: The response is not an event stream.
        """
        assert self._resume is not None
        while True:
            try:
                response = await self._resume(self._last_id)
            except TransportError as error:
                failure = _reopening_error(error) if self.connected else error
                if not _is_temporary(failure):
                    raise
                self._refused_for = _seconds_after(error)
                logger.debug("the stream of events is gone: %s", error)
                self._failed_attempts += 1
                if self.connected:
                    on_stream(failure)
            else:
                await self._check_kind(response)
                self.connected = True
                on_stream(None)
                await self._read(response)
            await anyio.sleep(self._pause())

    async def _reconnect(self, where: str) -> Response:
        """Resume the stream."""
        if self._resume is None or not self._last_id or not is_field_value(self._last_id):
            raise ResponseLostError(
                f"{where}: the stream ended before the answer came{self._break_reason}"
            )
        last: McpError | None = None
        while self._failed_attempts < ATTEMPTS:
            await anyio.sleep(self._pause())
            try:
                response = await self._resume(self._last_id)
                await self._check_kind(response)
                return response
            except (TransportError, RemoteProtocolError) as error:
                if not _is_temporary(error):
                    raise ResponseLostError(
                        f"{where}: the stream ended before the answer came, "
                        f"and can't be taken up again: {error}"
                    ) from error
                last = error
                self._refused_for = _seconds_after(error)
            self._failed_attempts += 1
        reason = f"; the last one: {last}" if last is not None else ""
        raise ResponseLostError(
            f"{where}: the stream ended before the answer came, "
            f"and {ATTEMPTS} attempts to take it up again brought nothing{reason}"
        )

    async def _check_kind(self, response: Response) -> None:
        if content_type(response) != MEDIA_TYPE:
            raise await self._requests.unexpected_response(response, MEDIA_TYPE)

    def _pause(self) -> float:
        """Seconds until the next attempt: the server's value, or more after failed attempts."""
        times = self._timeouts
        pause = times.first_pause
        if self._retry is not None:
            pause = min(max(self._retry / 1000, times.shortest_pause), times.longest_retry)
        pause = max(pause, min(self._refused_for, times.refused))
        for attempts, first, longest in (
            (self._failed_attempts, times.first_pause, times.longest_pause),
            (self.idle, times.shortest_pause, times.longest_poll),
        ):
            if attempts > 1:
                pause = max(pause, min(first * 2.0 ** min(attempts - 1, 20), longest))
        return pause

    async def _read(self, response: Response) -> None:
        """Read one connection to its end."""
        decoder = EventDecoder(self._requests.limit)
        decoder.last_id, decoder.retry = self._last_id, self._retry
        before = decoder.last_id
        has_message = False
        self._break_reason = ""

        async def take(part: bytes) -> None:
            nonlocal has_message
            for event in decoder.feed(part):
                has_message = await self._take(event) or has_message

        with anyio.CancelScope() as self._reading:
            try:
                await response.each_part(take)
            except ResponseLostError as error:
                self._break_reason = f": {error.__cause__ or error}"
            finally:
                self._last_id, self._retry = decoder.last_id, decoder.retry
                self._failed_attempts = (
                    0 if has_message or before != decoder.last_id else self._failed_attempts + 1
                )
                self.idle = 0 if has_message else self.idle + 1
        self._reading = None

    async def _take(self, event: ServerSentEvent | TooLong) -> bool:
        """Pass on the message of an event; return whether the event has a message."""
        if isinstance(event, TooLong):
            if self.id is not None:
                raise event.error()
            logger.warning("an event without a request was dropped: %s", event.error())
        elif event.type != MESSAGE:
            logger.debug("ignored: an event of type %s", safe_repr(event.type))
        elif event.data:
            await self._on_message(event.data)
            return True
        return False


def _reopening_error(error: TransportError) -> TransportError:
    """The error for a stream that cannot be reopened; a temporary error for a conflict."""
    if isinstance(error, HttpStatusError) and error.status == _CONFLICT:
        return ResponseLostError(f"the server takes the lost stream for open: {error}")
    return error


def _seconds_after(error: McpError) -> float:
    """Seconds that a refusal asks to wait; 0 for other errors."""
    return (error.retry_after or 0.0) if isinstance(error, HttpStatusError) else 0.0


def _is_temporary(error: McpError) -> bool:
    """Whether an error is temporary."""
    if isinstance(error, HttpStatusError):
        return error.may_pass
    return isinstance(error, ConnectFailedError | ResponseLostError)


def parse_message(data: bytes, session: Session) -> ParsedMessage:
    """Parse a message of the server, once for the channel and its receiver."""
    batching = session is not None and session.agreed.batching
    return ParsedMessage.of(data, parse_batch if batching else None)
