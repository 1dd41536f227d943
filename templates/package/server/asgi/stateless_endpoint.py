"""POSTs of revisions without sessions: each POST has its own connection and response.

Source: basic/transports/streamable-http (2026-07-28: request metadata, backward compatibility),
basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import anyio

from ...channel import MessageSender, OutgoingMessage, RequestId
from ...errors import (
    INTERRUPTED,
    METHOD_NOT_FOUND,
    ConnectionClosedError,
    InternalError,
    ProtocolError,
)
from ...facts import Lifecycle, Revisions
from ...protocol import jsonrpc
from ...protocol.events import CloseStreams, NotificationReceived, RequestReceived, Send
from ...protocol.handshake import OWN_REQUESTS
from ...protocol.lifecycle import DISCOVER, RequestMetadata
from ...protocol.requests import error_response
from ...protocol.server_connection import ServerConnection, encode_result
from ...revision_facts import Facts
from ...runtime.eager_tasks import run_eagerly
from ...runtime.peer import Peer
from ...runtime.pending_requests import PARTING_SECONDS, PendingRequests
from ...runtime.request_context import NETWORK, RequestContext
from ...runtime.task_scope import TaskScope
from ..serving import AnnouncementQueue, Service
from . import http_response
from . import request as http
from .exchange import Exchange, HttpEndpoint, OpenExchanges, PostResponse, logger
from .header_validation import HeaderValidator
from .http_response import SHUTTING_DOWN, HttpResponse, Receive, Refused
from .http_response import Send as AsgiSend
from .quotas import Quotas, StreamMemory
from .request import HttpRequest
from .settings import HttpSettings

_UNAVAILABLE = 503
_WATCH_INTERVAL = 0.25  # most seconds between two checks of the open exchanges


class StatelessEndpoint(HttpEndpoint):
    """Serves the revisions without sessions; see `HttpEndpoint`.

    Args:
        service: The service of the server.
        settings: The HTTP settings.
        revisions: The revisions without sessions.
        background: Runs the tasks that wait for clients to disconnect.
        quotas: The amounts that all clients use together.
        worker: Not used.

    Attributes:
        headers: Validates header fields of these revisions.
        open_exchanges: As `exchanges`.
        stores: Whether a response waits for changes to be stored.
    """

    stores: ClassVar[bool] = False

    @staticmethod
    def revisions_of(revisions: Revisions) -> Revisions:
        """See `HttpEndpoint`."""
        return revisions.of(Lifecycle.PER_REQUEST)

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        revisions: Revisions,
        background: TaskScope,
        quotas: Quotas,
        worker: Any = None,
    ) -> None:
        self.headers = HeaderValidator(service.revisions, service.param_headers_of)
        self._quotas = quotas
        self.service = service
        self._settings = settings
        self._background = background
        facts = revisions.newest().facts
        self._statuses = _statuses(facts)
        self._http = facts.http
        interval = _WATCH_INTERVAL
        if settings.keep_alive is not None:
            interval = min(interval, settings.keep_alive / 2)
        self.exchanges = self.open_exchanges = OpenExchanges(background, quotas, interval)
        self._version_key = http.field_key(facts.headers.protocol_version or "")
        self._version_values = frozenset(name.encode() for name in revisions)
        self._reader = self.connection()
        listen = facts.behaviour.listen
        self._own = OWN_REQUESTS | {DISCOVER}
        if listen is not None:
            self._own |= {listen}

    def applies(self, request: HttpRequest, message: jsonrpc.Message | None) -> bool:
        """See `HttpEndpoint`."""
        if request.headers.get(self._version_key) in self._version_values:
            return True  # as of each request of these revisions
        return self.headers.applies(request, message)

    def names_revision(self, request: HttpRequest) -> bool:
        """See `HttpEndpoint`."""
        return self.headers.names_revision(request)

    def post(
        self,
        request: HttpRequest,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
        body: bytes,
        receive: Receive,
        send: AsgiSend,
    ) -> Awaitable[None] | None:
        """See `HttpEndpoint`."""
        if not isinstance(message, jsonrpc.Request):
            return self._post_other(request, message, send)
        client = request.client
        if client is None or ":" in client[0]:
            NETWORK.set(http.network_of(client))
        else:
            NETWORK.set(client[0])
        try:
            event, metadata = self._reader.read_request(message)
        except ProtocolError as error:
            mismatch = self._header_error(request, message)
            return self._refuse(message, mismatch or error, request, receive, send)
        if not self.headers.matches(request, event.revision, event.method, event.params):
            mismatch = self._header_error(request, message)
            if mismatch is not None:
                return self._refuse(message, mismatch, request, receive, send)
        if event.method.name in self._own:
            return self._answer(event, metadata, message, request, receive, send)
        exchange = StatelessExchange(self, request, receive, send, event, metadata)
        return exchange.start()

    def _header_error(self, request: HttpRequest, message: jsonrpc.Request) -> ProtocolError | None:
        """The error for a request whose header fields differ from its body."""
        try:
            self.headers.check(request, message, self.headers.values_of(message))
        except ProtocolError as error:
            return error
        return None

    def _refuse(
        self,
        message: jsonrpc.Request,
        error: ProtocolError,
        request: HttpRequest,
        receive: Receive,
        send: AsgiSend,
    ) -> Awaitable[None]:
        response = self.response_of(request, receive, send)
        response.other_status = self._http.rejected
        return response.send(self._refusal(message.id, error))

    async def _answer(
        self,
        event: RequestReceived,
        metadata: RequestMetadata,
        message: jsonrpc.Request,
        request: HttpRequest,
        receive: Receive,
        send: AsgiSend,
    ) -> None:
        """Answer a request that the connection handles itself, or open a subscription."""
        connection = self.connection()
        response = self.response_of(request, receive, send)
        response.other_status = self._http.rejected
        for each in connection.register(event, metadata):
            if isinstance(each, Send) and connection.state.inbound:
                peer = Peer(connection, response, self.service.application)
                await self._listen(peer, message, each.message, request, receive, response)
            elif isinstance(each, Send):
                await response.send(each.message)

    def response_of(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> PostResponse:
        """The response to a request."""
        return PostResponse(request, receive, send, self._settings, self._statuses)

    async def _post_other(
        self, request: HttpRequest, message: jsonrpc.Message | None, send: AsgiSend
    ) -> None:
        """Respond to a POST without a request; a notification is handled first."""
        if isinstance(message, jsonrpc.InvalidMessage):
            raise Refused(http_response.invalid_message(message))
        if not isinstance(message, jsonrpc.Notification):
            got = (
                "one JSON-RPC message, got an array"
                if message is None
                else "a request or a notification, got a response"
            )
            raise Refused(http_response.refusal(self._http.rejected, f"expected {got}"))
        try:
            self.headers.check_notification(request, message)
        except ProtocolError as error:
            body = self._refusal(None, error).data
            raise Refused(HttpResponse(self._http.rejected, body)) from None
        connection = self.connection()
        peer = Peer(connection, _NoSender(), self.service.application)
        for event in connection.receive(message):
            if isinstance(event, NotificationReceived):
                await peer.handle(event)
        await HttpResponse(self._http.accepted).send(send)

    async def _listen(
        self,
        peer: Peer,
        message: jsonrpc.Request,
        acknowledgement: OutgoingMessage,
        request: HttpRequest,
        receive: Receive,
        response: PostResponse,
    ) -> None:
        """Keep a subscription open until the client disconnects or the server ends the stream."""
        memory, streams = self._quotas.memory, self._quotas.streams
        http.check_events(request, id=message.id)
        if not streams.enter():
            raise Refused(http_response.over_limit("streams", id=message.id))
        self._quotas.in_flight -= 1  # counted among the streams meanwhile
        scope = anyio.CancelScope()
        stream = StreamMemory(scope.cancel)
        try:
            if not await memory.reserve(len(message.params or b""), stream):
                raise Refused(http_response.over_limit("session_bytes", id=message.id))
            disconnected = await self._announce(peer, acknowledgement, receive, response, scope)
        finally:
            self._quotas.in_flight += 1
            streams.leave()
            memory.close(stream)
        if not disconnected:
            for last in peer.connection.send(CloseStreams()):
                await response.send(last)
        await response.close()

    async def _announce(
        self,
        peer: Peer,
        acknowledgement: OutgoingMessage,
        receive: Receive,
        response: PostResponse,
        scope: anyio.CancelScope,
    ) -> bool:
        """Send announcements until one side ends the stream; returns whether the client did."""
        queue = AnnouncementQueue(peer)
        self.service.announcer.add(queue)
        try:
            await response.open_stream()
            await response.sse.write_event(acknowledgement.data)
            queue.send_by(self._background.start_together)
            keep_alive = self._settings.keep_alive
            return await self._quotas.streams.hold(receive, response.sse, keep_alive, scope)
        finally:
            self.service.announcer.remove(queue)
            queue.hold()

    def connection(self) -> ServerConnection:
        service, headers = self.service, self.headers
        return ServerConnection(
            headers.revisions,
            service.describe,
            service.extensions,
            headers.meta_cache,
            admit=service.admit,
            on_subscription=service.on_subscription,
        )

    def _refusal(self, identifier: RequestId | None, error: ProtocolError) -> OutgoingMessage:
        return error_response(identifier, error, self.headers.revisions.newest())


class StatelessExchange(Exchange[StatelessEndpoint, PostResponse]):
    """A request without a session. It is cancelled if its client disconnects; see `Exchange`."""

    _peer: PendingRequests | None = None
    _is_open = True  # there is no response yet, and the client is not known to be gone

    async def serve_on_trio(self) -> None:
        """See `Exchange`; in the task of the POST."""
        with anyio.CancelScope() as scope:
            await self.serve(scope)

    def begin(self) -> Callable[[], PendingRequests]:
        """See `Exchange`; most requests need no connection."""
        exchanges = self._owner.exchanges
        exchanges.open[self] = None
        if exchanges.added is not None:
            exchanges.wake()
        return self._open_peer

    def _open_peer(self) -> PendingRequests:
        if self._peer is None:
            connection, response = self._owner.connection(), self.writer()
            if self._is_open:
                assert self.metadata is not None
                connection.register(self.event, self.metadata)
            self._peer = PendingRequests(connection, response)
        return self._peer

    def new_response(self) -> PostResponse:
        """See `Exchange`."""
        response = self._owner.response_of(self._request, self._receive, self._send)
        response.call_on_abort(self._on_abort)
        return response

    def stream(self, context: RequestContext) -> Awaitable[Any]:
        """See `Exchange`; the stream begins when the handler waits."""
        handler = self._owner.service.application.handle(context)
        return run_eagerly(handler, self._start_watching)

    def _start_watching(self) -> None:
        self.watched = True
        self._owner.exchanges.background.start_soon(self.watch)

    def respond(self, result: Any) -> OutgoingMessage | None:
        """See `Exchange`."""
        if not self._is_open:
            return None
        event, owner = self.event, self._owner
        revision, identifier = event.revision, event.id
        own = owner.headers.meta_cache.of_results(revision, owner.service.describe)
        data = encode_result(
            identifier, result, event.method, revision, event.peer_capabilities, *own
        )
        self._is_open = False
        return OutgoingMessage(data, "response", identifier, "", revision, identifier)

    def respond_failure(self, failure: ProtocolError) -> OutgoingMessage | None:
        """See `Exchange`."""
        if not self._is_open:
            return None
        self._is_open = False
        try:
            return error_response(self.event.id, failure, self.event.revision)
        except Exception:
            logger.exception("%s: an error that has no JSON form", self.event.method.name)
            internal = InternalError("internal error")
            return error_response(self.event.id, internal, self.event.revision)

    async def reply(self, message: OutgoingMessage | None) -> None:
        """See `Exchange`."""
        if message is not None:
            await self.writer().send(message)

    async def cancelled(self) -> None:
        """See `Exchange`."""

    async def host_cancelled(self, task: asyncio.Future[None]) -> None:
        """See `Exchange`; the request ends."""
        if not task.done():
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])

    async def end(self) -> None:
        """End the response; with an error if the host cancelled the request before it."""
        del self._owner.exchanges.open[self]
        if self.response is not None or self._is_open:
            response = self.writer()
            response.stop_watching()
            if self._is_open:
                with anyio.CancelScope(shield=True):
                    await self.fail(SHUTTING_DOWN)
            await response.close()

    async def watch(self) -> None:
        """See `Exchange`; a disconnect cancels the request."""
        await self.writer().watch()

    async def fail(self, text: str) -> None:
        """See `Exchange`; responds for up to `PARTING_SECONDS`."""
        error = InternalError(text, data=INTERRUPTED)
        message, response = self.respond_failure(error), self.writer()
        if message is not None:
            response.other_status = _UNAVAILABLE
            with (
                anyio.move_on_after(PARTING_SECONDS) as waiting,
                suppress(Exception),  # exceptions of the ASGI server
            ):
                await response.send(message)
            if waiting.cancelled_caught:
                response.sse.abort()
        self.cancel()

    def _on_abort(self) -> None:
        self._is_open = False
        self.writer().done = True
        self._owner.exchanges.background.start_soon(self._cancel)

    async def _cancel(self) -> None:
        self.cancel()


class _NoSender(MessageSender):
    """Sends nothing: a notification has no response."""

    async def send(self, message: OutgoingMessage) -> None:
        raise ConnectionClosedError("a notification is not answered")

    async def close(self) -> None:
        pass


def _statuses(facts: Facts) -> dict[int, int]:
    """HTTP status by JSON-RPC error code."""
    pairs = (
        (METHOD_NOT_FOUND, facts.http.unknown_method),
        (facts.errors.header_mismatch, facts.http.header_mismatch),
        (facts.errors.unsupported_revision, facts.http.unsupported_revision),
        (facts.errors.missing_capability, facts.http.missing_capability),
    )
    return {code: status for code, status in pairs if code is not None and status is not None}
