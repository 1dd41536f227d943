"""A server independent of transports, its clients, and announcements to all of them.

Changes that a server announces (a list that changed, a resource that was updated) may come from
any thread. They are queued for each client, equal ones once, until a task of the session sends
them. The connection drops notifications that the client did not subscribe to.

Source: basic/lifecycle, server/resources#subscriptions.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeAlias

import anyio
import msgspec

from ..channel import Channel
from ..errors import McpError
from ..facts import Method, Revision, Revisions
from ..protocol import jsonrpc
from ..protocol.handshake import HandshakeConnection
from ..protocol.lifecycle import Admit, Description, OnSubscription
from ..runtime.peer import CONCURRENT_REQUESTS, Peer
from ..runtime.pending_requests import PendingRequests
from ..runtime.request_context import Application

_MOST_PENDING = 1000  # announcements queued for a client that does not read

_logger = logging.getLogger(__name__)


StartTask: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, None]]], object]
"""Starts a task that runs a coroutine function."""

Wanted: TypeAlias = Callable[[PendingRequests], bool]
"""Whether a client gets a notification."""


class ProcessLimit(msgspec.Struct, frozen=True):
    """A line about what several processes lack; or why they can't serve, if it `is_refused`."""

    text: str
    is_refused: bool = False


class AnnouncementQueue:
    """Announcements to one client, created on the event loop that serves the client."""

    def __init__(self, peer: Peer) -> None:
        from anyio.lowlevel import current_token  # loaded with the event loop

        self.peer = peer
        self._start: StartTask | None = None
        self._thread = threading.get_ident()
        self._token = current_token()
        self._pending: dict[tuple[str, str | None], Mapping[str, Any] | None] = {}
        self._sending = False

    def announce(
        self, name: str, params: Mapping[str, Any] | None, subject: str | None = None
    ) -> None:
        """Queue a notification; it replaces a queued one about the same subject."""
        if threading.get_ident() == self._thread:
            self._add(name, params, subject)
        else:
            import anyio.from_thread  # most servers announce on the event loop

            anyio.from_thread.run_sync(self._add, name, params, subject, token=self._token)

    def send_by(self, start: StartTask) -> None:
        """Send announcements from now on, by a new task whenever the queue becomes non-empty."""
        self._start = start
        if self._pending:
            start(self._send_pending)

    def hold(self) -> None:
        """Send nothing until `send_by` is called again."""
        self._start = None

    async def _send_pending(self) -> None:
        """Send the queued announcements, unless another task is sending them."""
        if self._sending:
            return
        self._sending = True
        try:
            while self._pending and self._start is not None:
                name, uri = next(iter(self._pending))
                params = self._pending.pop((name, uri))
                try:
                    await self.peer.callers.notify(name, params)
                except McpError as error:
                    _logger.debug("%s was not sent: %s", name, error)
        finally:
            self._sending = False

    def _add(self, name: str, params: Mapping[str, Any] | None, subject: str | None) -> None:
        connection = self.peer.connection
        if subject is None:
            subject = (params or {}).get("uri")
        if subject is not None and not connection.has_subscriber(name, params or {}):
            return  # else the queue would keep it until a stream is opened
        was_empty = not self._pending
        self._pending[name, subject] = params
        if len(self._pending) > _MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        if was_empty and self._start is not None:
            self._start(self._send_pending)


