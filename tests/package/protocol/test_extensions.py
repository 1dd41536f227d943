"""Extensions: declared under identifiers, in force where both sides declare them."""

from __future__ import annotations

import json
import logging
from typing import Any, TypeAlias

import msgspec
import pytest

from kit.live import FakeServer, live, text_of
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import facts, legacy, speaking_to
from mcpgen_runtime import (
    REVISIONS,
    Context,
    MissingCapabilityError,
    RemoteError,
    RemoteProtocolError,
    Server,
    connect,
)
from requirements import EVERY_REVISION

pytestmark = pytest.mark.on_asyncio

HAVING = revisions_holding("extensions.capability-map")
having = pytest.mark.parametrize("revision", HAVING)

Capabilities: TypeAlias = dict[str, Any]

X = "com.example/x"
DECLARED = {"extensions": {X: {"level": 2}, "com.example/y": {}}}


class Params(msgspec.Struct):
    """Params of a method of an extension."""

    n: int


def extended_server() -> Server:
    """A server with an extension: a method of its own, and a tool that makes use of it."""
    server = Server("extended")

    @server.method("com.example/double", params=Params, result=dict[str, int], extension=X)
    async def double(params: Params) -> dict[str, int]:
        return {"n": 2 * params.n}

    @server.tool()
    async def level(ctx: Context) -> str:
        settings = ctx.client_extension(X)
        return "core" if settings is None else f"level {settings.get('level', 1)}"

    @server.tool()
    async def declared(ctx: Context) -> str:
        return json.dumps(dict(ctx.client_capabilities))

    @server.tool()
    async def needs_it(ctx: Context) -> str:
        if ctx.client_extension(X) is None:
            raise MissingCapabilityError(("extensions", X), "needs_it")
        return "extended"

    return server


@pytest.mark.requirement("extensions.capability-map")
@having
async def test_either_side_declares_its_extensions_with_their_settings(revision: str) -> None:
    server = Server("declaring", capabilities=DECLARED)
    server.tool("t")(lambda: "text")
    mine = {"extensions": {X: {"level": 1}}}
    async with live(server, revision, capabilities=mine) as (client, record):
        assert client.server_capabilities["extensions"] == DECLARED["extensions"]
        assert client.extension(X) == {"level": 2}
        assert client.extension("com.example/y") is None  # this side does not declare it
        await client.list_tools()
        await client.call_tool("t")
        key = facts(revision).meta.client_capabilities
        for message in record.sent:
            assert message["params"]["_meta"][key]["extensions"] == mine["extensions"]


BAD_IDENTIFIERS = ["x", "/x", "com..a/x", "com.example/", "1com/x", "com.example/x/y"]
RESERVED = ["com.mcp.tools/x", "dev.modelcontextprotocol/x"]


@pytest.mark.requirement("extensions.identifier-format", "extensions.reserved-namespace")
@having
@pytest.mark.parametrize("identifier", [*BAD_IDENTIFIERS, *RESERVED])
async def test_an_identifier_of_another_form_is_refused_on_either_side(
    revision: str, identifier: str
) -> None:
    capabilities: Capabilities = {"extensions": {identifier: {}}}
    refused = pytest.raises(ValueError, match=f"extension {identifier!r}")
    with refused:
        Server("bad", capabilities=capabilities)
    with refused:
        Server("bad").method("com.example/run", extension=identifier)
    server = FakeServer(revision)
    with refused:
        async with connect(server, revision=revision, capabilities=capabilities):
            pytest.fail("it was to be refused")
    assert server.opening == []


@pytest.mark.requirement("extensions.identifier-format")
@having
@pytest.mark.parametrize("identifier", [X, "a/b", "io.modelcontextprotocol/ui", "a-b.c/x_y.z-1"])
async def test_an_identifier_of_the_prescribed_form_is_declared(
    revision: str, identifier: str, caplog: pytest.LogCaptureFixture
) -> None:
    capabilities: Capabilities = {"extensions": {identifier: {}}}
    server = Server("good", capabilities=capabilities)
    async with live(server, revision, capabilities=capabilities) as (client, _):
        assert client.extension(identifier) == {}
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.requirement("extensions.settings-object")
@having
@pytest.mark.parametrize("settings", [True, None, 1, "on", []])
async def test_settings_that_are_no_object_are_refused_or_ignored(
    revision: str, settings: Any
) -> None:
    wrong = {"extensions": {X: settings}}
    refused = pytest.raises(ValueError, match=f"extension '{X}': expected an object of settings")
    with refused:
        Server("bad", capabilities=wrong)
    with refused:
        async with connect(FakeServer(revision), revision=revision, capabilities=wrong):
            pytest.fail("it was to be refused")
    both = {"extensions": {X: settings, "com.example/y": {}}}
    right: Capabilities = {"extensions": {X: {}, "com.example/y": {}}}
    peer = FakeServer(revision, {"tools": {}, **both})
    async with connect(peer, revision=revision, capabilities=right) as client:
        assert client.extension(X) is None
        assert client.extension("com.example/y") == {}
    async with speaking_to(extended_server(), revision) as end:
        answer = await end.ask("tools/call", {"name": "level"}, capabilities=both)
        assert answer["result"]["content"][0]["text"] == "core"


