"""Tools as functions of models: `tools_for`, and `call_from` with what a model asks for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import msgspec
import pytest

from kit.live import server_with
from kit.scripted import connect_scripted
from kit.wire import PER_REQUEST, every
from mcpgen_runtime import (
    Audio,
    DeclaredTools,
    File,
    Image,
    ResourceLink,
    Server,
    ToolError,
    ToolResult,
    connect,
)

pytestmark = pytest.mark.on_asyncio

newest = pytest.mark.parametrize("revision", PER_REQUEST[-1:])

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
APIS = ("openai", "openai-chat", "anthropic", "gemini")


def weather() -> Server:
    """A server whose tools return what models can and cannot be shown."""
    server = Server("weather")

    @server.tool()
    def forecast(city: str, days: int = 1) -> str:
        """The weather of the next days."""
        if city == "Atlantis":
            raise ToolError("no such city: Atlantis")
        return f"{city}: {days} x sun"

    @server.tool(name="maps.wind.read")
    def wind() -> ToolResult:
        return ToolResult(
            content=[
                "north",
                Image(data=b"\x89PNG\r\n\x1a\n", mime_type="image/png"),
                Audio(data=b"RIFFxyz", mime_type="audio/wav"),
                File(data=b"%PDF-", mime_type="application/pdf", name="wind.pdf"),
                ResourceLink(uri="map://wind", name="wind"),
            ]
        )

    @server.tool()
    def pressure() -> dict[str, int]:
        return {"hPa": 1013}

    return server


def constant_function(text: str) -> Callable[[], str]:
    """A function that returns a text."""

    def say() -> str:
        return text

    return say


def model_call(api: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A call as the API of a model has it."""
    match api:
        case "openai":
            text = json.dumps(arguments)
            return {"type": "function_call", "call_id": "c1", "name": name, "arguments": text}
        case "openai-chat":
            function = {"name": name, "arguments": json.dumps(arguments)}
            return {"type": "function", "id": "c1", "function": function}
        case "anthropic":
            return {"type": "tool_use", "id": "c1", "name": name, "input": dict(arguments)}
        case _:
            return {"functionCall": {"id": "c1", "name": name, "args": dict(arguments)}}


def model_result(api: str, text: str, failed: bool = False) -> dict[str, Any]:
    """The result that the API takes for a text."""
    shown = f"Error: {text}" if failed else text
    match api:
        case "openai":
            return {"type": "function_call_output", "call_id": "c1", "output": shown}
        case "openai-chat":
            return {"role": "tool", "tool_call_id": "c1", "content": shown}
        case "anthropic":
            content = [{"type": "text", "text": text}]
            return {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": content,
                "is_error": failed,
            }
        case _:
            response = {"error" if failed else "output": text}
            return {"functionResponse": {"name": "forecast", "id": "c1", "response": response}}


