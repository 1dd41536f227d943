"""The two endpoints of HTTP+SSE: a GET that opens a stream, and POSTs of messages.

    GET  -> endpoint event, then a message event for each message      ends when either side closes
    POST -> 202; the message goes to the session of the stream that the query names

Source: basic/transports#http-with-sse (2024-11-05).
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs

import anyio
import msgspec

from ...channel import Channel, OutgoingMessage
from ...errors import EndOfChannel
from ...facts import Lifecycle
from ...framing.sse import ENDPOINT, MESSAGE
from ...protocol import jsonrpc
from ...protocol.handshake import FOLLOWING
from ...protocol.lifecycle import INITIALIZE
from ...runtime.request_context import PRINCIPAL, Application, Identity, Principal, RequestContext
from ..serving import AnnouncementQueue, Service, new_session, run_session
from . import http_response
from . import request as http
from .http_response import HttpResponse, Receive, Refused, SseResponse
from .http_response import Send as AsgiSend
from .quotas import Quotas, StreamMemory, decoded_size, starts_work, subscriptions_size
from .request import Authentication, HttpRequest, RequestBodies
from .settings import HttpSettings, Limits

_ID_BYTES = 32
_QUERY = "session_id"
_ACCEPTED = HttpResponse(202)


class SseChannel(Channel):
    """The channel to one client: receives messages by POST, sends messages as events.

    Args:
        response: The stream of the client.
        limits: The limits of messages that wait to be received.
        quotas: The amounts that all clients use together.

    Attributes:
        scope: Keeps the stream open; cancelled to end it.
        memory: The memory of waiting messages.
    """

    def __init__(self, response: SseResponse, limits: Limits, quotas: Quotas) -> None:
        self.scope = anyio.CancelScope()
        self.memory = StreamMemory(self.scope.cancel)
        self._quotas = quotas
        self._response = response
        self._limits = limits
        self._ended = False
        self._posted: deque[tuple[bytes, Principal | None]] = deque()
        self._size = 0
        self._arrived = anyio.Event()

    @property
    def waiting(self) -> int:
        """Number of messages that were posted and not received yet."""
        return len(self._posted)

    async def post(self, message: bytes, principal: Principal | None) -> None:
        """Queue a message.

        Messages wait if the client does not read its stream, which blocks its session.

        Args:
            message: The message.
            principal: The principal of the POST; `None` without authorization.

        Raises:
            Refused: Too many messages wait to be received.
        """
        size = self._size + len(message)
        if self._posted and (self.waiting >= self._limits.per_session or size > self._limits.body):
            text = "too much waits to be received (Limits.per_session, Limits.body)"
            raise Refused(http_response.unavailable(text))
        if not await self._quotas.memory.reserve(len(message), self.memory):
            raise Refused(http_response.over_limit("session_bytes"))
        self._posted.append((message, principal))
        self._size += len(message)
        self._arrived.set()

    async def receive(self) -> bytes:
        """Wait for the next posted message."""
        while not self._posted:
            if self._ended:
                raise EndOfChannel("the stream is closed")
            self._arrived = anyio.Event()
            await self._arrived.wait()
        message, principal = self._posted.popleft()
        if principal is not None:
            PRINCIPAL.set(principal)
        self._size -= len(message)
        self._quotas.memory.release(len(message), self.memory)
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Send a message as an event."""
        await self._response.write_event(message.data, type=MESSAGE)

    def end(self) -> None:
        """Receive nothing more; pending requests may still be answered."""
        self._ended = True
        self._quotas.memory.release(self._size, self.memory)
        self._posted.clear()
        self._size = 0
        self._arrived.set()

    async def close(self) -> None:
        """See `end`."""
        self.end()


class _Client(msgspec.Struct):
    channel: SseChannel
    queue: AnnouncementQueue
    owner: Identity | None = None  # of the principal that opened the stream
    kept: int = 0  # bytes of its `initialize`, and of the URIs that it subscribes to

    @property
    def pending(self) -> int:
        """Estimated number of the client's requests without response."""
        return self.channel.waiting + len(self.queue.peer.connection.state.inbound)


class _CountingApplication:
    """An application whose requests and notifications count as in flight."""

    def __init__(self, application: Application, quotas: Quotas) -> None:
        self._application = application
        self._quotas = quotas

    async def handle(self, context: RequestContext) -> Any:
        """Handle a request."""
        self._quotas.in_flight += 1
        try:
            return await self._application.handle(context)
        finally:
            self._quotas.in_flight -= 1

    async def notified(self, context: RequestContext) -> None:
        """Handle a notification."""
        self._quotas.in_flight += 1
        try:
            await self._application.notified(context)
        finally:
            self._quotas.in_flight -= 1


