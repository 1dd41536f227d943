"""The header fields by which a client over HTTP repeats what its requests are about."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from msgspec import Raw

from kit.http_script import Script, connect_scripted, error, result, tool
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.rules import revision_fixture, revisions_holding
from kit.wire import STREAMABLE, facts, outgoing_message, request
from mcpgen_runtime import REVISIONS, InvalidParamsError
from mcpgen_runtime.transports.http.http_channel import HttpChannel
from mcpgen_runtime.transports.http.http_client import HttpRequests

pytestmark = pytest.mark.processes

WITH_FIELDS = revisions_holding("headers.mcp-method")
revision = revision_fixture(WITH_FIELDS)

MARKED = tool(
    "marked",
    region={"type": "string", "x-mcp-header": "Region"},
    flag={"type": "boolean", "x-mcp-header": "Flag"},
    count={"type": "integer", "x-mcp-header": "Count"},
    plain={"type": "string"},
    a={"type": "object", "properties": {"b": {"type": "string", "x-mcp-header": "Deep"}}},
    b={"type": "string"},
)


def lists(*tools: Mapping[str, Any]) -> Handler:
    """A handler that lists tools."""

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked, tools=list(tools)))

    return handler


def listing(revision: str, *tools: Mapping[str, Any]) -> Script:
    """A server with tools."""
    script = Script(revision)
    script.on["tools/list"] = lists(*tools)
    return script


def params_of(asked: Asked) -> dict[str, str]:
    """The fields that repeat arguments, as they were written."""
    return {name: value for name, value in asked.pairs if name.lower().startswith("mcp-param-")}


@pytest.mark.requirement("headers.mcp-method", "headers.mcp-name", "headers.metadata-on-each-post")
@pytest.mark.requirement("http.version-header-every-post", "http.version-header-matches-body")
async def test_requests_repeat_their_method_and_what_they_are_about(revision: str) -> None:
    async with connect_scripted(Script(revision)) as (client, server):
        await client.list_tools()
        await client.call_tool("echo", {})
        await client.read_resource("x://y/z?q=1")
        await client.get_prompt("greet")
        await client.request("tools/call", Raw(b'{"name": "raw"}'))
    about = [(asked.what, asked.fields.get("mcp-name")) for asked in server.asked]
    assert about == [
        ("server/discover", None),
        ("tools/list", None),
        ("tools/call", "echo"),
        ("resources/read", "x://y/z?q=1"),
        ("prompts/get", "greet"),
        ("tools/call", "raw"),
    ]
    for asked in server.asked:
        assert asked.fields["mcp-method"] == asked.message["method"]
        assert asked.fields["mcp-protocol-version"] == revision
        key = facts(revision).meta.protocol_version
        assert asked.message["params"]["_meta"][key] == revision


async def sent_by_channel(revision: str, message: dict[str, Any]) -> Asked:
    """A message of an extension that no client of the revision sends, as the server saw it."""
    async with HttpServer(Script(revision)) as server, anyio.create_task_group() as tasks:
        channel = HttpChannel(server.url, REVISIONS, HttpRequests())
        tasks.start_soon(channel.run)
        await channel.send(outgoing_message(revision, request(revision, "tools/list")))
        await channel.send(outgoing_message(revision, message))
        await channel.close()
        (asked,) = server.of(message["method"])
    return asked


@pytest.mark.requirement("http.no-core-notifications")
async def test_a_notification_of_an_extension_names_the_revision_too(revision: str) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/own", "params": {}}
    asked = await sent_by_channel(revision, note)
    assert asked.fields["mcp-protocol-version"] == revision


@pytest.mark.requirement("headers.mcp-name-tasks-extension")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_requests_about_a_task_name_it(revision: str, method: str) -> None:
    asked = await sent_by_channel(revision, request(revision, method, {"taskId": "t \u00e4"}))
    assert asked.fields["mcp-method"] == method
    assert asked.fields["mcp-name"] == "=?base64?dCDDpA==?="


@pytest.mark.requirement(
    "headers.mcp-name-encoding",
    "headers.value-encoding",
    "headers.value-base64",
    "headers.value-conversion",
    "headers.sentinel-collision",
    "headers.sentinel-exact",
    "headers.empty-string",
)
@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("us west 1", "us west 1"),
        ("", ""),
        ("Hello, \u4e16\u754c", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
    ],
)
async def test_texts_are_encoded_where_they_must_be(revision: str, text: str, field: str) -> None:
    async with connect_scripted(listing(revision, MARKED)) as (client, server):
        await client.list_tools()
        await client.call_tool("marked", {"region": text})
        await client.get_prompt(text)
    call, prompt = server.of("tools/call", "prompts/get")
    assert params_of(call) == {"Mcp-Param-Region": field}
    assert prompt.fields["mcp-name"] == field
    assert prompt.message["params"]["name"] == text
    assert "x-evil" not in call.fields | prompt.fields


ALL = {"region": "us-west1", "flag": True, "count": -7, "plain": "x"}
MARKED_ARGUMENTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "each once": (ALL, {"Region": "us-west1", "Flag": "true", "Count": "-7"}),
    "that at the very path": ({"a": {"b": "x"}, "b": "y"}, {"Deep": "x"}),
    "the greatest integer": ({"count": 2**53 - 1}, {"Count": "9007199254740991"}),
    "none": ({}, {}),
    "null": ({"region": None}, {}),
    "an empty object": ({"a": {}}, {}),
    "null in place of an object": ({"a": None}, {}),
    "a number in place of an object": ({"a": 1}, {}),
}


@pytest.mark.requirement(
    "headers.param-client-support",
    "headers.param-mirrored",
    "headers.client-construction",
    "headers.value-conversion",
    "headers.param-extraction-path",
    "headers.param-integer-range",
    "tools.x-mcp-header-safe-integers",
    "headers.param-absent-omitted",
    "headers.param-null-omitted",
)
@pytest.mark.parametrize(
    ("arguments", "fields"), MARKED_ARGUMENTS.values(), ids=MARKED_ARGUMENTS.keys()
)
async def test_marked_arguments_leave_as_fields(
    revision: str, arguments: Mapping[str, Any], fields: Mapping[str, str]
) -> None:
    async with connect_scripted(listing(revision, MARKED)) as (client, server):
        await client.list_tools()
        await client.call_tool("marked", arguments)
        await client.get_prompt("marked", {"region": "us"})
    call, prompt = server.of("tools/call", "prompts/get")
    assert params_of(call) == {f"Mcp-Param-{name}": text for name, text in fields.items()}
    names = [name.lower() for name, _ in call.pairs]
    assert len(names) == len(set(names))
    assert call.fields["mcp-name"] == "marked"
    assert call.message["params"]["arguments"] == arguments
    assert params_of(prompt) == {}


@pytest.mark.requirement("headers.param-integer-range", "tools.x-mcp-header-safe-integers")
async def test_an_integer_that_others_would_round_is_not_sent(revision: str) -> None:
    async with connect_scripted(listing(revision, MARKED)) as (client, server):
        await client.list_tools()
        with pytest.raises(InvalidParamsError, match="count: expected an integer"):
            await client.call_tool("marked", {"count": 2**53})
    assert server.of("tools/call") == []


def param_header(name: str, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


TOKEN = "a: x-mcp-header: expected an HTTP token"
TYPE = "a: x-mcp-header: expected type integer, string or boolean"
PLACE = "expected on a property reached through `properties` alone"
NAMES = ["", "a b", "a:b", "a(b", "\u00e9", "a\r\nX", "a\x00", "\t", "a\x7f"]
BAD: list[tuple[dict[str, Any], str]] = [
    *(({"a": param_header(name)}, TOKEN) for name in NAMES),
    ({"a": param_header("A"), "b": param_header("a")}, "'a' is also on a"),
    *(({"a": param_header("A", kind)}, TYPE) for kind in ("number", "object", "array")),
    ({"a": {"oneOf": [param_header("A")]}}, PLACE),
    ({"a": {"type": "array", "items": param_header("A")}}, PLACE),
]


@pytest.mark.requirement(
    "tools.x-mcp-header-not-empty",
    "tools.x-mcp-header-token",
    "tools.x-mcp-header-no-controls",
    "tools.x-mcp-header-unique",
    "tools.x-mcp-header-primitive-types",
    "tools.x-mcp-header-reachable",
)
@pytest.mark.requirement(
    "headers.invalid-tool-excluded",
    "headers.invalid-tool-warning",
    "tools.x-mcp-header-client-rejects",
)
@pytest.mark.parametrize(("properties", "reason"), BAD)
async def test_a_tool_with_a_bad_mark_is_left_out_alone(
    revision: str, properties: Mapping[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad, odd = tool("bad", **properties), tool("odd", a=param_header("A-b_1!"))
    with caplog.at_level(logging.WARNING):
        async with connect_scripted(listing(revision, bad, MARKED, odd)) as (client, _):
            assert [tool.name for tool in await client.list_tools()] == ["marked", "odd"]
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "'bad'" in record.getMessage()
    assert reason in record.getMessage()


@pytest.mark.requirement("headers.mismatch-refresh")
async def test_a_mark_that_came_later_is_learnt_and_the_call_repeated(revision: str) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        if params_of(asked):
            await reply.json(result(asked))
        else:
            code = facts(revision).errors.header_mismatch
            assert code is not None
            await reply.json(error(asked, code, "Mcp-Param-Region is missing"), status=400)

    script = listing(revision, MARKED)
    script.once["tools/list"] = [lists(tool("marked", region={"type": "string"}))]
    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        got = await client.call_tool("marked", {"region": "us"})
        assert got.content[0].text == "done"
    assert server.order()[1:] == ["tools/list", "tools/call", "tools/list", "tools/call"]
    first, second = server.of("tools/call")
    assert first.id != second.id
    assert params_of(second) == {"Mcp-Param-Region": "us"}


@pytest.mark.requirement("headers.names-case-insensitive")
async def test_fields_of_responses_are_read_in_any_case(revision: str) -> None:
    async def shouting(asked: Asked, reply: Reply) -> None:
        body = json.dumps(result(asked)).encode()
        length = str(len(body))
        await reply.head(200, {"cOnTeNt-TyPe": "APPLICATION/JSON", "CONTENT-LENGTH": length})
        await reply.raw(body)

    script = Script(revision)
    script.on["tools/call"] = shouting
    async with connect_scripted(script) as (client, _):
        assert (await client.call_tool("echo", {})).content[0].text == "done"


@pytest.mark.parametrize("revision", [name for name in STREAMABLE if name not in WITH_FIELDS])
async def test_revisions_without_param_headers_repeat_no_argument(revision: str) -> None:
    bad = tool("bad", n=param_header("Bad", "number"))
    async with connect_scripted(listing(revision, MARKED, bad)) as (client, server):
        assert [listed.name for listed in await client.list_tools()] == ["marked", "bad"]
        await client.call_tool("marked", {"region": "north"})
    assert [params_of(asked) for asked in server.of("tools/call")] == [{}]
