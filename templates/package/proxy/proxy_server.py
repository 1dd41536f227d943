"""Dispatchers that pass everything on to another server: `Server.proxy(target)`.

Each side speaks the revision that it agreed on. Between equal revisions, params and results pass as
the JSON that they are; otherwise they are converted, and what the other revision lacks is logged
once as a warning. Sessions with the other server are opened as `upstream_pool` says; those with the
servers of a configuration are those of one proxy for each, mounted on one server.

What the other server asks of a client goes to the client whose request it is working on:

    asks by        client expects    way
    a request      a request         passed on
    a result       a result          passed on, with the request state
    a result       a request         the client is asked, and the request is sent again
    a request      a result          the call waits; the client's retry takes it up again
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
from ..client.connect import Servable, beside, is_config_path
from ..client.server_config import ServerEntry, config_servers
from ..errors import TransportError
from ..facts import Method, Revisions
from ..foreign_text import safe_repr
from ..protocol.lifecycle import CAPABILITY, declared
from ..protocol.requests import RESOURCE_UPDATED, SUBSCRIBE, UNSUBSCRIBE, is_custom
from ..protocol.server_connection import OnSubscription
from ..revisions import REVISIONS
from ..runtime.pending_requests import PendingRequests
from ..runtime.request_context import RequestContext
from ..server.serving import Announcer
from ..server.toolkit.dispatcher import Dispatcher, Handler
from ..server.toolkit.features import pass_skills_on
from ..server.toolkit.mounting import NOTHING_OF_ITS_OWN, mount_server
from .upstream import PassedMethods, Upstream
from .upstream_pool import UpstreamPool

_EVERYTHING: Mapping[str, Any] = {
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
}
"""Declared to the other server: what of it a client has, is known only when it is asked."""

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


class Proxy(Dispatcher):
    """A dispatcher that passes requests on to another server.

    Args:
        base: That of the server, for its settings.
        target: The other server; anything that `connect` takes, but a configuration of servers.
        options: Further arguments of `connect`.
        package: What it speaks.
        is_optional: Whether the proxy is served even if the other server can't be reached.

    Raises:
        TypeError: `connect` has no such argument.
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
        super().__init__(base.settings, base.announcer, package.revisions)
        self.lifespan = self._connecting
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
        """Handle a custom request, or one that the other server may have once it is reached."""
        if is_custom(context.method.name):
            return await self._pass_on(context)
        if not self._pool().shared.was_open:
            await self._pool().upstream(context)
        return await super().handle(context)

    async def notified(self, context: RequestContext) -> None:
        """Pass on what the other server wants to know."""
        await super().notified(context)
        if is_custom(context.method.name):
            upstream: Upstream | None = await self._pool().upstream(context)
        else:
            upstream = self._pool().upstream_in_use(context)
        if upstream is not None:
            await upstream.notified(context)

    def custom_methods(self) -> Mapping[str, Method]:
        """All that no revision has."""
        return PassedMethods()

    def subscription_listener(self) -> OnSubscription:
        """Subscribes to the resources of the other server."""
        return self._follow_soon

    def _follow_soon(self, uris: Collection[str]) -> None:
        shared = self._pool().shared
        if shared.was_open:
            shared.upstream.follow_soon(uris)

    def _report_loss(self, what: str, why: str) -> None:
        """Log, once, that something can't be passed on."""
        if (what, why) not in self._reported:
            self._reported.add((what, why))
            _logger.warning("proxy %r: %s is lost: %s", self.name, what, why)

    def _session(self, handlers: Upstream | None) -> AbstractAsyncContextManager[Client]:
        return self._connect(self._target, handlers=handlers, **self._options)

    @asynccontextmanager
    async def _connecting(self) -> AsyncGenerator[UpstreamPool]:
        """The lifespan of a proxy; `opened` waits for the session."""
        is_channel = not isinstance(self._target, str | Sequence | Servable)
        pool = UpstreamPool(
            self._upstream,
            self._session,
            self._offer,
            reopens=not is_channel and not self._options.get("restart"),
            separates=not is_channel,
        )
        async with beside(pool.run, pool.end):
            yield pool

    def _upstream(self, wanted: Callable[[PendingRequests], bool]) -> Upstream:
        announce = partial(self.announcer.announce, wanted=wanted)
        return Upstream(self.name, announce, self._report_loss)

    async def opened(self, states: Mapping[ContextVar[Any], Any]) -> None:
        """See `Dispatcher`."""
        pool: UpstreamPool = states[self.state]
        try:
            await pool.opened()
        except Exception as error:
            if not self._is_optional:
                raise
            _logger.warning("server %s: %s", safe_repr(self.name), error)

    def failure(self, states: Mapping[ContextVar[Any], Any]) -> Exception | None:
        """Why the other server could not be reached at first, in these lifespans."""
        pool: UpstreamPool = states[self.state]
        return pool.failure

    def _offer(self, client: Client, is_first: bool) -> None:
        """Serve what the other server declares."""
        revision, capabilities = client.session.revision, client.server_capabilities
        rows = {
            name: row
            for name, row in revision.client_requests.items()
            if name in self.item_handlers and declared(capabilities, row.capability)
        }
        handlers: dict[str, Handler] = dict.fromkeys(rows, self._pass_on)
        notifications = [
            name
            for name, row in revision.server_notifications.items()
            if row.capability
            and row.capability[0] not in (CAPABILITY, "tasks")  # neither of these passes
            and declared(capabilities, row.capability)
        ]
        if RESOURCE_UPDATED in notifications:
            handlers |= {SUBSCRIBE: self._follow, UNSUBSCRIBE: self._stop_following}
        self.serve(handlers, *notifications)
        pass_skills_on(self, capabilities, self._pass_on)
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
        """Refused.

        Raises:
            TypeError: Always.
        """
        raise TypeError(NOTHING_OF_ITS_OWN)


