"""Names of arguments that a model's API refuses: others are declared, and mapped back in calls.

The patterns are those of the providers: Anthropic's error message, and the parameters of a
`FunctionDeclaration` of Gemini. OpenAI states none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen_runtime import Server, connect
from mcpgen_runtime.client.host import ModelApi
from mcpgen_runtime.client.property_keys import PropertyKeys

PATTERNS = {
    "anthropic": re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
}
LONG = "x" * 65
KEYS = ["$filter", "filter[name]", "user name", "é", LONG, "", "2nd", "a.b", "a-b", "fine"]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{key: {"type": "string"} for key in KEYS},
        "_filter": {"type": "string"},  # what `$filter` would become
        "inner": {
            "type": "object",
            "properties": {"@type": {"type": "string"}, "plain": {"type": "integer"}},
            "required": ["@type"],
            "default": {"@type": "a"},
        },
        "list": {"type": "array", "items": {"$ref": "#/$defs/item[0]"}},
        "free": {"type": "object", "additionalProperties": {"$ref": "#/$defs/item[0]"}},
        "either": {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"$or": {"type": "string"}}},
            ]
        },
    },
    "required": ["$filter", "inner"],
    "dependentRequired": {"user name": ["$filter"]},
    "$defs": {"item[0]": {"type": "object", "properties": {"the item": {"type": "string"}}}},
}
ARGUMENTS: dict[str, Any] = {
    **{key: f"value of {key}" for key in KEYS},
    "_filter": "another one",
    "inner": {"@type": "a", "plain": 1},
    "list": [{"the item": "x"}, {}],
    "free": {"$filter": {"the item": "y"}, "_type": {"the item": "z"}},
    "either": {"$or": "x"},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def properties(node: Any) -> Iterator[str]:
    """The names of properties in a schema, at any depth."""
    if isinstance(node, dict):
        yield from node.get("properties", {})
        for each in node.values():
            yield from properties(each)
    elif isinstance(node, list):
        for each in node:
            yield from properties(each)


def server_of(schema: dict[str, Any]) -> Server:
    server = Server("s")

    @server.tool(input_schema=schema)
    def search(**arguments: Any) -> str:
        return json.dumps(arguments, sort_keys=True)

    return server


def schema_in(tool: Any) -> Any:
    if "functionDeclarations" in tool:
        (tool,) = tool["functionDeclarations"]
        return tool.get("parameters") or tool["parametersJsonSchema"]
    return tool["input_schema"]


def as_declared(value: Any, names: dict[str, str]) -> Any:
    """Arguments as a model gives them: known names are those that were declared."""
    if isinstance(value, dict):
        return {names.get(key, key): as_declared(each, names) for key, each in value.items()}
    return [as_declared(each, names) for each in value] if isinstance(value, list) else value


def call_of(api: ModelApi, arguments: Any) -> Any:
    if api == "gemini":
        return {"functionCall": {"name": "search", "args": arguments}}
    return {"type": "tool_use", "id": "1", "name": "search", "input": arguments}


def text_in(answer: Any) -> Any:
    if "functionResponse" in answer:
        return json.loads(answer["functionResponse"]["response"]["output"])
    return json.loads(answer["content"][0]["text"])


@pytest.mark.anyio
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("api", ["anthropic", "gemini"])
async def test_names_that_an_api_refuses_are_replaced_and_noted(
    api: ModelApi, strict: bool
) -> None:
    async with connect(server_of(SCHEMA)) as client:
        tools = await client.tools_for(api, strict=strict)
    schema = schema_in(tools[0])
    declared = list(properties(schema))
    assert all(PATTERNS[api].fullmatch(name) for name in declared)
    assert len(schema["properties"]) == len(SCHEMA["properties"])
    assert set(schema["required"]) <= set(schema["properties"])
    assert schema["properties"]["inner"]["required"] == ["_type"]
    notes = "\n".join(tools.notes["search"])
    for name in KEYS[:6]:
        assert f"/properties/{name}: declared as " in notes
    assert "/properties/inner/properties/@type: declared as _type" in notes
    assert "/properties/fine: declared" not in notes


@pytest.mark.anyio
@pytest.mark.parametrize("api", ["anthropic", "gemini"])
@pytest.mark.parametrize("listed", [True, False], ids=["same client", "another client"])
async def test_calls_have_the_names_of_the_tool(api: ModelApi, listed: bool) -> None:
    keys = PropertyKeys(SCHEMA, PATTERNS[api])
    names = dict(re.findall(r"/properties/([^/]*): declared as (.*)", "\n".join(keys.notes)))
    arguments = {
        name: value if name == "free" else as_declared(value, names)
        for name, value in ARGUMENTS.items()
    }
    arguments = {names.get(name, name): value for name, value in arguments.items()}
    arguments["free"] = {
        name: as_declared(value, names) for name, value in ARGUMENTS["free"].items()
    }
    async with connect(server_of(SCHEMA)) as client:
        if listed:
            await client.tools_for(api)
        answer = await client.call_from(call_of(api, arguments))
    assert text_in(answer) == ARGUMENTS


@pytest.mark.anyio
@pytest.mark.parametrize("api", ["openai", "openai-chat"])
async def test_an_api_without_a_pattern_gets_all_names(api: ModelApi) -> None:
    async with connect(server_of(SCHEMA)) as client:
        tools = await client.tools_for(api)
    function = tools[0].get("function", tools[0])
    assert [*properties(function["parameters"])] == [*properties(SCHEMA)]
    assert not tools.notes


def test_references_and_rules_follow_the_names() -> None:
    schema = {
        "properties": {"a b": {"type": "string"}, "c": {"$ref": "#/properties/a b"}},
        "$defs": {"a b": {}},
        "dependentSchemas": {"a b": {"required": ["a b"]}},
        "dependencies": {"a b": ["c"], "c": {"properties": {"d e": {}}}},
        "dependentRequired": {"c": ["a b", 1]},
        "if": {"$ref": "#/$defs/a b"},
        "then": {"properties": {"f g": {"const": {"a b": 1}, "examples": [{"a b": 1}]}}},
    }
    keys = PropertyKeys(schema, PATTERNS["gemini"])
    assert keys.schema == {
        "properties": {
            "a_b": {"title": "a b", "type": "string"},
            "c": {"$ref": "#/properties/a_b"},
        },
        "$defs": {"a b": {}},
        "dependentSchemas": {"a_b": {"required": ["a_b"]}},
        "dependencies": {"a_b": ["c"], "c": {"properties": {"d_e": {"title": "d e"}}}},
        "dependentRequired": {"c": ["a_b", 1]},
        "if": {"$ref": "#/$defs/a b"},
        "then": {
            "properties": {"f_g": {"title": "f g", "const": {"a b": 1}, "examples": [{"a_b": 1}]}}
        },
    }
    assert keys.restore({"a_b": 1, "f_g": 2, "other": 3}) == {"a b": 1, "f g": 2, "other": 3}


def test_a_schema_that_is_too_deep_keeps_its_names_with_a_note() -> None:
    schema: dict[str, Any] = {"properties": {"a b": {}}}
    for _ in range(3000):
        schema = {"properties": {"x": schema}}
    keys = PropertyKeys(schema, PATTERNS["anthropic"])
    assert keys.schema is schema
    assert keys.notes == ["/: the schema is too deep to check its names"]
    assert keys.restore({"x": 1}) == {"x": 1}


@given(names=st.lists(st.text(max_size=80), unique=True, max_size=8))
def test_any_names_are_accepted_distinct_and_lead_back(names: list[str]) -> None:
    schema = {"properties": {name: {} for name in names}}
    for pattern in PATTERNS.values():
        declared = PropertyKeys(schema, pattern)
        accepted = [*declared.schema["properties"]]
        assert all(pattern.fullmatch(name) for name in accepted)
        assert len(set(accepted)) == len(names)
        arguments = dict(zip(accepted, names, strict=True))
        assert declared.restore(arguments) == {name: name for name in names}