class Announcer:
    """Announces changes to all clients of one server.

    Attributes:
        queues: The clients.
        followers: Called at each announcement, with the arguments of `announce`.
    """

    def __init__(self) -> None:
        self.queues: dict[AnnouncementQueue, None] = {}
        self.followers: list[Callable[..., None]] = []

    def announce(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        subject: str | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        """Send a notification to all clients. Works from any thread; does not wait.

        Args:
            name: The notification.
            params: Its params.
            subject: The subject, for a notification of an extension to subscribed clients.
            wanted: Whether a client gets the notification; `None` for all clients.
        """
        for follower in list(self.followers):
            follower(name, params, subject, wanted)
        self.deliver(name, params, subject, wanted)

    def deliver(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        subject: str | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        """Send a notification to the clients of this process, and call no follower."""
        for queue in list(self.queues):
            if wanted is not None and not wanted(queue.peer.callers):
                continue
            try:
                queue.announce(name, params, subject)
            except RuntimeError:
                self.remove(queue)  # the client's event loop was closed

    def add(self, queue: AnnouncementQueue) -> None:
        """Add a client."""
        self.queues[queue] = None

    def remove(self, queue: AnnouncementQueue) -> None:
        """Remove a client, if it is there."""
        self.queues.pop(queue, None)


def _nothing(_: Any) -> Any:
    """No names of a tool, and no scopes of a message."""
    return ()


class Service(msgspec.Struct, frozen=True):
    """A server, independent of transports.

    Attributes:
        application: Responds to requests.
        revisions: The revisions that are served.
        describe: The description of the server in a revision.
        new_connection: Makes the connection to a client that may use any of the revisions.
        extensions: Custom methods, by wire name.
        announcer: Announces changes to all clients.
        drain: Seconds that requests may take to finish once a client is gone.
        lifespan: Entered before serving; for one client, or for all that share a listener.
        use_state: Sets the value of `lifespan` for the current task; returns the server's state.
        max_concurrent_requests: Handlers that one session may have waiting at a time, except over
            Streamable HTTP, which has limits of its own.
        required_scopes: The scopes that a message needs.
        param_headers_of: Path and field name of each argument of a tool that headers repeat.
        secret_names_of: Names of the arguments of a tool that traces mask.
        on_subscription: Called with the URIs of the resources that a stream subscribes to.
        admit: Returns the admitted subjects of a subscription to an extension's notification.
        share: Functions that receive the `SharedWorker` of the process, before serving.
        shared_keys: Returns the keys that processes which serve together share, newest first.
    """

    application: Application
    revisions: Revisions
    describe: Callable[[Revision], Description]
    new_connection: Callable[[Service], HandshakeConnection]
    extensions: Mapping[str, Method] = msgspec.field(default_factory=dict[str, Method])
    announcer: Announcer = msgspec.field(default_factory=Announcer)
    drain: float = 0.0
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext
    use_state: Callable[[Any], Any] = lambda _: None
    max_concurrent_requests: int = CONCURRENT_REQUESTS
    required_scopes: Callable[[jsonrpc.Message], Collection[str]] = _nothing
    param_headers_of: Callable[[str], Mapping[tuple[str, ...], str]] = lambda _: {}
    secret_names_of: Callable[[str], Collection[str]] = _nothing
    on_subscription: OnSubscription | None = None
    admit: Admit | None = None
    share: Sequence[Callable[[Any], None]] = ()
    shared_keys: Callable[[], Sequence[bytes]] = tuple[bytes, ...]


async def serve(service: Service, channel: Channel) -> None:
    """Serve one client until it disconnects, and close the channel.

    Raises:
        Exception: Whatever the lifespan raised.
    """
    async with service.lifespan() as state:
        service.use_state(state)
        await run_session(service, new_session(service, channel))


def new_session(service: Service, channel: Channel) -> AnnouncementQueue:
    """The peer of a new client, and its announcements."""
    from ..runtime.tracing import trace_channel  # slow to import, and needed for serving only

    channel = trace_channel(channel, "server", service.secret_names_of)
    peer = Peer(
        service.new_connection(service),
        channel,
        service.application,
        drain=service.drain,
        max_concurrent_requests=service.max_concurrent_requests,
    )
    return AnnouncementQueue(peer)


async def run_session(service: Service, queue: AnnouncementQueue) -> None:
    """Serve a client until it disconnects, and send it announcements."""
    service.announcer.add(queue)
    try:
        async with anyio.create_task_group() as tasks:
            queue.send_by(tasks.start_soon)
            await queue.peer.run()
            queue.hold()
            tasks.cancel_scope.cancel()
    finally:
        service.announcer.remove(queue)


def leave_stuck_threads() -> None:
    """Exit at once if a worker thread would block the interpreter's exit."""
    stuck = [t for t in threading.enumerate() if t.name == "AnyIO worker thread" and not t.daemon]
    for thread in stuck:
        thread.join(0.5)
    if any(thread.is_alive() for thread in stuck):
        _logger.warning("a function still runs in its thread; leaving without it")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)
