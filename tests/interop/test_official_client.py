"""The official SDK as client of our server, over pipes, in every revision that it speaks."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp
import mcp.types
import pytest
from mcp.types import PromptReference, ResourceTemplateReference
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

import mcpgen_runtime
from interop.revisions import STRUCTURED_OUTPUT

pytestmark = [
    pytest.mark.interop,
    pytest.mark.on_asyncio,
]

PACKAGE = Path(mcpgen_runtime.__file__).parent
SERVER = mcp.StdioServerParameters(
    command=sys.executable,
    args=[str(Path(__file__).with_name("our_server.py"))],
    env={"PYTHONPATH": str(PACKAGE.parent)},
)
RESOURCE_NOT_FOUND_IS_INVALID_PARAMS = ("2026-07-28",)


@dataclass
class Visit:
    """An open session, and what it heard."""

    session: mcp.ClientSession
    revision: str
    logs: list[Any] = field(default_factory=list)

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.session.call_tool(name, arguments)


@asynccontextmanager
async def visit(revision: str) -> AsyncIterator[Visit]:
    """A session in one revision: the SDK's own client only ever offers its newest."""
    logs: list[Any] = []

    async def keep(params: Any) -> None:
        logs.append((params.level, params.logger, params.data))

    modern = revision in MODERN_PROTOCOL_VERSIONS
    async with (
        mcp.stdio_client(SERVER) as (read, write),
        mcp.ClientSession(
            read, write, logging_callback=keep, log_level="debug" if modern else None
        ) as session,
    ):
        if modern:
            await session.discover()
        else:
            params = mcp.types.InitializeRequestParams(
                protocol_version=revision,
                capabilities=mcp.types.ClientCapabilities(),
                client_info=mcp.Implementation(name="official", version="2"),
            )
            request = mcp.InitializeRequest(params=params)
            session.adopt(await session.send_request(request, mcp.InitializeResult))
            await session.send_notification(mcp.InitializedNotification())
        yield Visit(session, revision, logs)


@pytest.fixture(scope="module", params=[*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS])
async def visitor(request: pytest.FixtureRequest) -> AsyncIterator[Visit]:
    async with visit(request.param) as visiting:
        yield visiting


async def test_the_revision_asked_for_is_the_one_agreed(visitor: Visit) -> None:
    assert visitor.session.protocol_version == visitor.revision
    assert visitor.session.server_info is not None
    assert visitor.session.server_info.name == "ours"
    assert visitor.session.instructions == "Ask for a city."


async def test_tools_are_listed_and_called(visitor: Visit) -> None:
    tools = {tool.name: tool for tool in (await visitor.session.list_tools()).tools}
    assert tools["add"].description == "The sum of two numbers."
    assert tools["add"].input_schema["required"] == ["a", "b"]
    result = await visitor.call("add", a=1, b=2)
    assert result.content[0].text == "3"
    structured = {"result": 3} if visitor.revision in STRUCTURED_OUTPUT else None
    assert result.structured_content == structured


async def test_progress_arrives_in_order(visitor: Visit) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    await visitor.session.call_tool("count", {"to": 3}, progress_callback=hear)
    assert heard == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_log_message_arrives(visitor: Visit) -> None:
    if visitor.revision in HANDSHAKE_PROTOCOL_VERSIONS:
        await visitor.session.set_logging_level("info")
    await visitor.call("note", text="rain")
    assert visitor.logs == [("warning", "notes", "rain")]


async def test_a_tools_own_failure_is_a_result_with_its_text(visitor: Visit) -> None:
    result = await visitor.call("fail")
    assert result.is_error
    assert result.content[0].text == "out of order"


async def test_an_error_of_a_handler_arrives_with_code_and_data(visitor: Visit) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await visitor.call("refuse")
    error = caught.value.error
    assert (error.code, error.message, error.data) == (1050, "not today", {"retry": False})


async def test_an_unknown_tool_is_a_protocol_error(visitor: Visit) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await visitor.call("no-such-tool")
    assert caught.value.error.code == -32602


async def test_prints_of_a_tool_do_not_reach_the_client(visitor: Visit) -> None:
    assert (await visitor.call("shout", text="{}")).content[0].text == "shouted"
    assert (await visitor.call("add", a=2, b=2)).content[0].text == "4"


async def test_resources_are_listed_and_read(visitor: Visit) -> None:
    session = visitor.session
    listed = {resource.uri for resource in (await session.list_resources()).resources}
    assert listed == {"city://list", "city://map"}
    [template] = (await session.list_resource_templates()).resource_templates
    assert template.uri_template == "city://{name}/weather"
    [text] = (await session.read_resource("city://list")).contents
    assert text.text == "Oslo\nOstrava\nPorto"
    [text] = (await session.read_resource("city://Oslo/weather")).contents
    assert (text.text, text.uri) == ("sun in Oslo", "city://Oslo/weather")
    [blob] = (await session.read_resource("city://map")).contents
    assert (blob.blob, blob.mime_type) == ("iVBORw==", "image/png")


async def test_a_resource_that_is_not_there_is_an_error(visitor: Visit) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await visitor.session.read_resource("city://nowhere")
    moved = visitor.revision in RESOURCE_NOT_FOUND_IS_INVALID_PARAMS
    assert caught.value.error.code == (-32602 if moved else -32002)


async def test_prompts_are_listed_and_got(visitor: Visit) -> None:
    [prompt] = (await visitor.session.list_prompts()).prompts
    assert [argument.name for argument in prompt.arguments or ()] == ["city"]
    got = await visitor.session.get_prompt("greet", {"city": "Oslo"})
    assert [message.content.text for message in got.messages] == ["Greetings from Oslo"]


@pytest.mark.parametrize(
    ("reference", "argument"),
    [
        (PromptReference(name="greet"), "city"),
        (ResourceTemplateReference(uri="city://{name}/weather"), "name"),
    ],
    ids=["prompt", "template"],
)
async def test_arguments_are_completed(visitor: Visit, reference: Any, argument: str) -> None:
    result = await visitor.session.complete(reference, {"name": argument, "value": "Os"})
    assert result.completion.values == ["Oslo", "Ostrava"]


@pytest.mark.parametrize(
    ("mode", "agreed"),
    [("auto", MODERN_PROTOCOL_VERSIONS[-1]), ("legacy", HANDSHAKE_PROTOCOL_VERSIONS[-1])],
)
async def test_the_sdks_own_negotiation_ends_in_its_newest(mode: str, agreed: str) -> None:
    async with mcp.Client(SERVER, mode=mode) as client:
        assert client.protocol_version == agreed
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
