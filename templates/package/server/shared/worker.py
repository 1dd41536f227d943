"""One of the processes that serve together: its messages to the others, and their messages to it.

    Announcer -> publish ->  the bus  -> changes -> the clients that this worker serves
    a session's record has changed    -> changes -> the session, if this worker has it
    a message for one worker -> send  -> receive -> the session of the message

Changes at this worker are announced to its own clients at once, to other clients through the bus.
An unreachable engine delays announcements; after a gap, everything is announced as changed.

Messages name what they are about and carry no more than that, since all workers read all changes;
only a response, and a message to a client, is sent whole, to the one worker that it concerns. A
message of another form is skipped, with a line in the log, and a reader that fails begins again.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeAlias

import anyio
import anyio.from_thread
import anyio.lowlevel
import msgspec

from ..._wire import UNREADABLE
from ...channel import Channel, OutgoingMessage, RequestId
from ...errors import ConnectionClosedError, EndOfChannel, InvalidParamsError
from ...facts import Revision
from ...protocol.connection import Connection
from ...protocol.lifecycle import Session
from ...protocol.requests import RESOURCE_UPDATED
from ...runtime.pending_requests import PendingRequests
from ..serving import Service
from .bus import Bus, SharedStateError
from .session_store import SharedRule
from .state import SharedState, state_of

logger = logging.getLogger(__name__)

_ID_BYTES = 6
_RETRY_SECONDS = 0.5  # between two attempts to reach the engine
_FAILURE_SECONDS = 5.0  # after a failure that should not happen
_FOREIGN_SECONDS = 10.0  # between two lines in the log about messages of another form
_MOST_PENDING = 1000  # announcements to be published; the oldest are dropped

LISTS = {name: f"notifications/{name}/list_changed" for name in ("tools", "prompts", "resources")}
"""The notifications that a list has changed, by the name of the list."""


class Announcement(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A notification to all clients that subscribed to its kind.

    Attributes:
        origin: The worker that has notified its own clients; empty for a process without clients.
        name: The method of the notification.
        params: The params of the notification; of one about a subject only those that name it: a
            worker that has a subscribed client loads the others.
        subject: See `Announcer.announce`.
    """

    origin: str
    name: str
    params: Mapping[str, Any] | None = None
    subject: str | None = None


