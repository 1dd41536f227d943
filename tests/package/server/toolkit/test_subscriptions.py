"""Streams of changes as a server sends them, from the acknowledgement to the result that ends them.

Source: basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import anyio
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
    UPDATED,
    ServerEnd,
    request,
    tag,
)
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.protocol.events import CloseStreams, SendNotification, SendResponse
from mcpgen_runtime.protocol.handshake import RESOURCES, URI_CHARACTERS
from mcpgen_runtime.server.chosen import Server
from mcpgen_runtime.server.serving import AnnouncementQueue
from mcpgen_runtime.transports.memory import memory_pair

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


@pytest.mark.requirement(
    "subscriptions.ack-first", "subscriptions.id-value", "subscriptions.filter-fields"
)
@modern
@pytest.mark.parametrize("id", [7, "7", 0, ""])
def test_the_acknowledgement_comes_first_with_its_id_unchanged(
    revision: str, id: int | str
) -> None:
    wanted = {**ALL_LISTS, "resourceSubscriptions": ["memo://a", "memo://b"]}
    _, said = open_subscription(revision, wanted, id=id)
    params = {"_meta": {tag(revision): id}, "notifications": wanted}
    assert said == [{"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}]
    assert type(said[0]["params"]["_meta"][tag(revision)]) is type(id)


@pytest.mark.requirement("subscriptions.filter-required", "subscriptions.filter-fields")
@modern
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": "memo://a"}},
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


@pytest.mark.requirement("subscriptions.only-requested-types", "stdio.server-message-kinds")
@modern
@pytest.mark.parametrize("member", CHANGED)
def test_a_subscription_hears_what_it_asked_for_and_nothing_else(
    revision: str, member: str
) -> None:
    server, _ = open_subscription(revision, {member: True})
    for other, method in CHANGED.items():
        expected = {"jsonrpc": "2.0", "method": method, "params": {"_meta": {tag(revision): "s"}}}
        assert changes(server, method) == ([expected] if other == member else [])
    assert changes(server, UPDATED, uri="memo://a") == []


@pytest.mark.requirement("subscriptions.only-requested-types", "subscriptions.filter-fields")
@modern
@pytest.mark.parametrize("wanted", [{}, dict.fromkeys(CHANGED, False)])
def test_absent_and_false_members_are_not_subscribed_to(
    revision: str, wanted: Mapping[str, Any]
) -> None:
    server, said = open_subscription(revision, wanted)
    assert said[0]["params"]["notifications"] == {}
    assert [changes(server, method) for method in CHANGED.values()] == [[], [], []]
    assert tuple(server.connection.state.inbound) == ("s",)


@pytest.mark.requirement("subscriptions.only-requested-resources")
@modern
def test_updates_are_sent_for_the_resources_that_were_named(revision: str) -> None:
    server, _ = open_subscription(revision, {"resourceSubscriptions": ["memo://a"]})
    (message,) = changes(server, UPDATED, uri="memo://a")
    assert message["params"] == {"uri": "memo://a", "_meta": {tag(revision): "s"}}
    assert changes(server, UPDATED, uri="memo://b") == []
    assert changes(server, CHANGED["resourcesListChanged"]) == []


@pytest.mark.requirement("subscriptions.ack-subset", "subscriptions.pattern-mandatory")
@modern
@pytest.mark.parametrize(
    ("capabilities", "agreed"),
    [
        ({"tools": {"listChanged": True}}, {"toolsListChanged": True}),
        ({"tools": {}}, {}),
        ({"logging": {}}, {}),
        (
            {"resources": {"subscribe": True}},
            {"resourceSubscriptions": ["memo://a"]},
        ),
    ],
    ids=repr,
)
def test_unsupported_subscriptions_are_omitted_without_an_error(
    revision: str, capabilities: Any, agreed: Mapping[str, Any]
) -> None:
    wanted = {**ALL_LISTS, "resourceSubscriptions": ["memo://a"]}
    server, said = open_subscription(revision, wanted, capabilities=capabilities)
    assert said[0]["params"]["notifications"] == agreed
    assert tuple(server.connection.state.inbound) == ("s",)


@pytest.mark.requirement("subscriptions.one-copy-per-subscription", "subscriptions.concurrent")
@modern
def test_a_change_is_told_to_each_subscription_that_wants_it(revision: str) -> None:
    server, _ = open_subscription(revision, ALL_LISTS, id=1)
    server.ask(LISTEN, {"notifications": ALL_LISTS}, id="1")
    server.ask(LISTEN, {"notifications": {"promptsListChanged": True}}, id=2)
    sent = list(server.connection.send(SendNotification(CHANGED["toolsListChanged"])))
    assert [send.related_request_id for send in sent] == [1, "1"]
    tags = [json.loads(send.data)["params"]["_meta"][tag(revision)] for send in sent]
    assert tags == [1, "1"]


@pytest.mark.requirement("subscriptions.cancel-stdio", "cancellation.nothing-further")
@modern
def test_a_cancelled_subscription_is_silent_and_the_others_go_on(revision: str) -> None:
    server, _ = open_subscription(revision, ALL_LISTS, id="a")
    server.ask(LISTEN, {"notifications": ALL_LISTS}, id="b")
    said = server.say({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "a"}})
    assert said == []
    assert tuple(server.connection.state.inbound) == ("b",)
    sent = list(server.connection.send(SendNotification(CHANGED["toolsListChanged"])))
    assert [send.related_request_id for send in sent] == ["b"]
    assert [send.related_request_id for send in server.connection.send(CloseStreams())] == [
        "b",
        "b",
    ]


@pytest.mark.requirement(
    "subscriptions.graceful-close",
    "subscriptions.graceful-result-shape",
    "subscriptions.server-cancelled-on-teardown",
    "subscriptions.id-value",
)
@modern
def test_a_server_ends_its_subscriptions_with_a_result_each(revision: str) -> None:
    server, _ = open_subscription(revision, ALL_LISTS, id="a")
    server.ask(LISTEN, {"notifications": {}}, id=2)
    said = [json.loads(send.data) for send in server.connection.send(CloseStreams())]
    for id in ("a", 2):
        result, cancelled = said[:2]
        del said[:2]
        assert (result["id"], cancelled["params"]) == (id, {"requestId": id})
        assert result["result"]["resultType"] == "complete"
        assert result["result"]["_meta"][tag(revision)] == id
        assert set(result["result"]) == {"resultType", "_meta"}
    assert said == []
    assert tuple(server.connection.state.inbound) == ()
    assert changes(server, CHANGED["toolsListChanged"]) == []
    assert not server.connection.send(CloseStreams())


@pytest.mark.requirement("subscriptions.replaces-subscribe")
@modern
@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_the_requests_that_subscriptions_replace_are_gone(revision: str, method: str) -> None:
    (answer,) = ServerEnd(revision).ask(method, {"uri": "memo://a"})
    assert answer["error"]["code"] == -32601


@pytest.mark.requirement("subscriptions.no-server-memory")
@modern
def test_a_new_connection_starts_without_subscriptions(revision: str) -> None:
    server, _ = open_subscription(revision, ALL_LISTS)
    server.connection.closed()
    assert changes(server, CHANGED["toolsListChanged"]) == []
    assert changes(ServerEnd(revision), CHANGED["toolsListChanged"]) == []


@pytest.mark.requirement("subscriptions.graceful-close", "subscriptions.graceful-result-shape")
@modern
async def test_a_stopped_server_ends_subscriptions_before_the_channel(
    revision: str,
) -> None:
    server = Server("stopped")
    near, far = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        await near.send(
            OutgoingMessage(json.dumps(request(revision, LISTEN, {"notifications": {}})).encode())
        )
        assert json.loads(await near.receive())["method"] == ACKNOWLEDGED
        tasks.cancel_scope.cancel()
    said = [json.loads(await near.receive()) for _ in range(2)]
    assert [said[0]["id"], said[1]["method"]] == [1, CANCELLED]
    assert said[0]["result"].keys() == {"resultType", "_meta"}
    assert (said[0]["result"]["resultType"], said[0]["result"]["_meta"][tag(revision)]) == (
        "complete",
        1,
    )


TOO_MUCH = [
    [f"memo://{number}" for number in range(RESOURCES + 1)],
    [f"memo://{number}/{'a' * (URI_CHARACTERS // 4)}" for number in range(4)],
    [*(f"memo://{number}/".ljust(URI_CHARACTERS // 4, "a") for number in range(4)), "memo://more"],
]
"""Resources of which the last one is too much."""


@modern
@pytest.mark.parametrize("uris", TOO_MUCH, ids=["many", "long", "to the limit"])
def test_a_stream_follows_only_so_many_resources(revision: str, uris: list[str]) -> None:
    server, said = open_subscription(revision, {"resourceSubscriptions": uris})
    assert said[0]["error"]["code"] == -32602
    assert str(RESOURCES) in said[0]["error"]["message"]
    assert tuple(server.connection.state.inbound) == ()
    _, said = open_subscription(revision, {"resourceSubscriptions": uris[:-1] * 2})
    assert said[0]["method"] == ACKNOWLEDGED


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("uris", TOO_MUCH, ids=["many", "long", "to the limit"])
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


@pytest.mark.parametrize(("count", "first"), [(1000, 0), (1001, 1)])
async def test_so_many_announcements_wait_for_a_client(count: int, first: int) -> None:
    sent: list[str] = []

    async def notify(name: str, params: Any) -> None:
        sent.append(params["uri"])

    peer: Any = SimpleNamespace(
        connection=SimpleNamespace(has_subscriber=lambda name, params: True),
        callers=SimpleNamespace(notify=notify),
    )
    queue = AnnouncementQueue(peer)
    for number in range(count):
        queue.announce("notifications/resources/updated", {"uri": f"x://{number}"})
    starts: list[Any] = []
    queue.send_by(starts.append)
    [start] = starts
    await start()
    assert sent == [f"x://{number}" for number in range(first, count)]
