"""One HTTP response that carries a stream of events."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping

import anyio
import anyio.lowlevel

from ...errors import ConnectionClosedError
from ...framing.sse import MEDIA_TYPE, encode_comment, encode_event
from .request import Receive, Send
from .timeouts import within

_NO_FIELDS: Mapping[str, str] = {}
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # or a proxy may hold events back
]
_COMMENT = encode_comment()
_IN_A_ROW = 16  # writes before other tasks get their turn
_SLOWEST = 2**16  # bytes a second: who reads that many may take its time for what is long


class SseResponse:
    """Writes events to one client. Several tasks may write; each event goes out whole.

    Args:
        send: The ASGI application's way out.
        seconds: How long the client may leave what is sent unread before it is cut; one more for
            each 64 KiB of it.

    Attributes:
        used: Whether the response has begun, and be it over again.
        written: How many times something was written.
        last_write: When something was written last, or it was made, on the clock of
            `anyio.current_time`.
        on_cut: Called once the client is known to be gone, if anyone cares.
    """

    __slots__ = (
        *("_given", "_lock", "_open", "_seconds", "_send", "_taken"),
        *("last_write", "on_cut", "used", "written"),
    )

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self._lock: anyio.Lock | None = None  # most answers need none
        self._open = False
        self._given = self._taken = 0  # bytes of events, and those that the client is known to have
        self.used = False
        self.written = 0
        self.last_write = anyio.current_time()
        self.on_cut: Callable[[], object] | None = None

    @property
    def is_open(self) -> bool:
        """Whether events can be written."""
        return self._open

    async def open(self, fields: Mapping[str, str] = _NO_FIELDS) -> None:
        """Begin the response.

        Args:
            fields: Header fields beyond those of every stream.

        Raises:
            ConnectionClosedError: The client is gone, or did not read for too long.
        """
        more = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
        self._open = self.used = True
        await self._write(
            {"type": "http.response.start", "status": 200, "headers": _HEADERS + more},
            # Some servers hold the head back until there is a body.
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
            ConnectionClosedError: The client is gone, or did not read for too long.
        """
        body = encode_event(data, type=type, id=id, retry=retry)
        message: dict[str, object] = {"type": "http.response.body", "body": body, "more_body": True}
        await self._write(message, size=len(body))

    async def comment(self) -> None:
        """Write what means nothing, so that nobody takes the silence for an end.

        Raises:
            ConnectionClosedError: The client is gone, or did not read for too long.
        """
        await self._write({"type": "http.response.body", "body": _COMMENT, "more_body": True})

    async def close(self) -> None:
        """End the response. Idempotent; a client that is gone is no error."""
        if not self._open:
            return
        self._open = False
        last: dict[str, object] = {"type": "http.response.body", "body": b""}
        try:
            await within(self._patience, self._put(last), shield=True)
        except (ConnectionClosedError, TimeoutError):
            self.cut()

    def cut(self) -> None:
        """Take note that the client is gone: nothing more is written."""
        self._open = False
        told, self.on_cut = self.on_cut, None
        if told is not None:
            told()

    @property
    def _patience(self) -> float:
        """Seconds that the client has for what was given until now."""
        return self._seconds + (self._given - self._taken) / _SLOWEST

    async def _write(self, *messages: dict[str, object], size: int = 0) -> None:
        if not self._open or self.written % _IN_A_ROW == _IN_A_ROW - 1:
            # Whoever says much and waits for nothing else would let nobody else run.
            await anyio.lowlevel.checkpoint()
        if not self._open:
            raise ConnectionClosedError("the stream of events is closed")
        before = self._given
        self._given += size
        try:
            await within(self._patience, self._put(*messages))
            self._taken = before  # or the server would not have taken more
        except TimeoutError:
            self.cut()
            raise ConnectionClosedError(
                f"the client read nothing for {self._seconds:g} s (Limits.send_seconds)"
            ) from None
        except ConnectionClosedError:
            self.cut()
            raise

    async def _put(self, *messages: dict[str, object]) -> None:
        if self._lock is None:
            self._lock = anyio.Lock(fast_acquire=True)
        try:
            async with self._lock:
                for message in messages:
                    await self._send(message)
                    self.written += 1
            self.last_write = anyio.current_time()
        except OSError as error:
            raise ConnectionClosedError(f"the client is gone: {error}") from error


async def until_gone(
    receive: Receive,
    wire: SseResponse,
    seconds: float | None,
    begin: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Wait until a client leaves, and cut the stream then. Writes comments into its silence.

    Args:
        receive: Tells when the client leaves.
        wire: The stream, open or not.
        seconds: Seconds of silence after which a comment is written; `None` for never.
        begin: Called after so many seconds of silence on a stream that was never open, to open it.
    """
    since = wire.last_write
    try:
        while True:
            deadline = math.inf if seconds is None else since + seconds
            with anyio.CancelScope(deadline=deadline):
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                continue
            if wire.last_write > since:
                since = wire.last_write
                continue
            if wire.is_open:
                await wire.comment()
            elif begin is not None and not wire.used:
                await begin()
            since = anyio.current_time()
    except (ConnectionClosedError, OSError):
        pass
    wire.cut()
