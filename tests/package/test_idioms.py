"""Idioms of FastMCP and of the official SDK that the package supports as they are written."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest

import mcpgen_runtime
from kit.live import open_and_close
from kit.rules import module_of
from kit.wire import ALL, every
from mcpgen_runtime import (
    Accepted,
    Client,
    ClientHandlers,
    Context,
    Depends,
    Middleware,
    MiddlewareRequest,
    Next,
    Server,
    SyncClientHandlers,
    TextContent,
    ToolResult,
    connect,
    connect_sync,
    models,
    to_builtins,
)
from mcpgen_runtime.testing import connected
from package.server.openapi.one_server import one

HANDSHAKE = ALL[-2]


@dataclass
class Report:
    late: int


async def test_decorators_without_parentheses_or_called_with_a_function_register() -> None:
    server: Any = Server("bare")

    @server.tool
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    @server.prompt
    def ask(topic: str) -> str:
        return f"What is {topic}?"

    assert server.tool(ask, title="The question") is ask
    assert double(2) == 4
    assert ask("rain") == "What is rain?"
    tool, second = await server.list_tools()
    assert (tool.name, tool.description) == ("double", "Twice a number.")
    assert (second.name, second.title) == ("ask", "The question")
    assert (await server.call_tool("double", {"number": 4})).structured_content == {"result": 8}
    result = await server.get_prompt("ask", {"topic": "snow"})
    assert result.messages[0].content.text == "What is snow?"


async def test_a_dependency_may_be_the_default() -> None:
    server = Server("dependencies")
    closed: list[str] = []

    def opened(name: str = Depends(lambda: "db")) -> Iterator[str]:
        yield name.upper()
        closed.append(name)

    @server.tool
    def find(word: str, db: str = Depends(opened)) -> str:
        return f"{word} {db}"

    (tool,) = await server.list_tools()
    assert list(tool.input_schema["properties"]) == ["word"]
    result: Any = await server.call_tool("find", {"word": "rain"})
    assert (result.content[0].text, closed) == ("rain DB", ["db"])


SCRIPT = """
import sys
sys.path.insert(0, {path!r})
from mcpgen_runtime import Server

server = Server("script")

@server.tool
def double(number: int) -> int:
    return 2 * number

server.run("stdio")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "weather.py"
    path.write_text(SCRIPT.format(path=str(Path(mcpgen_runtime.__file__).parents[1])), "utf-8")
    return path


async def test_a_path_of_a_script_is_run(script: Path) -> None:
    async with connect(script) as client:
        assert isinstance(client, Client)
        result = await client.call_tool("double", {"number": 4})
        assert result.structured_content == {"result": 8}
    made: list[ClientHandlers] = []

    class Counted(ClientHandlers):
        def __init__(self) -> None:
            made.append(self)

    config = {"mcpServers": {"weather": script, "other": script}}
    async with connect(config, handlers=Counted) as client:
        assert sorted(client.servers) == ["other", "weather"]
        tools = [tool.name for tool in await client.list_tools()]
    assert sorted(tools) == ["other_double", "weather_double"]
    assert len(made) == 1


async def test_a_script_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await open_and_close(connect(tmp_path / "nothing.py"))


class Answers(ClientHandlers):
    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"value": "12a"}}

    async def create_message(self, params: Any, ctx: Any) -> Any:
        text = f"{params.max_tokens} tokens"
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": text}}


class SyncAnswers(SyncClientHandlers):
    def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"value": "12a"}}


@pytest.fixture
def asking_server() -> Server:
    """A server that asks its client for a form and for a message of a model."""
    server = Server("asking")

    @server.tool
    async def seat(ctx: Context) -> str:
        answer = await ctx.elicit("Which seat?", str)
        assert isinstance(answer, Accepted)
        return answer.data

    @server.tool
    async def say(ctx: Context) -> str:
        return (await ctx.sample("hi")).text

    return server


