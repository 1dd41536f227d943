"""Arguments that parameter headers repeat: declared in the schema, compared with the body."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen_runtime.server.chosen import Server
from package.asgi_client import asgi, fields_of
from package.asgi_stream import Reply
from package.rules import revisions_holding
from package.server.asgi.test_headers import is_mismatch, sentinel
from package.server.asgi.web import Web
from package.wire import request
from requirements import INTERIM

REVISIONS = revisions_holding("headers.param-validated")

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
each = pytest.mark.parametrize("revision", REVISIONS)


async def call(
    web: Web, revision: str, arguments: Any, fields: dict[str, str] | None = None
) -> Reply:
    """Call the tool with parameter headers, given without their prefix."""
    message = request(revision, "tools/call", {"name": "marked", "arguments": arguments})
    given = {f"Mcp-Param-{name}": value for name, value in (fields or {}).items()}
    async with asgi(web.server) as http:
        return await http.post(message, **(fields_of(revision, message) | given))


FITTING: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"region": "us-west1"}, {"Region": "us-west1"}),
    ({"region": "us-west1"}, {"REGION": "us-west1"}),
    ({"region": ""}, {"Region": ""}),
    ({"region": " padded "}, {"Region": sentinel(" padded ")}),
    ({"region": "Hello, \u4e16\u754c"}, {"Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
    ({"region": "line1\nline2"}, {"Region": "=?base64?bGluZTEKbGluZTI=?="}),
    ({"region": "Hello"}, {"Region": "=?base64?SGVsbG8=?="}),
    ({"region": "SGVsbG8="}, {"Region": "SGVsbG8="}),
    ({"region": "=?base64?SGVsbG8="}, {"Region": "=?base64?SGVsbG8="}),
    ({"region": "=?BASE64?SGVsbG8=?="}, {"Region": "=?BASE64?SGVsbG8=?="}),
    ({"region": "=?base64?literal?="}, {"Region": sentinel("=?base64?literal?=")}),
    ({"region": "a"}, {"Region": "  a "}),
    ({"count": 42}, {"Count": "42"}),
    ({"count": 42}, {"Count": "42.0"}),
    ({"count": 42.0}, {"Count": "42"}),
    ({"count": -7}, {"Count": "-7"}),
    ({"count": 9007199254740991}, {"Count": "9007199254740991"}),
    ({"dry": True}, {"Dry": "true"}),
    ({"dry": False}, {"Dry": "false"}),
    ({"deep": {"inner": "here"}}, {"Inner": "here"}),
    ({"region": None}, {}),
    ({"deep": {}}, {}),
    ({"deep": None}, {}),
    ({"plain": "no header"}, {"Plain": "something else"}),
    ({}, {"Unknown": "us\x01west"}),
    ({}, {}),
]


@pytest.mark.requirement(
    "headers.param-not-expected",
    "headers.integer-numeric-compare",
    "headers.sentinel-exact",
    "headers.reader-decodes",
    "headers.body-is-truth",
    "headers.param-statically-reachable",
    "headers.param-integer-range",
)
@each
@pytest.mark.parametrize(("arguments", "fields"), FITTING)
async def test_a_call_whose_fields_repeat_its_arguments_is_served(
    revision: str, arguments: dict[str, Any], fields: dict[str, str]
) -> None:
    web = Web()
    reply = await call(web, revision, arguments, fields)
    told = reply.result["content"][0]["text"]
    if any(value is None for value in arguments.values()):
        assert reply.status == 200  # the schema of this tool takes no null, whatever HTTP says
    else:
        assert (reply.status, told) == (200, "done")
        assert web.called == [arguments]


DIFFERING: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"region": "us-west1"}, {}),
    ({"region": ""}, {}),
    ({"count": 0}, {}),
    ({"dry": False}, {}),
    ({"deep": {"inner": "here"}}, {}),
    ({"region": "us-west1"}, {"Region": "eu"}),
    ({"region": "us-west1"}, {"Region": "US-WEST1"}),
    ({"region": "us-west1"}, {"Region": ""}),
    ({"region": "Hello"}, {"Region": "=?base64?SGVsbG8?="}),
    ({"region": "Hello"}, {"Region": "=?base64?SGVs!!!bG8=?="}),
    ({"region": "Hello"}, {"Region": "=?BASE64?SGVsbG8=?="}),
    ({"region": "=?base64?literal?="}, {"Region": "=?base64?literal?="}),
    ({"region": "us west"}, {"Region": "us\x01west"}),
    ({"region": "\u00fc"}, {"Region": "\u00fc"}),
    ({"region": "a"}, {"Region": "a, a"}),
    ({"count": 42}, {"Count": "43"}),
    ({"count": 42}, {"Count": "4.2e1x"}),
    ({"count": 9007199254740992}, {"Count": "9007199254740993"}),
    ({"count": 1}, {"Count": "true"}),
    ({"dry": True}, {"Dry": "True"}),
    ({"dry": True}, {"Dry": "1"}),
    ({"deep": {"inner": "here"}}, {"Inner": "there"}),
    ({"region": None}, {"Region": "us-west1"}),
    ({}, {"Region": "us-west1"}),
    ({"deep": "flat"}, {"Inner": "flat"}),
    ({"region": ["us"]}, {"Region": "us"}),
]


@pytest.mark.requirement(
    "headers.param-validated",
    "headers.param-omitted-reject",
    "headers.param-invalid-characters",
    "headers.undecodable-base64",
    "headers.values-case-sensitive",
    "headers.mismatch-status-400",
)
@each
@pytest.mark.parametrize(("arguments", "fields"), DIFFERING)
async def test_a_call_whose_fields_say_something_else_is_refused(
    revision: str, arguments: dict[str, Any], fields: dict[str, str]
) -> None:
    web = Web()
    assert is_mismatch(await call(web, revision, arguments, fields))
    assert web.called == []


@each
@pytest.mark.parametrize("arguments", [[], "text", 7])
async def test_arguments_that_are_no_object_are_refused_for_that(
    revision: str, arguments: Any
) -> None:
    web = Web()
    reply = await call(web, revision, arguments)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert web.called == []


@each
async def test_a_tool_that_came_later_has_its_fields_checked_too(revision: str) -> None:
    web = Web()
    message = request(revision, "tools/call", {"name": "later", "arguments": {"at": "noon"}})
    async with asgi(web.server) as http:

        @web.server.tool(
            input_schema={
                "type": "object",
                "properties": {"at": {"type": "string", "x-mcp-header": "At"}},
            }
        )
        async def later(at: str = "") -> str:
            return at

        fields = fields_of(revision, message)
        assert is_mismatch(await http.post(message, **fields))
        assert (await http.post(message, **fields, **{"mcp-param-at": "noon"})).status == 200


MARKED = {"type": "string", "x-mcp-header": "Region"}
TOKEN = "expected an HTTP token"
TYPE = "expected type integer, string or boolean"
PLACE = "expected on a property reached through `properties` alone"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"a": {"type": "string", "x-mcp-header": ""}}, TOKEN),
    ({"a": {"type": "string", "x-mcp-header": "My Region"}}, TOKEN),
    ({"a": {"type": "string", "x-mcp-header": "Region:Primary"}}, TOKEN),
    ({"a": {"type": "string", "x-mcp-header": "R\u00e9gion"}}, TOKEN),
    ({"a": {"type": "string", "x-mcp-header": "Region\r\nX-Evil: 1"}}, TOKEN),
    ({"a": {"type": "string", "x-mcp-header": "Region\x00"}}, TOKEN),
    ({"a": {"type": "string", "x-mcp-header": 7}}, TOKEN),
    ({"a": {"type": "number", "x-mcp-header": "Region"}}, TYPE),
    ({"a": {"type": "array", "x-mcp-header": "Region"}}, TYPE),
    ({"a": {"type": ["string", "null"], "x-mcp-header": "Region"}}, TYPE),
    ({"a": {"type": "array", "items": MARKED}}, PLACE),
    ({"a": {"oneOf": [MARKED]}}, PLACE),
    ({"a": {"else": MARKED}}, PLACE),
    ({"a": MARKED, "b": {"type": "string", "x-mcp-header": "REGION"}}, "is also on a"),
    ({"a": MARKED, "b": {"type": "object", "properties": {"c": MARKED}}}, "is also on a"),
]


@pytest.mark.requirement("headers.interim-name-charset", revisions=INTERIM)
@pytest.mark.parametrize(("properties", "reason"), WRONG)
async def test_a_tool_with_a_mark_that_breaks_a_rule_is_refused(
    properties: Any, reason: str
) -> None:
    async def tool(**arguments: Any) -> str:
        return ""

    with pytest.raises(ValueError, match=reason) as refused:
        Server("s").tool(input_schema={"type": "object", "properties": properties})(tool)
    assert "x-mcp-header" in str(refused.value)
