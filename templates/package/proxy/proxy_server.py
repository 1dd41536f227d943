"""Dispatchers that forward all messages to another server: `Server.proxy(target)`.

Each side uses the revision that it negotiated. Between equal revisions, params and results are
forwarded as raw JSON; otherwise they are converted, and members that the other revision lacks are
dropped with a warning, once, by the id of a row of `mcpgen diff A B --bridge`. Sessions with the
other server are opened by `upstream_pool`; each server of a configuration has a proxy of its own,
and all are mounted on one server.

Requests for input of the other server go to the client whose request the server is handling:

    server sends   client expects    way
    a request      a request         forwarded
    a result       a result          forwarded, with the request state
    a result       a request         the client is asked, and the call is sent again
    a request      a result          the call waits for the client's retry
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from .._wire import is_object
from ..client.async_client import Client, connect
from ..client.connect import is_config_path
from ..client.opening import Servable, run_concurrently
from ..client.server_config import ServerEntry, config_servers
from ..errors import TransportError
from ..facts import Method, Revisions
from ..foreign_text import safe_repr, safe_text
from ..protocol.lifecycle import CAPABILITY, OnSubscription, is_declared
from ..protocol.requests import RESOURCE_UPDATED, SUBSCRIBE, UNSUBSCRIBE, is_custom
from ..revisions import REVISIONS
from ..runtime.pending_requests import PendingRequests
from ..runtime.request_context import RequestContext
from ..server.serving import Announcer
from ..server.toolkit.dispatcher import Dispatcher, Handler
from ..server.toolkit.foreign_results import Loss
from ..server.toolkit.mounting import NOTHING_OF_ITS_OWN, MountingDispatcher, mount_server
from .extensions import EXTENSIONS
from .upstream import UNDECLARED, PassedMethods, Upstream
from .upstream_pool import UpstreamPool

_EVERYTHING: Mapping[str, Any] = {
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
}
"""Capabilities to declare to the other server; a client is checked when it is asked."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProxyPackage:
    """The client and the revisions that a proxy takes from a package.

    Attributes:
        connect: Opens the sessions with the other server.
        revisions: The revisions that the proxy serves.
    """

    connect: Callable[..., AbstractAsyncContextManager[Any]]
    revisions: Revisions


OWN_PACKAGE = ProxyPackage(connect, REVISIONS)