@pytest.mark.parametrize("revision", [HANDSHAKE, ALL[-1]])
async def test_handlers_may_be_a_class_and_an_answer_has_data(
    asking_server: Server, revision: str
) -> None:
    async with connect(asking_server, handlers=Answers, revision=revision) as client:
        seat: Any = await client.call_tool("seat")
        said: Any = await client.call_tool("say")
    assert (seat.content[0].text, said.content[0].text) == ("12a", "1024 tokens")


def test_handlers_of_the_blocking_client_may_be_a_class(asking_server: Server) -> None:
    with connect_sync(asking_server, handlers=SyncAnswers) as client:
        seat: Any = client.call_tool("seat")
    assert seat.content[0].text == "12a"


async def test_an_openapi_document_has_the_keywords_of_fastmcp() -> None:
    untyped: Any = Server
    async with httpx2.AsyncClient(base_url="https://api.example.com") as http:
        server = untyped.from_openapi(openapi_spec=one("/pets", {}), client=http, name="Pets")
        assert [tool.name for tool in await server.list_tools()] == ["call"]
        with pytest.raises(TypeError, match="expected an OpenAPI document as spec, got none"):
            untyped.from_openapi(client=http)


MADE_AS_ELSEWHERE = [
    ("TextContent", {"type": "text", "text": "rain"}),
    ("ImageContent", {"type": "image", "data": "aQ==", "mimeType": "image/png"}),
    ("CallToolResult", {"content": [], "isError": True}),
    ("Tool", {"name": "a", "inputSchema": {"type": "object"}}),
]


@pytest.mark.parametrize(("name", "members"), MADE_AS_ELSEWHERE)
@pytest.mark.parametrize("revision", [None, *ALL[2:]])
def test_message_types_take_constants_and_names_of_the_wire(
    name: str, members: dict[str, Any], revision: str | None
) -> None:
    module: Any = mcpgen_runtime
    if revision is not None:
        module = module_of(revision)
        if not hasattr(module, name):
            pytest.skip("the revision has no such type")
    wire = to_builtins(getattr(module, name)(**members))
    assert {member: wire[member] for member in members} == members


@pytest.mark.parametrize("module", [mcpgen_runtime, module_of(ALL[-1])])
def test_a_constant_of_another_value_is_refused(module: Any) -> None:
    with pytest.raises((TypeError, ValueError)):  # models of pydantic raise ValueError
        module.TextContent(text="rain", type="image")


@every
async def test_results_of_the_protocol_are_sent_as_they_are(revision: str) -> None:
    server = Server("results")
    rain = TextContent(text="rain")

    @server.tool
    def whole() -> models.CallToolResult:
        return models.CallToolResult(content=[rain], structured_content={"mm": 3}, meta={"a/b": 1})

    @server.prompt
    def ask() -> models.GetPromptResult:
        message = models.PromptMessage(role="assistant", content=rain)
        return models.GetPromptResult(messages=[message], description="Rain.", meta={"a/b": 1})

    contents = models.TextResourceContents(uri="data://b", text="rain", mime_type="text/csv")
    server.add_resource(lambda: contents, "data://one", name="one")
    server.add_resource(
        lambda: models.ReadResourceResult(contents=[contents, contents]), "data://two", name="two"
    )
    untyped: Any
    async with connect(server, revision=revision) as untyped:
        result = to_builtins(await untyped.call_tool("whole"))
        assert [block["text"] for block in result["content"]] == ["rain"]
        assert result["_meta"]["a/b"] == 1
        assert result.get("structuredContent", {"mm": 3}) == {"mm": 3}
        prompt = await untyped.get_prompt("ask")
        assert (prompt.description, prompt.messages[0].role) == ("Rain.", "assistant")
        assert prompt.meta["a/b"] == 1
        for uri, count in (("data://one", 1), ("data://two", 2)):
            read = (await untyped.read_resource(uri)).contents
            assert [to_builtins(each) for each in read] == [to_builtins(contents)] * count
        (tool,) = await untyped.list_tools()
        assert getattr(tool, "output_schema", None) is None


