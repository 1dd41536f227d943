"""Several servers as one client, each with a session of its own.

Names of tools, prompts, resources and templates begin with the name of their server; a
configuration of one server leaves names as they are. URIs are unchanged, since they mean the same
in texts, in arguments of tools and in results.

Each session is opened and closed in a task of its own, so that the failure of one does not end the
others: the calls of that server fail, and its items are missing in lists.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from ..errors import TransportError
from .base import AnyClient, ModelCalls
from .connect import beside
from .group_requests import GroupRequests, GroupServer, GroupSession
from .server_config import Config, Inputs, ServerEntry, read_config

if TYPE_CHECKING:  # few clients subscribe, or name a type
    from .group_subscription import GroupSubscription
    from .typed_results import ValueReader

AnyGroup = TypeVar("AnyGroup", bound="GroupBase[Any]")


class GroupBase(ModelCalls, Generic[AnyClient]):
    """Several servers as one client. The rendered subclass has a coroutine for each request.

    Args:
        servers: The servers, as the configuration has them.
    """

    def __init__(self, servers: Sequence[GroupServer[AnyClient]]) -> None:
        self._servers = servers
        self._requests: GroupRequests = GroupRequests(servers)
        self._over = anyio.Event()
        self._ended = anyio.Event()
        self._tasks = anyio.create_task_group()

    def __repr__(self) -> str:
        states = (
            f"{server.name}: {'not open' if server.client is None else server.client!r}"
            for server in self._servers
        )
        return f"<{type(self).__name__} of {', '.join(states)}>"

    if not TYPE_CHECKING:  # a type checker knows what a group has

        def __getattr__(self, name: str) -> Any:
            """Point to the clients of the servers.

            Raises:
                AttributeError: Always.
            """
            hint = "; a server's client may have it: client.servers[name]"
            kind = type(self).__name__
            more = hint if hasattr(GroupSession, name) and not name.startswith("_") else ""
            raise AttributeError(
                f"{kind!r} object has no attribute {name!r}{more}", name=name, obj=self
            )

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
        """Why a session could not be opened, or the failure of a server since then, by name.

        The failure of a connection is removed when a later request succeeds.
        """
        return MappingProxyType(
            {server.name: server.error for server in self._servers if server.error is not None}
        )

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        retry_seconds: Sequence[float] | None = None,
        idle_seconds: float | None = 20.0,
    ) -> GroupSubscription:
        """A subscription to changes of any of the servers; the arguments are those of a client's.

        The servers that have such changes are subscribed to. The subscription of a server that
        fails ends, with a warning.

        Args:
            tools: Whether to subscribe to changes of the lists of tools.
            prompts: The same for the lists of prompts.
            resources: The same for the lists of resources.
            uris: Resources to whose updates to subscribe.
            meta: Members to add to `_meta`.
            timeout: Seconds for each server to accept; `None` for no limit.
            retry_seconds: Pauses before each attempt to reopen a stream that was lost.
            idle_seconds: Seconds without a change before a liveness check.

        Raises:
            InvalidParamsError: (on entry) No server has one of the resources, or several have.
            McpError: (on entry) A server refused the subscription, or did not accept in time; (in
                the iteration) the subscriptions of all servers have failed.
        """
        from .group_subscription import GroupSubscription
        from .listen import NotificationFilter

        if isinstance(uris, str):
            raise TypeError(f"uris: expected several URIs, got the text {uris!r}")
        wanted = NotificationFilter(tools, prompts, resources, tuple(dict.fromkeys(uris)))
        options: dict[str, Any] = {"meta": meta, "timeout": timeout, "idle_seconds": idle_seconds}
        if retry_seconds is not None:
            options["retry_seconds"] = retry_seconds
        return GroupSubscription(self._servers, self._requests.by_uri, wanted, options, self._tasks)

    def ask_for_logs(self, level: str | None) -> None:
        """Ask for log messages with each request, in sessions whose revisions do so.

        Args:
            level: The lowest level to send; `None` for no messages.

        Source: server/utilities/logging (2026-07-28).
        """
        for client in self.servers.values():
            client.ask_for_logs(level)

    async def close(self) -> None:
        """Close all sessions, from any task; open requests fail with ConnectionClosedError."""
        await self.end()
        await self._ended.wait()

    async def end(self) -> None:
        """Begin to close the sessions."""
        self._over.set()

    async def hold(self) -> None:
        """Open the sessions, and hold them open until `end`."""
        try:
            async with self._tasks as tasks:
                for server in self._servers:
                    tasks.start_soon(server.hold, self._over)
        finally:
            self._ended.set()

    async def opened(self) -> None:
        """Wait until each session is open, or has failed.

        Raises:
            TransportError: None could be opened. If there is one server alone, its error.
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

    async def _notify(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification to each server whose revision has it."""
        for server in self._servers:
            if server.client is not None and server.has_notification(name):
                await server.session.send_notification(name, fields)

    def _value_reader(self, name: str, fields: Mapping[str, Any], returns: object) -> ValueReader:
        """A reader for the result of a request, with a type that the caller names.

        Raises:
            TypeError: The type can't be read from JSON.
        """
        from .typed_results import ValueReader

        label = str(fields["name"])
        named = (s for s in self._servers if s.client is not None and label.startswith(s.prefix))
        revision = next((s.session.revision for s in named), "unknown server")
        return ValueReader(label, revision, returns)


@asynccontextmanager
async def open_group(
    group_class: Callable[[Sequence[GroupServer[AnyClient]]], AnyGroup],
    config: Config,
    inputs: Inputs | None,
    opening: Callable[[ServerEntry], AbstractAsyncContextManager[AnyClient]],
) -> AsyncGenerator[AnyGroup, None]:
    """Open the servers of a configuration, all at a time, and close them in the end.

    Args:
        group_class: The class of the client.
        config: The configuration.
        inputs: Values for its `${input:id}`.
        opening: Opens the session with one server.

    Raises:
        OSError: The file of the configuration can't be read.
        TypeError: A value of an input is no text.
        ValueError: The configuration has no servers, or not one of the inputs.
        TransportError: None of the sessions could be opened.
    """
    entries = await read_config(config, inputs)
    servers = [
        GroupServer(
            name,
            f"{name}_" if len(entries) > 1 else "",
            entry if isinstance(entry, Exception) else opening(entry),
        )
        for name, entry in entries.items()
        if entry is not None
    ]
    group = group_class(servers)
    async with beside(group.hold, group.end):
        await group.opened()
        yield group
