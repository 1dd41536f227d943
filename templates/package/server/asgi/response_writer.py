"""Writers of responses that may be a stream of server-sent events.

`SseResponse` is one HTTP response that carries a stream. `PostResponse` is the response to one
POST: JSON documents, or a stream. The response becomes a stream when a message precedes the
JSON-RPC response, or after `keep_alive` seconds of silence, if the client accepts streams and the
settings allow one.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25),
basic/transports/streamable-http (2026-07-28).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Protocol

import anyio
import anyio.lowlevel

from ...channel import Channel, OutgoingMessage
from ...errors import ConnectionClosedError, EndOfChannel
from ...facts import Revision
from ...framing.sse import MEDIA_TYPE, encode_comment, encode_event
from ...runtime.concurrency import run_eagerly_here
from .http_response import HttpResponse
from .request import HttpRequest, Receive, Send, response_forms
from .settings import ServerHttpSettings

_NO_HEADERS: Mapping[str, str] = {}
_NO_STATUSES: Mapping[int, int] = {}
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # proxies may buffer events otherwise
]
_COMMENT = encode_comment()
_WRITES_IN_A_ROW = 16  # writes before other tasks get a turn
_SLOWEST_READER = 2**16  # bytes per second; clients that read this fast are not aborted


class SseResponse:
    """Writes events to one client. Several tasks may write; each event is written whole.

    Args:
        send: The ASGI send callable.
        seconds: Seconds that the client may leave events unread before the response is aborted,
            plus one for each 64 KiB of them.
        since: Start of the first period of silence, on the clock of `anyio.current_time`; now by
            default.

    Attributes:
        started: Whether the response was started, even if it has already ended.
        last_write: Time of the last write, or `since`, on the clock of `anyio.current_time`.
        on_abort: Called once when the client is found to be gone.
    """

    __slots__ = (
        *("_confirmed", "_is_open", "_latest", "_lock", "_seconds", "_send", "_size", "_waiting"),
        *("_writes", "last_write", "on_abort", "started"),
    )

    def __init__(self, send: Send, seconds: float, since: float | None = None) -> None:
        self._send = send
        self._seconds = seconds
        self._lock: anyio.Lock | None = None  # made by the first write
        self._is_open = False
        self._size = self._confirmed = 0  # bytes of all events, and of those known to be received
        self._writes = 0
        self._latest = math.inf  # end of all writes
        self._waiting: set[anyio.CancelScope] = set()  # the scopes of writes that wait
        self.started = False
        self.last_write = anyio.current_time() if since is None else since
        self.on_abort: Callable[[], object] | None = None

    @property
    def is_open(self) -> bool:
        """Whether events can be written."""
        return self._is_open

    async def open(self, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        """Start the response.

        Args:
            headers: Header fields beyond those of every stream.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._is_open = self.started = True
        await self._write(
            {"type": "http.response.start", "status": 200, "headers": _HEADERS + more},
            # Some ASGI servers hold the head back until there is a body.
            {"type": "http.response.body", "body": b"", "more_body": True},
        )

    async def write_event(
        self,
        data: bytes,
        *,
        type: str | None = None,
        id: str | None = None,
        retry: int | None = None,
    ) -> None:
        """Write one event.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        body = encode_event(data, type=type, id=id, retry=retry)
        message: dict[str, object] = {"type": "http.response.body", "body": body, "more_body": True}
        await self._write(message, size=len(body))

    async def write_comment(self) -> None:
        """Write a comment, which keeps proxies and clients from closing a silent connection.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        await self._write({"type": "http.response.body", "body": _COMMENT, "more_body": True})

    async def close(self) -> None:
        """End the response. Idempotent; errors of a disconnected client are ignored."""
        if not self._is_open:
            return
        self._is_open = False
        last: dict[str, object] = {"type": "http.response.body", "body": b""}
        try:
            with anyio.CancelScope(shield=True) as scope:
                await self._send_within(scope, (last,))
                return
        except ConnectionClosedError:
            pass
        self.abort()

    def end_within(self, seconds: float) -> None:
        """Let this write and all later ones, the end of the response too, last so long at most."""
        self._latest = anyio.current_time() + seconds
        for scope in self._waiting:
            scope.deadline = min(scope.deadline, self._latest)

    def abort(self) -> None:
        """Stop writing because the client is gone, and call `on_abort`."""
        self._is_open = False
        on_abort, self.on_abort = self.on_abort, None
        if on_abort is not None:
            on_abort()

    async def _write(self, *messages: dict[str, object], size: int = 0) -> None:
        if not self._is_open or self._writes % _WRITES_IN_A_ROW == _WRITES_IN_A_ROW - 1:
            # A handler that only writes would block the event loop otherwise.
            await anyio.lowlevel.checkpoint()
        if not self._is_open:
            raise ConnectionClosedError("the stream of events is closed")
        before = self._size
        self._size += size
        try:
            # The scope is entered before the lock: anyio needs scopes to nest.
            with anyio.CancelScope() as scope:
                await self._send_within(scope, messages)
                self._confirmed = before  # the server accepts more only after it was read
                return
        except ConnectionClosedError:
            self.abort()
            raise
        self.abort()
        raise ConnectionClosedError(
            f"the client read nothing for {self._seconds:g} s (Limits.send_seconds)"
        )

    async def _send_within(
        self, scope: anyio.CancelScope, messages: tuple[dict[str, object], ...]
    ) -> None:
        """Send messages in a scope; its deadline is set when sending begins to wait."""

        def set_deadline() -> None:
            extra = (self._size - self._confirmed) / _SLOWEST_READER
            deadline = anyio.current_time() + self._seconds + extra
            scope.deadline = min(deadline, self._latest)
            self._waiting.add(scope)

        try:
            await run_eagerly_here(self._send_all(messages), set_deadline)
        finally:
            self._waiting.discard(scope)

    async def _send_all(self, messages: tuple[dict[str, object], ...]) -> None:
        if self._lock is None:
            self._lock = anyio.Lock(fast_acquire=True)
        try:
            async with self._lock:
                for message in messages:
                    await self._send(message)
                    self._writes += 1
            self.last_write = anyio.current_time()
        except OSError as error:
            raise ConnectionClosedError(f"the client is gone: {error}") from error


