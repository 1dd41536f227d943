"""One stream of events as a client sees it, over as many connections as it takes.

A stream that a request opened ends with the answer. Should it end before, it is taken up again by a
GET that names the last event, if the revision has that and the server gave its events ids. A server
may also close a connection to be asked again later. The stream that belongs to no request is held
open as long as the server offers it.

Source: basic/transports (sending, listening, resumability and redelivery).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from ...channel import RequestId
from ...errors import (
    ConnectFailedError,
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
    TransportError,
)
from ...foreign_text import safe_repr
from ...framing.http_headers import is_field_value
from ...framing.line_framing import TooLong
from ...framing.sse import MEDIA_TYPE, MESSAGE, EventDecoder, ServerSentEvent
from ..http_timeouts import HttpTimeouts
from .http_client import HttpRequests, content_type
from .http_errors import shown
from .http_libraries import Response

Resume: TypeAlias = "Callable[[str | None], Awaitable[Response]]"
"""Makes the GET for what comes after the event with an id, or for what comes from now on."""

Hear: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Told of each message of a stream, in order."""

StartSoon: TypeAlias = Callable[..., bool]
"""Starts a task that lives as long as the channel; says no once that is closed."""

OnStream: TypeAlias = Callable[[McpError | None], None]
"""Told why the stream that belongs to no request can't be had at present; `None` once it is."""

_CONFLICT = 409  # the server has not noticed yet that the stream before this one is gone

logger = logging.getLogger(__name__.partition(".")[0])

ATTEMPTS = 5
"""Attempts in a row that may bring nothing before the answer to a request counts as lost."""


class EventStream:
    """One stream.

    Args:
        requests: Reads responses.
        resume: Makes the GET; `None` where streams can't be taken up again.
        hear: Told of each message, in order.
        id: The request that the stream brings the answer to; `None` for none.
        timeouts: Pauses between connections.

    Attributes:
        id: The same.
        answered: Whether the answer came.
        connected: Whether a GET of it was ever answered.
        idle: Connections in a row that brought no message; what another stream brought in vain
            before this one took its place counts too.
        scope: What ends the stream from outside.
    """

    def __init__(
        self,
        requests: HttpRequests,
        resume: Resume | None,
        hear: Hear,
        id: RequestId | None,
        timeouts: HttpTimeouts,
    ) -> None:
        self.id = id
        self._timeouts = timeouts
        self.answered = False
        self.connected = False
        self.idle = 0
        self.scope = anyio.CancelScope()
        self._requests = requests
        self._resume = resume
        self._hear = hear
        self._reading: anyio.CancelScope | None = None
        self._last_id: str | None = None
        self._retry: int | None = None
        self._in_vain = 0
        self._broke = ""

    def answer_came(self) -> None:
        """The answer is there, on this stream or another: soon nothing more is of interest."""
        self.answered = True
        if self._reading is None:
            self.scope.cancel()
        else:
            self._reading.deadline = anyio.current_time() + self._timeouts.linger

    async def follow(self, response: Response) -> None:
        """Read until the answer came, beginning with the response to its request.

        Raises:
            AnswerLostError: It will not come.
            FrameError: An event was too long.
        """
        await self._read(response)
        while not self.answered:
            await self._read(await self._again(shown(response.url)))

    async def listen(self, on_stream: OnStream) -> None:
        """Read what belongs to no request, for as long as the server offers that.

        Args:
            on_stream: Told when a stream that was there can't be had again, each time in vain, and
                when it is there.

        Raises:
            HttpStatusError: The server does not offer it, or no longer.
            RemoteProtocolError: It answers with something else.
        """
        assert self._resume is not None
        if self.idle:
            await anyio.sleep(self._pause())
        while True:
            try:
                response = await self._resume(self._last_id)
            except TransportError as error:
                failure = _lost_for_now(error) if self.connected else error
                if not _may_pass(failure):
                    raise
                logger.debug("the stream of events is gone: %s", error)
                self._in_vain += 1
                if self.connected:
                    on_stream(failure)
            else:
                await self._check_kind(response)
                self.connected = True
                on_stream(None)
                await self._read(response)
            await anyio.sleep(self._pause())

    async def _again(self, where: str) -> Response:
        """Take the stream up again, where it broke off."""
        if self._resume is None or not self._last_id or not is_field_value(self._last_id):
            raise ResponseLostError(
                f"{where}: the stream ended before the answer came{self._broke}"
            )
        last: McpError | None = None
        while self._in_vain < ATTEMPTS:
            await anyio.sleep(self._pause())
            try:
                response = await self._resume(self._last_id)
                await self._check_kind(response)
                return response
            except (TransportError, RemoteProtocolError) as error:
                if not _may_pass(error):
                    raise ResponseLostError(
                        f"{where}: the stream ended before the answer came, "
                        f"and can't be taken up again: {error}"
                    ) from error
                last = error
            self._in_vain += 1
        told = f"; the last one: {last}" if last is not None else ""
        raise ResponseLostError(
            f"{where}: the stream ended before the answer came, "
            f"and {ATTEMPTS} attempts to take it up again brought nothing{told}"
        )

    async def _check_kind(self, response: Response) -> None:
        if content_type(response) != MEDIA_TYPE:
            raise await self._requests.unexpected(response, MEDIA_TYPE)

    def _pause(self) -> float:
        """Seconds to wait now: what the server said, and more if the last connections were idle."""
        times = self._timeouts
        pause = times.first_pause
        if self._retry is not None:
            pause = min(max(self._retry / 1000, times.shortest_pause), times.longest_retry)
        for attempts, first, longest in (
            (self._in_vain, times.first_pause, times.longest_pause),
            (self.idle, times.shortest_pause, times.longest_poll),
        ):
            if attempts > 1:
                pause = max(pause, min(first * 2.0 ** min(attempts - 1, 20), longest))
        return pause

    async def _read(self, response: Response) -> None:
        """Read one connection to its end, however it ends."""
        decoder = EventDecoder(self._requests.limit)
        decoder.last_id, decoder.retry = self._last_id, self._retry
        before = decoder.last_id
        heard = False
        self._broke = ""

        async def take(part: bytes) -> None:
            nonlocal heard
            for event in decoder.feed(part):
                heard = await self._take(event) or heard

        with anyio.CancelScope() as self._reading:
            try:
                await response.each_part(take)
            except ResponseLostError as error:
                self._broke = f": {error.__cause__ or error}"
            finally:
                self._last_id, self._retry = decoder.last_id, decoder.retry
                self._in_vain = 0 if heard or before != decoder.last_id else self._in_vain + 1
                self.idle = 0 if heard else self.idle + 1
        self._reading = None

    async def _take(self, event: ServerSentEvent | TooLong) -> bool:
        """Pass an event on, if it is a message."""
        if isinstance(event, TooLong):
            if self.id is not None:
                raise event.error()
            logger.warning("an event without a request was dropped: %s", event.error())
        elif event.type != MESSAGE:
            logger.debug("ignored: an event of type %s", safe_repr(event.type))
        elif event.data:
            await self._hear(event.data)
            return True
        return False


def _lost_for_now(error: TransportError) -> TransportError:
    """Why a stream that was there is not given again, as an error that may pass if it may."""
    if isinstance(error, HttpStatusError) and error.status == _CONFLICT:
        return ResponseLostError(f"the server takes the lost stream for open: {error}")
    return error


def _may_pass(error: McpError) -> bool:
    """Whether a stream that could not be had for this reason may be had a little later."""
    if isinstance(error, HttpStatusError):
        return error.may_pass
    return isinstance(error, ConnectFailedError | ResponseLostError)
