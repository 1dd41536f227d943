"""Counters of the memory, streams and messages of all clients, for the `Limits` of a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, MutableMapping
from typing import Any

import anyio
from msgspec import Struct

from ...errors import ConnectionClosedError
from ...protocol import jsonrpc
from ...protocol.requests import CANCELLED, PROGRESS
from ...runtime.request_context import PRINCIPAL
from .http_response import Receive, Refused, Send, SseResponse, over_limit, until_disconnect
from .request import SHORT_BODY, HttpRequest, Limits, network_of

_LIST = _MEMBER = 64  # bytes of a decoded list, and of each of its members besides their text
_OBJECT = 200
_URI_OVERHEAD = 100  # bytes of a string and its place in a set, besides its characters
_ALWAYS_ACCEPTED = (CANCELLED, PROGRESS)


def decoded_size(body: bytes) -> int:
    """An upper estimate of the memory that a decoded JSON document takes, in bytes.

    The estimate counts brackets, braces and commas, including those within strings.
    """
    lists, objects, members = body.count(b"["), body.count(b"{"), body.count(b",")
    return len(body) + _LIST * lists + _OBJECT * objects + _MEMBER * members


def subscriptions_size(uris: Collection[str]) -> int:
    """Estimated bytes of the URIs that a client subscribes to."""
    return sum(map(len, uris)) + _URI_OVERHEAD * len(uris)


def starts_work(message: jsonrpc.Message) -> bool:
    """Whether a message starts new work: it is no response, cancellation or progress."""
    if isinstance(message, jsonrpc.Notification):
        return message.method not in _ALWAYS_ACCEPTED
    return isinstance(message, jsonrpc.Request)


class StreamMemory(Struct, eq=False):
    """Memory that an open stream holds for its client.

    Attributes:
        end: Ends the stream.
        size: Bytes held.
    """

    end: Callable[[], object]
    size: int = 0


class MemoryQuota:
    """Bytes kept for sessions and open streams.

    To make room for a reservation, the idle session that keeps most bytes is ended, or otherwise
    the open stream that holds most bytes, if that frees enough.

    Attributes:
        size: Bytes in use.
        end_idle_session: Ends the idle session that keeps most bytes, if it keeps more than the
            number passed.
    """

    def __init__(self, limit: int) -> None:
        self.size = 0
        self.end_idle_session: Callable[[int], Awaitable[object]] | None = None
        self._limit = limit
        self._streams: set[StreamMemory] = set()

    async def reserve(self, size: int, stream: StreamMemory | None = None) -> bool:
        """Reserve bytes for a stream or a session; `False` if there is no room for them."""
        if self._excess(size) > 0 and self.end_idle_session is not None:
            await self.end_idle_session(self._excess(size))
        if self._excess(size) > 0:
            self.end_largest(self._excess(size), stream)
        if self._excess(size) > 0:
            return False
        self.size += size
        if stream is not None:
            stream.size += size
            self._streams.add(stream)
        return True

    def release(self, size: int, stream: StreamMemory | None = None) -> None:
        """Return reserved bytes."""
        if stream is None:
            self.size -= size
        elif stream in self._streams:
            self.size -= size
            stream.size -= size

    def close(self, stream: StreamMemory) -> None:
        """Return all bytes of a stream."""
        if stream in self._streams:
            self._streams.discard(stream)
            self.size -= stream.size

    def end_largest(self, size: int, asking: StreamMemory | None = None) -> None:
        """End the largest stream other than `asking`, of those with more than `size` bytes."""
        others = [each for each in self._streams if each.size > size and each is not asking]
        if others:
            largest = max(others, key=lambda each: each.size)
            self.close(largest)
            largest.end()

    def _excess(self, size: int) -> int:
        return self.size + size - self._limit


class StreamQuota:
    """Streams of events that stay open until one side closes them.

    Attributes:
        deadline: Returns the end time of a stream that opens now, on the clock of
            `anyio.current_time`; `None` for no end.
    """

    def __init__(self, limit: int) -> None:
        self.deadline: Callable[[], float] | None = None
        self._limit = limit
        self._count = 0
        self._scopes: set[anyio.CancelScope] = set()
        self._closed = False

    def __len__(self) -> int:
        """Number of streams, including those that are being opened."""
        return self._count

    def enter(self) -> bool:
        """Count one more stream; `False` if the limit is reached."""
        if self._count >= self._limit:
            return False
        self._count += 1
        return True

    def leave(self) -> None:
        """Stop counting a stream."""
        self._count -= 1

    async def hold(
        self,
        receive: Receive,
        response: SseResponse,
        keep_alive: float | None,
        scope: anyio.CancelScope,
    ) -> bool:
        """Keep a stream open until the client disconnects, or the server cancels the new scope.

        Returns:
            Whether the client disconnected.
        """
        if self.deadline is not None:
            scope.deadline = self.deadline()
        response.on_abort = scope.cancel
        self._scopes.add(scope)
        if self._closed:
            scope.cancel()
        try:
            with scope:
                await until_disconnect(receive, response, keep_alive)
        finally:
            self._scopes.discard(scope)
            disconnected = response.on_abort is None
            response.on_abort = None
        return disconnected

    def close(self) -> None:
        """End all streams, and all streams that are opened later."""
        self._closed = True
        for scope in list(self._scopes):
            scope.cancel()


class UnreadResponses:
    """The bytes of responses and events of more than 64 KiB that clients have not read yet.

    An ASGI server accepts any number of bytes in one message, and waits before it accepts the next
    one until most of them are read. So a long body is passed on in short pieces, and its request
    ends when the server accepts an empty message after the last piece. Until then the whole body
    counts. From the limit on, new requests are refused; from half of it, those of one principal, or
    of one network without authentication.

    Attributes:
        size: The bytes.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self.size = 0
        self._limit = limit
        self._seconds = seconds
        self._clients = Counter[Hashable]()

    def has_room(self, request: HttpRequest) -> bool:
        """Whether a request may be served: unread responses are below both limits."""
        if 2 * self.size < self._limit:
            return True
        return self.size < self._limit and 2 * self._clients[_client_of(request)] < self._limit

    def send(
        self, request: HttpRequest, send: Send, message: MutableMapping[str, Any]
    ) -> Awaitable[None]:
        """Send an ASGI message of the response to a request, and count a long body until then."""
        request.responded = True
        body: bytes = message.get("body", b"")
        if len(body) <= SHORT_BODY:
            return send(message)
        return self._send_long(_client_of(request), body, message, send)

    async def _send_long(
        self, client: Hashable, body: bytes, message: MutableMapping[str, Any], send: Send
    ) -> None:
        self.size += len(body)
        self._clients[client] += len(body)
        try:
            for start in range(0, len(body), SHORT_BODY):
                piece = body[start : start + SHORT_BODY]
                await self._send_piece({**message, "body": piece, "more_body": True}, send)
            await self._send_piece({**message, "body": b""}, send)
        finally:
            self.size -= len(body)
            self._clients[client] -= len(body)
            if not self._clients[client]:
                del self._clients[client]

    async def _send_piece(self, message: MutableMapping[str, Any], send: Send) -> None:
        with anyio.move_on_after(self._seconds):
            await send(message)
            return
        raise ConnectionClosedError(
            f"the client read nothing for {self._seconds:g} s (Limits.send_seconds)"
        )


