"""HTTP responses: complete ones, refusals whose body is a JSON-RPC error, and streams of events."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import anyio
import anyio.lowlevel
import msgspec
from msgspec import UNSET

from ...errors import (
    INTERNAL_ERROR,
    INTERRUPTED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_DATA,
    NOT_BEGUN,
    ConnectionClosedError,
    MethodNotFoundError,
)
from ...framing.http_headers import JSON
from ...framing.sse import MEDIA_TYPE, encode_comment, encode_event
from ...protocol import jsonrpc
from ...runtime.eager_tasks import resume
from ...runtime.task_scope import NativeScope, Turns

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SHUTTING_DOWN = "the server is ending; the request may have been acted on"
"""The error of requests that a server can't finish because it shuts down."""

NO_HEADERS: Mapping[str, str] = {}
_RETRY_AFTER: Mapping[str, str] = {"Retry-After": "1"}
CLOSE: Mapping[str, str] = {"Connection": "close"}
JSON_TYPE = (b"content-type", JSON.encode())
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # proxies may buffer events otherwise
]
_COMMENT = encode_comment()
_WRITES_IN_A_ROW = 16  # writes before other tasks get a turn
_SLOWEST_READER = 2**16  # bytes per second; clients that read this fast are not aborted


class HttpResponse(msgspec.Struct, frozen=True):
    """One complete HTTP response: JSON or empty, with header fields beyond type and length."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = NO_HEADERS

    async def send(self, send: Send, *, more: bool = False) -> None:
        """Send the response; errors of a disconnected client are ignored.

        With `more`, the caller ends the response later; the body is complete.
        """
        body = self.body
        headers = [(b"content-length", b"%d" % len(body))]
        if body:
            headers.append(JSON_TYPE)
        for name, value in self.headers.items():
            headers.append((name.lower().encode(), value.encode()))
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": more})
        except OSError:
            return


class Refused(Exception):
    """A request is not served; `AsgiApplication` sends the response.

    `body` says how much of the request's body was read.
    """

    def __init__(
        self,
        response: HttpResponse,
        body: Literal["read", "partly read", "unread"] = "read",
    ) -> None:
        super().__init__(response.status)
        self.response = response
        self.body = body


def refusal(
    status: int,
    text: str,
    *,
    code: int = INVALID_REQUEST,
    id: Any = UNSET,
    headers: Mapping[str, str] = NO_HEADERS,
    data: Any = NO_DATA,
) -> HttpResponse:
    """A refusal whose body is a JSON-RPC error; without an id if that is unknown."""
    return HttpResponse(status, jsonrpc.encode_error(id, code, text, data), headers)


def unavailable(text: str, *, id: Any = UNSET) -> HttpResponse:
    """A refusal of a request that was not begun, and may be sent again after a second."""
    text = f"{text}; the request was not begun"
    return refusal(503, text, code=INTERNAL_ERROR, id=id, headers=_RETRY_AFTER, data=NOT_BEGUN)


def ending() -> HttpResponse:
    """A refusal of a request because the server shuts down; another process may serve it."""
    return unavailable("the server is ending")


def over_limit(limit: str, *, id: Any = UNSET) -> HttpResponse:
    """A refusal of a request that exceeds a field of `Limits`."""
    return unavailable(f"too much at once; the limit is Limits.{limit}", id=id)


def not_allowed(methods: str) -> HttpResponse:
    """A refusal of an HTTP method, with the methods that are allowed."""
    return refusal(405, f"expected {methods}", headers={"Allow": methods})


def invalid_message(message: jsonrpc.InvalidMessage) -> HttpResponse:
    """A refusal of a body that is not a JSON-RPC message."""
    error = message.error
    identifier: Any = UNSET if message.id is None else message.id
    return refusal(400, error.message, code=error.code, id=identifier)


def unknown_method(message: jsonrpc.Request) -> HttpResponse:
    """The response to a method that the revisions with sessions do not have.

    The status is 200: some gateways do not forward the body of an HTTP error to their client.
    """
    text = MethodNotFoundError(message.method).message
    return refusal(200, text, code=METHOD_NOT_FOUND, id=message.id)


def session_ended() -> HttpResponse:
    """The response to requests whose session ended while they were served.

    The status is not 404: clients take 404 as permission to send the requests again, but the server
    may have acted on them.
    """
    text = "the session ended before the answer was there; the request may have been acted on"
    return refusal(503, text, code=INTERNAL_ERROR, data=INTERRUPTED)


def unknown_session(status: int) -> HttpResponse:
    """A refusal of a message for a session that has ended or never existed.

    Source: basic/transports#session-management (to 2025-11-25).
    """
    return refusal(status, "there is no such session, or not any more; initialize opens another")


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

    async def open(self, headers: Mapping[str, str] = NO_HEADERS, *, holds: bool = False) -> None:
        """Start the response; with `holds`, the head is sent with the first event.

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
        before: bytes = b"",
    ) -> None:
        """Write one event, in one piece with encoded events `before` it; the last one ends the
        response.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        body = before + encode_event(data, type=type, id=id, retry=retry)
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


async def until_disconnect(
    receive: Receive,
    response: SseResponse,
    keep_alive: float | None,
    on_silence: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Wait until the client disconnects, then abort the stream.

    After `keep_alive` seconds of silence a comment is written to an open stream, and `on_silence`
    is called to start one that was not started.
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
