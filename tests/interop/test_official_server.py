"""Our client on a server of the official SDK, over pipes, in every revision that it speaks."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS

from mcpgen_runtime import ClientHandlers, RemoteError, RequestContext, connect

pytestmark = pytest.mark.interop

COMMAND = [sys.executable, str(Path(__file__).with_name("official_server.py"))]


class Listening(ClientHandlers):
    """Keeps the log messages it hears."""

    def __init__(self) -> None:
        self.logs: list[Any] = []

    async def logging_message(self, params: Any, ctx: RequestContext) -> None:
        self.logs.append((params.level, params.logger, params.data))


@pytest.fixture(scope="module", params=SUPPORTED_PROTOCOL_VERSIONS)
async def session(
    request: pytest.FixtureRequest, anyio_backend: str
) -> AsyncIterator[tuple[Any, Listening]]:
    handlers = Listening()
    async with connect(COMMAND, revision=request.param, handlers=handlers) as connected:
        assert connected.revision == request.param
        yield connected, handlers


@pytest.fixture
def client(session: tuple[Any, Listening]) -> Any:
    """The face of one revision; untyped, because the tests hold for all of them."""
    return session[0]


async def test_the_newest_common_revision_is_negotiated_by_default() -> None:
    async with connect(COMMAND) as client:
        assert client.revision == SUPPORTED_PROTOCOL_VERSIONS[-1]
        assert client.server_info["name"] == "official"


async def test_tools_are_listed_and_called(client: Any) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert tools["add"].input_schema["required"] == ["a", "b"]
    result = await client.call_tool("add", {"a": 1, "b": 2})
    assert result.content[0].text == "3"


async def test_progress_arrives_in_order(client: Any) -> None:
    heard: list[Any] = []

    def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    result = await client.call_tool("count", {"to": 3}, on_progress=hear)
    assert result.content[0].text == "counted to 3"
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_a_log_message_arrives(session: tuple[Any, Listening]) -> None:
    client, handlers = session
    client.ask_for_logs("info")
    await client.call_tool("note", {"text": "rain"})
    assert handlers.logs == [("warning", "notes", "rain")]


async def test_a_tools_own_failure_is_a_result(client: Any) -> None:
    assert (await client.call_tool("fail")).is_error is True


async def test_an_error_of_the_server_arrives_with_code_and_data(client: Any) -> None:
    with pytest.raises(RemoteError) as caught:
        await client.call_tool("refuse")
    error = caught.value
    assert (error.code, error.message, error.data) == (1050, "not today", {"retry": False})


async def test_resources_are_listed_and_read(client: Any) -> None:
    assert [resource.uri for resource in await client.list_resources()] == ["city://list"]
    [template] = await client.list_resource_templates()
    assert template.uri_template == "city://{name}/weather"
    [text] = (await client.read_resource("city://list")).contents
    assert text.text == "Oslo\nOstrava\nPorto"
    [text] = (await client.read_resource("city://Oslo/weather")).contents
    assert text.text == "sun in Oslo"


async def test_a_resource_that_is_not_there_is_an_error(client: Any) -> None:
    with pytest.raises(RemoteError) as caught:
        await client.read_resource("city://nowhere")
    assert caught.value.code in (-32002, -32602)


async def test_prompts_are_listed_and_got(client: Any) -> None:
    [prompt] = await client.list_prompts()
    assert [argument.name for argument in prompt.arguments] == ["city"]
    got = await client.get_prompt("greet", {"city": "Oslo"})
    assert [message.content.text for message in got.messages] == ["Greetings from Oslo"]


async def test_arguments_are_completed(client: Any) -> None:
    reference = {"type": "ref/prompt", "name": "greet"}
    result = await client.complete(ref=reference, argument={"name": "city", "value": "Os"})
    assert result.completion.values == ["Oslo", "Ostrava"]
