"""POST, GET and DELETE of revisions with sessions.

    POST initialize -> a session        POST -> the session's peer -> JSON, a stream, or nothing
    GET -> a stream of the session, new or resumed        DELETE -> the session ends

With `stateless`, each POST gets a session of its own, which has no id and ends with the POST.

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias

import anyio
from msgspec.structs import replace

from ...facts import Lifecycle, Revision, Revisions
from ...foreign_text import safe_repr
from ...protocol import jsonrpc
from ...protocol.events import Event, RequestReceived, Send
from ...protocol.handshake import FOLLOWING, HandshakeConnection, handshake_connection
from ...protocol.lifecycle import (
    DISCOVER,
    INITIALIZE,
    Description,
    Session,
    capabilities_without_session,
)
from ...runtime.eager_tasks import run_eagerly
from ...runtime.request_context import NETWORK, PRINCIPAL
from ...runtime.task_scope import TaskScope, loop_clock
from ..serving import Service
from . import http_response
from . import request as http
from .exchange import HttpEndpoint, logger
from .http_response import HttpResponse, Receive, Refused, SseResponse
from .http_response import Send as AsgiSend
from .http_session import HttpSession, SessionExchange, SessionExchanges, SessionResponse
from .quotas import MemoryQuota, Quotas, decoded_size, starts_work
from .request import HttpRequest, field_key
from .settings import HttpSettings, Limits

_LACKS = "a session, and this server keeps none (stateless=True)"

_UNCONFIRMED_SHARE = 100  # unconfirmed sessions end first above 1/100 of the limit

_WATCH_INTERVAL = 15.0  # seconds after which a client is watched, without `keep_alive`

_KEPT = FOLLOWING | {INITIALIZE}  # requests of which a session keeps a part

Identify: TypeAlias = Callable[[Session], str | None]
"""Returns the id of a session that any process serves; `None` to keep it in this process."""


_Sessions: TypeAlias = OrderedDict[str, HttpSession]


class SessionRegistry:
    """The sessions of one application, ordered by last use; the longest unused is first.

    When a session has to be ended to make room, likely parts of a flood are ended first: sessions
    whose client did nothing after `initialize`, then sessions of the address that has most. So a
    client that keeps opening sessions mostly ends its own sessions.
    """

    def __init__(self, limits: Limits, memory: MemoryQuota) -> None:
        self._limits = limits
        self._now = loop_clock()
        self.by_id: _Sessions = OrderedDict()
        self._unconfirmed: _Sessions = OrderedDict()
        self._by_network: defaultdict[str, _Sessions] = defaultdict(OrderedDict)
        self._added = anyio.Event()
        self._closed = False
        memory.end_idle_session = self.end_largest

    def __len__(self) -> int:
        """Number of sessions."""
        return len(self.by_id)

    def get(self, identifier: str) -> HttpSession | None:
        """A session by its id."""
        return self.by_id.get(identifier)

    def all(self) -> Sequence[HttpSession]:
        """All sessions."""
        return tuple(self.by_id.values())

    def touch(self, session: HttpSession) -> None:
        """Record that a session was used just now."""
        session.last_used = self._now()
        if session.id in self.by_id:
            self.by_id.move_to_end(session.id)
            if session.id not in self._unconfirmed:
                self._by_network[session.network].move_to_end(session.id)
            elif session.ready:
                del self._unconfirmed[session.id]
                self._by_network[session.network][session.id] = session
            else:
                self._unconfirmed.move_to_end(session.id)

    async def add(self, session: HttpSession) -> None:
        """Add a session.

        Raises:
            Refused: There is no room for it, or the server ends.
        """
        if self._closed:
            raise Refused(http_response.ending())
        evicted = None
        if len(self.by_id) >= self._limits.sessions:
            evicted = self._session_to_evict()
            if evicted is None:
                raise Refused(http_response.over_limit("sessions"))
        self.by_id[session.id] = self._unconfirmed[session.id] = session
        session.open()
        self._added.set()
        if evicted is not None:
            await self.end(evicted)

    async def end_largest(self, size: int) -> None:
        """End the idle session that keeps most bytes, of those with more than `size` bytes."""
        idle = [each for each in self.by_id.values() if not each.users and each.kept > size]
        if idle:
            await self.end(max(idle, key=lambda each: (each.id in self._unconfirmed, each.kept)))

    async def end(self, session: HttpSession) -> None:
        """End a session. Failures are logged."""
        is_registered = self.by_id.pop(session.id, None) is not None
        if is_registered and self._unconfirmed.pop(session.id, None) is None:
            of_network = self._by_network[session.network]
            del of_network[session.id]
            if not of_network:
                del self._by_network[session.network]
        try:
            with anyio.CancelScope(shield=True):
                await session.close()
        except Exception:
            logger.exception("a session did not end well")

    async def expire(self) -> None:
        """End sessions that have been idle for too long, until cancelled."""
        seconds = self._limits.idle
        while seconds is not None:
            if not self.by_id:
                self._added = anyio.Event()
                await self._added.wait()
            await anyio.sleep_until(await self._end_idle(seconds))

    async def close_idle(self) -> None:
        """End all sessions without connections, and accept no new ones."""
        self._closed = True
        for session in list(self.by_id.values()):
            if not session.users:
                await self.end(session)

    async def close(self) -> None:
        """End all sessions."""
        while self.by_id:
            await self.end(next(iter(self.by_id.values())))

    async def _end_idle(self, seconds: float) -> float:
        """End sessions that have been idle for too long; returns the time of the next check."""
        now = self._now()
        for session in list(self.by_id.values()):
            if session.users:
                continue
            if session.last_used + seconds > now:
                return session.last_used + seconds
            await self.end(session)
        return now + seconds

    def _session_to_evict(self) -> HttpSession | None:
        """The idle session to end for a new session; `None` if no session is idle."""
        if len(self._unconfirmed) > self._limits.sessions // _UNCONFIRMED_SHARE:
            unconfirmed = _first_idle(self._unconfirmed)
            if unconfirmed is not None:
                return unconfirmed
        most = max(self._by_network.values(), key=len, default=self.by_id)
        return _first_idle(most) or _first_idle(self.by_id)


def _first_idle(sessions: _Sessions) -> HttpSession | None:
    return next((session for session in sessions.values() if not session.users), None)


class SessionEndpoint(HttpEndpoint):
    """Serves the revisions with sessions; see `HttpEndpoint`.

    Attributes:
        registry: The sessions.
        exchanges: The open exchanges of all sessions.
        revisions: The revisions with sessions.
    """

    methods = "POST, GET, DELETE"

    @staticmethod
    def revisions_of(revisions: Revisions) -> Revisions:
        """The revisions that are served in sessions of Streamable HTTP; may be empty.

        Handshake revisions that define other transports only are included: some clients use them
        over Streamable HTTP, and fail if the server answers with another revision.
        """
        handshake = revisions.of(Lifecycle.HANDSHAKE)
        if any(each.facts.transports.streamable_http == "session" for each in handshake.values()):
            return handshake
        return handshake.among(())

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        revisions: Revisions,
        background: TaskScope,
        quotas: Quotas,
        worker: Any = None,
    ) -> None:
        self.registry = SessionRegistry(settings.limits, quotas.memory)
        # A client is watched before its request has been silent for `keep_alive` seconds.
        interval = _WATCH_INTERVAL if settings.keep_alive is None else settings.keep_alive / 2
        self._exchanges = SessionExchanges(background, quotas, interval, settings.limits)
        self.exchanges = self._exchanges
        self._quotas = quotas
        self.service = service
        self.settings = settings
        self.revisions = revisions
        self._session_type: type[HttpSession] = settings.session_type or HttpSession
        self._facts = revisions.newest().facts
        self._stateless = settings.stateless
        if settings.stateless:
            self.methods = "POST"
        self._session_key = field_key(self._facts.headers.session or "")
        self._version_key = field_key(self._facts.headers.protocol_version or "")
        self._versions = frozenset(name.encode() for name in revisions)
        self._known_versions = self._versions | {None}
        self._check_draft = settings.draft_check
        drafts = [each.facts.draft for each in revisions.values()]
        draft_fields = {name for draft in drafts for name in (draft.method, draft.name) if name}
        self._draft_keys = frozenset(map(field_key, draft_fields))

    @property
    def session_count(self) -> int:
        """See `HttpEndpoint`."""
        return len(self.registry)

    def free_memory(self) -> None:
        """See `HttpEndpoint`."""
        self._exchanges.cancel_first_abandoned("bodies")

    async def close_idle(self) -> None:
        """See `HttpEndpoint`."""
        await self.registry.close_idle()

    async def close(self) -> None:
        """See `HttpEndpoint`."""
        await super().close()
        await self.registry.close()

    def background_work(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """See `HttpEndpoint`."""
        more = (self.registry.expire, self._exchanges.expire_abandoned)
        return (*super().background_work(), *more)

    def post(
        self,
        request: HttpRequest,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
        body: bytes,
        receive: Receive,
        send: AsgiSend,
        session: HttpSession | None = None,
    ) -> Awaitable[None] | None:
        """See `HttpEndpoint`. `session` is that of the POST, if it is known."""
        if session is None:
            headers = request.headers
            named = headers.get(self._session_key)
            if self._stateless or not named:
                initialize = initialize_request(message)
                if initialize is not None:
                    return self.initialize(request, initialize, body, receive, send)
                session = self._without_session(request, message)
            elif headers.get(self._version_key) in self._known_versions:
                session = self.registry.by_id.get(named.decode("latin-1"))
            if session is None or session.owner is not None:
                session = self._find_session(request)
            NETWORK.set(session.network)  # whose share tasks take
        if self._check_draft and not self._draft_keys.isdisjoint(request.headers):
            of_tool = self.service.param_headers_of
            self._check_draft(session.revision.facts, request, message, of_tool)
        if message is None:
            serve_batch = self.settings.serve_batch
            if serve_batch is None or not session.revision.batching:
                text = "expected one JSON-RPC message, got an array"
                raise Refused(http_response.refusal(session.revision.facts.http.rejected, text))
            return serve_batch(session, request, messages, body, receive, send)
        if not isinstance(message, jsonrpc.Request):
            return post_message(session, message, send)
        most = self.settings.limits.per_session
        if len(session.exchanges) >= most or session.handling >= most:
            raise Refused(http_response.over_limit("per_session"))
        if message.method in _KEPT:
            return self._post_kept(session, request, message, body, receive, send)
        return self._serve(session, request, message, receive, send)

    def _serve(
        self,
        session: HttpSession,
        request: HttpRequest,
        message: jsonrpc.Request,
        receive: Receive,
        send: AsgiSend,
        kept: int = 0,
    ) -> Awaitable[None] | None:
        """Respond to one request, of which the session keeps some bytes."""
        events = session.peer.connection.receive(message)
        if not isinstance(event := events[0], RequestReceived):
            if kept:
                session.count_subscriptions(kept)
            return self._answer(session, events, request, receive, send)
        exchange = SessionExchange(session, request, receive, send, event)
        exchange.kept = kept
        return exchange.start()

    async def _post_kept(
        self,
        session: HttpSession,
        request: HttpRequest,
        message: jsonrpc.Request,
        body: bytes,
        receive: Receive,
        send: AsgiSend,
    ) -> None:
        """Respond to a request of which the session keeps a part."""
        kept = 0
        if message.method == INITIALIZE:
            http.check_initialize(message, body, self.settings.limits)
            await session.reserve_initialize(decoded_size(body))
        else:
            kept = await session.reserve_message(len(body))
        waiting = self._serve(session, request, message, receive, send, kept)
        if waiting is not None:
            await waiting

    async def _answer(
        self,
        session: HttpSession,
        answers: Sequence[Event],
        request: HttpRequest,
        receive: Receive,
        send: AsgiSend,
    ) -> None:
        """Send the answers of the connection itself."""
        await session.store_changes()
        response = SessionResponse(request, receive, send, session)
        for each in answers:
            if isinstance(each, Send):
                await response.send(each.message)
        await response.finish()

    async def serve_other(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> bool:
        """See `HttpEndpoint`: GET opens a stream of the session, DELETE ends it."""
        if self._stateless:
            return False
        if request.method == "GET":
            await self.get(request, receive, send)
        else:
            await self.delete(request, send)
        return True

    async def get(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> None:
        """Open a stream of the session, and hold it until one side closes it."""
        session = self._find_session(request)
        http.check_events(request)
        if session.users >= self.settings.limits.per_session:
            raise Refused(http_response.over_limit("per_session"))
        response = SseResponse(send, self.settings.limits.send_seconds)
        session.users += 1
        try:
            stream = await session.open_stream(request, response)
            announces = stream in session.listening
            if announces:
                await session.send_pending(stream)
                session.start_announcing()
            try:
                if not stream.over:
                    streams, keep_alive = self._quotas.streams, self.settings.keep_alive
                    stream.held = anyio.CancelScope()
                    if await streams.hold(receive, response, keep_alive, stream.held):
                        stream.disconnect(response)
            finally:
                if announces:
                    session.stop_announcing()
            await stream.close(response)
            if announces:
                session.end_stream(stream)
        finally:
            session.leave()

    async def delete(self, request: HttpRequest, send: AsgiSend) -> None:
        """End the session."""
        await self.registry.end(self._find_session(request))
        await HttpResponse(200).send(send)

    def _without_session(
        self, request: HttpRequest, message: jsonrpc.Message | None
    ) -> HttpSession | None:
        """A session for one POST that names no session; `None` if it has to name one.

        Raises:
            Refused: The response to a message that is for no session.
        """
        if isinstance(message, jsonrpc.InvalidMessage):
            raise Refused(http_response.invalid_message(message))
        if isinstance(message, jsonrpc.Request) and message.method == DISCOVER:
            self.check_version(request)
            raise Refused(http_response.unknown_method(message))
        if not self._stateless:
            return None
        self.check_version(request)
        return self.single_session(request, Session(self._stated_revision(request), {}, {}), _LACKS)

    def single_session(self, request: HttpRequest, session: Session, lacks: str) -> HttpSession:
        """A session for one POST; see `HandshakeConnection.assume_session`."""
        connection = self._connection(lasts=False)
        connection.assume_session(session, lacks)
        session_for_post = self._session_of(connection, http.network_of(request.client))
        NETWORK.set(session_for_post.network)
        return session_for_post

    def _stated_revision(self, request: HttpRequest) -> Revision:
        """The revision that a header names, else the newest one whose clients send no such header.

        Source: basic/transports#protocol-version-header (2025-06-18, 2025-11-25).
        """
        version = request.field(self._facts.headers.protocol_version)
        if version is not None:
            return self.revisions[version]
        newest_first = [self.revisions[name] for name in sorted(self.revisions, reverse=True)]
        unnamed = (each for each in newest_first if each.facts.headers.protocol_version is None)
        return next(unnamed, newest_first[-1])

    def _connection(self, *, lasts: bool) -> HandshakeConnection:
        service = self.service
        describe = service.describe if lasts else self._describe_without_session
        return handshake_connection(self.revisions, describe, service.extensions)

    def _describe_without_session(self, revision: Revision) -> Description:
        own = self.service.describe(revision)
        return replace(own, capabilities=capabilities_without_session(own.capabilities))

    def _session_of(self, connection: HandshakeConnection, network: str) -> HttpSession:
        """Create a session that is not registered yet."""
        touch = self.registry.touch
        return self._session_type(
            self.service, self.settings, connection, network, self._exchanges, touch
        )

    async def initialize(
        self,
        request: HttpRequest,
        message: jsonrpc.Request,
        body: bytes,
        receive: Receive,
        send: AsgiSend,
        identify: Identify | None = None,
    ) -> None:
        """Respond to an `initialize`. Without `identify` this process keeps the session."""
        facts, limits = self._facts, self.settings.limits
        http.check_initialize(message, body, limits)
        self.check_version(request)
        if self._check_draft:
            self._check_draft(facts, request, message, self.service.param_headers_of)
        lasts = not self._stateless and identify is None
        connection = self._connection(lasts=lasts)
        messages = [e.message for e in connection.receive(message) if isinstance(e, Send)]
        if connection.session is None:
            body = b"".join(each.data for each in messages)
            raise Refused(HttpResponse(facts.http.rejected, body))
        identifier = identify(connection.session) if identify is not None else None
        if identify is not None and identifier is None:
            await self.initialize(request, message, body, receive, send)
            return
        connection.session.lacks = "" if lasts else _LACKS
        session = self._session_of(connection, http.network_of(request.client))
        if lasts:
            await self._register(session, body)
            identifier = session.id
        response = SessionResponse(request, receive, send, session)
        if identifier is not None:
            assert facts.headers.session is not None
            response.headers = {facts.headers.session: identifier}
        for each in messages:
            await response.send(each)
        await response.finish()

    async def _register(self, session: HttpSession, body: bytes) -> None:
        """Register the session of an `initialize`.

        Raises:
            Refused: There is no room for the session.
        """
        if self.settings.is_protected:
            session.owner = PRINCIPAL.get().identity
        await session.reserve_initialize(decoded_size(body))
        try:
            await self.registry.add(session)
        except Refused:
            session.release_memory(session.kept)
            raise

    def _find_session(self, request: HttpRequest) -> HttpSession:
        """Find the session that a request names.

        Raises:
            Refused: It names none that there is, or a revision that is not served.
        """
        self.check_version(request)
        facts = self._facts
        identifier = self.session_id_of(request)
        if identifier is None:
            raise Refused(self._missing_session())
        session = self.registry.get(identifier)
        if session is not None and session.owner is not None:
            session = session if session.owner == PRINCIPAL.get().identity else None
        if session is None:
            raise Refused(http_response.unknown_session(facts.http.unknown_session))
        NETWORK.set(session.network)  # whose share tasks take
        return session

    def _missing_session(self) -> HttpResponse:
        facts = self._facts
        text = f"{facts.headers.session}: expected the id of a session, got nothing"
        text = f"{text}; initialize, alone in its POST, opens one"
        return http_response.refusal(facts.http.missing_session, text)

    def session_id_of(self, request: HttpRequest) -> str | None:
        """The session id in a header field of a request; `None` if it is absent or empty."""
        return request.field(self._facts.headers.session) or None

    def check_version(self, request: HttpRequest) -> None:
        """Check the revision in the header of a request.

        Raises:
            Refused: The header names another revision.
        """
        if request.headers.get(self._version_key) in self._versions:
            return
        facts = self._facts
        version = request.field(facts.headers.protocol_version)
        if version is not None and version not in self.revisions:
            text = f"{facts.headers.protocol_version}: expected one of {', '.join(self.revisions)}"
            text = f"{text}, got {safe_repr(version)}"
            raise Refused(http_response.refusal(facts.http.unsupported_revision, text))


def initialize_request(message: jsonrpc.Message | None) -> jsonrpc.Request | None:
    """The message, if it is an `initialize` request; otherwise `None`."""
    return (
        message if isinstance(message, jsonrpc.Request) and message.method == INITIALIZE else None
    )


class PostedEvents:
    """The events of a POST without requests, handled once the POST has its response."""

    attended = False

    def __init__(self, session: HttpSession, events: Sequence[Event]) -> None:
        self._session = session
        self._events = events
        self._scope = anyio.CancelScope()

    async def serve(self, response: HttpResponse, send: AsgiSend) -> None:
        """Respond, then handle the events, which count as abandoned if a handler waits."""
        session, exchanges = self._session, self._session.open_exchanges
        session.users += 1
        await response.send(send)
        session.leave()
        session.handling += 1
        try:
            await run_eagerly(self.handle(), lambda: exchanges.abandon(self))
        finally:
            session.handling -= 1
            exchanges.end(self)

    async def handle(self) -> None:
        """Handle the events in order, until `fail`."""
        with self._scope:
            for event in self._events:
                if not isinstance(event, (RequestReceived, Send)):
                    await self._session.peer.handle(event)

    async def fail(self, text: str) -> None:
        """Cancel the handlers."""
        self._scope.cancel()


async def post_message(session: HttpSession, message: jsonrpc.Message, send: AsgiSend) -> None:
    """Respond to a POST of one message that is no request.

    Raises:
        Refused: The message is not served.
    """
    invalid = message if isinstance(message, jsonrpc.InvalidMessage) else None
    if session.handling >= session.settings.limits.per_session and starts_work(message):
        raise Refused(http_response.over_limit("per_session"))
    events: Sequence[Event] = ()
    # An invalid message may fail a request of this side.
    if invalid is None or (invalid.response and invalid.id is not None):
        events = received_events(session, message)
    if invalid is not None:
        response = http_response.invalid_message(invalid)
    else:
        await session.store_changes()
        response = HttpResponse(session.revision.facts.http.accepted)
    await PostedEvents(session, events).serve(response, send)


def received_events(session: HttpSession, message: jsonrpc.Message) -> Sequence[Event]:
    """Pass a message to the protocol."""
    peer = session.peer
    now = anyio.current_time() if peer.callers.timed else 0.0
    return peer.connection.receive(message, now)
