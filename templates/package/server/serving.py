"""Serving: an application over a channel, and what all sessions of one server share.

Changes that a server announces (a list that changed, a resource that was updated) may come from
any thread. They wait in each session, equal ones once, until a task of that session sends them;
the core leaves out what nobody there asked to hear.

Source: basic/lifecycle, server/resources#subscriptions.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from ..channel import Channel
from ..errors import McpError
from ..facts import Method, Revision, Revisions
from ..protocol.connection import Connection
from ..protocol.lifecycle import Description
from ..runtime.peer import CONCURRENT_REQUESTS, Peer
from ..runtime.request_context import Application

_WAITING = 1000  # changes that a session keeps for a client that does not read

_logger = logging.getLogger(__name__)


class Session:
    """One client being served, and what it is yet to be told.

    Made in the task that serves it.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._thread = threading.get_ident()
        self._token = anyio.lowlevel.current_token()
        self._waiting: dict[tuple[str, str | None], Mapping[str, Any] | None] = {}
        self._news = anyio.Event()

    def announce(self, name: str, params: Mapping[str, Any] | None) -> None:
        """Have a notification sent soon, once however often it is asked for till then."""
        if threading.get_ident() == self._thread:
            self._note(name, params)
        else:
            import anyio.from_thread  # most servers never get here

            anyio.from_thread.run_sync(self._note, name, params, token=self._token)

    async def send_announced(self) -> None:
        """Send what is announced, until cancelled."""
        while True:
            while self._waiting:
                name, uri = next(iter(self._waiting))
                params = self._waiting.pop((name, uri))
                try:
                    await self.peer.callers.notify(name, params)
                except McpError as error:
                    _logger.debug("%s was not sent: %s", name, error)
            await self._news.wait()
            self._news = anyio.Event()

    def _note(self, name: str, params: Mapping[str, Any] | None) -> None:
        uri = (params or {}).get("uri")
        if uri is not None and not self.peer.connection.is_subscribed(uri):
            return  # it would wait, in a session without a stream for as long as that is open
        self._waiting[name, uri] = params
        if len(self._waiting) > _WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._news.set()


class Sessions:
    """The sessions of one server that are open now."""

    def __init__(self) -> None:
        self._open: dict[Session, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def announce(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell every session of a change. Works from any thread; does not wait for the sending."""
        for session in list(self._open):
            try:
                session.announce(name, params)
            except RuntimeError:
                self.remove(session)  # its event loop is gone, and nobody took leave

    def add(self, session: Session) -> None:
        """Count a session as open."""
        self._open[session] = None

    def remove(self, session: Session) -> None:
        """Count a session as open no more."""
        self._open.pop(session, None)

    @contextmanager
    def joined(self, session: Session) -> Generator[None]:
        """Count a session as open for as long as the block runs."""
        self.add(session)
        try:
            yield
        finally:
            self.remove(session)


def _stateless(state: Any) -> None:
    """Nobody asks for what a lifespan yields."""


def _no_marks(tool: str) -> Mapping[tuple[str, ...], str]:
    return {}


@dataclass(frozen=True)
class Service:
    """What is served, whatever it is served over.

    Attributes:
        application: Answers requests.
        revisions: The revisions to speak.
        describe: The server's account of itself in a revision.
        extensions: Methods of the server's own, by wire name.
        sessions: The server's sessions, joined while one is open.
        drain: Seconds that requests being served may still take once a client is gone.
        lifespan: What is entered before serving; for one client, or for all that share a listener.
        use_state: Gives the current task what `lifespan` yielded.
        max_concurrent_requests: Handlers that one session may have waiting at a time, except over
            Streamable HTTP, which has limits of its own.
        marks_of: Path and field name of each argument of a tool that HTTP header fields repeat.
    """

    application: Application
    revisions: Revisions
    describe: Callable[[Revision], Description]
    extensions: Mapping[str, Method] = field(default_factory=dict[str, Method])
    sessions: Sessions = field(default_factory=Sessions)
    drain: float = 0.0
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext
    use_state: Callable[[Any], object] = _stateless
    max_concurrent_requests: int = CONCURRENT_REQUESTS
    marks_of: Callable[[str], Mapping[tuple[str, ...], str]] = _no_marks


async def serve(service: Service, channel: Channel) -> None:
    """Serve one client until it is gone.

    Args:
        service: What is served.
        channel: The transport to the client; closed at the end.

    Raises:
        Exception: Whatever the lifespan raised.
    """
    async with service.lifespan() as state:
        service.use_state(state)
        await serve_session(service, channel)


async def serve_session(service: Service, channel: Channel) -> None:
    """Serve one client until it is gone, in a lifespan that was entered already."""
    await run_session(service, new_session(service, channel))


def new_session(service: Service, channel: Channel) -> Session:
    """A session with a client that has not said anything yet."""
    from ..runtime.trace import traced  # its patterns cost import time that only serving is worth

    connection = Connection("server", service.revisions, service.describe, service.extensions)
    channel = traced(channel, "server")
    return Session(
        Peer(
            connection,
            channel,
            service.application,
            drain=service.drain,
            max_concurrent_requests=service.max_concurrent_requests,
        )
    )


async def run_session(service: Service, session: Session) -> None:
    """Serve the client of a session until it is gone."""
    with service.sessions.joined(session):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.send_announced)
            await session.peer.run()
            tasks.cancel_scope.cancel()


def leave_stuck_threads() -> None:
    """Exit at once if a worker thread would hold up the interpreter's end."""
    stuck = [t for t in threading.enumerate() if t.name == "AnyIO worker thread" and not t.daemon]
    for thread in stuck:
        thread.join(0.5)
    if any(thread.is_alive() for thread in stuck):
        _logger.warning("a function still runs in its thread; leaving without it")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)
