"""POST, GET and DELETE of revisions with sessions.

    POST initialize -> a session        POST -> the session's peer -> JSON, a stream, or nothing
    GET -> a stream of the session, new or resumed        DELETE -> the session ends

A client that closes its connection cancels nothing in a session. Its call continues, but does not
count as in flight any more, and is cancelled unless the client resumes the stream in time.

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import anyio
from msgspec import Struct

from ...errors import InternalError
from ...facts import Lifecycle, Revisions
from ...foreign_text import safe_repr
from ...protocol import jsonrpc
from ...protocol.connection import Connection
from ...protocol.events import CancelReceived, Event, RequestReceived, Send
from ...protocol.lifecycle import INITIALIZE
from ...protocol.notifications import FOLLOWING
from ...runtime.eager import pausing
from ...runtime.pending_requests import PARTING_SECONDS
from ...runtime.principal import PRINCIPAL
from ..serving import Service
from . import http_response
from . import request as http
from .draft import check_draft
from .http_response import SHUTTING_DOWN, HttpResponse
from .http_session import HttpSession, ResumableStream, SessionRegistry, network_of
from .lifespan import TaskScope
from .post_response import PostResponse
from .quotas import Quotas, decoded_size, starts_work
from .request import field_key
from .settings import Limits, ServerHttpSettings
from .sse_response import SseResponse

logger = logging.getLogger(__name__)

_WATCH_INTERVAL = 15.0  # seconds after which a POST is watched, without `keep_alive`
_SEARCH_INTERVAL = 0.25  # seconds between two searches for disconnected clients, at least


class SessionEndpoint:
    """Serves the revisions with sessions.

    Args:
        service: What is served.
        settings: How it is served.
        revisions: These revisions.
        background: Runs tasks that no request owns.
        quotas: What all clients use together.

    Attributes:
        registry: The sessions.
        posts: The POSTs in flight.
    """

    def __init__(
        self,
        service: Service,
        settings: ServerHttpSettings,
        revisions: Revisions,
        background: TaskScope,
        quotas: Quotas,
    ) -> None:
        self.registry = SessionRegistry(settings.limits, quotas.memory)
        self.posts = PostsInFlight(background, quotas, settings.limits, settings.keep_alive)
        self._background = background
        self._quotas = quotas
        self._service = service
        self._settings = settings
        self._revisions = revisions
        self._facts = revisions.newest().facts
        self._session_key = field_key(self._facts.headers.session or "")
        self._version_key = field_key(self._facts.headers.protocol_version or "")
        self._versions = frozenset(name.encode() for name in revisions)
        drafts = [each.facts.draft for each in revisions.values()]
        draft_fields = {name for draft in drafts for name in (draft.method, draft.name) if name}
        self._draft_keys = frozenset(map(field_key, draft_fields))

    async def watch(self) -> None:
        """End idle sessions and watch connections, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.registry.expire)
            tasks.start_soon(self.posts.watch_long)
            tasks.start_soon(self.posts.expire_abandoned)

    async def post(
        self,
        request: http.HttpRequest,
        message: jsonrpc.Message | None,
        body: bytes,
        receive: http.Receive,
        send: http.Send,
        scope: anyio.CancelScope,
    ) -> None:
        """Respond to one POST.

        Args:
            request: The POST.
            message: The message in its body; `None` for a batch.
            body: The body.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            scope: The scope of the caller.
        """
        initialize = _initialize_request(message)
        session: HttpSession | HttpResponse | None = None
        if self._session_key not in request.headers:
            if initialize is not None:
                await self._initialize(request, initialize, body, receive, send)
                return
            session = self._without_session(request, message)
        session = session or self._session(request)
        if isinstance(session, HttpResponse):
            await session.send(send)
            return
        refused = None
        if not self._draft_keys.isdisjoint(request.headers):
            facts = session.revision.facts
            refused = check_draft(facts, request, message, self._service.param_headers_of)
        if initialize is not None and refused is None:
            refused = await self._reserve_initialize(session, initialize, body)
        if refused is not None:
            await refused.send(send)
            return
        post = SessionPost(session, self.posts, message, body)
        more = post.places - 1  # one place is counted already, as for each POST
        if more and post.response is None and not self._quotas.has_room(more):
            post.response = http_response.over_limit("in_flight")
        if post.changes_subscriptions and post.response is None:
            if await session.reserve(len(body)):
                post.kept = len(body)
            else:
                post.response = http_response.over_limit("session_bytes")
        post.take()
        if post.response is not None:
            await self._respond_first(session, post, post.response, send)
            return
        carrier = PostResponse(
            request, receive, send, self._settings, session, post.expected, post.batch
        )
        self.posts.add(carrier, post)
        try:
            # A client that disconnects does not cancel its requests.
            await self._background.outlive(scope, post.serve)
        finally:
            self._quotas.in_flight += 1  # returned by the caller

    async def get(self, request: http.HttpRequest, receive: http.Receive, send: http.Send) -> None:
        """Open a stream of the session, or resume one."""
        session = self._session(request)
        if not isinstance(session, HttpResponse):
            session = self._check_get(request, session) or session
        if isinstance(session, HttpResponse):
            await session.send(send)
            return
        last_event_id = request.field(self._facts.headers.last_event_id)
        response = SseResponse(send, self._settings.limits.send_seconds)
        session.enter()
        try:
            if last_event_id is None:
                stream = session.new_stream()
                session.add_listening(stream)
                await stream.open(response)
            else:
                resumed = await self._resume(session, last_event_id, response)
                if isinstance(resumed, HttpResponse):
                    await resumed.send(send)
                    return
                stream = resumed
            if session.is_listening(stream):
                await session.send_pending(stream)
            await self._hold(session, stream, response, receive)
        finally:
            session.leave()
        await session.discard_streams()

    async def delete(self, request: http.HttpRequest, send: http.Send) -> None:
        """End the session."""
        session = self._session(request)
        if isinstance(session, HttpResponse):
            await session.send(send)
            return
        await self.registry.end(session)
        await HttpResponse(200).send(send)

    def _without_session(
        self, request: http.HttpRequest, message: jsonrpc.Message | None
    ) -> HttpResponse | None:
        """The response to a message that names no session, if it does not need one."""
        if isinstance(message, jsonrpc.InvalidMessage):
            return http_response.invalid_message(message)
        if isinstance(message, jsonrpc.Request) and http.is_discovery(message):
            return self._check_version(request) or http_response.unknown_method(message)
        return None

    async def _respond_first(
        self, session: HttpSession, post: SessionPost, response: HttpResponse, send: http.Send
    ) -> None:
        """Respond to a POST without requests, or refuse it; then handle its messages.

        A handler may wait for what the client does next, after the response.
        """
        session.enter()
        with suppress(OSError):
            await response.send(send)
        session.leave()
        try:
            await post.handle(lambda: self.posts.abandon(post))
        finally:
            self.posts.end(post)

    async def _reserve_initialize(
        self, session: HttpSession, message: jsonrpc.Request, body: bytes
    ) -> HttpResponse | None:
        """Count what a session keeps of an `initialize`; the refusal if that is too much."""
        refused = http.check_initialize(message, body, self._settings.limits)
        if refused is None and not await session.reserve_initialize(decoded_size(body)):
            return http_response.over_limit("session_bytes")
        return refused

    async def _initialize(
        self,
        request: http.HttpRequest,
        message: jsonrpc.Request,
        body: bytes,
        receive: http.Receive,
        send: http.Send,
    ) -> None:
        service, facts = self._service, self._facts
        refused = (
            http.check_initialize(message, body, self._settings.limits)
            or self._check_version(request)
            or check_draft(facts, request, message, service.param_headers_of)
        )
        if refused is not None:
            await refused.send(send)
            return
        connection = Connection("server", self._revisions, service.describe, service.extensions)
        messages = [e.message for e in connection.receive_message(message) if isinstance(e, Send)]
        if connection.session is None:
            body = b"".join(each.data for each in messages)
            await HttpResponse(facts.http.rejected, body).send(send)
            return
        session = HttpSession(
            service,
            self._settings,
            connection,
            network_of(request.client),
            self._quotas.memory,
            self._background,
            self.registry.touch,
        )
        if self._settings.auth is not None:
            session.owner = PRINCIPAL.get().identity
        if not await session.reserve_initialize(decoded_size(body)):
            await http_response.over_limit("session_bytes").send(send)
            return
        if not await self.registry.add(session):
            session.release_memory(session.kept)
            await http_response.over_limit("sessions").send(send)
            return
        assert facts.headers.session is not None
        carrier = PostResponse(
            request,
            receive,
            send,
            self._settings,
            session,
            len(messages),
            headers={facts.headers.session: session.id},
        )
        for each in messages:
            await carrier.send(each)
        await carrier.finish()

    async def _resume(
        self, session: HttpSession, last_event_id: str, response: SseResponse
    ) -> ResumableStream | HttpResponse:
        """The stream of an event, resumed after that event; or the refusal."""
        name = self._facts.headers.last_event_id
        try:
            stream = await session.stream_of(last_event_id)
            resumed = stream is not None and await stream.resume(response, last_event_id)
        except Exception as error:
            logger.error("the event store failed: %r", error)
            text = f"{name}: what came after that event can't be had now"
            return http_response.unavailable(text)
        if stream is None or not resumed:
            text = f"{name}: {safe_repr(last_event_id)} is no event that more can come after"
            return http_response.refusal(self._facts.http.rejected, text)
        if session.is_listening(stream):
            session.add_listening(stream)
        return stream

    async def _hold(
        self,
        session: HttpSession,
        stream: ResumableStream,
        response: SseResponse,
        receive: http.Receive,
    ) -> None:
        """Keep the connection of a stream open until one side closes it."""
        announces = session.is_listening(stream)
        disconnected = False
        if not stream.over:
            streams, keep_alive = self._quotas.streams, self._settings.keep_alive
            stream.held = anyio.CancelScope()
            if announces:
                session.start_announcing()
            try:
                disconnected = await streams.hold(receive, response, keep_alive, stream.held)
            finally:
                if announces:
                    session.stop_announcing()
        if disconnected:
            stream.disconnect(response)
        else:
            await stream.close(response)

    def _check_get(self, request: http.HttpRequest, session: HttpSession) -> HttpResponse | None:
        refused = http.check_events(request)
        if refused is None and session.users >= self._settings.limits.per_session:
            return http_response.over_limit("per_session")
        return refused

    def _session(self, request: http.HttpRequest) -> HttpSession | HttpResponse:
        """The session that a request belongs to, or the refusal."""
        refused = self._check_version(request)
        if refused is not None:
            return refused
        facts = self._facts
        identifier = request.field(facts.headers.session)
        if identifier is None:
            status = facts.http.missing_session
            text = f"{facts.headers.session}: expected the id of a session, got nothing"
            return http_response.refusal(
                status, f"{text}; initialize, alone in its POST, opens one"
            )
        session = self.registry.get(identifier)
        if session is not None and session.owner is not None:
            session = session if session.owner == PRINCIPAL.get().identity else None
        return (
            http_response.unknown_session(facts.http.unknown_session)
            if session is None
            else session
        )

    def _check_version(self, request: http.HttpRequest) -> HttpResponse | None:
        if request.headers.get(self._version_key) in self._versions:
            return None
        facts = self._facts
        named = request.field(facts.headers.protocol_version)
        if named is None or named in self._revisions:
            return None
        return http_response.refusal(
            facts.http.unsupported_revision,
            f"{facts.headers.protocol_version}: expected one of {', '.join(self._revisions)}, "
            f"got {safe_repr(named)}",
        )


