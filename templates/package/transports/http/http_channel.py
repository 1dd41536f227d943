"""The channel to a server over HTTP: Streamable HTTP, or HTTP+SSE if the server supports only that.

The channel starts with Streamable HTTP. If the server refuses `initialize` as a server of HTTP+SSE
does, the channel requests an event stream from the same address. If the stream sends an endpoint,
the channel uses HTTP+SSE from then on.

With Streamable HTTP each message is one POST. The HTTP response carries the response to a request:
as JSON, or as an event stream that a separate task reads. If the server has lost the session, the
client opens a new session and posts the message again: the server cannot have processed it. A
message that the server refused without having begun it waits, and is posted again.

Source: basic/transports (Streamable HTTP, backwards compatibility); 2026-07-28:
basic/transports/streamable-http.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, TypeAlias

import anyio
import anyio.abc

from ...channel import OPEN_REQUESTS, Channel, OutgoingMessage, RequestId, logger
from ...errors import (
    METHOD_NOT_FOUND,
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteError,
    RemoteProtocolError,
    RequestLost,
    ResponseLostError,
)
from ...facts import Lifecycle, Revisions, has_streamable_http
from ...foreign_text import safe_repr, safe_text
from ...framing.http_headers import JSON
from ...framing.sse import MEDIA_TYPE
from ...protocol.jsonrpc import ParsedMessage
from ...protocol.states import INITIALIZE, INITIALIZED
from ...runtime.time_limits import HTTP_TIMEOUTS, HttpTimeouts, pause_limits
from ..memory import MessageQueue
from .event_stream import EventStream, OnStream, Resume, StartSoon
from .http_client import HttpRequests, Posts, content_type
from .http_libraries import Response, checked_url
from .older_revisions import HAS_SSE, Sessions, open_http_sse
from .open_requests import OpenRequests
from .session import Endpoint, ParamHeaders, ServerSessionState, facts_over_http

HttpTransport: TypeAlias = Literal["streamable-http", "sse"]
"""The transports over HTTP: Streamable HTTP, and HTTP+SSE of older revisions."""


class _Transport(Protocol):
    """An open transport."""

    async def open(self) -> None: ...

    async def send(self, message: OutgoingMessage) -> None: ...

    def close_request_stream(self, identifier: RequestId) -> None: ...

    async def end(self) -> None: ...


class HttpChannel(Channel):
    """A channel to a server over HTTP. `run` must run in a task of its own.

    Args:
        url: URL of the server.
        revisions: The revisions that the client supports.
        requests: Sends the HTTP requests; closed with the channel.
        transport: The transport to use; `None` to detect the transport.
        param_headers: Returns the parameter headers of a tool call.
        on_renewed: Called when a new session has replaced a lost session.
        on_stream: Called with the reason why the standalone stream cannot be reopened, and with
            `None` when the stream is open.
        timeouts: Timeouts and pauses.
        open_requests: Requests that may be open at a time; further ones wait.

    Raises:
        ConnectFailedError: The URL is invalid.
    """

    transport = "HTTP"

    def __init__(
        self,
        url: str,
        revisions: Revisions,
        requests: HttpRequests,
        transport: HttpTransport | None = None,
        param_headers: ParamHeaders | None = None,
        on_renewed: Callable[[], None] | None = None,
        on_stream: OnStream | None = None,
        timeouts: HttpTimeouts = HTTP_TIMEOUTS,
        open_requests: int = OPEN_REQUESTS,
    ) -> None:
        self._timeouts = timeouts
        self._open_requests = OpenRequests(self._start_soon, open_requests)
        self._requests = requests
        self._url = checked_url(url)
        self._revisions = revisions
        self._received = MessageQueue()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._running = anyio.Event()
        self._closing = anyio.Event()
        self._parted = anyio.Event()
        streamable = has_streamable_http(revisions)
        self._may_fall_back = HAS_SSE and transport is None and streamable
        self._transport: _Transport
        if transport == "sse" or (transport is None and not streamable):
            self._transport = self._open_sse()
        else:
            endpoint = Endpoint(self._requests, self._url, timeouts, param_headers)
            self._transport = _StreamableHttp(
                endpoint, revisions, self._received, self._start_soon, on_renewed, on_stream
            )

    async def run(self) -> None:
        """Run the background tasks of the channel until `close`, and then end the session.

        The session is ended here because the task that calls `close` may be cancelled.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self._running.set()
                await self._closing.wait()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._transport.end()
                await self._requests.close()
            self._parted.set()

    async def receive(self) -> bytes:
        """Wait for the next message on any stream.

        Raises:
            EndOfChannel: The channel was closed, or the stream of HTTP+SSE ended.
            RequestLost: A request of this side will not be answered.
            FrameError: A message was too long and was dropped.
        """
        try:
            message = await self._received.get()
        except RequestLost as lost:
            self._open_requests.leave(lost.id)
            raise
        if isinstance(message, ParsedMessage):
            for identifier in message.results():
                self._open_requests.leave(identifier)
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Post one message; wait while too many requests are open, or the server begins none.

        Raises:
            ConnectionClosedError: The channel was closed.
            HttpStatusError: The server refused the message or its stream.
            ConnectFailedError: The server cannot be reached.
            ResponseLostError: The connection broke before the response arrived.
            SessionLostError: The server lost two sessions in a row.
            RemoteError: The server refused the message with an error without a request id.
            RemoteProtocolError: The response is invalid.
        """
        await self._running.wait()
        if self._closing.is_set():
            raise ConnectionClosedError("the connection is closed")
        deadline: float | None = None
        while True:
            refusal = await self._post(message, deadline is not None)
            if refusal is None:
                return
            now, pause = anyio.current_time(), self._pause_after(refusal)
            deadline = now + self._timeouts.refused if deadline is None else deadline
            if refusal.begun is not False or now + pause > deadline:
                break
            if not _takes_place(message):
                await anyio.sleep(pause)
        if self._may_be_older(message, refusal):
            await self._fall_back(message, refusal)
        else:
            await self._handle_refusal(message, refusal)

    async def _post(self, message: OutgoingMessage, was_refused: bool) -> HttpStatusError | None:
        """Post a message once, as soon as there is a place for it; returns the refusal, if any."""
        places, identifier, limit = self._open_requests, message.id, self._timeouts.refused
        if identifier is None or not _takes_place(message):
            await self._transport.open()
            try:
                await self._transport.send(message)
            except HttpStatusError as refusal:
                return refusal
            return None
        # A probe that waits so is not silent: the server has said when to come back.
        with pause_limits() if was_refused else nullcontext():
            await places.enter(identifier, was_refused=was_refused)
        try:
            await self._transport.open()
            await self._transport.send(message)
        except HttpStatusError as refusal:
            pause = self._pause_after(refusal)
            if refusal.is_outage and refusal.retry_after is not None and pause <= limit:
                places.refuse(identifier, pause)
            else:
                places.leave(identifier)
            return refusal
        except BaseException:
            places.leave(identifier)
            raise
        return None

    def _pause_after(self, refusal: HttpStatusError) -> float:
        """Seconds until a refused message may be posted again."""
        return max(refusal.retry_after or 0.0, self._timeouts.shortest_pause)

    def close_request_stream(self, identifier: RequestId) -> bool:
        """Close the stream of a request whose response is no longer awaited; see `Channel`."""
        self._transport.close_request_stream(identifier)
        self._open_requests.leave(identifier)
        return True

    async def close(self) -> None:
        """Close all streams and end the session. Idempotent, from any task."""
        if not self._closing.is_set():
            self._closing.set()
            self._open_requests.close()
            self._received.close("this side closed it")
            self._received.clear()
        await self._parted.wait()

    def _start_soon(self, work: Any, *args: Any) -> bool:
        if self._tasks is None or self._closing.is_set():
            return False
        self._tasks.start_soon(work, *args)
        return True

    def _open_sse(self) -> _Transport:
        return open_http_sse(
            self._requests,
            self._url,
            self._revisions,
            self._received,
            self._start_soon,
            self._timeouts,
        )

    def _may_be_older(self, message: OutgoingMessage, refusal: HttpStatusError) -> bool:
        """Whether the message is `initialize`, refused as a server of HTTP+SSE refuses it."""
        if message.method != INITIALIZE or not self._may_fall_back:
            return False
        return not refusal.wants_credentials and self._hints_at_sse(refusal)

    async def _fall_back(self, message: OutgoingMessage, refusal: HttpStatusError) -> None:
        """Switch to HTTP+SSE; if the server does not support that, handle the refusal."""
        older = self._open_sse()
        try:
            await older.open()
        except McpError as error:
            await older.end()
            more = f"nor is it a server of HTTP+SSE: {error}"
            await self._handle_refusal(message, refusal.with_more(more))
        else:
            self._may_fall_back = False
            self._transport = older
            await older.send(message)

    def _hints_at_sse(self, refusal: HttpStatusError) -> bool:
        """Whether servers of HTTP+SSE refuse like this, and per-request servers do not."""
        offered = (self._revisions.of(Lifecycle.HANDSHAKE) or self._revisions).newest()
        status = str(refusal.status)
        patterns = facts_over_http(offered, offered, self._revisions).http.fallback
        if not any(fnmatchcase(status, pattern.replace("x", "?")) for pattern in patterns):
            return False
        failure = ParsedMessage.of(refusal.body).error_response()
        if failure is None:
            return True
        for modern in self._revisions.of(Lifecycle.PER_REQUEST).values():
            facts = modern.facts
            if failure.code in (facts.errors.defined or ()):
                return False
            if failure.code == METHOD_NOT_FOUND and refusal.status == facts.http.unknown_method:
                return False
        return True

    async def _handle_refusal(self, message: OutgoingMessage, refusal: HttpStatusError) -> None:
        """Receive the body of a refusal as the response to the message, or raise the refusal.

        An error without a request id and with a temporary status describes the server's state, so
        the refusal is raised. So it is, as the cause, if the same request may succeed soon.
        """
        body = ParsedMessage.of(refusal.body)
        failure = None if refusal.wants_credentials else body.error_response()
        if failure is None or message.kind != "request":
            raise refusal
        if failure.id == message.id and not refusal.is_outage:
            await self._received.put(body)
        elif failure.id == message.id or (failure.id is None and not refusal.may_pass):
            raise RemoteError(
                failure.code, failure.message, failure.data, message.method
            ) from refusal
        else:
            raise refusal


def _takes_place(message: OutgoingMessage) -> bool:
    """Whether a message counts as an open request.

    The request that opens a session has none before it, and a subscription stays open for long.
    """
    if message.kind != "request" or message.method == INITIALIZE:
        return False
    return message.revision is None or message.method != message.revision.facts.behaviour.listen


def _may_repeat(message: OutgoingMessage, error: ResponseLostError | HttpStatusError) -> bool:
    """Whether to post a message at once again that is no request, and harmless if it comes twice.

    Source: basic/lifecycle (`notifications/initialized`); a response settles its request once.
    """
    if not (message.is_response or message.method == INITIALIZED):
        return False
    return isinstance(error, ResponseLostError) or (error.is_outage and error.begun is None)


def _is_lost(session: ServerSessionState, error: ResponseLostError | HttpStatusError) -> bool:
    """Whether an error means that the server has lost the session."""
    return isinstance(error, HttpStatusError) and session.is_lost(error.status)


class _StreamableHttp:
    """The connection to one endpoint: its posts, streams and session.

    Args:
        endpoint: The endpoint of the server.
        revisions: The revisions that the client supports.
        received: Queue for the received messages.
        start_soon: Starts a task.
        on_renewed: Called when a new session has replaced a lost session.
        on_stream: Called when the standalone stream is opened or cannot be reopened.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        revisions: Revisions,
        received: MessageQueue,
        start_soon: StartSoon,
        on_renewed: Callable[[], None] | None = None,
        on_stream: OnStream | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._received = received
        self._start_soon = start_soon
        self._sessions = Sessions(
            endpoint, revisions, self._on_message, start_soon, on_renewed, on_stream
        )
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
        endpoint = self._endpoint
        session = None if message.method == INITIALIZE else self._sessions.current
        is_request = message.kind == "request"
        seconds = math.inf if is_request else endpoint.timeouts.accept
        with self._posts.within(seconds, message.method, endpoint.url):
            fields = endpoint.fields(message, session)
            try:
                response = await endpoint.requests.open("POST", endpoint.url, fields, message.data)
            except (ResponseLostError, HttpStatusError) as error:
                if _may_repeat(message, error):
                    response = await endpoint.post(message, session)
                elif session is None or not _is_lost(session, error):
                    raise
                else:
                    session = await self._sessions.replace_session(session)
                    response = await self._post_again(message, session)
            if is_request:
                await self._receive_response(message, session, response)
                return
            await endpoint.requests.discard(response)
            if message.method == INITIALIZED and session is not None:
                self._sessions.confirm_session(session, message)

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
        await self._sessions.end()

    async def _receive_response(
        self, message: OutgoingMessage, session: ServerSessionState | None, response: Response
    ) -> None:
        """Receive the response to a request: a JSON body, or an event stream."""
        kind = content_type(response)
        if kind == MEDIA_TYPE:
            await self._open_stream(message, session, response)
            return
        requests = self._endpoint.requests
        if kind != JSON:
            raise await requests.unexpected_response(response, f"{JSON} or {MEDIA_TYPE}")
        body = _parse_message(await requests.read(response), session)
        results = body.results()
        assert message.id is not None
        if message.id not in results:
            raise self._missing_response_error(message, body)
        self._open_session(message, results[message.id], response)
        await self._received.put(body)

    async def _post_again(self, message: OutgoingMessage, session: ServerSessionState) -> Response:
        """Post a message again that the server refused because it had lost the session."""
        try:
            return await self._endpoint.post(message, session)
        except HttpStatusError as error:
            if session.is_lost(error.status):
                raise self._sessions.lost_twice_error() from error
            raise

    def _missing_response_error(self, message: OutgoingMessage, body: ParsedMessage) -> McpError:
        failure = body.error_response()
        if failure is not None and failure.id is None:
            return RemoteError(failure.code, failure.message, failure.data, message.method)
        came = body[:200].decode(errors="replace")
        return RemoteProtocolError(
            f"{self._endpoint}: expected the answer to {message.method}, came {safe_repr(came)}"
        )

    async def _open_stream(
        self, message: OutgoingMessage, session: ServerSessionState | None, response: Response
    ) -> None:
        """Start a task that reads the event stream with the response."""
        identifier = message.id
        assert identifier is not None

        async def on_message(data: bytes) -> None:
            parsed = _parse_message(data, session)
            answers = parsed.results()
            if identifier in answers:
                self._open_session(message, answers[identifier], response)
            elif parsed.has_response and self._streams.keys().isdisjoint(answers):
                stream.unmatched = self._missing_response_error(message, parsed)
            await self._pass_on(parsed, answers)

        requests = self._endpoint.requests
        resume, timeouts = self._resume(session), self._endpoint.timeouts
        stream = EventStream(requests, resume, on_message, identifier, timeouts)
        self._streams[identifier] = stream
        if not self._start_soon(self._follow, stream, session, response):
            await response.close()
            raise ConnectionClosedError("the connection is closed")

    def _resume(self, session: ServerSessionState | None) -> Resume | None:
        if session is None or not session.facts.http.resumable:
            return None
        return lambda last_event_id: self._endpoint.get(session, last_event_id)

    def _open_session(
        self, message: OutgoingMessage, result: bytes | None, response: Response
    ) -> None:
        if message.method == INITIALIZE and result is not None:
            self._sessions.store_session(message, result, response)

    async def _on_message(self, data: bytes) -> None:
        """Receive a message of the standalone stream."""
        parsed = _parse_message(data, self._sessions.current)
        await self._pass_on(parsed, parsed.results())

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
                await self._sessions.renew_if_lost(session, error.__cause__)
                self._received.put_error(RequestLost(identifier, error))
            except Exception as error:
                logger.exception("a stream of events failed")
                lost = ResponseLostError(f"{self._endpoint}: {safe_text(str(error))}")
                self._received.put_error(RequestLost(identifier, lost))
        if self._streams.get(identifier) is stream:
            del self._streams[identifier]


def _parse_message(data: bytes, session: ServerSessionState | None) -> ParsedMessage:
    """Parse a message of the server, once for the channel and its receiver."""
    return ParsedMessage.of(data, session is not None and session.agreed.batching)
