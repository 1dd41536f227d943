"""The two endpoints of HTTP+SSE: a stream that a client opens and keeps, and where it posts.

    GET  -> endpoint event, then a message event for each message      ends when either side leaves
    POST -> 202; the message is received by the session of the stream that the query names

Source: basic/transports#http-with-sse (2024-11-05).
"""

from __future__ import annotations

import posixpath
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, quote

import anyio
import msgspec

from ...channel import Channel, OutgoingMessage
from ...errors import EndOfChannel
from ...facts import Lifecycle
from ...framing.sse import ENDPOINT, MESSAGE
from ...protocol import jsonrpc
from ...protocol.lifecycle import INITIALIZE
from ...protocol.notifications import FOLLOWING
from ...runtime.request_context import Application, RequestContext
from ..serving import Service, Session, new_session, run_session
from . import request as http
from . import responses
from .http_session import followed_size
from .load import Holder, Load, decoded_size, starts_work
from .request_body import Refused, RequestBodies
from .settings import SSE_PATH, HttpSettings, Limits
from .sse_response import SseResponse
from .stream_limits import StreamLimits

_ID_BYTES = 32
_QUERY = "session_id"
_ACCEPTED = responses.Reply(202)


class SseChannel(Channel):
    """One client: what it posts is received, what is sent to it becomes an event.

    Args:
        wire: Its stream.
        limits: How much may wait to be received.
        load: What all clients take together.

    Attributes:
        closed: Set once it is closed.
        holder: What it keeps.
    """

    def __init__(self, wire: SseResponse, limits: Limits, load: Load) -> None:
        self.closed = anyio.Event()
        self.holder = Holder(self.closed.set)
        self._load = load
        self._wire = wire
        self._limits = limits
        self._ended = False
        self._posted: deque[bytes] = deque()
        self._size = 0
        self._news = anyio.Event()

    @property
    def waiting(self) -> int:
        """How many messages were posted and not received yet."""
        return len(self._posted)

    async def post(self, message: bytes) -> responses.Reply | None:
        """Have a message received, or what refuses it if too much waits for that already.

        It does when the session is held up by its own client, which reads nothing.
        """
        size = self._size + len(message)
        if self._posted and (self.waiting >= self._limits.per_session or size > self._limits.body):
            text = "too much waits to be received (Limits.per_session, Limits.body)"
            return responses.unavailable(text)
        if not await self._load.memory.reserve(len(message), self.holder):
            return responses.too_much("session_bytes")
        self._posted.append(message)
        self._size += len(message)
        self._news.set()
        return None

    async def receive(self) -> bytes:
        """The next message that was posted."""
        while not self._posted:
            if self._ended:
                raise EndOfChannel("the stream is closed")
            self._news = anyio.Event()
            await self._news.wait()
        message = self._posted.popleft()
        self._size -= len(message)
        self._load.memory.release(len(message), self.holder)
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Send a message as an event."""
        await self._wire.event(message.data, type=MESSAGE)

    def end(self) -> None:
        """Let nothing more be received; what was asked may still be answered."""
        self._ended = True
        self._load.memory.release(self._size, self.holder)
        self._posted.clear()
        self._size = 0
        self._news.set()

    async def close(self) -> None:
        """Let nothing more be received, and the stream end."""
        self.end()
        self.closed.set()


class _Client(msgspec.Struct):
    channel: SseChannel
    session: Session
    kept: int = 0  # bytes of its `initialize`, and of the URIs that it follows

    @property
    def open(self) -> int:
        """How many requests of it have no answer yet, about."""
        return self.channel.waiting + len(self.session.peer.connection.inbound_requests)


class _Counted:
    """An application whose requests are counted as in flight while it serves them."""

    def __init__(self, application: Application, load: Load) -> None:
        self._application = application
        self._load = load

    async def handle(self, exchange: RequestContext) -> Any:
        """Answer a request."""
        self._load.in_flight += 1
        try:
            return await self._application.handle(exchange)
        finally:
            self._load.in_flight -= 1

    async def notified(self, exchange: RequestContext) -> None:
        """Take note of a notification."""
        self._load.in_flight += 1
        try:
            await self._application.notified(exchange)
        finally:
            self._load.in_flight -= 1


class SseEndpoints:
    """Serves HTTP+SSE.

    Args:
        service: What is served.
        settings: How.
        open_streams: The streams that stay open.
        load: What all clients take together.
        bodies: The bodies that are on their way.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        open_streams: StreamLimits,
        load: Load,
        bodies: RequestBodies,
    ) -> None:
        revisions = service.revisions.of(Lifecycle.HANDSHAKE)
        # A client of a later revision that fell back to this transport is spoken to in that.
        application = _Counted(service.application, load)
        self._service = replace(service, revisions=revisions, application=application)
        self._settings = settings
        self._messages = _relative(settings.messages_path, settings.sse_path or SSE_PATH)
        self._open_streams = open_streams
        self._load = load
        self._bodies = bodies
        self._clients: dict[str, _Client] = {}

    def serves(self, path: str) -> bool:
        """Whether a path is one of the two."""
        return path in (self._settings.sse_path, self._settings.messages_path)

    async def serve(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        """Serve a request to one of the two paths."""
        of_stream = request.path == self._settings.sse_path
        expected = "GET" if of_stream else "POST"
        if request.method != expected:
            await self._bodies.refuse(responses.not_allowed(expected), request, receive, send)
        elif of_stream:
            await self._stream(request, receive, send)
        else:
            await self._post(request, receive, send)

    async def _stream(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        refused = http.check_events(request)
        if refused is not None:
            await refused.send(send)
            return
        wire = SseResponse(send, self._settings.limits.send_seconds)
        channel = SseChannel(wire, self._settings.limits, self._load)
        session = new_session(self._service, channel)
        identifier = secrets.token_urlsafe(_ID_BYTES)
        endpoint = f"{self._messages}?{_QUERY}={identifier}"
        try:
            await wire.open()
            await wire.event(endpoint.encode(), type=ENDPOINT)
            async with anyio.create_task_group() as tasks:
                self._clients[identifier] = _Client(channel, session)
                tasks.start_soon(run_session, self._service, session)
                await self._open_streams.hold(
                    receive, wire, self._settings.keep_alive, channel.closed.wait
                )
                del self._clients[identifier]
                channel.end()
            await wire.close()
        finally:
            self._clients.pop(identifier, None)
            self._load.memory.close(channel.holder)

    async def _post(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        refused = http.check_body(request, self._settings.limits)
        if refused is not None:
            await self._bodies.refuse(refused, request, receive, send)
            return
        body = await self._bodies.read(receive)
        if isinstance(body, Refused):
            if body.unread:
                await self._bodies.refuse(body.reply, request, receive, send, begun=True)
            else:
                await body.reply.send(send)
            return
        try:
            await (await self._take(_named_in(request.query), body)).send(send)
        finally:
            self._bodies.release(body)

    async def _take(self, name: str, body: bytes) -> responses.Reply:
        """Have what was posted received by the session of a stream; gives the answer."""
        client = self._clients.get(name)
        if client is None:
            return responses.refusal(404, f"{_QUERY}: there is no such stream, or not any more")
        parts: Sequence[jsonrpc.Message]
        if jsonrpc.is_batch(body):
            agreed = client.session.peer.session
            if agreed is None or not agreed.revision.batching:
                return responses.refusal(400, "expected one JSON-RPC message, got an array")
            parts = jsonrpc.parse_batch(body)
        else:
            parts = (jsonrpc.parse(body),)
        malformed = parts[0] if isinstance(parts[0], jsonrpc.InvalidMessage) else None
        if malformed is not None and len(parts) == 1 and not malformed.response:
            return responses.malformed(malformed)
        refused = self._check_room(client, parts) or await self._keep(client, parts, body)
        return refused or await client.channel.post(body) or _ACCEPTED

    def _check_room(
        self, client: _Client, parts: Sequence[jsonrpc.Message]
    ) -> responses.Reply | None:
        """What refuses messages if too many are being served already."""
        asked = sum(isinstance(part, jsonrpc.Request) for part in parts)
        if asked and client.open + asked > self._settings.limits.per_session:
            return responses.too_much("per_session")
        work = sum(map(starts_work, parts))
        if work and not self._load.has_room(work):
            return responses.too_much("in_flight")
        return None

    async def _keep(
        self, client: _Client, parts: Sequence[jsonrpc.Message], body: bytes
    ) -> responses.Reply | None:
        """Count what a session is to keep; what refuses it if there is no room."""
        agreed = client.session.peer.session
        methods = {part.method for part in parts if isinstance(part, jsonrpc.Request)}
        if INITIALIZE in methods:
            first = next(part for part in parts if isinstance(part, jsonrpc.Request))
            refused = http.check_initialize(first, body, self._settings.limits)
            if refused is not None:
                return refused
            kept = max(client.kept, decoded_size(body))
        elif agreed is not None and methods & FOLLOWING:
            kept = len(body) + followed_size(agreed.subscriptions)
        else:
            return None
        holder = client.channel.holder
        if not await self._load.memory.reserve(max(0, kept - client.kept), holder):
            return responses.too_much("session_bytes")
        client.kept = max(kept, client.kept)
        return None


def check_paths(service: Service, settings: HttpSettings) -> None:
    """See that the two endpoints can be served.

    Raises:
        ValueError: They are not two, or the other transport has one of them; or no revision that
            is served has this transport.
    """
    if not any(each.facts.transports.http_sse for each in service.revisions.values()):
        raise ValueError("sse_path: none of the revisions that are served has HTTP+SSE")
    paths = (settings.path, settings.sse_path, settings.messages_path)
    if len(set(paths)) < len(paths):
        raise ValueError(f"sse_path: expected it, messages_path and path to differ, got {paths}")


def _relative(path: str, seen_from: str) -> str:
    """A reference to a path that holds below any prefix, also one that a proxy takes away.

    A colon is quoted, or what stands before it could be taken for a scheme.
    """
    reference = posixpath.relpath(path, posixpath.dirname(seen_from))
    return quote(f"{reference}/" if path.endswith("/") else reference)


def _named_in(query: bytes) -> str:
    """The id of a stream in the query of a POST; empty for none."""
    try:
        found = parse_qs(query.decode("latin-1"), max_num_fields=10)
    except ValueError:
        return ""
    return found.get(_QUERY, [""])[0]
