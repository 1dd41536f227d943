"""The way of requests to mounted servers, and of their results back.

A server with mounted servers has these routes in front of its own handlers. The mounted server gets
the request with its own names; names and URIs of its resources in the result become those from
outside.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from ..._wire import Raw, convert, encode, is_many, is_object, replace
from ...errors import ProtocolError, ResourceNotFoundError
from ...runtime.request_context import PRINCIPAL, RequestContext
from .custom_handlers import Handler
from .mounting import KEY_MEMBERS, Mount, MountedItem, Mounts
from .registry import ItemRegistries, Listed, Registry

_Route: TypeAlias = Callable[
    [Mounts, ItemRegistries, Handler, RequestContext], Coroutine[Any, Any, Any]
]

_Found: TypeAlias = tuple[Mount, str]
"""A mounted server, and the key of one of its items there."""

_logger = logging.getLogger(__name__)


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
            result[name] = partial(_ROUTES[name], mounts, registries, own)
        elif name in lists:
            result[name] = partial(_list, mounts, lists[name], own)
    return result


def _found(
    mounts: Mounts,
    registry: Registry[Any],
    request: RequestContext,
    key: str,
    inner_key: Callable[[Mount, str], str | None],
) -> _Found | None:
    """The mounted server that has an item; `None` if it is the server's own, or unknown.

    What the principal may not use is not found: the server's own handler refuses it.
    """
    item = registry.items_for(request).get(key)
    if isinstance(item, MountedItem) and PRINCIPAL.get().has_scopes(*item.scopes):
        return item.mount, item.inner_key
    if key in registry.all_keys():
        return None
    return _in_open_mounts(mounts, key, inner_key)


def _in_open_mounts(
    mounts: Mounts, key: str, inner_key: Callable[[Mount, str], str | None]
) -> _Found | None:
    for mount in mounts.open_mounts():
        inner = inner_key(mount, key)
        if inner is not None:
            return mount, inner
    return None


def _call_tool(
    mounts: Mounts, registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    found = _found(mounts, registries.tools, request, request.params.name, Mount.inner_name)
    return own(request) if found is None else _tool_result(*_named(found, request))


def _get_prompt(
    mounts: Mounts, registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    found = _found(mounts, registries.prompts, request, request.params.name, Mount.inner_name)
    return own(request) if found is None else _prompt_result(*_named(found, request))


def _named(found: _Found, request: RequestContext) -> tuple[Mount, RequestContext]:
    mount, name = found
    return mount, request.with_params(replace(request.params, name=name))


def _resource(
    mounts: Mounts, registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    """Read a resource, subscribe to it, or unsubscribe."""
    found = _found_resource(mounts, registries, request)
    if found is None or request.method.name not in found[0].server.handlers:
        return own(request)
    params = replace(request.params, uri=found[1])
    return _read_result(found[0], request.with_params(params), request.params.uri)


def _found_resource(
    mounts: Mounts, registries: ItemRegistries, request: RequestContext
) -> _Found | None:
    from .resources import find_resource  # loaded only if a server has resources

    uri: str = request.params.uri
    resources = registries.resources.items_for(request)
    templates = registries.templates.items_for(request)
    try:
        item: Any = find_resource(uri, resources, templates)[0]
    except ResourceNotFoundError:
        return _in_open_mounts(mounts, uri, Mount.inner_uri)
    if not isinstance(item, MountedItem) or not PRINCIPAL.get().has_scopes(*item.scopes):
        return None
    inner = item.mount.inner_uri(uri)
    return None if inner is None else (item.mount, inner)


def _complete(
    mounts: Mounts, registries: ItemRegistries, own: Handler, request: RequestContext
) -> Coroutine[Any, Any, Any]:
    ref = request.params.ref
    uri: str | None = getattr(ref, "uri", None)
    if uri is None:
        found = _found(mounts, registries.prompts, request, ref.name, Mount.inner_name)
    else:
        found = _found(mounts, registries.templates, request, uri, Mount.inner_uri)
    if found is None or request.method.name not in found[0].server.handlers:
        return own(request)
    mount, key = found
    ref = replace(ref, **{"name" if uri is None else "uri": key})
    params = replace(request.params, ref=ref)
    return mount.handle(request.with_params(params))


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
    """A page of a list: from the registry, unless mounted servers have to be asked for theirs."""
    if not mounts.have_to_be_asked():
        return await own(request)
    listed: dict[str, Listed] = {}
    asked: dict[Mount, Mapping[str, dict[str, Any]]] = {}
    for key, item in registry.visible_items(request).items():
        if not isinstance(item, MountedItem):
            listed[key] = item
            continue
        if item.mount not in asked:
            asked[item.mount] = await _items_of(item.mount, registry, request)
        if item.inner_key in asked[item.mount]:
            members = asked[item.mount][item.inner_key]
            listed[key] = _ListedItem(item.mount.outer_wire(members, item.key))
    keys = {*listed, *registry.all_keys()}
    found: dict[Mount, dict[str, Listed]] = {}
    for mount in mounts.open_mounts():  # as `_in_open_mounts` finds them
        items = asked[mount] if mount in asked else await _items_of(mount, registry, request)
        found[mount] = {}
        for inner_key, members in items.items():
            key = mount.outer_key(registry.kind, inner_key)
            if key not in keys:
                keys.add(key)
                outer_key = {KEY_MEMBERS[registry.kind]: key}
                found[mount][key] = _ListedItem(mount.outer_wire(members, outer_key))
    for mount in mounts:
        listed.update(found.get(mount, {}))
    return registry.page_of(request, listed)


async def _items_of(
    mount: Mount, registry: Registry[Any], request: RequestContext
) -> Mapping[str, dict[str, Any]]:
    """All items of a list of a mounted server, as wire objects by their keys there.

    A server behind a proxy that does not answer has none, so that the others can be used.
    """
    items: dict[str, dict[str, Any]] = {}
    handlers = mount.server.handlers
    if request.method.name not in handlers and (handlers or not mount.server.is_open):
        return items
    cursor: str | None = None
    while True:
        params = request.params
        if params is not None:
            params = replace(params, cursor=cursor)
        elif cursor is not None:
            params = convert({"cursor": cursor}, request.method.params)
        try:
            page = await mount.handle(request.with_params(params))
        except ProtocolError as error:
            if not mount.is_open:
                raise
            _logger.warning("%s of server %r: %s", registry.kind, mount.server.name, error)
            return items
        page = msgspec.json.decode(encode(page))
        for item in page[registry.member]:
            items[item[KEY_MEMBERS[registry.kind]]] = item
        cursor = page.get("nextCursor")
        if cursor is None:
            return items


async def _tool_result(mount: Mount, request: RequestContext) -> Any:
    return _with_each(await mount.handle(request), "content", partial(_moved_block, mount))


async def _prompt_result(mount: Mount, request: RequestContext) -> Any:
    return _with_each(await mount.handle(request), "messages", partial(_moved_message, mount))


async def _read_result(mount: Mount, request: RequestContext, uri: str) -> Any:
    try:
        result = await mount.handle(request)
    except ResourceNotFoundError as error:
        if error.uri != request.params.uri:
            raise
        raise ResourceNotFoundError(uri) from error
    return _with_each(result, "contents", partial(_moved, mount))


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
    return {**value, **members} if is_object(value) else replace(value, **members)
