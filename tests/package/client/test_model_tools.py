"""Tools as functions of models: `tools_for`, and `call_from` with what a model asks for.

The forms are those of the providers' documentation: OpenAI (Responses, Chat Completions), Anthropic
(Messages), Gemini (generateContent).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_protocol import Audio, File, Image, ResourceLink, Server, ToolError, ToolResult, connect
from mcp_protocol.client.sync_client import connect_sync
from package.scripted import scripted
from package.wire import ALL, PER_REQUEST

every = pytest.mark.parametrize("revision", ALL)
newest = pytest.mark.parametrize("revision", PER_REQUEST[-1:])

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
APIS = ("openai", "openai-chat", "anthropic", "gemini")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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


def saying(text: str) -> Callable[[], str]:
    """A function that returns a text."""

    def say() -> str:
        return text

    return say


def asked(api: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
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


def answered(api: str, text: str, failed: bool = False) -> dict[str, Any]:
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
            return {each["name"]: each["parametersJsonSchema"] for each in declarations}


@every
@pytest.mark.parametrize("api", APIS)
async def test_a_model_gets_functions_and_the_results_of_its_calls(revision: str, api: Any) -> None:
    async with connect(weather(), revision=revision) as client:
        functions = schemas(api, await client.tools_for(api))
        assert list(functions) == ["forecast", "maps_wind_read", "pressure"]
        assert functions["forecast"]["properties"]["days"]["default"] == 1
        assert functions["pressure"]["properties"] == {}
        call = asked(api, "forecast", {"city": "Oslo", "days": 3})
        assert await client.call_from(call) == answered(api, "Oslo: 3 x sun")


@newest
@pytest.mark.parametrize("api", APIS)
async def test_a_model_reads_why_a_call_failed(revision: str, api: str) -> None:
    async with connect(weather(), revision=revision) as client:
        failed = await client.call_from(asked(api, "forecast", {"city": "Atlantis"}))
        assert "no such city: Atlantis" in str(failed)
        assert failed == answered(api, "no such city: Atlantis", failed=True)
        for name, reason in (("forecast", "city"), ("nonsense", "nonsense")):
            failed = await client.call_from(asked(api, name, {}))
            assert reason in str(failed)
            assert "rror" in str(failed)


@newest
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [("{broken", "expected JSON"), ("[1]", "expected a JSON object")],
)
async def test_arguments_that_are_no_object_are_an_error_for_the_model(
    revision: str, arguments: str, reason: str
) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "forecast", "arguments": arguments}
    async with connect(weather(), revision=revision) as client:
        failed = await client.call_from(call)
    assert failed["output"].startswith("Error: arguments: ")
    assert reason in failed["output"]


@newest
async def test_media_go_to_apis_that_accept_them_or_are_named(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        results = {api: await client.call_from(asked(api, "maps_wind_read", {})) for api in APIS}
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


@every
async def test_a_structured_value_reaches_the_model_once(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        result = await client.call_from(asked("openai", "pressure", {}))
    assert json.loads(result["output"]) == {"hPa": 1013}


@newest
async def test_a_structured_value_that_no_text_repeats_is_shown(revision: str) -> None:
    server = Server("s")

    @server.tool()
    def count() -> ToolResult:
        return ToolResult(content=["counted"], structured={"n": 2})

    async with connect(server, revision=revision) as client:
        result = await client.call_from(asked("openai-chat", "count", {}))
    assert result["content"] == 'counted\n{"n":2}'


@newest
async def test_names_that_apis_refuse_are_altered_and_lead_back(
    revision: str,
) -> None:
    server = Server("names")
    names = ["a.b", "a_b", "a-b", "1st", "x" * 100, "x" * 101]
    for name in names:
        server.add_tool(saying(name), name=name)
    async with connect(server, revision=revision) as client:
        functions = schemas("openai", await client.tools_for("openai"))
        assert len(functions) == len(names)
        assert all(len(function) <= 64 for function in functions)
        assert {"a_b", "_1st"} <= set(functions)
        calls = [await client.call_from(asked("openai", name, {})) for name in functions]
        assert [call["output"] for call in calls] == names
    async with connect(server, revision=revision) as client:  # a client that listed nothing yet
        result = await client.call_from(asked("openai", "_1st", {}))
        assert result["output"] == "1st"


@newest
async def test_a_name_like_the_altered_one_of_another_tool_is_no_clash(revision: str) -> None:
    long = "x" * 100
    server = Server("names")
    server.add_tool(saying(long), name=long)
    async with connect(server, revision=revision) as client:
        [altered] = schemas("openai", await client.tools_for("openai"))
    both = Server("names")
    for name in (altered, long):
        both.add_tool(saying(name), name=name)
    async with connect(both, revision=revision) as client:
        functions = schemas("openai", await client.tools_for("openai"))
        assert max(map(len, functions)) <= 64
        calls = [await client.call_from(asked("openai", name, {})) for name in functions]
        assert [call["output"] for call in calls] == [altered, long]


@newest
async def test_schema_rules_that_apis_refuse_are_in_the_description(
    revision: str,
) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    tool = {"name": "either", "description": "A or b.", "inputSchema": schema}
    listed = {"tools": [tool], "ttlMs": 0, "cacheScope": "private"}
    async with scripted(revision, listed) as (client, _):
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
            assert await client.call_from(call) == answered(form, "Oslo: 1 x sun")


@newest
async def test_what_is_no_call_and_an_unknown_api_are_refused(revision: str) -> None:
    async with connect(weather(), revision=revision) as client:
        for wrong in ({"type": "text"}, {"type": "web_search_call"}, "forecast", None):
            with pytest.raises(TypeError, match="expected a function_call"):
                await client.call_from(wrong)
        unknown: Any = "llama"
        with pytest.raises(ValueError, match=r"expected one of openai, .*'llama'"):
            await client.tools_for(unknown)


def test_the_blocking_client_has_the_same() -> None:
    with connect_sync(weather()) as client:
        assert len(schemas("gemini", client.tools_for("gemini"))) == 3
        call = asked("gemini", "forecast", {"city": "Oslo"})
        assert client.call_from(call) == answered("gemini", "Oslo: 1 x sun")
