"""Listening: the same in all revisions, over streams that are lost and in sessions."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from kit.live import FakeServer, expect_refusal, live
from kit.scripted import connect_scripted
from kit.wire import (
    ACKNOWLEDGED,
    CANCELLED,
    CHANGED,
    LISTEN,
    UPDATED,
    every,
    legacy,
    meta_of,
    modern,
    stream_message,
    tag,
)
from mcpgen_runtime import (
    Caching,
    Change,
    ClientHandlers,
    ConnectFailedError,
    ConnectionClosedError,
    HttpStatusError,
    ListeningAgain,
    McpError,
    NotificationFilter,
    PromptsChanged,
    RemoteError,
    ResourcesChanged,
    ResourceUpdated,
    ResponseLostError,
    Server,
    ToolsChanged,
    connect,
)
from mcpgen_runtime.errors import RequestLost

AT_ONCE = (0.0, 0.0, 0.0)
LARGE = "x" * 2_097_152  # half of the characters that are kept


def text() -> str:
    """Something to serve."""
    return "text"


def notes() -> Server:
    """A server with one of each."""
    server = Server("notes", subscribe=True)
    server.tool("one")(text)
    server.prompt("one")(text)
    server.resource("memo://one", name="one")(text)
    return server


@pytest.mark.requirement("subscriptions.filter-fields", "subscriptions.client-demultiplexes")
@every
async def test_one_listens_in_the_same_way_in_every_revision(revision: str) -> None:
    server = notes()
    async with live(server, revision) as (client, record):
        wanted = {"tools": True, "prompts": True, "resources": True}
        async with client.listen(**wanted, uris=["memo://one"]) as changes:
            assert changes.agreed == NotificationFilter(True, True, True, ("memo://one",))
            heard: list[Change] = []
            server.tool("two")(text)
            heard.append(await anext(changes))
            server.prompt("two")(text)
            heard.append(await anext(changes))
            server.resource("memo://two", name="two")(text)
            heard.append(await anext(changes))
            server.resource_updated("memo://two")
            server.resource_updated("memo://one")
            heard.append(await anext(changes))
        updated = ResourceUpdated("memo://one")
        assert heard == [ToolsChanged(), PromptsChanged(), ResourcesChanged(), updated]
        await client.list_tools()
        server.resource_updated("memo://one")
        await client.list_tools()
    assert [message["uri"] for message in record.received_as(UPDATED)] == ["memo://one"]


@every
async def test_a_change_that_nobody_took_yet_is_told_once(revision: str) -> None:
    server = notes()
    async with (
        live(server, revision) as (client, _),
        client.listen(tools=True, resources=True) as changes,
    ):
        for name in "abc":
            server.tool(name)(text)
        server.resource("memo://two", name="two")(text)
        server.remove_tool("a")
        await client.list_tools()
        assert [await anext(changes) for _ in range(2)] == [ToolsChanged(), ResourcesChanged()]
        server.remove_tool("b")
        assert await anext(changes) == ToolsChanged()


@modern
@pytest.mark.parametrize(
    ("uris", "kept"),
    [
        pytest.param(
            [f"memo://{number}" for number in range(1026)], slice(2, None), id="1024 changes"
        ),
        pytest.param(
            [f"memo://{number}{LARGE}" for number in range(5)] + ["memo://last"],
            slice(4, None),
            id="so many bytes",
        ),
        pytest.param([f"memo://{LARGE * 2}"], slice(None), id="one that is large"),
    ],
)
async def test_a_listener_that_does_not_listen_costs_bounded_memory(
    revision: str, uris: list[str], kept: slice, caplog: pytest.LogCaptureFixture
) -> None:
    server = Losing(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(server.agree)
        async with client.listen(uris=["memo://"]) as changes:
            for uri in uris:
                await server.tell(UPDATED, uri=uri)
            await server.end()
            await anyio.wait_all_tasks_blocked()
            assert [change.uri async for change in changes] == uris[kept]
    assert ("is dropped" in caplog.text) == (kept != slice(None))


@every
async def test_listening_to_a_closed_client_is_an_error(revision: str) -> None:
    async with live(notes(), revision) as (client, _):
        with pytest.raises(TypeError, match="expected several URIs"):
            client.listen(uris="memo://one")
        async with client.listen(tools=True) as changes:
            await client.close()
            with pytest.raises(ConnectionClosedError):
                await anext(changes)
        with pytest.raises(ConnectionClosedError):
            await expect_refusal(client.listen(tools=True))


class Losing(FakeServer):
    """A server whose streams can be lost."""

    def __init__(self, revision: str) -> None:
        assert revision is not None
        super().__init__(revision)
        self.spoken = revision
        self.asked: list[dict[str, Any]] = []
        self._losses: dict[int | str, McpError] = {}

    async def receive(self) -> bytes:
        message = await super().receive()
        lost = json.loads(message).get("lost")
        if lost is not None:
            raise RequestLost(lost, self._losses[lost])
        return message

    async def agree(self, *losses: McpError) -> None:
        """Agree to the subscription that is asked for next, after so many losses."""
        for loss in losses:
            await self.take()
            await self.lose(loss)
        wanted = (await self.take())["params"]["notifications"]
        await self.tell(ACKNOWLEDGED, notifications=wanted)

    async def take(self) -> dict[str, Any]:
        """Wait for a request to listen."""
        request = await self.next()
        assert request["method"] == LISTEN
        self.asked.append(request)
        return request

    async def tell(self, method: str, **params: Any) -> None:
        """Tell the last subscription something."""
        await self.say(stream_message(self.spoken, method, self.asked[-1]["id"], **params))

    async def lose(self, loss: McpError) -> None:
        """Lose the stream of the last subscription."""
        self._losses[self.asked[-1]["id"]] = loss
        await self.say({"lost": self.asked[-1]["id"]})

    async def end(self) -> None:
        """End the last subscription."""
        id = self.asked[-1]["id"]
        await self.answer(self.asked[-1], {"_meta": {tag(self.spoken): id}})


@asynccontextmanager
async def listening(server: FakeServer, **how: Any) -> AsyncIterator[tuple[Any, TaskGroup]]:
    """A listener to the tools of a server, which agrees to that, and tasks beside it."""
    async with (
        connect(server, revision=server.revision) as client,
        anyio.create_task_group() as tasks,
    ):
        if isinstance(server, Losing):
            tasks.start_soon(server.agree)
        async with client.listen(tools=True, **how) as changes:
            yield changes, tasks
        tasks.cancel_scope.cancel()


CUT = ResponseLostError("cut")
NOBODY = ConnectFailedError("http://x", "refused")
BUSY = HttpStatusError("http://x", 503, "Service Unavailable")


@pytest.mark.requirement("subscriptions.unexpected-end")
@modern
async def test_a_lost_stream_is_asked_for_again_under_a_new_id(revision: str) -> None:
    server = Losing(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(server.agree)
        listening = client.listen(tools=True, uris=["memo://one"], retry_seconds=AT_ONCE)
        async with listening as changes:
            await server.tell(CHANGED["toolsListChanged"])
            await server.lose(CUT)
            tasks.start_soon(server.agree, NOBODY, BUSY)
            assert await anext(changes) == ToolsChanged()
            assert await anext(changes) == ListeningAgain()
            await server.tell(UPDATED, uri="memo://one")
            assert await anext(changes) == ResourceUpdated("memo://one")
    assert len({request["id"] for request in server.asked}) == 4
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["memo://one"]}
    assert [request["params"]["notifications"] for request in server.asked] == [wanted] * 4
    cancelled = [said["params"] for said in server.heard if said["method"] == CANCELLED]
    assert cancelled == [{"requestId": server.asked[-1]["id"]}]


@modern
@pytest.mark.parametrize(
    "loss", [HttpStatusError("http://x", 401, "Unauthorized"), RemoteError(-32603, "no")]
)
async def test_permanent_errors_are_not_retried(revision: str, loss: McpError) -> None:
    server = Losing(revision)
    async with listening(server, retry_seconds=AT_ONCE) as (changes, _):
        await server.lose(loss)
        with pytest.raises(type(loss)):
            await anext(changes)
    assert len(server.asked) == 1


@modern
async def test_an_iteration_cancelled_while_opening_can_go_on(revision: str) -> None:
    server = Losing(revision)
    async with listening(server, retry_seconds=AT_ONCE) as (changes, tasks):
        await server.lose(CUT)
        with anyio.move_on_after(0.01):
            await anext(changes)
        assert [said["method"] for said in server.heard[1:]] == [LISTEN, CANCELLED]
        await server.take()
        await server.next()
        tasks.start_soon(server.agree)
        assert await anext(changes) == ListeningAgain()


@pytest.mark.requirement("caching.notification-invalidates")
@modern
async def test_cached_results_are_dropped_with_a_stream(revision: str) -> None:
    server = Losing(revision)
    caching = Caching(clock=lambda: 0.0)

    async def list_once(client: Any) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.list_tools)
            hints = {"ttlMs": 60_000, "cacheScope": "private"}
            await server.answer(await server.next(), {"tools": [], **hints})

    async with (
        connect(server, revision=revision, cache=caching) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.agree)
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            await list_once(client)
            await server.lose(CUT)
            tasks.start_soon(server.agree)
            assert await anext(changes) == ListeningAgain()
            await list_once(client)
    assert [said["method"] for said in server.heard].count("tools/list") == 2


@legacy
async def test_in_a_session_only_what_the_server_declares_is_agreed_to(revision: str) -> None:
    server = FakeServer(revision, {"tools": {"listChanged": True}, "resources": {}})
    async with connect(server, revision=revision) as client:
        listening = client.listen(tools=True, prompts=True, resources=True, uris=["memo://one"])
        async with listening as changes:
            assert changes.agreed == NotificationFilter(tools=True)
            await server.notify(CHANGED["promptsListChanged"], {})
            await server.notify(UPDATED, {"uri": "memo://one"})
            await server.notify(CHANGED["toolsListChanged"], {})
            assert await anext(changes) == ToolsChanged()
    assert server.heard == []


@legacy
async def test_in_a_session_unused_resources_are_unsubscribed(revision: str) -> None:
    async with (
        connect_scripted(revision, *[{}] * 6) as (client, server),
        client.listen(uris=["memo://a", "memo://b"]),
        client.listen(uris=["memo://b", "memo://b"]) as changes,
    ):
        await server.notify(UPDATED, {"uri": "memo://a"})
        await server.notify(UPDATED, {"uri": "memo://b/part"})
        assert await anext(changes) == ResourceUpdated("memo://b/part")
    said = [(request["method"], request["params"]["uri"]) for request in server.heard]
    begin, end = "resources/subscribe", "resources/unsubscribe"
    assert said[:3] == [(begin, "memo://a"), (begin, "memo://b"), (begin, "memo://b")]
    assert sorted(said[3:]) == [(end, "memo://a"), (end, "memo://b")]
    error = {"error": {"code": -32602, "message": "no such resource"}}
    async with connect_scripted(revision, {}, error, {}, {}) as (client, server):
        with pytest.raises(RemoteError, match="no such resource"):
            await expect_refusal(client.listen(uris=["memo://a", "memo://none"]))
        assert [request["method"] for request in server.heard].count(end) == 2


EVERY_LIST = {"tools": True, "prompts": True, "resources": True}


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
            heard.extend([change async for change in changes])

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
    server.tool("a")(text)
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
    server.tool("a")(text)
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
            server.tool("b")(text)
            with anyio.fail_after(10):
                assert [await anext(changes) for changes in (one, two, three)] == (
                    [ToolsChanged()] * 3
                )
        server.tool("c")(text)
        await client.list_tools()
    ids = [message["id"] for message in record.sent if message.get("method") == LISTEN]
    assert len(set(ids)) == 3
    assert sorted(handled) == sorted(ids)
    assert sorted(p["requestId"] for p in record.sent_as(CANCELLED)) == sorted(ids)


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
    server = Losing(revision)

    async def end() -> None:
        await (server.agree() if agreed else server.take())
        listen = server.asked[0]
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
                heard = [change async for change in changes]
        await anyio.wait_all_tasks_blocked()
    assert heard == []
    assert [said["method"] for said in server.heard] == [LISTEN]
