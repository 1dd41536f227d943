"""POSTs of revisions without sessions: each POST has its own connection and response.

Source: basic/transports/streamable-http (2026-07-28: request metadata, backward compatibility),
basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from msgspec import UNSET

from ...channel import Channel, OutgoingMessage, RequestId
from ...errors import (
    INTERRUPTED,
    METHOD_NOT_FOUND,
    ConnectionClosedError,
    EndOfChannel,
    InternalError,
    ProtocolError,
)
from ...protocol import jsonrpc
from ...protocol.lifecycle import RequestMetadata
from ...protocol.receiver import CancelReceived, NotificationReceived, RequestReceived, Send
from ...protocol.requests import error_response
from ...protocol.server_connection import ServerConnection
from ...revision_facts import Facts
from ...runtime.concurrency import run_eagerly_here
from ...runtime.peer import Peer
from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.request_context import NETWORK
from ...runtime.task_scope import TaskScope
from ..planned_calls import PlainCall, PlainRequest
from ..serving import AnnouncementQueue, Service
from . import http_response
from . import request as http
from .header_validation import BodyValues, HeaderValidator
from .http_response import SHUTTING_DOWN, HttpResponse
from .plain_calls import Opened, PlainRequests, PlainService
from .quotas import Quotas, StreamMemory
from .response_writer import PostResponse
from .settings import ServerHttpSettings

_UNAVAILABLE = 503
_WATCH_INTERVAL = 0.25  # most seconds between two checks of the waiting calls


class StatelessEndpoint:
    """Serves the revisions without sessions.

    Args:
        service: The service of the server.
        settings: The HTTP settings.
        background: Runs the tasks that wait for clients to disconnect.
        quotas: The amounts that all clients use together.

    Attributes:
        headers: Validates header fields of these revisions.
        requests: Reads requests the plain way.
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
        self._calls = _WaitingCalls(settings.keep_alive)
        quotas.find_disconnected.append(self._calls.watch_all)
        meta = self.headers.meta_cache
        self._reader = meta.reader
        self.requests = PlainRequests(service.describe, meta)

    async def watch(self) -> None:
        """Watch the clients of long calls for disconnects, until cancelled."""
        await self._calls.watch()

    def watch_all(self) -> None:
        """Watch the clients of all waiting calls for disconnects."""
        self._calls.watch_all()

    async def fail_all(self, text: str) -> None:
        """Respond to all calls with an error, and cancel them."""
        async with anyio.create_task_group() as tasks:
            for call in self._calls:
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
            await (await self._respond_to_other(request, message)).send(send)
            return
        response = self._response_of(request, receive, send)
        try:
            self.headers.check(request, message, values)
        except ProtocolError as error:
            await response.send(self._refusal(message.id, error))
            return
        connection = self._connection()
        peer = Peer(connection, response, self._service.application)
        NETWORK.set(http.network_of(request.client))
        for event in connection.receive_message(message):
            if isinstance(event, RequestReceived):
                call = _Call(self._calls, self._background, peer, event.id, response)
                await self._serve(call, event, scope)
            elif isinstance(event, Send) and connection.state.inbound:
                await self._listen(peer, message, event.message, request, receive, response)
            else:
                await peer.handle(event)

    def admit(
        self, request: http.HttpRequest, call: PlainCall
    ) -> tuple[RequestMetadata, None] | None:
        """The metadata of a call; see `PlainEndpoint`."""
        raw = call.params.meta
        stated = None if raw is UNSET else self._reader.repeated_metadata(bytes(raw))
        if stated is None or not self.headers.matches(
            request, stated.revision, call.method, call.params
        ):
            return None
        return stated, None

    def read(
        self, request: http.HttpRequest, message: jsonrpc.Request
    ) -> tuple[PlainRequest, None] | None:
        """A request; see `PlainEndpoint`."""
        plain = self.requests.read(message, self._reader.last, self._reader.last_meta)
        if (
            plain is None
            or not self.headers.matches(
                request, plain.stated.revision, plain.method.name, plain.params
            )
            or http.response_forms(request, self._settings.answers)[1]
        ):
            return None
        NETWORK.set(http.network_of(request.client))
        return plain, None

    def open(self, served: PlainService) -> Opened:
        """Register a request with a connection; see `PlainEndpoint`."""
        response = self._response_of(*served.post)
        response.done = served.done
        response.created = served.since or response.created
        connection, event = self._connection(), served.request().event()
        peer = Peer(connection, response, self._service.application)
        call = _Call(self._calls, self._background, peer, event.id, response)
        if not served.done:
            connection.register(event, served.stated)
            if served.scope is not None:  # the handler may wait, now or later
                peer.begin(event.id, served.scope)
                call.wait()
        return peer.callers, partial(self._serve, call, event)

    def wait(self, served: PlainService) -> None:
        """Record that the handler of a request waits; see `PlainEndpoint`."""
        self._calls.add(served)

    def stop_waiting(self, served: PlainService) -> None:
        """Record that the handler of a request has ended; see `PlainEndpoint`."""
        self._calls.discard(served)

    def _response_of(
        self, request: http.HttpRequest, receive: http.Receive, send: http.Send
    ) -> PostResponse:
        """The response to a request, at first with the status of errors in its head."""
        return PostResponse(
            request,
            receive,
            send,
            self._settings,
            statuses=self._statuses,
            other_status=self._http.rejected,
        )

    async def _serve(
        self,
        call: _Call,
        event: RequestReceived,
        scope: anyio.CancelScope,
        handler: Awaitable[Any] | None = None,
    ) -> None:
        """Serve a request.

        Args:
            call: The request.
            event: The event of its connection.
            scope: The scope of the caller.
            handler: Returns the result, if the handler was started already.
        """
        response = call.response
        response.other_status = 200
        try:
            await run_eagerly_here(call.peer.handle(event, scope, handler), call.wait)
        finally:
            if call.waits or not response.done:
                await call.end()

    async def _respond_to_other(
        self, request: http.HttpRequest, message: jsonrpc.Message | None
    ) -> HttpResponse:
        """The response to a POST without a request; a notification is handled first."""
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
        await response.close()

    async def _announce(
        self,
        peer: Peer,
        acknowledgement: OutgoingMessage,
        receive: http.Receive,
        response: PostResponse,
        scope: anyio.CancelScope,
    ) -> bool:
        """Send announcements until one side ends the stream; returns whether the client did."""
        queue = AnnouncementQueue(peer)
        self._service.announcer.add(queue)
        try:
            await response.open_stream()
            await response.sse.write_event(acknowledgement.data)
            queue.send_by(self._background.start_together)
            keep_alive = self._settings.keep_alive
            return await self._quotas.streams.hold(receive, response.sse, keep_alive, scope)
        finally:
            self._service.announcer.remove(queue)
            queue.hold()

    def _connection(self) -> ServerConnection:
        service, headers = self._service, self.headers
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


