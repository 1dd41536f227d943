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
from ...runtime.request_context import PRINCIPAL
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


class _Named(msgspec.Struct):
    name: str


class _Addressed(msgspec.Struct):
    uri: str


class _Reference(msgspec.Struct):
    name: str | None = None
    uri: str | None = None


class _Completing(msgspec.Struct):
    ref: _Reference


class _Filter(msgspec.Struct, rename="camel"):
    resource_subscriptions: list[str] = []


class _Listening(msgspec.Struct):
    notifications: _Filter


_decode_named = msgspec.json.Decoder(_Named).decode
_decode_addressed = msgspec.json.Decoder(_Addressed).decode
_decode_completing = msgspec.json.Decoder(_Completing).decode
_decode_listening = msgspec.json.Decoder(_Listening).decode


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
        if message.params is None:
            return ()
        try:
            return self._of_request(message.method, message.params)
        except msgspec.MsgspecError:
            return ()  # the request is refused for its params

    def _of_request(self, method: str, params: msgspec.Raw) -> Collection[str]:
        match method:
            case "tools/call":
                return _scopes_of_named(self._tools, params)
            case "prompts/get":
                return _scopes_of_named(self._prompts, params)
            case "resources/read" | "resources/subscribe":
                return self._of_resource(_decode_addressed(params).uri)
            case "completion/complete":
                ref = _decode_completing(params).ref
                return _scopes_in(self._templates, ref.uri) | _scopes_in(self._prompts, ref.name)
            case "subscriptions/listen":
                uris = _decode_listening(params).notifications.resource_subscriptions
                return {scope for uri in uris for scope in self._of_resource(uri)}
            case _:
                return ()

    def _of_resource(self, uri: str) -> frozenset[str]:
        if not (self._resources.items or self._templates.items):
            return _NO_SCOPES
        from .resources import find_resource  # loaded already

        try:
            resource, _ = find_resource(uri, self._resources.items, self._templates.items)
        except ProtocolError:
            return _NO_SCOPES
        scopes: frozenset[str] = resource.scopes
        return scopes


def _scopes_of_named(registry: Registry[Any], params: msgspec.Raw) -> frozenset[str]:
    return _scopes_in(registry, _decode_named(params).name) if registry.needs_scopes else _NO_SCOPES


def _scopes_in(registry: Registry[Any], name: str | None) -> frozenset[str]:
    item = None if name is None else registry.items.get(name)
    scopes: frozenset[str] = _NO_SCOPES if item is None else item.scopes
    return scopes
