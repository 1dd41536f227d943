"""The types of a revision: official examples, absent members, copies, deprecated features."""

from __future__ import annotations

from typing import Any

import pytest

from kit.rules import module_of
from kit.scripted import connect_scripted
from kit.wire import every
from mcpgen_runtime import InvalidParamsError, models, replace

TOOL: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}


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


@every
def test_a_copy_has_the_changed_members_and_the_others(revision: str) -> None:
    tool_class: Any = module_of(revision).Tool
    tool = tool_class(name="a", input_schema={"type": "object"}, description="d")
    copied = replace(tool, name="b", description=None)
    assert type(copied) is type(tool)
    assert (copied.name, copied.description, copied.input_schema) == ("b", None, tool.input_schema)
    assert (tool.name, tool.description) == ("a", "d")


@pytest.mark.parametrize("name", ["structuredContent", "extra"])
def test_a_name_that_is_no_member_is_refused_with_those_that_are(name: str) -> None:
    result = models.CallToolResult(content=[])
    with pytest.raises(TypeError, match=f"^replace: CallToolResult has no member {name}; its mem"):
        replace(result, **{name: 1})
    with pytest.raises(TypeError, match=r"content.*is_error"):
        replace(result, **{"is_error": True, name: 1})
    with pytest.raises(TypeError, match=r"^replace: expected an object of a message, got a dict$"):
        replace({"name": "a"}, name="b")
