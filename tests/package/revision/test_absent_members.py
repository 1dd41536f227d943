"""Members that are absent: `None` in Python, nothing on the wire."""

from __future__ import annotations

import importlib
import inspect
import json
from typing import Any

import msgspec
import pytest

from kit.live import live
from kit.scripted import connect_scripted
from kit.wire import ALL, PER_REQUEST
from mcpgen_runtime import Server, decoder, encode
from mcpgen_runtime._wire import STRUCTS, UNSET, fields, to_builtins
from mcpgen_runtime.errors import InvalidParamsError
from mcpgen_runtime.facts import Revision
from mcpgen_runtime.revisions import REVISIONS

pytestmark = pytest.mark.on_asyncio

every = pytest.mark.parametrize("revision", ALL)

TOOL: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}


def defaults_of(revision: Revision) -> dict[str, Any]:
    """The default of each optional member of a revision's models, by type and member."""
    module = importlib.import_module(revision.implementation.__module__)
    kinds: dict[str, Any] = dict(inspect.getmembers(module, inspect.isclass))
    return {
        f"{kind.__name__}.{field.name}": field.default
        for kind in kinds.values()
        if kind.__module__ == module.__name__ and issubclass(kind, STRUCTS)
        for field in fields(kind)
        if field.default is not msgspec.NODEFAULT
    }


@every
def test_only_members_of_any_json_value_tell_absence_from_null(revision: str) -> None:
    defaults = defaults_of(REVISIONS[revision])
    others = {name for name, default in defaults.items() if default is not None}
    assert {defaults[name] for name in others} == {UNSET}
    assert {name.partition(".")[2] for name in others} <= {"data", "structured_content"}


@every
async def test_null_for_an_optional_result_member_counts_as_absent(revision: str) -> None:
    tool = {**TOOL, "description": None, "annotations": None, "_meta": None}
    page = {"tools": [tool], "nextCursor": None, "_meta": None}
    async with connect_scripted(revision, page, page) as (client, _):
        [listed] = await client.list_tools()
        assert listed.description is None
        assert listed == type(listed)(name="a", input_schema={"type": "object"})
        assert to_builtins(await client.list_tools_page())["tools"] == [TOOL]


@every
async def test_null_for_optional_params_is_taken_as_absent(revision: str) -> None:
    server = Server("x")
    server.tool("ping")(lambda: "pong")
    async with live(server, revision) as (client, record):
        called = await client.request("tools/call", {"name": "ping", "arguments": None})
        assert called.content[0].text == "pong"
        listed = await client.request("tools/list", {"cursor": None})
        assert [tool.name for tool in listed.tools] == ["ping"]
    assert [seen["arguments"] for seen in record.sent_as("tools/call")] == [None]


@every
async def test_none_for_an_optional_argument_sends_nothing(revision: str) -> None:
    async with connect_scripted(revision, {"tools": []}, {"content": []}) as (client, server):
        await client.list_tools_page(None)
        await client.call_tool("a", None)
        assert server.asked()[-2:] == [{}, {"name": "a"}]


async def test_none_for_a_required_argument_is_refused() -> None:
    async with connect_scripted("2025-06-18") as (client, _):
        with pytest.raises(InvalidParamsError, match="Expected `str`, got `null`"):
            await client.call_tool(None)


@pytest.mark.parametrize("revision", PER_REQUEST)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"_meta":{},"requestState":"","resultType":"input_required"}', "InputRequiredResult"),
        ('{"resultType":"complete"}', "Result"),
        ('{"content":[],"resultType":"complete"}', "CallToolResult"),
    ],
)
def test_a_result_of_any_request_keeps_its_members(revision: str, text: str, kind: str) -> None:
    models = importlib.import_module(REVISIONS[revision].implementation.__module__)
    result = decoder(models.ServerResult)(text.encode())
    assert type(result).__name__ == kind
    assert json.loads(encode(result)) == json.loads(text)
