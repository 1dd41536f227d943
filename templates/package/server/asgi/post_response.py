"""The response to one POST: a JSON document, or a stream of server-sent events.

The response becomes a stream when a message precedes the JSON-RPC response, or after `keep_alive`
seconds of silence, if the client accepts streams and the settings allow one.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25),
basic/transports/streamable-http (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic

import anyio
import anyio.lowlevel

from ...channel import Channel, OutgoingMessage
from ...errors import ConnectionClosedError, EndOfChannel
from .http_response import HttpResponse
from .request import HttpRequest, Receive, Send
from .settings import ServerHttpSettings
from .sse_response import SseResponse, until_disconnect

_NO_HEADERS: Mapping[str, str] = {}
_NO_STATUSES: Mapping[int, int] = {}


class PostResponse(Channel):
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
        other_status: As passed.
        watched: Whether a task waits for the client to disconnect.
    """

    def __init__(
        self,
        request: HttpRequest,
        receive: Receive,
        send: Send,
        settings: ServerHttpSettings,
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

    async def receive(self) -> bytes:
        """Raise `EndOfChannel`, since the POST was the only message."""
        raise EndOfChannel("a POST brings one message")

    async def send(self, message: OutgoingMessage) -> None:
        """Send the response, or a message that precedes it; not before a response in JSON.

        Raises:
            ConnectionClosedError: The client is gone.
        """
        is_response = message.is_response
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