@pytest.mark.requirement("extensions.one-sided")
@having
async def test_without_the_other_side_one_uses_the_core_or_fails(revision: str) -> None:
    server = extended_server()
    async with live(server, revision) as (client, _):
        assert text_of(await client.call_tool("level")) == "core"
        with pytest.raises(RemoteError) as refused:
            await client.call_tool("needs_it")
        assert refused.value.code == facts(revision).errors.missing_capability
        assert refused.value.data == {"requiredCapabilities": {"extensions": {X: {}}}}
    declaring: Capabilities = {"extensions": {X: {"level": 3}}}
    async with live(server, revision, capabilities=declaring) as (client, _):
        assert text_of(await client.call_tool("level")) == "level 3"
        assert text_of(await client.call_tool("needs_it")) == "extended"
    async with live(Server("core"), revision, capabilities=declaring) as (client, _):
        assert client.extension(X) is None


@pytest.mark.requirement("extensions.opt-in")
@having
async def test_an_extension_is_in_force_only_where_both_sides_opt_in(revision: str) -> None:
    async with live(Server("plain"), revision) as (client, record):
        assert "extensions" not in client.server_capabilities
        key = facts(revision).meta.client_capabilities
        assert "extensions" not in record.sent[0]["params"]["_meta"][key]
    method, params = "com.example/double", {"n": 2}
    declaring: Capabilities = {"extensions": {X: {}}}
    async with speaking_to(extended_server(), revision) as end:
        without = await end.ask(method, params)
        other = await end.ask(method, params, capabilities={"extensions": {"com.example/y": {}}})
        assert {without["error"]["code"], other["error"]["code"]} == {-32601}
        answer = await end.ask(method, params, capabilities=declaring)
        assert answer["result"]["n"] == 4
        described = await end.ask("server/discover")
        assert described["result"]["capabilities"]["extensions"] == {X: {}}
    async with speaking_to(Server("plain"), revision) as end:
        assert (await end.ask(method, params, capabilities=declaring))["error"]["code"] == -32601


TASKS = "io.modelcontextprotocol/tasks"


@pytest.mark.requirement("extensions.tasks-moved")
@having
async def test_without_their_extension_there_are_no_tasks(revision: str) -> None:
    revision_of_tasks = REVISIONS[revision]
    assert not [name for name in revision_of_tasks.client_requests if name.startswith("tasks/")]
    capabilities: Capabilities = {"extensions": {TASKS: {}}}
    async with speaking_to(extended_server(), revision) as end:
        for method in ("tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"):
            answer = await end.ask(method, {"taskId": "t"}, capabilities=capabilities)
            assert answer["error"]["code"] == -32601
        called = await end.ask("tools/call", {"name": "level"}, capabilities=capabilities)
        assert called["result"]["resultType"] == "complete"
    handle = {"resultType": "task", "taskId": "t", "status": "working", "ttlMs": None}
    async with connect_scripted(revision, handle) as (client, _):
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("any")


@pytest.mark.requirement("extensions.legacy-channel")
@legacy
async def test_in_a_session_extensions_need_both_sides(revision: str) -> None:
    client: Capabilities = {"extensions": {X: {"level": 2}}, "experimental": {X: {}}, "own": {}}
    async with speaking_to(extended_server(), revision, client) as end:
        answer = await end.ask("tools/call", {"name": "level"})
        assert answer["result"]["content"][0]["text"] == "level 2"
        answer = await end.ask("tools/call", {"name": "declared"})
        assert json.loads(answer["result"]["content"][0]["text"]) == client
        assert (await end.ask("com.example/double", {"n": 2}))["result"]["n"] == 4
    async with speaking_to(extended_server(), revision) as end:
        assert (await end.ask("com.example/double", {"n": 2}))["error"]["code"] == -32601


@pytest.mark.requirement("extensions.reserved-namespace", revisions=EVERY_REVISION)
def test_an_unknown_official_identifier_gives_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    Server("private", capabilities={"extensions": {"io.modelcontextprotocol/mine": {}}})
    assert "io.modelcontextprotocol/mine" in caplog.text
