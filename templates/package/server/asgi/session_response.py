"""The response to one POST in a session, whose stream the client may resume.

Source: basic/transports#sending-messages-to-the-server, #resumability-and-redelivery
(to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ...channel import OutgoingMessage
from ...errors import ConnectionClosedError
from .http_response import HttpResponse
from .http_session import HttpSession
from .post_response import PostResponse
from .request import HttpRequest, Receive, Send
from .resumable_stream import ResumableStream
from .settings import ServerHttpSettings


class SessionResponse(PostResponse):
    """Carries the JSON-RPC responses to one POST in a session, and messages that precede them.

    Counts a connection of the client, until the client has all responses or is gone.

    Args:
        request: The POST.
        receive: The ASGI receive callable.
        send: The ASGI send callable.
        settings: The settings of the application.
        session: The session.
        expected: Number of JSON-RPC responses; `None` for the one of a POST that is no batch. The
            JSON responses of a batch are sent as one array.

    Attributes:
        attended: Whether the client waits for a response and was not found to be disconnected.
        disconnected: Whether it was found to be disconnected before all responses were sent.
    """

    def __init__(
        self,
        request: HttpRequest,
        receive: Receive,
        send: Send,
        settings: ServerHttpSettings,
        session: HttpSession,
        expected: int | None = None,
    ) -> None:
        super().__init__(request, receive, send, settings)
        session.users += 1
        self._session = session
        self._left = 1 if expected is None else expected
        self._batch = expected is not None
        self._documents: Sequence[bytes] = ()  # JSON-RPC responses that wait for others
        self._stream: ResumableStream | None = None
        self.attended = True
        self.disconnected = False

    @property
    def unfinished(self) -> bool:
        """Whether JSON-RPC responses are missing."""
        return self._left > 0

    @property
    def connected(self) -> bool:
        """Whether a client reads the stream, over this or a later connection."""
        return self._stream is not None and self._stream.attended

    async def send(self, message: OutgoingMessage) -> None:
        """Send a response, or a message that precedes one.

        If the response has to be JSON, no message can precede it: requests to the client are sent
        on another stream; other messages are dropped.

        Raises:
            TransportError: The session has no stream for a request.
        """
        is_response = message.is_response
        if self.done or (self._json_only and not self._streaming and not is_response):
            if message.kind == "request":
                await self._session.send_unrelated(message.data)
            return
        if is_response and not (self._streaming or self.events_only):
            await self._send_document(message.data)
            return
        if is_response:
            self._left -= 1  # before other tasks send
        is_last = is_response and not self._left
        if self._stream is None:
            await self._open(() if is_last else (message.data,))
        elif not is_last:
            await self._stream.put(message.data)
        if is_last:
            await self._end(message.data)

    async def _send_document(self, document: bytes) -> None:
        """Send a response as JSON, with all others of its batch."""
        self._left -= 1
        if not self._batch:
            self.done = True
            await HttpResponse(200, document, self.headers).send(self._send)
            return
        self._documents = [*self._documents, document]
        if not self._left:
            await self._end()

    async def open_stream(self, *, holds: bool = False) -> None:
        """Start the stream, regardless of the settings; see `PostResponse`."""
        await self._open()

    async def _open(self, messages: Sequence[bytes] = ()) -> None:
        """Start the stream with the responses that wait, and other messages."""
        self._streaming = True
        documents, self._documents = self._documents, ()
        self._stream = self._session.new_stream(self)
        await self._stream.open(self.sse, self.headers, (*documents, *messages))

    async def close_stream(self) -> None:
        """Close the connection of a stream that the client can resume. No-op for JSON."""
        await self.start_early()
        if self._stream is not None:
            await self._stream.close_connection()

    def disconnect(self) -> None:
        """Called when the client was found to be gone."""
        if self._stream is not None:
            self._stream.disconnect(self.sse)
        self.disconnected = self.attended and self._left > 0
        self.leave()

    def leave(self) -> None:
        """Record that the client disconnected, or has all responses."""
        if self.attended:
            self.attended = False
            self._session.leave()

    async def finish(self, instead: HttpResponse | None = None) -> None:
        """End the response, even if JSON-RPC responses are missing.

        Args:
            instead: Sent if nothing else was sent.
        """
        self.stop()
        if instead is not None and not self._documents and self._stream is None:
            await self.respond(instead)
        elif self._left:
            await self._end()

    def stop(self) -> None:
        """Count the client as gone, and stop waiting for its disconnect."""
        self.leave()
        if self._watching is not None:
            self._watching.cancel()

    async def _end(self, last: bytes = b"") -> None:
        """End the response, with a last event if it is a stream."""
        if self._stream is not None:
            self.done = True
            try:
                await self._stream.end(last)
            finally:  # afterwards, since another worker would take a missing stream for lost
                self._session.stream_ended(self._stream)
        elif self._documents:
            body = b"[%b]" % b",".join(self._documents)
            await self.respond(HttpResponse(200, body, self.headers))
        elif self._request.accepts_events and not self.done:
            # All requests were cancelled. A JSON body has to be a response; a stream may be empty.
            self.done = True
            with suppress(ConnectionClosedError):
                await self.sse.open(self.headers)
                await self.sse.close()
        else:
            accepted = self._session.revision.facts.http.accepted
            await self.respond(HttpResponse(accepted, headers=self.headers))
