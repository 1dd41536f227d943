"""One POST with one request: from the request as read to the end of its response.

    begin -> handler -> detach -> encode -> reply -> end        one function: `Exchange.serve`

The function runs in a task of its own, which begins at once and does nothing else. If the handler
ends and nothing was sent before, its result is sent as one JSON document. The first message that
precedes the result makes the response a stream, and so does a long silence: then a `PostResponse`
writes it. Other tasks, which cancel the request, fail it, watch its client or send to its client,
find the exchange in the tables of its session or endpoint from `begin` to `end`. A batch is several
exchanges with one response.

On asyncio a cancellation is delivered once, wherever the task awaits. So it may arrive only while
the handler runs: afterwards `cancel` has no effect, and one that was not delivered is absorbed. On
trio a scope around the task is cancelled.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25),
basic/transports/streamable-http (2026-07-28).
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from asyncio import current_task
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import Any

import anyio

from ...channel import OutgoingMessage
from ...errors import ConnectionClosedError, ProtocolError
from ...protocol.connection import RequestReceived
from ...protocol.lifecycle import RequestMetadata
from ...runtime.concurrency import failure_of
from ...runtime.eager_tasks import Cancellable, begin_task
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import RequestContext
from .http_response import JSON_TYPE
from .post_response import PostResponse
from .request import HttpRequest, Receive, Send

logger = logging.getLogger(__name__)


class Exchange(ABC):
    """One request over HTTP. Subclasses say to whom it belongs.

    Args:
        owner: The session or endpoint.
        exchanges: The open exchanges of the endpoint.
        request: The POST.
        receive: The ASGI receive callable.
        send: The ASGI send callable.
        event: The request in its body.
        metadata: The metadata of the request.
        response: The response of the batch that the request is part of.

    Attributes:
        event: As passed.
        events_only: Whether the response has to be a stream.
        exchanges: As passed.
        is_plain: Whether a result that nothing precedes is sent as it is.
        metadata: As passed.
        response: Writes the response, if it is or may become a stream; else `None`.
        cancel_called: Whether the request was cancelled.
        places: Number of places that the exchange takes itself among the messages in flight,
            besides that of its POST.
        watched: Whether a task waits for the client to disconnect.
    """

    def __init__(
        self,
        owner: Any,
        exchanges: Any,
        request: HttpRequest,
        receive: Receive,
        send: Send,
        event: RequestReceived,
        metadata: RequestMetadata | None = None,
        response: Any = None,
    ) -> None:
        self._owner = owner
        self._request = request
        self._receive = receive
        self._send = send
        self._running: Cancellable | None = None
        self._created = monotonic()
        self.exchanges = exchanges
        self.event = event
        self.metadata = metadata
        self.response = response
        self.events_only = response is None and request.forms[1]
        self.is_plain = not (self.events_only or owner.stores)
        self.cancel_called = False
        self.places: int = 0
        self.watched = False

    def start(self) -> Awaitable[None] | None:
        """Serve the request, on asyncio in a task of its own that begins at once.

        Returns:
            Waits for the end; `None` if the request has been served.
        """
        if not self.exchanges.background.on_asyncio:
            return self.serve_on_trio()
        task = begin_task(self.serve(None))
        if task.done():
            task.result()
            return None
        self.exchanges.own(task)
        return self._wait_for(task)

    async def serve(self, scope: anyio.CancelScope | None) -> None:
        """Run the handler of the request, and send its response, unless it is cancelled.

        Args:
            scope: The scope to cancel if the client cancels the request; `None` for this task,
                which does nothing else.
        """
        self._running = current_task() if scope is None else scope
        event = self.event
        peer = self.begin()
        try:
            message: OutgoingMessage | None = None
            failure: ProtocolError | None = None
            try:
                context = RequestContext(
                    peer,
                    event.method,
                    event.params,
                    event.raw_params,
                    event.meta,
                    event.revision,
                    event.id,
                    event.peer_info,
                    event.peer_capabilities,
                )
                handle = self._owner.service.application.handle
                result = await (self.stream(context) if self.events_only else handle(context))
                message = self.respond(result)
            except BaseException as error:
                failure = await failure_of(event, error)
            self._running = None  # there is no handler to cancel any more
            if failure is not None:
                message = self.respond_failure(failure)
            if self.cancel_called and scope is None:
                await _absorb_cancellation()
            if (
                message is None
                or message.error_code is not None
                or self.response is not None
                or not self.is_plain
            ):
                await self.reply(message)
            else:
                send, body = self._send, message.data  # nothing was sent before
                headers = [(b"content-length", b"%d" % len(body)), JSON_TYPE]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": body, "more_body": False})
        except anyio.get_cancelled_exc_class():
            if scope is None:
                await _in_own_task(self.cancelled())
            else:
                await self.cancelled()
            if scope is not None or not self.cancel_called:
                raise
        except (OSError, ConnectionClosedError) as error:
            logger.debug("not sent: %s", error)
        finally:
            await self.end()

    def cancel(self) -> None:
        """Cancel the handler; no-op once it has ended."""
        self.cancel_called = True
        if self._running is not None:
            self._running.cancel()

    def writer(self) -> Any:
        """The writer of the response, made when it is needed first."""
        response = self.response
        if response is None:
            response = self.response = self.new_response()
            response.created = self._created
        return response

    async def send(self, message: OutgoingMessage) -> None:
        """Send a message that belongs to the request."""
        await (self.response or self.writer()).send(message)

    @abstractmethod
    async def serve_on_trio(self) -> None:
        """Serve the request in a scope."""

    @abstractmethod
    def begin(self) -> PendingRequests | Callable[[], PendingRequests]:
        """Enter the exchange into the tables of its owner.

        Returns:
            Sends to the client; or a function that returns the sender, called at first use.
        """

    @abstractmethod
    def stream(self, context: RequestContext) -> Awaitable[Any]:
        """Run the handler of a request whose response has to be a stream."""

    @abstractmethod
    def new_response(self) -> PostResponse:
        """The writer of the response."""

    @abstractmethod
    def respond(self, result: Any) -> OutgoingMessage | None:
        """Leave the open requests, with a result; `None` if the request was cancelled.

        Raises:
            ProtocolError: The result has no JSON form.
        """

    @abstractmethod
    def respond_failure(self, failure: ProtocolError) -> OutgoingMessage | None:
        """Leave the open requests, with an error; `None` if the request was cancelled."""

    @abstractmethod
    async def reply(self, message: OutgoingMessage | None) -> None:
        """End a response that is more than one result in JSON; `None` without a response."""

    @abstractmethod
    async def cancelled(self) -> None:
        """End the response when its task, or a scope around it, is cancelled."""

    @abstractmethod
    async def end(self) -> None:
        """Remove the exchange from the tables of its owner."""

    @abstractmethod
    async def watch(self) -> None:
        """Wait for the client to disconnect."""

    @abstractmethod
    async def fail(self, text: str) -> None:
        """Respond with an error, unless there is a response, and cancel the request."""

    @abstractmethod
    async def host_cancelled(self, task: asyncio.Future[None]) -> None:
        """Called when the host cancelled the POST, whose request a task serves."""

    async def _wait_for(self, task: asyncio.Future[None]) -> None:
        """Wait for the end of the task. A cancellation of the POST must not pass on to the task."""
        try:
            await _end_of(task)
        except asyncio.CancelledError:
            await self.host_cancelled(task)
            raise
        if not task.cancelled():
            task.result()


def _end_of(task: asyncio.Future[Any]) -> Awaitable[None]:
    """Waits for the end of a task, and does not cancel the task if it is cancelled."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(_: asyncio.Future[Any]) -> None:
        if not ended.done():
            ended.set_result(None)

    task.add_done_callback(end)
    return ended


async def _absorb_cancellation() -> None:
    """Take the cancellation of the current task that its handler did not wait for."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


async def _in_own_task(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end although this task was cancelled, perhaps by several scopes."""
    task = begin_task(coroutine)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await _end_of(task)
