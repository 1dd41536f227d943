"""The channel to a server over HTTP: Streamable HTTP, or HTTP+SSE if the server supports only that.

The channel starts with Streamable HTTP. If the server refuses `initialize` as a server of HTTP+SSE
does, the channel requests an event stream from the same address. If the stream sends an endpoint,
the channel uses HTTP+SSE from then on.

A message that the server refused without having begun it waits, and is posted again. A server that
has too much to do refuses requests before any work on them. Of 500 calls at once, most would fail
then, although the server could serve all of them, one after the other. So a request waits for one
of the places of `OpenRequests`.

Source: basic/transports (Streamable HTTP, backwards compatibility); 2026-07-28:
basic/transports/streamable-http.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, TypeAlias

import anyio
import anyio.abc

from ...channel import OPEN_REQUESTS, Channel, OutgoingMessage, RequestId
from ...errors import (
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteError,
    RequestLost,
    RevisionError,
)
from ...facts import Revisions, has_streamable_http
from ...framing.http_hosts import checked_url
from ...protocol.jsonrpc import ParsedMessage
from ...protocol.lifecycle import INITIALIZE
from ...runtime.time_limits import HTTP_TIMEOUTS, HttpTimeouts, pause_limits
from ..memory import MessageQueue
from .http_client import HttpRequests
from .streamable_http import OnStream, OpenTransport, ParamHeaders, StartSoon
from .transports import fields_of_request, open_older, open_streamable

HttpTransport: TypeAlias = Literal["streamable-http", "sse"]
"""The transports over HTTP: Streamable HTTP, and HTTP+SSE of older revisions."""


class HttpChannel(Channel):
    """A channel to a server over HTTP. `run` must run in a task of its own.

    Args:
        url: URL of the server.
        revisions: The revisions that the client supports.
        requests: Sends the HTTP requests; closed with the channel.
        transport: The transport to use; `None` to detect the transport.
        param_headers: Returns the parameter headers of a tool call.
        on_renewed: Called when a new session has replaced a lost session.
        on_stream: Called with the reason why the standalone stream cannot be reopened, and with
            `None` when the stream is open.
        timeouts: Timeouts and pauses.
        open_requests: Requests that may be open at a time; further ones wait.

    Raises:
        ConnectFailedError: The URL is invalid.
    """

    transport = "HTTP"

    def __init__(
        self,
        url: str,
        revisions: Revisions,
        requests: HttpRequests,
        transport: HttpTransport | None = None,
        param_headers: ParamHeaders | None = None,
        on_renewed: Callable[[], None] | None = None,
        on_stream: OnStream | None = None,
        timeouts: HttpTimeouts = HTTP_TIMEOUTS,
        open_requests: int = OPEN_REQUESTS,
    ) -> None:
        url = checked_url(url)
        self._timeouts = timeouts
        self._open_requests = OpenRequests(self._start_soon, open_requests)
        self._requests = requests
        self._received = MessageQueue()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._running = anyio.Event()
        self._closing = anyio.Event()
        self._parted = anyio.Event()
        common = (requests, url, revisions, self._received, self._start_soon, timeouts)
        self._older = None if open_older is None else partial(open_older, *common)
        streamable = has_streamable_http(revisions)
        self._transport: OpenTransport
        if transport == "sse" or (transport is None and not streamable):
            if self._older is None:
                text = "this package was generated without HTTP+SSE"
                raise RevisionError(text, tuple(revisions))
            self._transport = self._older()
        else:
            fields_of = None
            if fields_of_request is not None:
                fields_of = partial(fields_of_request, param_headers=param_headers)
            self._transport = open_streamable(*common, fields_of, on_renewed, on_stream)
        if transport is not None or not streamable:
            self._older = None

    async def run(self) -> None:
        """Run the background tasks of the channel until `close`, and then end the session.

        The session is ended here because the task that calls `close` may be cancelled.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self._running.set()
                await self._closing.wait()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._transport.end()
                await self._requests.close()
            self._parted.set()

    async def receive(self) -> bytes:
        """Wait for the next message on any stream.

        Raises:
            EndOfChannel: The channel was closed, or the stream of HTTP+SSE ended.
            RequestLost: A request of this side will not be answered.
            FrameError: A message was too long and was dropped.
        """
        try:
            message = await self._received.get()
        except RequestLost as lost:
            self._open_requests.leave(lost.id)
            raise
        if isinstance(message, ParsedMessage):
            for identifier in message.results():
                self._open_requests.leave(identifier)
        return message

    async def send(self, message: OutgoingMessage) -> None:
        """Post one message; wait while too many requests are open, or the server begins none.

        Raises:
            ConnectionClosedError: The channel was closed.
            HttpStatusError: The server refused the message or its stream.
            ConnectFailedError: The server cannot be reached.
            ResponseLostError: The connection broke before the response arrived.
            SessionLostError: The server lost two sessions in a row.
            RemoteError: The server refused the message with an error without a request id.
            RemoteProtocolError: The response is invalid.
        """
        await self._running.wait()
        if self._closing.is_set():
            raise ConnectionClosedError("the connection is closed")
        places, place = self._open_requests, message.id if _takes_place(message) else None
        deadline: float | None = None
        while True:
            await self._transport.open()
            if place is not None:
                # A probe that waits so is not silent: the server has said when to come back.
                with nullcontext() if deadline is None else pause_limits():
                    await places.enter(place, was_refused=deadline is not None)
            try:
                await self._transport.send(message)
                return
            except HttpStatusError as error:
                refusal = error
            except BaseException:
                places.leave(place)
                raise
            now = anyio.current_time()
            pause = max(refusal.retry_after or 0.0, self._timeouts.shortest_pause)
            is_busy = refusal.is_outage and refusal.retry_after is not None
            if place is not None and is_busy and pause <= self._timeouts.refused:
                places.refuse(place, pause)
            else:
                places.leave(place)
            deadline = now + self._timeouts.refused if deadline is None else deadline
            if refusal.begun is not False or now + pause > deadline:
                break
            if place is None or not is_busy:
                await anyio.sleep(pause)
        if not await self._fall_back(message, refusal):
            await self._handle_refusal(message, refusal)

    def close_request_stream(self, identifier: RequestId) -> bool:
        """Close the stream of a request whose response is no longer awaited; see `Channel`."""
        self._transport.close_request_stream(identifier)
        self._open_requests.leave(identifier)
        return True

    async def close(self) -> None:
        """Close all streams and end the session. Idempotent, from any task."""
        if not self._closing.is_set():
            self._closing.set()
            self._open_requests.close()
            self._received.close("this side closed it")
            self._received.clear()
        await self._parted.wait()

    def _start_soon(self, work: Any, *args: Any) -> bool:
        if self._tasks is None or self._closing.is_set():
            return False
        self._tasks.start_soon(work, *args)
        return True

    async def _fall_back(self, message: OutgoingMessage, refusal: HttpStatusError) -> bool:
        """Switch to HTTP+SSE if `initialize` was refused as a server of HTTP+SSE refuses it.

        Returns:
            Whether the message was sent, or its refusal was handled.
        """
        if message.method != INITIALIZE or self._older is None or refusal.wants_credentials:
            return False
        older = self._older()
        if not older.is_suggested_by(refusal):
            return False
        try:
            await older.open()
        except McpError as error:
            more = f"nor is it a server of HTTP+SSE: {error}"
            await self._handle_refusal(message, refusal.with_more(more))
        else:
            self._older = None
            self._transport = older
            await older.send(message)
        return True

    async def _handle_refusal(self, message: OutgoingMessage, refusal: HttpStatusError) -> None:
        """Receive the body of a refusal as the response to the message, or raise the refusal.

        An error without a request id and with a temporary status describes the server's state, so
        the refusal is raised. So it is, as the cause, if the same request may succeed soon.
        """
        body = ParsedMessage.of(refusal.body)
        failure = None if refusal.wants_credentials else body.error_response()
        if failure is None or message.kind != "request":
            raise refusal
        if failure.id == message.id and not refusal.is_outage:
            await self._received.put(body)
        elif failure.id == message.id or (failure.id is None and not refusal.may_pass):
            raise RemoteError(
                failure.code, failure.message, failure.data, message.method
            ) from refusal
        else:
            raise refusal


