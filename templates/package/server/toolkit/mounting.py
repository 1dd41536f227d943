"""Servers mounted on a server: names, items, methods, announcements and lifespans.

The registries of a server hold the items of the servers that are mounted on it, under their new
names, beside its own; a change of a mounted server's registry is taken over at once. A request for
such an item goes to the mounted server, which handles it as it handles its own (`mount_routes`).

    prefix     tool, prompt    resource                         template
    none       status          repo://head                      repo://{path}
    "git"      git_status      repo://git/head                  repo://git/{path}
    "git"                      urn:x -> urn:git/x
"""

from __future__ import annotations

import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..._wire import is_object
from ...errors import ProtocolError
from ...facts import Method, Revisions
from ...protocol.lifecycle import merged_objects
from ...protocol.requests import RESOURCE_UPDATED
from ...protocol.server_connection import Admit, OnSubscription
from ...runtime.pending_requests import PendingRequests
from ...runtime.request_context import Application, RequestContext
from ..serving import Announcer, ProcessLimit
from .custom_handlers import Handler, LowLevelHandlers
from .features import OpenURLElicitations, RequestStateSigner
from .registry import Follower, ItemRegistries, Registry
from .tools import check_tool_name

if TYPE_CHECKING:  # loaded only if a server has some
    from .dependencies import Dependencies

