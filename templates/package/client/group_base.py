"""Several servers as one client, each with a session of its own.

Names of tools, prompts, resources and templates begin with the name of their server; in a
configuration of one server, names are unchanged. URIs are unchanged, since texts, arguments of
tools and results contain URIs too.

Each session is opened and closed in a task of its own, so the failure of one session does not end
the others: calls of that server fail, and its items are missing in lists.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from ..errors import McpError, TransportError
from .base import AnyClient
from .group_requests import GroupRequests, GroupServer
from .listen import (
    Change,
    ChangeIterator,
    ListenCalls,
    ListenOptions,
    NotificationFilter,
    Subscription,
)
from .opening import run_concurrently
from .pipeline import RequestPipeline
from .server_config import Config, Inputs, ServerEntry, read_config

if TYPE_CHECKING:  # few clients decode results as types
    from .typed_results import ValueReader

_logger = logging.getLogger(__name__)

_CAPABILITIES = {
    "tools": "tools.listChanged",
    "prompts": "prompts.listChanged",
    "resources": "resources.listChanged",
}

AnyGroup = TypeVar("AnyGroup", bound="GroupBase[Any]")


class GroupBase(ListenCalls["GroupSubscription"], Generic[AnyClient]):
    """Several servers as one client. The rendered subclass has a coroutine for each request.

    Args:
        servers: The servers, in the order of the configuration.
    """

    _absent: ClassVar[Mapping[str, str]] = {}

    def __init__(self, servers: Sequence[GroupServer[AnyClient]]) -> None:
        self._servers = servers
        self._requests: GroupRequests = GroupRequests(servers)
        self._over = anyio.Event()
        self._ended = anyio.Event()
        self._tasks = anyio.create_task_group()

    def __repr__(self) -> str:
        states = (
            f"{server.name}: {'not open' if server.client is None else repr(server.client)}"
            for server in self._servers
        )
        return f"<{type(self).__name__} of {', '.join(states)}>"

    if not TYPE_CHECKING:  # type checkers see the rendered methods

        def __getattr__(self, name: str) -> Any:
            """Raise an error that refers to the clients of the servers.

            Raises:
                AttributeError: Always.
            """
            if name in ("_servers", "servers"):  # not yet set
                raise AttributeError(name)
            raise absent_from_group(self, self.servers.values(), name, self._absent)

    @property
    def servers(self) -> Mapping[str, AnyClient]:
        """The client of each server whose session was opened, by name in the configuration.

        These clients have the names and the revision of their server.
        """
        return MappingProxyType(
            {server.name: server.client for server in self._servers if server.client is not None}
        )

    @property
    def failures(self) -> Mapping[str, Exception]:
        """The error of opening a session, or the last error of its connection, by server name.

        The failure of a connection is removed when a later request succeeds.
        """
        return MappingProxyType(
            {server.name: server.error for server in self._servers if server.error is not None}
        )

    async def close(self) -> None:
        """Close all sessions, from any task; open requests fail with ConnectionClosedError."""
        await self.end()
        await self._ended.wait()

    async def end(self) -> None:
        """Request the end of the sessions, without waiting."""
        self._over.set()

    async def hold(self) -> None:
        """Open the sessions, and keep them open until `end` is called."""
        try:
            async with self._tasks as tasks:
                for server in self._servers:
                    tasks.start_soon(server.hold, self._over)
        finally:
            self._ended.set()

    async def wait_until_open(self) -> None:
        """Wait until each session is open or has failed.

        Raises:
            TransportError: No session could be opened. With one server, its own error is raised.
        """
        for server in self._servers:
            await server.ready.wait()
        if self.servers:
            return
        failures = self.failures
        if len(failures) == 1:
            raise next(iter(failures.values()))
        reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
        raise TransportError(f"none of the servers could be opened: {reasons}")

    def _pipelines(self) -> Iterable[RequestPipeline]:
        return [server.session.requests for server in self._servers if server.client is not None]

    def _subscription(
        self, requested: NotificationFilter, options: ListenOptions
    ) -> GroupSubscription:
        return GroupSubscription(
            self._servers, self._requests.by_uri, requested, options, self._tasks
        )

    async def _notify(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification to each server whose revision has it."""
        for server in self._servers:
            if server.client is not None and server.has_notification(name):
                await server.session.send_notification(name, fields)

    def _value_reader(self, name: str, fields: Mapping[str, Any], returns: object) -> ValueReader:
        """A reader that decodes the result of a request as a type that the caller names.

        Raises:
            TypeError: The type can't be read from JSON.
        """
        from .typed_results import ValueReader

        label = str(fields["name"])
        named = (s for s in self._servers if s.client is not None and label.startswith(s.prefix))
        revision = next((s.session.revision for s in named), "unknown server")
        return ValueReader(label, revision, returns)