class OpenRequests:
    """The places for open requests, and the requests that wait for one.

    At first there are many places. A refusal leaves as many as the server has accepted, and each
    response makes room for the next request. After the time that the server named, there are more
    places again, by 1, 2, 4 and so on, until the next refusal.

    Args:
        start_soon: Starts a task that ends with the channel.
        most: Most places.
    """

    def __init__(self, start_soon: StartSoon, most: int) -> None:
        self._start_soon = start_soon
        self._most = self._places = most
        self._open: set[RequestId] = set()
        self._waiting: deque[tuple[RequestId, anyio.Event]] = deque()
        self._closed = False
        self._growing = False

    async def enter(self, identifier: RequestId, *, was_refused: bool = False) -> None:
        """Wait for a place. A request that was refused is the next one that gets one.

        Raises:
            ConnectionClosedError: There is no place, and the channel was closed.
        """
        if len(self._open) < self._places and not self._waiting:
            self._open.add(identifier)
            return
        if not self._closed:
            place = (identifier, anyio.Event())
            if was_refused:
                self._waiting.appendleft(place)
            else:
                self._waiting.append(place)
            try:
                await place[1].wait()
            except BaseException:
                if place in self._waiting:
                    self._waiting.remove(place)
                self.leave(identifier)
                raise
        if self._closed:
            raise ConnectionClosedError("the connection is closed")

    def leave(self, identifier: RequestId | None) -> None:
        """Free the place of a request that is not open any more. Idempotent."""
        if identifier is not None and identifier in self._open:
            self._open.remove(identifier)
            self._admit()

    def refuse(self, identifier: RequestId, seconds: float) -> None:
        """Free the place of a request that the server refused, and keep those of the others.

        Args:
            identifier: The request.
            seconds: Seconds until the server may accept more requests than it has now.
        """
        self._open.discard(identifier)
        self._places = min(self._places, len(self._open))
        self._pause, self._step = seconds, 1
        self._grow_at = anyio.current_time() + seconds
        if not self._growing:
            self._growing = self._start_soon(self._grow)

    def close(self) -> None:
        """Wake all requests that wait; `enter` then raises."""
        self._closed = True
        for _, turn in self._waiting:
            turn.set()
        self._waiting.clear()

    def _admit(self) -> None:
        while self._waiting and len(self._open) < self._places:
            identifier, turn = self._waiting.popleft()
            self._open.add(identifier)
            turn.set()

    async def _grow(self) -> None:
        """Add places after each pause, until there are as many as at first."""
        while self._places < self._most:
            if (left := self._grow_at - anyio.current_time()) > 0:
                await anyio.sleep(left)
                continue
            self._places = min(self._most, self._places + self._step)
            self._step *= 2
            self._grow_at = anyio.current_time() + self._pause
            self._admit()
        self._growing = False


def _takes_place(message: OutgoingMessage) -> bool:
    """Whether a message counts as an open request.

    The request that opens a session has none before it, and a subscription stays open for long.
    """
    if message.kind != "request" or message.method == INITIALIZE:
        return False
    return message.revision is None or message.method != message.revision.facts.behaviour.listen
