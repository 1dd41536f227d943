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
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import anyio
import anyio.lowlevel

from ...channel import MessageSender, OutgoingMessage
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
from .http_response import (
    JSON_TYPE,
    NO_HEADERS,
    SHUTTING_DOWN,
    HttpResponse,
    Receive,
    Send,
    SseResponse,
    until_disconnect,
)
from .quotas import Quotas
from .request import SHORT_BODY, HttpRequest
from .settings import HttpSettings

logger = logging.getLogger(__name__)

RESPONSES = ("response", "error")
"""The kinds of messages that are responses."""

_NO_STATUSES: Mapping[int, int] = {}

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


class PostResponse(MessageSender):
    """The response to one POST without a session. `SessionResponse` is that in a session.

    It is a JSON document, or a stream: when a message precedes the JSON-RPC response, or after
    `keep_alive` seconds of silence, if the client accepts streams and the settings allow one.
    An error response that nothing precedes has the HTTP status of its code in `statuses`, or
    `other_status`.

    Attributes:
        created: Start of the first period of silence, on the monotonic clock.
        done: Whether nothing more is sent.
        events_only: Whether the response has to be a stream.
        headers: Further header fields.
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
        self.headers: Mapping[str, str] = NO_HEADERS
        self.other_status = other_status

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
        """Start the stream, regardless of the settings; see `SseResponse.open`."""
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


class ExchangeOwner(Protocol):
    """The session or endpoint of exchanges; a response may wait until it `stores` changes."""

    service: Service
    stores: ClassVar[bool]

    @property
    def open_exchanges(self) -> OpenExchanges: ...


OwnerT = TypeVar("OwnerT", bound=ExchangeOwner)
ResponseT = TypeVar("ResponseT", bound=PostResponse)


class Exchange(ABC, Generic[OwnerT, ResponseT]):
    """One request over HTTP. Subclasses say to whom it belongs: to a session or an endpoint.

    A request of a batch is given the response of that.

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
        return self._wait_for(task)

    async def serve(self, scope: anyio.CancelScope | None) -> None:
        """Run the handler of the request, and send its response, unless it is cancelled.

        A cancellation by the client cancels the scope, or this task, which does nothing else.
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
            response.done = self._request.responded  # a result in JSON is being sent
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

    async def _wait_for(self, task: asyncio.Future[None]) -> None:
        """Wait for the end of the task, which goes on if the POST is cancelled."""
        exchanges = self._owner.open_exchanges
        end = exchanges.tasks[task] = asyncio.get_running_loop().create_future()
        task.add_done_callback(exchanges.disown)
        try:
            await end
        except asyncio.CancelledError:
            await self.host_cancelled(task)
            raise
        if not task.cancelled():
            task.result()


class OpenExchanges:
    """The exchanges of an endpoint.

    Attributes:
        open: The exchanges; after one was added, call `wake` unless `added` is `None`.
        added: Set when an exchange is added while the watching task waits for one.
        tasks: The tasks of asyncio that serve them, beyond those that have ended at once; each
            with a future that is done when the task is. The POST, which waits for it, may end
            before.
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

    def disown(self, task: asyncio.Future[None]) -> None:
        """Called when a task has ended."""
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
            for fail in self._failing():
                tasks.start_soon(log_failures, fail, text)

    def _failing(self) -> list[Callable[[str], Awaitable[None]]]:
        return [each.fail for each in self.open]

    def _find_disconnected(self) -> None:
        """Start watching all connections, at most every `_SEARCH_INTERVAL` seconds."""
        now = anyio.current_time()
        if now >= self._next_search:
            self._next_search = now + _SEARCH_INTERVAL
            self.watch_all()


async def _absorb_cancellation() -> None:
    """Take the cancellation of the current task that its handler did not wait for."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


async def _in_own_task(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end although this task was cancelled, perhaps by several scopes."""
    task = begin_task(coroutine)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])


async def log_failures(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Call a function and log its exceptions, such as exceptions of the ASGI server."""
    try:
        await function(*arguments)
    except Exception as error:
        logger.debug("a connection failed: %r", error)
