"""POSTs of revisions without sessions: each has its own connection, and one response or stream.

Source: basic/transports/streamable-http, basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from contextlib import suppress

import anyio

from ...channel import Channel, OutgoingMessage, RequestId
from ...errors import (
    METHOD_NOT_FOUND,
    ConnectionClosedError,
    EndOfChannel,
    InternalError,
    ProtocolError,
)
from ...protocol import jsonrpc
from ...protocol.connection import Connection
from ...protocol.receiver import CancelReceived, NotificationReceived, RequestReceived, Send
from ...protocol.requests import error_response
from ...revision_facts import Facts
from ...runtime.concurrency import pausing
from ...runtime.peer import Peer
from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.task_scope import TaskScope
from ..serving import AnnouncementQueue, Service
from . import http_response
from . import request as http
from .header_validation import BodyValues, HeaderValidator
from .http_response import SHUTTING_DOWN, HttpResponse
from .post_response import PostResponse
from .quotas import Quotas, StreamMemory
from .settings import ServerHttpSettings

_UNAVAILABLE = 503


class StatelessEndpoint:
    """Serves the revisions without sessions.

    Args:
        service: What is served.
        settings: How it is served.
        background: Runs the tasks that wait for clients to disconnect.
        quotas: What all clients use together.

    Attributes:
        headers: The rules of these revisions for header fields.
    """

    def __init__(
        self, service: Service, settings: ServerHttpSettings, background: TaskScope, quotas: Quotas
    ) -> None:
        self.headers = HeaderValidator(service.revisions, service.param_headers_of)
        self._quotas = quotas
        self._service = service
        self._settings = settings
        self._background = background
        facts = self.headers.facts or Facts()
        self._statuses = _statuses(facts)
        self._http = facts.http
        self._calls: set[_Call] = set()

    async def fail_all(self, text: str) -> None:
        """Respond to all calls with an error, and cancel them."""
        async with anyio.create_task_group() as tasks:
            for call in list(self._calls):
                tasks.start_soon(call.fail, text)

    async def post(
        self,
        request: http.HttpRequest,
        message: jsonrpc.Message | None,
        values: BodyValues,
        receive: http.Receive,
        send: http.Send,
        scope: anyio.CancelScope,
    ) -> None:
        """Respond to one POST.

        Args:
            request: The POST.
            message: The message in its body; `None` for a batch.
            values: The values of the message that header fields repeat.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            scope: The scope of the caller; cancelled when the request is cancelled.
        """
        if not isinstance(message, jsonrpc.Request):
            await (await self._take(request, message)).send(send)
            return
        rejected = self._http.rejected
        response = PostResponse(
            request, receive, send, self._settings, statuses=self._statuses, other_status=rejected
        )
        try:
            self.headers.check(request, message, values)
        except ProtocolError as error:
            await response.send(self._refusal(message.id, error))
            return
        connection = self._connection()
        peer = Peer(connection, response, self._service.application)
        for event in connection.receive_message(message):
            if isinstance(event, RequestReceived):
                response.other_status = 200
                call = _Call(self._calls, self._background, peer, event.id, response)
                try:
                    await pausing(peer.handle(event, scope), call.watch)
                finally:
                    if call.watched or not response.done:
                        await call.end()
            elif isinstance(event, Send) and connection.inbound_requests:
                await self._listen(peer, message, event.message, request, receive, response)
            else:
                await peer.handle(event)

    async def _take(
        self, request: http.HttpRequest, message: jsonrpc.Message | None
    ) -> HttpResponse:
        """The response to a POST that is no request; a notification is handled first."""
        if isinstance(message, jsonrpc.InvalidMessage):
            return http_response.invalid_message(message)
        if not isinstance(message, jsonrpc.Notification):
            got = (
                "one JSON-RPC message, got an array"
                if message is None
                else "a request or a notification, got a response"
            )
            return http_response.refusal(self._http.rejected, f"expected {got}")
        try:
            self.headers.check_notification(request, message)
        except ProtocolError as error:
            return HttpResponse(self._http.rejected, self._refusal(None, error).data)
        connection = self._connection()
        peer = Peer(connection, _NoChannel(), self._service.application)
        for event in connection.receive_message(message):
            if isinstance(event, NotificationReceived):
                await peer.handle(event)
        return HttpResponse(self._http.accepted)

    async def _listen(
        self,
        peer: Peer,
        message: jsonrpc.Request,
        acknowledgement: OutgoingMessage,
        request: http.HttpRequest,
        receive: http.Receive,
        response: PostResponse,
    ) -> None:
        """Keep a subscription open until the client disconnects or the server ends the stream."""
        memory, streams = self._quotas.memory, self._quotas.streams
        refused = http.check_events(request, id=message.id)
        if refused is None and not streams.enter():
            refused = http_response.over_limit("streams", id=message.id)
        if refused is not None:
            await response.respond(refused)
            return
        self._quotas.in_flight -= 1  # counted among the streams meanwhile
        scope = anyio.CancelScope()
        stream = StreamMemory(scope.cancel)
        try:
            if not await memory.reserve(len(message.params or b""), stream):
                await response.respond(http_response.over_limit("session_bytes", id=message.id))
                return
            disconnected = await self._announce(peer, acknowledgement, receive, response, scope)
        finally:
            self._quotas.in_flight += 1
            streams.leave()
            memory.close(stream)
        if not disconnected:
            for last in peer.connection.close_streams():
                await response.send(last)
        peer.connection.stream_closed(message.id)
        await response.close()

    async def _announce(
        self,
        peer: Peer,
        acknowledgement: OutgoingMessage,
        receive: http.Receive,
        response: PostResponse,
        scope: anyio.CancelScope,
    ) -> bool:
        """Send announcements until one side ends the stream; whether the client did."""
        queue = AnnouncementQueue(peer)
        self._service.announcer.add(queue)
        try:
            await response.open_stream()
            await response.sse.event(acknowledgement.data)
            queue.send_by(self._background.start_soon)
            keep_alive = self._settings.keep_alive
            return await self._quotas.streams.hold(receive, response.sse, keep_alive, scope)
        finally:
            self._service.announcer.remove(queue)
            queue.hold()

    def _connection(self) -> Connection:
        service, headers = self._service, self.headers
        return Connection(
            "server",
            headers.revisions,
            service.describe,
            service.extensions,
            headers.meta_cache,
            admit=service.admit,
            on_subscription=service.on_subscription,
        )

    def _refusal(self, identifier: RequestId | None, error: ProtocolError) -> OutgoingMessage:
        return error_response(identifier, error, self.headers.revisions.newest())


class _Call:
    """A request that is being served.

    Args:
        calls: The calls that are watched.
        background: Runs the tasks that watch and cancel.
        peer: The protocol of the request.
        identifier: Id of the request.
        response: The response.

    Attributes:
        watched: Whether a task waits for the client to disconnect.
    """

    __slots__ = ("_background", "_calls", "_id", "_peer", "_response", "watched")

    def __init__(
        self,
        calls: set[_Call],
        background: TaskScope,
        peer: Peer,
        identifier: RequestId,
        response: PostResponse,
    ) -> None:
        self._calls = calls
        self._background = background
        self._peer = peer
        self._id = identifier
        self._response = response
        self.watched = False

    def watch(self) -> None:
        """Wait for the client to disconnect: the handler has to wait for something."""
        self.watched = True
        self._calls.add(self)
        self._response.sse.on_abort = self._on_abort
        self._background.start_soon(self._response.watch)

    async def end(self) -> None:
        """End the response; with an error if there was none, because the host cancelled."""
        response = self._response
        response.stop_watching()
        self._calls.discard(self)
        if not response.done:
            with anyio.CancelScope(shield=True):
                await self.fail(SHUTTING_DOWN)
        await response.close()

    async def fail(self, text: str) -> None:
        """Respond with an error and cancel the request; the client has a second to read."""
        peer, response = self._peer, self._response
        message = peer.connection.fail(self._id, InternalError(text))
        if message is not None:
            response.other_status = _UNAVAILABLE
            with (
                anyio.move_on_after(PARTING_SECONDS) as waiting,
                suppress(Exception),  # the host's own
            ):
                await response.send(message)
            if waiting.cancelled_caught:
                response.sse.abort()
        await peer.handle(CancelReceived(self._id, text))

    def _on_abort(self) -> None:
        self._response.done = True
        self._background.start_soon(self._cancel)

    async def _cancel(self) -> None:
        for event in self._peer.connection.stream_closed(self._id):
            await self._peer.handle(event)


class _NoChannel(Channel):
    """The channel of a notification, which has no response."""

    async def receive(self) -> bytes:
        raise EndOfChannel("a POST brings one message")

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