class Quotas:
    """The counters of one application.

    Attributes:
        in_flight: Messages being served for connected clients.
        memory: Bytes kept for sessions and streams.
        streams: Open streams.
        unread: Responses that clients have not read yet.
        half: Number of messages up to which `has_room` is true, and does nothing.
        find_disconnected: Functions that look for clients that are gone.
    """

    def __init__(self, limits: Limits) -> None:
        self.in_flight = 0
        self.memory = MemoryQuota(limits.session_bytes)
        self.streams = StreamQuota(limits.streams)
        self.unread = UnreadResponses(limits.unread, limits.send_seconds)
        self.find_disconnected: list[Callable[[], object]] = []
        self._limit = limits.in_flight
        self.half = limits.in_flight // 2

    def has_room(self, messages: int = 1) -> bool:
        """Whether more messages may be served."""
        total = self.in_flight + messages
        if 2 * total > self._limit:
            for find in self.find_disconnected:
                find()
        return total <= self._limit

    def check_room(self, request: HttpRequest, messages: int) -> None:
        """Check that more messages of a request may be served.

        Raises:
            Refused: There are too many, or their clients leave too many bytes unread.
        """
        if not self.has_room(messages):
            raise Refused(over_limit("in_flight"))
        if self.unread.size and not self.unread.has_room(request):
            raise Refused(over_limit("unread"))


def _client_of(request: HttpRequest) -> Hashable:
    principal = PRINCIPAL.get()
    return network_of(request.client) if principal.is_anonymous else principal.identity
