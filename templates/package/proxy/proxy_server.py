"""A server that passes everything on to another one: `Server.proxy(target)`.

Each side speaks the revision that it agreed on. Between equal revisions, params and results pass as
the JSON that they are; otherwise they are converted, and what the other revision lacks is logged
once as a warning. A session with the other server is opened by the lifespan: over standard streams
one for each client, over HTTP one for all.

What the other server asks of a client goes to the client whose request it is working on:

    asks by        client expects    way
    a request      a request         passed on
    a result       a result          passed on, with the request state
    a result       a request         the client is asked, and the request is sent again
    a request      a result          the call waits; the client's retry takes it up again
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..client.async_client import Client, connect
from ..protocol.lifecycle import declared
from ..protocol.notifications import RESOURCE_UPDATED, SUBSCRIBE, UNSUBSCRIBE
from ..protocol.requests import OnSubscription
from ..runtime.request_context import RequestContext
from ..server.toolkit.custom_handlers import Handler
from ..server.toolkit.server import Server
from .upstream import Upstream

_EVERYTHING: Mapping[str, Any] = {
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
}
"""Declared to the other server: what of it a client has, is known only when it is asked."""

_NOTHING_OF_ITS_OWN = "a proxy has nothing of its own: mount it on a server that has"

_SEVERAL = (
    "proxy: expected one server, got a configuration; mount a proxy of each of its servers: "
    "server.mount(Server.proxy(target), prefix=name)"
)

_logger = logging.getLogger(__name__)


class Proxy(Server):
    """A server without features of its own, in front of another one.

    Args:
        target: The other server; anything that `connect` takes.
        name: Name of the proxy, for programs.
        version: Its version.
        options: Further arguments of `connect`.

    Raises:
        TypeError: `connect` has no such argument, or the target is a configuration of servers.
    """

    _is_open = True

    def __init__(self, target: Any, name: str, version: str, options: Mapping[str, Any]) -> None:
        if isinstance(target, Mapping | Path):
            raise TypeError(_SEVERAL)
        super().__init__(name, version, logging=False, lifespan=self._connected)
        self._connect: Callable[..., AbstractAsyncContextManager[Client]] = connect
        self._target = target
        self._options: dict[str, Any] = {
            "capabilities": _EVERYTHING,
            "cache": False,
            **options,
        }
        self._reported: set[tuple[str, str]] = set()
        self._session(None)  # checks the options, and opens nothing

    def mount(self, server: Server, prefix: str | None = None) -> None:
        """Refused.

        Raises:
            TypeError: Always: mount both on a third server.
        """
        raise TypeError(_NOTHING_OF_ITS_OWN)

    async def notified(self, context: RequestContext) -> None:
        """Pass on what the other server wants to know."""
        await super().notified(context)
        await self._upstream().notified(context)

    def _subscription_listener(self) -> OnSubscription:
        """Subscribes to the resources of the other server."""
        return self._follow_soon

    def _follow_soon(self, uris: Collection[str]) -> None:
        self._upstream().follow_soon(uris)

    def _report_loss(self, what: str, why: str) -> None:
        """Log, once, that something can't be passed on."""
        if (what, why) not in self._reported:
            self._reported.add((what, why))
            _logger.warning("proxy %r: %s is lost: %s", self.name, what, why)

    def _session(self, handlers: Upstream | None) -> AbstractAsyncContextManager[Client]:
        return self._connect(self._target, handlers=handlers, **self._options)

    @asynccontextmanager
    async def _connected(self, server: Server) -> AsyncGenerator[Upstream]:
        upstream = Upstream(self.name, self._announce, self._report_loss)
        async with (
            self._session(upstream) as client,
            anyio.create_task_group() as tasks,
        ):
            upstream.begin(client, tasks)
            self._offer(client)
            yield upstream
            tasks.cancel_scope.cancel()

    def _offer(self, client: Client) -> None:
        """Serve what the other server declares."""
        revision, capabilities = client.session.revision, client.server_capabilities
        rows = {
            name: row
            for name, row in revision.client_requests.items()
            if name in self._item_handlers() and declared(capabilities, row.capability)
        }
        handlers: dict[str, Handler] = dict.fromkeys(rows, self._pass_on)
        notifications = [
            name
            for name, row in revision.server_notifications.items()
            if row.capability and declared(capabilities, row.capability)
        ]
        if RESOURCE_UPDATED in notifications:
            handlers |= {SUBSCRIBE: self._subscribe, UNSUBSCRIBE: self._unsubscribe}
        self._serve(handlers, *notifications)
        if client.instructions != self._settings.instructions:
            instructions = client.instructions
            self._settings = msgspec.structs.replace(self._settings, instructions=instructions)
            self._descriptions.clear()

    def _upstream(self) -> Upstream:
        upstream: Upstream = self._state.get()
        return upstream

    def _pass_on(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        return self._upstream().forward(request)

    async def _subscribe(self, request: RequestContext) -> None:
        await self._upstream().follow(request.params.uri)

    async def _unsubscribe(self, request: RequestContext) -> None:
        self._upstream().stop_following(request.params.uri)

    def _list_changed(
        self, handlers: Mapping[str, Handler], changed: str, *notifications: str
    ) -> None:
        raise TypeError(_NOTHING_OF_ITS_OWN)

    def _completions_changed(self) -> None:
        raise TypeError(_NOTHING_OF_ITS_OWN)
