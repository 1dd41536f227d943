"""Servers of a group that refuse, fail or end, each on a channel of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer, text_of
from kit.scripted import ScriptedServer
from kit.wire import CHANGED, HANDSHAKE, PER_REQUEST, both_lifecycles
from mcpgen_runtime import (
    ClientHandlers,
    ConnectFailedError,
    ConnectionClosedError,
    InvalidParamsError,
    MethodNotFoundError,
    RemoteError,
    ToolsChanged,
    connect,
)
from package.client.test_client_listen import Losing

pytestmark = pytest.mark.on_asyncio

HINTS: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
REFUSAL = {"code": -32000, "message": "not today"}


class Answering(ScriptedServer):
    """A server that answers requests by their method, and nothing else."""

    def __init__(self, revision: str, **answers: Mapping[str, Any]) -> None:
        super().__init__(revision, ())
        self.by_method = answers

    async def send(self, message: Any) -> None:
        known = len(self.heard)
        await super().send(message)
        for request in self.heard[known:]:
            answer = self.by_method.get(request["method"].rpartition("/")[2])
            if answer is not None and "code" in answer:
                await self.say({"jsonrpc": "2.0", "id": request["id"], "error": answer})
            elif answer is not None:
                await self.answer(request, {**answer, **HINTS})


def resources(*uris: str, templates: tuple[str, ...] = ()) -> dict[str, Any]:
    """The answers of a server with these resources, by the end of the method."""
    return {
        "list": {
            "resources": [{"uri": uri, "name": "r"} for uri in uris],
            "resourceTemplates": [{"uriTemplate": each, "name": "t"} for each in templates],
        }
    }


def group(**servers: FakeServer) -> Any:
    """A client of these servers, which are of one revision."""
    revision = next(iter(servers.values())).revision
    return connect({"mcpServers": dict(servers)}, revision=revision)


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("declared", [True, False])
async def test_changed_roots_are_told_to_each_server(revision: str, declared: bool) -> None:
    class Roots(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": []}

    servers = {"a": FakeServer(revision), "b": FakeServer(revision)}
    own = {"roots": {"listChanged": True}} if declared else {}
    opening = connect(
        {"mcpServers": servers}, revision=revision, handlers=Roots(), capabilities=own
    )
    async with opening as client:
        await client.roots_list_changed()
        told = [[said["method"] for said in server.heard] for server in servers.values()]
    assert told == [["notifications/roots/list_changed"] if declared else []] * 2


@both_lifecycles
async def test_changes_go_on_until_the_last_server_fails(revision: str) -> None:
    modern = revision in PER_REQUEST
    a, b = ((Losing if modern else FakeServer)(revision) for _ in range(2))
    servers: list[Any] = [a, b]
    async with group(a=a, b=b) as client:
        listening = client.listen(tools=True, retry_seconds=())
        async with anyio.create_task_group() as tasks:
            for server in servers if modern else ():
                tasks.start_soon(server.agree)
            await listening.__aenter__()
        await b.hang_up()
        if modern:
            await servers[0].tell(CHANGED["toolsListChanged"])
        else:
            await a.notify(CHANGED["toolsListChanged"], {})
        assert await anext(listening) == ToolsChanged()
        await a.hang_up()
        with pytest.raises(ConnectionClosedError):
            await anext(listening)
        assert sorted(client.failures) == ["a", "b"]
        await listening.close()
        assert [change async for change in listening] == []


@both_lifecycles
async def test_listening_to_servers_without_changes_ends(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = FakeServer(revision, {"tools": {}}), FakeServer(revision, {})
    async with (
        group(a=a, b=b) as client,
        client.listen(tools=True, prompts=True, resources=True) as changes,
    ):
        assert [change async for change in changes] == []
    assert "no server tells of changes of what was asked for" in caplog.text


@both_lifecycles
@pytest.mark.parametrize(
    ("uri", "owner"),
    [
        ("x://b/1", "b"),
        ("x://c", "a"),
        ("x://b/{n}", "b"),
        ("w://{n}", "a"),
        ("y://", None),
        ("z:1", None),
    ],
)
async def test_the_longest_template_that_fits_decides(
    revision: str, uri: str, owner: str | None
) -> None:
    text = {"contents": [{"uri": uri, "text": "text"}]}
    a = Answering(revision, **resources(templates=("x://{n}", "y://{n}", "w://{n}")), read=text)
    b = Answering(
        revision, **resources(templates=("x://b/{n}", "y://{m}", "w://{m}", "{any}")), read=text
    )
    async with group(a=a, b=b) as client:
        if owner is None:
            reason = "a and b have it" if uri == "y://" else "no server lists it"
            with pytest.raises(InvalidParamsError, match=reason):
                await client.read_resource(uri)
        else:
            await client.read_resource(uri)
    reading = [
        name
        for name, server in (("a", a), ("b", b))
        if "resources/read" in [said["method"] for said in server.heard]
    ]
    assert reading == ([owner] if owner else [])


@both_lifecycles
async def test_if_every_server_refuses_a_list_the_first_error_counts(revision: str) -> None:
    a, b = (Answering(revision, list={**REFUSAL, "message": name}) for name in "ab")
    async with group(a=a, b=b) as client:
        with pytest.raises(RemoteError, match=r"\ba\b"):
            await client.list_tools()
        assert sorted(client.failures) == ["a", "b"]
        a.by_method = {"list": {"tools": []}}
        assert await client.list_tools() == []
        assert list(client.failures) == ["b"]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_request_that_no_server_declares_is_refused(revision: str) -> None:
    a, b = FakeServer(revision, {}), FakeServer(revision, {"tools": {}})
    async with group(a=a, b=b) as client:
        with pytest.raises(MethodNotFoundError, match="none of the servers declares logging/set"):
            await client.set_level("info")
        assert await client.list_prompts() == []
    assert not [*a.heard, *b.heard]


@both_lifecycles
async def test_a_server_that_a_call_does_not_reach_has_failed(revision: str) -> None:
    failure = ConnectFailedError("http://a", "no route")

    class Unreachable(Answering):
        async def send(self, message: Any) -> None:
            if message.method == "tools/call":
                raise failure
            await super().send(message)

    a, b = Unreachable(revision, list={"tools": []}), Answering(revision, call=TEXT)
    async with group(a=a, b=b) as client:
        with pytest.raises(ConnectFailedError, match="no route"):
            await client.call_tool("a_t")
        assert client.failures == {"a": failure}
        assert text_of(await client.call_tool("b_t")) == "done"
        assert list(client.failures) == ["a"]


@both_lifecycles
async def test_requests_about_resources_go_to_the_server_that_has_them(revision: str) -> None:
    completed = {"completion": {"values": ["of b"]}}
    a = Answering(revision, **resources("x://a", templates=("x://{n}",)), read=REFUSAL)
    b = Answering(revision, **resources("x://b", templates=("x://b/{n}",)), complete=completed)
    async with group(a=a, b=b) as client:
        with pytest.raises(RemoteError) as refused:
            await client.read_resource("x://a")
        ref = {"type": "ref/resource", "uri": "x://b/{n}"}
        result = await client.complete(ref=ref, argument={"name": "n", "value": ""})
        assert not client.failures
    assert str(refused.value) == str(RemoteError(-32000, "not today", None, "resources/read"))
    assert result.completion.values == ["of b"]
    a, other = Answering(revision, read={"contents": []}), FakeServer(revision, {"tools": {}})
    async with group(a=a, other=other) as client:  # the only one of resources needs no lists
        await client.read_resource("x://a")
    assert [said["method"] for said in [*a.heard, *other.heard]] == ["resources/read"]
