"""POST, GET and DELETE of sessions that any worker serves.

A worker that gets a request loads the record of its session, creates a local session unless there
is one, and serves the request. Messages about calls of other workers are forwarded: a response of
the client to the worker whose id begins the id of the request, the id of a cancelled request to all
workers.

A worker that ends, or has no room, closes local sessions; only clients and idle time end sessions.

Source: basic/transports#session-management (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

import anyio
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..._wire import UNREADABLE, encode, is_object
from ...channel import RequestId
from ...facts import Revisions
from ...protocol import jsonrpc
from ...protocol.events import Send
from ...protocol.handshake import HandshakeConnection
from ...protocol.lifecycle import Session
from ...protocol.requests import CANCELLED, PROGRESS, PROGRESS_TOKEN
from ...runtime.pending_requests import PARTING_SECONDS, PendingRequests
from ...runtime.request_context import NETWORK, PRINCIPAL, Identity
from ...runtime.task_scope import TaskScope
from ..asgi import http_response
from ..asgi.event_store import MemoryEventStore
from ..asgi.http_response import HttpResponse, Receive, Refused
from ..asgi.http_response import Send as AsgiSend
from ..asgi.http_session import HttpSession
from ..asgi.quotas import Quotas
from ..asgi.request import HttpRequest, network_of
from ..asgi.resumable_stream import ResumeSettings
from ..asgi.session_endpoint import SessionEndpoint
from ..serving import Service
from .bus import WAIT_SECONDS, SharedStateError, SharedStateFullError
from .session_store import SessionRecord
from .shared_sessions import SharedSession
from .shared_streams import FOLLOWED_SECONDS, SEPARATOR
from .worker import (
    CallCancelled,
    ClientMessage,
    ServerMessage,
    SessionChanged,
    SessionLetter,
    SharedWorker,
    StreamFollowed,
    StreamTaken,
)

logger = logging.getLogger(__name__)

_ID_CHARACTERS = 128  # most characters of a session id that is looked up
_LONG_RECORD = 8192  # bytes kept for a session, from which its record counts as long
_TOUCHES = 3  # of the record of a session in use, per idle time

_CANCELLED_ID = "requestId"  # in the params of a cancellation

_UNREACHABLE = "the state that the processes of this server share can't be had now"


class SharedEndpoint(SessionEndpoint):
    """Serves the revisions with sessions, with records that the workers share.

    Args:
        worker: This worker. The other arguments are those of `SessionEndpoint`.
    """

    def __init__(
        self,
        service: Service,
        settings: ResumeSettings,
        revisions: Revisions,
        background: TaskScope,
        quotas: Quotas,
        worker: SharedWorker,
    ) -> None:
        if isinstance(settings.events, MemoryEventStore):
            settings = dataclasses.replace(settings, events=worker.state.events)
        super().__init__(service, settings, revisions, background, quotas)
        self._session_type = SharedSession
        self._worker = worker
        self._store = worker.state.sessions
        self._events = settings.events
        self._idle = settings.limits.idle
        self._serials = itertools.count(1)
        worker.handler = self

    def background_work(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """See `HttpEndpoint`; also renews the records of used sessions."""
        return (*super().background_work(), self._keep_used)

    async def post(
        self,
        request: HttpRequest,
        message: jsonrpc.Message | None,
        messages: Sequence[jsonrpc.Message],
        body: bytes,
        receive: Receive,
        send: AsgiSend,
        session: HttpSession | None = None,
    ) -> None:
        """Respond to one POST; see `SessionEndpoint.post`."""
        if self.session_id_of(request) is not None:
            session = named = await self._load_named_session(request)
            try:
                messages = await self._route(named, messages, body)
            except SharedStateError as error:
                raise _refused(error) from None
            if not messages:
                await HttpResponse(named.revision.facts.http.accepted).send(send)
                return
        waiting = super().post(request, message, messages, body, receive, send, session)
        if waiting is not None:
            await waiting

    async def get(self, request: HttpRequest, receive: Receive, send: AsgiSend) -> None:
        """Open a stream of the session, or resume one."""
        session = await self._load_named_session(request)
        resumed = request.field(self._facts.headers.last_event_id)
        if resumed is None and request.accepts_events:
            try:
                await session.listen()
            except SharedStateError as error:
                raise _refused(error) from None
        try:
            await super().get(request, receive, send)
        finally:
            with anyio.move_on_after(PARTING_SECONDS, shield=True):
                await session.stop_listening()

    async def delete(self, request: HttpRequest, send: AsgiSend) -> None:
        """End the session at all workers."""
        session = await self._load_named_session(request)
        session.is_ended = True
        try:
            await self._store.end(session.id)
            if self._events is not None:
                await self._events.discard(session.id)
            await self._worker.publish(SessionChanged(self._worker.id, session.id))
        except SharedStateError:
            raise Refused(http_response.unavailable(_UNREACHABLE)) from None
        await super().delete(request, send)

    async def handle_letter(self, letter: SessionLetter) -> None:
        """Handle a message of another worker about a session of this worker."""
        session = self.registry.get(letter.session)
        if isinstance(letter, StreamFollowed):
            await self._handle_followed(session, letter)
        elif not isinstance(session, SharedSession):
            return
        elif isinstance(letter, ServerMessage):
            await HttpSession.send_unrelated(session, letter.body)
        elif isinstance(letter, ClientMessage):
            parse_batch, body = self.settings.parse_batch, letter.body
            is_batch = parse_batch is not None and jsonrpc.is_batch(body)
            messages = parse_batch(body) if parse_batch and is_batch else (jsonrpc.parse(body),)
            await self._handle_client_messages(session, messages)
        elif isinstance(letter, CallCancelled):
            params = Raw(msgspec.json.encode({_CANCELLED_ID: letter.request}))
            await self._handle_client_messages(session, [jsonrpc.Notification(CANCELLED, params)])
        elif letter.origin == self._worker.id:
            return
        elif isinstance(letter, StreamTaken):
            await session.hand_over_stream(letter.stream)
        else:
            await self._reload_session(session)

    async def _handle_followed(self, session: HttpSession | None, letter: StreamFollowed) -> None:
        """Record that a client reads a stream; end the stream if nothing writes it any more."""
        stream = session.named.get(letter.stream) if isinstance(session, SharedSession) else None
        if stream is not None:
            stream.followed_until = anyio.current_time() + FOLLOWED_SECONDS
        elif self._events is not None:
            await self._events.finish(letter.session, letter.stream, letter.failure)

    async def reload(self) -> None:
        """Reload the records of all local sessions, and end sessions without a record."""
        for session in self.registry.all():
            if isinstance(session, SharedSession):
                await self._reload_session(session)

    def _session_of(self, connection: HandshakeConnection, network: str) -> HttpSession:
        session = super()._session_of(connection, network)
        assert isinstance(session, SharedSession)
        session.owner = self._owner()
        session.begin(self._worker, connection, next(self._serials))
        return session

    async def _register(self, session: HttpSession, body: bytes) -> None:
        await super()._register(session, body)
        assert isinstance(session, SharedSession)
        try:
            await self._store.create(session.id, session.record, self._idle)
            session.is_stored = True
        except SharedStateError as error:
            await self.registry.end(session)
            raise _refused(error) from None
        except ValueError as error:
            await self.registry.end(session)
            status = session.revision.facts.http.rejected
            raise Refused(http_response.refusal(status, str(error))) from None

    async def client_of(self, identifier: str) -> PendingRequests | None:
        """The requests to the client of a session; see `SharedSessions`."""
        try:
            session = await self._load_session(identifier, "")
        except Refused:
            return None
        return session.peer.callers

    async def _load_named_session(self, request: HttpRequest) -> SharedSession:
        """The session that a request names, with its current record."""
        self.check_version(request)
        identifier = self.session_id_of(request)
        try:
            if identifier is None:
                raise Refused(self._missing_session())
            session = await self._load_session(identifier, network_of(request.client))
        except SharedStateError as error:
            raise _refused(error) from None
        NETWORK.set(session.network)  # whose share tasks take
        return session

    async def _load_session(self, identifier: str, network: str) -> SharedSession:
        """A session of the current principal, with its current record."""
        record = None
        # Not typed: `isinstance` on a class of a protocol would cost a microsecond per call.
        session: Any = self.registry.get(identifier)
        if not self._worker.beaten.is_set():
            with anyio.move_on_after(WAIT_SECONDS):
                await self._worker.beaten.wait()
        if len(identifier) <= _ID_CHARACTERS:
            record = await self._store.load(identifier, self._idle, _long_record(session))
        session = self.registry.get(identifier)  # it may have ended meanwhile, or been added
        if record is None and session is not None:
            await self._end_session(session)
        if record is None or record.owner != self._owner() or record.revision not in self.revisions:
            raise Refused(http_response.unknown_session(self._facts.http.unknown_session))
        if session is None:
            return await self._add_session(identifier, record, network)
        self.registry.touch(session)
        session.apply_record(record)
        shared: SharedSession = session
        return shared

    async def _add_session(
        self, identifier: str, record: SessionRecord, network: str
    ) -> SharedSession:
        """Create a local session from the record of another worker."""
        connection = self._connection(lasts=True)
        revision = self.revisions[record.revision]
        connection.assume_session(Session(revision, {}, record.capabilities, record.info), "")
        session = self._session_of(connection, network)
        assert isinstance(session, SharedSession)
        session.id = session.session_id = identifier
        session.is_stored = True
        session.record = replace(session.record, version=0)
        session.apply_record(record)
        await session.reserve_initialize(_size_of(record))
        added = self.registry.get(identifier)
        if added is not None:  # another request added it meanwhile
            session.release_memory(session.kept)
            assert isinstance(added, SharedSession)
            return added
        try:
            await self.registry.add(session)
        except Refused:
            session.release_memory(session.kept)
            raise
        return session

    async def _reload_session(self, session: SharedSession) -> None:
        if not session.is_stored:
            return
        record = await self._store.load(session.id, self._idle, _long_record(session))
        if record is None:
            await self._end_session(session)
        else:
            session.apply_record(record)
            await session.follow_listener()

    async def _end_session(self, session: SharedSession) -> None:
        """End the local part of a session that has ended for all workers."""
        session.is_ended = True
        await self.registry.end(session)

    async def _route(
        self, session: SharedSession, messages: Sequence[jsonrpc.Message], body: bytes
    ) -> Sequence[jsonrpc.Message]:
        """Forward messages about calls of other workers; returns the remaining messages."""
        own: list[jsonrpc.Message] = []
        begun = {each.id for each in messages if isinstance(each, jsonrpc.Request)}
        for message in messages:
            is_elsewhere, worker = self._locate_call(session, message, begun)
            if is_elsewhere:
                if worker is None:
                    cancelled = _cancelled_id(message)
                    assert cancelled is not None
                    await self._worker.publish(CallCancelled(session.id, cancelled))
                else:
                    data = body if len(messages) == 1 else _encode_message(message)
                    letter = ClientMessage(session.id, data)
                    await self._worker.send(worker, letter, session.record.client)
            if not is_elsewhere or isinstance(message, jsonrpc.InvalidMessage):
                own.append(message)  # this worker refuses an invalid message too
        return own

    def _locate_call(
        self,
        session: SharedSession,
        message: jsonrpc.Message,
        begun: Collection[RequestId] = (),
    ) -> tuple[bool, str | None]:
        """Whether a message concerns a call of another worker, and the worker if known."""
        identifier: RequestId | None = None
        if isinstance(message, jsonrpc.Notification):
            if message.method == CANCELLED:
                cancelled = _cancelled_id(message)
                if cancelled is None or cancelled in begun:
                    return False, None
                return cancelled not in session.peer.connection.state.inbound, None
            if message.method == PROGRESS:
                identifier = _read_id(message.params, PROGRESS_TOKEN)
        elif not isinstance(message, jsonrpc.Request):
            identifier = message.id
        if not isinstance(identifier, str) or SEPARATOR not in identifier:
            return False, None
        worker = identifier.partition(SEPARATOR)[0]
        return worker != self._worker.id, worker

    async def _handle_client_messages(
        self, session: SharedSession, messages: Sequence[jsonrpc.Message]
    ) -> None:
        """Handle those messages that another worker has received which are about local calls."""
        connection = session.peer.connection
        for message in messages:
            if not _concerns_calls(message) or self._locate_call(session, message)[0]:
                continue
            for event in connection.receive(message, anyio.current_time()):
                if not isinstance(event, Send):
                    await session.peer.handle(event)

    async def _keep_used(self) -> None:
        """Touch the records of sessions with connections, until cancelled."""
        while self._idle is not None:
            await anyio.sleep(self._idle / _TOUCHES)
            for session in self.registry.all():
                if session.users:
                    try:
                        await self._store.touch(session.id, self._idle)
                    except SharedStateError as error:
                        logger.debug("%s", error)
                        break

    def _owner(self) -> Identity | None:
        return PRINCIPAL.get().identity if self.settings.is_protected else None


def _concerns_calls(message: jsonrpc.Message) -> bool:
    """Whether a message concerns an open call, here or at another worker."""
    if isinstance(message, jsonrpc.Notification):
        return message.method in (CANCELLED, PROGRESS)
    return not isinstance(message, jsonrpc.Request)


def _cancelled_id(message: jsonrpc.Message) -> RequestId | None:
    """The id of the request that a cancellation names; `None` if it names none."""
    if not isinstance(message, jsonrpc.Notification):
        return None
    cancelled: RequestId | None = _read_id(message.params, _CANCELLED_ID)
    return cancelled


def _encode_message(message: jsonrpc.Message) -> bytes:
    """One of the messages of a batch: a response, or progress."""
    match message:
        case jsonrpc.Notification(method=method, params=params):
            return jsonrpc.encode_notification(method, params)
        case jsonrpc.Result(id=identifier, result=result):
            return encode(jsonrpc.ResultOut(result, identifier))
        case jsonrpc.Failure(id=identifier, code=code, message=text, data=data):
            return jsonrpc.encode_error(identifier, code, text, data)
        case jsonrpc.InvalidMessage(id=identifier, error=error):
            return jsonrpc.encode_error(identifier, error.code, error.message)
        case jsonrpc.Request():
            raise AssertionError("requests are served where they arrive")


def _refused(error: SharedStateError) -> Refused:
    full = isinstance(error, SharedStateFullError)
    return Refused(http_response.unavailable(str(error) if full else _UNREACHABLE))


def _long_record(session: SharedSession | None) -> SessionRecord | None:
    """The record of a session if it is so long that its version is checked before it is loaded."""
    if session is None or not session.is_stored or session.kept <= _LONG_RECORD:
        return None
    return session.record


def _size_of(record: SessionRecord) -> int:
    return len(msgspec.json.encode((record.capabilities, record.info)))


def _read_id(params: Raw | None, name: str) -> Any:
    """Read a member of the params of a notification that is an id; `None` otherwise."""
    try:
        members = msgspec.json.decode(params or b"{}")
    except UNREADABLE:
        return None
    return jsonrpc.read_id(members.get(name)) if is_object(members) else None
