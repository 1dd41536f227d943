"""Items of a mounted server: their outer names, and the passing of requests to the server.

Inner names are those of the mounted server, outer names those of the server it is mounted on. The
mounted server gets requests with inner names. Names and URIs in its results become outer ones.

    prefix     tool, prompt    resource                         template
    none       status          repo://head                      repo://{path}
    "git"      git_status      repo://git/head                  repo://git/{path}
    "git"                      urn:x -> urn:git/x
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec

from ..._wire import Raw, encode, is_many, is_object, replace
from ...errors import ProtocolError, ResourceNotFoundError
from ...protocol.requests import SUBSCRIBE, UNSUBSCRIBE
from ...runtime.request_context import RequestContext
from .dispatcher import Dispatcher
from .registry import ItemList
from .tools import check_tool_name

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


class Mount(msgspec.Struct, frozen=True, eq=False):
    """A mounted server and its prefix.

    Attributes:
        server: The mounted server.
        prefix: Begins the names of its tools and prompts, and the part of URIs after the scheme;
            `None` leaves names as they are.
    """

    server: Dispatcher
    prefix: str | None

    @property
    def is_open(self) -> bool:
        """Whether the server may have items that are not registered."""
        return any(each.is_open for each in self.server.all_servers())

    @property
    def needs_list_requests(self) -> bool:
        """Whether only requests show the lists of the server: it has middleware, or is open."""
        servers = self.server.all_servers()
        return any(each.is_open or each.application is not each for each in servers)

    def has_method(self, name: str) -> bool:
        """Whether the server handles a method; `True` if unknown."""
        handlers = self.server.handlers
        return name in handlers or (self.is_open and not handlers)

    def handle(self, request: RequestContext) -> Coroutine[Any, Any, Any]:
        """The response of the mounted server to a request with its own names."""
        return self.server.application.handle(request)

    def pass_subscription(self, uris: Collection[str]) -> None:
        """Pass the inner URIs that a stream subscribes to on to the server."""
        listener = self.server.subscription_listener()
        if listener is not None:
            listener([inner for inner in map(self.inner_uri, uris) if inner is not None])

    def outer_name(self, name: str) -> str:
        """The outer name of a tool or prompt."""
        return name if self.prefix is None else f"{self.prefix}_{name}"

    def inner_name(self, name: str) -> str | None:
        """The inner name of a tool or prompt, or `None` if the outer one lacks the prefix."""
        inner = name if self.prefix is None else name.removeprefix(f"{self.prefix}_")
        return None if inner == name and self.prefix is not None else inner

    def outer_uri(self, uri: str) -> str:
        """The outer form of a URI or URI template.

        Raises:
            ValueError: The URI does not begin with a scheme.
        """
        if self.prefix is None:
            return uri
        scheme = _SCHEME.match(uri)
        if scheme is None:
            raise ValueError(f"resource {uri!r}: expected a scheme before the first variable")
        start = scheme.end() + (2 if uri.startswith("//", scheme.end()) else 0)
        return f"{uri[:start]}{self.prefix}/{uri[start:]}"

    def inner_uri(self, uri: str) -> str | None:
        """The inner form of a URI, or `None` if the outer one lacks the prefix."""
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
        """Whether an inner URI is that of a resource of the server; `True` if unknown."""
        if self.is_open:
            return not uri.startswith(("http:", "https:"))  # clients fetch web URLs themselves
        registries, find_resource = self.server.registries, self.server.hooks.find_resource
        if find_resource is None:
            return False
        try:
            find_resource(uri, registries.resources.items, registries.templates.items)
        except ProtocolError:
            return False
        return True

    def outer_key(self, row: ItemList, key: str) -> str:
        """The outer key of an item.

        Args:
            row: The list of the item.
            key: The inner name, URI or template.

        Raises:
            ValueError: The mounted server's item can't have this prefix.
        """
        if row.key != "name":
            return self.outer_uri(key)
        name = self.outer_name(key)
        if row.kind == "tool":
            check_tool_name(name, f"tool {name!r}")
        return name

    def outer_wire(self, wire: Mapping[str, Any], key: Mapping[str, str]) -> dict[str, Any]:
        """An item as wire object with outer names.

        Args:
            wire: The item in the mounted server. A tool may name its user interface (MCP Apps).
            key: The member with the outer key.
        """
        meta: Any = wire.get("_meta")
        ui: Any = meta.get("ui") if is_object(meta) else None
        uri: Any = ui.get("resourceUri") if is_object(ui) else None
        if not isinstance(uri, str) or not uri.startswith("ui://"):
            return {**wire, **key}
        moved = {**meta, "ui": {**ui, "resourceUri": self.outer_uri(uri)}}
        return {**wire, **key, "_meta": moved}

    def inner_key(self, row: ItemList, key: str) -> str | None:
        """The inner key of an item, or `None` if the outer one lacks the prefix."""
        return self.inner_name(key) if row.key == "name" else self.inner_uri(key)


class UnregisteredItem:
    """An unregistered item that a mounted server may have, named by a request.

    Args:
        mount: The mounted server.
        inner_key: The key of the item in the mounted server.

    Attributes:
        mount: As passed.
        inner_key: As passed.
        scopes: Always empty: the scopes are unknown here.
    """

    scopes: frozenset[str] = frozenset()

    def __init__(self, mount: Mount, inner_key: str) -> None:
        self.mount = mount
        self.inner_key = inner_key

    def respond(self, request: RequestContext) -> Coroutine[Any, Any, Any] | None:
        """The response of the mounted server; `None` if it does not have the method."""
        name = request.method.name
        if not self.mount.has_method(name):
            return None
        return _PASSED_BY[name](self.mount, self.inner_key, request)


class MountedItem(UnregisteredItem):
    """An item that a mounted server has registered, as the outer server lists it.

    Args:
        mount: The mounted server.
        row: Its list.
        inner_key: Its key in the mounted server.
        item: The item in the mounted server.

    Attributes:
        item: As passed.
        scopes: Scopes that it needs.
        tags: Names for groups of items.
        label: Its name in error texts.
        dependencies: `None`: those of the item belong to the mounted server.
        runner: `None`: that of the item is used by the mounted server.
        key: The member that holds its key, as wire object.
    """

    def __init__(self, mount: Mount, row: ItemList, inner_key: str, item: Any) -> None:
        super().__init__(mount, inner_key)
        key = mount.outer_key(row, inner_key)
        self.item = item
        self.scopes = item.scopes
        self.tags: frozenset[str] = item.tags
        self.label = f"{row.kind} {key!r}"
        self.dependencies = None
        self.runner = None
        self.key = {row.key: key}

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The item as wire object with its outer name."""
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
        """See `Resource`; `uri` is an outer URI."""
        inner = self.mount.inner_uri(uri)
        values: Mapping[str, Any] | None = None if inner is None else self.item.values(inner)
        return values


