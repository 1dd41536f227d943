"""POST, GET and DELETE of revisions with sessions.

    POST initialize -> a session        POST -> the session's peer -> JSON, a stream, or nothing
    GET -> a stream of the session, new or resumed        DELETE -> the session ends

With `stateless`, each POST gets a session of its own, which has no id and ends with the POST.

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, TypeAlias

import anyio
from msgspec.structs import replace

from ...facts import Lifecycle, Revision, Revisions
from ...foreign_text import safe_repr
from ...protocol import jsonrpc
from ...protocol.handshake import HandshakeConnection, handshake_connection
from ...protocol.lifecycle import (
    Description,
    RequestMetadata,
    Session,
    capabilities_without_session,
)
from ...protocol.receiver import Send
from ...protocol.request_meta import MetaCache
from ...protocol.states import INITIALIZE
from ...revision_facts import Facts
from ...runtime.request_context import NETWORK, PRINCIPAL
from ...runtime.task_scope import TaskScope, keep_running
from ..planned_calls import PlainCall, PlainRequest, session_of
from ..serving import Service
from . import http_response
from . import request as http
from .event_store import StoredEvents
from .http_response import HttpResponse
from .http_session import HttpSession, SessionRegistry
from .plain_calls import Opened, PlainRequests, PlainService
from .quotas import Quotas, decoded_size
from .request import field_key
from .response_writer import PostResponse, SseResponse
from .resumable_stream import ResumableStream
from .session_posts import PostsInFlight, SessionPost
from .settings import ServerHttpSettings

logger = logging.getLogger(__name__)

_LACKS = "a session, and this server keeps none (stateless=True)"

Identify: TypeAlias = Callable[[Session], str | None]
"""Returns the id of a session that any process serves; `None` to keep it in this process."""

CheckDraft: TypeAlias = Callable[
    [Facts, http.HttpRequest, jsonrpc.Message | None], HttpResponse | None
]
"""Returns the refusal of a message whose draft header fields differ from its body."""


class SessionEndpoint:
    """Serves the revisions with sessions.

    Args:
        service: The service of the server.
        settings: The HTTP settings.
        revisions: The revisions with sessions.
        background: Runs tasks that no request owns.
        quotas: The amounts that all clients use together.
        check_draft: Checks the header fields of a draft; `None` if no revision has a draft.

    Attributes:
        registry: The sessions.
        posts: The POSTs in flight.
        requests: Reads requests the plain way.
        revisions: As passed.
        session_type: The class of the sessions.
    """

    session_type: ClassVar[type[HttpSession]] = HttpSession

    def __init__(
        self,
        service: Service,
        settings: ServerHttpSettings,
        revisions: Revisions,
        background: TaskScope,
        quotas: Quotas,
        check_draft: CheckDraft | None,
    ) -> None:
        self.registry = SessionRegistry(settings.limits, quotas.memory)
        self.posts = PostsInFlight(background, quotas, settings.limits, settings.keep_alive)
        self._background = background
        self._quotas = quotas
        self._service = service
        self._settings = settings
        self.revisions = revisions
        self._facts = revisions.newest().facts
        self._stateless = settings.stateless
        self._check_draft = check_draft
        self._session_key = field_key(self._facts.headers.session or "")
        self._version_key = field_key(self._facts.headers.protocol_version or "")
        self._versions = frozenset(name.encode() for name in revisions)
        drafts = [each.facts.draft for each in revisions.values()]
        draft_fields = {name for draft in drafts for name in (draft.method, draft.name) if name}
        self.requests = PlainRequests(service.describe, MetaCache())
        self._draft_keys = frozenset(map(field_key, draft_fields))

    async def watch(self) -> None:
        """End idle sessions and watch connections, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_running, self.registry.expire)
            tasks.start_soon(keep_running, self.posts.watch_long)
            tasks.start_soon(keep_running, self.posts.expire_abandoned)

    async def post(
        self,
        request: http.HttpRequest,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
        body: bytes,
        receive: http.Receive,
        send: http.Send,
        scope: anyio.CancelScope,
        session: HttpSession | HttpResponse | None = None,
    ) -> None:
        """Respond to one POST.

        Args:
            request: The POST.
            message: The message in its body; `None` for a batch.
            messages: The message, or the messages of the batch.
            body: The body.
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            scope: The scope of the caller.
            session: The session of the POST, or the refusal, if known.
        """
        initialize = initialize_request(message)
        if session is None and (self._stateless or self.session_id_of(request) is None):
            if initialize is not None:
                await self.initialize(request, initialize, body, receive, send)
                return
            session = self._without_session(request, message)
        session = session or self._find_session(request)
        if isinstance(session, HttpResponse):
            await session.send(send)
            return
        self.posts.observe(session)
        refused = None
        if self._check_draft and not self._draft_keys.isdisjoint(request.headers):
            refused = self._check_draft(session.revision.facts, request, message)
        if initialize is not None and refused is None:
            refused = await self._reserve_initialize(session, initialize, body)
        if refused is not None:
            await refused.send(send)
            return
        post = SessionPost(session, self.posts, message, messages)
        more = post.places - 1  # one place is counted already, as for each POST
        if more and post.response is None and not self._quotas.has_room(more):
            post.response = http_response.over_limit("in_flight")
        if post.changes_subscriptions and post.response is None:
            if await session.reserve(len(body)):
                post.kept = len(body)
            else:
                post.response = self._without_room(session)
        post.receive_messages()
        await session.store_changes()
        if post.response is not None:
            await self._respond_then_handle(session, post, post.response, send)
            return
        carrier = PostResponse(
            request, receive, send, self._settings, session, post.expected, post.batch
        )
        self.posts.add(carrier, post)
        await self._serve(post, scope)

    async def _serve(
        self, post: SessionPost, scope: anyio.CancelScope, handler: Awaitable[Any] | None = None
    ) -> None:
        """Serve the requests of a POST, even if the client disconnects.

        Args:
            post: The POST.
            scope: The scope of the caller.
            handler: Returns the result of the only request, if its handler was started already.
        """
        try:
            await self._background.outlive(scope, partial(post.serve, handler=handler))
        finally:
            self._quotas.in_flight += 1  # returned by the caller

    def load(self, request: http.HttpRequest) -> Awaitable[HttpSession | HttpResponse] | None:
        """Load the session of a request from the shared state; `None` if there is none to load."""
        return None

    def read(
        self, request: http.HttpRequest, message: jsonrpc.Request
    ) -> tuple[PlainRequest, HttpSession] | None:
        """A request and its session; see `PlainEndpoint`.

        On trio a separate task serves a POST, and could not continue a handler that was started in
        the current task.
        """
        session = self._plain_session(request)
        if (
            session is None
            or self.posts.observe(session)  # the whole way compares the ids of open requests
            or http.response_forms(request, self._settings.answers)[1]
        ):
            return None
        NETWORK.set(session.network)
        plain = self.requests.read_in_session(message, session.peer.connection)
        return None if plain is None else (plain, session)

    def admit(
        self, request: http.HttpRequest, call: PlainCall
    ) -> tuple[RequestMetadata, HttpSession] | None:
        """The metadata of a call and its session; see `PlainEndpoint`."""
        session = self._plain_session(request)
        if session is None or (self.posts.unobserved and not self.posts.may_add(session, call.id)):
            return None
        agreed = session_of(call, session.peer.connection)
        return None if agreed is None else (agreed, session)

    def _plain_session(self, request: http.HttpRequest) -> HttpSession | None:
        """The session of a POST that may be served the plain way; `None` otherwise."""
        headers = request.headers
        identifier = headers.get(self._session_key)
        if identifier is None:
            return None
        version = headers.get(self._version_key)
        if (
            (version is not None and version not in self._versions)
            or self._stateless
            or not self._background.on_asyncio
            or not headers.keys().isdisjoint(self._draft_keys)
        ):
            return None
        session = self.registry.get(identifier.decode("latin-1"))
        most = self._settings.limits.per_session
        if (
            session is None
            or (session.owner is not None and session.owner != PRINCIPAL.get().identity)
            or len(session.responses) >= most
            or session.handling >= most
        ):
            return None
        self.registry.touch(session)
        return session

    def open(self, served: PlainService) -> Opened:
        """Register a request with its connection; see `PlainEndpoint`."""
        session: HttpSession = served.session
        if served.done:
            return session.peer.callers, None
        plain = served.request()
        message = jsonrpc.Request(plain.id, plain.method.name, plain.raw_params)
        post = SessionPost(session, self.posts, message, (message,))
        post.register_plain(plain)
        response = PostResponse(*served.post, self._settings, session)
        response.created = served.since or response.created
        self.posts.add(response, post)
        post.begin()
        if served.scope is not None:  # the handler may wait, now or later
            session.peer.begin(plain.id, served.scope)
            served.scope.shield = True  # see `TaskScope.outlive`
        return session.peer.callers, partial(self._serve, post)

    def wait(self, served: PlainService) -> None:
        """Record that the handler of a request waits; see `PlainEndpoint`."""
        assert served.scope is not None
        served.scope.shield = True  # as above
        self.posts.wait(served)

    def stop_waiting(self, served: PlainService) -> None:
        """Record that the handler of a request has ended; see `PlainEndpoint`."""
        self.posts.stop_waiting(served)

    async def get(self, request: http.HttpRequest, receive: http.Receive, send: http.Send) -> None:
        """Open a stream of the session, or resume one."""
        session = self._find_session(request)
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
        session = self._find_session(request)
        if isinstance(session, HttpResponse):
            await session.send(send)
            return
        self.posts.observe(session)
        await self.registry.end(session)
        await HttpResponse(200).send(send)

    def _without_session(
        self, request: http.HttpRequest, message: jsonrpc.Message | None
    ) -> HttpSession | HttpResponse | None:
        """The response to a message that names no session, or a session for this message only.

        Returns:
            `None` if the message has to name a session.
        """
        if isinstance(message, jsonrpc.InvalidMessage):
            return http_response.invalid_message(message)
        if isinstance(message, jsonrpc.Request) and http.is_discovery(message):
            return self.check_version(request) or http_response.unknown_method(message)
        if not self._stateless:
            return None
        refused = self.check_version(request)
        if refused is not None:
            return refused
        return self.single_session(request, Session(self._stated_revision(request), {}, {}), _LACKS)

    def single_session(
        self, request: http.HttpRequest, session: Session, lacks: str
    ) -> HttpSession:
        """A session for one POST; see `HandshakeConnection.assume_session`."""
        connection = self._connection(lasts=False)
        connection.assume_session(session, lacks)
        session_for_post = self._session_of(connection, http.network_of(request.client))
        NETWORK.set(session_for_post.network)
        return session_for_post

    def _stated_revision(self, request: http.HttpRequest) -> Revision:
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
        service = self._service
        describe = service.describe if lasts else self._describe_without_session
        return handshake_connection(self.revisions, describe, service.extensions)

    def _describe_without_session(self, revision: Revision) -> Description:
        own = self._service.describe(revision)
        return replace(own, capabilities=capabilities_without_session(own.capabilities))

    def _session_of(self, connection: HandshakeConnection, network: str) -> HttpSession:
        """Create a session that is not registered yet."""
        return self.session_type(
            self._service,
            self._settings,
            connection,
            network,
            self._quotas.memory,
            self._background,
            self.registry.touch,
        )

    async def _respond_then_handle(
        self, session: HttpSession, post: SessionPost, response: HttpResponse, send: http.Send
    ) -> None:
        """Respond to a POST without requests, or refuse it; then handle its messages.

        The response comes first, since a handler may wait for the next message of the client.
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
        """Count the bytes that a session keeps of an `initialize`; or return the refusal."""
        refused = http.check_initialize(message, body, self._settings.limits)
        if refused is None and not await session.reserve_initialize(decoded_size(body)):
            return self._without_room(session)
        return refused

    def _without_room(self, session: HttpSession) -> HttpResponse:
        """The refusal of a message for whose bytes a session has no room, or that came too late."""
        if session.over:
            return http_response.unknown_session(self._facts.http.unknown_session)
        return http_response.over_limit("session_bytes")

    async def initialize(
        self,
        request: http.HttpRequest,
        message: jsonrpc.Request,
        body: bytes,
        receive: http.Receive,
        send: http.Send,
        identify: Identify | None = None,
    ) -> None:
        """Respond to an `initialize`. Without `identify` this process keeps the session."""
        facts, limits = self._facts, self._settings.limits
        refused = http.check_initialize(message, body, limits) or self.check_version(request)
        if refused is None and self._check_draft:
            refused = self._check_draft(facts, request, message)
        if refused is not None:
            await refused.send(send)
            return
        lasts = not self._stateless and identify is None
        connection = self._connection(lasts=lasts)
        messages = [e.message for e in connection.receive_message(message) if isinstance(e, Send)]
        if connection.session is None:
            body = b"".join(each.data for each in messages)
            await HttpResponse(facts.http.rejected, body).send(send)
            return
        identifier = identify(connection.session) if identify is not None else None
        if identify is not None and identifier is None:
            await self.initialize(request, message, body, receive, send)
            return
        connection.session.lacks = "" if lasts else _LACKS
        session = self._session_of(connection, http.network_of(request.client))
        if lasts:
            refused = await self._register(session, body)
            if refused is not None:
                await refused.send(send)
                return
            identifier = session.id
        headers: dict[str, str] = {}
        if identifier is not None:
            assert facts.headers.session is not None
            headers[facts.headers.session] = identifier
        carrier = PostResponse(request, receive, send, self._settings, session, headers=headers)
        for each in messages:
            await carrier.send(each)
        await carrier.finish()

    async def _register(self, session: HttpSession, body: bytes) -> HttpResponse | None:
        """Register a session; returns the refusal if there is no room for it.

        Args:
            session: The session.
            body: The body with its `initialize`.
        """
        if self._settings.auth is not None:
            session.owner = PRINCIPAL.get().identity
        if not await session.reserve_initialize(decoded_size(body)):
            return http_response.over_limit("session_bytes")
        refused = await self.registry.add(session)
        if refused is not None:
            session.release_memory(session.kept)
        return refused

    async def _resume(
        self, session: HttpSession, last_event_id: str, response: SseResponse
    ) -> ResumableStream | HttpResponse:
        """Resume the stream of an event after the event; or return the refusal."""
        name = self._facts.headers.last_event_id
        try:
            stored = await session.stored_after(last_event_id)
            stream = None
            if stored is not None:
                stream = await self._continue(session, stored, last_event_id, response)
        except Exception as error:
            logger.error("the event store failed: %r", error)
            text = f"{name}: what came after that event can't be had now"
            return http_response.unavailable(text)
        if stream is None:
            text = f"{name}: {safe_repr(last_event_id)} is no event that more can come after"
            return http_response.refusal(self._facts.http.rejected, text)
        return stream

    async def _continue(
        self, session: HttpSession, stored: StoredEvents, last_event_id: str, response: SseResponse
    ) -> ResumableStream | None:
        """Resume a stream on a connection; `None` if no further event can come."""
        stream = session.stream_of(stored)
        if not await stream.resume(response, last_event_id):
            return None
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

    def _find_session(self, request: http.HttpRequest) -> HttpSession | HttpResponse:
        """Find the session that a request names; or return the refusal."""
        refused = self.check_version(request)
        if refused is not None:
            return refused
        facts = self._facts
        identifier = self.session_id_of(request)
        if identifier is None:
            status = facts.http.missing_session
            text = f"{facts.headers.session}: expected the id of a session, got nothing"
            return http_response.refusal(
                status, f"{text}; initialize, alone in its POST, opens one"
            )
        session = self.registry.get(identifier)
        if session is not None and session.owner is not None:
            session = session if session.owner == PRINCIPAL.get().identity else None
        if session is None:
            return http_response.unknown_session(facts.http.unknown_session)
        NETWORK.set(session.network)  # whose share tasks take
        return session

    def session_id_of(self, request: http.HttpRequest) -> str | None:
        """The session id in a header field of a request; `None` if it is absent or empty."""
        return request.field(self._facts.headers.session) or None

    def check_version(self, request: http.HttpRequest) -> HttpResponse | None:
        """The refusal of a request whose header names another revision."""
        if request.headers.get(self._version_key) in self._versions:
            return None
        facts = self._facts
        version = request.field(facts.headers.protocol_version)
        if version is None or version in self.revisions:
            return None
        return http_response.refusal(
            facts.http.unsupported_revision,
            f"{facts.headers.protocol_version}: expected one of {', '.join(self.revisions)}, "
            f"got {safe_repr(version)}",
        )


def initialize_request(message: jsonrpc.Message | None) -> jsonrpc.Request | None:
    """The message, if it is an `initialize` request; otherwise `None`."""
    return (
        message if isinstance(message, jsonrpc.Request) and message.method == INITIALIZE else None
    )


def with_sessions(revisions: Revisions) -> Revisions:
    """The revisions that are served in sessions of Streamable HTTP; may be empty.

    Handshake revisions that define other transports only are included: some clients use them over
    Streamable HTTP, and fail if the server answers with another revision.
    """
    handshake = revisions.of(Lifecycle.HANDSHAKE)
    if any(each.facts.transports.streamable_http == "session" for each in handshake.values()):
        return handshake
    return handshake.among(())