async def until_disconnect(
    receive: Receive,
    response: SseResponse,
    keep_alive: float | None,
    on_silence: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Wait until the client disconnects, then abort the stream. Writes comments meanwhile.

    Args:
        receive: The ASGI receive callable.
        response: The stream, open or not.
        keep_alive: Seconds of silence after which a comment is written; `None` for never.
        on_silence: Called after `keep_alive` seconds to start a stream that was not started.
    """
    since = response.last_write
    try:
        while True:
            deadline = math.inf if keep_alive is None else since + keep_alive
            with anyio.CancelScope(deadline=deadline):
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                continue
            if response.last_write > since:
                since = response.last_write
                continue
            if response.is_open:
                await response.write_comment()
            elif on_silence is not None and not response.started:
                await on_silence()
            since = anyio.current_time()
    except (ConnectionClosedError, OSError):
        pass
    response.abort()


class _SessionStream(Protocol):
    """The interface of `ResumableStream`, which packages without sessions do not have."""

    name: str

    @property
    def attended(self) -> bool: ...

    async def open(
        self, response: SseResponse, headers: Mapping[str, str], messages: Sequence[bytes]
    ) -> None: ...

    async def put(self, message: bytes, *, is_last: bool) -> bool: ...

    async def close_connection(self) -> None: ...

    def disconnect(self, response: SseResponse) -> None: ...

    async def end(self) -> None: ...


class _PostSession(Protocol):
    """The interface of `HttpSession`, which packages without sessions do not have."""

    @property
    def revision(self) -> Revision: ...

    def enter(self) -> None: ...

    def leave(self) -> None: ...

    def new_stream(self, carrier: PostResponse) -> _SessionStream: ...

    def stream_ended(self, name: str) -> None: ...

    async def send_unrelated(self, message: bytes) -> None: ...


class PostResponse(Channel):
    """Carries the JSON-RPC responses to one POST, and the messages that precede them.

    In a session, events are written through a `ResumableStream`. Without a session, this is the
    channel of the peer that serves the request, and an error response has the status of its code.

    Args:
        request: The POST.
        receive: The ASGI receive callable.
        send: The ASGI send callable.
        settings: The settings of the application.
        session: The session of the POST, if any.
        expected: Number of JSON-RPC responses; 1 without a batch.
        batch: Whether the POST is a batch, whose JSON responses are sent as one array.
        headers: Further header fields.
        statuses: HTTP status by JSON-RPC error code, without a session.

    Attributes:
        created: Start of the first period of silence, on the monotonic clock.
        done: Whether nothing more is sent.
        events_only: Whether the response has to be a stream.
        other_status: HTTP status of errors whose code is not in `statuses`.
        watched: Whether a task waits for the client to disconnect.
        attended: Whether the client waits for a response and was not found to be disconnected.
    """

    __slots__ = (
        *("_batch", "_documents", "_headers", "_json_only", "_left", "_on_abort", "_receive"),
        *("_request", "_send", "_session", "_settings", "_sse", "_statuses", "_stream"),
        *("_streaming", "_watching", "attended", "created", "done", "events_only"),
        *("other_status", "watched"),
    )

    def __init__(
        self,
        request: HttpRequest,
        receive: Receive,
        send: Send,
        settings: ServerHttpSettings,
        session: _PostSession | None = None,
        expected: int = 1,
        batch: bool = False,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        statuses: Mapping[int, int] = _NO_STATUSES,
        other_status: int = 200,
    ) -> None:
        if session is not None:
            session.enter()
        self._request = request
        self._receive = receive
        self._send = send
        self._settings = settings
        self._session = session
        self._left = expected
        self._batch = batch
        self._headers = headers
        self._statuses = statuses
        self._json_only, self.events_only = response_forms(request, settings.answers)
        self._documents: Sequence[bytes] = ()  # JSON-RPC responses that wait for others
        self._streaming = False
        self._sse: SseResponse | None = None
        self._stream: _SessionStream | None = None
        self._watching: anyio.CancelScope | None = None
        self.created = monotonic()
        self._on_abort: Callable[[], object] | None = None
        self.done = False
        self.other_status = other_status
        self.watched = False
        self.attended = True

    @property
    def sse(self) -> SseResponse:
        """The stream, started or not."""
        if self._sse is None:
            since = anyio.current_time() - (monotonic() - self.created)
            self._sse = SseResponse(self._send, self._settings.limits.send_seconds, since)
            self._sse.on_abort = self._on_abort
        return self._sse

    def call_on_abort(self, on_abort: Callable[[], object] | None) -> None:
        """Set a function to be called once when the client is found to be gone."""
        self._on_abort = on_abort
        if self._sse is not None:
            self._sse.on_abort = on_abort

    @property
    def unfinished(self) -> bool:
        """Whether JSON-RPC responses are missing."""
        return self._left > 0

    @property
    def connected(self) -> bool:
        """Whether a client reads the stream, over this or a later connection."""
        return self._stream is not None and self._stream.attended

    async def receive(self) -> bytes:
        """Raise `EndOfChannel`, since the POST was the only message."""
        raise EndOfChannel("a POST brings one message")

    async def send(self, message: OutgoingMessage) -> None:
        """Send a response, or a message that precedes one.

        If the response has to be JSON, no message can precede it: in a session, requests to the
        client are sent on another stream; other messages are dropped.

        Raises:
            ConnectionClosedError: The client is gone.
            TransportError: A session has no stream for a request.
        """
        is_response = message.is_response
        session = self._session
        json_only = self._json_only and not self._streaming
        if self.done or (json_only and not is_response):
            if session is None:
                await anyio.lowlevel.checkpoint()  # so that a handler that only sends is cancelled
            elif message.kind == "request":
                await session.send_unrelated(message.data)
            return
        if not self._streaming:
            if is_response and session is not None and not self.events_only:
                self._left -= 1
                if self._batch:
                    self._documents = [*self._documents, message.data]
                    if self._left == 0:
                        await self._end()
                    return
                self.done = True
                await HttpResponse(200, message.data, self._headers).send(self._send)
                return
            if is_response and session is None:
                self.done = True
                code = message.error_code
                if code is not None or not self.events_only:
                    status = 200 if code is None else self._statuses.get(code, self.other_status)
                    await HttpResponse(status, message.data, self._headers).send(self._send)
                    return
            await self.open_stream()
        if self._stream is not None:
            await self._stream.put(message.data, is_last=is_response and self._left == 1)
            if is_response:
                await self._count_response()
        else:
            self.done = self.done or is_response
            await self.sse.write_event(message.data)
            if is_response:
                await self.sse.close()

    async def respond(self, response: HttpResponse) -> None:
        """Send one complete response, unless a response was sent."""
        if not self.done:
            self.done = True
            await response.send(self._send)

    async def start(self) -> None:
        """Start the stream, if the response has to be a stream."""
        if self.events_only:
            await self._start_early()

    async def open_stream(self) -> None:
        """Start the stream, regardless of the settings.

        Raises:
            ConnectionClosedError: The client of a request without session is gone.
        """
        self._streaming = True
        if self._session is None:
            await self.sse.open(self._headers)
            return
        documents, self._documents = self._documents, ()
        self._stream = self._session.new_stream(self)
        await self._stream.open(self.sse, self._headers, documents)

    async def close_stream(self) -> None:
        """Close the connection of a stream that the client can resume. No-op for JSON."""
        await self._start_early()
        if self._stream is not None:
            await self._stream.close_connection()

    async def watch(self) -> bool:
        """Wait for the client to disconnect; meanwhile keep the connection alive.

        Returns:
            Whether the client disconnected before all responses were sent.
        """
        if self.done or not self._left:
            return False
        with anyio.CancelScope() as self._watching:
            with suppress(ConnectionClosedError):
                await self.start()
                keep_alive = self._settings.keep_alive
                await until_disconnect(self._receive, self.sse, keep_alive, self._start_early)
            if self._stream is not None:
                self._stream.disconnect(self.sse)
            disconnected = self.attended and self._left > 0
            self.leave()
            return disconnected
        return False

    def leave(self) -> None:
        """Record that the client disconnected, or has all responses."""
        if self.attended:
            self.attended = False
            if self._session is not None:
                self._session.leave()

    async def finish(self, instead: HttpResponse | None = None) -> None:
        """End the response of a session, even if JSON-RPC responses are missing.

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

    def stop_watching(self) -> None:
        """Stop waiting for the client to disconnect."""
        if self._watching is not None:
            self._watching.cancel()
        self.call_on_abort(None)

    async def close(self) -> None:
        """End the response of a request without session. Idempotent."""
        self.done = True
        self.stop_watching()
        if self._sse is not None:
            await self._sse.close()

    async def _count_response(self) -> None:
        self._left -= 1
        if not self._left:
            await self._end()

    async def _end(self) -> None:
        assert self._session is not None
        if self._stream is not None:
            try:
                await self._stream.end()
            finally:  # afterwards, since another worker would take a missing stream for lost
                self._session.stream_ended(self._stream.name)
        elif self._documents:
            body = b"[%b]" % b",".join(self._documents)
            await self.respond(HttpResponse(200, body, self._headers))
        elif self._request.accepts_events and not self.done:
            # All requests were cancelled. A JSON body has to be a response; a stream may be empty.
            self.done = True
            with suppress(ConnectionClosedError):
                await self.sse.open(self._headers)
                await self.sse.close()
        else:
            accepted = self._session.revision.facts.http.accepted
            await self.respond(HttpResponse(accepted, headers=self._headers))

    async def _start_early(self) -> None:
        """Start the stream before the first message, unless the response has to be JSON."""
        if not (self._streaming or self._json_only or self.done):
            with anyio.CancelScope(shield=True):  # a response sent meanwhile cancels this task
                await self.open_stream()
