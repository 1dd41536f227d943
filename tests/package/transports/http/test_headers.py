"""The header fields by which a client over HTTP repeats what its requests are about."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from typing import Any

import anyio
import msgspec
import pytest

from mcpgen_runtime._wire import convert
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.errors import InvalidParamsError
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.transports.http.http_channel import HttpChannel
from mcpgen_runtime.transports.http.http_client import HttpRequests
from mcpgen_runtime.transports.http.request_fields import request_fields
from package.http_script import Script, connect_scripted, error, result, tool
from package.http_server import Asked, HttpServer, Reply
from package.rules import revisions_holding
from package.wire import encode_message, facts, meta_of, outgoing_message, request
from requirements import requirement

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture(params=revisions_holding("headers.mcp-method"))
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


MARKED = tool(
    "marked",
    region={"type": "string", "x-mcp-header": "Region"},
    flag={"type": "boolean", "x-mcp-header": "Flag"},
    count={"type": "integer", "x-mcp-header": "Count"},
    plain={"type": "string"},
    a={"type": "object", "properties": {"b": {"type": "string", "x-mcp-header": "Deep"}}},
    b={"type": "string"},
)


def list_handler(*tools: Mapping[str, Any]) -> Any:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked, tools=list(tools)))

    return handler


def params_of(asked: Asked) -> dict[str, str]:
    """The fields that repeat arguments, as they were written."""
    return {name: value for name, value in asked.pairs if name.lower().startswith("mcp-param-")}


async def call_marked_tool(revision: str, arguments: Mapping[str, Any]) -> Asked:
    """The call of the marked tool with some arguments, as the server saw it."""
    script = Script(revision)
    script.on["tools/list"] = list_handler(MARKED)
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        await client.call_tool("marked", arguments)
    return server.of("tools/call")[0]


@pytest.mark.requirement("headers.mcp-method", "headers.mcp-name", "headers.metadata-on-each-post")
async def test_requests_repeat_their_method_and_what_they_are_about(revision: str) -> None:
    async with connect_scripted(Script(revision)) as (client, server):
        await client.list_tools()
        await client.call_tool("echo", {})
        await client.read_resource("x://y/z?q=1")
        await client.get_prompt("greet")
    about = {asked.what: asked.fields.get("mcp-name") for asked in server.asked}
    assert about == {
        "server/discover": None,
        "tools/list": None,
        "tools/call": "echo",
        "resources/read": "x://y/z?q=1",
        "prompts/get": "greet",
    }
    for asked in server.asked:
        assert asked.fields["mcp-method"] == asked.message["method"]
        assert asked.fields["mcp-protocol-version"] == revision


@pytest.mark.requirement("headers.mcp-name-encoding", "headers.sentinel-exact")
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("wetter-m\u00fcnchen", None),
        (" padded ", None),
        ("a\r\nX-Evil: 1", None),
        ("=?base64?literal?=", None),
        ("=?BASE64?literal?=", "=?BASE64?literal?="),
        ("=?base64?literal", "=?base64?literal"),
        ("plain name", "plain name"),
    ],
)
async def test_a_name_that_is_no_safe_header_is_encoded(
    revision: str, name: str, header: str | None
) -> None:
    async with connect_scripted(Script(revision)) as (client, server):
        await client.call_tool(name, {})
        await client.read_resource(f"x://{name}")
    (call,) = server.of("tools/call")
    encoded = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    assert call.fields["mcp-name"] == (encoded if header is None else header)
    assert "x-evil" not in call.fields
    assert call.message["params"]["name"] == name


@pytest.mark.requirement(
    "headers.param-client-support",
    "headers.param-mirrored",
    "headers.client-construction",
    "headers.value-conversion",
)
async def test_marked_arguments_are_repeated_each_once(revision: str) -> None:
    arguments = {"region": "us-west1", "flag": True, "count": -7, "plain": "x"}
    asked = await call_marked_tool(revision, arguments)
    assert params_of(asked) == {
        "Mcp-Param-Region": "us-west1",
        "Mcp-Param-Flag": "true",
        "Mcp-Param-Count": "-7",
    }
    names = [name.lower() for name, _ in asked.pairs]
    assert len(names) == len(set(names))
    assert asked.fields["mcp-name"] == "marked"
    assert asked.message["params"]["arguments"] == arguments


@pytest.mark.requirement("headers.param-extraction-path")
async def test_the_argument_at_the_very_path_is_repeated(revision: str) -> None:
    asked = await call_marked_tool(revision, {"a": {"b": "x"}, "b": "y"})
    assert params_of(asked) == {"Mcp-Param-Deep": "x"}


@pytest.mark.requirement("headers.param-absent-omitted", "headers.param-null-omitted")
@pytest.mark.parametrize("arguments", [{}, {"region": None}, {"a": {}}, {"a": None}, {"a": 1}])
async def test_absent_and_null_parameters_have_no_header(
    revision: str, arguments: Mapping[str, Any]
) -> None:
    assert params_of(await call_marked_tool(revision, arguments)) == {}


@pytest.mark.requirement(
    "headers.value-encoding",
    "headers.value-base64",
    "headers.value-conversion",
    "headers.sentinel-collision",
    "headers.sentinel-exact",
    "headers.empty-string",
)
@pytest.mark.parametrize(
    ("value", "header"),
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
async def test_values_are_encoded_where_they_must_be(
    revision: str, value: str, header: str
) -> None:
    asked = await call_marked_tool(revision, {"region": value})
    assert params_of(asked) == {"Mcp-Param-Region": header}
    assert "x-evil" not in asked.fields


@pytest.mark.requirement("headers.param-integer-range")
async def test_an_integer_that_others_would_round_is_not_sent(revision: str) -> None:
    asked = await call_marked_tool(revision, {"count": 2**53 - 1})
    assert params_of(asked) == {"Mcp-Param-Count": "9007199254740991"}
    with pytest.raises(InvalidParamsError, match="count: expected an integer"):
        await call_marked_tool(revision, {"count": 2**53})


def param_header(name: str, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


not_empty = requirement("tools.x-mcp-header-not-empty")
token = requirement("tools.x-mcp-header-token")
no_controls = requirement("tools.x-mcp-header-no-controls")
unique = requirement("tools.x-mcp-header-unique")
primitive = requirement("tools.x-mcp-header-primitive-types")
reachable = requirement("tools.x-mcp-header-reachable")
TOKEN = "a: x-mcp-header: expected an HTTP token"
TYPE = "a: x-mcp-header: expected type integer, string or boolean"
PLACE = "expected on a property reached through `properties` alone"
BAD = [
    pytest.param({"a": param_header("")}, TOKEN, marks=not_empty),
    *(
        pytest.param({"a": param_header(name)}, TOKEN, marks=token)
        for name in ("a b", "a:b", "a(b", "\u00e9")
    ),
    *(
        pytest.param({"a": param_header(name)}, TOKEN, marks=no_controls)
        for name in ("a\r\nX", "a\x00", "\t", "a\x7f")
    ),
    pytest.param(
        {"a": param_header("A"), "b": param_header("a")}, "'a' is also on a", marks=unique
    ),
    *(
        pytest.param({"a": param_header("A", kind)}, TYPE, marks=primitive)
        for kind in ("number", "object", "array")
    ),
    pytest.param({"a": {"oneOf": [param_header("A")]}}, PLACE, marks=reachable),
    pytest.param({"a": {"type": "array", "items": param_header("A")}}, PLACE, marks=reachable),
]


@pytest.mark.requirement(
    "headers.invalid-tool-excluded",
    "headers.invalid-tool-warning",
    "tools.x-mcp-header-client-rejects",
)
@pytest.mark.parametrize(("properties", "reason"), BAD)
async def test_a_tool_with_a_bad_mark_is_left_out_alone(
    revision: str,
    properties: Mapping[str, Any],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = tool("bad", **properties)
    script = Script(revision)
    script.on["tools/list"] = list_handler(bad, MARKED, tool("odd", a=param_header("A-b_1!")))
    with caplog.at_level(logging.WARNING):
        async with connect_scripted(script) as (client, _):
            assert [tool.name for tool in await client.list_tools()] == ["marked", "odd"]
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "'bad'" in record.getMessage()
    assert reason in record.getMessage()


@pytest.mark.requirement("headers.mismatch-refresh")
async def test_a_mark_that_came_later_is_learnt_and_the_call_repeated(revision: str) -> None:
    code = facts(revision).errors.header_mismatch
    assert code is not None
    script = Script(revision)
    script.once["tools/list"] = [list_handler(tool("marked", region={"type": "string"}))]
    script.on["tools/list"] = list_handler(MARKED)

    async def call(asked: Asked, reply: Reply) -> None:
        if params_of(asked):
            await reply.json(result(asked))
        else:
            await reply.json(error(asked, code, "Mcp-Param-Region is missing"), status=400)

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


@pytest.mark.requirement("headers.mcp-name-tasks-extension")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_requests_about_a_task_name_it(revision: str, method: str) -> None:
    async with HttpServer(Script(revision)) as server:
        channel = HttpChannel(server.url, REVISIONS, HttpRequests())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.run)
            await channel.send(
                outgoing_message(revision, request(revision, method, {"taskId": "t \u00e4"}))
            )
            await channel.close()
    (asked,) = server.of(method)
    assert asked.fields["mcp-method"] == method
    assert asked.fields["mcp-name"] == "=?base64?dCDDpA==?="


@pytest.mark.parametrize(("method", "repeated"), [("tools/call", True), ("prompts/get", False)])
def test_parameter_headers_repeat_arguments_of_tools_alone(
    revision: str, method: str, repeated: bool
) -> None:
    params = {"name": "both", "arguments": {"region": "us"}}
    message = outgoing_message(revision, request(revision, method, params))
    fields = request_fields(message, lambda name, arguments: {"X-Region": "us"})
    assert ("X-Region" in fields) is repeated


def forms_of_params(revision: str) -> list[Any]:
    """The params of one call in each form that a channel is given."""
    wire = {"name": "both", "arguments": {"region": "us"}, "_meta": meta_of(revision)}
    params = REVISIONS[revision].client_requests["tools/call"].params
    return [wire, msgspec.Raw(encode_message(wire)), convert(wire, params)]


@pytest.mark.parametrize("form", range(3), ids=["object", "json", "struct"])
def test_headers_come_from_params_without_parsing_the_message(revision: str, form: int) -> None:
    message = OutgoingMessage(
        b"no JSON",
        "request",
        1,
        "tools/call",
        REVISIONS[revision],
        None,
        forms_of_params(revision)[form],
    )
    fields = request_fields(message, lambda name, arguments: dict(arguments))
    assert {"both", "us"} <= set(fields.values())
