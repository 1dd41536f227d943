"""Params of a draft: what is positional, what absence means, and defaults that facts state."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from generator.draft_packages import SERVER, check_program, definitions_of, write_package
from generator.schemas import COUNT, TEXT, any_of, const, obj
from mcpgen.errors import FactsError

NAMES = ["2025-06-18", "2026-07-28"]

CALLS = f"""{SERVER}
import anyio
from pkg import connect, connect_sync

@server.completion(prompt="greet", argument="city")
def cities(value: str) -> list[str]:
    return ["Oslo"]

CITY, GREET = {{"name": "city", "value": "O"}}, {{"type": "ref/prompt", "name": "greet"}}

async def main() -> None:
    async with connect(server) as client:
        assert (await client.call_tool("add", {{"a": 1}})).data == 2
        prompt = await client.get_prompt("greet", {{"city": "Oslo"}})
        assert prompt.messages[0].content.text == "hi Oslo"
        assert (await client.read_resource("note://one")).contents[0].text == "one"
        assert (await client.complete(CITY, GREET)).completion.values == ["Oslo"]
        assert (await client.list_tools_page(None)).tools[0].name == "add"
        assert (await client.call_tool("add", {{"a": 1}}, agent="x")).data == 2

anyio.run(main)
with connect_sync(server) as client:
    assert client.call_tool("add", {{"a": 1}}).data == 2
    assert client.get_prompt("greet", {{"city": "Oslo"}}).messages[0].content.text == "hi Oslo"
    assert client.read_resource("note://one").contents[0].text == "one"
    assert client.complete(CITY, GREET).completion.values == ["Oslo"]
"""

KEYWORDS = """
import inspect
from pkg import Client
from pkg.rdraft.client import Client as Own

for owner in (Client, Own):
    call = inspect.signature(owner.call_tool).parameters
    assert call["agent"].kind is inspect.Parameter.KEYWORD_ONLY, call
    prompt = inspect.signature(owner.get_prompt).parameters
    kinds = [prompt[name].kind for name in ("name", "arguments", "agent")]
    assert kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2 + [call["agent"].kind], prompt
    assert prompt["agent"].default is inspect.Parameter.empty, prompt
"""

PARAMS = (
    ("CallToolRequest", "CallToolRequestParams"),
    ("GetPromptRequest", "GetPromptRequestParams"),
    ("ReadResourceRequest", "ReadResourceRequestParams"),
    ("CompleteRequest", "CompleteRequestParams"),
    ("ListToolsRequest", "PaginatedRequestParams"),
)


def params_of(definitions: dict[str, Any], request: str, params: str) -> dict[str, Any]:
    """The params of a request, to be changed: a definition, or inline in older revisions."""
    node: dict[str, Any] = definitions[request]["properties"]["params"]
    return definitions[params] if "$ref" in node else node


def with_agent(name: str, *required: str) -> dict[str, Any]:
    """The definitions of a revision with `agent` before all other params of its requests."""
    definitions = definitions_of(name)
    for request, params in PARAMS:
        node = params_of(definitions, request, params)
        node["properties"] = {"agent": TEXT, **node.get("properties", {})}
        if request in required:
            node["required"] = ["agent", *node.get("required", ())]
    return definitions


@pytest.mark.parametrize("name", NAMES)
def test_a_new_member_of_params_moves_no_argument(name: str, tmp_path: Path) -> None:
    write_package(tmp_path, with_agent(name), more=("completions", "sync"))
    check_program(tmp_path, CALLS)


def test_facts_alone_make_a_required_param_positional(tmp_path: Path) -> None:
    write_package(tmp_path, with_agent(NAMES[-1], "GetPromptRequest"))
    check_program(tmp_path, KEYWORDS)


def test_facts_say_which_params_are_positional(tmp_path: Path) -> None:
    stated = '[methods."tools/call"]\npositional = ["agent", "name", "arguments"]'
    write_package(tmp_path, with_agent(NAMES[-1], "CallToolRequest"), stated=stated)
    check_program(
        tmp_path,
        """
