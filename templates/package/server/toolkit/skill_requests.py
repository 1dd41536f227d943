"""The requests about the skills of a server.

Entries are derived from the resources: each `SKILL.md` of a directory of skills has the entry of
its skill. The entries of mounted servers are requested from these, and get outer URIs.

The extension defines no client capability, so the requests of all clients are served.

Source: ext-skills/specification/stable/skills.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from ..._wire import Raw, encode, is_many, is_object, structs_in
from ...errors import INVALID_PARAMS, METHOD_NOT_FOUND, InvalidParamsError, ProtocolError
from ...facts import Method
from ...foreign_text import is_uri, safe_repr
from ...protocol.lifecycle import CAPABILITY, settings_of
from ...runtime.pages import next_cursor, pages_of
from ...runtime.request_context import RequestContext
from ...skills import (
    DIRECTORY_TYPE,
    GET,
    LIST,
    READ_DIRECTORY,
    SKILLS,
    Skill,
    SkillResource,
)
from .content import field_type
from .dispatcher import Dispatcher, Handler, ItemHandler
from .registry import STALE, page_bounds
from .resources import resource_of

_logger = logging.getLogger(__name__)


def _row(name: str) -> Method:
    return Method(
        name=name,
        kind="request",
        sender="client",
        params=dict[str, Any],
        params_required=False,
        result=Any,
        capability=(CAPABILITY, SKILLS),
        items=None,
        python_name=name.replace("/", "_"),
    )


ROWS: Mapping[str, Method] = {name: _row(name) for name in (LIST, GET, READ_DIRECTORY)}
"""The requests of the extension, in every revision."""


def serve_skills(
    dispatcher: Dispatcher, settings: Mapping[str, Any], handler: Handler | None = None
) -> None:
    """Serve the requests about skills, and declare the extension.

    Args:
        dispatcher: The dispatcher of the server.
        settings: The settings of the extension to declare.
        handler: Handles the requests; `None` serves the registered skills.

    Raises:
        ValueError: One of the methods is registered already, here or where this server is mounted.
    """
    for name, row in ROWS.items():
        if dispatcher.custom.get(name, row) is not row:
            raise ValueError(f"method {name!r} is registered already")
        dispatcher.check_method(name)
    dispatcher.add_item_handlers(_HANDLERS)
    dispatcher.custom |= ROWS
    dispatcher.declare({CAPABILITY: {SKILLS: dict(settings)}})
    if handler is None:
        dispatcher.serve_items(ROWS.keys())
    else:
        dispatcher.serve(dict.fromkeys(ROWS, handler))


def pass_skills_on(
    dispatcher: Dispatcher, capabilities: Mapping[str, Any], handler: Handler
) -> None:
    """Pass requests about skills to another server, if its capabilities have the extension.

    Args:
        dispatcher: The dispatcher of a proxy.
        capabilities: The capabilities of the server behind it.
        handler: Passes a request on.
    """
    settings = settings_of(capabilities, SKILLS)
    if settings is not None:
        serve_skills(dispatcher, settings, handler)


async def _list(dispatcher: Dispatcher, request: RequestContext) -> Any:
    visible = dispatcher.registries.resources.visible_items(request)
    entries: dict[str, Any] = {
        uri: msgspec.to_builtins(skill) for uri, skill in _own_skills(visible).items()
    }
    for mount in _mounts(dispatcher, request):
        for entry in await _mounted_entries(mount, request):
            uri = entry.get("uri")
            if isinstance(uri, str) and _is_shown(dispatcher, mount, visible, uri):
                entries.setdefault(uri, entry)
    return _result(request, _page(dispatcher, request, "skills", entries), STALE)


async def _get(dispatcher: Dispatcher, request: RequestContext) -> Any:
    uri = _uri_of(request)
    visible = dispatcher.registries.resources.visible_items(request)
    own = _own_skills(visible).get(uri)
    if own is not None:
        resource, _ = resource_of(dispatcher, request, uri)  # checks the scopes
        return _result(request, {"skill": msgspec.to_builtins(own)}, resource.hint)
    mount, result = await _request_mounted(dispatcher, request, uri, visible)
    return {**result, "skill": _with_outer_entry_uris(mount, result.get("skill"))}


async def _read_directory(dispatcher: Dispatcher, request: RequestContext) -> Any:
    uri = _uri_of(request)
    visible = dispatcher.registries.resources.visible_items(request)
    children: dict[str, Any] = {}
    for skill in _own_skills(visible).values():
        if f"{uri}/".startswith(f"{skill.root}/"):
            children |= _children(uri, skill, visible)
    if children:
        return _result(request, _page(dispatcher, request, "resources", children))
    mount, result = await _request_mounted(dispatcher, request, uri, visible)
    inside: Any = result.get("resources")
    moved = [_with_outer_uri(mount, each) for each in inside] if is_many(inside) else inside
    return {**result, "resources": moved}


def _children(uri: str, skill: Skill, visible: Mapping[str, Any]) -> dict[str, Any]:
    """The files and directories in a directory of a skill, as resources by URI."""
    children: dict[str, Any] = {}
    for each in skill.resources:
        if isinstance(each, SkillResource) and each.uri.startswith(f"{uri}/"):
            name, slash, _ = each.uri[len(uri) + 1 :].partition("/")
            child = f"{uri}/{name}"
            if slash:
                directory = {"uri": child, "name": unquote(name), "mimeType": DIRECTORY_TYPE}
                children[child] = directory
            elif each.uri in visible:
                children[child] = visible[each.uri].wire("any")
    return children


def _own_skills(visible: Mapping[str, Any]) -> dict[str, Skill]:
    """The skills of registered directories among visible resources, by the URI of `SKILL.md`."""
    skills = {uri: getattr(each, "skill", None) for uri, each in visible.items()}
    return {uri: skill for uri, skill in skills.items() if isinstance(skill, Skill)}


def _mounts(dispatcher: Dispatcher, request: RequestContext) -> list[Any]:
    """The mounted servers that handle a request, longest prefix first."""
    mounts: list[Any] = [*dispatcher.mounts]
    having = [each for each in mounts if each.has_method(request.method.name)]
    return sorted(having, key=lambda each: -len(each.prefix or ""))


def _is_shown(dispatcher: Dispatcher, mount: Any, visible: Mapping[str, Any], uri: str) -> bool:
    """Whether this server shows a skill or directory of a mounted one, by its outer URI."""
    if mount.is_open:
        resources: Any = dispatcher.registries.resources  # a `VaryingRegistry`, as it has mounts
        return not resources.is_disabled(uri)
    return any(key == uri or key.startswith(f"{uri}/") for key in visible)


async def _mounted_entries(mount: Any, request: RequestContext) -> list[dict[str, Any]]:
    """The entries that a mounted server lists, with their outer URIs.

    If a server behind a proxy fails, the list ends early, so that other servers can be used.
    """
    entries: list[dict[str, Any]] = []

    async def inner(cursor: str | None) -> tuple[list[Any], str | None]:
        page = await _inner_result(mount, request, cursor=cursor)
        skills = page.get("skills")
        return [*skills] if is_many(skills) else [], next_cursor(page)

    try:
        async for page in pages_of(inner, LIST):
            entries += [_with_outer_entry_uris(mount, each) for each in page if is_object(each)]
    except ProtocolError as error:
        if not mount.is_open:
            raise
        _logger.warning("skills of server %r: %s", mount.server.name, error)
    return entries


async def _request_mounted(
    dispatcher: Dispatcher, request: RequestContext, uri: str, visible: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The first mounted server that has an outer URI, and its result."""
    for mount in _mounts(dispatcher, request):
        inner = mount.inner_uri(uri)
        if inner is not None and _is_shown(dispatcher, mount, visible, uri):
            try:
                return mount, await _inner_result(mount, request, uri=inner)
            except ProtocolError as error:
                if error.code not in (INVALID_PARAMS, METHOD_NOT_FOUND):
                    raise
    kind = "a directory" if request.method.name == READ_DIRECTORY else "a skill"
    raise InvalidParamsError(f"uri: expected the URI of {kind}, got {safe_repr(uri)}")


