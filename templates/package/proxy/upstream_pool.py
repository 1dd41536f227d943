"""The sessions with the server behind a proxy, each opened when it is first used.

Over HTTP, where a proxy serves several clients, each session of a client has a session of its own
with the server behind the proxy, which separates state, log level and subscriptions. Requests
without a session, and requests over stdio, use the shared session.

    request in an HTTP session     its own session, until the HTTP session ends
    any other request              the shared session, open while the proxy is served

A session that has ended is opened again by the next request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from weakref import WeakSet

import anyio
import anyio.abc

from ..client.async_client import Client
from ..client.base import ClientBase
from ..errors import InternalError, McpError
from ..runtime.pending_requests import PendingRequests
from ..runtime.request_context import PRINCIPAL, Principal, RequestContext
from .upstream import Upstream

MOST_SESSIONS = 100
"""Most sessions with the server besides the shared session; beyond this limit, the least recently
used session is closed."""

RETRY_PAUSES = (0.0, 1.0, 5.0, 15.0, 60.0)
"""Seconds before opening is retried, by the number of consecutive failures."""

_logger = logging.getLogger(__name__)


class _Session(ClientBase):
    """A client with the state of its connection."""

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended."""
        return self._peer.callers.gone is not None


class _End:
    """Calls a function at the end of a client's connection; implements `Listener`."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end

    def settle(self, response: Any = None, failure: Exception | None = None) -> None:
        """Handle the end of the connection."""
        self._on_end()

    def deliver(self, *arguments: Any) -> None:
        """Ignore a notification."""


class PooledUpstream:
    """One session with the server, which is opened on use, and reopened after its end.

    Args:
        upstream: Uses the session.
        connect: Returns the context manager of a session, with the upstream as its handlers.
        on_open: Called with each opened session, and whether it is the first session.
        reopens: Whether a session that has ended is opened again.
        tasks: Runs the session.

    Attributes:
        upstream: As passed.
        was_open: Whether a session was opened before.
    """

    def __init__(
        self,
        upstream: Upstream,
        connect: Callable[[Upstream], AbstractAsyncContextManager[Client]],
        on_open: Callable[[Client, bool], None],
        reopens: bool,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self.upstream = upstream
        self.was_open = False
        self._connect = connect
        self._on_open = on_open
        self._reopens = reopens
        self._tasks = tasks
        self._principal: Principal = PRINCIPAL.get()
        self._lock = anyio.Lock()
        self._session: _Session | None = None
        self._released = anyio.Event()
        self._is_over = False
        self._failures = 0
        self._failure: Exception | None = None
        self._failed_at = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether requests are being forwarded, or the session is being opened."""
        return self.upstream.is_busy or self._lock.locked()

    async def ensure_open(self) -> Upstream:
        """Open the session unless it is open, and return the upstream.

        Raises:
            Exception: Opening failed, or failed recently and is not retried yet.
        """
        if self._session is not None and (not self._session.is_closed or not self._reopens):
            return self.upstream
        async with self._lock:
            if self._session is None or self._session.is_closed:
                await self._open()
        return self.upstream

    def release(self) -> None:
        """Close the session for good."""
        self._is_over = True
        self._released.set()

    async def _open(self) -> None:
        if self._is_over:
            raise InternalError("the session of the client has ended")
        pause = RETRY_PAUSES[min(self._failures, len(RETRY_PAUSES)) - 1] if self._failures else 0.0
        if self._failure is not None and anyio.current_time() < self._failed_at + pause:
            raise self._failure
        self._session = None
        self._released.set()
        self._released = anyio.Event()
        try:
            await self._tasks.start(self._hold, self._released)
        except Exception as error:
            self._failures += 1
            self._failure, self._failed_at = error, anyio.current_time()
            raise
        self._failures, self._failure = 0, None

    async def _hold(
        self, released: anyio.Event, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        """Hold a session open until an event."""
        PRINCIPAL.set(self._principal)  # not the principal of the request that opens the session
        is_open = False
        try:
            async with self._connect(self.upstream) as client, anyio.create_task_group() as tasks:
                self.upstream.begin(client, tasks)
                is_first, self.was_open = not self.was_open, True
                self._on_open(client, is_first)
                self._session = client.seen_as(_Session)
                is_open = True
                task_status.started()
                await released.wait()
                tasks.cancel_scope.cancel()
        except Exception as error:
            if not is_open:
                raise
            _logger.warning("%s: %s", self.upstream.label, error)


class UpstreamPool:
    """The sessions with the server behind a proxy, in one lifespan of the proxy.

    Args:
        make: Creates an upstream, from a predicate of the clients that get its announcements.
        connect: See `PooledUpstream`.
        offer: Called with each shared session, and whether it is the first.
        reopens: See `PooledUpstream`.
        separates: Whether there may be a session for each session of a client.

    Attributes:
        shared: The shared session.
        failure: Why the shared session could not be opened at the start.
    """

    def __init__(
        self,
        make: Callable[[Callable[[PendingRequests], bool]], Upstream],
        connect: Callable[[Upstream], AbstractAsyncContextManager[Client]],
        offer: Callable[[Client, bool], None],
        *,
        reopens: bool,
        separates: bool,
    ) -> None:
        self._make = make
        self._connect = connect
        self._reopens = reopens
        self._separates = separates
        self._tasks = anyio.create_task_group()
        self._tried = anyio.Event()
        self._over = anyio.Event()
        self._own: dict[PendingRequests, PooledUpstream] = {}  # the most recently used last
        self._watched: WeakSet[PendingRequests] = WeakSet()
        self.shared = PooledUpstream(
            make(lambda client: client not in self._own), connect, offer, reopens, self._tasks
        )
        self.failure: Exception | None = None

    async def run(self) -> None:
        """Open the shared session, and keep all sessions open until `end`."""
        async with self._tasks:
            self._tasks.start_soon(self._open_shared)
            await self._over.wait()
            self.shared.release()
            for each in self._own.values():
                each.release()

    async def end(self) -> None:
        """Close the sessions."""
        self._over.set()

    async def _open_shared(self) -> None:
        try:
            await self.shared.ensure_open()
        except Exception as error:
            self.failure = error
        finally:
            self._tried.set()

    async def wait_until_open(self) -> None:
        """Wait until the shared session is open.

        Raises:
            Exception: The session could not be opened; the value of `failure`.
        """
        await self._tried.wait()
        if self.failure is not None:
            raise self.failure

    async def upstream(self, request: RequestContext) -> Upstream:
        """The upstream for a request, with an open session.

        Raises:
            InternalError: The server can't be reached.
        """
        place = self._place(request)
        try:
            return await place.ensure_open()
        except McpError as error:
            text = f"{self.shared.upstream.label} does not answer: {error}"
            raise InternalError(text) from error

    def upstream_in_use(self, request: RequestContext) -> Upstream | None:
        """The upstream of a client, if it has been opened before."""
        if self._has_own(request):
            own = self._own.get(request.peer)
            return None if own is None else own.upstream
        return self.shared.upstream if self.shared.was_open else None

    def _has_own(self, request: RequestContext) -> bool:
        return self._separates and request.peer.channel.session_id is not None

    def _place(self, request: RequestContext) -> PooledUpstream:
        if not self._has_own(request):
            return self.shared
        client = request.peer
        place = self._own.pop(client, None)
        if place is None:
            self._make_room()
            place = PooledUpstream(
                self._make(lambda each: each is client),
                self._connect,
                _ignore,
                self._reopens,
                self._tasks,
            )
            if client not in self._watched:
                self._watched.add(client)
                client.listeners.add(_End(lambda: self._close(client)))
        self._own[client] = place
        return place

    def _make_room(self) -> None:
        """Close the least recently used session if the limit is reached."""
        if len(self._own) < MOST_SESSIONS:
            return
        idle = next((client for client, each in self._own.items() if not each.is_busy), None)
        label = self.shared.upstream.label
        if idle is None:
            raise InternalError(f"{label}: {MOST_SESSIONS} sessions with it are in use")
        _logger.warning(
            "%s: more than %d sessions; the one that was used least recently is closed, and what "
            "the server kept for it is lost",
            label,
            MOST_SESSIONS,
        )
        self._close(idle)

    def _close(self, client: PendingRequests) -> None:
        place = self._own.pop(client, None)
        if place is not None:
            place.release()


def _ignore(client: Client, is_first: bool) -> None:
    """Do nothing: only the shared session determines the served methods."""
