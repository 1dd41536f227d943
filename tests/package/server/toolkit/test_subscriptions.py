"""Streams of changes as a server sends them, to the result that ends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kit.wire import (
    ACKNOWLEDGED,
    ALL_LISTS,
    CANCELLED,
    CHANGED,
    EVERY_SERVER_CAPABILITY,
    HANDSHAKE,
    LISTEN,
    PER_REQUEST,
    ServerEnd,
    tag,
)
from mcpgen_runtime.protocol.events import CloseStreams, SendNotification, SendResponse
from mcpgen_runtime.protocol.handshake import URI_CHARACTERS

modern = pytest.mark.parametrize("revision", PER_REQUEST)


def open_subscription(
    revision: str, wanted: Mapping[str, Any], *, id: Any = "s", capabilities: Any = None
) -> tuple[ServerEnd, list[dict[str, Any]]]:
    """A server with one open subscription, and what it said to that."""
    server = ServerEnd(revision, capabilities or EVERY_SERVER_CAPABILITY)
    return server, server.ask(LISTEN, {"notifications": wanted}, id=id)


def changes(server: ServerEnd, method: str, **params: Any) -> list[dict[str, Any]]:
    """Messages that a server sends when something changes."""
    return [
        json.loads(send.data) for send in server.connection.send(SendNotification(method, params))
    ]


EVERYTHING = {**ALL_LISTS, "resourceSubscriptions": ["memo://a"]}


@pytest.mark.requirement("subscriptions.filter-required", "subscriptions.filter-fields")
@modern
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": []},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": [1]}},
    ],
    ids=repr,
)
def test_without_a_proper_filter_there_is_no_subscription(revision: str, params: Any) -> None:
    server = ServerEnd(revision)
    (answer,) = server.ask(LISTEN, params)
    assert answer["error"]["code"] == -32602
    assert tuple(server.connection.state.inbound) == ()
    assert changes(server, CHANGED["toolsListChanged"]) == []


@pytest.mark.requirement(
    "subscriptions.only-requested-types",
    "subscriptions.filter-fields",
    "subscriptions.ack-subset",
    "subscriptions.pattern-mandatory",
    "subscriptions.ack-first",
)
@modern
@pytest.mark.parametrize(
    ("wanted", "capabilities", "agreed"),
    [
        (dict.fromkeys(CHANGED, False), EVERY_SERVER_CAPABILITY, {}),
        (EVERYTHING, {"tools": {"listChanged": True}}, {"toolsListChanged": True}),
        (EVERYTHING, {"tools": {}}, {}),
        (
            EVERYTHING,
            {"resources": {"subscribe": True}},
            {"resourceSubscriptions": ["memo://a"]},
        ),
    ],
)
def test_what_is_not_wanted_or_not_supported_is_not_subscribed_to(
    revision: str, wanted: Any, capabilities: Any, agreed: Any
) -> None:
    server, said = open_subscription(revision, wanted, capabilities=capabilities)
    assert (said[0]["method"], said[0]["params"]["notifications"]) == (ACKNOWLEDGED, agreed)
    if agreed == {}:
        assert [changes(server, method) for method in CHANGED.values()] == [[], [], []]
    assert tuple(server.connection.state.inbound) == ("s",)


@pytest.mark.requirement(
    "subscriptions.cancel-stdio",
    "cancellation.nothing-further",
    "subscriptions.one-copy-per-subscription",
    "subscriptions.concurrent",
    "subscriptions.id-value",
    "subscriptions.graceful-close",
    "subscriptions.graceful-result-shape",
    "subscriptions.server-cancelled-on-teardown",
)
@modern
def test_a_cancelled_subscription_is_silent_and_the_others_go_on_to_their_result(
    revision: str,
) -> None:
    server, _ = open_subscription(revision, ALL_LISTS, id="a")
    server.ask(LISTEN, {"notifications": ALL_LISTS}, id="1")
    server.ask(LISTEN, {"notifications": {"promptsListChanged": True}}, id=1)
    said = server.say({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "a"}})
    assert said == []
    (change,) = changes(server, CHANGED["toolsListChanged"])
    assert change["params"]["_meta"][tag(revision)] == "1"
    result, cancelled, other, last = (
        json.loads(send.data) for send in server.connection.send(CloseStreams())
    )
    assert (result["id"], other["id"]) == ("1", 1)
    assert result["result"].keys() == {"resultType", "_meta"}
    assert result["result"]["resultType"] == "complete"
    assert result["result"]["_meta"][tag(revision)] == "1"
    assert (cancelled["params"], last["params"]) == ({"requestId": "1"}, {"requestId": 1})
    assert changes(server, CHANGED["toolsListChanged"]) == []
    assert not server.connection.send(CloseStreams())


TOO_MUCH = [
    [f"memo://{number}/{'a' * (URI_CHARACTERS // 4)}" for number in range(4)],
    [*(f"memo://{number}/".ljust(URI_CHARACTERS // 4, "a") for number in range(4)), "memo://more"],
]
"""Resources of which the last one is too much."""


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("uris", TOO_MUCH, ids=["long", "to the limit"])
def test_a_session_follows_only_so_many_resources(revision: str, uris: list[str]) -> None:
    server = ServerEnd(revision)
    for identifier, uri in enumerate(uris[:-1], 1):
        assert server.ask("resources/subscribe", {"uri": uri}, id=identifier) == []
        server.connection.send(SendResponse(identifier, None))
    (refused,) = server.ask("resources/subscribe", {"uri": uris[-1]}, id="one more")
    assert refused["error"]["code"] == -32602
    assert str(URI_CHARACTERS) in refused["error"]["message"]
    assert server.ask("resources/subscribe", {"uri": uris[0]}, id="again") == []
    assert server.ask("resources/unsubscribe", {"uri": uris[0]}, id="less") == []
    server.connection.send(SendResponse("again", None))
    server.connection.send(SendResponse("less", None))
    assert server.ask("resources/subscribe", {"uri": "memo://short"}, id="another") == []