class GroupSubscription(ChangeIterator):
    """An asynchronous iterator of changes of several servers; a context manager that opens them.

        async with client.listen(tools=True) as changes:
            async for change in changes:
                ...

    Args:
        servers: The servers.
        by_uri: Returns the server of a resource.
        requested: The requested filter.
        options: The timeouts and the retries of the subscriptions.
        tasks: Runs a task for each subscription.
    """

    def __init__(
        self,
        servers: Sequence[GroupServer[Any]],
        by_uri: Callable[[str], Awaitable[GroupServer[Any]]],
        requested: NotificationFilter,
        options: ListenOptions,
        tasks: TaskGroup,
    ) -> None:
        super().__init__()
        self._servers = servers
        self._by_uri = by_uri
        self._requested = requested
        self._options = options
        self._tasks = tasks
        self._stack = AsyncExitStack()
        self._opening = anyio.CancelScope()
        self._failure: McpError | None = None
        self._ended_well = False
        self._send, self._changes = anyio.create_memory_object_stream[Change](0)

    async def __aenter__(self) -> Self:
        subscriptions: list[tuple[GroupServer[Any], Subscription]] = []
        with self._opening:
            async with AsyncExitStack() as stack:
                for server, part in (await self._filter_by_server()).items():
                    subscription = server.session.subscription(part, self._options)
                    await stack.enter_async_context(subscription)
                    subscriptions.append((server, subscription))
                self._stack = stack.pop_all()
        self.agreed = _merge_filters([subscription.agreed for _, subscription in subscriptions])
        for server, subscription in subscriptions:
            self._tasks.start_soon(self._pass_on, server, subscription, self._send.clone())
        self._send.close()
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
        self._opening.cancel()
        await self._stack.aclose()
        self._changes.close()

    async def _filter_by_server(self) -> dict[GroupServer[Any], NotificationFilter]:
        """The part of the requested filter that each server can serve."""
        shares: dict[GroupServer[Any], dict[str, Any]] = {}
        for server in self._servers:
            if server.client is None:
                continue
            for member, capability in _CAPABILITIES.items():
                if getattr(self._requested, member) and server.session.supports(capability):
                    shares.setdefault(server, {})[member] = True
        for uri in self._requested.uris:
            share = shares.setdefault(await self._by_uri(uri), {})
            share["uris"] = (*share.get("uris", ()), uri)
        if not shares:
            _logger.warning("no server tells of changes of what was asked for")
        return {server: NotificationFilter(**share) for server, share in shares.items()}

    async def _pass_on(
        self,
        server: GroupServer[Any],
        subscription: Subscription,
        send: MemoryObjectSendStream[Change],
    ) -> None:
        """Forward the changes of one server until its subscription ends."""
        async with send:
            try:
                async for change in subscription:
                    await send.send(change)
                self._ended_well = True
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the iteration was closed
            except McpError as error:
                self._failure = error
                server.record_failure(error)


def _merge_filters(filters: Sequence[NotificationFilter]) -> NotificationFilter:
    return NotificationFilter(
        any(each.tools for each in filters),
        any(each.prompts for each in filters),
        any(each.resources for each in filters),
        tuple(uri for each in filters for uri in each.uris),
    )


@asynccontextmanager
async def open_group(
    group_class: Callable[[Sequence[GroupServer[AnyClient]]], AnyGroup],
    config: Config,
    inputs: Inputs | None,
    opening: Callable[[str, ServerEntry], AbstractAsyncContextManager[AnyClient]],
) -> AsyncGenerator[AnyGroup, None]:
    """Open sessions with all servers of a configuration concurrently; close them on exit.

    Args:
        group_class: The class of the client.
        config: The configuration.
        inputs: Values for its `${input:id}`.
        opening: Opens the session with one server, by its name and its entry.

    Raises:
        OSError: The file of the configuration can't be read.
        TypeError: A value of an input is not a string.
        ValueError: The configuration has no servers, or does not declare an input.
        TransportError: No session could be opened.
    """
    entries = await read_config(config, inputs)
    servers = [
        GroupServer(
            name,
            f"{name}_" if len(entries) > 1 else "",
            entry if isinstance(entry, Exception) else opening(name, entry),
        )
        for name, entry in entries.items()
        if entry is not None
    ]
    group = group_class(servers)
    async with run_concurrently(group.hold, group.end):
        await group.wait_until_open()
        yield group


def absent_from_group(
    group: object, clients: Iterable[object], name: str, absent: Mapping[str, str]
) -> AttributeError:
    """The error for an attribute that a client of several servers lacks.

    Args:
        group: The client of several servers.
        clients: The clients of its servers, which may have the attribute.
        name: The attribute.
        absent: Members of absent features, each with its feature.
    """
    if name in absent:
        from ..absence import attribute_error  # for the error only

        return attribute_error(group, name, absent)
    text = f"{type(group).__name__!r} object has no attribute {name!r}"
    if not name.startswith("_") and any(hasattr(client, name) for client in clients):
        list_name = name.removesuffix("_page")
        all_pages = f"{list_name}() has the items of all servers; " if list_name != name else ""
        text += f"; {all_pages}the client of a server has it: client.servers[name].{name}"
    return AttributeError(text, name=name, obj=group)
