"""A channel to a server process that is started again when it ends.

The session continues as after a lost HTTP session: the same revision is negotiated with the new
process, and the pipeline repeats the requests whose effect lasts for a session. Requests that the
old process may have read fail with ResponseLostError; the pipeline retries the requests that are
safe to repeat. New requests wait for the new process.

    process ends --> open requests are lost --> pause, start, negotiation --> session continues
                                                     ^          | failed
                                                     +----------+ until the limit: the end
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypedDict

import anyio

from ..channel import Channel, OutgoingMessage, RequestId
from ..errors import (
    ConnectionClosedError,
    EndOfChannel,
    McpError,
    RemoteProtocolError,
    RequestLost,
    RequestTimeoutError,
    ResponseLostError,
    ServerStartError,
)
from ..protocol.client_connection import ClientConnection
from ..protocol.events import Opened, OpenFailed, OpenSession, Send
from ..runtime.time_limits import TimeLimit
from ..transports.memory import BUFFERED_BYTES
from .application import ClientApplication
from .opening import ClientPeer, run_concurrently

if TYPE_CHECKING:
    from ..transports.process import ProcessChannel

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Restart:
    """Limits on restarting a server process that has ended.

    Attributes:
        limit: Most restarts within `seconds`, failed restarts included. After these, the session
            ends with the process.
        seconds: The time in which restarts are counted.
        pauses: Seconds before the first restart within `seconds`, the second and so on; the last
            pause applies to all further restarts.

    Raises:
        ValueError: `limit` is below one, or `seconds` is not positive.
    """

    limit: int = 5
    seconds: float = 300.0
    pauses: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 5.0)

    def __post_init__(self) -> None:
        if self.limit < 1 or not self.seconds > 0:
            raise ValueError(
                f"expected a positive limit and time, got {self.limit} restarts within "
                f"{self.seconds} seconds"
            )


class RestartOptions(TypedDict, total=False):
    """Options of `connect` for a command as target.

    Attributes:
        restart: Limits on restarting a server process that ends during the session; `True` for
            `Restart()`, `False` for no restart.
    """

    restart: Restart | bool


def restarting(application: ClientApplication) -> Callable[..., RestartingChannel] | None:
    """The maker of the channel to a process that is restarted; `None` for no restarts."""
    restart = application.settings.options.get("restart")
    if not restart:
        return None
    return partial(RestartingChannel, application, Restart() if restart is True else restart)


class RestartingChannel(Channel):
    """A channel that replaces its process by a new process, once `session_opened` was called.

    Args:
        application: The handlers and the settings of the client.
        restart: The limits on restarts.
        process: The channel to the first process.
        start: Starts another process.
    """

    transport = "stdio"

    def __init__(
        self,
        application: ClientApplication,
        restart: Restart,
        process: ProcessChannel,
        start: Callable[[], Awaitable[ProcessChannel]],
    ) -> None:
        self._process = process
        self._start = start
        self._application = application
        self._restart = restart
        self._restarts: deque[float] = deque()  # their times, the oldest first
        self._peer: ClientPeer | None = None
        self._cause: McpError | None = None  # why the process ended, until there is another
        self._changed = anyio.Event()  # set when there is another process, or the limit is reached
        self._end: McpError | None = None
        self._closed = False
        self._sending: set[RequestId] = set()
        self._lost: deque[RequestLost] = deque()
        self._early: deque[bytes] = deque()

    def session_opened(self, peer: ClientPeer) -> None:
        """Start another process from now on when a process ends.

        Args:
            peer: The client's end, with an open session.
        """
        self._peer = peer

    async def receive(self) -> bytes:
        """Wait for the next message of the current process or of its replacement.

        Raises:
            RequestLost: The process ended before it answered a request.
            EndOfChannel: The process has ended, and the limit of restarts is reached.
        """
        while True:
            if self._lost:
                raise self._lost.popleft()
            if self._cause is not None:
                await self._reconnect(self._cause)
            if self._early:
                return self._early.popleft()
            try:
                return await self._process.receive()
            except (EndOfChannel, ServerStartError) as error:
                if self._peer is None or self._closed:
                    raise
                self._process_ended(self._peer, error)

    async def send(self, message: OutgoingMessage) -> None:
        """Send a message. If the process has ended, a request waits for the next process.

        Other messages relate to messages of the old process, and are dropped.

        Raises:
            ResponseLostError: The process has ended, and may have read the request.
            ConnectionClosedError: The limit of restarts is reached.
        """
        if message.kind != "request" or message.id is None:
            await self._send_now(message)
            return
        self._sending.add(message.id)
        try:
            while not await self._send_now(message):
                await self._changed.wait()
        finally:
            self._sending.discard(message.id)

    async def close(self) -> None:
        """End the process without starting another."""
        self._closed = True
        self._changed.set()
        await self._process.close()

    async def _send_now(self, message: OutgoingMessage) -> bool:
        """Send a message to the process; `False` if it has ended and will be replaced."""
        if self._end is not None:
            raise ConnectionClosedError(str(self._end))
        if self._cause is not None and not self._closed:
            return False
        process = self._process
        try:
            await process.send(message)
        except (ConnectionClosedError, ServerStartError):
            if self._peer is None or self._closed:
                raise
            return False  # `receive` sees the end as well
        ended = self._cause is not None or process is not self._process
        if ended and message.kind == "request":
            raise ResponseLostError(f"{message.method}: the server process has ended")
        return True

    def _process_ended(self, peer: ClientPeer, error: McpError) -> None:
        """Mark the open requests as lost, except requests that are still being sent."""
        self._cause = error
        self._changed.set()  # wakes tasks whose send has failed already
        self._changed = anyio.Event()
        peer.peer_replaced()
        self._lost.extend(
            RequestLost(identifier, ResponseLostError(f"{error}; the process is started again"))
            for identifier in peer.connection.state.outbound.ids()
            if identifier not in self._sending
        )

    async def _reconnect(self, cause: McpError) -> None:
        """Start the process again, and negotiate the same revision.

        Raises:
            EndOfChannel: The limit is reached, or the channel was closed.
        """
        error = cause
        await self._process.close()
        while True:
            await self._pause(error)
            try:
                process = await self._open()
                break
            except McpError as failure:
                error = failure
        if self._closed:
            await process.close()
            raise EndOfChannel("the channel is closed")
        self._process, self._cause = process, None
        self._application.server_state.session_lost()
        _logger.warning("%s; it was started again", cause)
        self._changed.set()

    async def _pause(self, error: McpError) -> None:
        """Wait before a restart.

        Raises:
            EndOfChannel: The limit of restarts is reached.
        """
        restart, now = self._restart, anyio.current_time()
        while self._restarts and self._restarts[0] <= now - restart.seconds:
            self._restarts.popleft()
        if len(self._restarts) >= restart.limit:
            self._end = EndOfChannel(
                f"{error}; it was started again {restart.limit} times within "
                f"{restart.seconds:g} s, the limit of Restart"
            )
            self._changed.set()
            raise self._end
        pauses = restart.pauses or (0.0,)
        pause = pauses[min(len(self._restarts), len(pauses) - 1)]
        await anyio.sleep(pause)
        self._restarts.append(now + pause)

    async def _open(self) -> ProcessChannel:
        """Start a process, and negotiate the revision of the session."""
        assert self._peer is not None
        timeouts = self._application.settings.timeouts
        limit = TimeLimit(timeouts.opening, max(timeouts.opening, timeouts.longest_opening))
        watching = anyio.CancelScope()

        async def watch() -> None:
            with watching:
                await process.follow_stderr(extend)

        async def end_watching() -> None:
            watching.cancel()

        def extend() -> None:
            limit.begin_anew()
            scope.deadline = limit.deadline

        process = await self._start()
        try:
            with anyio.CancelScope(deadline=limit.deadline) as scope:
                async with run_concurrently(watch, end_watching):
                    await self._negotiate(process, self._peer.client_connection)
                return process
            raise RequestTimeoutError("opening the session", round(limit.seconds, 1))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await process.close()
            raise

    async def _negotiate(self, process: ProcessChannel, connection: ClientConnection) -> None:
        """Negotiate the revision of the session, with a temporary connection.

        Raises:
            McpError: The process has ended, refused the session, or sent too much before it.
        """
        self._early.clear()
        size = 0
        state = connection.state
        again = ClientConnection(state.revisions.only(state.revision.name), state.describe)
        await process.send(again.send(OpenSession())[0])
        while again.session is None:
            data = await process.receive()
            for event in again.receive(data):
                match event:
                    case Send(message=message):
                        await process.send(message)
                    case OpenFailed(error=error):
                        raise error
                    case Opened():
                        pass
                    case _:
                        self._early.append(data)
                        size += len(data)
            if size > BUFFERED_BYTES:
                raise RemoteProtocolError(
                    f"expected the response to initialize, got {len(self._early)} other messages"
                    f" of {size} bytes"
                )
