"""Parameter headers: read from the schemas of tools, sent with calls, corrected after refusals."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest

from kit.live import TEXT, text_of
from kit.rules import revisions_holding
from kit.scripted import ScriptedServer, connect_scripted
from kit.wire import every, facts
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


NAMES: list[Any] = ["a b", "a:b", "a(b", '"a"', "R\u00e9gion", None, 5, []]
CONTROLS = ["\0", "\t", "\n", "\x1f", "\x7f", "\r\nX-Evil: 1"]


RULES: list[tuple[pytest.MarkDecorator, str, list[Any]]] = [
    (
        requirement("headers.param-name-not-empty", revisions=EVERY_REVISION),
        f"{TOKEN}''",
        [schema(a=header(""))],
    ),
    (
        requirement("headers.param-name-token", revisions=EVERY_REVISION),
        TOKEN,
        [schema(a=header(name)) for name in NAMES],
    ),
    (
        requirement("headers.param-name-no-controls", revisions=EVERY_REVISION),
        TOKEN,
        [schema(a=header(text + each)) for each in CONTROLS for text in ("", "Region")],
    ),
    (
        requirement("headers.param-primitive-types", revisions=EVERY_REVISION),
        TYPE,
        [schema(a=header(kind=kind)) for kind in KINDS],
    ),
    (
        requirement("headers.param-no-indirect-paths", revisions=EVERY_REVISION),
        PLACE,
        [*PLACES.values()],
    ),
    (
        requirement("headers.param-name-unique", revisions=EVERY_REVISION),
        "b: x-mcp-header 'REGION' is also on a",
        [schema(a=header("Region"), b=header("REGION"))],
    ),
    (
        requirement("headers.param-name-unique", revisions=EVERY_REVISION),
        "b.c: x-mcp-header 'Region' is also on a",
        [schema(a=header("Region"), b=schema(c=header("Region")))],
    ),
]
WRONG = [
    pytest.param(given, reason, marks=rule) for rule, reason, schemas in RULES for given in schemas
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


@asynccontextmanager
async def connect_mirroring(
    revision: str, *answers: Mapping[str, Any]
) -> AsyncIterator[tuple[Client, ScriptedServer, Any]]:
    """A client whose transport has headers, its scripted server, and the headers of a call."""
    server = ScriptedServer(revision, answers)
    application = ChosenApplication(None, Identity({"name": "tester", "version": "1"}, {}))
    application.mirror_params()
    opening = (Client, server, nullcontext(server), REVISIONS.only(revision), application)
    async with open_session(*opening) as client:
        yield client, server, application.param_headers.headers_for


def methods(server: ScriptedServer) -> list[str]:
    return [request["method"] for request in server.heard]


CITY = schema(
    region=header("Region"),
    n=header("N", "integer"),
    on=header("On", "boolean"),
    a=schema(b=header("B")),
    b={"type": "string"},
)


@marked
@pytest.mark.parametrize("arguments", [{"n": -(2**53)}, {"n": 1.5}, {"region": ["a"]}, {"on": {}}])
async def test_an_argument_that_no_header_can_carry_is_refused(
    revision: str, arguments: Any
) -> None:
    async with connect_mirroring(revision, tool_list(t=CITY)) as (client, _, headers):
        assert headers("t", arguments) == {}
        await client.list_tools()
        with pytest.raises(InvalidParamsError, match=rf"tool 't': {next(iter(arguments))}: "):
            headers("t", arguments)


@pytest.mark.requirement(
    "headers.invalid-tool-excluded",
    "headers.invalid-tool-warning",
    "tools.x-mcp-header-client-rejects",
    "tools.x-mcp-header-warns",
)
@marked
async def test_a_tool_with_a_wrong_mark_is_left_out_and_only_that_one(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    listed = tool_list(bad=PLACES["items"], t=CITY)
    async with connect_mirroring(revision, listed, TEXT) as (client, server, headers):
        for _ in range(2):  # the second time from memory
            assert [tool.name for tool in await client.list_tools()] == ["t"]
            assert [tool.name for tool in (await client.list_tools_page()).tools] == ["t"]
        assert methods(server) == ["tools/list"]
        assert headers("bad", {"a": "x"}) == {}
        assert text_of(await client.call_tool("bad")) == "done"
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "'bad'" in record.getMessage()
    assert "x-mcp-header" in record.getMessage()


@pytest.mark.requirement("headers.other-transports-ignore", "tools.x-mcp-header-ignored-elsewhere")
@every
async def test_param_headers_mean_nothing_without_http(revision: str) -> None:
    bad = schema(a=header(""))
    async with connect_scripted(revision, tool_list(bad=bad)) as (client, _):
        assert [tool.name for tool in await client.list_tools()] == ["bad"]


def error_response(revision: str, code: int | None = None) -> dict[str, Any]:
    """A refusal for wrong headers, or for something else."""
    code = facts(revision).errors.header_mismatch if code is None else code
    return {"error": {"code": code, "message": "headers"}}


@pytest.mark.requirement("headers.mismatch-refresh")
@marked
@pytest.mark.parametrize("raw", [False, True])
async def test_a_tool_never_listed_is_listed_once_its_call_is_refused(
    revision: str, raw: bool
) -> None:
    answers = (error_response(revision), tool_list(t=CITY), TEXT)
    async with connect_mirroring(revision, *answers) as (client, server, _):
        if raw:
            params = {"name": "t", "arguments": {"n": 1}}
            assert b"done" in bytes(await client.request_raw("tools/call", params))
        else:
            assert text_of(await client.call_tool("t", {"n": 1})) == "done"
    assert methods(server) == ["tools/call", "tools/list", "tools/call"]


@pytest.mark.requirement("headers.mismatch-refresh", "headers.mismatch-not-legacy-code")
@marked
async def test_a_call_that_stays_refused_is_an_error(revision: str) -> None:
    twice = (error_response(revision), tool_list(t=CITY), error_response(revision))
    no_list = (error_response(revision), error_response(revision, -32603))
    other = (error_response(revision, -32001),)
    async with connect_mirroring(revision, *twice, *no_list, *other) as (client, server, _):
        for _ in range(3):
            with pytest.raises(RemoteError, match="tools/call: headers"):
                await client.call_tool("t")
    assert methods(server).count("tools/call") == 4


@marked
async def test_without_param_headers_a_refusal_for_them_is_an_error(revision: str) -> None:
    async with connect_scripted(revision, error_response(revision)) as (client, server):
        with pytest.raises(RemoteError):
            await client.call_tool("t")
    assert len(server.heard) == 1


@marked
async def test_param_headers_are_read_from_lists_had_by_wire_name(revision: str) -> None:
    lists = (tool_list(t=CITY), tool_list(t=schema(region=header("Area"))))
    async with connect_mirroring(revision, *lists) as (client, server, headers):
        await client.request("tools/list")
        assert list(headers("t", {"region": "x"})) == ["Mcp-Param-Region"]
        await server.notify("notifications/tools/list_changed", {})
        await client.request_raw("tools/list")
        assert list(headers("t", {"region": "x"})) == ["Mcp-Param-Area"]
