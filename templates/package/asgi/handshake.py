"""POST, GET and DELETE of revisions with sessions.

    POST initialize -> a session        POST -> the session's peer -> JSON, a stream, or nothing
    GET -> a stream of the session, new or taken up again        DELETE -> the session ends

Source: basic/transports#streamable-http (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import logging
from contextlib import suppress

import anyio

from ..core import jsonrpc
from ..core.connection import Connection
from ..core.events import Send
from ..facts import Lifecycle, Revisions
from ..server import Service
from . import incoming as http
from . import replies
from .answers import SessionAnswer
from .background import Background
from .draft_fields import check_draft
from .long_calls import LongCalls
from .open_streams import OpenStreams
from .posts import SessionPost
from .session_table import SessionTable
from .sessions import HttpSession
from .settings import HttpSettings
from .streams import MessageStream
from .wire import EventWire

logger = logging.getLogger(__name__)

_REFUSED = 400


class Handshake:
    """Answers the requests of revisions with sessions.

    Args:
        service: What is served.
        settings: How.
        revisions: Those revisions.
        background: Runs what no request owns.
        open_streams: The streams that stay open.

    Attributes:
        table: The sessions.
    """

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        revisions: Revisions,
        background: Background,
        open_streams: OpenStreams,
    ) -> None:
        self.table = SessionTable(settings.limits)
        self._service = service
        self._settings = settings
        self._revisions = revisions
        self._facts = revisions.newest().facts
        self._open_streams = open_streams
        self._long_calls = LongCalls(background, settings.keep_alive)

    async def attend(self) -> None:
        """End what is idle and look after what takes long, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.table.expire)
            tasks.start_soon(self._long_calls.attend)

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
            if isinstance(message, jsonrpc.Malformed):
                await replies.malformed(message).send(send)
                return
            if isinstance(message, jsonrpc.Request) and message.method == "initialize":
                await self._initialize(request, message, receive, send)
                return
        session = self._session(request)
        if isinstance(session, replies.Reply):
            await session.send(send)
            return
        draft = session.revision.facts.draft
        refused = check_draft(draft, request, message, self._service.marks_of)
        if refused is not None:
            await refused.send(send)
            return
        post = SessionPost(session, self._settings.limits, message, body)
        if post.reply is not None:
            # Before it is taken note of: that may wait for what the client does next.
            session.enter()
            with suppress(OSError):
                await post.reply.send(send)
            session.leave()
            await post.take_note()
            return
        answer = SessionAnswer(
            session,
            request,
            receive,
            send,
            self._settings,
            expected=post.expected,
            batch=post.batch,
        )
        self._long_calls.add(answer)
        try:
            await post.serve(answer)
        finally:
            self._long_calls.discard(answer)
        await session.tidy()

    async def get(self, request: http.Incoming, receive: http.Receive, send: http.Send) -> None:
        """Open a stream of the session, or take one up again."""
        session = self._session(request)
        if not isinstance(session, replies.Reply):
            session = self._check_get(request, session) or session
        if isinstance(session, replies.Reply):
            await session.send(send)
            return
        missed = request.field(self._facts.headers.last_event_id)
        wire = EventWire(send, self._settings.limits.send_seconds)
        session.enter()
        try:
            if missed is None:
                stream = session.new_stream()
                session.listen(stream)
                await stream.open(wire)
            else:
                found = await self._resume(session, missed, wire)
                if isinstance(found, replies.Reply):
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
        if isinstance(session, replies.Reply):
            await session.send(send)
            return
        await self.table.end(session)
        await replies.Reply(200).send(send)

    async def _initialize(
        self,
        request: http.Incoming,
        message: jsonrpc.Request,
        receive: http.Receive,
        send: http.Send,
    ) -> None:
        service, facts = self._service, self._facts
        refused = self._check_version(request) or check_draft(
            facts.draft, request, message, service.marks_of
        )
        if refused is not None:
            await refused.send(send)
            return
        connection = Connection("server", self._revisions, service.describe, service.extensions)
        messages = [e.message for e in connection.take(message) if isinstance(e, Send)]
        if connection.session is None:
            await replies.Reply(_REFUSED, b"".join(messages)).send(send)
            return
        session = HttpSession(service, self._settings, connection, self.table.touched)
        if not await self.table.add(session):
            await replies.too_much("sessions").send(send)
            return
        assert facts.headers.session is not None
        answer = SessionAnswer(
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
        self, session: HttpSession, missed: str, wire: EventWire
    ) -> MessageStream | replies.Reply:
        """Go on with a stream after the last event that the client saw, or what refuses that."""
        name = self._facts.headers.last_event_id
        try:
            found = await session.found(missed)
            resumed = found is not None and await found.resume(wire, missed)
        except Exception as error:
            logger.error("the event store failed: %r", error)
            text = f"{name}: what came after that event can't be had now"
            return replies.unavailable(text)
        if found is None or not resumed:
            text = f"{name}: {missed!r:.200} is no event that more can come after"
            return replies.refusal(_REFUSED, text)
        if session.listens(found):
            session.listen(found)
        return found

    async def _hold(
        self, session: HttpSession, stream: MessageStream, wire: EventWire, receive: http.Receive
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

    def _check_get(self, request: http.Incoming, session: HttpSession) -> replies.Reply | None:
        refused = http.check_events(request)
        if refused is None and session.users >= self._settings.limits.per_session:
            return replies.too_much("per_session")
        return refused

    def _session_id(self, request: http.Incoming) -> str | None:
        return request.field(self._facts.headers.session)

    def _session(self, request: http.Incoming) -> HttpSession | replies.Reply:
        """The session that a request belongs to, or what refuses it."""
        refused = self._check_version(request)
        if refused is not None:
            return refused
        facts = self._facts
        identifier = self._session_id(request)
        if identifier is None:
            status = facts.http.missing_session or _REFUSED
            text = f"{facts.headers.session}: expected the id of a session, got nothing"
            return replies.refusal(status, f"{text}; initialize, alone in its POST, opens one")
        session = self.table.get(identifier)
        if session is None:
            return replies.no_session()
        return session

    def _check_version(self, request: http.Incoming) -> replies.Reply | None:
        facts = self._facts
        named = request.field(facts.headers.protocol_version)
        if named is None or named in self._revisions:
            return None
        return replies.refusal(
            facts.http.unsupported_revision or _REFUSED,
            f"{facts.headers.protocol_version}: expected one of {', '.join(self._revisions)}, "
            f"got {named!r:.80}",
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
