"""Opening a session over a channel, and closing both.

For every kind of target, the session is open when the body of the context manager begins, and all
tasks have ended when the context manager exits. Exceptions of the body are raised unchanged, never
in an exception group. Processes and URLs as targets have modules of their own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import urlsplit

import anyio
import anyio.abc

from ..channel import Channel, OutgoingMessage
from ..errors import (
    ConnectionClosedError,
    McpError,
    RequestLost,
    RequestTimeoutError,
    ServerStartError,
    refusal_of,
)
from ..facts import Revisions
from ..protocol.client_connection import ClientConnection
from ..protocol.events import Event, Opened, OpenFailed, OpenSession, Send
from ..runtime.peer import Peer
from ..runtime.request_context import Application
from ..runtime.time_limits import PausableLimit, pausable
from ..runtime.tracing import trace_channel
from ..transports.memory import memory_pair
from .application import ClientApplication
from .client_settings import ClientSettings
from .pipeline import may_have_begun

if TYPE_CHECKING:
    from .base import AnyClient


@runtime_checkable
class Servable(Protocol):
    """A server that can serve over a channel."""

    async def serve(self, channel: Channel) -> None:
        """Serve until the channel is closed."""
        ...


Target: TypeAlias = str | Sequence[str] | PathLike[str] | Servable | Channel
"""The target of a client: the URL of a server over HTTP, a command line, the path of a script, a
server in this process, or a custom channel."""


class ClientPeer(Peer):
    """A client's end of a channel, which opens the session.

    Attributes:
        client_connection: The same object as `connection`, with its own type.
    """

    def __init__(
        self,
        connection: ClientConnection,
        channel: Channel,
        application: Application,
        settings: ClientSettings,
    ) -> None:
        super().__init__(
            connection,
            channel,
            application,
            max_concurrent_requests=settings.max_concurrent_requests,
            unmatched_seconds=settings.timeouts.unmatched,
        )
        self.client_connection = connection
        self._opening = self.callers.waiter()
        self._opening_limit: PausableLimit | None = None
        self._timeouts = settings.timeouts

    @property
    def advice(self) -> str:
        """Text for the error of a connection that failed; empty if there is no advice."""
        return ""

    async def open(self, timeout: float) -> None:
        """Negotiate the revision and the capabilities with the server.

        Args:
            timeout: Seconds for the whole negotiation.

        Raises:
            RevisionError: No revision in common.
            RequestTimeoutError: No response in time.
            McpError: The server refused, has ended, or could not be reached.
        """
        opening = self._opening
        (message,) = self.connection.send(OpenSession())
        first = Send(message, opens=True)
        with anyio.move_on_after(timeout) as scope, pausable(scope) as self._opening_limit:
            async with anyio.create_task_group() as sending:  # over HTTP, until the response
                await self._send_first(first, sending)
                sending.cancel_scope.cancel()
        if not opening.settled:
            raise RequestTimeoutError("opening the session", timeout)
        if opening.failure is not None:
            raise opening.failure

    async def _send_first(self, first: Send, sending: anyio.abc.TaskGroup) -> None:
        """Send the first message, and wait until the session is open or negotiation has failed.

        Args:
            first: The message.
            sending: Runs the sending of messages.
        """
        sending.start_soon(self._handle, first)
        await self._opening.wait()

    def extend_opening(self, seconds: float) -> None:
        """Extend the timeout of a running `open`, so that at least so many seconds are left."""
        if self._opening_limit is not None:
            self._opening_limit.extend(seconds)

    async def _send_opening(self, message: OutgoingMessage) -> list[Event]:
        """Send a message of the negotiation; returns the events that its failure causes.

        A request is sent again in an outage, or if its response was lost: a second `initialize`
        opens at most one more session, which expires.
        """
        pauses = iter(self._timeouts.retries)
        while True:
            try:
                await self._channel.send(message)
            except ConnectionClosedError:
                pass  # the reading task fails too, with the cause
            except McpError as error:
                if await self._wait_for_server(message, error, next(pauses, None)):
                    continue
                if message.id is None:  # notifications/initialized
                    return [OpenFailed(error)]
                return self.connection.receive(RequestLost(message.id, error))
            except Exception as error:
                self._opening.settle(failure=error)
            return []

    async def _wait_for_server(
        self, message: OutgoingMessage, error: McpError, pause: float | None
    ) -> bool:
        """Wait until a request of the negotiation may be sent again; whether to do so.

        Args:
            message: The request.
            error: Its failure.
            pause: The next pause; `None` after the last one.
        """
        refusal, limit = refusal_of(error), self._opening_limit
        if not (self.client_connection.awaits(message.id) and may_have_begun(error, refusal)):
            return False
        pause = self._timeouts.pause_after(refusal, pause)
        if pause is None or limit is None or pause >= limit.left:
            return False
        await self._pause(pause)
        return True

    async def _pause(self, seconds: float) -> None:
        """Wait before a message of the negotiation is sent again."""
        await anyio.sleep(seconds)

    def peer_replaced(self) -> None:
        """Cancel all handlers of requests, since another peer has replaced their sender."""
        self.connection.state.inbound.clear()
        self.stop_serving()
        self.scopes.clear()

    async def _handle(self, event: Event) -> None:
        match event:
            case Send(message=message, opens=True):
                limit = self._opening_limit
                with nullcontext() if limit is None else pausable(limit):
                    for following in await self._send_opening(message):
                        await self._handle(following)
            case Opened():
                self._opening.settle()
            case OpenFailed(error=error):
                self._opening.settle(failure=error)
            case _:
                await super()._handle(event)

    def _settle_all(self) -> None:
        self._opening.settle(failure=self._closed_error())
        super()._settle_all()


@asynccontextmanager
async def open_session(
    client_class: type[AnyClient],
    target: Target,
    opening: AbstractAsyncContextManager[Channel],
    revisions: Revisions,
    application: ClientApplication,
) -> AsyncGenerator[AnyClient, None]:
    """Open a session over a channel; close both on exit.

    Raises:
        RevisionError: Client and server have no revision in common.
        RequestTimeoutError: The session was not open in time.
        McpError: The channel ended.
    """
    timeouts = application.settings.timeouts
    async with opening as channel:
        peer = new_peer(channel, revisions, application)
        async with run_concurrently(peer.run, peer.close):
            try:
                await peer.open(timeouts.opening)
            except (ConnectionClosedError, RequestTimeoutError) as error:
                more = "" if isinstance(target, str) else peer.advice
                raise explain_error(error, target, timeouts.opening, more) from None
            await application.session_opened(peer)
            yield client_class(peer, application)


def new_peer(channel: Channel, revisions: Revisions, application: ClientApplication) -> ClientPeer:
    """The client's end of a channel."""
    settings = application.settings
    connection = ClientConnection(
        revisions, application.describe, application.custom_methods, extra=settings.extra
    )
    channel = trace_channel(channel, "client")
    return application.peer_class(connection, channel, application, settings)


