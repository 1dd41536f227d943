"""Several servers as one client, each with a session of its own.

Names of tools, prompts, resources and templates begin with the name of their server, which finds
the server of a call; a configuration of one server leaves names as they are. URIs are unchanged,
since they mean the same in texts, in arguments of tools and in results. The server of a URI is the
one that lists it, or whose template begins like it.

Each session is opened and closed in a task of its own, so that the failure of one does not end the
others: the calls of that server fail, and its items are missing in lists.
"""

from __future__ import annotations

import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import msgspec

from .._wire import to_builtins
from ..errors import (
    ConnectionClosedError,
    InvalidParamsError,
    McpError,
    MethodNotFoundError,
    TransportError,
)
from ..facts import Method
from ..foreign_text import safe_repr
from ..protocol.lifecycle import declared
from ..runtime.pending_requests import OnProgress
from .base import AnyClient, ClientBase, ModelCalls
from .connect import beside
from .pipeline import RequestPipeline
from .server_config import Config, ServerEntry, read_config

if TYPE_CHECKING:
    from .group_subscription import GroupSubscription
    from .typed_results import ValueReader

RESOURCES_LIST = "resources/list"
TEMPLATES_LIST = "resources/templates/list"
PROMPTS_LIST = "prompts/list"

_logger = logging.getLogger(__name__)

AnyGroup = TypeVar("AnyGroup", bound="GroupBase[Any]")
Result = TypeVar("Result")