async def _inner_result(mount: Any, request: RequestContext, **members: Any) -> dict[str, Any]:
    """The result of a mounted server as wire object; params that are `None` are omitted."""
    params = {**_params(request), **members}
    params = {name: value for name, value in params.items() if value is not None}
    result = await mount.handle(request.with_params(params, Raw(encode(params))))
    decoded: dict[str, Any] = msgspec.json.decode(encode(result))
    return decoded


def _with_outer_entry_uris(mount: Any, entry: Any) -> Any:
    """An entry with its outer URIs."""
    resources = entry.get("resources") if is_object(entry) else None
    if is_many(resources):
        entry = {**entry, "resources": [_with_outer_uri(mount, each) for each in resources]}
    return _with_outer_uri(mount, entry)


def _with_outer_uri(mount: Any, value: Any) -> Any:
    """An object with its outer `uri`, if it has a `uri`."""
    uri = value.get("uri") if is_object(value) else None
    if not isinstance(uri, str) or not is_uri(uri):
        return value
    return {**value, "uri": mount.outer_uri(uri)}


def _page(
    dispatcher: Dispatcher, request: RequestContext, member: str, items: Mapping[str, Any]
) -> dict[str, Any]:
    """A page of a list, whose items have URIs as keys."""
    cursor = _params(request).get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidParamsError(f"cursor: expected a text, got {safe_repr(cursor)}")
    start, end, following = page_bounds(member, list(items), cursor, dispatcher.settings.page_size)
    page: dict[str, Any] = {member: list(items.values())[start:end]}
    return page if following is None else {**page, "nextCursor": following}


def _params(request: RequestContext) -> Mapping[str, Any]:
    """The params of a request, as wire object."""
    params: Mapping[str, Any] | None = request.params
    return {} if params is None else params


def _uri_of(request: RequestContext) -> str:
    """The URI that a request is about."""
    uri = _params(request).get("uri")
    if not isinstance(uri, str):
        raise InvalidParamsError(f"uri: expected a text, got {safe_repr(uri)}")
    return uri


def _result(
    request: RequestContext, members: Mapping[str, Any], hint: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """A result with those members of the cache hint that the revision has."""
    kinds = [*structs_in(request.revision.client_requests["resources/list"].result)]
    own = {name for name in hint if any(field_type(each, name) for each in kinds)}
    return {**members, **{name: hint[name] for name in own}}


_HANDLERS: Mapping[str, ItemHandler] = {
    LIST: _list,
    GET: _get,
    READ_DIRECTORY: _read_directory,
}
"""Handlers for the skills of registered directories and of mounted servers."""
