"""Structured results on the client: held against the schema that the server listed for the tool."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from kit.live import TEXT
from kit.rules import revisions_holding
from kit.scripted import connect_scripted
from kit.wire import ALL
from mcpgen_runtime import UNSET, RemoteProtocolError

pytestmark = pytest.mark.on_asyncio

VALIDATING = revisions_holding("tools.output-client-validates")
ANY_JSON = revisions_holding("content.structured-null-distinct")

validating = pytest.mark.parametrize("revision", VALIDATING)
any_json = pytest.mark.parametrize("revision", ANY_JSON)

COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def tool_list(schema: Any = ..., *more: str) -> dict[str, Any]:
    """A list of the tool `count` with an output schema, and of others without."""
    tools: list[dict[str, Any]] = [
        {"name": name, "inputSchema": {"type": "object"}} for name in ("count", *more)
    ]
    if schema is not ...:
        tools[0]["outputSchema"] = schema
    return {"tools": tools}


def structured_result(value: Any, **more: Any) -> dict[str, Any]:
    """A result with a structured value."""
    return {**TEXT, "structuredContent": value, **more}


async def refusal(client: Any) -> str:
    """Why the client does not take the next result."""
    with pytest.raises(
        RemoteProtocolError, match=r"^tools/call 'count': structuredContent"
    ) as info:
        await client.call_tool("count")
    return str(info.value)


@pytest.mark.requirement("tools.output-client-validates")
@validating
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (structured_result({"n": "1"}), "n: '1' is not of type 'integer'"),
        (structured_result({"m": 1}), "'n' is a required property"),
        (TEXT, "expected a value"),
    ],
)
async def test_a_result_that_breaks_its_schema_fails_only_its_call(
    revision: str, wrong: Mapping[str, Any], said: str
) -> None:
    right = structured_result({"n": 1})
    async with connect_scripted(revision, tool_list(COUNT), wrong, right) as (client, server):
        await client.list_tools()
        assert said in await refusal(client)
        assert (await client.call_tool("count")).structured_content == {"n": 1}
    assert len(server.asked()) == 3


@validating
async def test_the_refusal_tells_of_results_to_requests_of_others(revision: str) -> None:
    async with connect_scripted(
        revision, tool_list(COUNT), structured_result({"n": "1"}), structured_result({})
    ) as parts:
        client, server = parts
        await client.list_tools()
        assert "gateway" not in await refusal(client)
        await server.say({"jsonrpc": "2.0", "id": 700, "result": structured_result({"n": 2})})
        await anyio.wait_all_tasks_blocked()
        assert "a gateway that sends each response to all of its clients" in await refusal(client)


@pytest.mark.requirement("tools.output-client-validates")
@validating
async def test_results_without_a_listed_schema_are_not_validated(revision: str) -> None:
    odd = structured_result({"n": "odd"})
    failures = structured_result({}, isError=True), {**TEXT, "isError": True}
    answers = (odd, tool_list(COUNT, "other"), odd, *failures, odd, odd, odd)
    async with connect_scripted(revision, *answers) as (client, server):
        before_it_was_listed = await client.call_tool("count")
        assert before_it_was_listed.structured_content == {"n": "odd"}
        await client.list_tools()
        assert (await client.call_tool("other")).structured_content == {"n": "odd"}
        assert [(await client.call_tool("count")).is_error for _ in range(2)] == [True, True]
        raw = await client.request("tools/call", {"name": "count"})  # whoever passes it on
        assert raw.structured_content == {"n": "odd"}
        await refusal(client)
        await server.notify("notifications/tools/list_changed", {})
        assert (await client.call_tool("count")).structured_content == {"n": "odd"}


@pytest.mark.parametrize("revision", [name for name in ALL if name not in VALIDATING])
async def test_an_unknown_output_schema_is_ignored_in_older_revisions(revision: str) -> None:
    async with connect_scripted(revision, tool_list(COUNT), structured_result({})) as (client, _):
        await client.list_tools()
        assert (await client.call_tool("count")).content[0].text == "done"


@validating
async def test_the_schema_that_counts_is_the_one_listed_last(revision: str) -> None:
    listings = (tool_list(COUNT), tool_list({**COUNT, "required": ["m"]}), tool_list())
    given = structured_result({"n": 1})
    answers = [answer for one in listings for answer in (one, given)]
    async with connect_scripted(revision, *answers) as (client, _):
        await client.list_tools()
        await client.call_tool("count")
        await client.list_tools_page()
        assert "'m' is a required property" in await refusal(client)
        await client.list_tools()
        await client.call_tool("count")


@pytest.mark.requirement("tools.client-ref-resolution")
@validating
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "$ref": "https://nowhere.test/s"}, "'https://nowhere.test/s'"),
        ({"type": "object", "properties": {"n": {"$ref": "#/$defs/none"}}}, "'/$defs/none'"),
        ({"type": "object", "$ref": "#"}, "round in circles"),
    ],
    ids=["elsewhere", "nowhere", "circle"],
)
async def test_a_promise_that_cannot_be_read_is_not_taken_for_kept(
    revision: str, schema: Any, said: str
) -> None:
    answers = (tool_list(schema), structured_result({"n": 1}))
    async with connect_scripted(revision, *answers) as (client, _):
        await client.list_tools()
        assert said in await refusal(client)


@validating
async def test_without_the_library_results_are_unchecked_and_warned_of(
    revision: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    odd = structured_result({"n": "odd"})
    nested = {**COUNT, "properties": {"n": {"anyOf": [{"type": "integer"}]}}}
    async with connect_scripted(revision, tool_list(nested), odd, odd) as (client, _):
        with caplog.at_level(logging.WARNING):
            await client.list_tools()
            for _ in range(2):
                assert (await client.call_tool("count")).structured_content == {"n": "odd"}
    (record,) = caplog.records
    assert "pip install jsonschema" in record.getMessage()


@pytest.mark.requirement("content.structured-null-distinct")
@any_json
async def test_null_is_a_value_and_not_the_absence_of_one(revision: str) -> None:
    null = structured_result(None)
    lists = (tool_list({"type": "null"}), tool_list({"type": "string"}))
    answers = (null, TEXT, lists[0], null, TEXT, lists[1], null)
    async with connect_scripted(revision, *answers) as (client, _):
        for value in (None, UNSET):
            assert (await client.call_tool("count")).structured_content is value
        await client.list_tools()
        assert (await client.call_tool("count")).structured_content is None
        assert "expected a value" in await refusal(client)
        await client.list_tools()
        assert "None is not of type 'string'" in await refusal(client)


@pytest.mark.parametrize("revision", [name for name in VALIDATING if name not in ANY_JSON])
async def test_only_objects_may_be_structured_in_older_revisions(revision: str) -> None:
    values: tuple[Any, ...] = (0, "text", [])
    null, others = structured_result(None), [structured_result(value) for value in values]
    answers = (null, *others, structured_result({}), tool_list(COUNT), null)
    async with connect_scripted(revision, *answers) as (client, _):
        assert (await client.call_tool("count")).structured_content is None
        for _ in others:
            with pytest.raises(RemoteProtocolError, match="structuredContent"):
                await client.call_tool("count")
        assert (await client.call_tool("count")).structured_content == {}
        await client.list_tools()
        assert "expected a value" in await refusal(client)


@any_json
@pytest.mark.parametrize("value", [0, 1.5, False, "", [], [None], {}, {"a": None}], ids=str)
async def test_any_json_may_be_structured(revision: str, value: Any) -> None:
    async with connect_scripted(revision, tool_list({}), structured_result(value)) as (client, _):
        await client.list_tools()
        content = (await client.call_tool("count")).structured_content
        assert (type(content), content) == (type(value), value)
