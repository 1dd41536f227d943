"""The servers of a group, and the way of a request to the server that it is for.

Names begin with the name of their server. The server of a URI is the one that lists it, or whose
template begins like it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Generic, TypeVar

import anyio

from .._wire import replace, to_builtins
from ..errors import (
    ConnectionClosedError,
    InvalidParamsError,
    LocalProtocolError,
    MethodNotFoundError,
    RemoteError,
    TransportError,
)
from ..facts import Method, Revision
from ..foreign_text import safe_repr
from ..protocol.lifecycle import is_declared
from ..runtime.pending_requests import OnProgress
from .base import AnyClient, ClientBase
from .listen import ListenOptions, NotificationFilter, Subscription
from .pipeline import RequestPipeline

RESOURCES_LIST = "resources/list"
TEMPLATES_LIST = "resources/templates/list"
PROMPTS_LIST = "prompts/list"

_logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class GroupSession(ClientBase):
    """A session with its request pipeline."""

    @property
    def requests(self) -> RequestPipeline:
        """The request pipeline."""
        return self._requests

    def subscription(self, wanted: NotificationFilter, options: ListenOptions) -> Subscription:
        """A subscription to changes."""
        return self._subscription(wanted, options)

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
        opening: AbstractAsyncContextManager[AnyClient] | Exception,
    ) -> None:
        self.name = name
        self.prefix = prefix
        self.client: AnyClient | None = None
        self.error: Exception | None = None
        self.uris: frozenset[str] = frozenset()
        self.templates: tuple[str, ...] = ()
        self.ready = anyio.Event()
        self._opening = opening
        self._session: GroupSession | None = None

    async def hold(self, over: anyio.Event) -> None:
        """Hold the session open until an event; a failure is stored and logged."""
        try:
            if isinstance(self._opening, Exception):
                raise self._opening
            async with self._opening as client:
                self.client = client
                self._session = client.seen_as(GroupSession)
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
    def session(self) -> GroupSession:
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
        has = row is not None and is_declared(session.peer_capabilities, row.capability)
        return row if has else None

    def has_notification(self, name: str) -> bool:
        """Whether the client may send a notification in the session."""
        row = self.session.session.revision.client_notifications.get(name)
        own = self.session.session.own_capabilities
        return row is not None and is_declared(own, row.capability)

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
        """The items of a list, of every server that has it; failed servers are left out.

        Raises:
            Exception: The first failure, if every server failed.
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
            MethodNotFoundError: It is for all servers, and none has it.
        """
        server, own = await self._route(method, fields)
        send = partial(_sent, method, own, meta, timeout, on_progress)
        if server is not None:
            try:
                return await server.guarded(send)
            except RemoteError as error:
                name = fields.get("name", "")
                if not server.prefix or not isinstance(name, str):
                    raise
                raise RemoteError(
                    error.code, error.message, error.data, error.method, name=name
                ) from error
        results = await self.of_each(method, send)
        if not results:
            raise self._missing(method)
        return next(iter(results.values()))

    async def _route(
        self, method: str, fields: Mapping[str, Any]
    ) -> tuple[GroupServer[Any] | None, Mapping[str, Any]]:
        """The server of a request, `None` for all servers; and the params as it knows them."""
        facts = self._revision().facts.method(method)
        match facts.routed_by or facts.named_by:
            case "name":
                server, name = await self._by_name(fields["name"], facts.listed_by)
                return server, {**fields, "name": name}
            case "uri":
                return await self.by_uri(fields["uri"]), fields
            case "ref":
                ref: Mapping[str, Any] = to_builtins(fields["ref"])
                if "uri" in ref:
                    return await self.by_uri(ref["uri"]), fields
                server, name = await self._by_name(str(ref.get("name")), PROMPTS_LIST)
                return server, {**fields, "ref": {**ref, "name": name}}
            case _:
                return None, fields

    async def _by_name(self, name: str, listed_by: str | None) -> tuple[GroupServer[Any], str]:
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
        """The server of a resource, or of a template; unknown URIs are looked up in the lists.

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
        """The results of some work with each server that has a request, all at a time.

        Raises:
            Exception: The first failure, if every server failed.
        """
        servers = [server for server in (among or self._servers) if server.row(method) is not None]
        results: dict[GroupServer[Any], Result] = {}
        errors: list[Exception] = []

        async def one(server: GroupServer[Any]) -> None:
            try:
                results[server] = await server.guarded(work)
            except (LocalProtocolError, InvalidParamsError) as error:  # the caller's mistake
                errors.append(error)
            except Exception as error:
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

    def _revision(self) -> Revision:
        """The revision of one of the sessions."""
        sessions = (server.session for server in self._servers if server.client is not None)
        return next(sessions).session.revision

    def _missing(self, method: str) -> MethodNotFoundError:
        """The error for a request that no server has."""
        revision = self._revision()
        if method in revision.client_requests:
            return MethodNotFoundError(method, f"none of the servers declares {method}")
        from .handler_checks import absent_method

        return absent_method(revision, method)


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
    return replace(item, name=prefix + item.name) if prefix else item


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
