"""A subscription to changes of several servers: one subscription per server, in one iteration."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from ..errors import McpError
from .group_requests import GroupServer
from .listen import Change, NotificationFilter, Subscription

_CAPABILITIES = {
    "tools": "tools.listChanged",
    "prompts": "prompts.listChanged",
    "resources": "resources.listChanged",
}

_logger = logging.getLogger(__name__)


class GroupSubscription:
    """An asynchronous iterator of changes of several servers; a context manager that opens them.

        async with client.listen(tools=True) as changes:
            async for change in changes:
                ...

    Args:
        servers: The servers.
        by_uri: Finds the server of a resource.
        wanted: The requested filter.
        options: The other arguments of a client's `listen`.
        tasks: Runs a task for each subscription.

    Attributes:
        agreed: The filters that the servers accepted, together.
    """

    def __init__(
        self,
        servers: Sequence[GroupServer[Any]],
        by_uri: Callable[[str], Awaitable[GroupServer[Any]]],
        wanted: NotificationFilter,
        options: Mapping[str, Any],
        tasks: TaskGroup,
    ) -> None:
        self.agreed = NotificationFilter()
        self._servers = servers
        self._by_uri = by_uri
        self._wanted = wanted
        self._options = options
        self._tasks = tasks
        self._stack = AsyncExitStack()
        self._failure: McpError | None = None
        self._ended_well = False
        self._send, self._changes = anyio.create_memory_object_stream[Change](0)

    async def __aenter__(self) -> Self:
        subscriptions: list[tuple[GroupServer[Any], Subscription]] = []
        async with AsyncExitStack() as stack:
            for server, wanted in (await self._shares()).items():
                subscription = server.session.listen(**wanted, **self._options)
                await stack.enter_async_context(subscription)
                subscriptions.append((server, subscription))
            self._stack = stack.pop_all()
        self.agreed = _together([subscription.agreed for _, subscription in subscriptions])
        for server, subscription in subscriptions:
            self._tasks.start_soon(self._pass_on, server, subscription, self._send.clone())
        self._send.close()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        try:
            return await self._changes.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            if self._failure is not None and not self._ended_well:
                raise self._failure from None
            raise StopAsyncIteration from None

    async def close(self) -> None:
        """End the subscriptions and the iteration, from any task."""
        self._ended_well = True
        await self._stack.aclose()
        self._changes.close()

    async def _shares(self) -> dict[GroupServer[Any], dict[str, Any]]:
        """The part of the requested filter that each server can serve."""
        shares: dict[GroupServer[Any], dict[str, Any]] = {}
        for server in self._servers:
            if server.client is None:
                continue
            for member, capability in _CAPABILITIES.items():
                if getattr(self._wanted, member) and server.session.supports(capability):
                    shares.setdefault(server, {})[member] = True
        for uri in self._wanted.uris:
            shares.setdefault(await self._by_uri(uri), {}).setdefault("uris", []).append(uri)
        if not shares:
            _logger.warning("no server tells of changes of what was asked for")
        return shares

    async def _pass_on(
        self,
        server: GroupServer[Any],
        subscription: Subscription,
        send: MemoryObjectSendStream[Change],
    ) -> None:
        """Pass on the changes of one server, until its subscription ends."""
        async with send:
            try:
                async for change in subscription:
                    await send.send(change)
                self._ended_well = True
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # nobody reads any more
            except McpError as error:
                self._failure = error
                server.failed(error)


def _together(filters: Sequence[NotificationFilter]) -> NotificationFilter:
    return NotificationFilter(
        any(each.tools for each in filters),
        any(each.prompts for each in filters),
        any(each.resources for each in filters),
        tuple(uri for each in filters for uri in each.uris),
    )
