"""Streamable HTTP on the client's side, with and without sessions.

Each message is one POST. The HTTP response has the response to a request: as JSON, or as an event
stream that a separate task reads. If the server has lost the session, the client opens another one
and posts the message again: the server cannot have processed it.

Source: basic/transports (Streamable HTTP); 2026-07-28: basic/transports/streamable-http.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping

from ...channel import OutgoingMessage, RequestId
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
from ...protocol.jsonrpc import error_response_in, results_in
from ...protocol.lifecycle import INITIALIZE, INITIALIZED
from ..message_queue import MessageQueue
from .event_stream import EventStream, OnStream, Resume, StartSoon
from .http_client import Posts, content_type
from .http_libraries import Response
from .older_revisions import Sessions
from .session import Endpoint, ServerSessionState

logger = logging.getLogger(__name__.partition(".")[0])


class StreamableHttp:
    """The connection to one endpoint: its posts, streams and session.

    Args:
        endpoint: The endpoint of the server.
        revisions: The revisions that the client speaks.
        received: Queue for the received messages.
        start_soon: Starts a task.
        on_renewed: Called when a new session has replaced a lost one.
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
            endpoint, revisions, self._hear, start_soon, on_renewed, on_stream
        )
        self._posts = Posts()
        self._streams: dict[RequestId, EventStream] = {}

    async def open(self) -> None:
        """Do nothing: each message is a request of its own."""

    async def send(self, message: OutgoingMessage) -> None:
        """Post a message; returns with the response, or when its event stream has begun.

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
            except ResponseLostError:
                if message.method != INITIALIZED:
                    raise
                response = await endpoint.post(message, session)  # repeating it is harmless
            except HttpStatusError as error:
                if session is None or not session.is_lost(error.status):
                    raise
                session = await self._sessions.renewed(session)
                response = await self._post_again(message, session)
            if is_request:
                await self._receive_response(message, session, response)
                return
            await endpoint.requests.discard(response)
            if message.method == INITIALIZED and session is not None:
                self._sessions.confirmed(session, message)

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
            raise await requests.unexpected(response, f"{JSON} or {MEDIA_TYPE}")
        body = await requests.read(response)
        results = _results_in(body, session)
        assert message.id is not None
        if message.id not in results:
            raise self._no_response(message, body)
        self._open_session(message, results[message.id], response)
        await self._received.put(body)

    async def _post_again(self, message: OutgoingMessage, session: ServerSessionState) -> Response:
        """Post a message again that the server refused because its session was lost."""
        try:
            return await self._endpoint.post(message, session)
        except HttpStatusError as error:
            if session.is_lost(error.status):
                raise self._sessions.lost_twice() from error
            raise

    def _no_response(self, message: OutgoingMessage, body: bytes) -> McpError:
        failure = error_response_in(body)
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

        async def hear(data: bytes) -> None:
            answers = _results_in(data, session)
            if identifier in answers:
                self._open_session(message, answers[identifier], response)
            await self._pass_on(data, answers)

        requests = self._endpoint.requests
        resume, timeouts = self._resume(session), self._endpoint.timeouts
        stream = EventStream(requests, resume, hear, identifier, timeouts)
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
            self._sessions.opened(message, result, response)

    async def _hear(self, data: bytes) -> None:
        """Receive a message of the standalone stream."""
        await self._pass_on(data, _results_in(data, self._sessions.current))

    async def _pass_on(self, data: bytes, answers: Mapping[RequestId, object]) -> None:
        await self._received.put(data)
        for identifier in answers:
            if (stream := self._streams.get(identifier)) is not None:
                stream.answer_came()

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


def _results_in(data: bytes, session: ServerSessionState | None) -> dict[RequestId, bytes | None]:
    """The requests that a message answers; see `jsonrpc.results_in`."""
    return results_in(data, session is not None and session.agreed.batching)