def explain_error(
    error: ConnectionClosedError | RequestTimeoutError | ServerStartError,
    target: Target,
    seconds: float,
    more: str,
) -> McpError:
    """An error of opening a session, with the target, the time limit and further text."""
    match error:
        case RequestTimeoutError():
            return RequestTimeoutError(f"{error.method}{_target_text(target)}", seconds, more)
        case ServerStartError():
            return error.with_more(more)
        case ConnectionClosedError():
            return ConnectionClosedError(f"{error}; {more}") if more else error


@asynccontextmanager
async def run_concurrently(
    work: Callable[[], Coroutine[Any, Any, None]], end: Callable[[], Awaitable[None]]
) -> AsyncGenerator[None, None]:
    """Run `work` concurrently with the body; then call `end`, and wait until `work` has ended."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        try:
            yield
        except (anyio.get_cancelled_exc_class(), GeneratorExit):
            raise
        except BaseException as error:
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await end()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # breaks the reference cycle of exception and frame


def _target_text(target: Target) -> str:
    """The target for error texts, without the secrets of a URL or a command line."""
    if isinstance(target, str):
        url = urlsplit(target)
        return f" with {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
    if not isinstance(target, Sequence):
        return ""
    from ..command_masking import masked_command

    return f" with {masked_command(target)!r}"


@asynccontextmanager
async def in_memory(server: Servable) -> AsyncGenerator[Channel, None]:
    """Serve a server of this process over a channel. An exception of the server is raised."""
    near, far = memory_pair()
    crash: Exception | None = None

    async def serve() -> None:
        nonlocal crash
        try:
            await server.serve(far)
        except Exception as error:
            crash = error
        finally:
            await far.close()

    try:
        async with run_concurrently(serve, near.close):
            yield near
    except ConnectionClosedError:
        if crash is None:
            raise
    if crash is not None:
        raise crash
