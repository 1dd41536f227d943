"""Tools as a client calls and reads them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from kit.live import TEXT, live, text_of
from kit.rules import revisions_holding
from kit.samples import PARAMS
from kit.scripted import connect_scripted
from kit.wire import ALL, every, facts, speaking_to
from mcpgen_runtime import (
    REVISIONS,
    UNSET,
    Hints,
    InvalidParamsError,
    RemoteError,
    RemoteProtocolError,
    Server,
    hints_of,
    to_builtins,
)

pytestmark = pytest.mark.on_asyncio


class Name(StrEnum):
    ECHO = "echo"


@pytest.mark.requirement("tools.call-request-shape")
@every
@pytest.mark.parametrize(
    ("given", "params"),
    [
        (("echo",), {"name": "echo"}),
        (("echo", {}), {"name": "echo", "arguments": {}}),
        (("echo", {"text": "\u00e9", "n": [1, 1.0, None]}), ...),
        (("echo", MappingProxyType({"a": (1, 2)})), {"name": "echo", "arguments": {"a": [1, 2]}}),
        (
            (Name.ECHO, {"deep": [{"a": {}}]}),
            {"name": "echo", "arguments": {"deep": [{"a": {}}]}},
        ),
    ],
    ids=["name alone", "no arguments", "values", "mapping", "deep"],
)
async def test_a_call_names_the_tool_and_has_arguments_as_one_object(
    revision: str, given: tuple[Any, ...], params: Any
) -> None:
    async with connect_scripted(revision, TEXT) as (client, server):
        assert text_of(await client.call_tool(*given)) == "done"
    wanted = {"name": given[0], "arguments": given[1]} if params is ... else params
    assert server.asked() == [wanted]
    assert server.heard[0]["method"] == "tools/call"


BAD_CALLS: list[tuple[Any, ...]] = [
    *((3,), (None,)),
    *(("echo", bad) for bad in ([], [("text", "x")], "x", 3, {3: 4})),
]


@pytest.mark.requirement("tools.call-request-shape")
@every
@pytest.mark.parametrize("given", BAD_CALLS, ids=str)
async def test_a_malformed_call_is_refused_before_it_is_sent(
    revision: str, given: tuple[Any, ...]
) -> None:
    async with connect_scripted(revision, TEXT) as (client, server):
        with pytest.raises(InvalidParamsError, match=r"^tools/call: Expected"):
            await client.call_tool(*given)
        await client.call_tool("echo")
    assert server.asked() == [{"name": "echo"}]


@pytest.mark.requirement("tools.is-error-default-false")
@every
@pytest.mark.parametrize(
    ("more", "failed"),
    [({}, False), ({"isError": False}, False), ({"isError": True}, True)],
    ids=str,
)
async def test_a_result_is_a_success_unless_it_says_otherwise(
    revision: str, more: Mapping[str, Any], failed: bool
) -> None:
    async with connect_scripted(revision, {**TEXT, **more}) as (client, _):
        result = await client.call_tool("echo")
    assert bool(result.is_error) is failed


@pytest.mark.requirement("tools.annotation-defaults")
@pytest.mark.parametrize("revision", revisions_holding("tools.annotation-defaults"))
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, Hints(False, True, False, True)),
        ({}, Hints(False, True, False, True)),
        ({"title": "T", "x": 1}, Hints(False, True, False, True)),
        ({"readOnlyHint": True}, Hints(True, True, False, True)),
        ({"destructiveHint": False}, Hints(False, False, False, True)),
        ({"openWorldHint": False}, Hints(False, True, False, False)),
        ({"idempotentHint": True, "readOnlyHint": False}, Hints(False, True, True, True)),
    ],
)
async def test_hints_that_a_tool_leaves_out_have_their_defaults(
    revision: str, said: Any, meant: Hints
) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    tools = {"tools": [tool if said is None else {**tool, "annotations": said}]}
    async with connect_scripted(revision, tools) as (client, _):
        (listed_tool,) = await client.list_tools()
    assert hints_of(listed_tool) == meant


@pytest.mark.requirement("tools.name-case-sensitive")
@every
async def test_names_are_told_apart_by_case(revision: str) -> None:
    server = Server("cases")
    for name in ("get", "Get"):
        server.tool(name)(lambda name=name: name)
    async with live(server, revision) as (client, _):
        assert [text_of(await client.call_tool(name)) for name in ("Get", "get")] == ["Get", "get"]
    async with speaking_to(server, revision) as end:
        assert (await end.ask("tools/call", {"name": "GET"}))["error"]["code"] == -32602


FEATURES = ("tools/", "resources/", "prompts/", "completion/")


@pytest.mark.requirement("tools.request-meta-required")
@pytest.mark.parametrize("revision", revisions_holding("tools.request-meta-required"))
async def test_every_request_says_what_it_is_judged_by(revision: str) -> None:
    keys = facts(revision).meta
    stated = {keys.protocol_version: revision, keys.client_capabilities: {}}
    methods = [name for name in REVISIONS[revision].client_requests if name.startswith(FEATURES)]
    refusals = [{"error": {"code": -32602, "message": "no"}}] * len(methods)
    async with connect_scripted(revision, *refusals) as (client, server):
        for method in methods:
            with pytest.raises(RemoteError, match="code -32602"):
                await client.request(method, PARAMS[method])
    assert [request["method"] for request in server.heard] == methods
    said = [request["params"]["_meta"] for request in server.heard]
    assert [{key: meta[key] for key in stated} for meta in said] == [stated] * len(methods)


BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": "hello"},
    "image": {"type": "image", "data": "+//+", "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "YWJj", "mimeType": "audio/wav"},
    "resource_link": {"type": "resource_link", "uri": "x://a", "name": "a"},
    "resource": {"type": "resource", "resource": {"uri": "x://a", "text": "hello"}},
}
SINCE = {"audio": "content.audio-shape", "resource_link": "content.resource-link-shape"}
"""The ledger entry that says in which revisions a kind exists, unless it is all."""

KNOWN = [
    (revision, kind)
    for kind in BLOCKS
    for revision in (revisions_holding(SINCE[kind]) if kind in SINCE else ALL)
]
UNKNOWN = [(revision, kind) for revision in ALL for kind in BLOCKS if (revision, kind) not in KNOWN]


async def read(revision: str, block: Any) -> Any:
    """The block as a client reads it in a tool's result; the session has to live on."""
    async with connect_scripted(revision, {"content": [block]}, TEXT) as (client, _):
        try:
            return (await client.call_tool("t")).content[0]
        finally:
            assert text_of(await client.call_tool("t")) == "done"