def _call_tool(mount: Mount, name: str, request: RequestContext) -> Coroutine[Any, Any, Any]:
    return _result(mount, _with(request, name=name), "content", _with_outer_block_uri)


def _get_prompt(mount: Mount, name: str, request: RequestContext) -> Coroutine[Any, Any, Any]:
    return _result(mount, _with(request, name=name), "messages", _with_outer_message_uri)


async def _use_resource(mount: Mount, uri: str, request: RequestContext) -> Any:
    """Read a resource, subscribe to it, or unsubscribe."""
    inner = mount.inner_uri(request.params.uri) or uri  # `uri` may be a template
    try:
        return await _result(mount, _with(request, uri=inner), "contents", _with_outer_uri)
    except ResourceNotFoundError as error:
        if error.uri != inner:
            raise
        raise ResourceNotFoundError(request.params.uri) from error


def _complete(mount: Mount, key: str, request: RequestContext) -> Coroutine[Any, Any, Any]:
    ref = request.params.ref
    ref = replace(ref, **{"uri" if hasattr(ref, "uri") else "name": key})
    return mount.handle(_with(request, ref=ref))


_PASSED_BY: Mapping[str, Callable[[Mount, str, RequestContext], Coroutine[Any, Any, Any]]] = {
    "tools/call": _call_tool,
    "prompts/get": _get_prompt,
    "resources/read": _use_resource,
    SUBSCRIBE: _use_resource,
    UNSUBSCRIBE: _use_resource,
    "completion/complete": _complete,
}
"""Functions that pass requests to the mounted server with the item's inner key, by method."""


def _with(request: RequestContext, **params: Any) -> RequestContext:
    return request.with_params(replace(request.params, **params))


async def _result(
    mount: Mount, request: RequestContext, member: str, change: Callable[[Mount, Any], Any]
) -> Any:
    """The result of a mounted server, with each item of one of its lists changed."""
    return _with_each(await mount.handle(request), member, partial(change, mount))


def _with_each(result: Any, member: str, change: Callable[[Any], Any]) -> Any:
    """A result with each item of a list changed; the same object if nothing changed."""
    if isinstance(result, Raw):
        members: dict[str, Raw] = msgspec.json.decode(result, type=dict[str, Raw])
        if member not in members:
            return result
        part = {member: msgspec.json.decode(members[member])}
        changed_part = _with_each(part, member, change)
        return result if changed_part is part else Raw(encode({**members, **changed_part}))
    items = _member(result, member)
    if not is_many(items):
        return result
    changed = [change(item) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return result
    return _replace_members(result, **{member: changed})


def _with_outer_message_uri(mount: Mount, message: Any) -> Any:
    block = _member(message, "content")
    moved = _with_outer_block_uri(mount, block)
    return message if moved is block else _replace_members(message, content=moved)


def _with_outer_block_uri(mount: Mount, block: Any) -> Any:
    """A resource link or embedded resource with its outer URI; another block is unchanged."""
    embedded = _member(block, "resource")
    if embedded is None:
        return _with_outer_uri(mount, block)
    moved = _with_outer_uri(mount, embedded)
    return block if moved is embedded else _replace_members(block, resource=moved)


def _with_outer_uri(mount: Mount, value: Any) -> Any:
    """An object with its outer `uri`, if that names a resource of the mounted server."""
    uri = _member(value, "uri")
    if mount.prefix is None or not isinstance(uri, str) or not mount.has_resource(uri):
        return value
    return _replace_members(value, uri=mount.outer_uri(uri))


def _member(value: Any, name: str) -> Any:
    return value.get(name) if is_object(value) else getattr(value, name, None)


def _replace_members(value: Any, **members: Any) -> Any:
    return {**value, **members} if is_object(value) else replace(value, **members)