class _Session(ClientBase):
    """A session with its request pipeline."""

    @property
    def requests(self) -> RequestPipeline:
        """The request pipeline."""
        return self._requests

    async def send_notification(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification with params by Python name."""
        await self._notify(name, fields)


class GroupServer(Generic[AnyClient]):
    """One server of a group.

    Args:
        name: Its name in the configuration.
        prefix: The beginning of the names of its items; may be empty.
        opening: Opens the session; an error if the entry of the configuration is wrong.

    Attributes:
        client: The client; `None` if the session could not be opened.
        error: Why the session could not be opened, or the last failure of the connection.
        uris: The URIs of its resources, when they were listed last.
        templates: The same of its templates.
    """

    def __init__(
        self,
        name: str,
        prefix: str,
        opening: AbstractAsyncContextManager[AnyClient] | ValueError,
    ) -> None:
        self.name = name
        self.prefix = prefix
        self.client: AnyClient | None = None
        self.error: Exception | None = None
        self.uris: frozenset[str] = frozenset()
        self.templates: tuple[str, ...] = ()
        self.ready = anyio.Event()
        self._opening = opening
        self._session: _Session | None = None

    async def hold(self, over: anyio.Event) -> None:
        """Hold the session open until an event; a failure is stored and logged."""
        try:
            if isinstance(self._opening, ValueError):
                raise self._opening
            async with self._opening as client:
                self.client = client
                self._session = client.seen_as(_Session)
                self.ready.set()
                await over.wait()
        except Exception as error:
            self.failed(error)
        finally:
            self.ready.set()

    def failed(self, error: Exception) -> None:
        """Store a failure of the session, and log the first of several."""
        if self.error is None:
            _logger.warning("server %s: %s", safe_repr(self.name), error)
        self.error = error

    @property
    def session(self) -> _Session:
        """The session.

        Raises:
            ConnectionClosedError: It could not be opened.
        """
        if self._session is None:
            reason = "" if self.error is None else f": {self.error}"
            raise ConnectionClosedError(f"server {self.name!r} is not open{reason}")
        return self._session

    def row(self, method: str) -> Method | None:
        """A request, if the session is open, and revision and server have it."""
        if self._session is None:
            return None
        session = self._session.session
        row = session.revision.client_requests.get(method)
        has = row is not None and declared(session.peer_capabilities, row.capability)
        return row if has else None

    def has_notification(self, name: str) -> bool:
        """Whether the client may send a notification in the session."""
        row = self.session.session.revision.client_notifications.get(name)
        own = self.session.session.own_capabilities
        return row is not None and declared(own, row.capability)

    async def guarded(self, work: Callable[[RequestPipeline], Awaitable[Result]]) -> Result:
        """Use the session; a failure of the connection is stored, and names the server.

        Raises:
            Exception: Any exception of the work.
        """
        requests = self.session.requests
        try:
            result = await work(requests)
        except ConnectionClosedError as error:
            self.failed(error)
            raise ConnectionClosedError(f"server {self.name!r}: {error}") from error
        except TransportError as error:
            self.failed(error)
            raise
        self.error = None
        return result


class GroupRequests:
    """Sends the requests of a group, to the server that each is for; compare `RequestPipeline`.

    Args:
        servers: The servers.
    """

    def __init__(self, servers: Sequence[GroupServer[Any]]) -> None:
        self._servers = servers

    async def pages(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
    ) -> list[Any]:
        """The items of a list of every server that has it; a failed server is left out, with a
        warning.

        Raises:
            McpError: Every server failed.
        """
        lists = await self.of_each(method, lambda each: each.pages(method, fields, meta, timeout))
        return [_renamed(item, server.prefix) for server, items in lists.items() for item in items]

    async def call(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Any:
        """The typed result of a request. A request for all servers has the result of one of them.

        Raises:
            ConnectionClosedError: The connection to the server has ended, or was never open.
            InvalidParamsError: It is not for any of the servers, or may be for several.
        """
        servers, own = await self.route(method, fields)
        send = partial(_sent, method, own, meta, timeout, on_progress)
        if servers is None:
            results = await self.of_each(method, send)
            if not results:
                raise MethodNotFoundError(method, f"none of the servers has {method}")
            return next(iter(results.values()))
        return await servers.guarded(send)

    async def route(
        self, method: str, fields: Mapping[str, Any]
    ) -> tuple[GroupServer[Any] | None, Mapping[str, Any]]:
        """The server of a request, `None` for all servers; and the params as it knows them."""
        facts = self._open()[0].session.session.revision.facts.method(method)
        match facts.routed_by:
            case "name":
                server, name = await self.by_name(fields["name"], facts.listed_by)
                return server, {**fields, "name": name}
            case "uri":
                return await self.by_uri(fields["uri"]), fields
            case "ref":
                ref: Mapping[str, Any] = to_builtins(fields["ref"])
                if "uri" in ref:
                    return await self.by_uri(ref["uri"]), fields
                server, name = await self.by_name(str(ref.get("name")), PROMPTS_LIST)
                return server, {**fields, "ref": {**ref, "name": name}}
            case _:
                return None, fields

    async def by_name(self, name: str, listed_by: str | None) -> tuple[GroupServer[Any], str]:
        """The server that a name begins with, and the name without that.

        If the names of several servers begin the name, their lists decide.

        Raises:
            InvalidParamsError: The name begins with no server, or several servers list it.
        """
        servers = [server for server in self._servers if name.startswith(server.prefix)]
        if len(servers) > 1 and listed_by is not None:
            lists = await self.of_each(
                listed_by, lambda each: each.pages(listed_by, {}, None, None), servers
            )
            listing = [
                server
                for server, items in lists.items()
                if name in (server.prefix + item.name for item in items)
            ]
            if len(listing) > 1:
                raise InvalidParamsError(
                    f"{safe_repr(name)} is listed by {_named(listing)}; use client.servers[name]"
                )
            servers = listing or servers
        if not servers:
            prefixes = ", ".join(server.prefix for server in self._servers)
            raise InvalidParamsError(
                f"expected a name that begins with one of {prefixes}, got {safe_repr(name)}"
            )
        server = max(servers, key=lambda server: len(server.prefix))
        return server, name.removeprefix(server.prefix)

    async def by_uri(self, uri: str) -> GroupServer[Any]:
        """The server of a resource, or of a template.

        Raises:
            InvalidParamsError: No server has it, or several have.
        """
        offering = [server for server in self._servers if server.row(RESOURCES_LIST)]
        if len(offering) == 1:
            return offering[0]
        owners = _owners(uri, offering)
        if not owners:
            await self._list_uris(offering)
            owners = _owners(uri, offering)
        if len(owners) == 1:
            return owners[0]
        having = f"{_named(owners)} have it" if owners else "no server lists it"
        raise InvalidParamsError(
            f"resource {safe_repr(uri)}: {having}; ask one: client.servers[name].read_resource(uri)"
        )

    async def of_each(
        self,
        method: str,
        work: Callable[[RequestPipeline], Awaitable[Result]],
        among: Iterable[GroupServer[Any]] | None = None,
    ) -> dict[GroupServer[Any], Result]:
        """What some work gives with each server that has a request, all at a time.

        Raises:
            McpError: Every server failed.
        """
        servers = [server for server in (among or self._servers) if server.row(method) is not None]
        results: dict[GroupServer[Any], Result] = {}
        errors: list[McpError] = []

        async def one(server: GroupServer[Any]) -> None:
            try:
                results[server] = await server.guarded(work)
            except McpError as error:
                errors.append(error)
                server.failed(error)

        async with anyio.create_task_group() as tasks:
            for server in servers:
                tasks.start_soon(one, server)
        if errors and not results:
            raise errors[0]
        return {server: results[server] for server in servers if server in results}

    async def _list_uris(self, servers: Iterable[GroupServer[Any]]) -> None:
        resources = await self.of_each(
            RESOURCES_LIST, lambda each: each.pages(RESOURCES_LIST, {}, None, None), servers
        )
        templates = await self.of_each(
            TEMPLATES_LIST, lambda each: each.pages(TEMPLATES_LIST, {}, None, None), servers
        )
        for server, items in resources.items():
            server.uris = frozenset(item.uri for item in items)
        for server, items in templates.items():
            server.templates = tuple(item.uri_template for item in items)

    def _open(self) -> list[GroupServer[Any]]:
        return [server for server in self._servers if server.client is not None]


async def _sent(
    method: str,
    fields: Mapping[str, Any],
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    on_progress: OnProgress | None,
    requests: RequestPipeline,
) -> Any:
    return await requests.call(method, fields, meta, timeout, on_progress)


def _renamed(item: Any, prefix: str) -> Any:
    """An item of a list under its name in the group."""
    return msgspec.structs.replace(item, name=prefix + item.name) if prefix else item


def _owners(uri: str, servers: Sequence[GroupServer[Any]]) -> list[GroupServer[Any]]:
    """The servers that list a URI; else those whose template begins most like it."""
    listing = [server for server in servers if uri in server.uris or uri in server.templates]
    if listing:
        return listing
    longest = {
        server: max((_fixed(uri, template) for template in server.templates), default=0)
        for server in servers
    }
    best = max(longest.values(), default=0)
    return [server for server, length in longest.items() if best and length == best]


def _fixed(uri: str, template: str) -> int:
    """Length of the beginning of a template that has no variables, if a URI begins like that."""
    beginning = template.partition("{")[0]
    return len(beginning) if uri.startswith(beginning) else 0


def _named(servers: Iterable[GroupServer[Any]]) -> str:
    return " and ".join(server.name for server in servers)


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
            more = hint if hasattr(_Session, name) and not name.startswith("_") else ""
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
        self._over.set()
        await self._ended.wait()

    async def hold(self) -> None:
        """Open the sessions, and hold them open until `close`."""
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
    opening: Callable[[ServerEntry], AbstractAsyncContextManager[AnyClient]],
) -> AsyncGenerator[AnyGroup, None]:
    """Open the servers of a configuration, all at a time, and close them in the end.

    Args:
        group_class: The class of the client.
        config: The configuration.
        opening: Opens the session with one server.

    Raises:
        OSError: The file of the configuration can't be read.
        ValueError: The configuration has no servers.
        TransportError: None of the sessions could be opened.
    """
    entries = read_config(config)
    servers = [
        GroupServer(
            name,
            f"{name}_" if len(entries) > 1 else "",
            entry if isinstance(entry, ValueError) else opening(entry),
        )
        for name, entry in entries.items()
        if entry is not None
    ]
    group = group_class(servers)
    async with beside(group.hold, group.close):
        await group.opened()
        yield group
