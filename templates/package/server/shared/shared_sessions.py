"""The sessions of one worker, with records in a store that the workers share.

Changes of the record by a request are stored before its response is sent. Streams and calls belong
to the worker that has their connection; a message for the stream that the client opened by GET is
sent to the worker of the stream. A stream can be resumed at any worker; see `shared_streams`.

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
from ..asgi.exchange import PostResponse
from ..asgi.http_response import SseResponse
from ..asgi.resumable_stream import ResumableSession, ResumableStream
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
    StreamTaken,
)

logger = logging.getLogger(__name__)

_TRIES = 20  # most attempts to change a record that other workers change too


class SharedSession(ResumableSession):
    """A session at one worker. See `ResumableSession`.

    Attributes:
        worker: The worker.
        record: The record as last loaded or stored.
        is_stored: Whether the record was stored; `False` while the session is being opened.
        is_ended: Whether the session has ended for all workers.
        followed: The streams of other workers that the client reads at this worker, by name.
    """

    worker: SharedWorker
    record: SessionRecord
    stores = True
    is_stored = False
    is_ended = False
    followed: dict[str, FollowedStream]

    def begin(self, worker: SharedWorker, connection: HandshakeConnection, serial: int) -> None:
        """Set the worker, and treat the current state of the connection as stored.

        Args:
            worker: The worker.
            connection: The connection of the peer.
            serial: A number that no other session of the worker has.
        """
        self.worker = worker
        self._connection = connection
        self._prefix = f"{worker.id}{SEPARATOR}{serial}"
        # The id of a response then names the process that sent the request.
        connection.state.outbound.prefix = f"{self._prefix}{SEPARATOR}"
        self.followed = {}
        self._seen = self._negotiated
        self._storing = anyio.Lock()
        self.record = self._current_record()

    def apply_record(self, record: SessionRecord) -> None:
        """Apply the changes of other workers; keep local changes that are not stored yet."""
        before = self.record
        if record.version <= before.version:
            return
        session = self._negotiated
        is_stored = session is self._seen
        merged = merge_records(record, before, self._current_record())
        if (merged.revision, merged.capabilities, merged.info) != (
            session.revision.name,
            session.peer_capabilities,
            session.peer_info,
        ):
            revision = self.service.revisions[merged.revision]
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
        """Store local changes. A failure is logged, and the next message tries again."""
        if self.has_changed():
            async with self._storing:
                if self.has_changed():  # not stored by another message meanwhile
                    await self._store_record()

    def has_changed(self) -> bool:
        """Whether there are local changes that are not stored yet."""
        session, record = self._negotiated, self.record
        return (
            session is not self._seen
            or (session.state is State.READY) is not record.is_ready
            or session.confirmed is not record.is_confirmed
            or session.log_level != record.log_level
            or bool(session.subscriptions ^ record.subscriptions)
            or self.worker.rules_of(self._connection) != record.rules
        )

    def _current_record(self) -> SessionRecord:
        """A record of the local state of the session."""
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
            client=f"network {self.network}" if self.owner is None else repr(self.owner),
        )

    async def _store_record(self) -> None:
        session, before = self._negotiated, self.record
        ours = self._current_record()
        try:
            await self._change(lambda stored: merge_records(stored, before, ours))
        except SharedStateError as error:
            logger.warning("the change of a session is not stored yet: %s", error)
        else:
            self._seen = session

    async def listen(self) -> None:
        """Make this worker the sender of messages that belong to no request.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        if self.record.listener != self.worker.id:
            await self._change_listener(self.worker.id)

    async def stop_listening(self) -> None:
        """Let another worker send these messages, if this worker has no stream any more."""
        if self.record.listener == self.worker.id and not (self._held or self.over):
            try:
                await self._change_listener("", self.worker.id)
            except SharedStateError as error:
                logger.debug("%s", error)

    async def _change_listener(self, new: str, before: str | None = None) -> None:
        """Change the listener, if the stored listener is `before`; `None` accepts any."""

        def set_listener(stored: SessionRecord) -> SessionRecord:
            is_as_expected = before is None or stored.listener == before
            return replace(stored, listener=new) if is_as_expected else stored

        await self._change(set_listener)

    async def follow_listener(self) -> None:
        """Start or stop sending messages that belong to no request, as the record says.

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
        """Send announcements, unless another worker sends them."""
        super().start_announcing()
        if not self._is_listener:
            self.queue.hold()

    async def send(self, message: OutgoingMessage) -> None:
        """Send a message; local changes are stored before a response is sent."""
        if message.is_response:
            await self.store_changes()
        await super().send(message)

    async def send_unrelated(self, message: bytes) -> None:
        """Send a message that belongs to no request, through the worker that has a stream.

        Local changes are stored first: the client may send its next request to any worker.
        """
        await self.store_changes()
        if not await self._forward(message):
            await super().send_unrelated(message)

    async def follow(self, stored: StoredEvents, response: SseResponse) -> FollowedStream:
        """Let the client read a stream of another worker over a connection to this worker."""
        name, store = stored.stream, self._store
        stream = FollowedStream(self.id, name, store, False, self._retry, lambda _: ())
        self.followed[stream.name] = stream
        await stream.open(response)
        self._background.start_soon(self._follow, stream, stored)
        return stream

    async def _follow(self, stream: FollowedStream, stored: StoredEvents) -> None:
        await stream.follow(stored, self.worker, self.revision, self.record.client)
        if self.followed.get(stream.name) is stream:
            del self.followed[stream.name]

    async def take_over(self, stored: StoredEvents, response: SseResponse) -> ResumableStream:
        """Replace a stream that the client opened by GET at another worker by a local stream.

        Args:
            stored: The events of the stream after the last event that the client has.
            response: The connection.
        """
        if self._store is not None:
            await self._store.finish(self.id, stored.stream)
        stream = self.new_stream()
        await stream.open(response, stored=stored.events)
        self.listening.append(stream)
        return stream

    async def _continue(
        self, stored: StoredEvents, last_event_id: str, response: SseResponse
    ) -> ResumableStream | None:
        """Resume a stream on a connection of this worker, whichever worker writes the stream."""
        name = stored.stream
        own = self.named.get(name)
        if is_listening(name):
            await self.listen()
        if own is None or own.followed_until > anyio.current_time():
            await self.hand_over_stream(name)
            await self.worker.publish(StreamTaken(self.worker.id, self.id, name))
        if own is None and is_listening(name):
            return await self.take_over(stored, response)
        if own is None and not stored.over:
            return await self.follow(stored, response)
        return await super()._continue(stored, last_event_id, response)

    async def hand_over_stream(self, name: str) -> None:
        """Close the local connection of a stream that the client now reads at another worker."""
        followed, own = self.followed.pop(name, None), self.named.get(name)
        if followed is not None:
            followed.stop()
        if own is not None and is_listening(name):
            del self.named[name]
            self.streams.pop(own, None)
            own.stop()
        elif own is not None:
            await own.drop_connection()

    async def close(self) -> None:
        """End the local calls. Their streams end with an error, since no worker continues them.

        Other streams can be resumed at other workers, unless the session has ended.
        """
        if not (self.over or self.is_ended):
            for stream in [*self.named.values()]:
                failure = lost_message(stream.requests_of(stream), self.revision)
                if failure:
                    await stream.end(failure)
        await super().close()

    def _stream_name(self, number: int, response: PostResponse | None) -> str:
        """A name that begins with the id of this worker."""
        return stream_name(self._prefix, number, listening=response is None)

    async def _end_streams(self) -> None:
        """Send nothing more on the streams; their stored events remain for other workers."""
        for stream in (*self.streams, *self.followed.values()):
            stream.stop()
        self.streams.clear()
        self.named.clear()

    async def _forward_pending(self) -> None:
        """Forward messages that wait for a stream to the worker that has one."""
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
        letter = ServerMessage(self.id, message)
        return await self.worker.send(self.record.listener, letter, self.record.client)

    @property
    def _is_listener(self) -> bool:
        """Whether no other worker sends the messages that belong to no request."""
        return self.record.listener in ("", self.worker.id)

    async def _change(self, change: Callable[[SessionRecord], SessionRecord]) -> None:
        """Store a changed record; changes of other workers are kept."""
        store, stored = self.worker.state.sessions, self.record
        for _ in range(_TRIES):
            changed = replace(change(stored), version=stored.version + 1)
            if await store.change(self.id, changed):
                self.apply_record(changed)
                await self.worker.publish(SessionChanged(self.worker.id, self.id))
                return
            newest = await store.load(self.id, self.settings.limits.idle)
            if newest is None:
                return  # the session has ended; `SessionChanged` will arrive
            stored = newest
        raise SharedStateError(f"a session was changed by others {_TRIES} times in a row")
