"""One of the processes that serve together: what it tells the others, and what these tell it.

    Announcer -> publish ->  the bus  -> changes -> the clients that this worker serves
    a session's record has changed    -> changes -> the session, if this worker has it
    a message for one worker -> send  -> receive -> the session that it belongs to

What happens here is announced to the clients here at once, and to those of others through the bus.
An engine that can't be reached delays that; after a gap, everything counts as changed.
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
from ...channel import Channel, OutgoingMessage
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
_RETRY_SECONDS = 0.5  # between two tries to reach the engine
_MOST_PENDING = 1000  # announcements that wait for the engine; the oldest are dropped

LISTS = {name: f"notifications/{name}/list_changed" for name in ("tools", "prompts", "resources")}
"""The notifications that a list has changed, by what it lists."""


class Announcement(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A notification to all clients that want it.

    Attributes:
        origin: The worker whose clients have it already; empty for another process.
        name: The notification.
        params: Its params.
        subject: See `Announcer.announce`.
    """

    origin: str
    name: str
    params: Mapping[str, Any] | None = None
    subject: str | None = None


class SessionChanged(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The record of a session has changed, or is there no more.

    Attributes:
        origin: The worker that has changed it.
        session: Id of the session.
    """

    origin: str
    session: str


class ClientMessage(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A message of a client, for the worker that waits for it.

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
    """A client reads a stream by another connection from now on.

    Attributes:
        origin: The worker that has the connection.
        session: Id of the session.
        stream: Name of the stream.
    """

    origin: str
    session: str
    stream: str


class StreamFollowed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A client reads a stream of a worker by another one.

    Attributes:
        session: Id of the session.
        stream: Name of the stream.
        failure: Ends the stream, if the worker does not write it any more.
    """

    session: str
    stream: str
    failure: bytes


class TaskChanged(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The record of a task has changed.

    Attributes:
        origin: The worker that has changed it.
        task: Id of the task.
    """

    origin: str
    task: str


SessionLetter: TypeAlias = (
    SessionChanged | ClientMessage | ServerMessage | StreamTaken | StreamFollowed
)
Letter: TypeAlias = Announcement | TaskChanged | SessionLetter

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Letter).decode
_FORMAT = b"\x01"


class SharedSessions(Protocol):
    """The sessions that a worker has."""

    async def take(self, letter: SessionLetter) -> None:
        """Handle what concerns a session, if this worker has it."""
        ...

    async def reload(self) -> None:
        """Take each session as changed."""
        ...

    async def client_of(self, identifier: str) -> PendingRequests | None:
        """Sends to the client of a session on behalf of its principal; `None` if it has ended.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        ...


class SharedRules(Protocol):
    """The rules of all sessions for what they show of the lists of one server."""

    def of(self, connection: Connection) -> Sequence[tuple[frozenset[str], frozenset[str], bool]]:
        """The rules of a session; see `SharedRule`."""
        ...

    def replace(
        self,
        connection: Connection,
        new: Sequence[tuple[frozenset[str], frozenset[str], bool]],
    ) -> None:
        """Replace them by others."""
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
    """A worker while one event loop runs it.

    Args:
        service: What is served.
        state: What it shares.

    Attributes:
        id: Its id: random, of letters and digits.
        state: As passed.
        handler: Handles what concerns sessions; `None` if it has none.
        on_task_changed: Called with the id of a task whose record another worker has changed.
        rules: What sessions show of the lists of each server.
        beaten: Set once others count it as alive, and so leave its streams to it.
        find_lost: Takes over tasks of workers that are gone; called again and again.
        is_reading: Whether it hears of changes, as far as it knows.
    """

    def __init__(self, service: Service, state: SharedState) -> None:
        self.id = secrets.token_hex(_ID_BYTES)
        self.state = state
        self.handler: SharedSessions | None = None
        self.on_task_changed: Callable[[str], None] | None = None
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
        self._thread = threading.get_ident()
        self._token: Any = None

    async def run(self) -> None:
        """Take part until cancelled."""
        self._thread, self._token = threading.get_ident(), anyio.lowlevel.current_token()
        async with self.state.opened(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._repeated, self._publish_pending)
            tasks.start_soon(self._read_changes)
            tasks.start_soon(self._repeated, self._read_inbox)
            if self.find_lost is not None:
                tasks.start_soon(self._repeated, partial(self._guarded, self.find_lost))
            self._announcer.follow(self._follow)
            try:
                await anyio.sleep_forever()
            finally:
                self._announcer.stop_following(self._follow)

    async def publish(self, letter: Letter) -> None:
        """Tell all workers, this one too.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        await self.state.bus.publish(_FORMAT + _encode(letter))

    def rules_of(self, connection: Connection) -> tuple[SharedRule, ...]:
        """The rules of a session for what it alone shows or hides, by its connection here."""
        return tuple(
            (number, *rule)
            for number, each in enumerate(self.rules)
            for rule in each.of(connection)
        )

    def replace_rules(self, connection: Connection, rules: Sequence[SharedRule]) -> None:
        """Have a session show and hide what other workers say."""
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
        """The revision of a recorded call, and what sends to its client.

        Nothing is sent if its session has ended, or if it belongs to none.

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

    async def send(self, worker: str, letter: Letter) -> bool:
        """Tell one worker; `False` if that is not alive.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        return await self.state.bus.send(worker, _FORMAT + _encode(letter))

    def _follow(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        subject: str | None = None,
        wanted: Callable[[PendingRequests], bool] | None = None,
    ) -> None:
        """Have the other workers announce something, unless it is for certain clients here."""
        if wanted is not None:
            return
        announcement = Announcement(self.id, name, params, subject)
        if threading.get_ident() == self._thread:
            self._add(announcement)
        else:
            with suppress(RuntimeError):  # the event loop was closed meanwhile
                anyio.from_thread.run_sync(self._add, announcement, token=self._token)

    def _add(self, announcement: Announcement) -> None:
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

        What came before the first cursor was missed, and so is what fails to be handled for lack of
        the engine.
        """
        cursor: str | None = None
        has_missed, was_lost = True, False
        while True:
            try:
                news = await self.state.bus.changes(cursor)
                cursor, has_missed = news.cursor, has_missed or news.gap
                if has_missed:
                    await self._take_all_as_changed()
                    has_missed = False
                self.is_reading = True
                for change in news.changes:
                    has_missed = True
                    await self._guarded(self._take, change)
                    has_missed = False
            except SharedStateError as error:
                if not was_lost:
                    logger.warning("%s; other workers hear of changes later", error)
                was_lost, self.is_reading = True, False
                await anyio.sleep(_RETRY_SECONDS)
            else:
                if was_lost:
                    logger.warning("the engine of the shared state is back")
                was_lost = False

    async def _read_inbox(self) -> None:
        await self.state.bus.beat(self.id)
        self.beaten.set()
        for letter in await self.state.bus.receive(self.id):
            await self._guarded(self._take, letter)

    async def _repeated(self, function: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await function()
            except SharedStateError as error:
                logger.debug("%s", error)
                await anyio.sleep(_RETRY_SECONDS)

    async def _guarded(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Call a function; a failure is logged, and what comes after is handled all the same.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        try:
            await function(*arguments)
        except SharedStateError:
            raise
        except Exception:
            logger.exception("a message of another worker failed")

    async def _take(self, data: bytes) -> None:
        letter = _read(data)
        if isinstance(letter, Announcement):
            if letter.origin != self.id:
                self._announcer.deliver(letter.name, letter.params, letter.subject)
        elif isinstance(letter, TaskChanged):
            if letter.origin != self.id and self.on_task_changed is not None:
                self.on_task_changed(letter.task)
        elif letter is not None and self.handler is not None:
            await self.handler.take(letter)

    async def _take_all_as_changed(self) -> None:
        if self.handler is not None:
            await self.handler.reload()
        for name in LISTS.values():
            self._announcer.deliver(name)
        for uri in self._announcer.subscribed_uris():
            self._announcer.deliver(RESOURCE_UPDATED, {"uri": uri})


def worker_of(service: Service, shared: SharedState | str) -> SharedWorker:
    """The worker of an application with the option `shared`.

    Raises:
        ValueError: It is no URL of an engine.
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
            ValueError: There is no such list.
            SharedStateError: The engine can't be reached.
        """
        if name not in LISTS:
            raise ValueError(f"expected one of {', '.join(LISTS)}, got {name!r}")
        await self._bus.publish(_FORMAT + _encode(Announcement("", LISTS[name])))

    async def resource_updated(self, uri: str) -> None:
        """Announce to the clients that subscribed to a resource that it was updated.

        Raises:
            SharedStateError: The engine can't be reached.
        """
        await self._bus.publish(_FORMAT + _encode(Announcement("", RESOURCE_UPDATED, {"uri": uri})))


@asynccontextmanager
async def announcing(name: str, shared: SharedState | str) -> AsyncGenerator[ChangeAnnouncer]:
    """Announces changes of a server with a name, while the block runs."""
    state = state_of(name, shared)
    async with state.opened():
        yield ChangeAnnouncer(state.bus)


def _read(data: bytes) -> Letter | None:
    """A letter; `None` if a newer process has sent one that this one does not understand."""
    if not data.startswith(_FORMAT):
        return None
    try:
        letter: Letter = _decode(data[len(_FORMAT) :])
    except UNREADABLE:
        return None
    return letter
