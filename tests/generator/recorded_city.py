"""A server, a client that uses all of it, and traces of both in any revision."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from mcpgen_runtime import Context, ProtocolError, RemoteError, Server, connect
from mcpgen_runtime.client.async_client import ClientHandlers
from mcpgen_runtime.client.listen import ResourceUpdated, ToolsChanged
from mcpgen_runtime.revisions import REVISIONS

ALL = tuple(REVISIONS)
STATELESS = tuple(name for name in ALL if not REVISIONS[name].server_requests)
"""The revisions whose servers ask inside results."""

QUESTIONS = tuple(
    name
    for name in ALL
    if "elicitation/create" in {*REVISIONS[name].server_requests, *REVISIONS[name].input_requests}
)
"""The revisions that can ask the user."""


@dataclass
class Guest:
    """A visitor."""

    name: str
    nights: int = 2


def city(**options: Any) -> Server:
    """A server with one of everything."""
    server = Server(
        "city",
        version="3.1",
        title="The city",
        instructions="Ask for a city.",
        subscribe=True,
        page_size=4,
        capabilities={"experimental": {"com.example/maps": {"zoom": 3}}},
        **options,
    )

    @server.tool()
    def add(a: int, b: int) -> int:
        """The sum of two numbers."""
        return a + b

    @server.tool()
    async def count(to: int, ctx: Context) -> str:
        """Counts, and reports each number."""
        for number in range(1, to + 1):
            await ctx.progress(number, to, f"at {number}")
        return f"counted to {to}"

    @server.tool()
    async def note(text: str, ctx: Context) -> str:
        """Logs a text to the client."""
        await ctx.warning(text, "notes")
        return "noted"

    _add_changes(server)
    _add_resources_and_prompts(server)
    return server


def _add_changes(server: Server) -> None:
    """Add tools that fail, ask, and change the server."""

    @server.tool()
    async def refuse() -> str:
        """Refuses with a JSON-RPC error."""
        raise ProtocolError("not today", code=1050, data={"retry": False})

    @server.tool()
    async def book(ctx: Context) -> str:
        """Asks the user for two visitors, one after the other."""
        first: Any = await ctx.elicit("Who is coming?", Guest)
        second: Any = await ctx.elicit("Who else?", Guest)
        return f"{first.content.name} and {second.content.name}"

    @server.tool()
    async def change() -> str:
        """Adds a tool and takes it away again."""
        server.tool("brief")(refuse)
        server.remove_tool("brief")
        return "changed"

    @server.tool()
    async def update(uri: str) -> str:
        """Announces a change of a resource."""
        server.resource_updated(uri)
        return "updated"

    clock = iter(range(1, 1000))

    @server.tool()
    async def tick() -> str:
        """Answers differently each time."""
        return f"tick {next(clock)}"


def _add_resources_and_prompts(server: Server) -> None:
    @server.resource("city://list")
    def cities() -> str:
        return "Oslo\nPorto"

    @server.resource("city://{name}/weather")
    def weather(name: str) -> str:
        return f"sun in {name}"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Greetings from {name}"

    @server.completion(prompt="greet", argument="name")
    def names(value: str) -> list[str]:
        return [f"{value}lo"]


class Guests(ClientHandlers):
    """Answers questions, each by another name."""

    def __init__(self, *names: str) -> None:
        self._names = iter(names)

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"name": next(self._names)}}


def text_of(result: Any) -> str:
    """The text of a result of a tool."""
    text: str = result.content[0].text
    return text


async def visit(client: Any, *, asks: bool) -> dict[str, Any]:
    """The results of a client that uses all of the server.

    Args:
        client: The client.
        asks: Whether to call the tool that asks the user.
    """
    reports: list[Any] = []
    seen: dict[str, Any] = {"tools": [tool.name for tool in await client.list_tools()]}
    seen["add"] = text_of(await client.call_tool("add", {"a": 1, "b": 2}))
    seen["count"] = text_of(
        await client.call_tool(
            "count", {"to": 3}, on_progress=lambda *report: reports.append(report)
        )
    )
    seen["progress"] = reports
    if client.revision not in STATELESS:
        await client.set_level("info")
    else:
        client.ask_for_logs("info")
    seen["note"] = text_of(await client.call_tool("note", {"text": "rain"}))
    try:
        await client.call_tool("refuse")
    except RemoteError as error:
        seen["refuse"] = (error.code, error.message, error.data)
    seen["resources"] = [each.uri for each in await client.list_resources()]
    seen["read"] = (await client.read_resource("city://Oslo/weather")).contents[0].text
    greeting = await client.get_prompt("greet", {"name": "Oslo"})
    seen["greet"] = greeting.messages[0].content.text
    reference = {"type": "ref/prompt", "name": "greet"}
    params = {"ref": reference, "argument": {"name": "name", "value": "Os"}}
    seen["complete"] = (await client.request("completion/complete", params)).completion.values
    if asks:
        seen["book"] = text_of(await client.call_tool("book"))
    seen["ticks"] = [text_of(await client.call_tool("tick")) for _ in range(2)]
    async with client.listen(tools=True, uris=["city://list"]) as changes:
        await client.call_tool("change")
        seen["changes"] = [type(await anext(changes)) is ToolsChanged]
        await client.call_tool("update", {"uri": "city://list"})
        async for each in changes:
            if isinstance(each, ResourceUpdated):
                seen["updated"] = each.uri
                break
    return seen


EXPECTED: Mapping[str, Any] = {
    "tools": ["add", "count", "note", "refuse", "book", "change", "update", "tick"],
    "add": "3",
    "count": "counted to 3",
    "progress": [(1, 3), (2, 3), (3, 3)],
    "note": "noted",
    "refuse": (1050, "not today", {"retry": False}),
    "resources": ["city://list"],
    "read": "sun in Oslo",
    "greet": "Greetings from Oslo",
    "complete": ["Oslo"],
    "book": "Ann and Bo",
    "ticks": ["tick 1", "tick 2"],
    "changes": [True],
    "updated": "city://list",
}


def expected(seen: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a visit that are there, as they are in any revision."""
    return {name: value for name, value in EXPECTED.items() if name in seen}


def comparable(seen: Mapping[str, Any]) -> dict[str, Any]:
    """A visit without the texts of reports of progress."""
    return {**seen, "progress": [report[:2] for report in seen["progress"]]}


async def record(path: Path, revision: str) -> dict[str, Any]:
    """Write a trace of a visit; returns its results."""
    os.environ["MCP_TRACE"] = str(path)
    handlers: Any = Guests("Ann", "Bo")
    try:
        async with connect(city(), revision=revision, handlers=handlers) as client:
            return await visit(client, asks=revision in QUESTIONS)
    finally:
        del os.environ["MCP_TRACE"]


def record_all(folder: Path) -> dict[str, Path]:
    """Traces of a visit in every revision, by revision."""
    traces = {revision: folder / f"{revision}.jsonl" for revision in ALL}
    for revision, path in traces.items():
        anyio.run(record, path, revision)
    return traces