class SseEndpoints:
    """Serves the two endpoints of HTTP+SSE.

    Args:
        service: The service of the server.
        settings: The HTTP settings.
        paths: The path of the stream, and that of messages.
        reference_of: Returns the reference of the latter for clients, for the mount point.
        quotas: The amounts that all clients use together.
        bodies: The request bodies being read.
        authenticator: Authorizes the messages, if the application is protected.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        paths: tuple[str, str],
        reference_of: Callable[[str], str],
        quotas: Quotas,
        bodies: RequestBodies,
        authenticator: Authentication | None = None,
    ) -> None:
        revisions = service.revisions.of(Lifecycle.HANDSHAKE)
        # All handshake revisions, since clients of later revisions fall back to this transport.
        application = _CountingApplication(service.application, quotas)
        self._service = msgspec.structs.replace(
            service, revisions=revisions, application=application
        )
        self._settings = settings
        self._paths = paths
        self._reference_of = reference_of
        self._quotas = quotas
        self._bodies = bodies
        self._clients: dict[str, _Client] = {}
        self._authenticator = authenticator

    def serves(self, path: str) -> bool:
        """Whether a path is the path of one of the two endpoints."""
        return path in self._paths

    async def serve(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> None:
        """Serve a request to one of the two endpoints."""
        of_stream = request.path == self._paths[0]
        expected = "GET" if of_stream else "POST"
        if request.method != expected:
            raise Refused(http_response.not_allowed(expected), "unread")
        if of_stream:
            await self._open_stream(request, receive, send)
        else:
            await self._post(request, receive, send)

    async def _open_stream(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> None:
        http.check_events(request)
        response = SseResponse(send, self._settings.limits.send_seconds)
        channel = SseChannel(response, self._settings.limits, self._quotas)
        queue = new_session(self._service, channel)
        identifier = channel.session_id = secrets.token_urlsafe(_ID_BYTES)
        endpoint = f"{self._reference_of(request.root)}?{_QUERY}={identifier}"
        try:
            await response.open()
            await response.write_event(endpoint.encode(), type=ENDPOINT)
            async with anyio.create_task_group() as tasks:
                self._clients[identifier] = client = _Client(channel, queue)
                if self._authenticator is not None:
                    client.owner = PRINCIPAL.get().identity
                tasks.start_soon(run_session, self._service, queue)
                await self._quotas.streams.hold(
                    receive, response, self._settings.keep_alive, channel.scope
                )
                del self._clients[identifier]
                channel.end()
            await response.close()
        finally:
            self._clients.pop(identifier, None)
            self._quotas.memory.close(channel.memory)

    async def _post(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> None:
        http.check_body(request, self._settings.limits)
        body = await self._bodies.read(receive)
        try:
            await self._deliver(request, body)
            await _ACCEPTED.send(send)
        finally:
            self._bodies.release(body)

    async def _deliver(self, request: HttpRequest, body: bytes) -> None:
        """Pass a posted message to the session of a stream.

        Raises:
            Refused: The message is not served.
        """
        client = self._clients.get(_stream_id(request.query))
        if client is not None and client.owner is not None:
            client = client if client.owner == PRINCIPAL.get().identity else None
        if client is None:
            text = f"{_QUERY}: there is no such stream, or not any more"
            raise Refused(http_response.refusal(404, text))
        parts: Sequence[jsonrpc.Message] = ()
        if jsonrpc.is_batch(body):
            session, parse_batch = client.queue.peer.session, self._settings.parse_batch
            if session is None or not session.revision.batching or parse_batch is None:
                text = "expected one JSON-RPC message, got an array"
                raise Refused(http_response.refusal(400, text))
            parts = parse_batch(body)
        else:
            parts = (jsonrpc.parse(body),)
        invalid = parts[0] if isinstance(parts[0], jsonrpc.InvalidMessage) else None
        fails_our_request = invalid is not None and invalid.response and invalid.id is not None
        if invalid is not None and len(parts) == 1 and not fails_our_request:
            raise Refused(http_response.invalid_message(invalid))
        principal = None
        if self._authenticator is not None:
            self._authenticator.authorize(request, parts)
            principal = PRINCIPAL.get()
        self._check_room(request, client, parts)
        await self._reserve(client, parts, body)
        await client.channel.post(body, principal)

    def _check_room(
        self, request: HttpRequest, client: _Client, parts: Sequence[jsonrpc.Message]
    ) -> None:
        """Check that not too many messages are being served.

        Raises:
            Refused: A limit is reached.
        """
        requests = sum(isinstance(part, jsonrpc.Request) for part in parts)
        if requests and client.pending + requests > self._settings.limits.per_session:
            raise Refused(http_response.over_limit("per_session"))
        work = sum(map(starts_work, parts))
        if work:
            self._quotas.check_room(request, work)

    async def _reserve(
        self, client: _Client, parts: Sequence[jsonrpc.Message], body: bytes
    ) -> None:
        """Count the bytes that a session keeps of a message.

        Raises:
            Refused: There is no room for them.
        """
        session = client.queue.peer.session
        methods = {part.method for part in parts if isinstance(part, jsonrpc.Request)}
        if INITIALIZE in methods:
            first = next(part for part in parts if isinstance(part, jsonrpc.Request))
            http.check_initialize(first, body, self._settings.limits)
            kept = max(client.kept, decoded_size(body))
        elif session is not None and methods & FOLLOWING:
            kept = len(body) + subscriptions_size(session.subscriptions)
        else:
            return
        memory = client.channel.memory
        if not await self._quotas.memory.reserve(max(0, kept - client.kept), memory):
            raise Refused(http_response.over_limit("session_bytes"))
        client.kept = max(kept, client.kept)


def _stream_id(query: bytes) -> str:
    """The id of a stream in the query of a POST; empty if there is none."""
    try:
        values = parse_qs(query.decode("latin-1"), max_num_fields=10)
    except ValueError:
        return ""
    return values.get(_QUERY, [""])[0]
