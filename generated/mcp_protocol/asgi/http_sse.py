"""The two endpoints of HTTP+SSE: a stream that a client opens and keeps, and where it posts.

    GET  -> endpoint event, then a message event for each message      ends when either side leaves
    POST -> 202; the message is received by the session of the stream that the query names

Source: basic/transports#http-with-sse (2024-11-05).
"""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import replace
from urllib.parse import parse_qs, quote

import anyio
import msgspec

from ..channel import RequestId
from ..core import jsonrpc
from ..errors import EndOfChannel
from ..facts import Lifecycle
from ..framing.sse import ENDPOINT, MESSAGE
from ..server import Service, Session, new_session, run_session
from . import incoming as http
from . import replies
from .open_streams import OpenStreams
from .settings import HttpSettings, Limits
from .wire import EventWire

_ID_BYTES = 32
_QUERY = "session_id"


class SseChannel:
    """One client: what it posts is received, what is sent to it becomes an event.

    Args:
        wire: Its stream.
        limits: How much may wait to be received.

    Attributes:
        closed: Set once it is closed.
    """

    def __init__(self, wire: EventWire, limits: Limits) -> None:
        self.closed = anyio.Event()
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

    def post(self, message: bytes) -> bool:
        """Have a message received; `False` if too much waits for that already.

        It does when the session is held up by its own client, which reads nothing.
        """
        size = self._size + len(message)
        if self._posted and (self.waiting >= self._limits.per_session or size > self._limits.body):
            return False
        self._posted.append(message)
        self._size = size
        self._news.set()
        return True

    async def receive(self) -> bytes:
        """The next message that was posted."""
        while not self._posted:
            if self._ended:
                raise EndOfChannel("the stream is closed")
            self._news = anyio.Event()
            await self._news.wait()
        message = self._posted.popleft()
        self._size -= len(message)
        return message

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        """Send a message as an event."""
        await self._wire.event(message, type=MESSAGE)

    def end(self) -> None:
        """Let nothing more be received; what was asked may still be answered."""
        self._ended = True
        self._posted.clear()
        self._size = 0
        self._news.set()

    async def close(self) -> None:
        """Let nothing more be received, and the stream end."""
        self.end()
        self.closed.set()


class _Client(msgspec.Struct, frozen=True):
    channel: SseChannel
    session: Session

    @property
    def open(self) -> int:
        """How many requests of it have no answer yet, about."""
        return self.channel.waiting + len(self.session.peer.connection.being_served)


class HttpSse:
    """Serves HTTP+SSE.

    Args:
        service: What is served.
        settings: How.
        open_streams: The streams that stay open.
    """

    def __init__(self, service: Service, settings: HttpSettings, open_streams: OpenStreams) -> None:
        revisions = service.revisions.of(Lifecycle.HANDSHAKE)
        # A client of a later revision that fell back to this transport is spoken to in that.
        self._service = replace(service, revisions=revisions)
        self._settings = settings
        self._open_streams = open_streams
        self._clients: dict[str, _Client] = {}

    def serves(self, path: str) -> bool:
        """Whether a path is one of the two."""
        return path in (self._settings.sse_path, self._settings.messages_path)

    async def serve(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        """Serve a request to one of the two paths."""
        of_stream = request.path == self._settings.sse_path
        expected = "GET" if of_stream else "POST"
        if request.method != expected:
            await replies.not_allowed(expected).send(send)
        elif of_stream:
            await self._stream(request, receive, send)
        else:
            await (await self._post(request, receive)).send(send)

    async def _stream(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        refused = http.check_events(request)
        if refused is not None:
            await refused.send(send)
            return
        wire = EventWire(send, self._settings.limits.send_seconds)
        channel = SseChannel(wire, self._settings.limits)
        session = new_session(self._service, channel)
        identifier = secrets.token_urlsafe(_ID_BYTES)
        endpoint = f"{quote(request.root + self._settings.messages_path)}?{_QUERY}={identifier}"
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

    async def _post(self, request: http.Incoming, receive: http.Receive) -> replies.Reply:
        limits = self._settings.limits
        body = http.check_body(request, limits) or await http.read_body(receive, limits)
        if isinstance(body, replies.Reply):
            return body
        client = self._clients.get(_named_in(request.query))
        if client is None:
            return replies.refusal(404, f"{_QUERY}: there is no such stream, or not any more")
        batch = jsonrpc.is_batch(body)
        parts = jsonrpc.parse_batch(body) if batch else [jsonrpc.parse(body)]
        malformed = parts[0] if isinstance(parts[0], jsonrpc.Malformed) else None
        if malformed is not None and len(parts) == 1 and not malformed.response:
            return replies.malformed(malformed)
        asked = sum(isinstance(part, jsonrpc.Request) for part in parts)
        if asked and client.open + asked > limits.per_session:
            return replies.too_much("per_session")
        if not client.channel.post(body):
            text = "too much waits to be received (Limits.per_session, Limits.body)"
            return replies.unavailable(text)
        return replies.ACCEPTED


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


def _named_in(query: bytes) -> str:
    """The id of a stream in the query of a POST; empty for none."""
    try:
        found = parse_qs(query.decode("latin-1"), max_num_fields=10)
    except ValueError:
        return ""
    return found.get(_QUERY, [""])[0]
