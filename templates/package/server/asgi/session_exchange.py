"""POSTs in sessions: requests, which go on if their client disconnects, and other messages.

The response to a POST without requests comes first, since a handler may wait for the next message
of the client.

Source: basic/transports#streamable-http, #sending-messages-to-the-server
(2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio

from ...channel import OutgoingMessage
from ...errors import INTERRUPTED, ConnectionClosedError, InternalError, ProtocolError
from ...protocol import jsonrpc
from ...protocol.events import (
    CancelReceived,
    Event,
    RequestReceived,
    Send,
    SendError,
    SendResponse,
)
from ...runtime.eager_tasks import run_eagerly
from ...runtime.pending_requests import PARTING_SECONDS, PendingRequests
from ...runtime.request_context import RequestContext
from . import http_response
from .exchange import Exchange
from .http_response import SHUTTING_DOWN, HttpResponse, Receive, Refused
from .http_response import Send as AsgiSend
from .http_session import HttpSession
from .quotas import starts_work
from .request import HttpRequest
from .sse_response import RESPONSES, PostResponse, SessionStream


class SessionResponse(PostResponse):
    """The response to one request in a session, and the messages that precede it.

    Counts a connection of the client, until the client has the response or is gone.

    Attributes:
        attended: Whether the client waits for a response and was not found to be disconnected.
        disconnected: Whether it was found to be disconnected before the response was sent.
        stream: The stream that carries the response, if it is one.
        unfinished: Whether a JSON-RPC response is missing.
    """

    def __init__(
        self, request: HttpRequest, receive: Receive, send: AsgiSend, session: HttpSession
    ) -> None:
        super().__init__(request, receive, send, session.settings)
        session.users += 1
        self._session = session
        self.stream: SessionStream | None = None
        self.attended = self.unfinished = True
        self.disconnected = False

    @property
    def connected(self) -> bool:
        """Whether a client reads the stream, over this or a later connection."""
        return self.stream is not None and self.stream.attended

    async def send(self, message: OutgoingMessage) -> None:
        """Send the response, or a message that precedes it.

        If the response has to be JSON, no message can precede it: requests to the client are sent
        on another stream; other messages are dropped.

        Raises:
            TransportError: The session has no stream for a request.
        """
        is_response = message.kind in RESPONSES
        if self.done or (self._json_only and not self._streaming and not is_response):
            if message.kind == "request":
                await self._session.send_unrelated(message.data)
        elif not is_response and self.stream is not None:
            await self.stream.put(message.data)
        elif not is_response:
            await self._open((message.data,))
        elif self._streaming or self.events_only:
            self.unfinished = False  # before other tasks send
            if self.stream is None:
                await self._open()
            await self._end(message.data)
        else:
            self.unfinished, self.done = False, True
            await HttpResponse(200, message.data, self.headers).send(self._send)

    async def open_stream(self, *, holds: bool = False) -> None:
        """Start the stream, regardless of the settings; see `PostResponse`."""
        await self._open()

    async def _open(self, messages: Sequence[bytes] = ()) -> None:
        self._streaming = True
        self.stream = self._session.new_stream(self)
        await self.stream.open(self.sse, self.headers, messages)

    def disconnect(self) -> None:
        """Called when the client was found to be gone."""
        if self.stream is not None:
            self.stream.disconnect(self.sse)
        self.disconnected = self.attended and self.unfinished
        self.leave()

    def leave(self) -> None:
        """Record that the client disconnected, or has all responses."""
        if self.attended:
            self.attended = False
            self._session.leave()

    async def finish(self, instead: HttpResponse | None = None) -> None:
        """End the response, even if the JSON-RPC response is missing.

        Args:
            instead: Sent if nothing else was sent.
        """
        self.stop()
        if instead is not None and self.stream is None:
            await self.respond(instead)
        elif self.unfinished:
            await self._end()

    def stop(self) -> None:
        """Count the client as gone, and stop waiting for its disconnect."""
        self.leave()
        if self._watching is not None:
            self._watching.cancel()

    async def _end(self, last: bytes = b"") -> None:
        """End the response, with a last event if it is a stream."""
        if self.stream is not None:
            self.done = True
            try:
                await self.stream.end(last)
            finally:  # afterwards, since another worker would take a missing stream for lost
                self._session.end_stream(self.stream)
        elif self._request.accepts_events and not self.done:
            # The request was cancelled. A JSON body has to be a response; a stream may be empty.
            self.done = True
            with suppress(ConnectionClosedError):
                await self.sse.open(self.headers)
                await self.sse.close()
        else:
            accepted = self._session.revision.facts.http.accepted
            await self.respond(HttpResponse(accepted, headers=self.headers))


class SessionExchange(Exchange[HttpSession, "SessionResponse"]):
    """A request in a session, its owner; see `Exchange`.

    Attributes:
        kept: Bytes reserved for a change of subscriptions.
    """

    kept: int | None = None

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, perhaps after resuming it."""
        return self.response is not None and self.response.connected

    async def serve_on_trio(self) -> None:
        """See `Exchange`; in a task of the lifespan, which goes on if the POST is cancelled."""
        with anyio.CancelScope() as scope:
            try:
                await self._owner.open_exchanges.background.outlive(scope, self.serve)
            except anyio.get_cancelled_exc_class():
                self._leave_post()
                raise

    def new_response(self) -> SessionResponse:
        """See `Exchange`."""
        session = self._owner
        response = SessionResponse(self._request, self._receive, self._send, session)
        session.users -= 1  # the response counts the client
        return response

    def begin(self) -> PendingRequests:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        peer = session.peer
        if self.response is None:
            session.users += 1
        session.exchanges[identifier] = self
        peer.scopes[identifier] = self
        exchanges = session.open_exchanges
        exchanges.open[self] = None
        if exchanges.added is not None:
            exchanges.wake()
        return peer.callers

    async def stream(self, context: RequestContext) -> Any:
        """See `Exchange`."""
        await self.writer().start()
        return await self._owner.service.application.handle(context)

    def respond(self, result: Any) -> OutgoingMessage | None:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        if session.peer.scopes.get(identifier) is not self:
            return None  # and its id may be that of another request
        (message,) = session.peer.connection.send(SendResponse(identifier, result)) or (None,)
        session.exchanges.pop(identifier, None)
        return message

    def respond_failure(self, failure: ProtocolError) -> OutgoingMessage | None:
        """See `Exchange`."""
        session, identifier = self._owner, self.event.id
        if session.peer.scopes.get(identifier) is not self:
            return None
        session.exchanges.pop(identifier, None)
        (message,) = session.peer.error_response(self.event, failure) or (None,)
        return message

    async def reply(self, message: OutgoingMessage | None) -> None:
        """See `Exchange`."""
        if self._owner.stores:
            await self._owner.store_changes()
        if message is not None:
            await (self.response or self.writer()).send(message)
        else:
            await self._finish()

    async def cancelled(self) -> None:
        """See `Exchange`."""
        if self.cancel_called:  # the client cancelled the request
            await self._finish()
        else:  # the server ends
            await self.fail(SHUTTING_DOWN)

    async def host_cancelled(self, task: asyncio.Future[None]) -> None:
        """See `Exchange`; the request goes on."""
        self._leave_post()

    def take_place(self) -> None:
        """Take a place among the messages in flight, besides that of the POST."""
        self.places += 1
        self._owner.open_exchanges.quotas.in_flight += 1

    def _leave_post(self) -> None:
        """Go on without the POST, which the host cancelled: its client is gone."""
        if self in self._owner.open_exchanges.open:
            self.take_place()
            self._owner.open_exchanges.abandon(self)

    async def watch(self) -> None:
        """See `Exchange`. If the client disconnects, the whole POST is abandoned."""
        response = self.writer()
        await response.watch()
        if response.disconnected:
            for exchange in list(self._owner.exchanges.values()):
                if isinstance(exchange, SessionExchange) and exchange.response is response:
                    self._owner.open_exchanges.abandon(exchange)

    async def fail(self, text: str) -> None:
        """See `Exchange`; responds for up to `PARTING_SECONDS`."""
        session, identifier = self._owner, self.event.id
        if session.exchanges.get(identifier) is not self:
            return
        error = InternalError(text, data=INTERRUPTED)
        for message in session.peer.connection.send(SendError(identifier, error)):
            with (
                anyio.move_on_after(PARTING_SECONDS, shield=True) as waiting,
                suppress(Exception),  # exceptions of the ASGI server
            ):
                await session.send(message)
            if waiting.cancelled_caught and self.response is not None:
                self.response.sse.abort()
            await session.peer.handle(CancelReceived(identifier, text))

    async def end(self) -> None:
        """See `Exchange`."""
        session, identifier, exchanges = self._owner, self.event.id, self._owner.open_exchanges
        scopes = session.peer.scopes
        if session.exchanges.get(identifier) is self:
            del session.exchanges[identifier]
        if scopes.get(identifier) is self:
            del scopes[identifier]
        del exchanges.open[self]
        if exchanges.abandoned:
            exchanges.end(self)
        exchanges.quotas.in_flight -= self.places
        if self.response is None:
            session.leave()
        else:
            self.response.stop()
        if self.kept is not None:
            session.count_subscriptions(self.kept)

    async def _finish(self) -> None:
        """End the response of a request that was cancelled, or whose session has ended."""
        with anyio.CancelScope(shield=True):
            over = self._owner.over
            await self.writer().finish(http_response.session_ended() if over else None)