class _WaitingCalls:
    """The calls whose handlers wait.

    Most handlers wait for a short time. A task per call that waits for the client to disconnect
    would cost more than the call. So one task checks all calls periodically, and starts a watching
    task for each call that still waits. Calls that came the plain way are opened then.

    Args:
        keep_alive: Seconds of silence after which a stream is opened, or gets a comment; `None` for
            never.
    """

    def __init__(self, keep_alive: float | None) -> None:
        self._interval = (
            _WATCH_INTERVAL if keep_alive is None else min(_WATCH_INTERVAL, keep_alive / 2)
        )
        self._calls: set[_Call | PlainService] = set()
        self._added: anyio.Event | None = None

    def __iter__(self) -> Iterator[_Call]:
        for call in list(self._calls):
            if isinstance(call, PlainService):
                self._calls.discard(call)
                call.observe()  # adds it as an open request
        return iter([call for call in self._calls if isinstance(call, _Call)])

    def add(self, call: _Call | PlainService) -> None:
        """Add a call."""
        self._calls.add(call)
        if self._added is not None:
            self._added.set()
            self._added = None

    def discard(self, call: _Call | PlainService) -> None:
        """Remove a call."""
        self._calls.discard(call)

    async def watch(self) -> None:
        """Start watching the waiting calls periodically, until cancelled."""
        while True:
            if not self._calls:
                self._added = anyio.Event()
                await self._added.wait()
            await anyio.sleep(self._interval)
            self.watch_all()

    def watch_all(self) -> None:
        """Start watching all waiting calls."""
        for call in self:
            if not call.watched:
                call.watch()


class _Call:
    """A request that is being served.

    Args:
        calls: The calls whose handlers wait.
        background: Runs the tasks that watch and cancel.
        peer: The protocol of the request.
        identifier: Id of the request.
        response: The response.

    Attributes:
        peer: As passed.
        response: As passed.
        waits: Whether the handler has begun to wait.
        watched: Whether a task waits for the client to disconnect.
    """

    __slots__ = ("_background", "_calls", "_id", "peer", "response", "waits", "watched")

    def __init__(
        self,
        calls: _WaitingCalls,
        background: TaskScope,
        peer: Peer,
        identifier: RequestId,
        response: PostResponse,
    ) -> None:
        self._calls = calls
        self._background = background
        self.peer = peer
        self._id = identifier
        self.response = response
        self.waits = self.watched = False

    def wait(self) -> None:
        """Record that the handler waits, so that the call is watched if it is long."""
        self.waits = True
        self._calls.add(self)
        self.response.call_on_abort(self._on_abort)
        if self.response.events_only:  # the stream begins at once
            self.watch()

    def watch(self) -> None:
        """Start a task that waits for the client to disconnect."""
        self.watched = True
        self._background.start_soon(self.response.watch)

    async def end(self) -> None:
        """End the response; with an error if the host cancelled the request before it."""
        response = self.response
        response.stop_watching()
        self._calls.discard(self)
        if not response.done:
            with anyio.CancelScope(shield=True):
                await self.fail(SHUTTING_DOWN)
        await response.close()

    async def fail(self, text: str) -> None:
        """Respond with an error, for up to `PARTING_SECONDS`, and cancel the request."""
        peer, response = self.peer, self.response
        message = peer.connection.fail(self._id, InternalError(text, data=INTERRUPTED))
        if message is not None:
            response.other_status = _UNAVAILABLE
            with (
                anyio.move_on_after(PARTING_SECONDS) as waiting,
                suppress(Exception),  # exceptions of the ASGI server
            ):
                await response.send(message)
            if waiting.cancelled_caught:
                response.sse.abort()
        await peer.handle(CancelReceived(self._id, text))

    def _on_abort(self) -> None:
        self.response.done = True
        self._background.start_soon(self._cancel)

    async def _cancel(self) -> None:
        for event in self.peer.connection.stream_closed(self._id):
            await self.peer.handle(event)


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
