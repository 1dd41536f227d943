"""Sessions that any worker serves: records in a store that the workers share.

A worker that gets a request of a session loads its record, makes a session of it unless it has one,
and serves the request. What a request changes of the record is stored before its response is sent.
Streams and calls live in the worker that has their connection. What concerns them is sent there: a
response of the client by the id of the request, which begins with that of the worker; a
cancellation to all; a message for the stream that the client opened by GET to the worker of that.

A stream can be resumed at any worker; see `shared_streams`. A worker that ends, or has no room,
releases sessions; only their client and time end them.

Source: basic/transports#session-management (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import anyio
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..._wire import UNREADABLE, is_object
from ...channel import OutgoingMessage, RequestId
from ...facts import Revisions
from ...protocol import jsonrpc
from ...protocol.lifecycle import Session, State
from ...protocol.receiver import Send
from ...protocol.requests import CANCELLED, PROGRESS, PROGRESS_TOKEN
from ...protocol.server_connection import ServerConnection
from ...runtime.pending_requests import PARTING_SECONDS, PendingRequests
from ...runtime.request_context import PRINCIPAL, Identity
from ...runtime.task_scope import TaskScope
from ..asgi import http_response
from ..asgi import request as http
from ..asgi.event_store import MemoryEventStore, StoredEvents
from ..asgi.http_response import HttpResponse
from ..asgi.http_session import HttpSession
from ..asgi.quotas import Quotas
from ..asgi.response_writer import PostResponse, SseResponse
from ..asgi.resumable_stream import ResumableStream
from ..asgi.session_endpoint import CheckDraft, SessionEndpoint
from ..asgi.settings import ServerHttpSettings
from ..serving import Service
from .bus import WAIT_SECONDS, SharedStateError
from .session_store import SessionRecord, merge_records
from .shared_streams import (
    FOLLOWED_SECONDS,
    SEPARATOR,
    FollowedStream,
    is_listening,
    lost_message,
    stream_name,
)
from .worker import (
    ClientMessage,
    ServerMessage,
    SessionChanged,
    SessionLetter,
    SharedWorker,
    StreamFollowed,
    StreamTaken,
)

logger = logging.getLogger(__name__)

_TRIES = 20  # to change a record that other workers change too
_ID_CHARACTERS = 128  # of a session id that is looked for
_TOUCHES = 3  # of a session in use, while it could be idle once

_UNREACHABLE = "the state that the processes of this server share can't be had now"


class SharedSession(HttpSession):
    """A session as one worker has it. See `HttpSession`.

    Attributes:
        worker: The worker.
        record: The record as it was loaded or stored last.
        is_stored: Whether its record was stored; one that is being opened has none yet.
        is_ended: Whether it has ended for all workers.
        followed: The streams of other workers that its client reads here, by name.
    """

    worker: SharedWorker
    record: SessionRecord
    is_stored = False
    is_ended = False
    followed: dict[str, FollowedStream]

    def begin(self, worker: SharedWorker, connection: ServerConnection, serial: int) -> None:
        """Name its worker, and take the state of its connection for what is stored.

        Args:
            worker: The worker.
            connection: That of its peer.
            serial: A number that no other session of the worker has.
        """
        self.worker = worker
        self._connection = connection
        self._prefix = f"{worker.id}{SEPARATOR}{serial}"
        connection.prefix_requests(f"{self._prefix}{SEPARATOR}")
        self.followed = {}
        self._seen = self._negotiated
        self._storing = anyio.Lock()
        self.record = self._record_here()

    def take_record(self, record: SessionRecord) -> None:
        """Take over what other workers have changed, and leave what is not stored yet."""
        before = self.record
        if record.version <= before.version:
            return
        session = self._negotiated
        is_stored = session is self._seen
        merged = merge_records(record, before, self._record_here())
        if (merged.revision, merged.capabilities, merged.info) != (
            session.revision.name,
            session.peer_capabilities,
            session.peer_info,
        ):
            revision = self._service.revisions[merged.revision]
            session = Session(revision, {}, merged.capabilities, merged.info)
            self._connection.assume_session(session, "")
        session.state = State.READY if merged.is_ready else State.ANSWERED
        session.confirmed = merged.is_confirmed
        session.log_level = merged.log_level
        session.subscriptions = set(merged.subscriptions)
        self.worker.replace_rules(self._connection, merged.rules)
        if is_stored:
            self._seen = session
        self.record = record
        self.count_subscriptions(0)

    async def store_changes(self) -> None:
        """Store what messages have changed. A failure is logged: the next message tries again."""
        if self.has_changed():
            async with self._storing:
                if self.has_changed():  # and another message has not stored it meanwhile
                    await self._store_all()

    def has_changed(self) -> bool:
        """Whether messages have changed what is not stored yet."""
        session, record = self._negotiated, self.record
        return (
            session is not self._seen
            or (session.state is State.READY) is not record.is_ready
            or session.confirmed is not record.is_confirmed
            or session.log_level != record.log_level
            or bool(session.subscriptions ^ record.subscriptions)
            or self.worker.rules_of(self._connection) != record.rules
        )

    def _record_here(self) -> SessionRecord:
        """The record of the session as it is here."""
        session = self._negotiated
        return SessionRecord(
            revision=session.revision.name,
            capabilities=session.peer_capabilities,
            info=session.peer_info,
            owner=self.owner,
            is_ready=session.state is State.READY,
            is_confirmed=session.confirmed,
            log_level=session.log_level,
            subscriptions=frozenset(session.subscriptions),
            rules=self.worker.rules_of(self._connection),
        )

    async def _store_all(self) -> None:
        session, before = self._negotiated, self.record
        ours = self._record_here()
        try:
            await self._change(lambda stored: merge_records(stored, before, ours))
        except SharedStateError as error:
            logger.warning("the change of a session is not stored yet: %s", error)
        else:
            self._seen = session

    async def listen(self) -> None:
        """Have messages that belong to no request sent by this worker, and no other.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        if self.record.listener != self.worker.id:
            await self._change_listener(self.worker.id)

    async def stop_listening(self) -> None:
        """Let another worker send them, if this one has no stream any more."""
        if self.record.listener == self.worker.id and not (self._held or self.over):
            try:
                await self._change_listener("", self.worker.id)
            except SharedStateError as error:
                logger.debug("%s", error)

    async def _change_listener(self, new: str, before: str | None = None) -> None:
        """Change the listener, if it is the one before as well when the record is stored."""

        def changed(stored: SessionRecord) -> SessionRecord:
            is_as_expected = before is None or stored.listener == before
            return replace(stored, listener=new) if is_as_expected else stored

        await self._change(changed)

    async def follow_listener(self) -> None:
        """Take over what the listener's worker sends, or leave it to that, as the record says.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        if self._held and not self.record.listener:
            await self._change_listener(self.worker.id, "")  # unless a newer stream is elsewhere
        if self._held and self._is_listener:
            self.queue.send_by(self._background.start_together)
        else:
            self.queue.hold()
        await self._forward_pending()

    def start_announcing(self) -> None:
        """Send announcements, unless another worker does."""
        super().start_announcing()
        if not self._is_listener:
            self.queue.hold()

    async def send(self, message: OutgoingMessage) -> None:
        """Store what a request has changed before its response is sent."""
        if message.is_response:
            await self.store_changes()
        await super().send(message)

    async def send_unrelated(self, message: bytes) -> None:
        """Send a message that belongs to no request by the worker that has a stream for it.

        What a request has changed is stored before that: the client may ask for it anywhere.
        """
        await self.store_changes()
        if not await self._forward(message):
            await super().send_unrelated(message)

    async def follow(self, stored: StoredEvents, response: SseResponse) -> FollowedStream:
        """Have the client read a stream of another worker by a connection here."""
        retry = self._settings.retry
        stream = FollowedStream(self.id, stored.stream, self._store, False, retry, lambda: ())
        self.followed[stream.name] = stream
        await stream.open(response)
        self._background.start_soon(self._follow, stream, stored)
        return stream

    async def _follow(self, stream: FollowedStream, stored: StoredEvents) -> None:
        await stream.follow(stored, self.worker, self.revision)
        if self.followed.get(stream.name) is stream:
            del self.followed[stream.name]

    async def take_over(self, stored: StoredEvents, response: SseResponse) -> ResumableStream:
        """Continue a stream that the client opened by GET at another worker by one of this worker.

        Args:
            stored: Its events after the last one that the client has.
            response: The connection.
        """
        if self._store is not None:
            await self._store.finish(self.id, stored.stream)
        stream = self.new_stream()
        self.add_listening(stream)
        await stream.open(response, before=stored.events)
        return stream

    async def lose_stream(self, name: str) -> None:
        """Close the connection of a stream, which the client reads by another worker now."""
        followed, own = self.followed.pop(name, None), self.streams.get(name)
        if followed is not None:
            followed.stop()
        if own is not None and is_listening(name):
            del self.streams[name]
            own.stop()
        elif own is not None:
            await own.drop_connection()

    async def close(self) -> None:
        """End the calls here; their streams end with an error, since no worker goes on with them.

        Other streams can be resumed at other workers, unless the session has ended.
        """
        if not (self.over or self.is_ended):
            for stream in [*self.streams.values()]:
                failure = lost_message(stream.requests(), self.revision)
                if failure:
                    await stream.put(failure, is_last=True)
        await super().close()

    def _stream_name(self, number: int, carrier: PostResponse | None) -> str:
        """A name that begins with this worker."""
        return stream_name(self._prefix, number, listening=carrier is None)

    async def _end_streams(self) -> None:
        """Send nothing more on the streams, and leave what is stored of them to other workers."""
        for stream in (*self.streams.values(), *self.followed.values()):
            stream.stop()
        self.streams.clear()

    async def _forward_pending(self) -> None:
        """Give messages that wait for a stream to the worker that has one now."""
        while self._pending and not self.over:
            message = self._pending.pop(0)
            if not await self._forward(message):
                self._pending.insert(0, message)
                return
            self._pending_size -= len(message)
            self.release_memory(len(message))

    async def _forward(self, message: bytes) -> bool:
        if self.over or self._is_listener:
            return False
        return await self.worker.send(self.record.listener, ServerMessage(self.id, message))

    @property
    def _is_listener(self) -> bool:
        """Whether no other worker sends what belongs to no request."""
        return self.record.listener in ("", self.worker.id)

    async def _change(self, change: Callable[[SessionRecord], SessionRecord]) -> None:
        """Store a changed record; a change of another worker in between is kept."""
        store, stored = self.worker.state.sessions, self.record
        for _ in range(_TRIES):
            changed = replace(change(stored), version=stored.version + 1)
            if await store.change(self.id, changed):
                self.take_record(changed)
                await self.worker.publish(SessionChanged(self.worker.id, self.id))
                return
            newest = await store.load(self.id, self._settings.limits.idle)
            if newest is None:
                return  # it has ended, and its end is on its way
            stored = newest
        raise SharedStateError(f"a session was changed by others {_TRIES} times in a row")


class SharedEndpoint(SessionEndpoint):
    """Serves the revisions with sessions, whose records the workers share.

    Args:
        worker: The worker that serves. The other arguments are those of `SessionEndpoint`.
    """

    session_type = SharedSession

    def __init__(
        self,
        service: Service,
        settings: ServerHttpSettings,
        revisions: Revisions,
        background: TaskScope,
        quotas: Quotas,
        check_draft: CheckDraft | None,
        worker: SharedWorker,
    ) -> None:
        if isinstance(settings.events, MemoryEventStore):
            settings = dataclasses.replace(settings, events=worker.state.events)
        super().__init__(service, settings, revisions, background, quotas, check_draft)
        self._worker = worker
        self._store = worker.state.sessions
        self._events = settings.events
        self._idle = settings.limits.idle
        self._protected = settings.auth is not None
        self._serials = itertools.count(1)
        worker.handler = self

    async def watch(self) -> None:
        """Keep sessions in use, and watch as `SessionEndpoint.watch` does."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(super().watch)
            if self._idle is not None:
                tasks.start_soon(self._keep_used, self._idle / _TOUCHES)

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
        """Respond to one POST; see `SessionEndpoint.post`."""
        if self.named_session(request) is not None:
            session = request.session or await self._adopt(request)
            if isinstance(session, SharedSession):
                self.posts.observe(session)  # what is cancelled may be one of these calls
                try:
                    own = await self._route(session, messages, body)
                except SharedStateError:
                    session = http_response.unavailable(_UNREACHABLE)
                else:
                    if not own:
                        session = HttpResponse(session.revision.facts.http.accepted)
                    messages = own
        await super().post(request, message, messages, body, receive, send, scope, session)

    async def get(self, request: http.HttpRequest, receive: http.Receive, send: http.Send) -> None:
        """Open a stream of the session, or resume one."""
        session = await self._adopt(request)
        resumed = request.field(self._facts.headers.last_event_id)
        is_new = resumed is None and http.check_events(request) is None
        if isinstance(session, SharedSession) and is_new:
            try:
                await session.listen()
            except SharedStateError:
                session = http_response.unavailable(_UNREACHABLE)
        if isinstance(session, HttpResponse):
            await session.send(send)
            return
        assert isinstance(session, SharedSession)
        try:
            await super().get(request, receive, send)
        finally:
            with anyio.move_on_after(PARTING_SECONDS, shield=True):
                await session.stop_listening()

    async def _continue(
        self, session: HttpSession, stored: StoredEvents, last_event_id: str, response: SseResponse
    ) -> ResumableStream | None:
        """The stream of events, resumed here, whichever worker writes it.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        assert isinstance(session, SharedSession)
        name = stored.stream
        own = session.streams.get(name)
        if is_listening(name):
            await session.listen()
        if own is None or own.followed_until > anyio.current_time():
            await session.lose_stream(name)
            await self._worker.publish(StreamTaken(self._worker.id, session.id, name))
        if own is None and is_listening(name):
            return await session.take_over(stored, response)
        if own is None and not stored.over:
            return await session.follow(stored, response)
        return await super()._continue(session, stored, last_event_id, response)

    async def delete(self, request: http.HttpRequest, send: http.Send) -> None:
        """End the session, whichever workers have it."""
        session = await self._adopt(request)
        if isinstance(session, SharedSession):
            session.is_ended = True
            try:
                await self._store.end(session.id)
                if self._events is not None:
                    await self._events.discard(session.id)
                await self._worker.publish(SessionChanged(self._worker.id, session.id))
            except SharedStateError:
                session = http_response.unavailable(_UNREACHABLE)
        if isinstance(session, HttpResponse):
            await session.send(send)
        else:
            await super().delete(request, send)

    async def take(self, letter: SessionLetter) -> None:
        """Handle what another worker says of a session, if this one has it."""
        session = self.registry.get(letter.session)
        if session is not None:
            self.posts.observe(session)  # as for a message of its client
        if isinstance(letter, StreamFollowed):
            await self._take_followed(session, letter)
        elif not isinstance(session, SharedSession):
            return
        elif isinstance(letter, ServerMessage):
            await HttpSession.send_unrelated(session, letter.body)
        elif isinstance(letter, ClientMessage):
            await self._take_from_client(session, letter.body)
        elif letter.origin == self._worker.id:
            return
        elif isinstance(letter, StreamTaken):
            await session.lose_stream(letter.stream)
        else:
            await self._load_again(session)

    async def _take_followed(self, session: HttpSession | None, letter: StreamFollowed) -> None:
        """Count the client of a stream as there; end a stream that is not written any more."""
        stream = None if session is None else session.streams.get(letter.stream)
        if stream is not None:
            stream.followed_until = anyio.current_time() + FOLLOWED_SECONDS
        elif self._events is not None:
            await self._events.finish(letter.session, letter.stream, letter.failure)

    async def reload(self) -> None:
        """Load the records of all sessions here; those that have none have ended."""
        for session in self.registry.all():
            if isinstance(session, SharedSession):
                await self._load_again(session)

    def load(self, request: http.HttpRequest) -> Awaitable[HttpSession | HttpResponse] | None:
        """Loads the record of the session that a POST names, unless that was done."""
        if self._session_key not in request.headers or request.session is not None:
            return None
        return self._adopt(request)

    def _plain_session(self, request: http.HttpRequest) -> HttpSession | None:
        """The session of a POST for which its record was loaded, if all changes are stored."""
        session = request.session
        if session is None or isinstance(session, HttpResponse) or session.has_changed():
            return None
        return super()._plain_session(request)

    def _session_of(self, connection: ServerConnection, network: str) -> HttpSession:
        session = super()._session_of(connection, network)
        assert isinstance(session, SharedSession)
        session.owner = self._owner()
        session.begin(self._worker, connection, next(self._serials))
        return session

    async def _register(self, session: HttpSession, body: bytes) -> HttpResponse | None:
        refused = await super()._register(session, body)
        if refused is not None:
            return refused
        assert isinstance(session, SharedSession)
        try:
            await self._store.create(session.id, session.record, self._idle)
            session.is_stored = True
        except SharedStateError:
            refused = http_response.unavailable(_UNREACHABLE)
        except ValueError as error:
            refused = http_response.refusal(session.revision.facts.http.rejected, str(error))
        if refused is not None:
            await self.registry.end(session)
        return refused

    async def client_of(self, identifier: str) -> PendingRequests | None:
        """Sends to the client of a session; see `SharedSessions`."""
        session = await self._find(identifier, "")
        return session.peer.callers if isinstance(session, HttpSession) else None

    async def _adopt(self, request: http.HttpRequest) -> HttpSession | HttpResponse:
        """The session that a request names, as its record is now; or the refusal."""
        identifier = self.named_session(request)
        refused = self.check_version(request)
        if refused is not None or identifier is None:
            return refused or self._session(request)
        try:
            return await self._find(identifier, http.network_of(request.client))
        except SharedStateError:
            return http_response.unavailable(_UNREACHABLE)

    async def _find(self, identifier: str, network: str) -> HttpSession | HttpResponse:
        """A session of the current principal, as its record is now; or the refusal.

        Args:
            identifier: Its id.
            network: See `HttpSession`, for one that this worker does not have yet.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        record = None
        if not self._worker.beaten.is_set():
            with anyio.move_on_after(WAIT_SECONDS):
                await self._worker.beaten.wait()
        if len(identifier) <= _ID_CHARACTERS:
            record = await self._store.load(identifier, self._idle)
        # To check its class, that of a protocol, would cost a microsecond of each call.
        session: Any = self.registry.get(identifier)
        if record is None and session is not None:
            await self._end(session)
        if record is None or record.owner != self._owner() or record.revision not in self.revisions:
            return http_response.unknown_session(self._facts.http.unknown_session)
        if session is None:
            return await self._add_session(identifier, record, network)
        self.registry.touch(session)
        session.take_record(record)
        adopted: SharedSession = session
        return adopted

    async def _add_session(
        self, identifier: str, record: SessionRecord, network: str
    ) -> HttpSession | HttpResponse:
        """A session of a record that another worker has stored; or the refusal."""
        connection = self._connection(lasts=True)
        revision = self.revisions[record.revision]
        connection.assume_session(Session(revision, {}, record.capabilities, record.info), "")
        session = self._session_of(connection, network)
        assert isinstance(session, SharedSession)
        session.id = session.session_id = identifier
        session.is_stored = True
        session.record = replace(session.record, version=0)
        session.take_record(record)
        if not await session.reserve_initialize(_size_of(record)):
            return http_response.over_limit("session_bytes")
        added = self.registry.get(identifier)
        if added is not None:  # by another request meanwhile
            session.release_memory(session.kept)
            return added
        if not await self.registry.add(session):
            session.release_memory(session.kept)
            return http_response.over_limit("sessions")
        return session

    async def _load_again(self, session: SharedSession) -> None:
        if not session.is_stored:
            return
        record = await self._store.load(session.id, self._idle)
        if record is None:
            await self._end(session)
        else:
            session.take_record(record)
            await session.follow_listener()

    async def _end(self, session: SharedSession) -> None:
        """End what is here of a session that has ended for all workers."""
        self.posts.observe(session)
        session.is_ended = True
        await self.registry.end(session)

    async def _route(
        self, session: SharedSession, messages: Sequence[jsonrpc.Message], body: bytes
    ) -> Sequence[jsonrpc.Message]:
        """Send what concerns calls of other workers there; gives the messages that do not.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        own: list[jsonrpc.Message] = []
        workers: set[str | None] = set()
        begun = {each.id for each in messages if isinstance(each, jsonrpc.Request)}
        for message in messages:
            is_elsewhere, worker = self._place_of(session, message, begun)
            if is_elsewhere:
                workers.add(worker)
            if not is_elsewhere or isinstance(message, jsonrpc.InvalidMessage):
                own.append(message)  # one that is invalid is refused here too
        letter = ClientMessage(session.id, body)
        for worker in workers:
            if worker is None:
                await self._worker.publish(letter)
            else:
                await self._worker.send(worker, letter)
        return own if workers else messages

    def _place_of(
        self,
        session: SharedSession,
        message: jsonrpc.Message,
        begun: Collection[RequestId] = (),
    ) -> tuple[bool, str | None]:
        """Whether a message concerns a call of another worker, and which one if that is known.

        Args:
            session: The session.
            message: The message.
            begun: Ids of requests that came with it.
        """
        identifier: RequestId | None = None
        if isinstance(message, jsonrpc.Notification):
            if message.method == CANCELLED:
                cancelled = _member(message.params, "requestId")
                is_here = session.peer.connection.is_open(cancelled) or cancelled in begun
                return not is_here, None
            if message.method == PROGRESS:
                identifier = _member(message.params, PROGRESS_TOKEN)
        elif not isinstance(message, jsonrpc.Request):
            identifier = message.id
        if not isinstance(identifier, str) or SEPARATOR not in identifier:
            return False, None
        worker = identifier.partition(SEPARATOR)[0]
        return worker != self._worker.id, worker

    async def _take_from_client(self, session: SharedSession, body: bytes) -> None:
        """Handle what concerns calls here in a body that another worker has received."""
        connection = session.peer.connection
        for message in jsonrpc.parse_messages(body):
            if not _concerns_calls(message) or self._place_of(session, message)[0]:
                continue
            for event in connection.receive_message(message, anyio.current_time()):
                if not isinstance(event, Send):
                    await session.peer.handle(event)

    async def _keep_used(self, seconds: float) -> None:
        """Touch the records of sessions with connections, until cancelled."""
        while True:
            await anyio.sleep(seconds)
            for session in self.registry.all():
                if session.users:
                    try:
                        await self._store.touch(session.id, self._idle)
                    except SharedStateError as error:
                        logger.debug("%s", error)
                        break

    def _owner(self) -> Identity | None:
        return PRINCIPAL.get().identity if self._protected else None


def _concerns_calls(message: jsonrpc.Message) -> bool:
    """Whether a message concerns an open call, here or at another worker."""
    if isinstance(message, jsonrpc.Notification):
        return message.method in (CANCELLED, PROGRESS)
    return not isinstance(message, jsonrpc.Request)


def _size_of(record: SessionRecord) -> int:
    return len(msgspec.json.encode((record.capabilities, record.info)))


def _member(params: Raw | None, name: str) -> Any:
    """A member of the params of a notification, if that is an id; `None` otherwise."""
    try:
        members = msgspec.json.decode(params or b"{}")
    except UNREADABLE:
        return None
    return jsonrpc.read_id(members.get(name)) if is_object(members) else None
