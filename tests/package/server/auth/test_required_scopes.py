"""The scopes that a message needs, before anything is called: those of what it names."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mcpgen_runtime import Server
from mcpgen_runtime.protocol.jsonrpc import Notification, Request
from mcpgen_runtime.server.toolkit.required_scopes import RequiredScopes

URIS = {"notifications": {"resourceSubscriptions": ["a://one", "a://x/y", "b://none"]}}


def guarded_server(**settings: Any) -> Server:
    """A server whose items need a scope each."""
    server = Server("guarded", subscribe=True, **settings)
    server.tool("t", scopes=["tool"])(lambda: "")
    server.prompt("p", scopes=["prompt"])(lambda: "")
    server.resource("a://one", scopes=["one"])(lambda: "")
    server.resource("a://x/{name}", scopes=["some"])(lambda name: name)
    server.method("own/method", scopes=["own"])(lambda: None)
    return server


def scopes_of(method: str, params: Any, server: Server | None = None) -> set[str]:
    """The scopes of a request."""
    dispatcher: Any = (server or guarded_server())._dispatcher
    raw = None if params is None else msgspec.Raw(json.dumps(params).encode())
    required = RequiredScopes(
        dispatcher.registries, dispatcher.method_scopes, dispatcher.hooks.find_resource
    )
    return {*required.of(Request(1, method, raw))}


@pytest.mark.parametrize(
    ("method", "params", "scopes"),
    [
        ("tools/call", {"name": "t"}, {"tool"}),
        ("tools/call", {"name": "none"}, set()),
        ("tools/call", {"name": 1}, set()),
        ("tools/call", None, set()),
        ("prompts/get", {"name": "p"}, {"prompt"}),
        ("prompts/get", {"name": "t"}, set()),
        ("resources/read", {"uri": "a://one"}, {"one"}),
        ("resources/read", {"uri": "a://x/y"}, {"some"}),
        ("resources/read", {"uri": "b://none"}, set()),
        ("resources/subscribe", {"uri": "a://one"}, {"one"}),
        ("resources/unsubscribe", {"uri": "a://one"}, set()),
        ("completion/complete", {"ref": {"uri": "a://x/{name}"}}, {"some"}),
        ("completion/complete", {"ref": {"name": "p"}}, {"prompt"}),
        ("completion/complete", {"ref": {}}, set()),
        ("subscriptions/listen", URIS, {"one", "some"}),
        ("subscriptions/listen", {"notifications": {}}, set()),
        ("tools/list", {}, set()),
        ("own/method", {}, {"own"}),
        ("own/method", None, {"own"}),
    ],
)
def test_a_message_needs_the_scopes_of_what_it_names(
    method: str, params: Any, scopes: set[str]
) -> None:
    assert scopes_of(method, params) == scopes


def test_a_server_without_resources_asks_for_none() -> None:
    assert scopes_of("resources/read", {"uri": "a://one"}, Server("empty")) == set()


def test_mounted_tools_and_methods_need_their_scopes() -> None:
    outer = Server("outer")
    outer.mount(guarded_server(), prefix="in")
    assert scopes_of("tools/call", {"name": "in_t"}, outer) == {"tool"}
    assert scopes_of("own/method", {}, outer) == {"own"}


def test_a_notification_needs_no_scope() -> None:
    dispatcher: Any = guarded_server()._dispatcher
    required = RequiredScopes(dispatcher.registries, {"own/method": frozenset({"own"})}, None)
    assert required.of(Notification("own/method", None)) == ()


def test_hidden_items_look_unknown() -> None:
    server = guarded_server(forbidden_items="hidden")
    assert scopes_of("tools/call", {"name": "t"}, server) == set()