class PostedEvents:
    """The events of a POST without requests, handled once the POST has its response.

    Args:
        session: The session.
        events: The events; those that are no work for a handler are ignored.

    Attributes:
        attended: Whether a client waits for the end of the work.
    """

    attended = False

    def __init__(self, session: HttpSession, events: Sequence[Event]) -> None:
        self._session = session
        self._events = events
        self._scope = anyio.CancelScope()

    async def serve(self, response: HttpResponse, send: AsgiSend) -> None:
        """Respond, then handle the events, which count as abandoned if a handler waits."""
        session, exchanges = self._session, self._session.open_exchanges
        session.users += 1
        with suppress(OSError):
            await response.send(send)
        session.leave()
        session.handling += 1
        try:
            await run_eagerly(self.handle(), lambda: exchanges.abandon(self))
        finally:
            session.handling -= 1
            exchanges.end(self)

    async def handle(self) -> None:
        """Handle the events in order, until `fail`."""
        with self._scope:
            for event in self._events:
                if not isinstance(event, (RequestReceived, Send)):
                    await self._session.peer.handle(event)

    async def fail(self, text: str) -> None:
        """Cancel the handlers."""
        self._scope.cancel()


async def post_message(session: HttpSession, message: jsonrpc.Message, send: AsgiSend) -> None:
    """Respond to a POST of one message that is no request.

    Raises:
        Refused: The message is not served.
    """
    if isinstance(message, jsonrpc.InvalidMessage):
        is_ours = message.response and message.id is not None  # it fails a request of this side
        events = received_events(session, message) if is_ours else ()
        await PostedEvents(session, events).serve(http_response.invalid_message(message), send)
        return
    if session.handling >= session.settings.limits.per_session and starts_work(message):
        raise Refused(http_response.over_limit("per_session"))
    events = received_events(session, message)
    await session.store_changes()
    accepted = HttpResponse(session.revision.facts.http.accepted)
    await PostedEvents(session, events).serve(accepted, send)


def received_events(session: HttpSession, message: jsonrpc.Message) -> Sequence[Event]:
    """Pass a message to the protocol."""
    peer = session.peer
    now = anyio.current_time() if peer.callers.timed else 0.0
    return peer.connection.receive(message, now)
