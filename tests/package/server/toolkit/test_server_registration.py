"""Registrations that a server refuses, and the errors it raises."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
import pytest

from kit.wire import PER_REQUEST, speaking_to
from mcpgen_runtime import MissingExtraError, Server
from requirements import EVERY_REVISION

pytestmark = pytest.mark.on_asyncio


def fresh() -> Server:
    return Server("fresh", "1")


def plain() -> str:
    return "x"


@pytest.mark.requirement(
    "tools.name-length", "tools.name-charset", "tools.name-no-special", revisions=EVERY_REVISION
)
@pytest.mark.parametrize("name", ["", "x" * 129, "a/b", "\u00e9"])
def test_another_tool_name_is_refused(name: str) -> None:
    fresh().tool("x" * 122 + "Aa1_-.")(plain)
    with pytest.raises(ValueError, match="expected a name of 1 to 128 letters"):
        fresh().tool(name)(plain)


@pytest.mark.requirement(
    "tools.name-unique", "resources.uri-unique", "prompts.name-required", revisions=EVERY_REVISION
)
def test_a_name_is_registered_once_and_removed_where_it_is() -> None:
    server = fresh()
    server.tool("Get")(plain)
    for kind, name, add, remove in (
        ("tool", "get", server.tool, server.remove_tool),
        ("resource", "x://a", server.resource, server.remove_resource),
        ("prompt", "p", server.prompt, server.remove_prompt),
    ):
        with pytest.raises(LookupError, match=f"there is no .* '{name}'"):
            remove(name)
        add(name)(plain)
        with pytest.raises(ValueError, match=f"{kind} '{name}' is registered already"):
            add(name)(plain)
    with pytest.raises(ValueError, match="expected a name"):
        server.prompt(" ")(plain)
    with pytest.raises(TypeError, match="prompt 'open': expected arguments with names, got "):
        server.prompt("open")(lambda **arguments: "text")


@pytest.mark.requirement(
    "tools.input-schema-root-object", "tools.input-schema-not-null", revisions=EVERY_REVISION
)
@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"type": "string"}, "expected a JSON Schema with type \"object\", got type 'string'"),
        ({}, 'expected a JSON Schema with type "object", got {}'),
        ([], "got \\[\\]"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "not a JSON Schema"),
        ({"type": "object", "$schema": "https://example.com/mine"}, "dialect that is known"),
    ],
)
def test_an_input_schema_that_is_none_is_refused(schema: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        fresh().tool(input_schema=schema)(plain)


def test_an_input_schema_and_its_function_have_to_agree() -> None:
    def takes_a(a: int) -> None: ...

    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
    with pytest.raises(TypeError, match="the function takes no b"):
        fresh().tool(input_schema=schema)(takes_a)
    with pytest.raises(TypeError, match="input_schema does not require a, the function does"):
        fresh().tool(input_schema={"type": "object", "properties": {"a": {}}})(takes_a)
    with pytest.raises(TypeError, match="needs an input_schema"):
        fresh().tool()(accepts)
    fresh().tool(input_schema={"type": "object"})(accepts)


def test_a_schema_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtraError, match="pip install jsonschema"):
        fresh().tool(input_schema={"type": "object"})(plain)


def test_a_result_without_json_schema_names_the_way_out() -> None:
    class Opaque: ...

    def opaque() -> Opaque:
        return Opaque()

    with pytest.raises(TypeError, match="structured=False sends such values as content"):
        fresh().tool()(opaque)
    fresh().tool(structured=False)(opaque)
    fresh().tool(output_schema=None)(opaque)


def marked_schema(name: Any, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


TOKEN = "a: x-mcp-header: expected an HTTP token"
TYPE = "a: x-mcp-header: expected type integer, string or boolean"
PLACE = "expected on a property reached through `properties` alone"


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        *(({"a": marked_schema(name)}, TOKEN) for name in ("", "a b", "\u00e9", "a\r\nX: 1", 3)),
        (
            {"a": marked_schema("Region"), "b": marked_schema("region")},
            "b: x-mcp-header 'region' is also on a",
        ),
        ({"a": marked_schema("Size", "number")}, TYPE),
        ({"a": {"type": "array", "items": marked_schema("In")}}, PLACE),
        ({"a": {"oneOf": [marked_schema("One")]}}, PLACE),
    ],
)
def test_a_header_mark_that_is_malformed_or_misplaced_is_refused(
    properties: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        fresh().tool(input_schema={"type": "object", "properties": properties})(accepts)


@pytest.mark.requirement(
    "tools.x-mcp-header-reachable", "tools.x-mcp-header-token", revisions=PER_REQUEST[-1:]
)
async def test_a_header_mark_on_a_reachable_property_is_kept() -> None:
    properties = {
        "a": marked_schema("A-b_1!"),
        "b": marked_schema("B", "integer"),
        "c": marked_schema("C", "boolean"),
        "d": {"type": "object", "properties": {"e": marked_schema("Deep")}},
    }
    header = msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})

    def query(region: Annotated[str, header]) -> None: ...

    server = fresh()
    server.tool(input_schema={"type": "object", "properties": properties})(accepts)
    server.tool()(query)
    async with speaking_to(server, PER_REQUEST[-1]) as end:
        tool, annotated = (await end.ask("tools/list"))["result"]["tools"]
    assert tool["inputSchema"]["properties"] == properties
    assert annotated["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"


def accepts(**arguments: Any) -> None: ...


def test_a_completion_belongs_to_one_argument_of_one_thing() -> None:
    server = fresh()
    with pytest.raises(ValueError, match="either prompt or template"):
        server.completion(argument="a")
    with pytest.raises(ValueError, match="either prompt or template"):
        server.completion(argument="a", prompt="p", template="t")
    with pytest.raises(TypeError, match="expected a function of the text"):
        server.completion(argument="a", prompt="p")(plain)
    server.completion(argument="a", prompt="p")(lambda value: [value])
    with pytest.raises(ValueError, match="registered already"):
        server.completion(argument="a", prompt="p")(lambda value: [value])


def test_a_method_of_ones_own_has_a_name_of_its_own() -> None:
    server = fresh()
    with pytest.raises(ValueError, match=r"does not start with 'rpc\.'"):
        server.method("rpc.x")(plain)
    with pytest.raises(ValueError, match="the specification has it already"):
        server.method("tools/call")(plain)
    with pytest.raises(TypeError, match="expected a function of params, or of params and ctx"):
        server.method("my/x", params=dict[str, int])(plain)
    server.method("my/x")(plain)
    with pytest.raises(ValueError, match="registered already"):
        server.method("my/x")(plain)


@pytest.mark.parametrize("settings", [{"name": ""}, {"name": "x", "page_size": 0}])
def test_a_server_needs_a_name_and_a_page_size_above_none(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Server(**settings)
