"""One HTTP response that carries a stream of server-sent events."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping

import anyio
import anyio.lowlevel

from ...errors import ConnectionClosedError
from ...framing.sse import MEDIA_TYPE, encode_comment, encode_event
from ...runtime.concurrency import pausing
from .request import Receive, Send

_NO_HEADERS: Mapping[str, str] = {}
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # proxies may buffer events otherwise
]
_COMMENT = encode_comment()
_WRITES_IN_A_ROW = 16  # writes before other tasks get their turn
_SLOWEST_READER = 2**16  # bytes a second; a client that reads as fast may take its time


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
        on_abort: Called once when the client is known to be gone.
    """

    __slots__ = (
        *("_confirmed", "_is_open", "_lock", "_seconds", "_send", "_size", "_writes"),
        *("last_write", "on_abort", "started"),
    )

    def __init__(self, send: Send, seconds: float, since: float | None = None) -> None:
        self._send = send
        self._seconds = seconds
        self._lock: anyio.Lock | None = None  # made by the first write
        self._is_open = False
        self._size = self._confirmed = 0  # bytes of all events, and of those known to be received
        self._writes = 0
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

    async def event(
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

    async def comment(self) -> None:
        """Write a comment, which keeps proxies and clients from closing a silent connection.

        Raises:
            ConnectionClosedError: The client is gone, or did not read in time.
        """
        await self._write({"type": "http.response.body", "body": _COMMENT, "more_body": True})

    async def close(self) -> None:
        """End the response. Idempotent; a client that is gone is no error."""
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

    def abort(self) -> None:
        """Write nothing more: the client is gone."""
        self._is_open = False
        on_abort, self.on_abort = self.on_abort, None
        if on_abort is not None:
            on_abort()

    async def _write(self, *messages: dict[str, object], size: int = 0) -> None:
        if not self._is_open or self._writes % _WRITES_IN_A_ROW == _WRITES_IN_A_ROW - 1:
            # A handler that writes much and waits for nothing else would block the event loop.
            await anyio.lowlevel.checkpoint()
        if not self._is_open:
            raise ConnectionClosedError("the stream of events is closed")
        before = self._size
        self._size += size
        try:
            # The scope is entered before the lock: anyio needs scopes to nest.
            with anyio.CancelScope() as scope:
                await self._send_within(scope, messages)
                self._confirmed = before  # or the server would not have accepted more
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
        """Send messages in a scope, whose deadline is set once sending has to wait."""

        def set_deadline() -> None:
            extra = (self._size - self._confirmed) / _SLOWEST_READER
            scope.deadline = anyio.current_time() + self._seconds + extra

        await pausing(self._send_all(messages), set_deadline)

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
    """Wait until the client disconnects, then abort the stream. Writes comments into silence.

    Args:
        receive: The ASGI receive callable.
        response: The stream, open or not.
        keep_alive: Seconds of silence after which a comment is written; `None` for never.
        on_silence: Called after as many seconds if the stream was not started, to start it.
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
                await response.comment()
            elif on_silence is not None and not response.started:
                await on_silence()
            since = anyio.current_time()
    except (ConnectionClosedError, OSError):
        pass
    response.abort()
