"""Lists and results of a server that was ported from another SDK; functions for requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import Field

from kit.wire import every
from mcpgen_runtime import CallToolResult, Context, Server, TextContent, Tool, ToolError, connect

DIALECTS = ("mcp-1", "mcp-2", "fastmcp-2", "fastmcp-3", "fastmcp-4")
LATEST = "2025-11-25"


def add(numbers: list[int], by: Annotated[int | None, Field(description="More.")] = None) -> int:
    """Add numbers.

    Args:
        numbers: What to add.
    """
    return sum(numbers) + (by or 0)


ADDITION: dict[str, Any] = {
    "by": {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
        "description": "More.",
    },
    "numbers": {"items": {"type": "integer"}, "type": "array"},
}
"""The schemas of arguments without titles, as pydantic writes these."""

TITLED = {name: {**schema, "title": name.title()} for name, schema in ADDITION.items()}
DESCRIBED = {
    **ADDITION,
    "numbers": {**ADDITION["numbers"], "description": "What to add."},
}
RESULT = {"properties": {"result": {"type": "integer"}}, "required": ["result"], "type": "object"}
WRAPPED = {"x-fastmcp-wrap-result": True}


TEXT = "Add numbers.\n\nArgs:\n    numbers: What to add."
INPUT = {"required": ["numbers"], "type": "object"}
TITLED_RESULT = {"result": {"title": "Result", "type": "integer"}}
GENERIC = {"description": "Generic wrapper for non-object return types."}
LISTED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mcp-1": (
        str(add.__doc__),
        {"properties": TITLED, "title": "addArguments", **INPUT},
        {**RESULT, "properties": TITLED_RESULT, "title": "addOutput"},
    ),
    "fastmcp-2": (TEXT, {"properties": ADDITION, **INPUT}, {**RESULT, **WRAPPED, **GENERIC}),
    "fastmcp-3": (
        "Add numbers.",
        {"additionalProperties": False, "properties": DESCRIBED, **INPUT},
        {**RESULT, **WRAPPED},
    ),
}
"""Description, input schema and output schema of `add`, by dialect."""


@pytest.mark.parametrize("dialect", LISTED)
async def test_a_tool_is_listed_as_in_the_other_sdk(dialect: Any) -> None:
    server = Server("a", compatibility=dialect)
    server.add_tool(add)
    async with connect(server, revision=LATEST) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("add", {"numbers": [1, 2]})
    assert (tool.description, tool.input_schema, tool.output_schema) == LISTED[dialect]
    assert result.structured_content == {"result": 3}


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mcp-1", "Error executing tool add: 1 validation error for addArguments\nnumbers"),
        ("fastmcp-4", "1 validation error for call[add]\nnumbers\n  Missing required argument"),
    ],
)
async def test_wrong_arguments_have_the_error_of_the_other_sdk(dialect: Any, text: str) -> None:
    server = Server("a", compatibility=dialect)
    server.add_tool(add)
    async with connect(server, revision=LATEST) as client:
        result: Any = await client.call_tool("add", {})
        absent: Any = await client.call_tool("nothing", {})
    assert result.is_error
    assert result.content[0].text.startswith(text)
    assert absent.is_error
    assert absent.content[0].text.startswith("Unknown tool: ")


async def test_titles_tags_and_empty_lists_are_those_of_fastmcp() -> None:
    server: Any = Server("a", compatibility="fastmcp-4")
    server.add_tool(add, "add_all", tags=["b", "a"])
    server.tool(enabled=False)(add)
    server.add_tool(lambda: {"a": 1}, "f", output_schema=None)
    async with connect(server, revision=LATEST) as client:
        tool, other = await client.list_tools()
        prompts = await client.list_prompts()
        result = await client.call_tool("add_all", {"numbers": [1]})
        assert (await client.call_tool("f")).structured_content == {"a": 1}
    assert other.output_schema is None
    assert (tool.title, tool.meta) == ("Add All", {"fastmcp": {"tags": ["a", "b"]}})
    assert prompts == []
    assert result.meta == {"fastmcp": {"wrap_result": True}}
    assert result.is_error is False


@dataclass
class Town:
    name: str


IN_ONE = ['[{"name":"Oslo"},{"name":"Bergen"}]']
EACH = ['{\n  "name": "Oslo"\n}', '{\n  "name": "Bergen"\n}']


@pytest.mark.parametrize(
    ("dialect", "texts", "towns"),
    [
        ("mcp-1", ["Error executing tool fail: a", "Error executing tool crash: b"], EACH),
        ("mcp-2", ["Error executing tool fail: a", "Error executing tool crash"], EACH),
        ("fastmcp-2", ["a", "Error calling tool 'crash': b"], IN_ONE),
    ],
)
async def test_content_and_errors_are_those_of_the_other_sdk(
    dialect: Any, texts: list[str], towns: list[str]
) -> None:
    server = Server("a", compatibility=dialect)

    @server.tool
    def list_towns() -> list[Town]:
        return [Town("Oslo"), Town("Bergen")]

    @server.tool
    def fail() -> None:
        raise ToolError("a")

    @server.tool
    def crash() -> None:
        raise ValueError("b")

    async with connect(server, revision=LATEST) as client:
        results: list[Any] = [await client.call_tool(name) for name in ("fail", "crash")]
        listed: Any = await client.call_tool("list_towns")
    assert [each.content[0].text for each in results] == texts
    assert [block.text for block in listed.content] == towns
    assert listed.structured_content == {"result": [{"name": "Oslo"}, {"name": "Bergen"}]}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_prompts_and_resources_have_whole_docstrings(dialect: Any) -> None:
    server = Server("a", compatibility=dialect)

    @server.prompt
    def ask() -> str:
        """Ask.

        Politely.
        """
        return "Please."

    @server.resource("data://a")
    def data() -> str:
        """Data."""
        return "a"

    async with connect(server, revision=LATEST) as client:
        (prompt,) = await client.list_prompts()
        (resource,) = await client.list_resources()
    assert prompt.description is not None
    assert prompt.description.split() == ["Ask.", "Politely."]
    assert (resource.description, resource.mime_type) == ("Data.", "text/plain")
    with pytest.raises(ValueError, match=r"compatibility: expected one of mcp-1, .*, got 'mcp-9'"):
        Server("a", compatibility="mcp-9")  # type: ignore[arg-type]  # the mistake


async def test_parts_of_a_docstring_go_where_they_belong() -> None:
    server = Server("a", compatibility="fastmcp-4")

    def f(a: int, b: int = 0) -> None: ...

    f.__doc__ = (
        "Text.\n\nMore text.\n\nArgs:\n    a: First,\n       and more.\n    b (int): Second.\n"
        "\nReturns:\n    Nothing.\n"
    )
    server.add_tool(f)
    async with connect(server, revision=LATEST) as client:
        (tool,) = await client.list_tools()
    assert tool.description == "Text.\n\nMore text."
    described = [each["description"] for each in tool.input_schema["properties"].values()]
    assert described == ["First,\nand more.", "Second."]


OBJECT = {"type": "object"}
HTTP = {"transport": "http", "path": "/mcp", "host": "a"}


@pytest.mark.parametrize(
    ("transport", "given", "expected"),
    [
        ("stdio", {}, {"transport": "stdio"}),
        ("sse", {}, {**HTTP, "sse_path": "/sse", "port": 8000}),
        ("http", {"port": 2}, {**HTTP, "port": 2}),
    ],
)
def test_the_address_of_the_constructor_is_that_of_run(
    transport: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    server = Server("a", host="a")
    assert server.settings.arguments(transport, given) == expected


@pytest.mark.parametrize("value", ["text", b"bytes"])
async def test_functions_take_context_and_params_and_return_plain_values(value: Any) -> None:
    server = Server("a")

    @server.request_handler("prompts/get")
    async def get_prompt(ctx: Context, params: Any) -> dict[str, Any]:
        assert server.current_context is ctx
        return {"messages": [], "description": params.name}

    server.prompt("own")(lambda: "own")
    answer: Any = {"a": [1]} if value == "text" else CallToolResult(content=[])
    server.request_handler("tools/call")(lambda name, arguments: answer)
    server.request_handler("resources/read")(lambda uri: value)
    async with connect(server, revision=LATEST) as client:
        prompt: Any = await client.request("prompts/get", {"name": "x"})
        called: Any = await client.request("tools/call", {"name": "x"})
        read: Any = await client.request("resources/read", {"uri": "data://a"})
        assert [each.name for each in await client.list_prompts()] == ["own"]
    assert prompt.description == "x"
    shown = ['{\n  "a": [\n    1\n  ]\n}'] if value == "text" else []
    assert [block.text for block in called.content] == shown
    assert called.structured_content == ({"a": [1]} if value == "text" else None)
    (contents,) = read.contents
    assert contents.uri == "data://a"
    assert getattr(contents, "text", None) == (value if isinstance(value, str) else None)


def test_a_request_has_one_function_and_a_known_name() -> None:
    server = Server("a")
    server.request_handler("tools/list")(list)
    with pytest.raises(ValueError, match="tools/list: expected one function, got two"):
        server.request_handler("tools/list")(list)
    with pytest.raises(ValueError, match=r"expected one of tools/call, .*, got 'acme/thing'"):
        server.request_handler("acme/thing")(list)


@every
async def test_functions_list_and_call_tools_and_their_schemas_are_kept(revision: str) -> None:
    server = Server("a")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    @server.request_handler("tools/list")
    async def list_tools() -> list[Tool]:
        if revision != LATEST:
            return [Tool(name="f", input_schema=schema)]
        return [Tool(name="f", input_schema=schema, output_schema={"required": ["b"], **OBJECT})]

    @server.request_handler("tools/call")
    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        if arguments["a"] == 2:
            raise ValueError("expected another number")
        if arguments["a"] == 3:
            return [TextContent(type="text", text=f"{name} 3")]
        return {"b": 1} if arguments["a"] else {"c": 1}

    async with connect(server, revision=revision) as client:
        results: list[Any] = [
            await client.request("tools/call", {"name": "f", "arguments": each})
            for each in ({}, {"a": "1"}, {"a": 2}, {"a": 3}, {"a": 0}, {"a": 1})
            if revision == LATEST or each not in ({"a": 0}, {"a": 1})
        ]
    texts = [each.content[0].text for each in results]
    assert texts[:3] == [
        "Input validation error: 'a' is a required property",
        "Input validation error: '1' is not of type 'integer'",
        "expected another number",
    ]
    if revision == LATEST:
        without = "Output validation error: outputSchema defined but no structured output returned"
        assert texts[3:5] == [without, "Output validation error: 'b' is a required property"]
        assert results[5].structured_content == {"b": 1}
    else:
        assert texts[3] == "f 3"
