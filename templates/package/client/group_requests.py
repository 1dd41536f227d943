"""The servers of a group, and the routing of requests to them.

The beginning of a name is the name of its server. The server of a URI is the server that lists the
URI, or a template with the same beginning.
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
from .listen import ClientListenCalls, ListenOptions, NotificationFilter, Subscription
from .pipeline import RequestPipeline

RESOURCES_LIST = "resources/list"
TEMPLATES_LIST = "resources/templates/list"
PROMPTS_LIST = "prompts/list"

_logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class GroupSession(ClientBase, ClientListenCalls):
    """A session with its request pipeline."""

    @property
    def rounds(self) -> int:
        """Rounds in a row in which the server may ask for input."""
        return self._application.settings.limits.input_rounds

    @property
    def requests(self) -> RequestPipeline:
        """The request pipeline."""
        return self._requests

    def subscription(self, requested: NotificationFilter, options: ListenOptions) -> Subscription:
        """A subscription to changes."""
        return self._subscription(requested, options)

    async def send_notification(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a notification with params by Python name."""
        await self._notify(name, fields)


class GroupServer(Generic[AnyClient]):
    """One server of a group.

    Args:
        name: Its name in the configuration.
        prefix: The prefix of the names of its items; may be empty.
        opening: The context manager of the session; an error if the configuration is wrong.

    Attributes:
        client: The client; `None` if the session could not be opened.
        error: Why the session could not be opened, or the last failure of the connection.
        uris: The URIs of its resources in the latest list.
        templates: The URI templates of its resources in the latest list.
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
        """Keep the session open until an event; a failure is stored and logged."""
        try:
            if isinstance(self._opening, Exception):
                raise self._opening
            async with self._opening as client:
                self.client = client
                self._session = client.seen_as(GroupSession)
                self.ready.set()
                await over.wait()
        except Exception as error:
            self.record_failure(error)
        finally:
            self.ready.set()

    def record_failure(self, error: Exception) -> None:
        """Store a failure of the session, and log the first of several."""
        if self.error is None:
            _logger.warning("server %s: %s", safe_repr(self.name), error)
        self.error = error

    @property
    def session(self) -> GroupSession:
        """The session.

        Raises:
            ConnectionClosedError: The session could not be opened.
        """
        if self._session is None:
            reason = "" if self.error is None else f": {self.error}"
            raise ConnectionClosedError(f"server {self.name!r} is not open{reason}")
        return self._session

    def row(self, method: str) -> Method | None:
        """The row of a request; `None` unless the session is open and the server supports it."""
        if self._session is None:
            return None
        session = self._session.session
        row = session.revision.client_requests.get(method)
        has = row is not None and is_declared(session.peer_capabilities, row.capability)
        return row if has else None

    def has_notification(self, name: str) -> bool:
        """Whether the session has a notification, and the client declared its capability."""
        row = self.session.session.revision.client_notifications.get(name)
        own = self.session.session.own_capabilities
        return row is not None and is_declared(own, row.capability)

    async def use_session(self, work: Callable[[RequestPipeline], Awaitable[Result]]) -> Result:
        """Run a coroutine function with the session; a failure of the connection is stored.

        Raises:
            Exception: Any exception of the work.
        """
        requests = self.session.requests
        try:
            result = await work(requests)
        except ConnectionClosedError as error:
            self.record_failure(error)
            raise ConnectionClosedError(f"server {self.name!r}: {error}") from error
        except TransportError as error:
            self.record_failure(error)
            raise
        self.error = None
        return result


class GroupRequests:
    """Sends the requests of a group to its servers; has the interface of `RequestPipeline`.

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
        """The items of a list of all servers that have this list, except failed servers.

        Raises:
            Exception: The first failure, if every server failed.
        """
        lists = await self.run_each(method, lambda each: each.pages(method, fields, meta, timeout))
        return [_rename(item, server.prefix) for server, items in lists.items() for item in items]

    async def call(
        self,
        method: str,
        fields: Mapping[str, Any],
        meta: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> Any:
        """The typed result of a request; of a request to all servers, the result of the first.

        Raises:
            ConnectionClosedError: The connection to the server has ended, or was never open.
            InvalidParamsError: No server has the named item, or several servers have it.
            MethodNotFoundError: No server has the method.
        """
        server, own = await self._route(method, fields)
        send = partial(_call_pipeline, method, own, meta, timeout, on_progress)
        if server is not None:
            try:
                return await server.use_session(send)
            except RemoteError as error:
                name = fields.get("name", "")
                if not server.prefix or not isinstance(name, str):
                    raise
                raise RemoteError(
                    error.code, error.message, error.data, error.method, name=name
                ) from error
        results = await self.run_each(method, send)
        if not results:
            raise self._absent_method(method)
        return next(iter(results.values()))

    async def _route(
        self, method: str, fields: Mapping[str, Any]
    ) -> tuple[GroupServer[Any] | None, Mapping[str, Any]]:
        """The server of a request, `None` for all servers, and the params for the server."""
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
        """The server whose prefix a name has, and the name without the prefix.

        If the name has the prefixes of several servers, their lists decide.

        Raises:
            InvalidParamsError: The name has no prefix of a server, or several servers list it.
        """
        servers = [server for server in self._servers if name.startswith(server.prefix)]
        if len(servers) > 1 and listed_by is not None:
            lists = await self.run_each(
                listed_by, lambda each: each.pages(listed_by, {}, None, None), servers
            )
            listing = [
                server
                for server, items in lists.items()
                if name in (server.prefix + item.name for item in items)
            ]
            if len(listing) > 1:
                raise InvalidParamsError(
                    f"{safe_repr(name)} is listed by {_names(listing)}; use client.servers[name]"
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
        """The server of a resource or a template; the lists are requested for an unknown URI.

        Raises:
            InvalidParamsError: No server lists the URI, or several servers do.
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
        having = f"{_names(owners)} have it" if owners else "no server lists it"
        raise InvalidParamsError(
            f"resource {safe_repr(uri)}: {having}; ask one: client.servers[name].read_resource(uri)"
        )

    async def run_each(
        self,
        method: str,
        work: Callable[[RequestPipeline], Awaitable[Result]],
        among: Iterable[GroupServer[Any]] | None = None,
    ) -> dict[GroupServer[Any], Result]:
        """Run a coroutine function with each server that has a method, concurrently.

        Raises:
            Exception: The first failure, if every server failed.
        """
        servers = [server for server in (among or self._servers) if server.row(method) is not None]
        results: dict[GroupServer[Any], Result] = {}
        errors: list[Exception] = []

        async def run_one(server: GroupServer[Any]) -> None:
            try:
                results[server] = await server.use_session(work)
            except (LocalProtocolError, InvalidParamsError) as error:  # the caller's mistake
                errors.append(error)
            except Exception as error:
                errors.append(error)
                server.record_failure(error)

        async with anyio.create_task_group() as tasks:
            for server in servers:
                tasks.start_soon(run_one, server)
        if errors and not results:
            raise errors[0]
        return {server: results[server] for server in servers if server in results}

    async def _list_uris(self, servers: Iterable[GroupServer[Any]]) -> None:
        resources = await self.run_each(
            RESOURCES_LIST, lambda each: each.pages(RESOURCES_LIST, {}, None, None), servers
        )
        templates = await self.run_each(
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

    def _absent_method(self, method: str) -> MethodNotFoundError:
        """The error for a method that no server has."""
        revision = self._revision()
        if method in revision.client_requests:
            return MethodNotFoundError(method, f"none of the servers declares {method}")
        from .handler_checks import absent_method

        return absent_method(revision, method)


async def _call_pipeline(
    method: str,
    fields: Mapping[str, Any],
    meta: Mapping[str, Any] | None,
    timeout: float | None,
    on_progress: OnProgress | None,
    requests: RequestPipeline,
) -> Any:
    return await requests.call(method, fields, meta, timeout, on_progress)


def _rename(item: Any, prefix: str) -> Any:
    """A copy of a list item with its name in the group."""
    return replace(item, name=prefix + item.name) if prefix else item


def _owners(uri: str, servers: Sequence[GroupServer[Any]]) -> list[GroupServer[Any]]:
    """The servers that list a URI; else the servers with the longest matching template."""
    listing = [server for server in servers if uri in server.uris or uri in server.templates]
    if listing:
        return listing
    longest = {
        server: max((_matching_length(uri, template) for template in server.templates), default=0)
        for server in servers
    }
    best = max(longest.values(), default=0)
    return [server for server, length in longest.items() if best and length == best]


def _matching_length(uri: str, template: str) -> int:
    """Length of a template up to its first variable, if a URI begins with that part; else 0."""
    beginning = template.partition("{")[0]
    return len(beginning) if uri.startswith(beginning) else 0


def _names(servers: Iterable[GroupServer[Any]]) -> str:
    return " and ".join(server.name for server in servers)
