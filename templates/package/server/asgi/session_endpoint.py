"""POST, GET and DELETE of revisions with sessions.

    POST initialize -> a session        POST -> the session's peer -> JSON, a stream, or nothing
    GET -> a stream of the session, new or taken up again        DELETE -> the session ends

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import logging
from contextlib import suppress

import anyio

from ...facts import Lifecycle, Revisions
from ...foreign_text import safe_repr
from ...protocol import jsonrpc
from ...protocol.connection import Connection
from ...protocol.events import Send
from ...protocol.lifecycle import INITIALIZE
from ..serving import Service
from . import request as http
from . import responses
from .draft_headers import check_draft
from .header_validation import is_discovery
from .http_session import HttpSession
from .keepalive import LongCalls
from .lifespan import TaskScope
from .load import Load, decoded_size
from .post_response import SessionResponse
from .resumable_stream import ResumableStream
from .session_post import SessionPost
from .session_registry import SessionRegistry, network_of
from .settings import HttpSettings
from .sse_response import SseResponse
from .stream_limits import StreamLimits

logger = logging.getLogger(__name__)


class SessionEndpoint:
    """Answers the requests of revisions with sessions.

    Args:
        service: What is served.
        settings: How.
        revisions: Those revisions.
        background: Runs what no request owns.
        open_streams: The streams that stay open.
        load: What all clients take together.

    Attributes:
        table: The sessions.
        long_calls: What is being served in them.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        revisions: Revisions,
        background: TaskScope,
        open_streams: StreamLimits,
        load: Load,
    ) -> None:
        self.table = SessionRegistry(settings.limits, load.memory)
        self.long_calls = LongCalls(background, load, settings.limits, settings.keep_alive)
        self._background = background
        self._load = load
        self._service = service
        self._settings = settings
        self._revisions = revisions
        self._facts = revisions.newest().facts
        self._open_streams = open_streams

    async def attend(self) -> None:
        """End what is idle and look after what takes long, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.table.expire)
            tasks.start_soon(self.long_calls.attend_connections)
            tasks.start_soon(self.long_calls.attend_abandoned)

    async def post(
        self,
        request: http.Incoming,
        message: jsonrpc.Message | None,
        body: bytes,
        receive: http.Receive,
        send: http.Send,
    ) -> None:
        """Answer one POST; `message` is `None` for a batch."""
        if self._session_id(request) is None:
            if isinstance(message, jsonrpc.Request) and message.method == INITIALIZE:
                await self._initialize(request, message, body, receive, send)
                return
            reply = self._without_session(request, message)
            if reply is not None:
                await reply.send(send)
                return
        session = self._session(request)
        if isinstance(session, responses.Reply):
            await session.send(send)
            return
        facts = session.revision.facts
        refused = check_draft(facts, request, message, self._service.marks_of)
        if isinstance(message, jsonrpc.Request) and message.method == INITIALIZE:
            refused = refused or await self._keep_initialize(session, message, body)
        if refused is not None:
            await refused.send(send)
            return
        post = SessionPost(session, self._settings.limits, message, body)
        more = post.places - 1  # one is taken already, as for each POST
        if more and post.reply is None and not self._load.has_room(more):
            post.reply = responses.too_much("in_flight")
        followed: int | None = None
        if post.follows and post.reply is None:
            if await session.keep(len(body)):
                followed = len(body)
            else:
                post.reply = responses.too_much("session_bytes")
        post.take_in()
        if post.reply is not None:
            await self._accept(session, post, post.reply, send)
            return
        answer = SessionResponse(
            session,
            request,
            receive,
            send,
            self._settings,
            expected=post.expected,
            batch=post.batch,
        )
        self._load.in_flight += post.places - 1  # with the one of this POST it has all of them
        self.long_calls.add(answer, post)
        try:
            # A client that leaves changes nothing about what it asked for.
            await self._background.outlive(self._serve, session, post, answer, followed)
        finally:
            self._load.in_flight += 1  # the place that is given back by whoever took it

    async def _serve(
        self, session: HttpSession, post: SessionPost, answer: SessionResponse, followed: int | None
    ) -> None:
        """Serve a POST, and give its places back.

        Args:
            followed: Bytes that were counted for a change of the URIs that the client follows.
        """
        try:
            await post.serve(answer)
        finally:
            self.long_calls.discard(answer, post)
            self._load.in_flight -= post.places
            if followed is not None:
                session.count_followed(followed)
        await session.tidy()

    def _without_session(
        self, request: http.Incoming, message: jsonrpc.Message | None
    ) -> responses.Reply | None:
        """What answers a message that names no session, if that can be answered at all."""
        if isinstance(message, jsonrpc.InvalidMessage):
            return responses.malformed(message)
        if isinstance(message, jsonrpc.Request) and is_discovery(message):
            return self._check_version(request) or responses.unknown_method(message)
        return None

    async def _keep_initialize(
        self, session: HttpSession, message: jsonrpc.Request, body: bytes
    ) -> responses.Reply | None:
        """Count what a session keeps of an `initialize`; what refuses it if that is too much."""
        refused = http.check_initialize(message, body, self._settings.limits)
        if refused is None and not await session.keep_initialize(decoded_size(body)):
            return responses.too_much("session_bytes")
        return refused

    async def _accept(
        self, session: HttpSession, post: SessionPost, reply: responses.Reply, send: http.Send
    ) -> None:
        """Answer a POST that asks for nothing, or is refused, and then do what it is for.

        Work for it may wait for what the client does next, which has its answer before that.
        """
        session.enter()
        with suppress(OSError):
            await reply.send(send)
        session.leave()
        try:
            await post.take_note(lambda: self.long_calls.abandon(post))
        finally:
            self.long_calls.end(post)

    async def get(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        """Open a stream of the session, or take one up again."""
        session = self._session(request)
        if not isinstance(session, responses.Reply):
            session = self._check_get(request, session) or session
        if isinstance(session, responses.Reply):
            await session.send(send)
            return
        missed = request.field(self._facts.headers.last_event_id)
        wire = SseResponse(send, self._settings.limits.send_seconds)
        session.enter()
        try:
            if missed is None:
                stream = session.new_stream()
                session.listen(stream)
                await stream.open(wire)
            else:
                found = await self._resume(session, missed, wire)
                if isinstance(found, responses.Reply):
                    await found.send(send)
                    return
                stream = found
            if session.listens(stream):
                await session.tell_pending(stream)
            await self._hold(session, stream, wire, receive)
        finally:
            session.leave()
        await session.tidy()

    async def delete(self, request: http.Incoming, send: http.Send) -> None:
        """End the session."""
        session = self._session(request)
        if isinstance(session, responses.Reply):
            await session.send(send)
            return
        await self.table.end(session)
        await responses.Reply(200).send(send)

    async def _initialize(
        self,
        request: http.Incoming,
        message: jsonrpc.Request,
        body: bytes,
        receive: http.Receive,
        send: http.Send,
    ) -> None:
        service, facts = self._service, self._facts
        refused = (
            http.check_initialize(message, body, self._settings.limits)
            or self._check_version(request)
            or check_draft(facts, request, message, service.marks_of)
        )
        if refused is not None:
            await refused.send(send)
            return
        connection = Connection("server", self._revisions, service.describe, service.extensions)
        messages = [e.message for e in connection.receive_message(message) if isinstance(e, Send)]
        if connection.session is None:
            await responses.Reply(facts.http.rejected, b"".join(m.data for m in messages)).send(
                send
            )
            return
        session = HttpSession(
            service,
            self._settings,
            connection,
            network_of(request.client),
            self._load.memory,
            self.table.touched,
        )
        if not await session.keep_initialize(decoded_size(body)):
            await responses.too_much("session_bytes").send(send)
            return
        if not await self.table.add(session):
            session.forget(session.kept)
            await responses.too_much("sessions").send(send)
            return
        assert facts.headers.session is not None
        answer = SessionResponse(
            session,
            request,
            receive,
            send,
            self._settings,
            expected=len(messages),
            fields={facts.headers.session: session.id},
        )
        for made in messages:
            await answer.send(made)
        await answer.finish()

    async def _resume(
        self, session: HttpSession, missed: str, wire: SseResponse
    ) -> ResumableStream | responses.Reply:
        """Go on with a stream after the last event that the client saw, or what refuses that."""
        name = self._facts.headers.last_event_id
        try:
            found = await session.found(missed)
            resumed = found is not None and await found.resume(wire, missed)
        except Exception as error:
            logger.error("the event store failed: %r", error)
            text = f"{name}: what came after that event can't be had now"
            return responses.unavailable(text)
        if found is None or not resumed:
            text = f"{name}: {safe_repr(missed)} is no event that more can come after"
            return responses.refusal(self._facts.http.rejected, text)
        if session.listens(found):
            session.listen(found)
        return found

    async def _hold(
        self,
        session: HttpSession,
        stream: ResumableStream,
        wire: SseResponse,
        receive: http.Receive,
    ) -> None:
        """Keep a connection open for a stream until one of the sides leaves."""
        work = session.announce if session.listens(stream) else anyio.sleep_forever
        gone = False
        if not stream.over:
            with anyio.CancelScope() as stream.held:
                gone = await self._open_streams.hold(receive, wire, self._settings.keep_alive, work)
        if gone:
            stream.leave(wire)
        else:
            await stream.close(wire)

    def _check_get(self, request: http.Incoming, session: HttpSession) -> responses.Reply | None:
        refused = http.check_events(request)
        if refused is None and session.users >= self._settings.limits.per_session:
            return responses.too_much("per_session")
        return refused

    def _session_id(self, request: http.Incoming) -> str | None:
        return request.field(self._facts.headers.session)

    def _session(self, request: http.Incoming) -> HttpSession | responses.Reply:
        """The session that a request belongs to, or what refuses it."""
        refused = self._check_version(request)
        if refused is not None:
            return refused
        facts = self._facts
        identifier = self._session_id(request)
        if identifier is None:
            status = facts.http.missing_session
            text = f"{facts.headers.session}: expected the id of a session, got nothing"
            return responses.refusal(status, f"{text}; initialize, alone in its POST, opens one")
        session = self.table.get(identifier)
        if session is None:
            return responses.no_session(facts.http.unknown_session)
        return session

    def _check_version(self, request: http.Incoming) -> responses.Reply | None:
        facts = self._facts
        named = request.field(facts.headers.protocol_version)
        if named is None or named in self._revisions:
            return None
        return responses.refusal(
            facts.http.unsupported_revision,
            f"{facts.headers.protocol_version}: expected one of {', '.join(self._revisions)}, "
            f"got {safe_repr(named)}",
        )


def with_sessions(revisions: Revisions) -> Revisions:
    """The revisions that are served in sessions of Streamable HTTP; none if none has those.

    One whose own pages have other transports only is served there too: clients exist that speak
    it so, and to answer them with another revision would turn them away.
    """
    found = revisions.of(Lifecycle.HANDSHAKE)
    if any(each.facts.transports.streamable_http == "session" for each in found.values()):
        return found
    return found.among(())
