"""Listeners to streams of changes: what each hears, and how its subscription ends.

Source: basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from kit.live import FakeServer, live
from kit.wire import (
    ACKNOWLEDGED,
    ALL_LISTS,
    CANCELLED,
    CHANGED,
    LISTEN,
    PER_REQUEST,
    UPDATED,
    ClientEnd,
    meta_of,
    request,
    speaking_to,
    stream_message,
    tag,
)
from mcpgen_runtime import Timeouts
from mcpgen_runtime.client.async_client import ClientHandlers, connect
from mcpgen_runtime.client.listen import (
    Change,
    NotificationFilter,
    ResourceUpdated,
    ToolsChanged,
)
from mcpgen_runtime.errors import ConnectionClosedError, RemoteError, RequestTimeoutError
from mcpgen_runtime.protocol.events import Ignored, NotificationReceived
from mcpgen_runtime.server.chosen import Context, Server

modern = pytest.mark.parametrize("revision", PER_REQUEST)
EVERY_LIST = {"tools": True, "prompts": True, "resources": True}


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
        client.say(stream_message(revision, CHANGED["toolsListChanged"], named))
        event = client.events[-1]
        if named == id and type(named) is type(id):
            assert isinstance(event, NotificationReceived)
            assert event.subscription == id
        elif named is not None:
            assert isinstance(event, Ignored)


async def agree(server: FakeServer, revision: str, wanted: Any = None) -> dict[str, Any]:
    """Have a server agree to the subscription that it is asked for next; gives the request."""
    request = await server.next()
    assert request["method"] == LISTEN
    agreed = request["params"]["notifications"] if wanted is None else wanted
    await server.say(stream_message(revision, ACKNOWLEDGED, request["id"], notifications=agreed))
    return request


async def keep(changes: Any, heard: list[Change]) -> None:
    """Keep what a subscription tells, to its end."""
    heard.extend([change async for change in changes])


@pytest.mark.requirement(
    "stdio.subscription-correlation",
    "stdio.subscription-ack-interleave",
    "subscriptions.client-demultiplexes",
    "subscriptions.ack-interleaving",
    "subscriptions.filter-required",
    "subscriptions.filter-fields",
)
@modern
async def test_each_listener_hears_its_own_subscription(revision: str) -> None:
    server = FakeServer(revision)
    first: list[Change] = []
    second: list[Change] = []

    async def listen(client: Any, heard: list[Change]) -> None:
        async with client.listen(uris=["memo://1", "memo://2"]) as changes:
            await keep(changes, heard)

    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(listen, client, first)
        one = await server.next()
        tasks.start_soon(listen, client, second)
        two = await server.next()
        for message in (one, two):
            params = message["params"]
            wanted = {"resourceSubscriptions": ["memo://1", "memo://2"]}
            assert params == {"notifications": wanted, "_meta": params["_meta"]}
            assert params["_meta"].keys() >= meta_of(revision).keys() - {None}
        await server.say(stream_message(revision, ACKNOWLEDGED, one["id"], notifications=wanted))
        await server.say(stream_message(revision, UPDATED, one["id"], uri="memo://1"))
        await server.say(stream_message(revision, ACKNOWLEDGED, two["id"], notifications=wanted))
        for id, uri in ((two["id"], "2"), (99, "3"), (one["id"], "4"), (two["id"], "5")):
            await server.say(stream_message(revision, UPDATED, id, uri=uri))
        for message in (one, two):
            await server.answer(message, {"_meta": {tag(revision): message["id"]}})
    assert first == [ResourceUpdated("memo://1"), ResourceUpdated("4")]
    assert second == [ResourceUpdated("2"), ResourceUpdated("5")]


@pytest.mark.requirement("subscriptions.ack-checked", "subscriptions.ack-subset")
@modern
async def test_a_listener_knows_what_was_agreed_or_is_warned(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("tools only")
    server.tool("a")(print_nothing)
    async with live(server, revision) as (client, _):
        with anyio.fail_after(10):
            async with client.listen(**EVERY_LIST, uris=["memo://1"]) as changes:
                assert changes.agreed == NotificationFilter(tools=True)
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    for lacking in ("promptsListChanged", "resourcesListChanged", "memo://1"):
        assert lacking in record.getMessage()
    assert "toolsListChanged" not in record.getMessage()


@pytest.mark.requirement("subscriptions.nothing-before-ack", "subscriptions.concurrent")
@modern
async def test_changes_reach_all_listeners_and_the_client_handlers(revision: str) -> None:
    server = Server("changing")
    server.tool("a")(print_nothing)
    handled: list[Any] = []

    class Handlers(ClientHandlers):
        async def tool_list_changed(self, params: Any, ctx: Any) -> None:
            handled.append(ctx.meta[tag(revision)])

    async with live(server, revision, handlers=Handlers()) as (client, record):
        async with (
            client.listen(tools=True) as one,
            client.listen(tools=True) as two,
            client.listen(tools=True) as three,
        ):
            server.tool("b")(print_nothing)
            with anyio.fail_after(10):
                assert [await anext(changes) for changes in (one, two, three)] == (
                    [ToolsChanged()] * 3
                )
        server.tool("c")(print_nothing)
        await client.list_tools()
    ids = [message["id"] for message in record.sent if message.get("method") == LISTEN]
    assert len(set(ids)) == 3
    assert sorted(handled) == sorted(ids)
    assert sorted(p["requestId"] for p in record.sent_as(CANCELLED)) == sorted(ids)


@pytest.mark.requirement("subscriptions.cancel-stdio")
@modern
async def test_a_subscription_lives_for_as_long_as_its_block(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(agree, server, revision)
        async with client.listen(tools=True, timeout=5) as changes:
            with anyio.move_on_after(0.01):
                await anext(changes)
            assert [said["method"] for said in server.heard] == [LISTEN]
        listen, cancelled = server.heard
        assert cancelled["method"] == CANCELLED
        assert cancelled["params"] == {"requestId": listen["id"]}
        assert [change async for change in changes] == []


@pytest.mark.requirement(
    "subscriptions.graceful-close", "subscriptions.server-cancelled-on-teardown"
)
@modern
@pytest.mark.parametrize("agreed", [True, False])
@pytest.mark.parametrize(
    "ends", [("result",), ("cancelled",), ("result", "cancelled"), ("cancelled", "result")]
)
async def test_a_subscription_ended_by_the_server_is_no_error(
    revision: str, ends: tuple[str, ...], agreed: bool
) -> None:
    server = FakeServer(revision)
    heard: list[Change] = []

    async def end() -> None:
        listen = await agree(server, revision) if agreed else await server.next()
        for end in ends:
            if end == "result":
                await server.answer(listen, {"_meta": {tag(revision): listen["id"]}})
            else:
                await server.notify(CANCELLED, {"requestId": listen["id"]})
        await server.notify("notifications/message", {"level": "info", "data": 1})

    async with connect(server, revision=revision) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            async with client.listen(tools=True) as changes:
                await keep(changes, heard)
        await anyio.wait_all_tasks_blocked()
    assert heard == []
    assert [said["method"] for said in server.heard] == [LISTEN]


@pytest.mark.requirement("subscriptions.unexpected-end", "subscriptions.relisten-after-reconnect")
@modern
async def test_a_lost_subscription_is_an_error_and_made_anew_later(
    revision: str,
) -> None:
    asked: list[Any] = []
    for _ in range(2):  # a client that connects again whenever its connection ends
        server = FakeServer(revision)

        async def cut(server: FakeServer = server) -> None:
            asked.append((await agree(server, revision))["params"]["notifications"])
            await server.hang_up()

        async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            async with client.listen(tools=True, uris=["memo://1"]) as changes:
                with pytest.raises(ConnectionClosedError):
                    await anext(changes)
            with pytest.raises(ConnectionClosedError):
                async with client.listen(tools=True):
                    pytest.fail("nobody listens any more")
    assert asked == [{"toolsListChanged": True, "resourceSubscriptions": ["memo://1"]}] * 2


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
            async with client.listen(tools=True):
                pytest.fail("the server refused")
        assert refused.value.code == -32601
    assert len(server.heard) == 1


@modern
async def test_a_server_that_does_not_agree_in_time_is_left(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client:
        with pytest.raises(RequestTimeoutError, match=r"subscriptions/listen: .* 0\.01 s"):
            async with client.listen(tools=True, timeout=0.01):
                pytest.fail("the server said nothing")
    assert [said["method"] for said in server.heard] == [LISTEN, CANCELLED]


@pytest.mark.requirement("subscriptions.no-request-scoped")
@modern
async def test_progress_and_logs_of_a_request_do_not_reach_a_listener(revision: str) -> None:
    server = Server("busy")

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.error("oh")
        return "done"

    async with live(server, revision) as (client, record), client.listen(**EVERY_LIST) as changes:
        client.ask_for_logs("debug")
        await client.call_tool("work", on_progress=lambda *news: None)
        server.tool("more")(print_nothing)
        assert await anext(changes) == ToolsChanged()
    for method in ("notifications/progress", "notifications/message"):
        (params,) = record.received_as(method)
        assert tag(revision) not in params.get("_meta", {})


@pytest.mark.requirement("subscriptions.listen-unanswered-while-open")
@modern
async def test_the_id_of_an_open_subscription_is_not_used_again(
    revision: str,
) -> None:
    server = Server("changing")
    server.tool("a")(print_nothing)
    async with live(server, revision, timeouts=Timeouts(limit=60)) as (client, record):
        async with client.listen(tools=True) as changes:
            (listen,) = (message for message in record.sent if message.get("method") == LISTEN)
            for _ in range(50):
                await client.call_tool("a")
            server.tool("b")(print_nothing)
            assert await anext(changes) == ToolsChanged()
            later = [message["id"] for message in record.sent if "id" in message]
            assert later.count(listen["id"]) == 1
            assert len(later) == len(set(later))
            assert listen["id"] not in {message.get("id") for message in record.received}
            assert record.sent_as(CANCELLED) == []
        assert [params["requestId"] for params in record.sent_as(CANCELLED)] == [listen["id"]]


@pytest.mark.requirement("subscriptions.listen-unanswered-while-open")
@modern
async def test_a_server_refuses_the_id_of_an_open_subscription(
    revision: str,
) -> None:
    server = Server("changing")
    server.tool("a")(print_nothing)
    async with speaking_to(server, revision) as end:
        await end.send(
            request(revision, LISTEN, {"notifications": {"toolsListChanged": True}}, id="s")
        )
        assert (await end.receive())["method"] == ACKNOWLEDGED
        await end.send(request(revision, "tools/list", id="s"))
        assert (await end.receive())["error"]["code"] == -32600
        server.tool("b")(print_nothing)
        changed = await end.receive()
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"] == {tag(revision): "s"}