@pytest.mark.parametrize("kind", [ToolResult, models.CallToolResult])
async def test_a_complete_result_names_the_type_of_its_value(kind: Any) -> None:
    server = Server("results")

    def report(late: Any) -> Annotated[kind, Report]:
        return kind(content=[TextContent(text="late")], structured_content={"late": late})

    def failing() -> Annotated[kind, Report]:
        return kind(content=[TextContent(text="late")] * 2, is_error=True)

    server.add_tool(report)
    server.add_tool(failing)
    tool: Any
    tool, _ = await server.list_tools()
    assert tool.output_schema["properties"] == {"late": {"type": "integer"}}
    failed = await server.call_tool("failing")
    assert (failed.is_error, len(failed.content)) == (True, 2)
    assert (await server.call_tool("report", {"late": 3})).structured_content == {"late": 3}
    assert (await server.call_tool("report", {"late": "x"})).is_error


class Recorder(Middleware):
    """Writes down which of its methods a message has passed."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    async def on_message(self, context: MiddlewareRequest, call_next: Next) -> Any:
        self.passed.append(f"message {context.method}")
        return await call_next(context)

    async def on_request(self, context: MiddlewareRequest, call_next: Next) -> Any:
        self.passed.append("request")
        return await call_next(context)

    async def on_notification(self, context: MiddlewareRequest, call_next: Next) -> Any:
        self.passed.append("notification")
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareRequest, call_next: Next) -> Any:
        self.passed.append(f"tool {context.message.name}")
        result = await call_next(context)
        return {"content": [{"type": "text", "text": f"{result.content[0].text} here"}]}


@pytest.mark.parametrize("way", ["middleware", "add_middleware", "argument"])
async def test_middleware_may_be_a_class_with_methods(way: str) -> None:
    recorder = Recorder()
    server = Server("m", middleware=[recorder] if way == "argument" else ())
    if way != "argument":
        getattr(server, way)(recorder)
    server.add_tool(lambda: "rain", "weather")
    roots = {"roots": {"listChanged": True}}
    async with connected(server, revision=HANDSHAKE, capabilities=roots) as pair:
        result: Any = await pair.client.call_tool("weather")
        await pair.client.list_tools()
        await pair.client.notify("notifications/roots/list_changed")
        await pair.client.ping()
    assert result.content[0].text == "rain here"
    assert recorder.passed == [
        *("message notifications/initialized", "notification"),
        *("message tools/call", "request", "tool weather"),
        *("message tools/list", "request"),
        *("message notifications/roots/list_changed", "notification"),
    ]


@pytest.mark.parametrize("name", ["on_tool_call", "on_initialize"])
def test_a_method_of_middleware_that_nothing_calls_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"^Mine: no message has {name}; expected .*on_call_tool"):
        type("Mine", (Middleware,), {name: Recorder.on_request})


async def test_a_message_of_middleware_names_another_attribute() -> None:
    server = Server("m")
    server.add_tool(lambda: "rain", "weather")
    refused: list[str] = []

    @server.middleware
    async def look(request: Any, next: Next) -> Any:
        with pytest.raises(AttributeError) as error:
            _ = request.fastmcp_context
        refused.append(str(error.value))
        return await next(request)

    await server.list_tools()
    assert refused == [
        "'MiddlewareRequest' object has no attribute 'fastmcp_context': use request.context"
    ]


def test_the_ending_of_a_script_says_what_runs_it(tmp_path: Path) -> None:
    from mcpgen_runtime.client.server_process import script_command

    assert script_command(Path(__file__)) == [sys.executable, __file__]
    other = tmp_path / "server.js"
    other.touch()
    assert script_command(other) == ["node", str(other)]
    with pytest.raises(ValueError, match=r"expected the path of a script \(\.js, .*got mcp\.json"):
        script_command(Path("mcp.json"))
