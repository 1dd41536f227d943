"""HTTP responses that carry server-sent events, and responses to POSTs, which may.

The response to a POST is a JSON document, or a stream: when a message precedes the JSON-RPC
response, or after `keep_alive` seconds of silence, if the client accepts streams and the settings
allow one.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25),
basic/transports/streamable-http (2026-07-28).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from ...channel import MessageSender, OutgoingMessage
from ...errors import ConnectionClosedError
from ...framing.sse import MEDIA_TYPE, encode_comment, encode_event
from ...runtime.eager_tasks import resume
from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.task_scope import NativeScope, Turns
from .http_response import HttpResponse, Receive, Send

if TYPE_CHECKING:
    from .request import HttpRequest
    from .settings import HttpSettings

RESPONSES = ("response", "error")
"""The kinds of messages that are responses."""

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

    Attributes:
        is_open: Whether events can be written.
        started: Whether the response was started, even if it has already ended.
        last_write: Time of the last write, or of the start, on the clock of `anyio.current_time`.
        on_abort: Called once when the client is found to be gone.
    """

    __slots__ = (
        *("_confirmed", "_held", "_latest", "_native", "_now", "_seconds", "_send"),
        *("_size", "_turns", "_waiting", "_writes", "is_open", "last_write", "on_abort", "started"),
    )

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self._turns = Turns()
        self._held: dict[str, object] | None = None  # the head, until the first event
        try:
            self._now: Callable[[], float] = asyncio.get_running_loop().time
            self._native = True
        except RuntimeError:  # scopes of trio have to nest with those that `send` enters
            self._now, self._native = anyio.current_time, False
        self.is_open = False
        self._size = self._confirmed = 0  # bytes of all events, and of those known to be received
        self._writes = 0
        self._latest = math.inf  # end of all writes
        self._waiting = set[anyio.CancelScope | NativeScope]()  # the scopes of writes that wait
        self.started = False
        self.last_write = self._now()
        self.on_abort: Callable[[], object] | None = None

    async def open(self, headers: Mapping[str, str] = _NO_HEADERS, *, holds: bool = False) -> None:
        """Start the response.

        Args:
            headers: Header fields beyond those of every stream.
            holds: Whether the head is sent with the first event, which follows at once.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self.is_open = self.started = True
        head: dict[str, object] = {
            "type": "http.response.start",
            "status": 200,
            "headers": _HEADERS + more,
        }
        if holds:
            self._held = head
            return
        await self._write(
            head,
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
        is_last: bool = False,
    ) -> None:
        """Write one event; the last one ends the response.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        body = encode_event(data, type=type, id=id, retry=retry)
        await self._write(
            {"type": "http.response.body", "body": body, "more_body": not is_last}, size=len(body)
        )
        if is_last:
            self.is_open = False

    async def write_comment(self) -> None:
        """Write a comment, which keeps proxies and clients from closing a silent connection.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        await self._write({"type": "http.response.body", "body": _COMMENT, "more_body": True})

    async def close(self) -> None:
        """End the response. Idempotent; errors of a disconnected client are ignored."""
        if not self.is_open:
            return
        self.is_open = False
        last: dict[str, object] = {"type": "http.response.body", "body": b""}
        with anyio.CancelScope(shield=True), suppress(ConnectionClosedError):
            if await self._send_in_time((last,)):
                return
        self.abort()

    def cancel_write(self) -> None:
        """Give up the writes that wait for the client."""
        for scope in self._waiting:
            scope.cancel()

    def end_within(self, seconds: float) -> None:
        """Let this write and all later ones, the end of the response too, last so long at most."""
        self._latest = self._now() + seconds
        for scope in self._waiting:
            scope.deadline = min(scope.deadline, self._latest)

    def abort(self) -> None:
        """Stop writing because the client is gone, and call `on_abort`."""
        self.is_open = False
        on_abort, self.on_abort = self.on_abort, None
        if on_abort is not None:
            on_abort()

    async def _write(self, *messages: dict[str, object], size: int = 0) -> None:
        if not self.is_open or self._writes % _WRITES_IN_A_ROW == _WRITES_IN_A_ROW - 1:
            # A handler that only writes would block the event loop otherwise.
            await anyio.lowlevel.checkpoint()
        if not self.is_open:
            raise ConnectionClosedError("the stream of events is closed")
        before = self._size
        self._size += size
        try:
            if await self._send_in_time(messages):
                self._confirmed = before  # the server accepts more only after it was read
                return
        except ConnectionClosedError:
            self.abort()
            raise
        self.abort()
        raise ConnectionClosedError(
            f"the client read nothing for {self._seconds:g} s (Limits.send_seconds)"
        )

    async def _send_in_time(self, messages: tuple[dict[str, object], ...]) -> bool:
        """Send messages; `False` if the client did not read in time."""
        if not self._native:
            with anyio.CancelScope(deadline=self._deadline()) as scope:
                await self._wait(scope, self._send_all(messages))
                return True
            return False
        sending = self._send_all(messages)
        try:
            awaited = sending.send(None)
        except StopIteration:
            return True
        with NativeScope() as native:
            native.deadline = self._deadline()
            await self._wait(native, resume(sending, awaited))
            return True
        return False

    async def _wait(self, scope: anyio.CancelScope | NativeScope, sent: Awaitable[None]) -> None:
        self._waiting.add(scope)
        try:
            await sent
        finally:
            self._waiting.discard(scope)

    def _deadline(self) -> float:
        """When a write that begins now has to be over."""
        extra = (self._size - self._confirmed) / _SLOWEST_READER
        return min(self._now() + self._seconds + extra, self._latest)

    async def _send_all(self, messages: tuple[dict[str, object], ...]) -> None:
        async with self._turns:
            try:
                if self._held is not None:
                    head, self._held = self._held, None
                    await self._send(head)
                for message in messages:
                    await self._send(message)
                    self._writes += 1
            except OSError as error:
                raise ConnectionClosedError(f"the client is gone: {error}") from error
            self.last_write = self._now()


class SessionStream:
    """A stream of a session. Any number of tasks may send; each event goes out whole.

    Attributes:
        over: Whether nothing more is sent.
        held: The scope that keeps a GET connection open.
    """

    def __init__(self) -> None:
        self.over = False
        self.held: anyio.CancelScope | None = None
        self._response: SseResponse | None = None
        self._turns = Turns()

    @property
    def connected(self) -> bool:
        """Whether there is an open connection."""
        return self._response is not None and self._response.is_open

    @property
    def attended(self) -> bool:
        """Whether a client reads the stream."""
        return self.connected

    async def open(
        self,
        response: SseResponse,
        headers: Mapping[str, str] = _NO_HEADERS,
        messages: Sequence[bytes] = (),
    ) -> None:
        """Start the response, with messages that come before those of other tasks."""
        async with self._turns:
            await self._connect(response, headers, holds=bool(messages))
            for message in messages:
                await self._send(message)

    async def put(self, message: bytes) -> bool:
        """Send a message; returns whether the client gets it, perhaps after resuming."""
        async with self._turns:
            return not self.over and await self._send(message)

    def disconnect(self, response: SseResponse) -> None:
        """Record that the client of a connection is gone."""
        response.abort()
        if self._response is response:
            response.cancel_write()
            self._response = None

    async def close(self, response: SseResponse) -> None:
        """Close a connection."""
        async with self._turns:  # another task may be closing the connection
            if self._response is response:
                await self._close_response()

    async def end(self, message: bytes = b"") -> None:
        """End the stream after the event that is being written, or after one more message."""
        async with self._turns:
            if not self.over:
                await self._send_last(message)
            self.over = True
            await self._close_response()
        self.stop()

    def stop(self) -> None:
        """Send nothing more. The task that holds a GET connection closes the connection.

        A client that does not read has `PARTING_SECONDS` for the end.
        """
        self.over = True
        if self._response is not None:
            self._response.end_within(PARTING_SECONDS)
        if self.held is not None:
            self.held.cancel()

    async def _connect(
        self, response: SseResponse, headers: Mapping[str, str] = _NO_HEADERS, *, holds: bool
    ) -> None:
        """Start a response; if its client is gone, the stream has no connection."""
        self._response = response
        with suppress(ConnectionClosedError):
            await response.open(headers, holds=holds)

    async def _close_response(self) -> None:
        response, self._response = self._response, None
        if response is not None and response.is_open:
            await response.close()

    async def _send(self, message: bytes) -> bool:
        return await self._write(message)

    async def _send_last(self, message: bytes) -> None:
        if message:
            await self._write(message, is_last=True)

    async def _write(
        self,
        message: bytes,
        event_id: str | None = None,
        retry: int | None = None,
        *,
        is_last: bool = False,
    ) -> bool:
        """Write an event; `False` if there is no connection, or the connection broke."""
        response = self._response
        if response is None:
            return False
        try:
            await response.write_event(message, id=event_id, retry=retry, is_last=is_last)
        except ConnectionClosedError:
            self.disconnect(response)
            return False
        return True


class PostResponse(MessageSender):
    """The response to one POST without a session. `SessionResponse` is that in a session.

    An error response that nothing precedes has the HTTP status of its code.

    Args:
        request: The POST.
        receive: The ASGI receive callable.
        send: The ASGI send callable.
        settings: The settings of the application.
        statuses: HTTP status by JSON-RPC error code.
        other_status: HTTP status of errors whose code is not in `statuses`.

    Attributes:
        created: Start of the first period of silence, on the monotonic clock.
        done: Whether nothing more is sent.
        events_only: Whether the response has to be a stream.
        headers: Further header fields.
        watched: Whether a task waits for the client to disconnect.
    """

    def __init__(
        self,
        request: HttpRequest,
        receive: Receive,
        send: Send,
        settings: HttpSettings,
        statuses: Mapping[int, int] = _NO_STATUSES,
        other_status: int = 200,
    ) -> None:
        self._request = request
        self._receive = receive
        self._send = send
        self._settings = settings
        self._statuses = statuses
        self._json_only, self.events_only = request.forms
        self._streaming = False
        self._sse: SseResponse | None = None
        self._watching: anyio.CancelScope | None = None
        self._on_abort: Callable[[], object] | None = None
        self.created = monotonic()
        self.done = False
        self.headers: Mapping[str, str] = _NO_HEADERS
        self.other_status = other_status
        self.watched = False

    @property
    def sse(self) -> SseResponse:
        """The stream, started or not."""
        if self._sse is None:
            self._sse = SseResponse(self._send, self._settings.limits.send_seconds)
            self._sse.last_write -= monotonic() - self.created
            self._sse.on_abort = self._on_abort
        return self._sse

    def call_on_abort(self, on_abort: Callable[[], object] | None) -> None:
        """Set a function to be called once when the client is found to be gone."""
        self._on_abort = on_abort
        if self._sse is not None:
            self._sse.on_abort = on_abort

    async def send(self, message: OutgoingMessage) -> None:
        """Send the response, or a message that precedes it; not before a response in JSON.

        Raises:
            ConnectionClosedError: The client is gone.
        """
        is_response = message.kind in RESPONSES
        if self.done or (self._json_only and not self._streaming and not is_response):
            await anyio.lowlevel.checkpoint()  # so that a handler that only sends is cancelled
            return
        if is_response:
            self.done = True
            code = message.error_code
            if not self._streaming and (code is not None or not self.events_only):
                status = 200 if code is None else self._statuses.get(code, self.other_status)
                await HttpResponse(status, message.data, self.headers).send(self._send)
                return
        if not self._streaming:
            await self.open_stream(holds=True)
        await self.sse.write_event(message.data, is_last=is_response)

    async def respond(self, response: HttpResponse) -> None:
        """Send one complete response, unless a response was sent."""
        if not self.done:
            self.done = True
            await response.send(self._send)

    async def start(self) -> None:
        """Start the stream, if the response has to be a stream."""
        if self.events_only:
            await self.start_early()

    async def start_early(self) -> None:
        """Start the stream before the first message, unless the response has to be JSON."""
        if not (self._streaming or self._json_only or self.done):
            with anyio.CancelScope(shield=True):  # a response sent meanwhile cancels this task
                await self.open_stream()

    async def open_stream(self, *, holds: bool = False) -> None:
        """Start the stream, regardless of the settings.

        Args:
            holds: See `SseResponse.open`.

        Raises:
            ConnectionClosedError: The client is gone.
        """
        self._streaming = True
        await self.sse.open(self.headers, holds=holds)

    async def watch(self) -> None:
        """Wait for the client to disconnect; meanwhile keep the connection alive."""
        if not self.done:
            with anyio.CancelScope() as self._watching:
                with suppress(ConnectionClosedError):
                    await self.start()
                    keep_alive = self._settings.keep_alive
                    await until_disconnect(self._receive, self.sse, keep_alive, self.start_early)
                self.disconnect()

    def disconnect(self) -> None:
        """Called when the client was found to be gone."""

    def stop_watching(self) -> None:
        """Stop waiting for the client to disconnect."""
        if self._watching is not None:
            self._watching.cancel()
        self.call_on_abort(None)

    async def close(self) -> None:
        """End the response. Idempotent."""
        self.done = True
        self.stop_watching()
        if self._sse is not None:
            await self._sse.close()


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
