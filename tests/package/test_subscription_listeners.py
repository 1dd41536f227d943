"""Listeners to streams of changes: what each hears, and how its subscription ends.

Source: basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcp_protocol.client import ClientHandlers, connect
from mcp_protocol.context import Context
from mcp_protocol.core.events import Ignored, NotificationReceived
from mcp_protocol.errors import ConnectionClosedError, MethodNotFoundError, RemoteError
from mcp_protocol.toolkit.server import Server
from package.live import FakeServer, live
from package.streams import ACKNOWLEDGED, ALL_LISTS, CHANGED, LISTEN, UPDATED, tag
from package.wire import CANCELLED, HANDSHAKE, PER_REQUEST, ClientEnd, meta_of, speaking_to

modern = pytest.mark.parametrize("revision", PER_REQUEST)


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
