"""Handlers of the low-level kind: one coroutine per request of a revision, beside the toolkit."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from kit.respondent import refusal_code
from kit.wire import ALL, HANDSHAKE, PER_REQUEST, speaking_to
from mcpgen_runtime import REVISIONS, RequestContext, Server, convert

every = pytest.mark.parametrize("revision", ALL)


def handlers(revision: str, heard: list[str] | None = None) -> Any:
    """An instance that lists one tool of its own and hears of cancelled requests."""
    module = importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.server")
    models = importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.models")

    class Handlers(module.ServerHandlers):  # type: ignore[name-defined,misc] # known at run time
        async def list_tools(self, params: Any, ctx: RequestContext) -> Any:
            tool = models.Tool(name="low", input_schema={"type": "object"})
            return models.ListToolsResult(tools=[tool])

        async def roots_list_changed(self, params: Any, ctx: RequestContext) -> None:
            assert heard is not None
            heard.append(ctx.method.name)

    return Handlers()


@every
async def test_a_handler_replaces_the_toolkit_for_its_method_alone(revision: str) -> None:
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
async def test_overridden_methods_are_declared_and_others_unknown(revision: str) -> None:
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


ROOTS: dict[str, Any] = {"method": "roots/list"}


def asking_server(revision: str, as_type: bool) -> Server:
    """A server whose handler of calls asks for roots, until it gets its own state back."""
    module = importlib.import_module(f"mcpgen_runtime.r{revision.replace('-', '_')}.server")
    row = REVISIONS[revision].client_requests["tools/call"]

    class Handlers(module.ServerHandlers):  # type: ignore[name-defined,misc] # known at run time
        async def call_tool(self, params: Any, ctx: RequestContext) -> Any:
            made: dict[str, Any] = {"content": [], "resultType": "complete"}
            if params.request_state != "mine":
                asked = {"inputRequests": {"where": ROOTS}, "requestState": "mine"}
                made = {**asked, "resultType": "input_required"}
            return convert(made, row.result) if as_type else made

    return Server("low", handlers=[Handlers()])


@pytest.mark.requirement("mrtr.capability-gate")
@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize("as_type", [True, False])
async def test_a_handler_asks_for_declared_input_and_keeps_its_state(
    revision: str, as_type: bool
) -> None:
    call: dict[str, Any] = {"name": "low"}
    roots: dict[str, Any] = {"roots": {}}
    async with speaking_to(asking_server(revision, as_type), revision) as end:
        refused = await end.ask("tools/call", call, capabilities={"sampling": {}})
        asked = (await end.ask("tools/call", call, capabilities=roots))["result"]
        state = {"requestState": asked["requestState"]}
        last = (await end.ask("tools/call", {**call, **state}, capabilities=roots))["result"]
    assert (asked["inputRequests"], state["requestState"]) == ({"where": ROOTS}, "mine")
    assert last["resultType"] == "complete"
    assert refused["error"]["code"] == refusal_code(revision)
    assert refused["error"]["data"] == {"requiredCapabilities": {"roots": {}}}
