"""Servers whose tools are found by a search: what is listed, found and called."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest

from kit.asgi_client import asgi
from kit.guarded import challenge_in, protected_settings
from kit.issuer import bearer, token_of
from kit.live import handlers_with, tool_names
from kit.wire import PER_REQUEST, SESSIONS, every
from mcpgen_runtime import Context, Principal, RemoteError, Server, ToolError, ToolSearch, connect
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.on_asyncio

newest = pytest.mark.parametrize("revision", PER_REQUEST[-1:])


def city(search: Any = "search", **settings: Any) -> Server:
    server = Server("city", discovery=search, **settings)

    @server.tool(tags=["weather", "outdoor"])
    def get_forecast(city: str, days: int = 1) -> str:
        """The weather of the next days."""
        if city == "Atlantis":
            raise ToolError("no such city")
        return f"{city}: {days} x sun"

    @server.tool(name="openGate", tags=["outdoor"])
    def open_gate(number: int) -> str:
        """Let a train leave."""
        return f"gate {number}"

    @server.tool(scopes=["money"])
    def pay_bill(amount: int) -> int:
        """Pay an invoice."""
        return amount

    return server


async def search(client: Any, query: str, **options: Any) -> list[str]:
    """Names of the tools that a search finds."""
    result = await client.call_tool("search_tools", {"query": query, **options})
    assert not getattr(result, "is_error", False), result
    return [tool["name"] for tool in json.loads(result.content[0].text)]


async def call(client: Any, name: str, **arguments: Any) -> Any:
    return await client.call_tool("call_tool", {"name": name, "arguments": arguments})


@every
async def test_a_client_lists_two_tools_and_calls_what_it_finds(revision: str) -> None:
    async with connect(city(), revision=revision) as client:
        assert await tool_names(client) == ["search_tools", "call_tool"]
        result = await client.call_tool("search_tools", {"query": "weather of tomorrow"})
        (tool,) = json.loads(result.content[0].text)
        assert set(tool) == {"name", "description", "inputSchema"}
        assert tool["inputSchema"]["required"] == ["city"]
        called = await call(client, tool["name"], city="Oslo", days=2)
        assert called == await client.call_tool("get_forecast", {"city": "Oslo", "days": 2})
        assert called.content[0].text == "Oslo: 2 x sun"


async def test_the_two_tools_read_and_others_may_be_listed_beside() -> None:
    async with connect(city(ToolSearch(listed=["weather", "openGate"]))) as client:
        find, call, *others = await client.list_tools()
        assert [find.name, call.name] == ["search_tools", "call_tool"]
        assert [tool.name for tool in others] == ["get_forecast", "openGate"]
    assert (find.annotations.read_only_hint, find.annotations.open_world_hint) == (True, False)
    assert (find.output_schema, call.output_schema, call.annotations) == (None, None, None)


QUERIES = {
    "forecasts": ["get_forecast"],
    "gate": ["openGate"],
    "LEAVING": ["openGate"],
    "amounts": ["pay_bill"],
    "city gate": ["openGate", "get_forecast"],
    "nothing like that": [],
    '" *': ["get_forecast", "openGate", "pay_bill"],
    "": ["get_forecast", "openGate", "pay_bill"],
}


@newest
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:20])
async def test_tools_are_found_by_name_description_and_arguments(revision: str, query: str) -> None:
    async with connect(city(), revision=revision) as client:
        assert sorted(await search(client, query)) == sorted(QUERIES[query])


@newest
async def test_the_best_tool_comes_first_and_few_are_returned(revision: str) -> None:
    for results in (1, 3, 5):
        server = Server("many", discovery=ToolSearch(results=results) if results != 5 else "search")
        for number in range(40):
            server.add_tool(lambda: "", name=f"t{number}", description="Reads one of many files.")
        server.add_tool(lambda: "", name="file_reader", description="Reads.")
        async with connect(server, revision=revision) as client:
            found = await search(client, "file")
            assert found == ["file_reader", "t0", "t1", "t2", "t3"][:results]
            assert await search(client, "file", limit=1) == ["file_reader"]
            assert len(await search(client, "file", limit=30)) == results
            assert (await client.call_tool("search_tools", {"query": "file", "limit": 0})).is_error


def test_servers_in_two_threads_search_in_one_index() -> None:
    async def find() -> list[str]:
        async with connect(city()) as client:
            return await search(client, "gate")

    with ThreadPoolExecutor(1) as other:
        assert anyio.run(find) == other.submit(anyio.run, find).result() == ["openGate"]


@newest
async def test_a_search_may_be_limited_to_tags(revision: str) -> None:
    async with connect(city(), revision=revision) as client:
        assert await search(client, "", tags=["outdoor"]) == ["get_forecast", "openGate"]
        assert await search(client, "", tags=["outdoor", "weather"]) == ["get_forecast"]
        assert await search(client, "gate", tags=["weather"]) == []
        refused = await client.call_tool("search_tools", {"query": "", "tags": ["rail"]})
    assert refused.content[0].text == "no tool has the tags rail; tags: outdoor, weather"


@every
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_forecast", {"cit": "Oslo"}),
        ("get_forecast", {"city": "Atlantis"}),
        ("pay_bill", {"amount": 1}),
        ("nothing", {}),
    ],
)
async def test_a_call_is_checked_as_one_by_the_name_of_the_tool(
    revision: str, name: str, arguments: dict[str, Any]
) -> None:
    ends: list[Any] = []
    async with connect(city(), revision=revision) as client:
        for tool, given in (
            (name, arguments),
            ("call_tool", {"name": name, "arguments": arguments}),
        ):
            try:
                result: Any = await client.call_tool(tool, given)
                ends.append((result.is_error, result.content[0].text))
            except RemoteError as error:
                ends.append((error.code, str(error)))
    assert ends[0] == ends[1]
    assert ends[0][0]


@newest
async def test_a_malformed_call_says_what_is_wrong(revision: str) -> None:
    async with connect(city(), revision=revision) as client:
        result = await client.call_tool("call_tool", {"tool": "openGate", "arguments": [1]})
        assert result.is_error
        assert "argument 'name': required, but missing" in result.content[0].text
        assert (await client.call_tool("call_tool", {"name": "openGate"})).is_error
        text = json.dumps({"number": 7})  # as models send objects at times
        result = await client.call_tool("call_tool", {"name": "openGate", "arguments": text})
        assert result.content[0].text == "gate 7"
        for name in ("call_tool", "search_tools"):
            with pytest.raises(RemoteError, match="unknown tool"):
                await call(client, name, query="")


@newest
async def test_a_hidden_tool_is_neither_found_nor_called(revision: str) -> None:
    server = city(forbidden_items="hidden")
    server.disable("openGate")
    poor, rich = Principal("a", scopes=["x"]), Principal("b", scopes=["money"])
    async with connected(server, revision=revision, principal=poor) as pair:
        assert await search(pair.client, "") == ["get_forecast"]
        for name in ("openGate", "pay_bill"):
            with pytest.raises(RemoteError, match="unknown tool"):
                await call(pair.client, name, number=1, amount=1)
    async with connected(server, revision=revision, principal=rich) as pair:
        assert await search(pair.client, "invoice") == ["pay_bill"]
        assert (await call(pair.client, "pay_bill", amount=2)).content[0].text == "2"


@newest
async def test_a_tool_of_a_user_interface_is_not_for_models(revision: str) -> None:
    server = city()
    server.add_tool(lambda: "fresh", name="refresh", visibility=["app"])
    async with connect(server, revision=revision) as client:
        assert await search(client, "refresh") == []
        with pytest.raises(RemoteError, match="unknown tool"):
            await call(client, "refresh")
        assert (await client.call_tool("refresh")).content[0].text == "fresh"


@newest
async def test_tools_that_come_and_go_are_found_as_they_are(revision: str) -> None:
    server = city()
    async with connect(server, revision=revision) as client:
        server.add_tool(lambda: "", name="new_gate")
        assert await search(client, "gate") == ["new_gate", "openGate"]
        server.remove_tool("openGate")
        assert await search(client, "gate") == ["new_gate"]
        for number in range(16):
            server.add_tool(lambda: "", name=f"gate{number}x")
            assert await search(client, f"gate{number}x") == [f"gate{number}x"]


@every
async def test_tools_of_mounted_and_proxied_servers_are_found(revision: str) -> None:
    git, far = Server("git"), Server("far")
    git.add_tool(lambda: "clean", name="status", description="What has changed.", tags=["git"])
    far.add_tool(lambda: "here", name="where", description="The place of the office.")
    server = city()
    server.mount(git, prefix="git")
    server.mount(Server.proxy(far), prefix="far")
    async with connect(server, revision=revision) as client:
        assert await tool_names(client) == ["search_tools", "call_tool"]
        assert await search(client, "changed") == ["git_status"]
        assert await search(client, "", tags=["git"]) == ["git_status"]
        assert await search(client, "office") == ["far_where"]
        assert (await call(client, "git_status")).content[0].text == "clean"
        assert (await call(client, "far_where")).content[0].text == "here"


@every
async def test_a_called_tool_asks_its_client(revision: str) -> None:
    server = city()
    handlers = handlers_with(list_roots={"roots": [{"uri": "file:///work"}]})

    @server.tool()
    async def look(ctx: Context) -> str:
        return str((await ctx.list_roots())[0].uri)

    async with connect(server, revision=revision, handlers=handlers) as client:
        assert (await call(client, "look")).content[0].text == "file:///work"


@pytest.mark.parametrize("revision", [SESSIONS[-1], PER_REQUEST[-1]])
async def test_a_call_without_scopes_gets_the_challenge_of_the_tool(revision: str) -> None:
    async with asgi(city(), auth=protected_settings()) as http:

        async def ask(tool: str, **arguments: Any) -> Any:
            params = {"name": tool, "arguments": arguments}
            return await http.ask(revision, "tools/call", params)

        http.fields["authorization"] = bearer(token_of(scope="mcp:read"))
        if revision in SESSIONS:
            await http.initialize(revision)
        reply = await ask("call_tool", name="pay_bill", arguments={"amount": 3})
        assert reply.status == 403
        assert "money" in challenge_in(reply).parameters["scope"].split()
        assert (await http.ask(revision, "tools/list")).status == 200
        # a name among the arguments of another tool, and none at all
        for name, arguments in (("openGate", {"name": "pay_bill"}), ("call_tool", {})):
            assert (await ask(name, **arguments)).status == 200
        http.fields["authorization"] = bearer(token_of(scope="mcp:read money"))
        reply = await ask("call_tool", name="pay_bill", arguments={"amount": 3})
        assert reply.status == 200


def test_a_search_is_declared_as_it_can_be() -> None:
    unknown: Any = "semantic"
    with pytest.raises(ValueError, match="discovery: expected 'search' or a ToolSearch"):
        Server("city", discovery=unknown)
    with pytest.raises(ValueError, match="results: expected at least 1, got 0"):
        ToolSearch(results=0)
    with pytest.raises(TypeError, match="expected a collection of strings"):
        ToolSearch(listed="weather")
    with pytest.raises(ValueError, match="tool 'search_tools' is registered already"):
        city().add_tool(lambda: "", name="search_tools")
