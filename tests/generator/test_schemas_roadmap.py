"""Plans of the specification, as edits of the newest revision: they work, and ask for facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.draft_packages import check_program, write_package
from generator.futures import NAMES, PLANS, change_revision
from mcpgen.errors import SchemaError

NEWEST = NAMES[-1]

TOGETHER = {
    "lists and events": ("not modified", "events", "a streamed list"),
    "tool output": ("tool output",),
}
"""Plans that are parts of one draft, of which the last one asks for facts."""

SERVERS = {
    "lists and events": """
from pkg import Server
from pkg.rdraft.server import ServerHandlers, ServerSession

SAME = {"resultType": "not_modified", "etag": "v1"}
FRESH = {"ttlMs": 0, "cacheScope": "private"}

class Handlers(ServerHandlers):
    async def read_resource(self, params, ctx):
        contents = {"contents": [{"uri": params.uri, "text": "one"}], "etag": "v1", **FRESH}
        return SAME if params.if_none_match == "v1" else contents

    async def list_tools(self, params, ctx):
        tools = [{"name": "add", "inputSchema": {"type": "object"}}]
        page = {"tools": tools, "etag": "v1", **FRESH}
        return SAME if params.if_none_match == "v1" else page

    async def list_events(self, params, ctx):
        return {"events": [{"name": "rain"}], **FRESH}

    async def subscribe_event(self, params, ctx):
        await ServerSession(ctx).event(name=params.name, data={"filter": params.filter})
        return {}

    async def list_resources(self, params, ctx):
        for name in ("a", "b"):
            resources = [{"uri": f"note://{name}", "name": name}]
            await ServerSession(ctx).resources_listed(resources=resources)
        return FRESH

server = Server("plans", handlers=[Handlers()])

@server.tool()
def add(a: int) -> int:
    return a + 1
""",
    "tool output": """
from pkg import Server
from pkg.rdraft.server import ServerHandlers

class Handlers(ServerHandlers):
    async def list_tools(self, params, ctx):
        tools = [{"name": "add", "inputSchema": {"type": "object"}}]
        return {"tools": tools, "ttlMs": 0, "cacheScope": "private"}

    async def call_tool(self, params, ctx):
        value = params.arguments["a"] + 1
        return {"output": [{"type": "json", "value": value}, {"type": "text", "text": "done"}]}

server = Server("plans", handlers=[Handlers()])
""",
}

CLIENTS = {
    "lists and events": """
    first = await client.read_resource("note://one")
    assert (first.contents[0].text, first.etag) == ("one", "v1"), first
    again = await client.read_resource("note://one", if_none_match="v1")
    assert (again.result_type, again.etag) == ("not_modified", "v1"), again
    page = await client.list_tools_page(None)
    assert (page.tools[0].name, page.etag) == ("add", "v1"), page
    page = await client.list_tools_page(if_none_match="v1")
    assert page.result_type == "not_modified", page
    assert [tool.name for tool in await client.list_tools()] == ["add"]
    with pytest.raises(RemoteProtocolError, match="expected a page with tools, got NotModified"):
        await client.list_tools(if_none_match="v1")
    assert (await client.call_tool("add", {"a": 1})).data == 2
    (event,) = await client.list_events()
    assert event.name == "rain", event
    await client.subscribe_event(name="rain", filter="heavy")
    await client.list_resources()
    (rain, *listed) = events
    assert (rain.name, rain.data) == ("rain", {"filter": "heavy"}), events
    assert [each.resources[0].uri for each in listed] == ["note://a", "note://b"], events
""",
    "tool output": """
    result = await client.call_tool("add", {"a": 1})
    assert [each.type for each in result.output] == ["json", "text"], result
    assert (result.output[0].value, result.output[1].text) == (2, "done"), result
    assert [tool.name for tool in await client.list_tools()] == ["add"]
""",
}

CLIENT = """
import sys
import anyio
import pytest
from pkg import connect
from pkg.errors import RemoteProtocolError
from pkg.rdraft.client import ClientHandlers
from plans import server

events = []

class Handlers(ClientHandlers):
    async def event(self, params, ctx):
        events.append(params)

    async def resources_listed(self, params, ctx):
        events.append(params)

async def use(client) -> None:
    {body}

async def main() -> None:
    for target in (server, [sys.executable, "plans.py"]):
        events.clear()
        async with connect(target, handlers=Handlers()) as client:
            await use(client)

anyio.run(main)
"""

STATED = {
    "tool output": (
        "/CallToolResult: expected content, an array in which packages write and read",
        '[methods."tools/call"]\nruns_tool = false',
    ),
    "lists and events": (
        "/ListResourcesResult: expected resources, which packages read and write",
        '[methods]\n"resources/list" = false',
    ),
}
"""By name, the error at generation, and the facts that it asks for."""


@pytest.mark.parametrize("name", TOGETHER)
def test_plans_of_the_specification_work_from_end_to_end(name: str, tmp_path: Path) -> None:
    draft = change_revision(NEWEST, [])
    *others, last = TOGETHER[name]
    for plan in others:
        PLANS[plan](draft)
    write_package(tmp_path, draft.definitions)
    PLANS[last](draft)
    expected, stated = STATED[name]
    write_package(tmp_path, draft.definitions, ("types",))
    with pytest.raises(SchemaError) as refused:
        write_package(tmp_path, draft.definitions)
    for text in (expected, *stated.replace("[", "").replace("]", "").replace("\n", " ").split()):
        assert text in str(refused.value)
    write_package(tmp_path, draft.definitions, stated=stated)
    main = '\nif __name__ == "__main__":\n    server.run()\n'
    (tmp_path / "plans.py").write_text(SERVERS[name] + main)
    check_program(tmp_path, CLIENT.replace("{body}", CLIENTS[name].strip()))
