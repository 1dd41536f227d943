"""Servers mounted on a server: their registries, methods and announcements are kept in sync.

The registries of a server hold the items of the servers that are mounted on it, under their new
names, beside its own (`mounted_items`); a change of a mounted server's registry is taken over at
once, and so are its methods. The mounted server handles the requests about its items as it handles
its own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import msgspec

from ..._wire import convert, encode, replace
from ...errors import ProtocolError
from ...facts import Revisions
from ...protocol.lifecycle import OnSubscription
from ...protocol.requests import RESOURCE_UPDATED
from ...runtime.pages import next_cursor, pages_of
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import RequestContext
from ..serving import Announcer
from .dispatcher import LIST_CHANGES, Dispatcher, Hooks
from .mounted_items import Mount, MountedItem, UnregisteredItem
from .tools import ServerSettings
from .varying_registry import VaryingRegistry, varying

NOTHING_OF_ITS_OWN = "a proxy has nothing of its own: mount it on a server that has"

_PREFIX = re.compile(r"[A-Za-z0-9_.\-]+")

_logger = logging.getLogger(__name__)


class MountingDispatcher(Dispatcher):
    """A dispatcher that others are mounted on.

    Attributes:
        mounted_on: The servers that it is mounted on.
        method_followers: Serve its methods on these servers.
    """

    registry_class = VaryingRegistry

    def __init__(
        self, settings: ServerSettings, announcer: Announcer, revisions: Revisions, hooks: Hooks
    ) -> None:
        self.mounts: Sequence[Mount] = []
        self.mounted_on: list[MountingDispatcher] = []
        self.method_followers: list[_MethodFollower] = []
        super().__init__(settings, announcer, revisions, hooks)

    def all_servers(self) -> list[Dispatcher]:
        servers: list[Dispatcher] = [self]
        for mount in self.mounts:
            servers += [each for each in mount.server.all_servers() if each not in servers]
        return servers

    @asynccontextmanager
    async def lifespans(self) -> AsyncGenerator[Mapping[ContextVar[Any], Any]]:
        """The lifespans of all servers, each entered once.

        All are entered before `wait_until_ready` waits for slow starts, such as connections.
        """
        states: dict[ContextVar[Any], Any] = {}
        servers = self.all_servers()
        async with AsyncExitStack() as stack:
            for each in servers:
                if each.lifespan is not None:
                    states[each.state] = await stack.enter_async_context(each.lifespan())
            for each in reversed(servers):
                if isinstance(each, MountingDispatcher):
                    await each.wait_until_ready(states)
            yield states

    async def wait_until_ready(self, states: Mapping[ContextVar[Any], Any]) -> None:
        """Wait for the connections that the lifespan opens; `states` has all lifespans' values."""

    def subscription_listener(self) -> OnSubscription | None:
        return self._pass_subscription if self.mounts else None

    def _pass_subscription(self, uris: Collection[str]) -> None:
        for mount in self.mounts:
            mount.pass_subscription(uris)

    async def notified(self, context: RequestContext) -> None:
        for mount in self.mounts:
            await mount.server.application.notified(context)
        await super().notified(context)

    def check_method(self, name: str) -> None:
        for follower in self.method_followers:
            follower.check(name)

    def methods_changed(self) -> None:
        super().methods_changed()
        for follower in self.method_followers:
            follower.refresh()


def mount_server(own: Dispatcher, server: Dispatcher, prefix: str | None) -> None:
    """Mount a server on another one.

    Args:
        own: The outer server, which the other one is mounted on.
        server: The server to mount.
        prefix: See `Mount`.

    Raises:
        TypeError: The outer server is a proxy, which has no items of its own.
        ValueError: The prefix is invalid, a name is taken, the server would contain itself, or
            it lists items by low-level handlers.
        RuntimeError: The server has a lifespan, and the outer server was started already.
    """
    assert isinstance(own, MountingDispatcher)
    assert isinstance(server, MountingDispatcher)
    mount = _new_mount(own, server, prefix)
    methods = _MethodFollower(mount, own)
    registries = varying(server.registries), varying(own.registries)
    followers = list(map(partial(_ItemFollower, mount), *registries))
    methods.check_all()
    for follower in followers:
        follower.check_all()
    own.mounts = [*own.mounts, mount]
    server.mounted_on.append(own)
    for each in server.all_servers():
        if each.hooks.keys is not None:
            each.hooks.keys.adopt_keys(own.hooks.keys)
    server.method_followers.append(methods)
    methods.refresh()
    for follower in followers:
        follower.follow()
    server.announcer.followers.append(partial(_announce, own, mount))