class SessionChanged(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The record of a session has changed or was deleted.

    Attributes:
        origin: The worker that has changed or deleted the record.
        session: Id of the session.
    """

    origin: str
    session: str


class ClientMessage(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A response or progress of a client, for the worker that sent the request.

    Attributes:
        session: Id of the session.
        body: The message.
    """

    session: str
    body: bytes


class ServerMessage(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """A message to a client, for the worker that has a stream of the session.

    Attributes:
        session: Id of the session.
        body: The message.
    """

    session: str
    body: bytes


class StreamTaken(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A client now reads a stream over another connection.

    Attributes:
        origin: The worker that has the connection.
        session: Id of the session.
        stream: Name of the stream.
    """

    origin: str
    session: str
    stream: str


class StreamFollowed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A client reads a stream of the receiving worker through another worker.

    Attributes:
        session: Id of the session.
        stream: Name of the stream.
        failure: The last message of the stream, if the receiver does not write it any more.
    """

    session: str
    stream: str
    failure: bytes


class TaskChanged(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The record of a task has changed.

    Attributes:
        origin: The worker that has changed the record.
        task: Id of the task.
    """

    origin: str
    task: str


class CallCancelled(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """A client has cancelled a call that the worker which got the cancellation does not serve.

    Attributes:
        session: Id of the session.
        request: Id of the request.
    """

    session: str
    request: RequestId


SessionLetter: TypeAlias = (
    SessionChanged | ClientMessage | ServerMessage | StreamTaken | StreamFollowed | CallCancelled
)
Letter: TypeAlias = Announcement | TaskChanged | SessionLetter

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Letter).decode
_FORMAT = b"\x01"


class SharedSessions(Protocol):
    """The sessions that a worker has."""

    async def handle_letter(self, letter: SessionLetter) -> None:
        """Handle a message about a session that this worker serves."""
        ...

    async def reload(self) -> None:
        """Reload the records of all sessions."""
        ...

    async def client_of(self, identifier: str) -> PendingRequests | None:
        """The requests to the client of a session; `None` if the session has ended.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        ...


class SharedRules(Protocol):
    """The rules of all sessions for showing and hiding items of one server."""

    def of(self, connection: Connection) -> Sequence[tuple[frozenset[str], frozenset[str], bool]]:
        """The rules of a session; see `SharedRule`."""
        ...

    def replace(
        self,
        connection: Connection,
        new: Sequence[tuple[frozenset[str], frozenset[str], bool]],
    ) -> None:
        """Replace the rules of a session."""
        ...


class _NoClient(Channel):
    """The channel to a client that is gone."""

    async def receive(self) -> bytes:
        raise EndOfChannel("the client is gone")

    async def send(self, message: OutgoingMessage) -> None:
        raise ConnectionClosedError("the client is gone")

    async def close(self) -> None:
        pass


class SharedWorker:
    """A worker on one event loop.

    Args:
        service: The service of the server.
        state: The shared state.

    Attributes:
        id: The id of the worker: random letters and digits.
        state: As passed.
        handler: Handles messages about sessions; `None` if no sessions are shared.
        on_task_changed: Called with the id of a task whose record another worker has changed.
        load_subject: Loads the params of a notification about a subject that another worker has
            changed; `None` if the subject is gone.
        rules: The rules of sessions for showing and hiding items of each server.
        beaten: Set after the first `beat`, when others count this worker as alive.
        find_lost: Takes over tasks of workers that are gone; called repeatedly.
        is_reading: Whether the last attempt to read changes succeeded.
    """

    def __init__(self, service: Service, state: SharedState) -> None:
        self.id = secrets.token_hex(_ID_BYTES)
        self.state = state
        self.handler: SharedSessions | None = None
        self.on_task_changed: Callable[[str], None] | None = None
        self.load_subject: Callable[[str], Awaitable[Mapping[str, Any] | None]] | None = None
        self.find_lost: Callable[[], Awaitable[None]] | None = None
        self.is_reading = False
        self.rules: list[SharedRules] = []
        self.beaten = anyio.Event()
        self._service = service
        self._announcer = service.announcer
        for share in service.share:
            share(self)
        self._pending: dict[tuple[str, str], Announcement] = {}
        self._added = anyio.Event()
        self._foreign, self._foreign_until = 0, 0.0
        self._thread = threading.get_ident()
        self._token: Any = None

    async def run(self) -> None:
        """Keep the worker alive and exchange messages with other workers until cancelled."""
        self._thread, self._token = threading.get_ident(), anyio.lowlevel.current_token()
        async with self.state.opened(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._repeat, self._publish_pending)
            tasks.start_soon(self._repeat, self._read_changes)
            tasks.start_soon(self._repeat, self._read_inbox)
            if self.find_lost is not None:
                tasks.start_soon(self._repeat, partial(self._log_failures, self.find_lost))
            self._announcer.followers.append(self._on_announcement)
            try:
                await anyio.sleep_forever()
            finally:
                self._announcer.followers.remove(self._on_announcement)

    async def publish(self, letter: Letter) -> None:
        """Send a message to all workers, including this worker.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        await self.state.bus.publish(_FORMAT + _encode(letter))

    def rules_of(self, connection: Connection) -> tuple[SharedRule, ...]:
        """The rules of the session of a connection for showing and hiding items."""
        return tuple(
            (number, *rule)
            for number, each in enumerate(self.rules)
            for rule in each.of(connection)
        )

    def replace_rules(self, connection: Connection, rules: Sequence[SharedRule]) -> None:
        """Replace the rules of a session by those of its record."""
        for number, each in enumerate(self.rules):
            new = [rule[1:] for rule in rules if rule[0] == number]
            if new or each.of(connection):
                each.replace(connection, new)

    async def client_of(
        self,
        session: str | None,
        revision: str,
        capabilities: Mapping[str, Any],
        info: Mapping[str, Any] | None,
    ) -> tuple[Revision, PendingRequests]:
        """The revision of a recorded call, and the requests to its client.

        Sending fails if the session of the call has ended, or if the call belongs to none.

        Raises:
            InvalidParamsError: The revision is not served any more.
            SharedStateError: The engine can't be reached.
        """
        service = self._service
        if revision not in service.revisions:
            served = ", ".join(service.revisions)
            raise InvalidParamsError(f"a task: expected a call of {served}, got {revision!r}")
        row = service.revisions[revision]
        if session is not None and self.handler is not None:
            client = await self.handler.client_of(session)
            if client is not None:
                return row, client
        connection = service.new_connection(service)
        connection.assume_session(Session(row, {}, capabilities, info), "a client that is there")
        return row, PendingRequests(connection, _NoClient())

    async def publish_task(self, task: str) -> None:
        """Tell the other workers that the record of a task has changed.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        await self.publish(TaskChanged(self.id, task))

    async def send(self, worker: str, letter: Letter, client: str) -> bool:
        """Send a message to one worker; `False` if the worker is not alive.

        Args:
            worker: The worker.
            letter: The message.
            client: The client of the session; see `SessionRecord.client`.

        Raises:
            SharedStateError: The engine can't be reached, or has no room.
        """
        return await self.state.bus.send(worker, _FORMAT + _encode(letter), client)

    def _on_announcement(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        subject: str | None = None,
        wanted: Callable[[PendingRequests], bool] | None = None,
    ) -> None:
        """Publish an announcement to the other workers, unless it is for certain local clients."""
        if wanted is not None:
            return
        if subject is not None:
            params = {key: each for key, each in (params or {}).items() if each == subject}
        announcement = Announcement(self.id, name, params, subject)
        if threading.get_ident() == self._thread:
            self._add_pending(announcement)
        else:
            with suppress(RuntimeError):  # the event loop was closed meanwhile
                anyio.from_thread.run_sync(self._add_pending, announcement, token=self._token)

    def _add_pending(self, announcement: Announcement) -> None:
        about = announcement.subject or (announcement.params or {}).get("uri", "")
        self._pending.pop((announcement.name, about), None)
        self._pending[announcement.name, about] = announcement
        if len(self._pending) > _MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        self._added.set()

    async def _publish_pending(self) -> None:
        self._added = anyio.Event()
        while self._pending:
            about, announcement = next(iter(self._pending.items()))
            await self.publish(announcement)
            if self._pending.get(about) is announcement:
                del self._pending[about]
        await self._added.wait()

    async def _read_changes(self) -> None:
        """Read changes until cancelled.

        Changes before the first cursor, and changes whose handling failed because the engine could
        not be reached, count as missed.
        """
        cursor: str | None = None
        missed_changes, is_unreachable = True, False
        while True:
            try:
                news = await self.state.bus.changes(cursor)
                cursor, missed_changes = news.cursor, missed_changes or news.gap
                if missed_changes:
                    await self._reload_all()
                    missed_changes = False
                self.is_reading = True
                for change in news.changes:
                    missed_changes = True
                    await self._log_failures(self._handle, change)
                    missed_changes = False
            except SharedStateError as error:
                if not is_unreachable:
                    logger.warning("%s; other workers hear of changes later", error)
                is_unreachable, self.is_reading = True, False
                await anyio.sleep(_RETRY_SECONDS)
            else:
                if is_unreachable:
                    logger.warning("the engine of the shared state is back")
                is_unreachable = False

    async def _read_inbox(self) -> None:
        await self.state.bus.beat(self.id)
        self.beaten.set()
        for letter in await self.state.bus.receive(self.id):
            await self._log_failures(self._handle, letter)

    async def _repeat(self, function: Callable[[], Awaitable[None]]) -> None:
        """Call a function again and again until cancelled, whatever it raises."""
        while True:
            try:
                await function()
            except SharedStateError as error:
                logger.debug("%s", error)
                await anyio.sleep(_RETRY_SECONDS)
            except Exception:
                logger.exception("a part of the work with the shared state failed; it begins again")
                await anyio.sleep(_FAILURE_SECONDS)

    async def _log_failures(
        self, function: Callable[..., Awaitable[None]], *arguments: Any
    ) -> None:
        """Call a function and log its exceptions, so that later messages are still handled."""
        try:
            await function(*arguments)
        except SharedStateError:
            raise
        except Exception:
            logger.exception("a message of another worker failed")

    async def _handle(self, data: bytes) -> None:
        letter = _decode_letter(data)
        if letter is None:
            self._skip_foreign()
        elif isinstance(letter, Announcement):
            if letter.origin != self.id:
                await self._deliver(letter)
        elif isinstance(letter, TaskChanged):
            if letter.origin != self.id and self.on_task_changed is not None:
                self.on_task_changed(letter.task)
        elif self.handler is not None:
            await self.handler.handle_letter(letter)

    async def _deliver(self, letter: Announcement) -> None:
        """Announce a change at another worker to the clients of this worker."""
        params = letter.params
        if letter.subject is not None:
            if self.load_subject is None:
                return
            connections = [each.peer.connection for each in self._announcer.queues]
            if not any(each.has_subscriber(letter.name, params or {}) for each in connections):
                return
            params = await self.load_subject(letter.subject)
            if params is None:
                return
        self._announcer.deliver(letter.name, params, letter.subject)

    def _skip_foreign(self) -> None:
        """Log that messages of another form are skipped: anything may fill the bus with them."""
        self._foreign += 1
        now = anyio.current_time()
        if now >= self._foreign_until:
            logger.warning("%d messages of another form are skipped", self._foreign)
            self._foreign, self._foreign_until = 0, now + _FOREIGN_SECONDS

    async def _reload_all(self) -> None:
        if self.handler is not None:
            await self.handler.reload()
        for name in LISTS.values():
            self._announcer.deliver(name)
        connections = [each.peer.connection for each in self._announcer.queues]
        for uri in {uri for each in connections for uri in each.subscribed_uris()}:
            self._announcer.deliver(RESOURCE_UPDATED, {"uri": uri})


def worker_of(service: Service, shared: SharedState | str) -> SharedWorker:
    """The worker for a value of the option `shared`.

    Raises:
        ValueError: The value is not the URL of an engine.
        MissingExtraError: `valkey` is not installed.
    """
    name: str = service.describe(service.revisions.newest()).info["name"]
    return SharedWorker(service, state_of(name, shared))


class ChangeAnnouncer:
    """Announces changes to the clients of all workers. Made by `Server.announcer`.

    Args:
        bus: The bus that the workers share.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def list_changed(self, name: str) -> None:
        """Announce that a list has changed: `tools`, `prompts` or `resources`.

        Raises:
            ValueError: There is no list of this name.
            SharedStateError: The engine can't be reached.
        """
        if name not in LISTS:
            raise ValueError(f"expected one of {', '.join(LISTS)}, got {name!r}")
        await self._bus.publish(_FORMAT + _encode(Announcement("", LISTS[name])))

    async def resource_updated(self, uri: str) -> None:
        """Announce to the clients that subscribed to a resource that the resource was updated.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        await self._bus.publish(_FORMAT + _encode(Announcement("", RESOURCE_UPDATED, {"uri": uri})))


@asynccontextmanager
async def open_announcer(name: str, shared: SharedState | str) -> AsyncGenerator[ChangeAnnouncer]:
    """An announcer of changes of the server with a name, while the block runs."""
    state = state_of(name, shared)
    async with state.opened():
        yield ChangeAnnouncer(state.bus)


def _decode_letter(data: bytes) -> Letter | None:
    """Decode a letter; `None` for a letter of a newer process in an unknown form."""
    if not data.startswith(_FORMAT):
        return None
    try:
        letter: Letter = _decode(data[len(_FORMAT) :])
    except UNREADABLE:
        return None
    return letter