def _initialize_request(message: jsonrpc.Message | None) -> jsonrpc.Request | None:
    """The message, if it is an `initialize` request."""
    return (
        message if isinstance(message, jsonrpc.Request) and message.method == INITIALIZE else None
    )


def with_sessions(revisions: Revisions) -> Revisions:
    """The revisions that are served in sessions of Streamable HTTP; none if none has those.

    A handshake revision whose own pages have other transports only is included: clients exist that
    speak it over Streamable HTTP, and fail if the server answers with another revision.
    """
    handshake = revisions.of(Lifecycle.HANDSHAKE)
    if any(each.facts.transports.streamable_http == "session" for each in handshake.values()):
        return handshake
    return handshake.among(())


class SessionPost:
    """One POST.

    Args:
        session: The session it belongs to.
        posts: The POSTs in flight.
        message: The message; `None` for a batch.
        body: The message as it came.

    Attributes:
        places: Number of requests and notifications, as counted among the messages in flight.
        changes_subscriptions: Whether it changes which resources the client subscribes to.
        response: The response, if it is refused or has no requests.
        batch: Whether it is a batch.
        expected: Number of JSON-RPC responses, unless a request is cancelled.
        kept: Bytes counted for a change of subscriptions.
        carrier: The response to the requests, once there is one.
    """

    def __init__(
        self,
        session: HttpSession,
        posts: PostsInFlight,
        message: jsonrpc.Message | None,
        body: bytes,
    ) -> None:
        self.batch = message is None
        self.expected = 0
        self.places = 1
        self.changes_subscriptions = False
        self.kept: int | None = None
        self._session = session
        self._posts = posts
        self._messages: Sequence[jsonrpc.Message] = () if message is None else (message,)
        self._events: Sequence[Event] = ()
        self._requests: Sequence[RequestReceived] = ()
        self.carrier: PostResponse | None = None
        self._scope: anyio.CancelScope | None = None
        self.response = self._refuse(posts.limits, message, body)

    @property
    def attended(self) -> bool:
        """Whether the client reads the stream of the response, also after it has resumed it."""
        return self.carrier is not None and self.carrier.connected

    def take(self) -> None:
        """Hand the messages to the protocol, unless the POST is refused."""
        message = self._messages[0] if self._messages else None
        fails_our_request = isinstance(message, jsonrpc.InvalidMessage) and message.response
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

    async def handle(self, on_wait: Callable[[], object]) -> None:
        """Handle the messages of a POST without requests.

        Args:
            on_wait: Called once if a handler has to wait.
        """
        self._session.handling += 1
        try:
            with anyio.CancelScope() as self._scope:
                await pausing(self._handle(self._events), on_wait)
        finally:
            self._session.handling -= 1

    async def serve(self, scope: anyio.CancelScope) -> None:
        """Serve the requests, and count the POST no more.

        Args:
            scope: The scope of this task. The cancellation of a single request cancels it.
        """
        session, requests, carrier = self._session, self._requests, self.carrier
        assert carrier is not None
        for request in requests:
            session.responses[request.id] = carrier
        try:
            if carrier.events_only:
                await carrier.start()
            if len(self._events) == len(requests) == 1:
                await session.peer.handle(requests[0], scope)
            else:
                for event in self._events:
                    if isinstance(event, Send):
                        await carrier.send(event.message)
                await self._serve_together()
            if carrier.unfinished:
                await self._finish(carrier)
        except anyio.get_cancelled_exc_class():
            if scope.cancel_called:  # the client cancelled the request
                await self._finish(carrier)
            else:  # by the host: see `TaskScope.outlive`
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
        """Respond with an error to the requests that are still served, and cancel them."""
        session = self._session
        for request in self._requests:
            if session.responses.get(request.id) is self.carrier:
                message = session.peer.connection.fail(request.id, InternalError(text))
                if message is not None:
                    try:
                        await session.send(message)
                    finally:
                        await session.peer.handle(CancelReceived(request.id, text))
        if self._scope is not None:
            self._scope.cancel()

    async def _serve_together(self) -> None:
        """Serve the requests of a batch in a task each, everything else in one more."""
        take = self._session.peer.handle
        async with anyio.create_task_group() as tasks:
            self._scope = tasks.cancel_scope
            others = [e for e in self._events if not isinstance(e, (RequestReceived, Send))]
            if others:
                tasks.start_soon(self._handle, others)
            being_served = self._session.peer.connection.inbound_requests
            for request in self._requests:
                if request.id in being_served:  # and not cancelled by the same batch
                    tasks.start_soon(take, request)

    async def _handle(self, events: Sequence[Event]) -> None:
        """Handle events in order."""
        for event in events:
            if not isinstance(event, Send):
                await self._session.peer.handle(event)

    def _refuse(
        self, limits: Limits, message: jsonrpc.Message | None, body: bytes
    ) -> HttpResponse | None:
        session = self._session
        if isinstance(message, jsonrpc.Request):
            requests: Sequence[jsonrpc.Request] = (message,)
        elif isinstance(message, jsonrpc.InvalidMessage):
            return http_response.invalid_message(message)
        elif message is None:
            if not session.revision.batching:
                status = session.revision.facts.http.rejected
                return http_response.refusal(status, "expected one JSON-RPC message, got an array")
            self._messages = messages = jsonrpc.parse_batch(body)
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
    """The POSTs in sessions that are being served, and those that their clients have abandoned.

    Most POSTs are served before a watching task starts, and cost nothing here.

    Args:
        background: Runs the tasks that wait for clients to disconnect.
        quotas: Counts the messages in flight.
        limits: The limits.
        keep_alive: Seconds of silence after which a stream is opened, or gets a comment; `None` for
            never.

    Attributes:
        limits: The limits.
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
        self._places = 0  # of abandoned POSTs that are not cancelled
        self._added = anyio.Event()
        self._next_search = 0.0
        quotas.find_disconnected = self._find_disconnected

    def add(self, response: PostResponse, post: SessionPost) -> None:
        """Count a POST; its first place is counted already."""
        self._quotas.in_flight += post.places - 1
        self._posts[response] = post
        post.carrier = response

    def discard(self, response: PostResponse, post: SessionPost) -> None:
        """Count a POST no more."""
        del self._posts[response]
        self.end(post)
        self._quotas.in_flight -= post.places

    def abandon(self, post: SessionPost) -> None:
        """Count a POST as abandoned: its client disconnected, or has its response already."""
        self._quotas.in_flight -= post.places
        self._abandoned[post] = _Abandoned(self._deadline())
        self._places += post.places
        while self._places > self.limits.abandoned and self.cancel_first_abandoned("abandoned"):
            pass
        self._added.set()

    def end(self, post: SessionPost) -> None:
        """Count a POST as abandoned no more, but as in flight until its HTTP request ends."""
        abandoned = self._abandoned.pop(post, None)
        if abandoned is not None:
            self._quotas.in_flight += post.places
            if not abandoned.cancelled:
                self._places -= post.places

    async def fail_all(self, text: str) -> None:
        """Respond to all requests with an error that clients have a second to read; cancel them."""
        posts = dict.fromkeys([*self._posts.values(), *self._abandoned])
        async with anyio.create_task_group() as tasks:
            for post in posts:
                tasks.start_soon(_logging_failures, _fail_within_a_second, post, text)

    def cancel_first_abandoned(self, limit: str) -> bool:
        """Cancel the POST that was abandoned first and whose client is not back.

        Returns:
            Whether there was one.
        """
        for post, abandoned in self._abandoned.items():
            if not abandoned.cancelled and not post.attended:
                self._cancel(post, limit)
                return True
        return False

    async def watch_long(self) -> None:
        """Watch the connection of each POST that takes long, until cancelled."""
        while True:
            await anyio.sleep(self._interval)
            self._watch_all()

    async def expire_abandoned(self) -> None:
        """Cancel POSTs that have been abandoned for too long, until cancelled."""
        while True:
            if not self._abandoned:
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
        """Find out soon which clients have disconnected."""
        now = anyio.current_time()
        if now >= self._next_search:
            self._next_search = now + _SEARCH_INTERVAL
            self._watch_all()

    def _watch_all(self) -> None:
        for response in list(self._posts):
            if not response.watched:
                response.watched = True
                self._background.start_soon(_logging_failures, self._watch, response)

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
        abandoned.deadline = self._deadline()  # tried again if the handler ignores it
        self._abandoned.move_to_end(post)
        text = f"the client was not there for its answer (Limits.{limit})"
        self._background.start_soon(_logging_failures, post.fail, text)


async def _fail_within_a_second(post: SessionPost, text: str) -> None:
    with anyio.move_on_after(PARTING_SECONDS):
        await post.fail(text)


async def _logging_failures(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Call a function; an exception, such as one of the ASGI server, is logged."""
    try:
        await function(*arguments)
    except Exception as error:
        logger.debug("a connection failed: %r", error)
