"""A client's opening at work: requests go out one by one, until there is an agreement or none.

`Connection` decides which request is next. Some transports tell at once that one was refused or
could not be delivered; on others an answer comes later, or nothing does, which is an answer too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from ..channel import Channel
from ..errors import ConnectionClosedError, McpError, RequestTimeoutError
from ..protocol.connection import Connection
from ..protocol.events import Event
from .one_shot_event import OneShotEvent
from .pending_requests import Waiter


class Initialization:
    """What a client waits for before it is open.

    Args:
        connection: The protocol.
        channel: The transport.
        handle: Does what an event of the connection asks for.
        new_wakeup: Makes what to wait for.
    """

    def __init__(
        self,
        connection: Connection,
        channel: Channel,
        handle: Callable[[Event], Awaitable[None]],
        new_wakeup: Callable[[], OneShotEvent],
    ) -> None:
        self._connection = connection
        self._channel = channel
        self._handle = handle
        self._waiter = Waiter(new_wakeup)

    async def reach(self, probe_timeout: float, timeout: float) -> None:
        """Come to an agreement with a server.

        Args:
            probe_timeout: Seconds a server has to answer the probe before it counts as older.
            timeout: Seconds for all of it.

        Raises:
            RevisionError: Nothing in common.
            RequestTimeoutError: No answer in time.
            McpError: The server refused, or ended, or could not be reached.
        """
        waiter, connection = self._waiter, self._connection
        with anyio.move_on_after(timeout):
            events: list[Event] = []
            with anyio.move_on_after(probe_timeout):
                events = await self._deliver(connection.open())
                if not events:
                    await waiter.wait()
            if not events and not waiter.settled and connection.probing:
                events = connection.opening_timed_out()
            for event in events:
                await self._handle(event)
            await waiter.wait()
        if not waiter.settled:
            raise RequestTimeoutError("opening the session", timeout)
        if waiter.failure is not None:
            raise waiter.failure

    async def ask(self, message: bytes) -> None:
        """Send a message of the opening, and do what follows if it can't be sent."""
        for event in await self._deliver(message):
            await self._handle(event)

    def end(self, failure: McpError | None = None) -> None:
        """There is an agreement, or there will be none."""
        self._waiter.settle(failure=failure)

    async def _deliver(self, message: bytes) -> list[Event]:
        """Send a message of the opening; what follows at once if it was not delivered."""
        try:
            await self._channel.send(message)
        except ConnectionClosedError:
            return []  # whoever reads notices too, and knows why
        except McpError as error:
            return self._connection.opening_refused(error)
        except Exception as error:
            self._waiter.settle(failure=error)
        return []
