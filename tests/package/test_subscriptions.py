"""Streams of changes that a client subscribes to by a request that stays open.

Source: basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from mcp_protocol.client import ClientHandlers, connect
from mcp_protocol.context import Context
from mcp_protocol.errors import ConnectionClosedError, MethodNotFoundError, RemoteError
from mcp_protocol.events import Ignored, NotificationReceived
from mcp_protocol.toolkit.server import Server
from mcp_protocol.transports.memory import memory_pair
from package.live import FakeServer, live
from package.wire import (
    EVERY_SERVER_CAPABILITY,
    HANDSHAKE,
    PER_REQUEST,
    ClientEnd,
    ServerEnd,
    facts,
    meta_of,
    request,
    speaking_to,
)

modern = pytest.mark.parametrize("revision", PER_REQUEST)
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
UPDATED = "notifications/resources/updated"
CHANGED = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
ALL_LISTS = dict.fromkeys(CHANGED, True)


def tag(revision: str) -> str:
    """The key of `_meta` that names a subscription."""
    key = facts(revision).meta.subscription_id
    assert key is not None
    return key


def listening(
    revision: str, wanted: Mapping[str, Any], *, id: Any = "s", capabilities: Any = None
) -> tuple[ServerEnd, list[dict[str, Any]]]:
    """A server with one open subscription, and what it said to that."""
    server = ServerEnd(revision, capabilities or EVERY_SERVER_CAPABILITY)
    return server, server.ask(LISTEN, {"notifications": wanted}, id=id)


def changes(server: ServerEnd, method: str, **params: Any) -> list[dict[str, Any]]:
    """What a server sends when something changes."""
    return [json.loads(send.message) for send in server.connection.notify(method, params)]


@pytest.mark.requirement(
    "subscriptions.ack-first", "subscriptions.id-value", "subscriptions.filter-fields"
)
@modern
@pytest.mark.parametrize("id", [7, "7", 0, ""])
def test_the_acknowledgement_comes_first_and_carries_the_id_as_it_came(
    revision: str, id: int | str
) -> None:
    wanted = {**ALL_LISTS, "resourceSubscriptions": ["memo://a", "memo://b"]}
    _, said = listening(revision, wanted, id=id)
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
    assert server.connection.being_served == ()
    assert changes(server, CHANGED["toolsListChanged"]) == []


@pytest.mark.requirement("subscriptions.only-requested-types", "stdio.server-message-kinds")
@modern
@pytest.mark.parametrize("member", CHANGED)
def test_a_subscription_hears_what_it_asked_for_and_nothing_else(
    revision: str, member: str
) -> None:
    server, _ = listening(revision, {member: True})
    for other, method in CHANGED.items():
        expected = {"jsonrpc": "2.0", "method": method, "params": {"_meta": {tag(revision): "s"}}}
        assert changes(server, method) == ([expected] if other == member else [])
    assert changes(server, UPDATED, uri="memo://a") == []


@pytest.mark.requirement("subscriptions.only-requested-types", "subscriptions.filter-fields")
@modern
@pytest.mark.parametrize("wanted", [{}, dict.fromkeys(CHANGED, False)])
def test_what_is_absent_or_false_is_not_subscribed_to(
    revision: str, wanted: Mapping[str, Any]
) -> None:
    server, said = listening(revision, wanted)
    assert said[0]["params"]["notifications"] == {}
    assert [changes(server, method) for method in CHANGED.values()] == [[], [], []]
    assert server.connection.being_served == ("s",)


@pytest.mark.requirement("subscriptions.only-requested-resources")
@modern
def test_updates_are_sent_for_the_resources_that_were_named(revision: str) -> None:
    server, _ = listening(revision, {"resourceSubscriptions": ["memo://a"]})
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
def test_what_the_server_does_not_have_is_left_out_without_an_error(
    revision: str, capabilities: Any, agreed: Mapping[str, Any]
) -> None:
    wanted = {**ALL_LISTS, "resourceSubscriptions": ["memo://a"]}
    server, said = listening(revision, wanted, capabilities=capabilities)
    assert said[0]["params"]["notifications"] == agreed
    assert server.connection.being_served == ("s",)


@pytest.mark.requirement("subscriptions.one-copy-per-subscription", "subscriptions.concurrent")
@modern
def test_a_change_is_told_to_each_subscription_that_wants_it(revision: str) -> None:
    server, _ = listening(revision, ALL_LISTS, id=1)
    server.ask(LISTEN, {"notifications": ALL_LISTS}, id="1")
    server.ask(LISTEN, {"notifications": {"promptsListChanged": True}}, id=2)
    sent = server.connection.notify(CHANGED["toolsListChanged"])
    assert [send.about for send in sent] == [1, "1"]
    tags = [json.loads(send.message)["params"]["_meta"][tag(revision)] for send in sent]
    assert tags == [1, "1"]


@pytest.mark.requirement("stdio.server-message-kinds", "subscriptions.only-requested-types")
@modern
async def test_without_a_subscription_a_change_is_told_to_nobody(revision: str) -> None:
    server = Server("quiet")
    server.tool("first")(print_nothing)
    async with speaking_to(server, revision) as end:
        await end.ask("tools/list")
        server.tool("second")(print_nothing)
        server.remove_tool("first")
        await anyio.wait_all_tasks_blocked()
        assert [tool["name"] for tool in (await end.ask("tools/list"))["result"]["tools"]] == [
            "second"
        ]
        assert end.heard == []


def print_nothing() -> None:
    """A tool."""


@pytest.mark.requirement("subscriptions.cancel-stdio", "cancellation.nothing-further")
@modern
def test_a_cancelled_subscription_is_silent_and_the_others_go_on(revision: str) -> None:
    server, _ = listening(revision, ALL_LISTS, id="a")
    server.ask(LISTEN, {"notifications": ALL_LISTS}, id="b")
    said = server.say({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "a"}})
    assert said == []
    assert server.connection.being_served == ("b",)
    sent = server.connection.notify(CHANGED["toolsListChanged"])
    assert [send.about for send in sent] == ["b"]
    assert [send.about for send in server.connection.close_streams()] == ["b", "b"]


@pytest.mark.requirement(
    "subscriptions.graceful-close",
    "subscriptions.graceful-result-shape",
    "subscriptions.server-cancelled-on-teardown",
    "subscriptions.id-value",
)
@modern
def test_a_server_ends_its_subscriptions_with_a_result_each(revision: str) -> None:
    server, _ = listening(revision, ALL_LISTS, id="a")
    server.ask(LISTEN, {"notifications": {}}, id=2)
    said = [json.loads(send.message) for send in server.connection.close_streams()]
    for id in ("a", 2):
        result, cancelled = said[:2]
        del said[:2]
        assert (result["id"], cancelled["params"]) == (id, {"requestId": id})
        assert result["result"]["resultType"] == "complete"
        assert result["result"]["_meta"][tag(revision)] == id
        assert set(result["result"]) == {"resultType", "_meta"}
    assert said == []
    assert server.connection.being_served == ()
    assert changes(server, CHANGED["toolsListChanged"]) == []
    assert server.connection.close_streams() == []


@pytest.mark.requirement("subscriptions.replaces-subscribe")
@modern
@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_the_requests_that_subscriptions_replace_are_gone(revision: str, method: str) -> None:
    (answer,) = ServerEnd(revision).ask(method, {"uri": "memo://a"})
    assert answer["error"]["code"] == -32601


@pytest.mark.requirement("subscriptions.no-server-memory")
@modern
def test_a_new_connection_starts_without_subscriptions(revision: str) -> None:
    server, _ = listening(revision, ALL_LISTS)
    server.connection.closed()
    assert changes(server, CHANGED["toolsListChanged"]) == []
    assert changes(ServerEnd(revision), CHANGED["toolsListChanged"]) == []


@pytest.mark.requirement("stdio.subscription-correlation", "subscriptions.client-demultiplexes")
@modern
@pytest.mark.parametrize("stranger", [99, "1", 1.0, True, None, {}])
def test_a_notification_of_no_open_subscription_is_dropped(revision: str, stranger: Any) -> None:
    client = ClientEnd(revision)
    client.ask("tools/list")
    id = client.ask(LISTEN, {"notifications": ALL_LISTS})["id"]
    for named in (stranger, id, id - 1):
        client.say(told(revision, CHANGED["toolsListChanged"], named))
        event = client.events[-1]
        if named == id and type(named) is type(id):
            assert isinstance(event, NotificationReceived)
            assert event.subscription == id
        elif named is not None:
            assert isinstance(event, Ignored)


def told(revision: str, method: str, id: Any, **params: Any) -> dict[str, Any]:
    """A notification of a subscription."""
    params["_meta"] = {tag(revision): id}
    return {"jsonrpc": "2.0", "method": method, "params": params}


Heard = list[tuple[str, Any]]


def into(heard: Heard) -> Any:
    """A callback that keeps what it hears: the method, and the URI if there is one."""

    def keep(change: NotificationReceived) -> None:
        heard.append((change.method.name, getattr(change.params, "uri", None)))

    return keep


@pytest.mark.requirement(
    "stdio.subscription-correlation",
    "stdio.subscription-ack-interleave",
    "subscriptions.client-demultiplexes",
    "subscriptions.ack-interleaving",
    "subscriptions.filter-required",
)
@modern
async def test_each_listener_hears_its_own_subscription(revision: str) -> None:
    server = FakeServer(revision)
    first: Heard = []
    second: Heard = []
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        wanted = {"resourceSubscriptions": ["memo://1", "memo://2"]}
        tasks.start_soon(client.listen, wanted, into(first))
        one = await server.next()
        tasks.start_soon(client.listen, wanted, into(second))
        two = await server.next()
        for message in (one, two):
            assert message["params"] == {
                "notifications": wanted,
                "_meta": message["params"]["_meta"],
            }
            assert message["params"]["_meta"].keys() >= meta_of(revision).keys() - {None}
        await server.say(told(revision, ACKNOWLEDGED, one["id"], notifications={}))
        await server.say(told(revision, UPDATED, one["id"], uri="memo://1"))
        await server.say(told(revision, ACKNOWLEDGED, two["id"], notifications={}))
        for id, uri in ((two["id"], "2"), (99, "3"), (one["id"], "4"), (two["id"], "5")):
            await server.say(told(revision, UPDATED, id, uri=uri))
        for message in (one, two):
            await server.answer(message, {"_meta": {tag(revision): message["id"]}})
    assert first == [(ACKNOWLEDGED, None), (UPDATED, "memo://1"), (UPDATED, "4")]
    assert second == [(ACKNOWLEDGED, None), (UPDATED, "2"), (UPDATED, "5")]


@pytest.mark.requirement("subscriptions.ack-checked", "subscriptions.ack-subset")
@modern
async def test_a_listener_hears_first_what_the_server_agreed_to(revision: str) -> None:
    server = Server("tools only")
    server.tool("a")(print_nothing)
    agreed: list[Any] = []

    async with live(server, revision) as (client, _), anyio.create_task_group() as tasks:

        def first(change: NotificationReceived) -> None:
            agreed.append(change.params.notifications)
            tasks.cancel_scope.cancel()

        with anyio.fail_after(10):
            await client.listen(ALL_LISTS, first)
    assert len(agreed) == 1
    assert agreed[0].tools_list_changed is True
    assert agreed[0].prompts_list_changed is not True


@pytest.mark.requirement("subscriptions.nothing-before-ack", "subscriptions.concurrent")
@modern
async def test_changes_reach_all_listeners_and_the_handlers_of_the_client(revision: str) -> None:
    server = Server("changing")
    server.tool("a")(print_nothing)
    handled: list[Any] = []

    class Handlers(ClientHandlers):
        async def tool_list_changed(self, params: Any, ctx: Any) -> None:
            handled.append(ctx.meta[tag(revision)])

    heard: Heard = []
    async with live(server, revision, handlers=Handlers()) as (client, record):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(client.listen, {"toolsListChanged": True}, into(heard))
            await until(lambda: len(heard) == 3)
            server.tool("b")(print_nothing)
            await until(lambda: len(heard) == 6)
            tasks.cancel_scope.cancel()
        server.tool("c")(print_nothing)
        await client.list_tools()
    changed = CHANGED["toolsListChanged"]
    assert [method for method, _ in heard] == [ACKNOWLEDGED] * 3 + [changed] * 3
    ids = [message["id"] for message in record.sent if message.get("method") == LISTEN]
    assert sorted(handled) == sorted(ids)
    assert sorted(p["requestId"] for p in record.sent_as(CANCELLED)) == sorted(ids)


async def until(true: Any) -> None:
    """Let others work until something is true."""
    with anyio.fail_after(10):
        while not true():
            await anyio.wait_all_tasks_blocked()


@pytest.mark.requirement(
    "subscriptions.graceful-close", "subscriptions.server-cancelled-on-teardown"
)
@modern
@pytest.mark.parametrize(
    "ends", [("result",), ("cancelled",), ("result", "cancelled"), ("cancelled", "result")]
)
async def test_a_subscription_that_the_server_ends_ends_once_and_is_no_error(
    revision: str, ends: tuple[str, ...]
) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.listen, ALL_LISTS, lambda change: None)
            listen = await server.next()
            for end in ends:
                if end == "result":
                    await server.answer(listen, {"_meta": {tag(revision): listen["id"]}})
                else:
                    await server.notify(CANCELLED, {"requestId": listen["id"]})
        await server.notify("notifications/message", {"level": "info", "data": 1})
        await anyio.wait_all_tasks_blocked()
    assert server.heard == [listen]


@pytest.mark.requirement("subscriptions.unexpected-end")
@modern
async def test_a_subscription_that_is_cut_off_is_an_error_to_its_listener(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def cut() -> None:
            await server.next()
            await server.hang_up()

        tasks.start_soon(cut)
        with pytest.raises(ConnectionClosedError):
            await client.listen(ALL_LISTS, lambda change: None)


@pytest.mark.requirement("subscriptions.pattern-mandatory")
@modern
async def test_a_server_that_knows_no_subscriptions_is_asked_once(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def refuse() -> None:
            error = {"code": -32601, "message": "method not found"}
            id = (await server.next())["id"]
            await server.say({"jsonrpc": "2.0", "id": id, "error": error})

        tasks.start_soon(refuse)
        with pytest.raises(RemoteError) as refused:
            await client.listen(ALL_LISTS, lambda change: None)
        assert refused.value.code == -32601
    assert len(server.heard) == 1


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_revision_without_such_streams_has_nothing_to_listen_to(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client:
        with pytest.raises(MethodNotFoundError):
            await client.listen(ALL_LISTS, lambda change: None)
    assert server.heard == []


@pytest.mark.requirement("subscriptions.graceful-close", "subscriptions.graceful-result-shape")
@modern
async def test_a_server_that_is_stopped_ends_its_subscriptions_before_the_channel(
    revision: str,
) -> None:
    server = Server("stopped")
    near, far = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        await near.send(json.dumps(request(revision, LISTEN, {"notifications": {}})).encode())
        assert json.loads(await near.receive())["method"] == ACKNOWLEDGED
        tasks.cancel_scope.cancel()
    said = [json.loads(await near.receive()) for _ in range(2)]
    assert [said[0]["id"], said[1]["method"]] == [1, CANCELLED]


@pytest.mark.requirement("subscriptions.no-request-scoped")
@modern
async def test_progress_and_logs_of_a_request_do_not_reach_a_listener(revision: str) -> None:
    server = Server("busy")

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.error("oh")
        return "done"

    heard: Heard = []
    async with live(server, revision) as (client, record), anyio.create_task_group() as tasks:
        client.ask_for_logs("debug")
        tasks.start_soon(client.listen, ALL_LISTS, into(heard))
        await until(lambda: heard)
        await client.call_tool("work", on_progress=lambda *news: None)
        tasks.cancel_scope.cancel()
    assert [method for method, _ in heard] == [ACKNOWLEDGED]
    for method in ("notifications/progress", "notifications/message"):
        (params,) = record.received_as(method)
        assert tag(revision) not in params.get("_meta", {})