class Proxy(MountingDispatcher):
    """A dispatcher that forwards requests to another server.

    Args:
        base: The dispatcher of the server, which has the settings.
        target: The other server: any target of `connect` except a configuration of servers.
        options: Further arguments of `connect`.
        package: The client and the revisions.
        is_optional: Whether the proxy is served even if the other server can't be reached.

    Raises:
        TypeError: `connect` does not accept an option.
    """

    is_open = True

    def __init__(
        self,
        base: Dispatcher,
        target: Any,
        options: Mapping[str, Any],
        package: ProxyPackage,
        *,
        is_optional: bool = False,
    ) -> None:
        super().__init__(base.settings, base.announcer, package.revisions, base.hooks)
        self.lifespan = self._open_pool
        self._connect = package.connect
        self._target = target
        self._options = _with_defaults(options)
        self._is_optional = is_optional
        self._reported: set[tuple[str, str]] = set()
        self._session(None)  # checks the options, and opens nothing

    def handle(self, context: RequestContext) -> Coroutine[Any, Any, Any]:
        """See `Dispatcher`."""
        if context.method.name in self.handlers:
            return super().handle(context)
        return self._handle_after_opening(context)

    async def _handle_after_opening(self, context: RequestContext) -> Any:
        """Handle a custom request, or a request that the other server may support once opened."""
        if is_custom(context.method.name):
            return await self._pass_on(context)
        if not self._pool().shared.was_open:
            await self._pool().upstream(context)
        return await super().handle(context)

    async def notified(self, context: RequestContext) -> None:
        """Forward a notification to the other server."""
        await super().notified(context)
        if is_custom(context.method.name):
            upstream: Upstream | None = await self._pool().upstream(context)
        else:
            upstream = self._pool().upstream_in_use(context)
        if upstream is not None:
            await upstream.notified(context)

    def custom_methods(self) -> Mapping[str, Method]:
        """All methods that no revision has."""
        return PassedMethods()

    def subscription_listener(self) -> OnSubscription:
        """A listener that subscribes to the resources of the other server."""
        return self._follow_soon

    def _follow_soon(self, uris: Collection[str]) -> None:
        shared = self._pool().shared
        if shared.was_open:
            shared.upstream.follow_soon(uris)

    def _report_loss(
        self, row: str, reason: str, *, loss: Loss = "lost", example: str = ""
    ) -> None:
        """Log once that something does not arrive as it was; see `ReportLoss`."""
        if (row, reason) in self._reported:
            return
        self._reported.add((row, reason))
        text = f" ({safe_text(example)})" if example else ""
        _logger.warning("proxy %r: %s is %s: %s%s", self.name, row, loss, reason, text)

    def _session(self, handlers: Upstream | None) -> AbstractAsyncContextManager[Client]:
        return self._connect(self._target, handlers=handlers, **self._options)

    @asynccontextmanager
    async def _open_pool(self) -> AsyncGenerator[UpstreamPool]:
        """The lifespan of a proxy: its sessions; `opened` waits for the first session."""
        is_channel = not isinstance(self._target, str | Sequence | Servable)
        pool = UpstreamPool(
            self._make_upstream,
            self._session,
            self._offer,
            reopens=not is_channel and not self._options.get("restart"),
            separates=not is_channel,
        )
        async with run_concurrently(pool.run, pool.end):
            yield pool

    def _make_upstream(self, is_recipient: Callable[[PendingRequests], bool]) -> Upstream:
        announce = partial(self.announcer.announce, wanted=is_recipient)
        return Upstream(self.name, announce, self._report_loss)

    async def wait_until_ready(self, states: Mapping[ContextVar[Any], Any]) -> None:
        """See `Dispatcher`."""
        pool: UpstreamPool = states[self.state]
        try:
            await pool.wait_until_open()
        except Exception as error:
            if not self._is_optional:
                raise
            _logger.warning("server %s: %s", safe_repr(self.name), error)

    def failure(self, states: Mapping[ContextVar[Any], Any]) -> Exception | None:
        """Why the first session with the other server could not be opened, if so."""
        pool: UpstreamPool = states[self.state]
        return pool.failure

    def _offer(self, client: Client, is_first: bool) -> None:
        """Serve the methods and the notifications that the other server declares."""
        revision, capabilities = client.session.revision, client.server_capabilities
        rows = {
            name: row
            for name, row in revision.client_requests.items()
            if name in self.item_handlers and is_declared(capabilities, row.capability)
        }
        handlers: dict[str, Handler] = dict.fromkeys(rows, self._pass_on)
        notifications = [
            name
            for name, row in revision.server_notifications.items()
            if row.capability
            and row.capability[0] not in (CAPABILITY, *UNDECLARED)
            and is_declared(capabilities, row.capability)
        ]
        if RESOURCE_UPDATED in notifications:
            handlers |= {SUBSCRIBE: self._follow, UNSUBSCRIBE: self._stop_following}
        self.serve(handlers, *notifications)
        for pass_on in EXTENSIONS:
            pass_on(self, capabilities, self._pass_on)
        if client.instructions != self.settings.instructions:
            instructions = client.instructions
            self.settings = msgspec.structs.replace(self.settings, instructions=instructions)
            self._descriptions.clear()

    def _pool(self) -> UpstreamPool:
        pool: UpstreamPool = self.state.get()
        return pool

    async def _pass_on(self, request: RequestContext) -> Any:
        upstream = await self._pool().upstream(request)
        return await upstream.forward(request)

    async def _follow(self, request: RequestContext) -> None:
        upstream = await self._pool().upstream(request)
        await upstream.follow(request.params.uri)

    async def _stop_following(self, request: RequestContext) -> None:
        upstream = self._pool().upstream_in_use(request)
        if upstream is not None:
            upstream.stop_following(request.params.uri)

    def serve_items(self, names: Collection[str], *notifications: str) -> None:
        """Refuse items: a proxy has none of its own.

        Raises:
            TypeError: Always.
        """
        raise TypeError(NOTHING_OF_ITS_OWN)