class ConfigProxy(Dispatcher):
    """A dispatcher in front of the servers of a configuration, each under a prefix: its name there.

    Servers that can't be reached are logged, and are tried again when they are used.

    Args:
        base: That of the server, for its settings.
        entries: The servers, by name.
        options: Further arguments of `connect`.
        package: What it speaks.

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
        super().__init__(base.settings, base.announcer, package.revisions)
        self._proxies: list[Proxy] = []
        for key, entry in entries.items():
            settings = msgspec.structs.replace(
                base.settings, info={**base.settings.info, "name": key}
            )
            inside = Dispatcher(settings, Announcer(), package.revisions)
            own = _entry_options(entry, options)
            proxy = Proxy(inside, entry.target, own, package, is_optional=True)
            self._proxies.append(proxy)
            mount_server(self, proxy, key)

    async def opened(self, states: Mapping[ContextVar[Any], Any]) -> None:
        """Check that one of the servers can be reached.

        Raises:
            TransportError: None can.
        """
        failures = {proxy.name: proxy.failure(states) for proxy in self._proxies}
        if all(failures.values()):
            reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
            raise TransportError(f"none of the servers could be opened: {reasons}")


def _with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `connect`; calls that are answered by tasks are polled here."""
    capabilities = dict(_EVERYTHING)
    if "tasks/update" in REVISIONS.newest().client_requests:  # of the extension
        capabilities["extensions"] = {"io.modelcontextprotocol/tasks": {}}
    return {"capabilities": capabilities, "cache": False, **options}


def proxy_of(
    base: Dispatcher, target: Any, options: Mapping[str, Any], package: ProxyPackage = OWN_PACKAGE
) -> Dispatcher:
    """A proxy of one server, or of those of a configuration, in place of a server's own dispatcher.

    Raises:
        TypeError: `connect` has no such argument, or it belongs to the entries.
        OSError: The file of the configuration can't be read.
        ValueError: The configuration has no servers that are well-formed, or a name that can't be a
            prefix.
    """
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
        merged.pop("restart", None)  # as `connect` has it: for commands
    return merged
