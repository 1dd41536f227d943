"""Arguments of tools in header fields, as they leave a client over HTTP.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters (2026-07-28).
"""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen_runtime.errors import InvalidParamsError
from package.http_script import Script, connect_scripted, error, result, tool
from package.http_server import Asked, Reply
from package.rules import revisions_holding
from package.wire import STREAMABLE, facts

pytestmark = pytest.mark.processes

MARKED = revisions_holding("headers.client-construction")
marked = pytest.mark.parametrize("revision", MARKED)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


REGION = {"type": "string", "x-mcp-header": "Region"}
LEVEL = {"type": "integer", "x-mcp-header": "Level"}
BAD = {"type": "number", "x-mcp-header": "Bad"}


def plan_lists(script: Script, *lists: list[dict[str, Any]]) -> None:
    """Plan lists of tools, one after another."""

    def answer(tools: list[dict[str, Any]]) -> Any:
        async def listed(asked: Asked, reply: Reply) -> None:
            await reply.json(result(asked, tools=tools))

        return listed

    script.once["tools/list"] = [answer(tools) for tools in lists]


def mirrored_fields(asked: Asked) -> dict[str, str]:
    """The fields of a request that repeat arguments, names in lower case."""
    return {name: text for name, text in asked.fields.items() if name.startswith("mcp-param-")}


@pytest.mark.requirement(
    "headers.client-construction",
    "headers.param-absent-omitted",
    "headers.param-null-omitted",
    "headers.value-encoding",
    "headers.invalid-tool-excluded",
)
@marked
async def test_marked_arguments_leave_as_fields_each_once(revision: str) -> None:
    script = Script(revision)
    plan_lists(script, [tool("t", region=REGION, level=LEVEL, note={}), tool("bad", n=BAD)])
    async with connect_scripted(script) as (client, server):
        assert [listed.name for listed in await client.list_tools()] == ["t"]
        for arguments in (
            {"region": "us west", "level": 7, "note": "x"},
            {"region": "a\r\nX-Evil: 1", "level": None},
            {"note": "x"},
        ):
            await client.call_tool("t", arguments)
        calls = server.of("tools/call")
    assert [mirrored_fields(asked) for asked in calls] == [
        {"mcp-param-region": "us west", "mcp-param-level": "7"},
        {"mcp-param-region": "=?base64?YQ0KWC1FdmlsOiAx?="},
        {},
    ]
    assert all("x-evil" not in asked.fields for asked in calls)
    assert [asked.fields["mcp-name"] for asked in calls] == ["t"] * 3
    names = [name.lower() for name, _ in calls[0].pairs]
    assert len(names) == len(set(names))


@pytest.mark.requirement("headers.mismatch-refresh")
@marked
async def test_a_refusal_for_fields_is_solved_by_listing_again(
    revision: str,
) -> None:
    async def refuse(asked: Asked, reply: Reply) -> None:
        code = facts(revision).errors.header_mismatch
        assert code is not None
        await reply.json(error(asked, code), 400)

    script = Script(revision)
    plan_lists(script, [tool("t", region={"type": "string"})], [tool("t", region=REGION)])
    script.once["tools/call"] = [refuse]
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        assert (await client.call_tool("t", {"region": "north"})).content[0].text == "done"
    assert server.order()[1:] == ["tools/list", "tools/call", "tools/list", "tools/call"]
    first, second = server.of("tools/call")
    assert (mirrored_fields(first), mirrored_fields(second)) == ({}, {"mcp-param-region": "north"})


@pytest.mark.requirement("headers.param-integer-range", "tools.x-mcp-header-safe-integers")
@marked
async def test_an_argument_that_no_field_can_carry_is_not_sent_at_all(revision: str) -> None:
    script = Script(revision)
    plan_lists(script, [tool("t", level=LEVEL)])
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        with pytest.raises(InvalidParamsError, match="level"):
            await client.call_tool("t", {"level": 2**53})
        await client.call_tool("t", {"level": 2**53 - 1})
        assert len(server.of("tools/call")) == 1


@pytest.mark.parametrize("revision", [name for name in STREAMABLE if name not in MARKED])
async def test_revisions_without_param_headers_repeat_no_argument(revision: str) -> None:
    script = Script(revision)
    plan_lists(script, [tool("t", region=REGION), tool("bad", n=BAD)])
    async with connect_scripted(script) as (client, server):
        assert [listed.name for listed in await client.list_tools()] == ["t", "bad"]
        await client.call_tool("t", {"region": "north"})
        assert [mirrored_fields(asked) for asked in server.of("tools/call")] == [{}]
