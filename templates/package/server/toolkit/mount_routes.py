"""The way of requests to mounted servers, and of their results back.

A server with mounted servers has these routes in front of its own handlers. The mounted server gets
the request with its own names; names and URIs of its resources in the result become those from
outside.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..._wire import Raw, convert, encode, is_many, is_object
from ...errors import ResourceNotFoundError
from ...runtime.principal import PRINCIPAL
from ...runtime.request_context import RequestContext
from .dispatcher import Handler
from .mounting import KEY_MEMBERS, Mount, MountedItem
from .registry import ItemRegistries, Listed, Registry

if TYPE_CHECKING:
    from .mounting import Mounts

_Route: TypeAlias = Callable[[ItemRegistries, Handler, RequestContext], Coroutine[Any, Any, Any]]


def routed(
    mounts: Mounts, registries: ItemRegistries, handlers: Mapping[str, Handler]
) -> dict[str, Handler]:
    """The handlers of a server, those of requests about items behind routes."""
    lists = {
        "tools/list": registries.tools,
        "prompts/list": registries.prompts,
        "resources/list": registries.resources,
        "resources/templates/list": registries.templates,
    }
    result = dict(handlers)
    for name, own in handlers.items():
        if name in _ROUTES:
            result[name] = partial(_ROUTES[name], registries, own)
        elif name in lists:
            result[name] = partial(_list, mounts, lists[name], own)
    return result


def _mounted(item: Any) -> MountedItem | None:
    """A mounted item that the principal may use; the server's own handler refuses others."""
    if isinstance(item, MountedItem) and PRINCIPAL.get().has_scopes(*item.scopes):
        return item
    return None


def _call_tool(
    registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    item = _mounted(registries.tools.items.get(request.params.name))
    if item is None:
        return own(request)
    return _tool_result(item.mount, _named(item, request))


def _get_prompt(
    registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    item = _mounted(registries.prompts.items.get(request.params.name))
    if item is None:
        return own(request)
    return _prompt_result(item.mount, _named(item, request))


def _named(item: MountedItem, request: RequestContext) -> RequestContext:
    return request.with_params(msgspec.structs.replace(request.params, name=item.inner_key))


def _resource(
    registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    """Read a resource, subscribe to it, or unsubscribe."""
    from .resources import find_resource  # loaded already

    uri: str = request.params.uri
    item = _mounted(find_resource(uri, registries.resources, registries.templates)[0])
    inner = None if item is None else item.mount.inner_uri(uri)
    if item is None or request.method.name not in item.mount.server.handlers or inner is None:
        return own(request)
    params = msgspec.structs.replace(request.params, uri=inner)
    return _read_result(item.mount, request.with_params(params), uri)


def _complete(
    registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    ref = request.params.ref
    uri: str | None = getattr(ref, "uri", None)
    found = (
        registries.prompts.items.get(ref.name)
        if uri is None
        else registries.templates.items.get(uri)
    )
    item = _mounted(found)
    if item is None or request.method.name not in item.mount.server.handlers:
        return own(request)
    inner = {"name" if uri is None else "uri": item.inner_key}
    ref = msgspec.structs.replace(ref, **inner)
    params = msgspec.structs.replace(request.params, ref=ref)
    return item.mount.handle(request.with_params(params))


_ROUTES: Mapping[str, _Route] = {
    "tools/call": _call_tool,
    "prompts/get": _get_prompt,
    "resources/read": _resource,
    "resources/subscribe": _resource,
    "resources/unsubscribe": _resource,
    "completion/complete": _complete,
}


class _ListedItem(msgspec.Struct):
    """An item as a mounted server has listed it, with its key from outside."""

    members: dict[str, Any]

    def wire(self, structured_content: str) -> dict[str, Any]:
        return self.members


async def _list(
    mounts: Mounts, registry: Registry[Any], own: Handler, request: RequestContext
) -> Any:
    """A page of a list: from the registry, unless middleware of a mounted server may change it."""
    if not mounts.lists_pass_middleware():
        return await own(request)
    listed: dict[str, Listed] = {}
    asked: dict[Mount, Mapping[str, dict[str, Any]]] = {}
    for key, item in registry.visible_items(request).items():
        if not isinstance(item, MountedItem):
            listed[key] = item
            continue
        mount = item.mount
        if mount not in asked:
            asked[mount] = await _items_of(mount, registry, request)
        if item.inner_key in asked[mount]:
            listed[key] = _ListedItem(asked[mount][item.inner_key] | item.key)
    return registry.page_of(request, listed)


async def _items_of(
    mount: Mount, registry: Registry[Any], request: RequestContext
) -> Mapping[str, dict[str, Any]]:
    """All items of a list of a mounted server, as wire objects by their keys there."""
    items: dict[str, dict[str, Any]] = {}
    cursor: str | None = None
    while True:
        params = request.params
        if params is not None:
            params = msgspec.structs.replace(params, cursor=cursor)
        elif cursor is not None:
            params = convert({"cursor": cursor}, request.method.params)
        page = await mount.handle(request.with_params(params))
        page = msgspec.json.decode(encode(page))
        for item in page[registry.member]:
            items[item[KEY_MEMBERS[registry.kind]]] = item
        cursor = page.get("nextCursor")
        if cursor is None:
            return items


async def _tool_result(mount: Mount, request: RequestContext) -> Any:
    result = _readable(await mount.handle(request))
    return _with_each(result, "content", partial(_moved_block, mount))


async def _prompt_result(mount: Mount, request: RequestContext) -> Any:
    result = _readable(await mount.handle(request))
    return _with_each(result, "messages", partial(_moved_message, mount))


async def _read_result(mount: Mount, request: RequestContext, uri: str) -> Any:
    try:
        result = _readable(await mount.handle(request))
    except ResourceNotFoundError as error:
        if error.uri != request.params.uri:
            raise
        raise ResourceNotFoundError(uri) from error
    return _with_each(result, "contents", partial(_moved, mount))


def _readable(result: Any) -> Any:
    """A result whose members can be read."""
    return msgspec.json.decode(result) if isinstance(result, Raw) else result


def _with_each(result: Any, member: str, change: Callable[[Any], Any]) -> Any:
    """A result with each item of a list changed; the same object if nothing changed."""
    items = _member(result, member)
    if not is_many(items):
        return result
    changed = [change(item) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return result
    return _replaced(result, **{member: changed})


def _moved_message(mount: Mount, message: Any) -> Any:
    block = _member(message, "content")
    moved = _moved_block(mount, block)
    return message if moved is block else _replaced(message, content=moved)


def _moved_block(mount: Mount, block: Any) -> Any:
    """A resource link or an embedded resource with its URI from outside; another block as it is."""
    embedded = _member(block, "resource")
    if embedded is None:
        return _moved(mount, block)
    moved = _moved(mount, embedded)
    return block if moved is embedded else _replaced(block, resource=moved)


def _moved(mount: Mount, value: Any) -> Any:
    """An object with its `uri` from outside, if it is that of a resource of the mounted server."""
    uri = _member(value, "uri")
    if mount.prefix is None or not isinstance(uri, str) or not mount.has_resource(uri):
        return value
    return _replaced(value, uri=mount.outer_uri(uri))


def _member(value: Any, name: str) -> Any:
    return value.get(name) if is_object(value) else getattr(value, name, None)


def _replaced(value: Any, **members: Any) -> Any:
    return {**value, **members} if is_object(value) else msgspec.structs.replace(value, **members)
