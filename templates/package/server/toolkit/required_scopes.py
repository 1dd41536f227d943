"""The scopes that messages need, found before a request is served.

Over HTTP a request without them is answered by a challenge that names them.

Source: basic/authorization (scope challenge handling).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ...errors import ProtocolError
from ...protocol import jsonrpc
from ..serving import Service
from . import dispatcher
from .dispatcher import FindResource
from .registry import ItemRegistries, Registry
from .server import ServerKernel

_NO_SCOPES: frozenset[str] = frozenset()


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


class RequiredScopes:
    """Finds the scopes that messages need.

    Args:
        registries: The items of a server.
        methods: Scopes of its custom methods.
        find_resource: Finds the resource of a URI; `None` if the server has none.
    """

    def __init__(
        self,
        registries: ItemRegistries,
        methods: Mapping[str, frozenset[str]],
        find_resource: FindResource | None,
    ) -> None:
        self._tools, self._resources, self._templates, self._prompts = registries
        self._methods = methods
        self._find_resource = find_resource

    def of(self, message: jsonrpc.Message) -> Collection[str]:
        """The scopes that a message needs."""
        if self._tools.hides_forbidden or not isinstance(message, jsonrpc.Request):
            return ()  # hidden items look unknown instead
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
        if self._find_resource is None or not (self._resources.items or self._templates.items):
            return _NO_SCOPES
        try:
            resource, _ = self._find_resource(uri, self._resources.items, self._templates.items)
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


class ScopedServer(ServerKernel):
    """A server whose service has the scopes that messages need."""

    def _service(self) -> Service:
        own, hooks = self._dispatcher, self._dispatcher.hooks
        required: dispatcher.RequiredScopes = RequiredScopes(
            own.registries, own.method_scopes, hooks.find_resource
        ).of
        if hooks.required_scopes is not None:
            required = hooks.required_scopes(required)
        return msgspec.structs.replace(super()._service(), required_scopes=required)
