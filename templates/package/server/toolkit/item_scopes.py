"""Scopes that tools, resources, prompts and custom methods need.

A principal without them either gets a challenge for the scopes of the item, or the response of an
item that does not exist, which then is not listed either.

Source: basic/authorization (scope challenge handling).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ...errors import InvalidRequestError, ProtocolError
from ...protocol import jsonrpc
from ...runtime.principal import PRINCIPAL
from .registry import Registry

ForbiddenItems: TypeAlias = Literal["listed", "hidden"]
"""What becomes of items whose scopes a principal lacks."""

_NO_SCOPES: frozenset[str] = frozenset()


class ScopedItem(Protocol):
    """Something that is registered.

    Attributes:
        scopes: The scopes that it needs.
    """

    scopes: frozenset[str]


class _Params(msgspec.Struct):
    name: Any = None
    uri: Any = None
    ref: Any = None
    notifications: Any = None


_decode = msgspec.json.Decoder(_Params).decode


def is_permitted(item: ScopedItem, label: str, forbidden: ForbiddenItems) -> bool:
    """Whether the principal may use an item; `False` if the item has to look like an unknown one.

    Raises:
        InvalidRequestError: It may not, and such items are listed.
    """
    if PRINCIPAL.get().has_scopes(*item.scopes):
        return True
    if forbidden == "hidden":
        return False
    raise InvalidRequestError(f"{label} needs the scopes {' '.join(sorted(item.scopes))}")


class RequiredScopes:
    """Finds the scopes that messages need.

    Args:
        tools: The tools.
        resources: The resources with a URI.
        templates: The resource templates.
        prompts: The prompts.
        methods: Scopes of custom methods.
    """

    def __init__(
        self,
        tools: Registry[Any],
        resources: Registry[Any],
        templates: Registry[Any],
        prompts: Registry[Any],
        methods: Mapping[str, frozenset[str]],
    ) -> None:
        self._tools = tools
        self._resources = resources
        self._templates = templates
        self._prompts = prompts
        self._methods = methods

    def of(self, message: jsonrpc.Message) -> Collection[str]:
        """The scopes of what a message is about."""
        if not isinstance(message, jsonrpc.Request):
            return ()
        if message.method in self._methods:
            return self._methods[message.method]
        try:
            params = _decode(message.params) if message.params is not None else _Params()
        except msgspec.MsgspecError:
            return ()
        match message.method:
            case "tools/call":
                return _scopes_in(self._tools, params.name)
            case "prompts/get":
                return _scopes_in(self._prompts, params.name)
            case "resources/read" | "resources/subscribe":
                return self._of_resource(params.uri)
            case "completion/complete" if isinstance(params.ref, dict):
                template = _scopes_in(self._templates, params.ref.get("uri"))
                return template | _scopes_in(self._prompts, params.ref.get("name"))
            case "subscriptions/listen" if isinstance(params.notifications, dict):
                uris = params.notifications.get("resourceSubscriptions")
                some = uris if isinstance(uris, list) else []
                return frozenset().union(*map(self._of_resource, some))
            case _:
                return ()

    def _of_resource(self, uri: object) -> frozenset[str]:
        if not isinstance(uri, str) or not (self._resources.items or self._templates.items):
            return _NO_SCOPES
        from .resources import find_resource  # loaded already

        try:
            scopes: frozenset[str] = find_resource(uri, self._resources, self._templates)[0].scopes
        except ProtocolError:
            return _NO_SCOPES
        return scopes


def _scopes_in(registry: Registry[Any], name: object) -> frozenset[str]:
    item = registry.items.get(name) if isinstance(name, str) else None
    scopes: frozenset[str] = _NO_SCOPES if item is None else item.scopes
    return scopes
