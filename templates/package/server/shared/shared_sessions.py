"""Sessions that any worker serves, as one worker has them: records in a store that workers share.

What a request changes of the record is stored before its response is sent. Streams and calls live
in the worker that has their connection; a message for the stream that the client opened by GET is
sent to the worker of that. A stream can be resumed at any worker; see `shared_streams`.

Source: basic/transports#session-management (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
from msgspec.structs import replace

from ...channel import OutgoingMessage
from ...protocol.handshake import HandshakeConnection
from ...protocol.lifecycle import Session, State
from ..asgi.event_store import StoredEvents
from ..asgi.http_session import HttpSession
from ..asgi.response_writer import PostResponse, SseResponse
from ..asgi.resumable_stream import ResumableStream
from .bus import SharedStateError
from .session_store import SessionRecord, merge_records
from .shared_streams import (
    SEPARATOR,
    FollowedStream,
    is_listening,
    lost_message,
    stream_name,
)
from .worker import (
    ServerMessage,
    SessionChanged,
    SharedWorker,
)

logger = logging.getLogger(__name__)

_TRIES = 20  # to change a record that other workers change too


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

    def begin(self, worker: SharedWorker, connection: HandshakeConnection, serial: int) -> None:
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
