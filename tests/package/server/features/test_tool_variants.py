"""Tools made from other tools: what is listed, what the other tool gets, and what can't be made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import SecretStr
from syrupy.assertion import SnapshotAssertion

from kit.faults import refusals
from kit.live import server_with
from kit.wire import ALL, every
from mcpgen_runtime import Context, Principal, RemoteError, Server, connect
from mcpgen_runtime.testing import connected

pytestmark = pytest.mark.on_asyncio

newest = pytest.mark.parametrize("revision", ALL[-1:])


def library() -> Server:
    server = Server("library")

    @server.tool(tags=["raw"])
    def search(
        q: Annotated[str, msgspec.Meta(min_length=2)], limit: int = 10, *, ctx: Context
    ) -> str:
        """Search by a query."""
        return f"{q} x {limit} in {ctx.revision}"

    server.add_tool_variant(
        "search", "find_books", description="Find books.", rename={"q": "title"}, fix={"limit": 5}
    )
    return server


async def text(client: Any, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    shown: str = result.content[0].text
    return shown


@every
async def test_a_variant_has_other_names_and_fixed_arguments(revision: str) -> None:
    async with connect(library(), revision=revision) as client:
        source, variant = await client.list_tools()
        assert (variant.name, variant.description) == ("find_books", "Find books.")
        assert variant.input_schema["properties"] == {
            "title": source.input_schema["properties"]["q"]
        }
        assert variant.input_schema["required"] == ["title"]
        assert getattr(variant, "output_schema", None) == getattr(source, "output_schema", None)
        assert await text(client, "find_books", title="Emma") == f"Emma x 5 in {revision}"
        assert await text(client, "search", q="Emma") == f"Emma x 10 in {revision}"


@every
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"title": "E"}, "argument 'q': expected str of length >= 2"),
        ({"title": "Emma", "limit": 9}, "tool 'find_books': unknown arguments: limit"),
        ({"q": "Emma"}, "tool 'find_books': unknown arguments: q"),
        ({"title": "Emma", "page": 1}, "unknown argument 'page'"),
    ],
)
async def test_arguments_of_a_variant_are_checked(
    revision: str, arguments: dict[str, Any], reason: str
) -> None:
    async with connect(library(), revision=revision) as client:
        try:
            shown = await text(client, "find_books", **arguments)
        except RemoteError as error:
            shown = str(error)
    assert reason in shown


@newest
async def test_the_source_sees_a_call_of_its_own(revision: str) -> None:
    def look(q: str, ctx: Context) -> str:
        return bytes(ctx.raw_params or b"").decode()

    server = server_with(look)

    server.add_tool_variant("look", "see", rename={"q": "title"})
    async with connect(server, revision=revision) as client:
        seen = json.loads(await text(client, "see", title="Emma"))
    assert (seen["name"], seen["arguments"]) == ("look", {"q": "Emma"})


@newest
async def test_the_source_may_be_disabled_and_comes_and_goes(revision: str) -> None:
    server = library()
    server.disable(tags=["raw"])
    async with connect(server, revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == ["find_books"]
        assert (await text(client, "find_books", title="Emma")).startswith("Emma x 5")
        server.remove_tool("search")
        with pytest.raises(RemoteError, match="unknown tool: 'find_books'"):
            await text(client, "find_books", title="Emma")
        server.remove_tool("find_books")
        assert await client.list_tools() == []


@every
async def test_tools_of_mounted_servers_and_variants_have_variants(revision: str) -> None:
    main = Server("main")
    main.mount(library(), prefix="books")
    main.add_tool_variant("books_find_books", "emma", fix={"title": "Emma"}, title="Emma")
    async with connect(main, revision=revision) as client:
        tool = (await client.list_tools())[-1]
        assert (tool.name, tool.input_schema["properties"]) == ("emma", {})
        assert "required" not in tool.input_schema
        assert await text(client, "emma") == f"Emma x 5 in {revision}"


@newest
async def test_a_variant_needs_the_scopes_of_its_source(revision: str) -> None:
    server = Server("bank", forbidden_items="hidden")
    server.add_tool(lambda amount: f"paid {amount}", name="pay", scopes=["money"])
    server.add_tool_variant("pay", "pay_one", fix={"amount": 1})
    for scopes, listed in (((), []), (("money",), ["pay", "pay_one"])):
        principal = Principal("ann", scopes=scopes)
        async with connected(server, revision=revision, principal=principal) as pair:
            assert [tool.name for tool in await pair.client.list_tools()] == listed
            if listed:
                assert await text(pair.client, "pay_one") == "paid 1"
            else:
                with pytest.raises(RemoteError, match="unknown tool"):
                    await text(pair.client, "pay_one")


@newest
async def test_secret_arguments_are_masked_under_each_name_also_if_found(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trace.jsonl"
    monkeypatch.setenv("MCP_TRACE", str(file))

    def unlock(answer: SecretStr) -> str:
        return str(len(answer.get_secret_value()))

    server = server_with(unlock, discovery="search")

    server.add_tool_variant("unlock", "unlock_door", rename={"answer": "word"})
    async with connect(server, revision=revision) as client:
        assert await text(client, "unlock_door", word="swordfish") == "9"
        for name, argument in (("unlock", "answer"), ("unlock_door", "word")):
            found = {"name": name, "arguments": {argument: "swordfish"}}
            assert await text(client, "call_tool", **found) == "9"
    recorded = map(json.loads, file.read_text("utf-8").splitlines())
    of_server = [each for each in recorded if each["channel"] == "server"]
    assert of_server
    assert "swordfish" not in json.dumps(of_server)


@newest
async def test_fixed_arguments_reach_a_proxied_tool(revision: str) -> None:
    far, main = library(), Server("main")
    main.mount(Server.proxy(far), prefix="far")
    with pytest.raises(LookupError, match="there is no tool 'far_search'"):
        main.add_tool_variant("far_search", "near")  # what a proxy has is not known beforehand
    middle = Server("middle")
    middle.mount(far, prefix="far")
    middle.add_tool_variant("far_search", "near", fix={"q": "Emma"})
    async with connect(Server.proxy(middle), revision=revision) as client:
        assert (await text(client, "near", limit=2)).startswith("Emma x 2")


def test_invalid_variants_are_refused(snapshot: SnapshotAssertion) -> None:
    server: Any = library()
    either = {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}]}
    server.add_tool(lambda **arguments: "", name="either", input_schema=either)
    options: list[dict[str, Any]] = [
        *({"source": "none"}, {"name": "search"}, {"source": "either", "fix": {"a": 1}}),
        *({"rename": each} for each in ({"x": "y"}, {"q": "limit"}, ["q"])),
        {"tags": "raw"},
    ]

    def add(more: dict[str, Any]) -> None:
        server.add_tool_variant(**{"source": "search", "name": "other", **more})

    assert refusals(add, options) == snapshot
