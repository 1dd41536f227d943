"""The header fields by which a client over HTTP repeats what its requests are about."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from msgspec import Raw

from kit import scripted
from kit.http_script import Script, answer_with, connect_scripted, refuse_with, result, tool
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.rules import revision_fixture, revisions_holding
from kit.wire import STREAMABLE, every, facts, outgoing_message, request
from mcpgen_runtime import REVISIONS, InvalidParamsError, RemoteError
from mcpgen_runtime.protocol.param_headers import param_headers_of
from mcpgen_runtime.transports.http.http_channel import HttpChannel
from mcpgen_runtime.transports.http.http_client import HttpRequests
from requirements import requirement

pytestmark = pytest.mark.processes

MISMATCH = -32020
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
    return answer_with(tools=list(tools), ttlMs=60_000, cacheScope="private")


def listing(revision: str, *tools: Mapping[str, Any], **planned: Any) -> Script:
    """A server with tools."""
    return Script(revision, on={"tools/list": lists(*tools)}, **planned)


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
async def test_an_argument_that_no_header_can_carry_is_refused(revision: str) -> None:
    wrong: list[tuple[str, Any]] = [
        *(("count", number) for number in (2**53, -(2**53), 1.5)),
        *(("region", ["a"]), ("flag", {})),
    ]
    async with connect_scripted(listing(revision, MARKED)) as (client, server):
        await client.list_tools()
        for name, value in wrong:
            with pytest.raises(InvalidParamsError, match=rf"tool 'marked': {name}: expected "):
                await client.call_tool("marked", {name: value})
    assert server.of("tools/call") == []


def header(name: Any = "Region", kind: Any = "string", **more: Any) -> dict[str, Any]:
    """A marked schema."""
    return {"type": kind, "x-mcp-header": name, **more}


def schema(**properties: Any) -> dict[str, Any]:
    """A schema of an object."""
    return {"type": "object", "properties": properties}


NO_MARKS = {"type": "object", "default": header(""), "enum": [header("")], "const": header("")}
RIGHT: list[tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = [
    (
        schema(a=header("A-b_1!~."), n=header("N", "integer"), b=header("B", "boolean"), c={}),
        {"a": "x", "n": 1, "b": True, "c": "y"},
        {"A-b_1!~.": "x", "N": "1", "B": "true"},
    ),
    (
        schema(a=schema(b=header("B")), b=header("A")),
        {"a": {"b": "x"}, "b": "y"},
        {"B": "x", "A": "y"},
    ),
    (schema(**{"x-mcp-header": header("H")}), {"x-mcp-header": "x"}, {"H": "x"}),
    (schema(**{"x-mcp-header": {"type": "string"}}), {"x-mcp-header": "x"}, {}),
    (schema(a=NO_MARKS), {"a": "x"}, {}),
    (schema(properties=schema(items=header("P"))), {"properties": {"items": "x"}}, {"P": "x"}),
    (schema(a=True), {"a": "x"}, {}),
    ({"type": "object"}, {"a": "x"}, {}),
]


@pytest.mark.requirement("headers.param-statically-reachable")
@pytest.mark.parametrize(("given", "arguments", "fields"), RIGHT)
async def test_marks_are_read_with_the_path_of_arguments(
    revision: str, given: Any, arguments: dict[str, Any], fields: dict[str, str]
) -> None:
    listed = {"name": "right", "inputSchema": given}
    async with connect_scripted(listing(revision, listed)) as (client, server):
        await client.list_tools()
        await client.call_tool("right", arguments)
    (call,) = server.of("tools/call")
    assert params_of(call) == {f"Mcp-Param-{name}": text for name, text in fields.items()}


def test_a_schema_that_is_nested_without_end_is_read() -> None:
    deep: dict[str, Any] = header("Deep")
    for _ in range(5000):
        deep = schema(a=deep)
    assert list(param_headers_of(deep).values()) == ["Deep"]


KINDS = ["number", "object", "array", "null", None, ["string", "null"], "strnig"]
PLACES: Mapping[str, Any] = {
    "root": header(kind="object", properties={}),
    "items": schema(a={"type": "array", "items": header()}),
    "prefixItems": schema(a={"type": "array", "prefixItems": [header()]}),
    "oneOf": {**schema(), "oneOf": [schema(a=header())]},
    "anyOf": schema(a={"anyOf": [header()]}),
    "allOf": {**schema(), "allOf": [schema(a=header())]},
    "not": {**schema(), "not": schema(a=header())},
    "if": {**schema(), "if": schema(a=header())},
    "then": {**schema(), "then": schema(a=header())},
    "else": {**schema(), "else": schema(a=header())},
    "$ref": {**schema(a={"$ref": "#/$defs/a"}), "$defs": {"a": header()}},
    "definitions": {**schema(), "definitions": {"a": schema(a=header())}},
    "additionalProperties": {**schema(), "additionalProperties": header()},
    "patternProperties": {**schema(), "patternProperties": {"^a": header()}},
    "dependentSchemas": {**schema(), "dependentSchemas": {"a": schema(a=header())}},
    "a keyword of their own": {**schema(), "x-more": [{"deep": header()}]},
}
TOKEN = "a: x-mcp-header: expected an HTTP token, got "
TYPE = "a: x-mcp-header: expected type integer, string or boolean, got "
PLACE = "x-mcp-header 'Region': expected on a property reached through `properties` alone"
NAMES: list[Any] = ["a b", "a:b", "a(b", '"a"', "R\u00e9gion", None, 5, []]
CONTROLS = ["\0", "\t", "\n", "\x1f", "\x7f", "\r\nX-Evil: 1"]
TWICE = schema(a=header("Region"), b=header("REGION"))
TWICE_DEEP = schema(a=header("Region"), b=schema(c=header("Region")))
WRONG = [
    pytest.param(
        f"{TOKEN}''",
        [schema(a=header(""))],
        marks=requirement("headers.param-name-not-empty", "tools.x-mcp-header-not-empty"),
    ),
    pytest.param(
        TOKEN,
        [schema(a=header(name)) for name in NAMES],
        marks=requirement("headers.param-name-token", "tools.x-mcp-header-token"),
    ),
    pytest.param(
        TOKEN,
        [schema(a=header(text + each)) for each in CONTROLS for text in ("", "Region")],
        marks=requirement("headers.param-name-no-controls", "tools.x-mcp-header-no-controls"),
    ),
    pytest.param(
        TYPE,
        [schema(a=header(kind=kind)) for kind in KINDS],
        marks=requirement("headers.param-primitive-types", "tools.x-mcp-header-primitive-types"),
    ),
    pytest.param(
        PLACE,
        [*PLACES.values()],
        marks=requirement("headers.param-no-indirect-paths", "tools.x-mcp-header-reachable"),
    ),
    *(
        pytest.param(
            reason,
            [twice],
            marks=requirement("headers.param-name-unique", "tools.x-mcp-header-unique"),
        )
        for reason, twice in (
            ("b: x-mcp-header 'REGION' is also on a", TWICE),
            ("b.c: x-mcp-header 'Region' is also on a", TWICE_DEEP),
        )
    ),
]


@pytest.mark.requirement(
    "headers.invalid-tool-excluded",
    "headers.invalid-tool-warning",
    "tools.x-mcp-header-client-rejects",
    "tools.x-mcp-header-warns",
)
@pytest.mark.parametrize(("reason", "schemas"), WRONG)
async def test_a_tool_with_a_wrong_mark_is_left_out_and_only_that_one(
    revision: str, reason: str, schemas: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    wrong = [{"name": f"bad {at}", "inputSchema": each} for at, each in enumerate(schemas)]
    async with connect_scripted(listing(revision, *wrong, MARKED)) as (client, server):
        with caplog.at_level(logging.WARNING):
            for _ in range(2):  # the second time from memory
                assert [tool.name for tool in await client.list_tools()] == ["marked"]
                assert len((await client.list_tools_page()).tools) == 1
        assert (await client.call_tool("bad 0", {"a": "x"})).content[0].text == "done"
    assert len(server.of("tools/list")) == 1
    assert params_of(server.of("tools/call")[0]) == {}
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == len(wrong)
    for each, shown in zip(wrong, warnings, strict=True):
        assert repr(each["name"]) in shown
        assert reason in shown
        assert shown.isprintable()


@pytest.mark.requirement("headers.other-transports-ignore", "tools.x-mcp-header-ignored-elsewhere")
@every
async def test_param_headers_mean_nothing_without_http(revision: str) -> None:
    bad = {"tools": [tool("bad", a=header(""))], "ttlMs": 0, "cacheScope": "private"}
    refusal = {"error": {"code": MISMATCH, "message": "headers"}}
    async with scripted.connect_scripted(revision, bad, refusal) as (client, server):
        assert [tool.name for tool in await client.list_tools()] == ["bad"]
        with pytest.raises(RemoteError):
            await client.call_tool("bad")
    assert len(server.heard) == 2


@pytest.mark.requirement("headers.mismatch-refresh")
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("known", [False, True])
async def test_a_mark_that_came_later_is_learnt_and_the_call_repeated(
    revision: str, raw: bool, known: bool
) -> None:
    earlier = [lists(tool("marked", region={"type": "string"}))] * known
    once = {"tools/list": earlier, "tools/call": [refuse_with(MISMATCH)]}
    script = listing(revision, MARKED, once=once)
    arguments = {"region": "us"}
    async with connect_scripted(script) as (client, server):
        if known:
            await client.list_tools()
        if raw:
            params = {"name": "marked", "arguments": arguments}
            assert b"done" in bytes(await client.request_raw("tools/call", params))
        else:
            assert (await client.call_tool("marked", arguments)).content[0].text == "done"
    listed = ["tools/list"] * known
    assert server.order()[1:] == [*listed, "tools/call", "tools/list", "tools/call"]
    first, second = server.of("tools/call")
    assert first.id != second.id
    assert [params_of(each) for each in (first, second)] == [{}, {"Mcp-Param-Region": "us"}]


@pytest.mark.requirement("headers.mismatch-refresh", "headers.mismatch-not-legacy-code")
async def test_a_call_that_stays_refused_is_an_error(revision: str) -> None:
    refusals = [refuse_with(code, message="headers") for code in (*[MISMATCH] * 3, -32001)]
    again = [lists(MARKED), refuse_with(-32603)]
    script = listing(revision, MARKED, once={"tools/call": refusals, "tools/list": again})
    async with connect_scripted(script) as (client, server):
        for _ in range(3):
            with pytest.raises(RemoteError, match="tools/call: headers"):
                await client.call_tool("marked")
    assert len(server.of("tools/call")) == 4
    assert script.once == {"tools/call": [], "tools/list": []}


async def test_marks_are_read_from_lists_had_by_wire_name(revision: str) -> None:
    once = {"tools/list": [lists(MARKED)]}
    script = listing(revision, tool("marked", region=header("Area")), once=once)
    async with connect_scripted(script) as (client, server):
        for ask in (client.request, client.request_raw):
            await ask("tools/list")
            await client.call_tool("marked", {"region": "x"})
    names = [list(params_of(asked)) for asked in server.of("tools/call")]
    assert names == [["Mcp-Param-Region"], ["Mcp-Param-Area"]]


@pytest.mark.requirement("headers.names-case-insensitive")
async def test_fields_of_responses_are_read_in_any_case(revision: str) -> None:
    async def shouting(asked: Asked, reply: Reply) -> None:
        body = json.dumps(result(asked)).encode()
        length = str(len(body))
        await reply.head(200, {"cOnTeNt-TyPe": "APPLICATION/JSON", "CONTENT-LENGTH": length})
        await reply.raw(body)

    async with connect_scripted(Script(revision, on={"tools/call": shouting})) as (client, _):
        assert (await client.call_tool("echo", {})).content[0].text == "done"


@pytest.mark.parametrize("revision", [name for name in STREAMABLE if name not in WITH_FIELDS])
async def test_revisions_without_param_headers_repeat_no_argument(revision: str) -> None:
    bad = tool("bad", n=header("Bad", "number"))
    async with connect_scripted(listing(revision, MARKED, bad)) as (client, server):
        assert [listed.name for listed in await client.list_tools()] == ["marked", "bad"]
        await client.call_tool("marked", {"region": "north"})
    assert [params_of(asked) for asked in server.of("tools/call")] == [{}]
