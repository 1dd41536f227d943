"""Parameter headers: read from the schemas of tools, sent with calls, corrected after refusals.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters (2026-07-28).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest

from kit.live import TEXT, text_of
from kit.rules import revisions_holding
from kit.scripted import ScriptedServer, connect_scripted
from kit.wire import ALL, facts
from mcpgen_runtime import REVISIONS, Client, InvalidParamsError, RemoteError
from mcpgen_runtime.client.chosen import ChosenApplication
from mcpgen_runtime.client.client_settings import Identity
from mcpgen_runtime.client.opening import open_session
from mcpgen_runtime.protocol.param_headers import param_headers_of
from requirements import EVERY_REVISION, requirement

pytestmark = pytest.mark.on_asyncio

MARKED = revisions_holding("headers.param-name-token")
marked = pytest.mark.parametrize("revision", MARKED)


def header(name: Any = "Region", kind: Any = "string", **more: Any) -> dict[str, Any]:
    """A marked schema."""
    return {"type": kind, "x-mcp-header": name, **more}


def schema(**properties: Any) -> dict[str, Any]:
    """A schema of an object."""
    return {"type": "object", "properties": properties}


RIGHT = [
    (schema(region=header()), {("region",): "Region"}),
    (
        schema(a=header("A-b_1!~."), n=header("N", "integer"), b=header("B", "boolean"), c={}),
        {("a",): "A-b_1!~.", ("n",): "N", ("b",): "B"},
    ),
    (schema(a=schema(b=header("B")), b=header("A")), {("a", "b"): "B", ("b",): "A"}),
    (schema(**{"x-mcp-header": header("H")}), {("x-mcp-header",): "H"}),
    (schema(**{"x-mcp-header": {"type": "string"}}), {}),
    (
        schema(
            a={"type": "object", "default": header(""), "enum": [header("")], "const": header("")}
        ),
        {},
    ),
    (schema(properties=schema(items=header("P"))), {("properties", "items"): "P"}),
    (schema(a=True), {}),
    ({"type": "object"}, {}),
]


@pytest.mark.requirement("headers.param-statically-reachable", revisions=EVERY_REVISION)
@pytest.mark.parametrize(("given", "expected"), RIGHT)
def test_param_headers_are_read_with_the_path_of_arguments(given: Any, expected: Any) -> None:
    assert param_headers_of(given) == expected


KINDS = ["number", "object", "array", "null", None, ["string", "null"], "strnig"]
PLACES: Mapping[str, Any] = {
    "root": {**header(), "properties": {}},
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


def broken(rule: pytest.MarkDecorator, given: Any, reason: str, id: str) -> Any:
    """A schema that breaks a rule."""
    return pytest.param(given, reason, marks=rule, id=id)


NAMES: list[Any] = [
    "a b",
    "a:b",
    "a/b",
    "a(b",
    "a,b",
    "a@b",
    '"a"',
    "R\u00e9gion",
    "{a}",
    None,
    5,
    True,
    [],
]
CONTROLS = [*map(chr, range(32)), "\x7f", "\r\nX-Evil: 1"]
WRONG = [
    broken(
        requirement("headers.param-name-not-empty", revisions=EVERY_REVISION),
        schema(a=header("")),
        f"{TOKEN}''",
        "empty",
    ),
    *(
        broken(
            requirement("headers.param-name-token", revisions=EVERY_REVISION),
            schema(a=header(name)),
            TOKEN,
            repr(name),
        )
        for name in NAMES
    ),
    *(
        broken(
            requirement("headers.param-name-no-controls", revisions=EVERY_REVISION),
            schema(a=header(text + each)),
            TOKEN,
            repr(text + each),
        )
        for each in CONTROLS
        for text in ("", "Region")
    ),
    *(
        broken(
            requirement("headers.param-primitive-types", revisions=EVERY_REVISION),
            schema(a=header(kind=kind)),
            TYPE,
            repr(kind),
        )
        for kind in KINDS
    ),
    *(
        broken(
            requirement("headers.param-no-indirect-paths", revisions=EVERY_REVISION),
            given,
            PLACE,
            place,
        )
        for place, given in PLACES.items()
    ),
    *(
        broken(
            requirement("headers.param-name-unique", revisions=EVERY_REVISION),
            schema(a=header("Region"), b=schema(c=header(other)) if nested else header(other)),
            f"{'b.c' if nested else 'b'}: x-mcp-header '{other}' is also on a",
            f"twice, {other}, {nested}",
        )
        for other in ("Region", "REGION", "region")
        for nested in (False, True)
    ),
]


@pytest.mark.parametrize(("given", "reason"), WRONG)
def test_a_mark_that_breaks_a_rule_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(ValueError, match="x-mcp-header") as refused:
        param_headers_of(given)
    assert str(refused.value).startswith(reason)
    assert str(refused.value).isprintable()


def test_a_schema_that_is_nested_without_end_is_read() -> None:
    deep: dict[str, Any] = header("Deep")
    for _ in range(5000):
        deep = schema(a=deep)
    assert list(param_headers_of(deep).values()) == ["Deep"]


def tool_list(**tools: Any) -> dict[str, Any]:
    """A list of tools with these input schemas."""
    listed = [{"name": name, "inputSchema": given} for name, given in tools.items()]
    return {"tools": listed, "ttlMs": 60_000, "cacheScope": "private"}


class Mirroring:
    """A client whose transport has headers, and the server that it talks to."""

    def __init__(self, client: Client, server: ScriptedServer, application: ChosenApplication):
        self.client = client
        self.server = server
        self._application = application

    def headers(self, arguments: Mapping[str, Any], tool: str = "t") -> dict[str, str]:
        """Parameter headers of a tool call."""
        return self._application.param_headers.headers_for(tool, arguments)

    def methods(self) -> list[str]:
        """Methods of the requests that the server received."""
        return [request["method"] for request in self.server.heard]


@asynccontextmanager
async def connect_mirroring(revision: str, *answers: Mapping[str, Any]) -> AsyncIterator[Mirroring]:
    """A client whose transport has headers, of a server that gives these answers."""
    server = ScriptedServer(revision, answers)
    application = ChosenApplication(None, Identity({"name": "tester", "version": "1"}, {}))
    application.mirror_params()
    opening = (Client, server, nullcontext(server), REVISIONS.only(revision), application)
    async with open_session(*opening) as client:
        yield Mirroring(client, server, application)


CITY = schema(
    region=header("Region"),
    n=header("N", "integer"),
    on=header("On", "boolean"),
    a=schema(b=header("B")),
    b={"type": "string"},
)
VALUES = [
    ({"region": "us west 1"}, {"Region": "us west 1"}),
    ({"region": ""}, {"Region": ""}),
    ({"region": " padded "}, {"Region": "=?base64?IHBhZGRlZCA=?="}),
    ({"region": "Hello, \u4e16\u754c"}, {"Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
    ({"region": "a\r\nX-Evil: 1"}, {"Region": "=?base64?YQ0KWC1FdmlsOiAx?="}),
    ({"region": "=?base64?literal?="}, {"Region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}),
    ({"n": -7, "on": False}, {"N": "-7", "On": "false"}),
    ({"n": 9007199254740991, "on": True}, {"N": "9007199254740991", "On": "true"}),
    ({"n": 42.0}, {"N": "42"}),
    ({"a": {"b": "x"}, "b": "y"}, {"B": "x"}),
    ({"a": {"c": 1}, "b": "y"}, {}),
    ({"a": "b"}, {}),
    ({"region": None, "n": None, "a": None}, {}),
    ({}, {}),
]


@pytest.mark.requirement(
    "headers.param-extraction-path",
    "headers.param-absent-omitted",
    "headers.param-null-omitted",
    "headers.value-encoding",
    "headers.value-conversion",
    "headers.value-base64",
    "headers.sentinel-collision",
    "headers.empty-string",
    "headers.client-construction",
    "tools.x-mcp-header-reachable",
)
@marked
@pytest.mark.parametrize(("arguments", "expected"), VALUES)
async def test_marked_arguments_become_headers(
    revision: str, arguments: Any, expected: Mapping[str, str]
) -> None:
    prefix = facts(revision).headers.param_prefix
    async with connect_mirroring(revision, tool_list(t=CITY, plain=schema())) as end:
        assert end.headers(arguments) == {}
        await end.client.list_tools()
        assert end.headers(arguments) == {f"{prefix}{name}": v for name, v in expected.items()}
        assert end.headers(arguments, "plain") == end.headers(arguments, "unknown") == {}


@pytest.mark.requirement("headers.param-integer-range", "tools.x-mcp-header-safe-integers")
@marked
@pytest.mark.parametrize(
    "arguments", [{"n": 2**53}, {"n": -(2**53)}, {"n": 1.5}, {"region": ["a"]}, {"on": {}}]
)
async def test_an_argument_that_no_header_can_carry_is_refused(
    revision: str, arguments: Any
) -> None:
    async with connect_mirroring(revision, tool_list(t=CITY)) as end:
        await end.client.list_tools()
        with pytest.raises(InvalidParamsError, match=rf"tool 't': {next(iter(arguments))}: "):
            end.headers(arguments)


@pytest.mark.requirement(
    "headers.invalid-tool-excluded",
    "headers.invalid-tool-warning",
    "tools.x-mcp-header-client-rejects",
    "tools.x-mcp-header-warns",
)
@marked
@pytest.mark.parametrize("given", [*PLACES.values(), schema(a=header("")), schema(a=header("a b"))])
async def test_a_tool_with_a_wrong_mark_is_left_out_and_only_that_one(
    revision: str, given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    given = {**given, "type": "object"}
    async with connect_mirroring(revision, tool_list(bad=given, t=CITY), TEXT) as end:
        with caplog.at_level(logging.WARNING):
            for _ in range(2):  # the second time from memory
                assert [tool.name for tool in await end.client.list_tools()] == ["t"]
                assert [tool.name for tool in (await end.client.list_tools_page()).tools] == ["t"]
        assert end.methods() == ["tools/list"]
        assert end.headers({"a": "x"}, "bad") == {}
        assert text_of(await end.client.call_tool("bad")) == "done"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "'bad'" in record.getMessage()
    assert "x-mcp-header" in record.getMessage()


@pytest.mark.requirement("headers.other-transports-ignore", "tools.x-mcp-header-ignored-elsewhere")
@pytest.mark.parametrize("revision", ALL)
async def test_param_headers_mean_nothing_without_http(revision: str) -> None:
    bad = schema(a=header(""))
    async with connect_scripted(revision, tool_list(bad=bad)) as (client, _):
        assert [tool.name for tool in await client.list_tools()] == ["bad"]


@pytest.mark.parametrize("revision", [name for name in ALL if name not in MARKED])
async def test_in_revisions_without_param_headers_none_are_sent(
    revision: str,
) -> None:
    async with connect_mirroring(revision, tool_list(bad=schema(a=header("")), t=CITY)) as end:
        assert [tool.name for tool in await end.client.list_tools()] == ["bad", "t"]
        assert end.headers({"region": "x"}) == {}


def error_response(revision: str, code: int | None = None) -> dict[str, Any]:
    """A refusal for wrong headers, or for something else."""
    code = facts(revision).errors.header_mismatch if code is None else code
    return {"error": {"code": code, "message": "headers"}}


@pytest.mark.requirement("headers.mismatch-refresh")
@marked
@pytest.mark.parametrize("raw", [False, True])
async def test_a_call_with_outdated_headers_is_retried_with_new_ones(
    revision: str, raw: bool
) -> None:
    older, newer = tool_list(t=schema(n={"type": "integer"})), tool_list(t=CITY)
    async with connect_mirroring(revision, older, error_response(revision), newer, TEXT) as end:
        await end.client.list_tools()
        if raw:
            params = {"name": "t", "arguments": {"n": 1}}
            assert b"done" in bytes(await end.client.request_raw("tools/call", params))
        else:
            assert text_of(await end.client.call_tool("t", {"n": 1})) == "done"
        assert set(end.headers({"n": 1}).values()) == {"1"}
    call, listed = "tools/call", "tools/list"
    assert end.methods() == [listed, call, listed, call]
    first, second = (request for request in end.server.heard if request["method"] == call)
    assert first["id"] != second["id"]
    assert first["params"] == second["params"]


@pytest.mark.requirement("headers.mismatch-refresh")
@marked
async def test_a_tool_never_listed_is_listed_once_its_call_is_refused(
    revision: str,
) -> None:
    async with connect_mirroring(
        revision, error_response(revision), tool_list(t=CITY), TEXT
    ) as end:
        assert text_of(await end.client.call_tool("t", {"n": 1})) == "done"
    assert end.methods() == ["tools/call", "tools/list", "tools/call"]


@pytest.mark.requirement("headers.mismatch-refresh", "headers.mismatch-not-legacy-code")
@marked
async def test_a_call_that_stays_refused_is_an_error(revision: str) -> None:
    twice = (error_response(revision), tool_list(t=CITY), error_response(revision))
    no_list = (error_response(revision), error_response(revision, -32603))
    other = (error_response(revision, -32001),)
    async with connect_mirroring(revision, *twice, *no_list, *other) as end:
        for _ in range(3):
            with pytest.raises(RemoteError, match="tools/call: headers"):
                await end.client.call_tool("t")
    assert end.methods().count("tools/call") == 4


@marked
async def test_without_param_headers_a_refusal_for_them_is_an_error(
    revision: str,
) -> None:
    async with connect_scripted(revision, error_response(revision)) as (client, server):
        with pytest.raises(RemoteError):
            await client.call_tool("t")
    assert len(server.heard) == 1


@marked
async def test_param_headers_are_read_from_lists_had_by_wire_name(revision: str) -> None:
    changed = schema(region=header("Area"))
    async with connect_mirroring(revision, tool_list(t=CITY), tool_list(t=changed)) as end:
        await end.client.request("tools/list")
        assert list(end.headers({"region": "x"})) == ["Mcp-Param-Region"]
        await end.server.notify("notifications/tools/list_changed", {})
        await end.client.request_raw("tools/list")
        assert list(end.headers({"region": "x"})) == ["Mcp-Param-Area"]