def _new_mount(own: MountingDispatcher, server: MountingDispatcher, prefix: str | None) -> Mount:
    servers = server.all_servers()
    if own.is_open:
        raise TypeError(NOTHING_OF_ITS_OWN)
    if prefix is not None and not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"prefix: expected letters, digits, '_', '-' and '.', or None, got {prefix!r}"
        )
    if own in servers:
        raise ValueError(f"server {own.name!r} can't be mounted on itself, nor on one inside")
    if any(each.server is server and each.prefix == prefix for each in own.mounts):
        raise ValueError(f"server {server.name!r} is mounted already with prefix {prefix!r}")
    for revision in server.revisions.values():
        overrides = server.overrides
        for name in () if overrides is None else overrides.requests(revision):
            if revision.client_requests[name].items is not None:
                raise ValueError(
                    f"server {server.name!r} handles {name} by a low-level handler, so that "
                    "its items have no names to put a prefix to"
                )
    if _is_served(own) and any(each.lifespan is not None for each in servers):
        raise RuntimeError(
            f"server {server.name!r} has a lifespan: mount it before run(), serve() or asgi()"
        )
    mount = Mount(server, prefix)
    if mount.is_open and any(each.is_open and each.prefix == prefix for each in own.mounts):
        raise ValueError(
            f"server {server.name!r}: expected a prefix of its own, since the names of a proxy "
            f"are not known here; got {prefix!r} again"
        )
    return mount


def _is_served(server: MountingDispatcher) -> bool:
    """Whether a server, or one that it is mounted on, was started."""
    return server.is_served or any(map(_is_served, server.mounted_on))


def _announce(
    own: Dispatcher,
    mount: Mount,
    name: str,
    params: Mapping[str, Any] | None = None,
    subject: str | None = None,
    wanted: Callable[[PendingRequests], bool] | None = None,
) -> None:
    """Announce to the clients of a server what a mounted one announces to its own.

    Changes of registered items are announced by the registries.
    """
    if name == RESOURCE_UPDATED and params is not None:
        params = {**params, "uri": mount.outer_uri(params["uri"])}
    if params is not None or mount.is_open:
        own.announcer.announce(name, params, subject, wanted)


