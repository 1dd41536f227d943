"""Handlers of the low-level kind: one coroutine per request of a revision, beside the toolkit."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from mcp_protocol.exchange import Exchange
from mcp_protocol.revisions import REVISIONS
from mcp_protocol.toolkit.server import Server
from package.wire import ALL, HANDSHAKE, speaking_to

every = pytest.mark.parametrize("revision", ALL)


def handlers(revision: str, heard: list[str] | None = None) -> Any:
    """An instance that lists one tool of its own and hears of cancelled requests."""
    module = importlib.import_module(f"mcp_protocol.r{revision.replace('-', '_')}.server")
    models = importlib.import_module(f"mcp_protocol.r{revision.replace('-', '_')}.models")

    class Handlers(module.ServerHandlers):  # type: ignore[name-defined,misc] # known at run time
        async def list_tools(self, params: Any, ctx: Exchange) -> Any:
            tool = models.Tool(name="low", input_schema={"type": "object"})
            return models.ListToolsResult(tools=[tool])

        async def roots_list_changed(self, params: Any, ctx: Exchange) -> None:
            assert heard is not None
            heard.append(ctx.method.name)

    return Handlers()


@every
async def test_a_handler_wins_over_the_toolkit_and_the_rest_is_the_toolkits(revision: str) -> None:
    server = Server("mixed", handlers=[handlers(revision)])

    @server.tool()
    async def high() -> str:
        return "high"

    async with speaking_to(server, revision) as end:
        listed = (await end.ask("tools/list"))["result"]["tools"]
        called = (await end.ask("tools/call", {"name": "high"}))["result"]
    assert [tool["name"] for tool in listed] == ["low"]
    assert called["content"][0]["text"] == "high"


@pytest.mark.requirement("capabilities.server-features-advertised")
@every
async def test_what_is_overridden_is_declared_and_what_is_not_is_unknown(revision: str) -> None:
    server = Server("low", logging=False, handlers=[handlers(revision)])
    assert server.capabilities(REVISIONS[revision]) == {"tools": {}}
    async with speaking_to(server, revision) as end:
        assert len((await end.ask("tools/list"))["result"]["tools"]) == 1
        assert (await end.ask("tools/call", {"name": "low"}))["error"]["code"] == -32601
        assert (await end.ask("prompts/list"))["error"]["code"] == -32601


async def test_handlers_answer_for_their_own_revision_alone() -> None:
    server = Server("one", logging=False, handlers=[handlers(ALL[0])])
    assert server.capabilities(REVISIONS[ALL[-1]]) == {}
    with pytest.raises(ValueError, match="expected one set of handlers"):
        Server("two", handlers=[handlers(ALL[0]), handlers(ALL[0])])


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_notifications_reach_their_handler(revision: str) -> None:
    heard: list[str] = []
    server = Server("hears", handlers=[handlers(revision, heard)])
    async with speaking_to(server, revision, {"roots": {"listChanged": True}}) as end:
        await end.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        await end.ask("ping")
    assert heard == ["notifications/roots/list_changed"]