import inspect
from pkg.rdraft.client import Client

names = [*inspect.signature(Client.call_tool).parameters]
assert names[:4] == ["self", "agent", "name", "arguments"], names
""",
    )


ABSENT = f"""{SERVER}
import anyio
from pkg import ClientHandlers, Context, connect

@server.tool()
async def ask(ctx: Context) -> str:
    return (await ctx.elicit("ok?", {{"type": "object", "properties": {{}}}})).action

class Handlers(ClientHandlers):
    async def elicit(self, params, ctx):
        return {{"action": "decline"}}

async def main() -> None:
    async with connect(server, handlers=Handlers()) as client:
        assert (await client.call_tool("add", {{"a": 1}})).data == 2
        prompt = await client.get_prompt("greet", {{"city": "Oslo"}})
        assert prompt.messages[0].content.text == "hi Oslo"
        for _ in range(2):
            assert (await client.read_resource("note://one")).contents[0].text == "one"
            assert [tool.name for tool in await client.list_tools()] == ["add", "ask"]
        assert (await client.call_tool("ask")).content[0].text == "decline"

anyio.run(main)
"""


@pytest.mark.parametrize("optional", [("resultType",), ("resultType", "ttlMs", "cacheScope")])
def test_members_of_results_may_become_optional(optional: tuple[str, ...], tmp_path: Path) -> None:
    definitions = definitions_of(NAMES[-1])
    for node in definitions.values():
        if "required" in node:
            node["required"] = [wire for wire in node["required"] if wire not in optional]
    write_package(tmp_path, definitions, more=("elicitation",))
    check_program(tmp_path, ABSENT)


DEFAULTS = """
import anyio
from pkg import Context, Server, connect

server = Server("sums")

@server.tool()
def add(a: int, ctx: Context) -> str:
    return f"{a + 1} {ctx.request_context.params.agent}"

async def main() -> None:
    async with connect(server) as client:
        texts = [
            (await client.call_tool("add", {"a": 1}, **given)).content[0].text
            for given in ({}, {"agent": None}, {"agent": "other"})
        ]
        assert texts == ["2 ours", "2 ours", "2 other"], texts

anyio.run(main)
"""


@pytest.mark.parametrize("required", [(), ("CallToolRequest",)])
@pytest.mark.parametrize("name", NAMES)
def test_a_stated_default_of_params_is_sent_unless_it_is_given(
    name: str, required: tuple[str, ...], tmp_path: Path
) -> None:
    definitions = with_agent(name, *required)
    owner = "CallToolRequestParams"
    stated = f'[defaults.{owner}]\nagent = "ours"\n'
    write_package(tmp_path, definitions, stated=stated)
    check_program(tmp_path, DEFAULTS)


REFUSED = {
    "[defaults.Annotations]\npriority = 2": "/defaults/Annotations/priority: expected a value of",
    '[defaults."*"]\nttlMs = "many"': "/defaults/*/ttlMs: expected a value of",
    "[defaults.Implementation]\nversoin = '1'": "the nearest being version, got",
    '[defaults."*"]\nttlMss = 1': "expected a member, the nearest being ttlMs",
    '[methods."tools/call"]\npositional = ["nmae"]': (
        "/methods/tools~1call/positional: expected a member of the params of tools/call,"
        " the nearest being name"
    ),
}


@pytest.mark.parametrize("stated", REFUSED)
def test_facts_about_members_have_to_fit_the_schema(stated: str, tmp_path: Path) -> None:
    with pytest.raises(FactsError) as refused:
        write_package(tmp_path, definitions_of(NAMES[-1]), ("types",), stated)
    assert REFUSED[stated] in str(refused.value)


UNIONS = """
import anyio
from pkg import ClientHandlers, Server, connect, connect_sync
from pkg.rdraft import models
from pkg.rdraft.client import ClientHandlers
from pkg.rdraft.server import ServerHandlers, ServerSession

events = []