class _ItemFollower:
    """Copies the items of a mounted server's registry into the registry of the outer server."""

    def __init__(
        self, mount: Mount, source: VaryingRegistry[Any], target: VaryingRegistry[Any]
    ) -> None:
        self._mount = mount
        self._source = source
        self._target = target
        self._mounted: dict[str, MountedItem] = {}

    def follow(self) -> None:
        """Copy the items, and their changes from now on."""
        self._source.followers.append(self)
        self._target.add_source(self)
        self.refresh()

    def check(self, key: str) -> None:
        self._target.check(self._mount.outer_key(self._source.row, key))

    def shown_items(self, items: Mapping[str, Any], request: RequestContext) -> Mapping[str, Any]:
        inside = self._source.items_for(request)
        if inside is self._source.items:
            return items
        mount, row = self._mount, self._source.row
        shown = {
            key: item
            for key, item in items.items()
            if getattr(item, "mount", None) is not mount or item.inner_key in inside
        }
        for inner_key, item in inside.items():
            if inner_key not in self._source.items:
                key = mount.outer_key(row, inner_key)
                if not self._target.is_disabled(key):
                    shown.setdefault(key, MountedItem(mount, row, inner_key, item))
        return shown

    def has_session_rules(self) -> bool:
        return self._source.has_session_rules()

    def find_unregistered(self, key: str, request: RequestContext) -> UnregisteredItem | None:
        mount = self._mount
        if not mount.is_open or not mount.has_method(request.method.name):
            return None
        inner_key = mount.inner_key(self._source.row, key)
        return None if inner_key is None else UnregisteredItem(mount, inner_key)

    async def listed_items(
        self, items: Mapping[str, Any], request: RequestContext
    ) -> Mapping[str, Any]:
        mount, row = self._mount, self._source.row
        if not mount.needs_list_requests:
            return items
        inside = await self._items_inside(request)
        listed: dict[str, Any] = {}
        for key, item in items.items():
            if getattr(item, "mount", None) is not mount:
                listed[key] = item
            elif item.inner_key in inside:
                listed[key] = _ListedItem(item.mount.outer_wire(inside[item.inner_key], item.key))
        for inner_key, members in inside.items() if mount.is_open else ():
            key = mount.outer_key(row, inner_key)
            item = self._target.find_unregistered(key, request)
            if key not in listed and item is not None and item.mount is mount:
                listed[key] = _ListedItem(mount.outer_wire(members, {row.key: key}))
        return listed

    async def _items_inside(self, request: RequestContext) -> Mapping[str, dict[str, Any]]:
        """All items that the mounted server lists, as wire objects by their keys there.

        If a server behind a proxy fails, the list ends early, so that other servers can be used.
        """
        items: dict[str, dict[str, Any]] = {}
        mount, row = self._mount, self._source.row
        if not mount.has_method(row.request):
            return items

        async def inner(cursor: str | None) -> tuple[list[Any], str | None]:
            params = request.params
            if params is not None:
                params = replace(params, cursor=cursor)
            elif cursor is not None:
                params = convert({"cursor": cursor}, request.method.params)
            page = await mount.handle(request.with_params(params))
            members = msgspec.json.decode(encode(page))
            return members[row.member], next_cursor(members)

        try:
            async for page in pages_of(inner, row.request):
                items |= {item[row.key]: item for item in page}
        except ProtocolError as error:
            if not mount.is_open:
                raise
            _logger.warning("%s of server %r: %s", row.kind, mount.server.name, error)
        return items

    def check_all(self) -> None:
        """Check the keys of all items, disabled ones included."""
        for key in self._source.all():
            self.check(key)

    def refresh(self) -> None:
        items = self._source.items
        removed = {
            key: item
            for key, item in self._mounted.items()
            if items.get(item.inner_key) is not item.item
        }
        for key in removed:
            del self._mounted[key]
        kept = {item.inner_key for item in self._mounted.values()}
        row = self._source.row
        added = {
            self._mount.outer_key(row, key): MountedItem(self._mount, row, key, item)
            for key, item in items.items()
            if key not in kept
        }
        self._mounted.update(added)
        if removed or added:
            self._target.replace_mounted(removed, added)


class _ListedItem(msgspec.Struct):
    """An item as a mounted server has listed it, with its key in the outer server."""

    members: dict[str, Any]

    def wire(self, structured_content: str) -> dict[str, Any]:
        return self.members


class _MethodFollower:
    """Serves the methods of a mounted server on the server it is mounted on."""

    def __init__(self, mount: Mount, own: Dispatcher) -> None:
        self._mount = mount
        self._own = own
        self._served: set[str] = set()

    def check(self, key: str) -> None:
        if key not in self._own.item_handlers and key not in self._served:
            if key in self._own.handlers:
                raise ValueError(f"method {key!r} of server {self._own.name!r} exists already")
            self._own.check_method(key)

    def check_all(self) -> None:
        """Check all methods of the mounted server."""
        for name in self._mount.server.handlers:
            self.check(name)

    def refresh(self) -> None:
        own, server = self._own, self._mount.server
        own.add_item_handlers(server.hooks.items)
        about_items = own.item_handlers.keys() & server.handlers.keys()
        changes = {RESOURCE_UPDATED}
        if server.is_open and own.settings.list_changed:
            changes.update(LIST_CHANGES)
        own.custom |= {name: server.custom[name] for name in about_items & server.custom.keys()}
        own.serve_items(about_items, *server.notifications & changes)
        others = server.handlers.keys() - own.item_handlers.keys() - self._served
        self._served |= others
        for name in others:
            if name in server.custom:
                own.custom[name] = server.custom[name]
            if name in server.method_scopes:
                own.method_scopes[name] = server.method_scopes[name]
        own.serve(dict.fromkeys(others, self._mount.handle))
