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

A client may disconnect. Most handlers take a short time, and a task per POST that waits for that
would cost more than the handler. So one task looks at all exchanges periodically, and starts a
watching task for each that is there.

Source: basic/transports#sending-messages-to-the-server (to 2025-11-25),
basic/transports/streamable-http (2026-07-28).
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from asyncio import current_task
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import anyio

from ...channel import OutgoingMessage
from ...errors import ConnectionClosedError, ProtocolError
from ...facts import Revisions
from ...protocol import jsonrpc
from ...protocol.events import RequestReceived
from ...protocol.lifecycle import RequestMetadata
from ...runtime.concurrency import failure_of
from ...runtime.eager_tasks import Cancellable, begin_task
from ...runtime.pending_requests import PARTING_SECONDS, PendingRequests
from ...runtime.request_context import RequestContext
from ...runtime.task_scope import TaskScope
from ..serving import Service
from .http_response import JSON_TYPE, SHUTTING_DOWN, Receive, Send
from .quotas import SHORT_BODY, Quotas
from .request import HttpRequest
from .sse_response import PostResponse

logger = logging.getLogger(__name__)

_SEARCH_INTERVAL = 0.25  # seconds between two searches for disconnected clients, at least


class HttpEndpoint(ABC):
    """Serves some of the revisions at the path of the endpoint.

    Attributes:
        exchanges: The open exchanges.
        methods: The HTTP methods, as in `Allow`.
    """

    exchanges: OpenExchanges
    methods: str = "POST"

    @staticmethod
    @abstractmethod
    def revisions_of(revisions: Revisions) -> Revisions:
        """The revisions, of those that are served, that such an endpoint serves."""

    @property
    def session_count(self) -> int:
        """Number of sessions."""
        return 0

    def applies(self, request: HttpRequest, message: jsonrpc.Message | None) -> bool:
        """Whether a POST is for this endpoint; the last one is not asked."""
        return True

    def names_revision(self, request: HttpRequest) -> bool:
        """Whether the header of a GET or DELETE is for this endpoint, likewise."""
        return True

    @abstractmethod
    def post(
        self,
        request: HttpRequest,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
        body: bytes,
        receive: Receive,
        send: Send,
    ) -> Awaitable[None] | None:
        """Respond to one POST: a message, or a batch with `None` as its message.

        Returns:
            Waits for the end of the response; `None` if it has ended.

        Raises:
            Refused: The messages are not served.
        """

    async def serve_other(self, request: HttpRequest, receive: Receive, send: Send) -> bool:
        """Serve a GET or a DELETE; `False` if the endpoint serves none."""
        return False

    def background_work(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Coroutine functions to run until the end of the lifespan; one that fails begins again."""
        return (self.exchanges.watch, self.exchanges.own_tasks)

    def free_memory(self) -> None:
        """End what costs memory and is of little use: from now on disconnects end calls at once."""
        self.exchanges.watch_all()

    async def close_idle(self) -> None:
        """End what would keep a server from shutting down."""
        return  # nothing is idle without sessions

    async def close(self) -> None:
        """Respond to all calls with an error, cancel them, and end all that is still open."""
        await self.exchanges.fail_all(SHUTTING_DOWN)


class ExchangeOwner(Protocol):
    """The session or endpoint of exchanges.

    Attributes:
        stores: Whether a response waits for changes to be stored.
        open_exchanges: The exchanges of the endpoint.
    """

    service: Service
    stores: ClassVar[bool]

    @property
    def open_exchanges(self) -> OpenExchanges: ...


OwnerT = TypeVar("OwnerT", bound=ExchangeOwner)
ResponseT = TypeVar("ResponseT", bound=PostResponse)


class Exchange(ABC, Generic[OwnerT, ResponseT]):
    """One request over HTTP. Subclasses say to whom it belongs.

    Args:
        owner: The session or endpoint.
        request: The POST.
        receive: Of the POST.
        send: Of the POST.
        event: The request in its body.
        metadata: Of the request.
        response: That of the batch that the request is part of.

    Attributes:
        events_only: Whether the response has to be a stream.
        is_plain: Whether a result that nothing precedes is sent as it is.
        response: Writes the response, if it is or may become a stream; else `None`.
        cancel_called: Whether the request was cancelled.
        places: Number of places that the exchange takes itself among the messages in flight,
            besides that of its POST.
        watched: Whether a task waits for the client to disconnect.
    """

    def __init__(
        self,
        owner: OwnerT,
        request: HttpRequest,
        receive: Receive,
        send: Send,
        event: RequestReceived,
        metadata: RequestMetadata | None = None,
        response: ResponseT | None = None,
    ) -> None:
        self._owner = owner
        self._request = request
        self._receive = receive
        self._send = send
        self._running: Cancellable | None = None
        self._created = monotonic()
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
        exchanges = self._owner.open_exchanges
        if not exchanges.background.on_asyncio:
            return self.serve_on_trio()
        task = begin_task(self.serve(None))
        if task.done():
            task.result()
            return None
        return self._wait_for(task, exchanges.own(task))

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
                request, body = self._request, message.data  # nothing was sent before
                send = request.send if request.send and len(body) <= SHORT_BODY else self._send
                request.responded = True
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

    def writer(self) -> ResponseT:
        """The writer of the response, made when it is needed first."""
        response = self.response
        if response is None:
            response = self.response = self.new_response()
            response.created = self._created
        return response

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
    def new_response(self) -> ResponseT:
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

    async def _wait_for(self, task: asyncio.Future[None], end: Awaitable[None]) -> None:
        """Wait for the end of the task. A cancellation of the POST must not pass on to the task."""
        try:
            await end
        except asyncio.CancelledError:
            await self.host_cancelled(task)
            raise
        if not task.cancelled():
            task.result()


class Failable(Protocol):
    """Work for a client that may be gone."""

    async def fail(self, text: str) -> None:
        """Respond with an error, unless there is a response, and cancel the work."""
        ...


class OpenExchanges:
    """The exchanges of an endpoint.

    Args:
        background: Runs the tasks that wait for clients to disconnect.
        quotas: Counts the messages in flight.
        interval: Seconds after which an exchange is watched.

    Attributes:
        open: The exchanges; after one was added, call `wake` unless `added` is `None`.
        added: Set when an exchange is added while the watching task waits for one.
        tasks: The tasks of asyncio that serve them, beyond those that have ended at once; each
            with a future that is done when the task is.
    """

    def __init__(self, background: TaskScope, quotas: Quotas, interval: float) -> None:
        self.background = background
        self.quotas = quotas
        self.open: dict[Exchange[Any, Any], None] = {}
        self.tasks: dict[asyncio.Future[None], asyncio.Future[None]] = {}
        self._interval = interval
        self.added: anyio.Event | None = None
        self._next_search = 0.0
        quotas.find_disconnected.append(self._find_disconnected)

    def wake(self) -> None:
        """Wake the watching task: there is an exchange now."""
        if self.added is not None:
            self.added.set()
            self.added = None

    def own(self, task: asyncio.Future[None]) -> Awaitable[None]:
        """Own a task until it ends; its POST, which waits for it, may end before.

        Returns:
            Waits for the end of the task, and does not cancel the task if it is cancelled.
        """
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tasks[task] = end
        task.add_done_callback(self._disown)
        return end

    def _disown(self, task: asyncio.Future[None]) -> None:
        end = self.tasks.pop(task)
        if not end.done():
            end.set_result(None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("a request ended with an exception: %r", error)

    async def own_tasks(self) -> None:
        """Wait until cancelled; then cancel the tasks and wait for them."""
        try:
            await anyio.sleep_forever()
        finally:
            tasks = list(self.tasks)
            for task in tasks:
                task.cancel()
            if tasks:
                with anyio.CancelScope(shield=True):
                    await asyncio.wait(tasks, timeout=PARTING_SECONDS)

    async def watch(self) -> None:
        """Start watching the open exchanges periodically, until cancelled."""
        while True:
            if not self.open:
                self.added = anyio.Event()
                await self.added.wait()
            await anyio.sleep(self._interval)
            self.watch_all()

    def watch_all(self) -> None:
        """Start watching the clients of all open exchanges."""
        for exchange in list(self.open):
            if not exchange.watched:
                exchange.watched = True
                self.background.start_soon(log_failures, exchange.watch)

    async def fail_all(self, text: str) -> None:
        """Respond to all requests with an error, and cancel them."""
        async with anyio.create_task_group() as tasks:
            for exchange in self._all():
                tasks.start_soon(log_failures, exchange.fail, text)

    def _all(self) -> Sequence[Failable]:
        return list(self.open)

    def _find_disconnected(self) -> None:
        """Start watching all connections, at most every `_SEARCH_INTERVAL` seconds."""
        now = anyio.current_time()
        if now >= self._next_search:
            self._next_search = now + _SEARCH_INTERVAL
            self.watch_all()


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


async def log_failures(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Call a function and log its exceptions, such as exceptions of the ASGI server."""
    try:
        await function(*arguments)
    except Exception as error:
        logger.debug("a connection failed: %r", error)
