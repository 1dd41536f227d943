"""`tools_for(strict=True)` and `tools_for(defer=True)`: what APIs hold models to, and search.

The subsets are those of the providers' documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_protocol import DeclaredTools, Server, connect
from mcp_protocol.client.host import ModelApi
from mcp_protocol.client.strict_schemas import (
    SUBSETS as OF_APIS,
)
from mcp_protocol.client.strict_schemas import (
    NotStrictError,
    Reduction,
    without_absent,
)
from package.scripted import scripted
from package.wire import PER_REQUEST

newest = pytest.mark.parametrize("revision", PER_REQUEST[-1:])

SUBSETS: dict[str, set[str]] = {
    "openai": {
        *("type", "title", "description", "enum", "const", "anyOf", "properties", "required"),
        *("items", "additionalProperties", "$ref", "$defs", "pattern", "format", "minimum"),
        *("maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
    },
    "anthropic": {
        *("type", "title", "description", "enum", "const", "anyOf", "properties", "required"),
        *("items", "additionalProperties", "pattern", "format", "default", "minItems"),
    },
    "gemini": {
        *("type", "title", "description", "enum", "nullable", "anyOf", "properties", "required"),
        *("items", "format", "default", "minimum", "maximum", "minItems", "maxItems", "pattern"),
        *("minLength", "maxLength", "minProperties", "maxProperties"),
    },
}
PARAMETERS = {"openai": "parameters", "anthropic": "input_schema", "gemini": "parameters"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Place:
    lat: float
    name: str = "here"


@dataclass
class Tree:
    label: str
    branches: list[Tree] = field(default_factory=list)


def weather() -> Server:
    server = Server("weather")

    @server.tool
    def forecast(
        city: Annotated[str, msgspec.Meta(min_length=2, description="Where.")],
        days: Annotated[int, msgspec.Meta(ge=1, le=7)] = 3,
        unit: Literal["c", "k"] = "c",
        near: Place | None = None,
        tags: list[str] | None = None,
    ) -> str:
        """The weather of the next days."""
        return f"{city} {days} {unit} {near} {tags}"

    @server.tool
    def grow(tree: Tree) -> int:
        return len(tree.branches)

    @server.tool
    def label(labels: dict[str, str]) -> int:
        return len(labels)

    @server.tool
    def nothing() -> str:
        return "nothing"

    return server


def declarations(api: str, tools: list[Any]) -> dict[str, dict[str, Any]]:
    functions = tools[0]["functionDeclarations"] if api == "gemini" else tools
    return {each["name"]: each for each in functions if "name" in each}


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each schema within a schema."""
    yield schema
    for place in ("properties", "$defs"):
        for each in schema.get(place, {}).values():
            yield from nodes(each)
    for each in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(each)


STRICT: list[tuple[ModelApi, list[str]]] = [
    ("openai", ["forecast", "grow", "nothing"]),
    ("anthropic", ["forecast", "nothing"]),
    ("gemini", ["forecast"]),
]


@newest
@pytest.mark.parametrize(("api", "expected"), STRICT)
async def test_strict_schemas_have_what_the_api_reads(
    revision: str, api: ModelApi, expected: list[str]
) -> None:
    async with connect(weather(), revision=revision) as client:
        functions = declarations(api, await client.tools_for(api, strict=True))
    of_gemini = {name for name, each in functions.items() if "parameters" in each}
    strict = of_gemini if api == "gemini" else {n for n, f in functions.items() if f.get("strict")}
    assert strict == set(expected)
    for name in strict:
        for node in nodes(functions[name][PARAMETERS[api]]):
            assert SUBSETS[api].issuperset(node), node
            if node.get("type") == "object" and api != "gemini":
                assert node["additionalProperties"] is False
            if node.get("type") == "object" and api == "openai":
                assert node["required"] == list(node["properties"])
    assert ("parameters" in functions["nothing"]) == (api == "openai")