class ConfigProxy(MountingDispatcher):
    """A dispatcher for the servers of a configuration, with the name of each server as prefix.

    Servers that can't be reached are logged; opening is retried when a server is used.

    Args:
        base: The dispatcher of the server, which has the settings.
        entries: The servers, by name.
        options: Further arguments of `connect`.
        package: The client and the revisions.

    Raises:
        TypeError: An option is unknown, or belongs to the entries.
        ValueError: The name of a server can't be a prefix.
    """

    def __init__(
        self,
        base: Dispatcher,
        entries: Mapping[str, ServerEntry],
        options: Mapping[str, Any],
        package: ProxyPackage,
    ) -> None:
        super().__init__(base.settings, base.announcer, package.revisions, base.hooks)
        self._proxies: list[Proxy] = []
        for key, entry in entries.items():
            settings = msgspec.structs.replace(
                base.settings, info={**base.settings.info, "name": key}
            )
            inside = Dispatcher(settings, Announcer(), package.revisions, base.hooks)
            own = _entry_options(entry, options)
            proxy = Proxy(inside, entry.target, own, package, is_optional=True)
            self._proxies.append(proxy)
            mount_server(self, proxy, key)

    async def wait_until_ready(self, states: Mapping[ContextVar[Any], Any]) -> None:
        """Check that at least one of the servers can be reached.

        Raises:
            TransportError: No server can be reached.
        """
        failures = {proxy.name: proxy.failure(states) for proxy in self._proxies}
        if all(failures.values()):
            reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
            raise TransportError(f"none of the servers could be opened: {reasons}")


def _with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `connect`, with defaults; the proxy itself polls tasks."""
    capabilities = dict(_EVERYTHING)
    if "tasks/update" in REVISIONS.newest().client_requests:  # of the extension
        capabilities["extensions"] = {"io.modelcontextprotocol/tasks": {}}
    return {"capabilities": capabilities, "cache": False, **options}


def proxy_of(
    base: Dispatcher, target: Any, options: Mapping[str, Any], package: ProxyPackage = OWN_PACKAGE
) -> Dispatcher:
    """The dispatcher of a proxy for one server, or for the servers of a configuration.

    Raises:
        TypeError: `connect` does not accept an option, or the option belongs to the entries.
        OSError: The file of the configuration can't be read.
        ValueError: The configuration has no valid servers, or the name of a server can't be a
            prefix.
    """
    dispatcher = _dispatcher_of(base, target, options, package)
    if base.application is not base:  # a subclass of the server sees all requests first
        dispatcher.application = base.application
    return dispatcher


def _dispatcher_of(
    base: Dispatcher, target: Any, options: Mapping[str, Any], package: ProxyPackage
) -> Dispatcher:
    config = target
    if not (isinstance(target, Mapping) or is_config_path(target)):
        return Proxy(base, target, options, package)
    package.connect(config, **_with_defaults(options))  # checks the options, and opens nothing
    options = dict(options)
    inputs: Any = options.pop("inputs", None) or {}
    if not is_object(inputs):
        raise TypeError(
            "inputs: a proxy asks nobody; expected values by the ids of the inputs, got a "
            f"{type(inputs).__name__}"
        )
    entries: dict[str, ServerEntry] = {}
    malformed: list[Exception] = []
    for key, entry in config_servers(config, inputs).items():
        if isinstance(entry, Exception):
            malformed.append(entry)
            _logger.warning("server %s: %s", safe_repr(key), entry)
        elif entry is not None:
            entries[key] = entry
    if not entries:
        raise malformed[0]
    if len(entries) + len(malformed) > 1:
        return ConfigProxy(base, entries, options, package)
    [entry] = entries.values()
    return Proxy(base, entry.target, _entry_options(entry, options), package)


def _entry_options(entry: ServerEntry, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `connect` for an entry of a configuration."""
    own = {
        "env": entry.env,
        "cwd": entry.cwd,
        "transport": entry.transport,
        "headers": entry.headers,
        "auth": entry.auth,
    }
    merged = {**options, **{key: value for key, value in own.items() if value is not None}}
    if isinstance(entry.target, str) or not isinstance(entry.target, Sequence):
        merged.pop("restart", None)  # `connect` accepts it for commands only
    return merged