def schemas(api: str, tools: list[Any]) -> dict[str, Any]:
    """Name of each function to the schema of its arguments."""
    match api:
        case "openai":
            assert all(tool["type"] == "function" and tool["strict"] is False for tool in tools)
            return {tool["name"]: tool["parameters"] for tool in tools}
        case "openai-chat":
            assert all(tool["type"] == "function" for tool in tools)
            return {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
        case "anthropic":
            return {tool["name"]: tool["input_schema"] for tool in tools}
        case _:
            (tool,) = tools
            declarations = tool["functionDeclarations"]
            return {
                each["name"]: each.get("parameters") or each["parametersJsonSchema"]
                for each in declarations
            }


@every
@pytest.mark.parametrize("api", APIS)
async def test_a_model_gets_functions_and_the_results_of_its_calls(revision: str, api: Any) -> None:
    async with connect(weather(), revision=revision) as client:
        functions = schemas(api, await client.tools_for(api))
        assert list(functions) == ["forecast", "maps_wind_read", "pressure"]
        assert functions["forecast"]["properties"]["days"]["default"] == 1
        assert functions["pressure"]["properties"] == {}
        call = model_call(api, "forecast", {"city": "Oslo", "days": 3})
        assert await client.call_from(call) == model_result(api, "Oslo: 3 x sun")


@newest
@pytest.mark.parametrize("api", APIS)
async def test_a_model_reads_why_a_call_failed(revision: str, api: str) -> None:
    async with connect(weather(), revision=revision) as client:
        failed = await client.call_from(model_call(api, "forecast", {"city": "Atlantis"}))
        assert "no such city: Atlantis" in str(failed)
        assert failed == model_result(api, "no such city: Atlantis", failed=True)
        for name, reason in (("forecast", "city"), ("nonsense", "nonsense")):
            failed = await client.call_from(model_call(api, name, {}))
            assert reason in str(failed)
            assert "rror" in str(failed)


@newest
async def test_media_go_to_apis_that_accept_them_or_are_named(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        results = {
            api: await client.call_from(model_call(api, "maps_wind_read", {})) for api in APIS
        }
    audio = "[audio: audio/wav, 7 bytes, which can't be shown in this conversation]"
    image = {"type": "base64", "media_type": "image/png", "data": PNG}
    content = results["anthropic"]["content"]
    assert content[:3] == [
        {"type": "text", "text": "north"},
        {"type": "image", "source": image},
        {"type": "text", "text": audio},
    ]
    assert content[3]["type"] == "document"
    assert json.loads(content[4]["text"])["uri"] == "map://wind"
    output = results["openai"]["output"]
    assert [part["type"] for part in output] == [
        *("input_text", "input_image", "input_text", "input_file", "input_text")
    ]
    assert output[1]["image_url"] == f"data:image/png;base64,{PNG}"
    assert audio in results["openai-chat"]["content"]
    assert "[image: image/png, 8 bytes" in results["openai-chat"]["content"]
    response = results["gemini"]["functionResponse"]
    assert response["response"]["output"].startswith(f"north\n{audio}\n")
    assert response["parts"][0] == {"inlineData": {"mimeType": "image/png", "data": PNG}}


IMAGE = {"type": "image", "mimeType": "image/png", "data": PNG}


def embedded(**members: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "x://a/b/", **members}}


BLOCKS: list[tuple[list[Any], bool, list[str]]] = [
    ([IMAGE], True, ["the tool gave no text", PNG]),
    ([IMAGE], False, [PNG]),
    ([], True, ["the tool gave no text"]),
    ([], False, []),
    ([{"type": "text", "text": ""}, IMAGE], True, ["the tool gave no text", PNG]),
    ([embedded(text="A")], False, ["Resource x://a/b/:\nA"]),
    ([embedded(text="A", mimeType="text/x")], False, ["Resource x://a/b/ (text/x):\nA"]),
    (
        [embedded(blob="QQ==")],
        False,
        ["[b: content of unknown type, 1 bytes, which can't be shown in this conversation]"],
    ),
    (
        [embedded(uri="///", blob="QUI=")],
        False,
        ["[file: content of unknown type, 2 bytes, which can't be shown in this conversation]"],
    ),
    ([embedded(blob=PNG, mimeType="Image/PNG ; q=1")], False, [PNG]),
]


@newest
@pytest.mark.parametrize(("content", "failed", "parts"), BLOCKS, ids=lambda _: "")
async def test_each_kind_of_content_is_shown_to_the_model(
    revision: str, content: list[Any], failed: bool, parts: list[str]
) -> None:
    result = {"content": content, "isError": failed}
    tools = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    async with connect_scripted(revision, tools, result) as (client, _):
        answered = await client.call_from(model_call("anthropic", "f", {}))
    shown = [part.get("text") or part["source"]["data"] for part in answered["content"]]
    assert (shown, answered["is_error"]) == (parts, failed)


@newest
async def test_names_that_apis_refuse_are_altered_and_lead_back(revision: str) -> None:
    server = Server("names")
    names = ["a.b", "a_b", "a-b", "1st", "x" * 100, "x" * 101]
    for name in names:
        server.add_tool(constant_function(name), name=name)
    async with connect(server, revision=revision) as client:
        functions = schemas("openai", await client.tools_for("openai"))
        assert len(functions) == len(names)
        assert all(len(function) <= 64 for function in functions)
        assert {"a_b", "_1st"} <= set(functions)
        altered = [name for name in functions if name.startswith("xx")]
        assert [name.rpartition("_")[0] for name in altered] == ["x" * 55] * 2
        calls = [await client.call_from(model_call("openai", name, {})) for name in functions]
        assert [call["output"] for call in calls] == names
    async with connect(server, revision=revision) as client:  # a client that listed nothing yet
        result = await client.call_from(model_call("openai", "_1st", {}))
        assert result["output"] == "1st"


@newest
async def test_schema_rules_that_apis_refuse_are_in_the_description(revision: str) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    tool = {"name": "either", "description": "A or b.", "inputSchema": schema}
    listed = {"tools": [tool], "ttlMs": 0, "cacheScope": "private"}
    async with connect_scripted(revision, listed) as (client, _):
        (function,) = await client.tools_for("anthropic")
    assert set(function["input_schema"]) == {"type", "properties"}
    assert function["description"].startswith("A or b.\n\n")
    assert '"anyOf":[{"required":["a"]},{"required":["b"]}]' in function["description"]


@newest
async def test_objects_of_the_providers_libraries_are_calls_too(revision: str) -> None:
    function = SimpleNamespace(name="forecast", arguments='{"city": "Oslo"}')
    calls = [
        SimpleNamespace(type="function", id="c1", function=function),
        SimpleNamespace(type="tool_use", id="c1", name="forecast", input={"city": "Oslo"}),
        SimpleNamespace(
            type="function_call", call_id="c1", name="forecast", arguments=function.arguments
        ),
        SimpleNamespace(
            function_call=SimpleNamespace(id="c1", name="forecast", args={"city": "Oslo"})
        ),
        SimpleNamespace(id="c1", name="forecast", args={"city": "Oslo"}),
    ]
    forms = ["openai-chat", "anthropic", "openai", "gemini", "gemini"]
    async with connect(weather(), revision=revision) as client:
        for call, form in zip(calls, forms, strict=True):
            assert await client.call_from(call) == model_result(form, "Oslo: 1 x sun")


@newest
async def test_invalid_calls_and_unknown_apis_are_refused(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        for wrong in ({"type": "text"}, {"type": "web_search_call"}, "forecast", None):
            with pytest.raises(TypeError, match="expected a function_call"):
                await client.call_from(wrong)
        unknown: Any = "llama"
        with pytest.raises(ValueError, match=r"expected one of openai, .*'llama'"):
            await client.tools_for(unknown)


@dataclass
class Place:
    lat: float
    name: str = "here"


@dataclass
class Tree:
    label: str
    branches: list[Tree] = field(default_factory=list)


def garden() -> Server:
    server = Server("garden")

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


@newest
async def test_rules_that_an_api_lacks_are_described_and_noted(revision: str) -> None:
    async with connect(garden(), revision=revision) as client:
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
    async with connect(garden(), revision=revision) as client:
        await client.tools_for("openai", strict=True)
        assert (await client.call_from(call))["output"] == expected
        await client.tools_for("openai")
        refused = await client.call_from(call)
    assert "Error" in refused["output"]


@newest
async def test_deferred_tools_come_with_the_search_of_the_api(revision: str) -> None:
    async with connect(garden(), revision=revision) as client:
        openai = await client.tools_for("openai", defer=True)
        anthropic = await client.tools_for("anthropic", defer=True, strict=True)
        api: Any
        for api in ("openai-chat", "gemini"):
            with pytest.raises(ValueError, match="expected one of openai, anthropic, got"):
                await client.tools_for(api, defer=True)
    assert openai[0] == {"type": "tool_search"}
    kind, name = "tool_search_tool_bm25_20251119", "tool_search_tool_bm25"
    assert anthropic[0] == {"type": kind, "name": name}
    for tools in (openai, anthropic):
        assert [each["name"] for each in tools[1:]] == ["forecast", "grow", "label", "nothing"]
        assert all(each["defer_loading"] is True for each in tools[1:])
    no_tools = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    async with connect_scripted(revision, no_tools) as (client, _):
        assert await client.tools_for("openai", defer=True) == []


@newest
@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ("{broken", "Error: arguments: expected JSON"),
        ("[1]", "Error: arguments: expected a JSON object"),
        *((empty, 'counted\n{"hPa":1013}') for empty in ("", " \n", None, "{}")),
    ],
)
async def test_the_arguments_of_a_call_are_an_object_or_none(
    revision: str, arguments: str | None, output: str
) -> None:
    def pressure() -> ToolResult:
        return ToolResult(content=["counted"], structured={"hPa": 1013})

    call = {"type": "function_call", "call_id": "c1", "name": "pressure", "arguments": arguments}
    async with connect(server_with(pressure), revision=revision) as client:
        assert (await client.call_from(call))["output"].startswith(output)
        plain = {**call, "arguments": "{}"}
        assert (await client.call_from(plain))["output"].endswith('{"hPa":1013}')
