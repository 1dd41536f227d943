"""Streams of changes as a server's connection sends them, without HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kit.wire import ALL_LISTS, CANCELLED, CHANGED, LISTEN, ServerEnd, modern, tag
from mcpgen_runtime.protocol.events import CloseStreams, SendNotification

CHANGE = SendNotification(CHANGED["toolsListChanged"], {})


def said(server: ServerEnd, command: Any) -> list[dict[str, Any]]:
    """Messages that a server sends for a command of its application."""
    return [json.loads(send.data) for send in server.connection.send(command)]


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
    assert said(server, CHANGE) == said(server, CloseStreams()) == []


@pytest.mark.requirement(
    "subscriptions.cancel-stdio",
    "cancellation.nothing-further",
    "subscriptions.ack-first",
    "subscriptions.ack-subset",
    "subscriptions.pattern-mandatory",
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
    server = ServerEnd(revision, {"tools": {"listChanged": True}, "prompts": {}})
    agreed = {"toolsListChanged": True}
    streams: dict[Any, Any] = {"a": ALL_LISTS, "1": ALL_LISTS, 1: {"promptsListChanged": True}}
    for id, wanted in streams.items():
        (first,) = server.ask(LISTEN, {"notifications": wanted}, id=id)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["_meta"] == {tag(revision): id}
        assert first["params"]["notifications"] == ({} if id == 1 else agreed)
    cancelled = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "a"}}
    assert server.say(cancelled) == []
    (change,) = said(server, CHANGE)
    assert change["params"]["_meta"][tag(revision)] == "1"
    result, taken_back, other, last = said(server, CloseStreams())
    assert (result["id"], other["id"]) == ("1", 1)
    assert result["result"].keys() == {"resultType", "_meta"}
    assert result["result"]["resultType"] == "complete"
    assert result["result"]["_meta"][tag(revision)] == "1"
    assert (taken_back["params"], last["params"]) == ({"requestId": "1"}, {"requestId": 1})
    assert said(server, CHANGE) == said(server, CloseStreams()) == []