class Handlers(ServerHandlers):
    async def find(self, params, ctx):
        await ServerSession(ctx).found(models.ById(id=5))
        await ServerSession(ctx).found({"kind": "name", "name": "x"})
        return {"text": f"{params.kind} {getattr(params, 'name', None)}"}

    async def lost(self, params, ctx):
        events.append(params.kind)

class Client(ClientHandlers):
    async def found(self, params, ctx):
        events.append(params.kind)

server = Server("notes", handlers=[Handlers()])

@server.tool()
def add(a: int) -> int:
    return a + 1

async def main() -> None:
    async with connect(server, handlers=Client()) as client:
        for params in ({"kind": "name", "name": "x"}, models.ByName(name="x")):
            result = await client.find(params)
            assert result.text == "name x", result
        assert (await client.call_tool("add", {"a": 1})).data == 2
        assert (await client.call_tool("add", {"a": 1}, agent="x")).data == 2
        assert sorted(events) == ["id", "id", "name", "name"], events
        events.clear()
        await client.lost({"kind": "id", "id": 4})
        await client.lost(models.ByName(name="x"))
        await client.list_tools()

anyio.run(main)
with connect_sync(server) as client:
    assert client.find({"kind": "id", "id": 5}).text == "id None"
    client.lost({"kind": "id", "id": 5})
    client.call_tool("add", {"a": 1})
"""


@pytest.mark.parametrize("name", NAMES)
def test_params_may_be_one_of_several_objects(name: str, tmp_path: Path) -> None:
    definitions = definitions_of(name)
    call = params_of(definitions, "CallToolRequest", "CallToolRequestParams")
    either = any_of("ByName", "ById")
    definitions |= {
        "ByName": obj("kind name", kind=const("name"), name=TEXT),
        "ById": obj("kind id", kind=const("id"), id=COUNT),
        "FindRequest": obj("method params", method=const("items/find"), params=either),
        "FindResult": obj("text", text=TEXT),
        "PlainCall": {**call},
        "AgentCall": {
            **call,
            "properties": {"agent": TEXT, **call["properties"]},
            "required": ["agent", *call["required"]],
        },
    }
    definitions["CallToolRequest"]["properties"]["params"] = any_of("AgentCall", "PlainCall")
    for message, union in (
        ("FindRequest", "ClientRequest"),
        ("FoundNotification", "ServerNotification"),
        ("LostNotification", "ClientNotification"),
    ):
        method = const(f"notifications/{message.lower()}")
        definitions.setdefault(message, obj("method params", method=method, params=either))
        node = definitions.get(union, {"anyOf": []})
        others = node.get("anyOf", [node])
        definitions[union] = {"anyOf": [*others, {"$ref": f"#/$defs/{message}"}]}
    write_package(tmp_path, definitions, more=("sync",))
    check_program(tmp_path, UNIONS)


BOUNDS: dict[str, dict[str, float]] = {
    "at least 1": {"minimum": 1},
    "more than 1": {"exclusiveMinimum": 1},
    "at most 3": {"maximum": 3},
    "less than 3": {"exclusiveMaximum": 3},
    "1 to 3": {"minimum": 1, "maximum": 3},
    "more than 1, less than 3": {"exclusiveMinimum": 1, "exclusiveMaximum": 3},
    "more than 1, at most 3": {"exclusiveMinimum": 1, "maximum": 3},
    "at least 1, less than 3": {"minimum": 1, "exclusiveMaximum": 3},
}


def test_an_error_tells_the_bounds_of_a_number_as_its_schema_states_them(tmp_path: Path) -> None:
    definitions = definitions_of(NAMES[-1])
    for number, bounds in enumerate(BOUNDS.values()):
        definitions[f"Bound{number}"] = obj("x", x={"type": "number", **bounds})
    write_package(tmp_path, definitions, ("types",))
    text = (tmp_path / "pkg" / "rdraft" / "models.py").read_text()
    assert re.findall(r"x: expected (.*), got ", text) == [*BOUNDS]
