"""What an application holds while one event loop runs it.

The same application may be run by several loops, one after the other, as test clients do. Nothing
that waits on one loop is of use to the next, so each has a life of its own.
"""

from __future__ import annotations

import signal
from typing import Any

import anyio

from ..serving import Service
from .endpoints import handshake_endpoint, sse_endpoints, stateless_endpoint
from .lifespan import TaskScope
from .load import Load
from .request_body import SHORT, RequestBodies
from .responses import ENDING
from .settings import HttpSettings
from .stream_limits import StreamLimits

_GLANCE = 0.25  # seconds between two looks at whether the host is to end


class LifespanState:
    """One life of an application.

    Args:
        service: What is served.
        settings: How.

    Attributes:
        over: Whether it has ended.
        load: What all clients take together.
        bodies: The bodies that are on their way.
        background: Runs what no request owns.
        streams: The streams that stay open.
        stateless: Answers for the revisions without sessions, if the package has any.
        handshake: Answers for those with sessions, if there are any.
        http_sse: Serves HTTP+SSE, if that is wanted.
    """

    def __init__(self, service: Service, settings: HttpSettings) -> None:
        self.over = False
        self.load = Load(settings.limits)
        self.bodies = RequestBodies(settings.limits)
        self._drain = service.drain
        self._draining = False
        self.background = TaskScope(
            service.lifespan, self._ended, self._attend, self._end_with_host
        )
        self.streams = StreamLimits(settings.limits.streams)
        self.stateless = stateless_endpoint(
            service, settings, self.background, self.streams, self.load
        )
        self.handshake = handshake_endpoint(
            service, settings, self.background, self.streams, self.load
        )
        self.http_sse = sse_endpoints(service, settings, self.streams, self.load, self.bodies)

    def make_room(self) -> None:
        """Have memory given back, since there is no room for another body."""
        if self.handshake is not None:
            self.handshake.long_calls.give_up_first("bodies")
        self.load.memory.end_largest(SHORT)

    async def close_streams(self) -> None:
        """Close what would keep a server from ending: streams that stay open, idle sessions."""
        self.streams.close()
        if self.handshake is not None:
            await self.handshake.table.close_idle()

    async def drain(self) -> None:
        """Let calls finish for `drain` seconds, then answer the others with an error.

        Streams that stay open and idle sessions are closed at once. Returns at the end of these
        seconds, also if there are no calls; does nothing the second time.
        """
        if self._draining:
            return
        self._draining = True
        await self.close_streams()
        await anyio.sleep(self._drain)
        await self._end_calls()

    async def end(self) -> None:
        """End it.

        Raises:
            Exception: Whatever the lifespan raised in the end.
        """
        self.streams.close()
        await self._end_calls()
        await self.background.stop()

    async def _end_calls(self) -> None:
        """Answer what is being served with an error, cancel it, and end the sessions."""
        async with anyio.create_task_group() as tasks:
            if self.stateless is not None:
                tasks.start_soon(self.stateless.give_up_all, ENDING)
            if self.handshake is not None:
                tasks.start_soon(self.handshake.long_calls.give_up_all, ENDING)
        if self.handshake is not None:
            await self.handshake.table.close()

    def _ended(self) -> None:
        self.over = True

    async def _attend(self) -> None:
        if self.handshake is not None:
            await self.handshake.attend()

    async def _end_with_host(self) -> None:
        """Drain once uvicorn is to end, whether alone or in a worker of gunicorn.

        uvicorn ends the lifespan after all responses only, however long these last. Its handler of
        SIGTERM is the one place where an application can see that it waits for them.
        """
        host: Any = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
        if hasattr(host, "should_exit"):
            while not host.should_exit:  # noqa: ASYNC110  # it is not ours, and sets no event
                await anyio.sleep(_GLANCE)
            await self.drain()