@pytest.mark.requirement(
    "content.block-type-discriminates", "content.text-shape", "content.image-shape"
)
@pytest.mark.requirement(
    "content.audio-shape", "content.resource-link-shape", "content.embedded-shape"
)
@pytest.mark.requirement("content.unknown-fields-tolerated", "content.annotations-optional")
@pytest.mark.parametrize(("revision", "kind"), KNOWN)
async def test_each_kind_of_block_is_read_as_what_it_is(revision: str, kind: str) -> None:
    annotations = {"audience": ["user", "assistant"], "priority": 0.9}
    block = {**BLOCKS[kind], "annotations": annotations}
    content = await read(revision, {**block, "x": [1]})
    assert content.type == kind
    assert to_builtins(content) == block


@pytest.mark.requirement("content.meta-optional", "content.annotations-last-modified")
@pytest.mark.parametrize(
    ("revision", "kind"),
    [
        (revision, kind)
        for revision, kind in KNOWN
        if revision in revisions_holding("content.meta-optional")
    ],
)
async def test_blocks_keep_their_meta_and_the_text_of_their_dates(revision: str, kind: str) -> None:
    for date in ("2025-01-12T15:00:58Z", "last week"):
        block = {**BLOCKS[kind], "_meta": {"a/b": [1.0]}, "annotations": {"lastModified": date}}
        assert to_builtins(await read(revision, block)) == block


@pytest.mark.requirement("content.embedded-annotations-place")
@pytest.mark.parametrize("revision", revisions_holding("content.embedded-annotations-place"))
async def test_annotations_inside_an_embedded_resource_do_no_harm(revision: str) -> None:
    inner = {"uri": "x://a", "text": "hello", "annotations": {"priority": 0.5}}
    content = await read(revision, {"type": "resource", "resource": inner})
    assert (content.resource.uri, content.resource.text) == ("x://a", "hello")


BAD: dict[str, Any] = {
    "no type": {"text": "hello"},
    "unknown type": {"type": "video", "data": "YWJj", "mimeType": "video/webm"},
    "null type": {"type": None, "text": "hello"},
    "no text": {"type": "text"},
    "null text": {"type": "text", "text": None},
    "no data": {"type": "image", "mimeType": "image/png"},
    "no mimeType": {"type": "image", "data": "YWJj"},
    "neither text nor blob": {"type": "resource", "resource": {"uri": "x://a"}},
    "no uri": {"type": "resource", "resource": {"text": "hello"}},
    "unknown audience": {**BLOCKS["text"], "annotations": {"audience": ["system"]}},
    "audience is no list": {**BLOCKS["text"], "annotations": {"audience": "user"}},
    "priority above 1": {**BLOCKS["text"], "annotations": {"priority": 1.5}},
    "priority below 0": {**BLOCKS["text"], "annotations": {"priority": -1}},
    "text": "hello",
    "null": None,
    "list": [],
}


@pytest.mark.requirement("tools.client-validates-results", "content.block-type-discriminates")
@pytest.mark.requirement("content.text-shape", "content.image-shape", "content.embedded-shape")
@pytest.mark.requirement("content.annotations-audience", "content.annotations-priority")
@every
@pytest.mark.parametrize("block", BAD.values(), ids=BAD)
async def test_a_bad_block_fails_its_call_alone(revision: str, block: Any) -> None:
    with pytest.raises(RemoteProtocolError, match=r"tools/call: result: .*content\[0\]"):
        await read(revision, block)


@pytest.mark.requirement("content.no-audio-2024", "content.no-resource-link-before-2025-06")
@pytest.mark.parametrize(("revision", "kind"), UNKNOWN)
async def test_a_block_of_a_later_revision_is_none_here(revision: str, kind: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"Invalid value '{kind}'"):
        await read(revision, BLOCKS[kind])


@every
async def test_an_unreadable_result_can_still_be_passed_on_raw(revision: str) -> None:
    block = BAD["unknown type"]
    async with connect_scripted(revision, {"content": [BLOCKS["text"]], "x": block}) as (client, _):
        raw = bytes(await client.request_raw("tools/call", {"name": "t"}))
    assert b'"video"' in raw


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
