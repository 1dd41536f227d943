"""POSTs in sessions: passing their messages to the protocol, and tracking POSTs in flight.

In a session, a client that closes its connection cancels nothing. Its call continues, but does not
count as in flight any more, and is cancelled unless the client resumes the stream in time.

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from msgspec import Struct

from ...channel import RequestId
from ...errors import INTERRUPTED, InternalError
from ...protocol import jsonrpc
from ...protocol.handshake import FOLLOWING
from ...protocol.receiver import CancelReceived, Event, RequestReceived, Send
from ...runtime.concurrency import run_eagerly_here
from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.task_scope import TaskScope
from ..planned_calls import PlainRequest
from . import http_response
from .http_response import SHUTTING_DOWN, HttpResponse
from .http_session import HttpSession
from .plain_calls import PlainService
from .quotas import Quotas, starts_work
from .response_writer import PostResponse
from .settings import Limits

logger = logging.getLogger(__name__)

_WATCH_INTERVAL = 15.0  # seconds after which a POST is watched, without `keep_alive`
_SEARCH_INTERVAL = 0.25  # seconds between two searches for disconnected clients, at least


_NOTHING: Mapping[RequestId, PlainService] = {}


class SessionPost:
    """One POST.

    Args:
        session: The session of the POST.
        posts: The POSTs in flight.
        message: The message; `None` for a batch.
        messages: The message, or the messages of the batch.

    Attributes:
        places: Number of requests, at least one, as counted among the messages in flight.
        changes_subscriptions: Whether a request changes the client's resource subscriptions.
        response: The response, if the POST is refused or has no requests.
        batch: Whether the body is a batch.
        expected: Number of JSON-RPC responses, unless a request is cancelled.
        kept: Bytes counted for a change of subscriptions.
        carrier: The response to the requests; `None` before it is created.
    """

    def __init__(
        self,
        session: HttpSession,
        posts: PostsInFlight,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
    ) -> None:
        self.batch = message is None
        self.expected = 0
        self.places = 1
        self.changes_subscriptions = False
        self.kept: int | None = None
        self._session = session
        self._posts = posts
        self._messages = messages
        self._events: Sequence[Event] = ()
        self._requests: Sequence[RequestReceived] = ()
        self.carrier: PostResponse | None = None
        self._scope: anyio.CancelScope | None = None
        self.response = self._refuse(posts.limits, message)

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, perhaps after resuming it."""
        return self.carrier is not None and self.carrier.connected

    def receive_messages(self) -> None:
        """Pass the messages to the protocol, unless the POST is refused."""
        message = self._messages[0]
        fails_our_request = (
            isinstance(message, jsonrpc.InvalidMessage)
            and message.response
            and message.id is not None
        )
        if self.response is not None and not fails_our_request:
            return
        peer = self._session.peer
        now = anyio.current_time() if peer.callers.timed else 0.0
        if self.batch:
            self._events = peer.connection.receive_batch(self._messages, now)
        else:
            self._events = peer.connection.receive_message(self._messages[0], now)
        for event in self._events:
            if isinstance(event, RequestReceived):
                self._requests = (*self._requests, event)
                self.expected += 1
            elif isinstance(event, Send):
                self.expected += 1
        if not self.expected and self.response is None:
            self.response = HttpResponse(self._session.revision.facts.http.accepted)

    def register_plain(self, plain: PlainRequest) -> None:
        """Register a request that came the plain way with the connection."""
        event = plain.event()
        self._session.peer.connection.register(event, plain.stated)
        self._events = self._requests = (event,)

    async def handle(self, on_wait: Callable[[], object]) -> None:
        """Handle the messages of a POST without requests.

        Args:
            on_wait: Called once when a handler begins to wait.
        """
        self._session.handling += 1
        try:
            with anyio.CancelScope() as self._scope:
                await run_eagerly_here(self._handle(self._events), on_wait)
        finally:
            self._session.handling -= 1

    def begin(self) -> None:
        """Route the responses to the requests, and related messages, to this POST."""
        assert self.carrier is not None
        for request in self._requests:
            self._session.responses[request.id] = self.carrier

    async def serve(self, scope: anyio.CancelScope, handler: Awaitable[Any] | None = None) -> None:
        """Serve the requests, then stop counting the POST.

        Args:
            scope: The scope of this task. The cancellation of a single request cancels the scope.
            handler: Returns the result of the only request, if its handler was started already.
        """
        session, requests, carrier = self._session, self._requests, self.carrier
        assert carrier is not None
        if handler is None:
            self.begin()
        try:
            if carrier.events_only:
                await carrier.start()
            if len(self._events) == len(requests) == 1:
                await session.peer.handle(requests[0], scope, handler)
            else:
                for event in self._events:
                    if isinstance(event, Send):
                        await carrier.send(event.message)
                await self._serve_batch(carrier)
            if carrier.unfinished:
                await self._finish(carrier)
        except anyio.get_cancelled_exc_class():
            if scope.cancel_called:  # the client cancelled the request
                await self._finish(carrier)
            else:  # the host cancelled; see `TaskScope.outlive`
                with anyio.move_on_after(PARTING_SECONDS, shield=True), suppress(Exception):
                    await self.fail(SHUTTING_DOWN)
            raise
        finally:
            carrier.stop()
            for request in requests:
                if session.responses.get(request.id) is carrier:
                    del session.responses[request.id]
            self._posts.discard(carrier, self)
            if self.kept is not None:
                session.count_subscriptions(self.kept)
            if session.has_old_streams:
                with anyio.CancelScope(shield=True):
                    await session.discard_streams()

    async def _finish(self, carrier: PostResponse) -> None:
        """End the response of requests that were cancelled, or whose session has ended."""
        with anyio.CancelScope(shield=True):
            over = self._session.over
            await carrier.finish(http_response.session_ended() if over else None)

    async def fail(self, text: str) -> None:
        """Respond with an error to the requests without response, and cancel them."""
        session = self._session
        for request in self._requests:
            if session.responses.get(request.id) is self.carrier:
                error = InternalError(text, data=INTERRUPTED)
                message = session.peer.connection.fail(request.id, error)
                if message is not None:
                    try:
                        await session.send(message)
                    finally:
                        await session.peer.handle(CancelReceived(request.id, text))
        if self._scope is not None:
            self._scope.cancel()

    async def _serve_batch(self, carrier: PostResponse) -> None:
        """Serve each request of a batch in its own task, all other events in one task.

        If a handler of the others still waits when all requests have their responses, the POST
        counts as abandoned from then on.
        """
        handle = self._session.peer.handle
        others = [e for e in self._events if not isinstance(e, (RequestReceived, Send))]
        async with anyio.create_task_group() as tasks:
            self._scope = tasks.cancel_scope
            handled = anyio.Event()

            async def handle_others() -> None:
                await self._handle(others)
                handled.set()

            tasks.start_soon(handle_others)
            being_served = tuple(self._session.peer.connection.state.inbound)
            async with anyio.create_task_group() as serving:
                for request in self._requests:
                    if request.id in being_served:  # and not cancelled by the same batch
                        serving.start_soon(handle, request)
            if others and not handled.is_set():
                if carrier.unfinished:
                    await self._finish(carrier)
                self._posts.abandon(self)

    async def _handle(self, events: Sequence[Event]) -> None:
        """Handle events in order."""
        for event in events:
            if not isinstance(event, Send):
                await self._session.peer.handle(event)

    def _refuse(self, limits: Limits, message: jsonrpc.Message | None) -> HttpResponse | None:
        session, messages = self._session, self._messages
        if isinstance(message, jsonrpc.Request):
            requests: Sequence[jsonrpc.Request] = (message,)
        elif isinstance(message, jsonrpc.InvalidMessage):
            return http_response.invalid_message(message)
        elif message is None:
            if not session.revision.batching:
                status = session.revision.facts.http.rejected
                return http_response.refusal(status, "expected one JSON-RPC message, got an array")
            if isinstance(messages[0], jsonrpc.InvalidMessage) and len(messages) == 1:
                return http_response.invalid_message(messages[0])
            requests = [each for each in messages if isinstance(each, jsonrpc.Request)]
        else:
            requests = ()
        if requests:
            self.places = len(requests)
            self.changes_subscriptions = not FOLLOWING.isdisjoint(
                [each.method for each in requests]
            )
            if len(session.responses) + len(requests) > limits.per_session:
                return http_response.over_limit("per_session")
        if session.handling >= limits.per_session and any(map(starts_work, self._messages)):
            return http_response.over_limit("per_session")
        return None


