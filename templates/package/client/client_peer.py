"""A client's end of a channel, and the messages that open its session."""

from __future__ import annotations

from contextlib import nullcontext

import anyio
import anyio.abc

from ..channel import Channel, OutgoingMessage
from ..errors import ConnectionClosedError, McpError, RequestTimeoutError, refusal_of
from ..protocol.client_connection import ClientConnection
from ..protocol.connection import Event, Opened, OpenFailed, Send
from ..runtime.peer import Peer
from ..runtime.request_context import Application
from ..runtime.time_limits import PausableLimit, pausable
from .client_settings import ClientSettings
from .pipeline import may_have_begun


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
        first = Send(self.client_connection.open(), opens=True)
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
                return self.client_connection.opening_refused(message.id, error)
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
        self.client_connection.peer_replaced()
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
