"""Lists and results of a server that was ported from another SDK; functions for requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from syrupy.assertion import SnapshotAssertion

from kit.wire import every
from mcpgen_runtime import (
    CallToolResult,
    Context,
    Image,
    ProtocolError,
    RemoteError,
    Server,
    TextContent,
    Tool,
    ToolError,
    ToolResult,
    connect,
    to_builtins,
)

DIALECTS = ("mcp-1", "mcp-2", "fastmcp-2", "fastmcp-3", "fastmcp-4")
LATEST = "2025-11-25"
URL = r"\\n    For further information visit [^ \"\\]*"
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def line(value: Any) -> str:
    return json.dumps(to_builtins(value), sort_keys=True)


def add(numbers: list[int], by: Annotated[int | None, Field(description="More.")] = None) -> int:
    """Add numbers.

    Args:
        numbers: What to add.
    """
    return sum(numbers) + (by or 0)


class Place(BaseModel):
    title: str = "none"
    kind: Literal["a", "b"] = "a"


@dataclass
class Town:
    name: str


class Plain:
    x: Annotated[int, Field(description="An x.")] = 1
    y: str

    def __init__(self) -> None:
        self.y = "b"

    def __str__(self) -> str:
        return "plain"


class Bare:
    def __str__(self) -> str:
        return "bare"


def vary(
    max_days: Annotated[int, Field(title="Own")],
    copy: str,
    where: Place,
    free: Any,
    ctx: Context,
    note: Annotated[str, "A note."] = "n",
    more: Annotated[int, "a", "b"] = 0,
) -> list[str]:
    """Vary.

    Returns:
        Everything.
    """
    assert ctx.request_context is not None
    return [repr(each) for each in (max_days, copy, where, free, note, more)]


del vary.__annotations__["free"]


def fail(kind: str) -> None:
    errors = (ToolError("a"), ProtocolError("c", code=-5))
    raise {repr(each)[:4]: each for each in errors}.get(kind, ValueError("b"))


def returning(annotation: Any, value: Any) -> Callable[[], Any]:
    def give() -> Any:
        return value

    give.__annotations__ = {} if annotation is ... else {"return": annotation}
    return give


IMAGE = Image(b"png", "image/png")
OUTPUTS: list[tuple[Any, Any]] = [
    *((str, "x"), (None, None), (int | None, None), (float, 1.5), (bytes | int, 1)),
    *((list[Town], [Town("Oslo"), Town("Bergen")]), (list[list[str]], [["a"], []])),
    *((dict[str, int], {"a": 1}), (dict[int, str], {1: "a"}), (dict, {"a": 1})),
    *((Town, Town("Oslo")), (Annotated[Town, "noted"], Town("Oslo")), (Place, Place())),
    *((Plain, Plain()), (Bare, Bare()), (object, Bare())),
    *((Image, IMAGE), (list[Image], [IMAGE]), (list, [IMAGE, "t", Town("Oslo")])),
    (ToolResult, ToolResult(content=["said"], structured={"a": 1})),
    *((Any, {"a": 1}), (..., {"a": 1}), (..., [1, "b", None])),
    (Annotated[int, Field(title="N", description="d")], 1),
    *((bytes, b"x"), (Callable[[], int], "f"), (tuple[int, str], (1, "a"))),
]


CALLS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("add", each)
        for each in ({}, {"numbers": "[1, 2]", "by": "null"}, {"numbers": [1], "x": 1})
    ),
    *(
        ("vary", {"max_days": "5", "copy": "[1]", "where": where, "free": "[1]"})
        for where in (dict[str, Any](), "{}")
    ),
    ("vary", {"max_days": "5.0", "copy": "a", "where": {"title": "t"}, "free": "5", "note": "{}"}),
    ("vary", {"max_days": 1, "copy": "a", "where": "[", "free": '"t"', "more": "true"}),
    *(("fail", {"kind": kind}) for kind in ("Tool", "other")),
    *(("own", {"a": each}) for each in (1, "1")),
    ("nothing", {}),
]


@each_dialect
@pytest.mark.on_asyncio
async def test_tools_and_results_are_those_of_the_other_sdk(
    dialect: Any, snapshot: SnapshotAssertion
) -> None:
    server: Any = Server("a", compatibility=dialect)
    server.add_tool(add)
    server.add_tool(add, "add_all-now", tags=["b", "a"], annotations={"title": "T"}, meta={"m": 1})
    server.add_tool(partial(vary, more=1), "vary", meta={"fastmcp": {"own": 1}})
    server.add_tool(fail)
    server.tool(enabled=False)(add)
    server.add_tool(lambda: {"a": 1}, "f", output_schema=None)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    server.add_tool(lambda a: {"a": a}, "own", input_schema=schema, output_schema=schema)
    for number, (annotation, value) in enumerate(OUTPUTS):
        server.add_tool(returning(annotation, value), f"give{number}")
    rows: list[str] = []
    async with connect(server, revision=LATEST) as client:
        tools = [line(tool) for tool in await client.list_tools()]
        rows += [
            re.sub(r"(\\n) +", r"\1", tool) for tool in tools
        ]  # Python 3.13 dedents docstrings
        assert await client.list_prompts() == []
        for name, arguments in (*CALLS, *((f"give{each}", {}) for each in range(len(OUTPUTS)))):
            result = line(await client.call_tool(name, arguments))
            rows.append(f"{name} {line(arguments)} -> {re.sub(URL, '', result)}")
        with pytest.raises(RemoteError, match="c") as raised:
            await client.call_tool("fail", {"kind": "Prot"})
    assert raised.value.code == -5
    assert rows == snapshot


@each_dialect
async def test_prompts_and_resources_have_whole_docstrings(dialect: Any) -> None:
    server = Server("a", compatibility=dialect)

    @server.prompt(tags=["b", "a"])
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
    key = "_fastmcp" if dialect == "fastmcp-2" else "fastmcp"
    tagged = None if dialect.startswith("mcp") else {key: {"tags": ["a", "b"]}}
    assert prompt.meta == tagged
    with pytest.raises(ValueError, match=r"compatibility: expected one of mcp-1, .*, got 'mcp-9'"):
        Server("a", compatibility="mcp-9")  # type: ignore[arg-type]  # the mistake


DOCSTRINGS = (
    "Text.\n\nMore.\n\nArgs:\n    a: One,\n       and more.\n    b (int): 2.\n\nReturns:\n    3.\n",
    "Args:\n  *a: One: two.\n\n    Deep.\n      Deeper.\n  b\n\n\nAfter.\nStill.\n",
    "Text.\n\nReturns:\n    Nothing.\n\nMore.",
    "Text.\n\nOwn: x\n    Kept.\n\nNote:\nno section.\n\n```\nArgs:\n    a: Code.\n```\nEnd.",
    "Text.\n\nParameters\n----------\na : int\n    First.\n",
    "Text.\n\n:param a: First.\n:returns: Nothing.\n",
    "Parameters: all\n    a: First.\n",
    "",
)


@each_dialect
@pytest.mark.on_asyncio
async def test_parts_of_a_docstring_go_where_they_belong(
    dialect: Any, snapshot: SnapshotAssertion
) -> None:
    server = Server("a", compatibility=dialect)
    for number, text in enumerate(DOCSTRINGS):

        def f(a: int, b: int = 0) -> None: ...

        f.__doc__ = text or None
        server.add_tool(f, f"f{number}")
    async with connect(server, revision=LATEST) as client:
        tools = await client.list_tools()
    described = [tool.input_schema["properties"] for tool in tools]
    parts = [[each.get("description") for each in those.values()] for those in described]
    assert [[tool.description, *part] for tool, part in zip(tools, parts, strict=True)] == snapshot


OBJECT = {"type": "object"}
HTTP = {"transport": "http", "path": "/mcp", "host": "a", "port": 8000}


@pytest.mark.parametrize(
    ("options", "transport", "given", "expected"),
    [
        ({}, "stdio", {"banner": False}, {"transport": "stdio", "banner": False}),
        ({}, None, {}, {"transport": None}),
        ({"sse_path": "/s"}, "sse", {}, {**HTTP, "sse_path": "/s"}),
        ({}, "sse", {}, {**HTTP, "sse_path": "/sse"}),
        ({"port": 1}, "http", {"port": 2}, {**HTTP, "port": 2}),
        ({}, "http", {"http": "b:3"}, {"transport": "http", "path": "/mcp", "http": "b:3"}),
        (
            {"stateless_http": True, "json_response": True, "streamable_http_path": "/x"},
            "streamable-http",
            {},
            {**HTTP, "path": "/x", "stateless": True, "answers": "json"},
        ),
    ],
)
def test_the_address_of_the_constructor_is_that_of_run(
    options: Any, transport: Any, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    server = Server("a", host="a", **options)
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