_PREFIX = re.compile(r"[A-Za-z0-9_.\-]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
KEY_MEMBERS = {
    "tool": "name",
    "prompt": "name",
    "resource": "uri",
    "resource template": "uriTemplate",
}
"""The member that is the key of an item, by the kind of its registry."""


class Mountable(msgspec.Struct, frozen=True, eq=False):
    """What mounting needs of a server, for the one that is mounted and the one it is mounted on.

    Attributes:
        name: Its name.
        revisions: The revisions that it serves.
        registries: Its items.
        handlers: Its handlers by method, as they are now.
        notifications: Those that it declares, as they are now.
        list_changes: Those about lists that it may declare.
        item_handlers: Its own handlers of all requests that are about items.
        low_level_handlers: Handlers that replace these.
        serve: Adds handlers to `handlers`, and notifications to those that are declared.
        custom: Rows of its custom methods.
        method_scopes: Scopes of these.
        application: Gives the server behind its middleware.
        is_open: Whether it has items that are not registered, so that it is asked for its lists.
        has_middleware: Whether it has middleware.
        announcer: Announces changes to its clients.
        lifespan: Its own lifespan, if it has one.
        started: Waits until what this lifespan began is ready; gets what all lifespans yielded.
        is_served: Whether it is being served by itself.
        state: What this lifespan yielded.
        signer: Signs its request states.
        on_subscription: Told the resources to whose updates a stream subscribes.
        admit: See `Decorators.handle_requests`.
        process_limits: See `Decorators.handle_requests`.
        capabilities: What it declares beyond what its features declare.
        dependencies: Those of its registered functions.
        url_elicitations: Those that are open.
        method_followers: Those that serve its methods too.
        mounts: What is mounted on it; `None` for nothing.
        mounted_on: The servers it is mounted on.
    """

    name: str
    revisions: Revisions
    registries: ItemRegistries
    handlers: Mapping[str, Handler]
    notifications: set[str]
    list_changes: frozenset[str]
    item_handlers: Mapping[str, Handler]
    low_level_handlers: LowLevelHandlers
    serve: Callable[..., None]
    custom: dict[str, Method]
    method_scopes: dict[str, frozenset[str]]
    application: Callable[[], Application]
    is_open: bool
    has_middleware: Callable[[], bool]
    announcer: Announcer
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None
    is_served: Callable[[], bool]
    state: ContextVar[Any]
    signer: RequestStateSigner
    on_subscription: OnSubscription | None
    admit: Callable[[], Admit | None]
    process_limits: list[ProcessLimit]
    capabilities: Mapping[str, Any]
    dependencies: Callable[[], Iterable[Dependencies]]
    url_elicitations: OpenURLElicitations
    method_followers: list[Follower]
    mounts: Callable[[], Mounts | None]
    mounted_on: list[Mountable] = []
    started: Callable[[Mapping[ContextVar[Any], Any]], Awaitable[None]] | None = None

    def is_anywhere_served(self) -> bool:
        """Whether it is being served, or a server it is mounted on."""
        return self.is_served() or any(each.is_anywhere_served() for each in self.mounted_on)

    def inside(self) -> list[Mountable]:
        """The servers that are mounted on it and on these, each once, the outer ones first."""
        found: list[Mountable] = []
        for mount in self.mounts() or ():
            for each in (mount.server, *mount.server.inside()):
                if each not in found:
                    found.append(each)
        return found


class Mount(msgspec.Struct, frozen=True, eq=False):
    """A mounted server and its prefix: names inside are those of that server.

    Attributes:
        server: The mounted server.
        prefix: Begins the names of its tools and prompts, and the part of URIs after the scheme;
            `None` leaves names as they are.
    """

    server: Mountable
    prefix: str | None

    @property
    def is_open(self) -> bool:
        """Whether a name that is not registered may still be one of the server's."""
        return self.server.is_open or any(each.is_open for each in self.server.inside())

    def handle(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        """The response of the mounted server to a request with its own names."""
        return self.server.application().handle(request)

    def outer_name(self, name: str) -> str:
        """The name of a tool or prompt from outside."""
        return name if self.prefix is None else f"{self.prefix}_{name}"

    def inner_name(self, name: str) -> str | None:
        """The name of a tool or prompt inside, or `None` if it has not the prefix."""
        inner = name if self.prefix is None else name.removeprefix(f"{self.prefix}_")
        return None if inner == name and self.prefix is not None else inner

    def outer_uri(self, uri: str) -> str:
        """A URI or URI template from outside.

        Raises:
            ValueError: It does not begin with a scheme.
        """
        if self.prefix is None:
            return uri
        scheme = _SCHEME.match(uri)
        if scheme is None:
            raise ValueError(f"resource {uri!r}: expected a scheme before the first variable")
        start = scheme.end() + (2 if uri.startswith("//", scheme.end()) else 0)
        return f"{uri[:start]}{self.prefix}/{uri[start:]}"

    def inner_uri(self, uri: str) -> str | None:
        """A URI inside, or `None` if it has not the prefix."""
        if self.prefix is None:
            return uri
        scheme = _SCHEME.match(uri)
        if scheme is None:
            return None
        start = scheme.end() + (2 if uri.startswith("//", scheme.end()) else 0)
        rest = uri[start:]
        inner = rest.removeprefix(f"{self.prefix}/")
        return None if inner == rest else uri[:start] + inner

    def has_resource(self, uri: str) -> bool:
        """Whether a URI inside is that of a resource of the server, as far as that is known."""
        if self.is_open:
            return not uri.startswith(("http:", "https:"))  # which a client gets by itself
        from .resources import find_resource  # few servers have resources

        registries = self.server.registries
        try:
            find_resource(uri, registries.resources.items, registries.templates.items)
        except ProtocolError:
            return False
        return True

    def outer_key(self, kind: str, key: str) -> str:
        """The key of an item from outside.

        Args:
            kind: The kind of its registry.
            key: Its name, URI or template.

        Raises:
            ValueError: The mounted server's item can't have this prefix.
        """
        if KEY_MEMBERS[kind] != "name":
            return self.outer_uri(key)
        name = self.outer_name(key)
        if kind == "tool":
            check_tool_name(name, f"tool {name!r}")
        return name

    def outer_wire(self, wire: Mapping[str, Any], key: Mapping[str, str]) -> dict[str, Any]:
        """An item as wire object from outside.

        Args:
            wire: The item inside. That of a tool may name its user interface (MCP Apps).
            key: The member with its key from outside.
        """
        meta: Any = wire.get("_meta")
        ui: Any = meta.get("ui") if is_object(meta) else None
        uri: Any = ui.get("resourceUri") if is_object(ui) else None
        if not isinstance(uri, str) or not uri.startswith("ui://"):
            return {**wire, **key}
        moved = {**meta, "ui": {**ui, "resourceUri": self.outer_uri(uri)}}
        return {**wire, **key, "_meta": moved}


class MountedItem:
    """An item of a mounted server, as it is listed from outside. It handles no requests itself.

    Args:
        mount: The mounted server.
        kind: The kind of its registry.
        inner_key: Its key in the mounted server.
        item: The item there.

    Attributes:
        mount: As passed.
        inner_key: As passed.
        item: As passed.
        scopes: Scopes that it needs.
        tags: Names for groups of items.
        label: Its name in error texts.
        dependencies: `None`: those of the item belong to the mounted server.
        runner: `None`: that of the item is used by the mounted server.
        key: The member that holds its key, as wire object.
    """

    def __init__(self, mount: Mount, kind: str, inner_key: str, item: Any) -> None:
        key = mount.outer_key(kind, inner_key)
        self.mount = mount
        self.inner_key = inner_key
        self.item = item
        self.scopes: frozenset[str] = item.scopes
        self.tags: frozenset[str] = item.tags
        self.label = f"{kind} {key!r}"
        self.dependencies = None
        self.runner = None
        self.key = {KEY_MEMBERS[kind]: key}

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The item as wire object with its name from outside."""
        return self.mount.outer_wire(self.item.wire(structured_content), self.key)

    @property
    def param_headers(self) -> Mapping[tuple[str, ...], str]:
        """See `Tool`."""
        headers: Mapping[tuple[str, ...], str] = self.item.param_headers
        return headers

    @property
    def secret_names(self) -> frozenset[str]:
        """See `Tool`."""
        names: frozenset[str] = self.item.secret_names
        return names

    @property
    def arguments(self) -> tuple[str, ...]:
        """See `Prompt`."""
        arguments: tuple[str, ...] = self.item.arguments
        return arguments

    @property
    def template(self) -> Any:
        """See `Resource`; its text is that of the mounted server."""
        return self.item.template

    def values(self, uri: str) -> Mapping[str, Any] | None:
        """See `Resource`; the URI is one from outside."""
        inner = self.mount.inner_uri(uri)
        values: Mapping[str, Any] | None = None if inner is None else self.item.values(inner)
        return values


class _ItemFollower:
    """Keeps the items of a mounted server's registry in that of the server it is mounted on."""

    def __init__(self, mount: Mount, source: Registry[Any], target: Registry[Any]) -> None:
        self._mount = mount
        self._source = source
        self._target = target
        self._mounted: dict[str, MountedItem] = {}

    def check(self, key: str) -> None:
        self._target.check(self._mount.outer_key(self._source.kind, key))

    def shown(self, items: Mapping[str, Any], request: RequestContext) -> Mapping[str, Any]:
        inside = self._source.items_for(request)
        if inside is self._source.items:
            return items
        mount, kind = self._mount, self._source.kind
        shown = {
            key: item
            for key, item in items.items()
            if getattr(item, "mount", None) is not mount or item.inner_key in inside
        }
        for inner_key, item in inside.items():
            if inner_key not in self._source.items:
                key = mount.outer_key(kind, inner_key)
                if not self._target.is_disabled(key):
                    shown.setdefault(key, MountedItem(mount, kind, inner_key, item))
        return shown

    def has_session_rules(self) -> bool:
        return self._source.has_session_rules()

    def check_all(self) -> None:
        """Check the items that there are, disabled ones included."""
        for key in self._source.all_keys():
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
        kind = self._source.kind
        added = {
            self._mount.outer_key(kind, key): MountedItem(self._mount, kind, key, item)
            for key, item in items.items()
            if key not in kept
        }
        self._mounted.update(added)
        if removed or added:
            self._target.replace_mounted(removed, added)


class _MethodFollower:
    """Serves the methods of a mounted server on the server it is mounted on."""

    def __init__(self, mount: Mount, own: Mountable) -> None:
        self._mount = mount
        self._own = own
        self._served: set[str] = set()

    def check(self, key: str) -> None:
        if key not in self._own.item_handlers and key not in self._served:
            if key in self._own.handlers:
                raise ValueError(f"method {key!r} of server {self._own.name!r} exists already")
            for follower in self._own.method_followers:
                follower.check(key)

    def check_all(self) -> None:
        """Check the methods that there are."""
        for name in self._mount.server.handlers:
            self.check(name)

    def refresh(self) -> None:
        own, server = self._own, self._mount.server
        about_items = {
            name: handler for name, handler in own.item_handlers.items() if name in server.handlers
        }
        changes = own.list_changes if server.is_open else frozenset[str]()
        own.serve(about_items, *server.notifications.intersection(changes | {RESOURCE_UPDATED}))
        others = server.handlers.keys() - own.item_handlers.keys() - self._served
        self._served |= others
        for name in others:
            if name in server.custom:
                own.custom[name] = server.custom[name]
            if name in server.method_scopes:
                own.method_scopes[name] = server.method_scopes[name]
        own.serve(dict.fromkeys(others, self._mount.handle))


Route: TypeAlias = Callable[["Mounts", ItemRegistries, Mapping[str, Handler]], dict[str, Handler]]


class Mounts:
    """The servers that are mounted on one server, in order.

    Args:
        own: The server they are mounted on.
        route: Puts routes to mounted servers in front of its handlers; see `mount_routes.routed`.
    """

    def __init__(self, own: Mountable, route: Route) -> None:
        self._own = own
        self._route = route
        self._mounts: list[Mount] = []

    def __iter__(self) -> Iterator[Mount]:
        return iter(self._mounts)

    def servers(self) -> list[Mountable]:
        """The servers that are mounted, and those inside, each once."""
        return self._own.inside()

    def add(self, server: Mountable, prefix: str | None) -> None:
        """Mount a server.

        Args:
            server: The server.
            prefix: See `Mount`.

        Raises:
            ValueError: The prefix is invalid, a name is taken, the server would contain itself, or
                it lists items by low-level handlers.
            RuntimeError: The server has a lifespan, which nothing would enter any more.
        """
        mount = self._checked(server, prefix)
        methods = _MethodFollower(mount, self._own)
        registries = list(zip(server.registries, self._own.registries, strict=True))
        followers = [_ItemFollower(mount, source, target) for source, target in registries]
        methods.check_all()
        for follower in followers:
            follower.check_all()
        self._mounts.append(mount)
        server.mounted_on.append(self._own)
        for each in (server, *server.inside()):
            each.signer.adopt_keys(self._own.signer)
        server.method_followers.append(methods)
        methods.refresh()
        for (source, target), follower in zip(registries, followers, strict=True):
            source.followers.append(follower)
            target.sources.append(follower)
            follower.refresh()
        server.announcer.follow(partial(self._announce, mount))

    def _checked(self, server: Mountable, prefix: str | None) -> Mount:
        own, servers = self._own, [server, *server.inside()]
        if prefix is not None and not _PREFIX.fullmatch(prefix):
            raise ValueError(
                f"prefix: expected letters, digits, '_', '-' and '.', or None, got {prefix!r}"
            )
        if own in servers:
            raise ValueError(f"server {own.name!r} can't be mounted on itself, nor on one inside")
        if any(each.server is server and each.prefix == prefix for each in self._mounts):
            raise ValueError(f"server {server.name!r} is mounted already with prefix {prefix!r}")
        for revision in server.revisions.values():
            for name in server.low_level_handlers.requests(revision):
                if revision.client_requests[name].items is not None:
                    raise ValueError(
                        f"server {server.name!r} handles {name} by a low-level handler, so that "
                        "its items have no names to put a prefix to"
                    )
        if own.is_anywhere_served() and any(each.lifespan is not None for each in servers):
            raise RuntimeError(
                f"server {server.name!r} has a lifespan: mount it before run(), serve() or asgi()"
            )
        mount = Mount(server, prefix)
        if mount.is_open and any(each.is_open and each.prefix == prefix for each in self._mounts):
            raise ValueError(
                f"server {server.name!r}: expected a prefix of its own, since the names of a proxy "
                f"are not known here; got {prefix!r} again"
            )
        return mount

    def routed(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Handlers with those of requests about items behind the routes to mounted servers."""
        return self._route(self, self._own.registries, handlers)

    def have_to_be_asked(self) -> bool:
        """Whether a mounted server has to be asked for its lists: it has middleware, or is open."""
        return any(each.is_open or each.has_middleware() for each in self._own.inside())

    def open_mounts(self) -> list[Mount]:
        """The mounts whose items are not registered, those with the longest prefix first."""
        found = [mount for mount in self._mounts if mount.is_open]
        return sorted(found, key=lambda mount: -len(mount.prefix or ""))

    def on_subscription(self, uris: Collection[str]) -> None:
        """Tell the mounted servers which of their resources a stream subscribes to."""
        for mount in self._mounts:
            inner = [each for each in map(mount.inner_uri, uris) if each is not None]
            nested = mount.server.mounts()
            told = mount.server.on_subscription if nested is None else nested.on_subscription
            if told is not None:
                told(inner)

    def admit(self) -> Admit | None:
        """That of the first server that has one."""
        found = (each.admit() for each in (self._own, *self._own.inside()))
        return next((admit for admit in found if admit is not None), None)

    def capabilities(self) -> Mapping[str, Any]:
        """What the mounted servers declare beyond what their features declare."""
        merged: Mapping[str, Any] = {}
        for each in reversed(self._own.inside()):
            merged = merged_objects(merged, each.capabilities)
        return merged

    async def notified(self, context: RequestContext) -> None:
        """Pass a notification of the client to the mounted servers."""
        for mount in self._mounts:
            await mount.server.application().notified(context)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[Mapping[ContextVar[Any], Any]]:
        """The lifespans of the server and of all that are mounted, each entered once.

        Those that begin something that takes time, such as connections, begin all of it first.

        Yields:
            What they yielded, for `use_state`.
        """
        async with AsyncExitStack() as stack:
            states: dict[ContextVar[Any], Any] = {}
            for each in (self._own, *self._own.inside()):
                if each.lifespan is not None:
                    states[each.state] = await stack.enter_async_context(each.lifespan())
            for each in reversed([self._own, *self._own.inside()]):
                if each.started is not None:
                    await each.started(states)
            yield states

    def use_state(self, states: Mapping[ContextVar[Any], Any] | None) -> None:
        """Set what the lifespans yielded, for the current task."""
        for variable, value in (states or {}).items():
            variable.set(value)

    def states(self) -> Collection[ContextVar[Any]]:
        """What holds the states of the server and of all that are mounted."""
        return [each.state for each in (self._own, *self._own.inside())]

    def _announce(
        self,
        mount: Mount,
        name: str,
        params: Mapping[str, Any] | None = None,
        subject: str | None = None,
        wanted: Callable[[PendingRequests], bool] | None = None,
    ) -> None:
        """Announce to the clients of this server what a mounted one announces to its own.

        Changes of registered items are announced by the registries.
        """
        if name == RESOURCE_UPDATED and params is not None:
            params = {**params, "uri": mount.outer_uri(params["uri"])}
        if params is not None or mount.is_open:
            self._own.announcer.announce(name, params, subject, wanted)