@newest
async def test_rules_that_an_api_lacks_are_described_and_noted(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        tools = await client.tools_for("anthropic", strict=True)
        assert isinstance(tools, DeclaredTools)
        properties = declarations("anthropic", tools)["forecast"]["input_schema"]["properties"]
        assert properties["city"]["description"] == "Where. (minLength: 2)"
        assert properties["days"]["description"] == "(minimum: 1, maximum: 7)"
        assert tools.notes == {
            "forecast": [
                "/properties/city: minLength is in the description alone",
                "/properties/days: minimum, maximum is in the description alone",
            ],
            "grow": ["not strict: /properties/tree: a schema that contains itself"],
            "label": ["not strict: /properties/labels: an object with members of any name"],
        }
        assert not (await client.tools_for("anthropic")).notes
        openai = await client.tools_for("openai", strict=True)
    assert (
        "/properties/days: optional: null stands for an absent member" in openai.notes["forecast"]
    )
    assert json.loads(json.dumps(openai)) == openai


CALLS: list[tuple[dict[str, Any], str]] = [
    (
        {"city": "Oslo", "days": None, "unit": None, "near": None, "tags": None},
        "Oslo 3 c None None",
    ),
    (
        {"city": "Oslo", "days": 2, "unit": "k", "near": {"lat": 1, "name": None}, "tags": ["a"]},
        "Oslo 2 k Place(lat=1.0, name='here') ['a']",
    ),
]


@newest
@pytest.mark.parametrize(("arguments", "expected"), CALLS, ids=["absent", "nested"])
async def test_null_for_an_optional_member_is_an_absent_one(
    revision: str, arguments: dict[str, Any], expected: str
) -> None:
    call = {"type": "function_call", "call_id": "1", "name": "forecast"}
    call["arguments"] = json.dumps(arguments)
    async with connect(weather(), revision=revision) as client:
        await client.tools_for("openai", strict=True)
        assert (await client.call_from(call))["output"] == expected
        await client.tools_for("openai")
        refused = await client.call_from(call)
    assert "Error" in refused["output"]


TYPED: list[tuple[str, dict[str, Any], dict[str, dict[str, Any]]]] = [
    (
        "several types",
        {"type": ["string", "null"], "maxLength": 3, "description": "A."},
        {
            "openai": {
                "anyOf": [
                    {"type": "string", "description": "(maxLength: 3)"},
                    {"type": "null"},
                ],
                "description": "A.",
            },
            "gemini": {"type": "string", "maxLength": 3, "nullable": True, "description": "A."},
        },
    ),
    (
        "null among values",
        {"enum": ["a", None]},
        {
            "openai": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
            "gemini": {"type": "string", "enum": ["a"], "nullable": True},
        },
    ),
    (
        "numbers as values",
        {"enum": [1, 2]},
        {
            "openai": {"type": "integer", "enum": [1, 2]},
            "gemini": {"type": "integer", "description": "(enum: [1,2])"},
        },
    ),
    (
        "a constant",
        {"const": "a"},
        {"openai": {"type": "string", "const": "a"}, "gemini": {"type": "string", "enum": ["a"]}},
    ),
    (
        "one schema in allOf",
        {"allOf": [{"type": "string", "format": "uri"}], "description": "A."},
        {
            "openai": {"type": "string", "description": 'A. (format: "uri")'},
            "anthropic": {"type": "string", "format": "uri", "description": "A."},
        },
    ),
    (
        "alternatives",
        {"oneOf": [{"type": "integer"}, {"type": "boolean"}]},
        {"openai": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}},
    ),
    (
        "a pattern that looks around",
        {"type": "string", "pattern": "^(?!x)"},
        {"openai": {"type": "string", "description": '(pattern: "^(?!x)")'}},
    ),
]


@newest
@pytest.mark.parametrize(("schema", "expected"), [row[1:] for row in TYPED], ids=lambda _: "")
async def test_schemas_of_other_servers_are_reduced(
    revision: str, schema: dict[str, Any], expected: dict[ModelApi, dict[str, Any]]
) -> None:
    root = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    for api, reduced in expected.items():
        listed = {
            "tools": [{"name": "f", "inputSchema": root}],
            "ttlMs": 0,
            "cacheScope": "private",
        }
        async with scripted(revision, listed) as (client, _):
            tools = await client.tools_for(api, strict=True)
        assert declarations(api, tools)["f"][PARAMETERS[api]]["properties"]["a"] == reduced


ODD: list[Any] = [
    {},
    True,
    {"type": "array"},
    {"type": "object"},
    {"type": "planet"},
    {"type": ["string", 1]},
    {"type": "array", "prefixItems": [{"type": "string"}]},
    {"allOf": [{"type": "string"}, {"maxLength": 1}]},
    {"anyOf": [{"type": "string"}], "maxLength": 1},
    {"enum": [["a"], 1]},
    {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": True},
    {"$ref": "#/$defs/none"},
]


@newest
@pytest.mark.parametrize("schema", ODD, ids=repr)
async def test_a_tool_that_an_api_cannot_be_held_to_is_declared_as_it_is(
    revision: str, schema: Any
) -> None:
    root = {"type": "object", "properties": {"a": schema}}
    for api in ("openai", "anthropic", "gemini"):
        listed = {
            "tools": [{"name": "f", "inputSchema": root}],
            "ttlMs": 0,
            "cacheScope": "private",
        }
        async with scripted(revision, listed) as (client, _):
            tools = await client.tools_for(api, strict=True)
        function = declarations(api, tools)["f"]
        key = "parametersJsonSchema" if api == "gemini" else PARAMETERS[api]
        assert function[key] == root
        assert not function.get("strict")
        assert tools.notes["f"][-1].startswith("not strict: /properties/a: ")


@newest
async def test_deferred_tools_come_with_the_search_of_the_api(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        openai = await client.tools_for("openai", defer=True)
        anthropic = await client.tools_for("anthropic", defer=True, strict=True)
        apis: tuple[ModelApi, ModelApi] = ("openai-chat", "gemini")
        for api in apis:
            with pytest.raises(ValueError, match="expected one of openai, anthropic, got"):
                await client.tools_for(api, defer=True)
    assert openai[0] == {"type": "tool_search"}
    assert anthropic[0] == {
        "type": "tool_search_tool_bm25_20251119",
        "name": "tool_search_tool_bm25",
    }
    for tools in (openai, anthropic):
        assert [each["name"] for each in tools[1:]] == ["forecast", "grow", "label", "nothing"]
        assert all(each["defer_loading"] is True for each in tools[1:])
    async with scripted(revision, {"tools": [], "ttlMs": 0, "cacheScope": "private"}) as (none, _):
        assert await none.tools_for("openai", defer=True) == []


WORDS = st.sampled_from(
    [
        *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "enum", "const"),
        *("$ref", "$defs", "format", "pattern", "default", "additionalProperties", "minItems"),
        *("string", "object", "array", "null", "integer", "#", "#/$defs/type", "[", "$id"),
    ]
)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(WORDS, VALUES, max_size=4), st.dictionaries(WORDS, VALUES, max_size=3))
def test_any_schema_is_reduced_or_refused(schema: dict[str, Any], arguments: Any) -> None:
    without_absent(arguments, schema)
    for subset in OF_APIS.values():
        with suppress(NotStrictError):
            assert Reduction(subset).of_arguments({**schema, "type": "object"})["type"] == "object"
