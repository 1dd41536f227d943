"""Listening: the same in all revisions, over streams that are lost and in sessions.

Source: basic/patterns/subscriptions (2026-07-28), server/resources#subscriptions.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from kit.live import FakeServer, live
from kit.scripted import connect_scripted
from kit.wire import (
    ACKNOWLEDGED,
    ALL,
    CANCELLED,
    CHANGED,
    HANDSHAKE,
    LISTEN,
    PER_REQUEST,
    UPDATED,
    stream_message,
    tag,
)
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.client.client_settings import Caching
from mcpgen_runtime.client.listen import (
    Change,
    ListeningAgain,
    NotificationFilter,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ToolsChanged,
    change_of,
)
from mcpgen_runtime.errors import (
    ConnectFailedError,
    ConnectionClosedError,
    HttpStatusError,
    McpError,
    RemoteError,
    RequestLost,
    ResponseLostError,
)
from mcpgen_runtime.runtime.pending_requests import NOTIFICATION_BYTES
from mcpgen_runtime.server.chosen import Server

every = pytest.mark.parametrize("revision", ALL)
modern = pytest.mark.parametrize("revision", PER_REQUEST)
sessions = pytest.mark.parametrize("revision", HANDSHAKE)
AT_ONCE = (0.0, 0.0, 0.0)


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


WIRE: dict[str, Any] = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["memo://one"],
}
CHANGES: list[Change] = [
    ToolsChanged(),
    PromptsChanged(),
    ResourcesChanged(),
    ResourceUpdated("memo://one/a"),
]


@pytest.mark.parametrize("chosen", [(), (0,), (1,), (2,), (3,), (0, 1, 2, 3)])
def test_a_filter_selects_the_changes_that_its_members_name(chosen: tuple[int, ...]) -> None:
    members = [*WIRE]
    wire = {members[at]: WIRE[members[at]] for at in chosen}
    uris = ("memo://one",) if 3 in chosen else ()
    requested = NotificationFilter(0 in chosen, 1 in chosen, 2 in chosen, uris)
    assert requested.wire() == wire
    assert NotificationFilter.of(wire) == requested
    assert NotificationFilter.of(dict.fromkeys(WIRE)) == NotificationFilter()
    assert [requested.has(change) for change in CHANGES] == [at in chosen for at in range(4)]
    assert requested.has(ListeningAgain())
    lacking = [[*WIRE, "memo://one"][at + (at == 3)] for at in chosen]
    assert NotificationFilter().missing(requested) == lacking
    assert requested.missing(requested) == []


def test_a_change_is_that_of_the_member_that_selects_it() -> None:
    changes = [change_of(member, ResourceUpdated("memo://one/a")) for member in WIRE]
    assert changes == CHANGES
    assert change_of(None, None) is None
    assert change_of("taskIds", None) is None


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
async def test_a_listener_that_does_not_listen_costs_bounded_memory(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Losing(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(server.agree)
        async with client.listen(uris=["memo://"]) as changes:
            for number in range(1026):
                await server.tell(UPDATED, uri=f"memo://{number}")
            await server.end()
            await anyio.wait_all_tasks_blocked()
            uris = [change.uri async for change in changes]
    assert uris == [f"memo://{number}" for number in range(2, 1026)]
    assert "memo://0" in caplog.text


@modern
async def test_unread_changes_are_bounded_in_bytes(revision: str) -> None:
    server = Losing(revision)
    half = "x" * (NOTIFICATION_BYTES // 2)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(server.agree)
        async with client.listen(uris=["memo://"]) as changes:
            for number in range(5):
                await server.tell(UPDATED, uri=f"memo://{number}{half}")
            await server.tell(UPDATED, uri="memo://last")
            await server.end()
            await anyio.wait_all_tasks_blocked()
            uris = [change.uri[:11] async for change in changes]
    assert uris == ["memo://4xxx", "memo://last"]


async def test_one_text_is_not_taken_for_many_uris() -> None:
    async with connect(FakeServer(ALL[-1])) as client:
        with pytest.raises(TypeError, match="expected several URIs"):
            client.listen(uris="memo://one")


@every
async def test_a_subscription_can_be_closed_by_another_task(revision: str) -> None:
    async with (
        live(notes(), revision) as (client, _),
        anyio.create_task_group() as tasks,
        client.listen(tools=True) as changes,
    ):
        tasks.start_soon(changes.close)
        assert [change async for change in changes] == []


@every
async def test_listening_to_a_closed_client_is_an_error(revision: str) -> None:
    async with live(notes(), revision) as (client, _):
        async with client.listen(tools=True) as changes:
            await client.close()
            with pytest.raises(ConnectionClosedError):
                await anext(changes)
        with pytest.raises(ConnectionClosedError):
            async with client.listen(tools=True):
                pytest.fail("nobody listens any more")
        with pytest.raises(ConnectionClosedError):
            await client.notify("notifications/progress", {"progressToken": 1, "progress": 1})


class Losing(FakeServer):
    """A server whose streams can be lost.

    Attributes:
        asked: The subscriptions that it was asked for.
    """

    def __init__(self, revision: str) -> None:
        assert revision is not None
        super().__init__(revision)
        self.spoken = revision
        self.asked: list[dict[str, Any]] = []
        self._losses: dict[RequestId, McpError] = {}

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


@pytest.mark.requirement("subscriptions.unexpected-end")
@modern
async def test_a_stream_that_stays_lost_is_an_error_in_the_end(revision: str) -> None:
    server = Losing(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(server.agree)
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            await server.lose(CUT)
            tasks.start_soon(server.agree, *[NOBODY] * len(AT_ONCE))
            for _ in range(2):
                with pytest.raises(ResponseLostError):
                    await anext(changes)
        tasks.cancel_scope.cancel()
    assert len(server.asked) == 1 + len(AT_ONCE)


@modern
@pytest.mark.parametrize(
    "loss", [HttpStatusError("http://x", 401, "Unauthorized"), RemoteError(-32603, "no")]
)
async def test_permanent_errors_are_not_retried(revision: str, loss: McpError) -> None:
    server = Losing(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(server.agree)
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
            await server.lose(loss)
            with pytest.raises(type(loss)):
                await anext(changes)
    assert len(server.asked) == 1


@modern
async def test_an_iteration_cancelled_while_opening_can_go_on(
    revision: str,
) -> None:
    server = Losing(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(server.agree)
        async with client.listen(tools=True, retry_seconds=AT_ONCE) as changes:
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


@sessions
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


@sessions
async def test_in_a_session_unused_resources_are_unsubscribed(
    revision: str,
) -> None:
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


@sessions
async def test_in_a_session_an_unknown_resource_is_an_error(
    revision: str,
) -> None:
    error = {"error": {"code": -32602, "message": "no such resource"}}
    async with connect_scripted(revision, {}, error, {}, {}) as (client, server):
        with pytest.raises(RemoteError, match="no such resource"):
            async with client.listen(uris=["memo://a", "memo://none"]):
                pytest.fail("one of them is none")
        assert [request["method"] for request in server.heard].count("resources/unsubscribe") == 2
