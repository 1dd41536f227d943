"""Lists and results of a server that was ported from another SDK; functions for requests."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import pytest
from pydantic import AnyUrl, BaseModel, Field
from syrupy.assertion import SnapshotAssertion

from kit.wire import every, speaking_to
from mcpgen_runtime import (
    CallToolResult,
    Context,
    Image,
    MissingExtraError,
    ProtocolError,
    ReadResourceResult,
    RemoteError,
    Server,
    TextContent,
    Tool,
    ToolError,
    ToolResult,
    connect,
    to_builtins,
)
from mcpgen_runtime.r2025_11_25.server import ServerHandlers

DIALECTS = ("mcp-1", "mcp-2", "fastmcp-2", "fastmcp-3", "fastmcp-4")
LATEST = "2025-11-25"
URL = r"\\n    For further information visit [^ \"\\]*"
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
COMPLETED = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}
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
TITLED: Any = Annotated[int, Field(title="N", description="d")]
OUTPUTS: list[tuple[Any, Any]] = [
    *((str, "x"), (None, None), (int | None, None), (float, 1.5), (bytes | int, 1)),
    *((list[Town], [Town("Oslo"), Town("Bergen")]), (list[list[str]], [["a"], []])),
    *((dict[str, int], {"a": 1}), (dict[int, str], {1: "a"}), (dict, {"a": 1})),
    *((Town, Town("Oslo")), (Annotated[Town, "noted"], Town("Oslo")), (Place, Place())),
    *((Plain, Plain()), (Bare, Bare()), (object, Bare())),
    *((Image, IMAGE), (list[Image], [IMAGE]), (list, [IMAGE, "t", Town("Oslo")])),
    (ToolResult, ToolResult(content=["said"], structured={"a": 1})),
    *(
        (Any, TextContent(type="text", text="t")),
        (Any, {"a": 1}),
        (..., {"a": 1}),
        (..., [1, "b", None]),
    ),
    *((TITLED, 1), (TITLED | None, 1), (list[TITLED], [1]), (dict[str, TITLED], {"a": 1})),
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
        assert line(client.server_capabilities).count("listChanged") == 3
    async with connect(Server("a", compatibility=dialect, list_changed=False)) as client:
        assert "listChanged" not in line(client.server_capabilities)
    assert prompt.description is not None
    assert prompt.description.split() == ["Ask.", "Politely."]
    assert (resource.description, resource.mime_type) == ("Data.", "text/plain")
    key = "_fastmcp" if dialect == "fastmcp-2" else "fastmcp"
    tagged = None if dialect.startswith("mcp") else {key: {"tags": ["a", "b"]}}
    assert prompt.meta == tagged
    with pytest.raises(ValueError, match=r"compatibility: expected one of mcp-1, .*, got 'mcp-9'"):
        Server("a", compatibility="mcp-9")  # type: ignore[arg-type]  # the mistake


DOCSTRINGS = json.loads(Path(__file__).with_name("docstrings.json").read_text("utf-8"))


@each_dialect
@pytest.mark.on_asyncio
async def test_parts_of_a_docstring_go_where_they_belong(
    dialect: Any, snapshot: SnapshotAssertion
) -> None:
    server = Server("a", compatibility=dialect)
    for number, text in enumerate(DOCSTRINGS):

        def f(a: int, b: int = 0) -> None: ...

        f.__doc__ = text
        server.add_tool(f, f"f{number}")
    async with connect(server, revision=LATEST) as client:
        tools = await client.list_tools()
    described = [tool.input_schema["properties"] for tool in tools]
    parts = [[each.get("description") for each in those.values()] for those in described]
    assert [[tool.description, *part] for tool, part in zip(tools, parts, strict=True)] == snapshot


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
        ({"auth": 1, "streamable_http_path": "/x"}, "http", {}, {**HTTP, "path": "/x", "auth": 1}),
        ({"stateless_http": True}, "streamable-http", {}, {**HTTP, "stateless": True}),
        ({"json_response": True}, "http", {}, {**HTTP, "answers": "json"}),
    ],
)
def test_the_address_of_the_constructor_is_that_of_run(
    options: Any, transport: Any, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    server = Server("a", host="a", **options)
    assert server.settings.arguments(transport, given) == expected


def nothing() -> list[Any]:
    return []


def paged(member: str) -> Any:
    return lambda request: {member: [], "nextCursor": request.params.cursor}


def raising(error: Exception) -> Any:
    def fail() -> None:
        raise error

    return fail


def uri_kind(uri: AnyUrl) -> str:
    return type(uri).__name__


def unknown_kind(uri: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821 - the point
    return type(uri).__name__


async def given(ctx: Any, params: Any) -> Any:
    return {"content": [], "description": params.name, "messages": []}


ERRORS = (ValueError("own"), ProtocolError("c", code=-5), ProtocolError("d", code=-32042))
TOOLS: list[Any] = [
    {"name": "a", "inputSchema": {"type": "object", "required": ["x"]}, **more}
    for more in ({}, {"name": "b", "outputSchema": {"type": "object", "required": ["y"]}})
]
HANDLED: list[tuple[str, dict[str, Any], list[Any]]] = [
    *((method, {"cursor": "7"}, [nothing, paged(member)]) for method, member in LISTS.items()),
    ("tools/list", {}, [lambda: {"tools": 5}, lambda: [object()], *map(raising, ERRORS)]),
    ("prompts/get", {"name": "x"}, [lambda *values: {"messages": [], "description": repr(values)}]),
    (
        "prompts/get",
        {"name": "x", "arguments": {"a": "b"}},
        [lambda name, arguments: {"messages": [], "description": f"{name} {arguments}"}, given],
    ),
    (
        *("resources/read", {"uri": "data://a"}),
        [
            *(uri_kind, unknown_kind, lambda uri: [uri, b"b"], lambda *, more=1: b"b", nothing),
            *(lambda: {"text": "t"}, lambda: [{"uri": uri, "text": "t"} for uri in ("a://", "")]),
            lambda: ReadResourceResult(contents=[]),
        ],
    ),
    (
        *("completion/complete", COMPLETED),
        [lambda *values: {"values": [str(len(values)), values[1].value]}, lambda: None],
    ),
    *(
        (method, {"uri": "data://a"}, [lambda uri: 5])
        for method in ("resources/subscribe", "resources/unsubscribe")
    ),
    ("logging/setLevel", {"level": "info"}, [raising(ERRORS[0])]),  # which is not called
    *(("tools/call", {"name": name, "arguments": {}}, [nothing]) for name in ("a", "c", "alone")),
    (
        *("tools/call", {"name": "a", "arguments": {"x": 1}}),
        [
            *(lambda name, arguments: {"a": [name, arguments]}, lambda: "a", lambda: ([], {}, 1)),
            *(lambda: [TextContent(type="text", text="t")], lambda: ([], {"a": 1}), lambda: ([],)),
            *(lambda: CallToolResult(content=[]), lambda: {1: object()}, lambda: [5], given),
            *map(raising, ERRORS),
        ],
    ),
    (
        *("tools/call", {"name": "b", "arguments": {"x": 1}}),
        [nothing, *(lambda: {"z": 1}, lambda: {"y": 1}, lambda: ([], None))],
    ),
    ("tools/call", {"name": "b", "arguments": {"x": 1}}, [lambda: CallToolResult(content=[])]),
    ("tools/call", {"name": "b"}, [nothing, given]),
]


@pytest.mark.on_asyncio
async def test_functions_take_values_and_return_what_becomes_a_result(
    snapshot: SnapshotAssertion, caplog: pytest.LogCaptureFixture
) -> None:
    rows: list[str] = []
    for method, params, functions in HANDLED:
        for function in functions:
            server = Server("a")
            server.request_handler(method)(function)
            if method == "tools/call" and params["name"] != "alone":
                server.request_handler("tools/list")(lambda: TOOLS)
            async with speaking_to(server, LATEST) as end:
                answer = await end.ask(method, params)
            result = line(answer.get("result", answer.get("error")))
            rows.append(f"{method} {line(params)} -> {result}")
    assert [*rows, *caplog.messages] == snapshot


@pytest.mark.on_asyncio
async def test_functions_come_before_other_handlers_which_keep_the_rest() -> None:
    told: list[str] = []

    class Handlers(ServerHandlers):
        async def list_prompts(self, params: Any, ctx: Any) -> Any:
            return {"prompts": [{"name": "low"}]}

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return {"tools": []}

        async def roots_list_changed(self, params: Any, ctx: Any) -> None:
            told.append("roots")

    server = Server("a", handlers=[Handlers()])
    with pytest.raises(LookupError):
        assert server.current_context

    @server.request_handler("tools/list")
    def list_tools() -> list[Any]:
        told.append(str(server.current_context.revision))
        return TOOLS

    server.resource("data://a")(lambda: "a")
    capabilities: Any = {"roots": {"listChanged": True}}
    async with connect(server, revision=LATEST, capabilities=capabilities) as client:
        assert [each.name for each in await client.list_tools()] == ["a", "b"]
        assert [each.name for each in await client.list_prompts()] == ["low"]
        assert [each.uri for each in await client.list_resources()] == ["data://a"]
        await client.notify("notifications/roots/list_changed")
        await anyio.wait_all_tasks_blocked()
        assert sorted(client.server_capabilities) == ["logging", "prompts", "resources", "tools"]
    assert told == [LATEST, "roots"]


def test_a_request_has_one_function_and_a_known_name(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("a")
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtraError, match="pip install jsonschema"):
        server.request_handler("tools/call")(list)
    server.request_handler("tools/list")(list)
    with pytest.raises(ValueError, match="tools/list: expected one function, got two"):
        server.request_handler("tools/list")(list)
    with pytest.raises(ValueError, match=r"expected one of tools/call, .*, got 'acme/thing'"):
        server.request_handler("acme/thing")(list)


@every
@pytest.mark.parametrize("validates", [True, False])
async def test_functions_list_and_call_tools(revision: str, validates: bool) -> None:
    server = Server("a")
    server.request_handler("tools/list")(
        lambda: [Tool(name="a", input_schema=TOOLS[0]["inputSchema"])]
    )
    call = server.request_handler("tools/call", validate_input=validates)
    call(lambda name, arguments: [TextContent(type="text", text=f"{name} {arguments}")])
    async with connect(server, revision=revision) as client:
        calls = [{"name": "a", "arguments": each} for each in ({}, {"x": 1})]
        results: list[Any] = [await client.request("tools/call", each) for each in calls]
    invalid = "Input validation error: 'x' is a required property" if validates else "a {}"
    assert [each.content[0].text for each in results] == [invalid, "a {'x': 1}"]