class _Abandoned(Struct):
    deadline: float
    cancelled: bool = False


class PostsInFlight:
    """The POSTs in sessions that are being served, including POSTs that clients abandoned.

    Most POSTs are served before a watching task starts. Waiting requests that came the plain way
    are registered with their connection when another event may concern them.

    Args:
        background: Runs the tasks that wait for clients to disconnect.
        quotas: Counts the messages in flight.
        limits: The limits.
        keep_alive: Seconds of silence after which a stream is opened, or gets a comment; `None` for
            never.

    Attributes:
        limits: The limits.
        unobserved: Waiting requests that came the plain way and are not registered yet.
    """

    def __init__(
        self, background: TaskScope, quotas: Quotas, limits: Limits, keep_alive: float | None
    ) -> None:
        self.limits = limits
        self._background = background
        self._quotas = quotas
        # A POST is watched before it has been silent for `keep_alive` seconds.
        self._interval = _WATCH_INTERVAL if keep_alive is None else keep_alive / 2
        self._posts: dict[PostResponse, SessionPost] = {}
        self._abandoned: OrderedDict[SessionPost, _Abandoned] = OrderedDict()
        self.unobserved: dict[HttpSession, dict[RequestId, PlainService]] = {}
        self._places = 0  # of abandoned POSTs that are not cancelled
        self._added = anyio.Event()
        self._next_search = 0.0
        quotas.find_disconnected.append(self._find_disconnected)

    def add(self, response: PostResponse, post: SessionPost) -> None:
        """Count a POST, whose first place is counted already."""
        self._quotas.in_flight += post.places - 1
        self._posts[response] = post
        post.carrier = response

    def discard(self, response: PostResponse, post: SessionPost) -> None:
        """Stop counting a POST."""
        del self._posts[response]
        self.end(post)
        self._quotas.in_flight -= post.places

    def may_add(self, session: HttpSession, identifier: RequestId) -> bool:
        """Whether a session may have one more request on the plain way, with this id."""
        waiting = self.unobserved.get(session, ())
        count = len(session.responses) + len(waiting)
        return count < self.limits.per_session and identifier not in waiting

    def wait(self, served: PlainService) -> None:
        """Add a waiting request that came the plain way, until `observe` or `stop_waiting`."""
        session: HttpSession = served.session
        session.enter()
        self.unobserved.setdefault(session, {})[served.id] = served

    def stop_waiting(self, served: PlainService) -> None:
        """Remove a waiting request that came the plain way, unless `observe` removed it."""
        session: HttpSession = served.session
        waiting = self.unobserved.get(session)
        if waiting is not None and waiting.get(served.id) is served:
            session.leave()
            del waiting[served.id]
            if not waiting:
                del self.unobserved[session]

    def observe(self, session: HttpSession) -> bool:
        """Register the waiting requests of a session that came the plain way.

        Returns:
            Whether there were waiting requests.
        """
        waiting = self.unobserved.pop(session, _NOTHING)
        for served in waiting.values():
            served.observe()
            session.leave()  # its response is counted now
        return bool(waiting)

    def _observe_all(self) -> None:
        for session in list(self.unobserved):
            self.observe(session)

    def abandon(self, post: SessionPost) -> None:
        """Count a POST as abandoned: its client disconnected, or has its response already."""
        if post in self._abandoned:
            return
        self._quotas.in_flight -= post.places
        self._abandoned[post] = _Abandoned(self._deadline())
        self._places += post.places
        while self._places > self.limits.abandoned and self.cancel_first_abandoned("abandoned"):
            pass
        self._added.set()

    def end(self, post: SessionPost) -> None:
        """Stop counting a POST as abandoned; count it as in flight until its HTTP request ends."""
        abandoned = self._abandoned.pop(post, None)
        if abandoned is not None:
            self._quotas.in_flight += post.places
            if not abandoned.cancelled:
                self._places -= post.places

    async def fail_all(self, text: str) -> None:
        """Respond to all requests with an error, for up to `PARTING_SECONDS`, and cancel them."""
        self._observe_all()
        posts = dict.fromkeys([*self._posts.values(), *self._abandoned])
        async with anyio.create_task_group() as tasks:
            for post in posts:
                tasks.start_soon(_log_failures, _fail_within_a_second, post, text)
        self._observe_all()  # requests since then; their sessions end next

    def cancel_first_abandoned(self, limit: str) -> bool:
        """Cancel the POST that was abandoned first, of those whose stream was not resumed.

        Returns:
            Whether a POST was cancelled.
        """
        for post, abandoned in self._abandoned.items():
            if not abandoned.cancelled and not post.attended:
                self._cancel(post, limit)
                return True
        return False

    async def watch_long(self) -> None:
        """Watch the connections of long POSTs, until cancelled."""
        while True:
            await anyio.sleep(self._interval)
            self._watch_all()

    async def expire_abandoned(self) -> None:
        """Cancel POSTs that have been abandoned for too long, until cancelled."""
        while True:
            while not self._abandoned:  # a POST may end in the turn in which it was abandoned
                self._added = anyio.Event()
                await self._added.wait()
            post, first = next(iter(self._abandoned.items()))
            if first.deadline > anyio.current_time():
                await anyio.sleep_until(first.deadline)
            elif post.attended:
                first.deadline = self._deadline()
                self._abandoned.move_to_end(post)
            else:
                self._cancel(post, "abandoned_seconds")

    def _find_disconnected(self) -> None:
        """Start watching all connections, at most every `_SEARCH_INTERVAL` seconds."""
        now = anyio.current_time()
        if now >= self._next_search:
            self._next_search = now + _SEARCH_INTERVAL
            self._watch_all()

    def _watch_all(self) -> None:
        self._observe_all()
        for response in list(self._posts):
            if not response.watched:
                response.watched = True
                self._background.start_soon(_log_failures, self._watch, response)

    async def _watch(self, response: PostResponse) -> None:
        disconnected = await response.watch()
        post = self._posts.get(response)
        if disconnected and post is not None:
            self.abandon(post)

    def _deadline(self) -> float:
        return anyio.current_time() + self.limits.abandoned_seconds

    def _cancel(self, post: SessionPost, limit: str) -> None:
        abandoned = self._abandoned[post]
        if not abandoned.cancelled:
            abandoned.cancelled = True
            self._places -= post.places
        abandoned.deadline = self._deadline()  # retry if the handler ignores the cancellation
        self._abandoned.move_to_end(post)
        text = f"the client was not there for its answer (Limits.{limit})"
        self._background.start_soon(_log_failures, post.fail, text)


async def _fail_within_a_second(post: SessionPost, text: str) -> None:
    with anyio.move_on_after(PARTING_SECONDS) as waiting:
        await post.fail(text)
    if waiting.cancelled_caught and post.carrier is not None:
        post.carrier.sse.abort()


async def _log_failures(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Call a function and log its exceptions, such as exceptions of the ASGI server."""
    try:
        await function(*arguments)
    except Exception as error:
        logger.debug("a connection failed: %r", error)
