"""The way back of one POST in a session: one JSON document, or a stream.

It becomes a stream when something comes before the answer, or nothing for too long.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

import anyio

from ...channel import OutgoingMessage
from ...errors import ConnectionClosedError
from ...facts import Revision
from .request import Incoming, Receive, Send, forms
from .responses import Reply
from .resumable_stream import ResumableStream
from .settings import HttpSettings
from .sse_response import SseResponse, until_gone

_NO_FIELDS: Mapping[str, str] = {}


class Owner(Protocol):
    """The session that a POST belongs to."""

    @property
    def revision(self) -> Revision:
        """The agreed revision."""
        ...

    def new_stream(self) -> ResumableStream:
        """A stream for it."""
        ...

    def ended(self, stream: ResumableStream) -> None:
        """Its stream is over."""
        ...

    async def tell(self, message: bytes) -> None:
        """Send something elsewhere."""
        ...

    def enter(self) -> None:
        """A client waits for its answer."""
        ...

    def leave(self) -> None:
        """It waits no more."""
        ...


class SessionResponse:
    """Answers the requests of one POST.

    Args:
        owner: The session.
        request: The POST.
        receive: Tells when its client leaves.
        send: The ASGI application's way out.
        settings: How to answer.
        expected: How many answers there will be.
        batch: Whether they belong into one array.
        fields: Header fields of the response.

    Attributes:
        watched: Whether somebody looks whether the client is still there.
        attended: Whether it is, as far as is known.
    """

    def __init__(
        self,
        owner: Owner,
        request: Incoming,
        receive: Receive,
        send: Send,
        settings: HttpSettings,
        *,
        expected: int,
        batch: bool = False,
        fields: Mapping[str, str] = _NO_FIELDS,
    ) -> None:
        owner.enter()
        self.watched = False
        self.attended = True
        self._owner = owner
        self._receive = receive
        self._send = send
        self._settings = settings
        self._left = expected
        self._batch = batch
        self._fields = fields
        self._json_only, self._events_only = forms(request, settings.answers)
        self._takes_events = request.accepts_events
        self._answers: list[bytes] = []
        self._stream: ResumableStream | None = None
        self._wire = SseResponse(send, settings.limits.send_seconds)
        self._watching: anyio.CancelScope | None = None
        self._replied = False

    async def send(self, message: OutgoingMessage) -> None:
        """Send an answer, or what comes before it.

        Where the answer is to be JSON nothing can come before it: requests to the client go
        elsewhere, notifications are left out.

        Raises:
            TransportError: There is no way for it.
        """
        answers = message.is_response
        stream = self._stream
        if stream is None:
            if answers and not self._events_only:
                self._answers.append(message.data)
                await self._answered()
                return
            if self._json_only or self._replied:
                if message.kind == "request":
                    await self._owner.tell(message.data)
                return
            stream = await self._open_stream()
        await stream.put(message.data)
        if answers:
            await self._answered()

    async def begin(self) -> None:
        """Open the stream, where the answer has to come on one."""
        if self._events_only:
            await self._open_early()

    async def release(self) -> None:
        """Close the connection; the rest is for whoever comes back to the stream.

        Does nothing where the answer is to be JSON.
        """
        await self._open_early()
        if self._stream is not None:
            await self._stream.release()

    async def finish(self, instead: Reply | None = None) -> None:
        """End the response though some answers will not come.

        Args:
            instead: Sent if nothing else was.
        """
        self.leave()
        if self._watching is not None:
            self._watching.cancel()
        if instead is not None and not self._answers and self._stream is None:
            await self._reply(instead)
        elif self._left:
            self._left = 0
            await self._end()

    @property
    def connected(self) -> bool:
        """Whether a client is there to read the stream, over this connection or a later one."""
        return self._stream is not None and self._stream.connected

    async def watch(self) -> bool:
        """Wait for the client to leave, and then write no more to it.

        Meanwhile open the stream and write comments, as silence demands.

        Returns:
            Whether it left, while it had not all of its answer.
        """
        with anyio.CancelScope() as self._watching:
            seconds = self._settings.keep_alive
            await until_gone(self._receive, self._wire, seconds, self._open_early)
            if self._stream is not None:
                self._stream.leave(self._wire)
            left = self.attended and self._left > 0
            self.leave()
            return left
        return False

    def leave(self) -> None:
        """Take note that the client is not there any more, or has all that it waited for."""
        if self.attended:
            self.attended = False
            self._owner.leave()

    async def _answered(self) -> None:
        self._left -= 1
        if not self._left:
            await self._end()

    async def _end(self) -> None:
        stream = self._stream
        if stream is not None:
            self._owner.ended(stream)
            await stream.end()
            return
        body = b",".join(self._answers)
        if body:
            await self._reply(Reply(200, b"[%b]" % body if self._batch else body, self._fields))
        else:
            await self._say_nothing()

    async def _say_nothing(self) -> None:
        """End the response of cancelled requests, which get no answer: as a stream without events.

        JSON would have to be an answer; who takes nothing else gets no body at all.
        """
        if self._takes_events and not self._replied:
            self._replied = True
            with suppress(ConnectionClosedError):
                await self._wire.open(self._fields)
                await self._wire.close()
        else:
            await self._reply(Reply(self._owner.revision.facts.http.accepted, fields=self._fields))

    async def _reply(self, reply: Reply) -> None:
        if not self._replied:
            self._replied = True
            with suppress(OSError):  # the client is gone
                await reply.send(self._send)

    async def _open_early(self) -> None:
        """Open the stream before there is anything to say, unless the answer is to be JSON."""
        if self._stream is None and not self._json_only and not self._replied:
            with anyio.CancelScope(shield=True):  # an answer that comes now ends the watching
                await self._open_stream()

    async def _open_stream(self) -> ResumableStream:
        stream = self._stream = self._owner.new_stream()
        answers, self._answers = self._answers, []
        await stream.open(self._wire, self._fields, answers)
        return stream
