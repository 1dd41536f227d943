"""Our client on the npm package that shows everything a server can do, over pipes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_protocol import ClientHandlers, Exchange, RemoteError, connect

pytestmark = pytest.mark.interop

PEERS = Path(os.environ.get("MCP_NPM_PEERS", "."))
SERVER = PEERS / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


class Listening(ClientHandlers):
    """Keeps the log messages it hears, and tells when the first has come."""

    def __init__(self) -> None:
        self.logs: list[Any] = []
        self.heard = anyio.Event()

    async def logging_message(self, params: Any, exchange: Exchange) -> None:
        self.logs.append(params)
        self.heard.set()


@pytest.fixture(scope="module", params=REVISIONS)
async def session(
    request: pytest.FixtureRequest, anyio_backend: str
) -> AsyncIterator[tuple[Any, Listening]]:
    handlers = Listening()
    assert SERVER.is_file(), "MCP_NPM_PEERS names no folder with the server: run nox -s interop"
    command = ["node", str(SERVER), "stdio"]
    async with connect(command, revision=request.param, handlers=handlers) as connected:
        assert connected.revision == request.param
        yield connected, handlers


@pytest.fixture
def client(session: tuple[Any, Listening]) -> Any:
    """The face of one revision; untyped, because the tests hold for all of them."""
    return session[0]


async def test_a_server_of_unknown_age_is_met_in_its_newest_revision() -> None:
    async with connect(["node", str(SERVER), "stdio"]) as client:
        assert client.revision == REVISIONS[-1]


async def test_tools_are_listed_and_called(client: Any) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert tools["echo"].input_schema["required"] == ["message"]
    result = await client.call_tool("echo", {"message": "hello"})
    assert result.content[0].text == "Echo: hello"


async def test_content_of_several_kinds_comes_as_its_own_classes(client: Any) -> None:
    arguments = {"messageType": "error", "includeImage": True}
    content = (await client.call_tool("get-annotated-message", arguments)).content
    assert [block.type for block in content] == ["text", "image"]
    assert content[0].annotations.priority == 1.0


async def test_progress_arrives_in_order(client: Any) -> None:
    heard: list[Any] = []

    def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    arguments = {"duration": 0.3, "steps": 3}
    await client.call_tool("trigger-long-running-operation", arguments, on_progress=hear)
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_a_log_message_arrives(session: tuple[Any, Listening]) -> None:
    client, handlers = session
    await client.set_level("debug")
    await client.call_tool("toggle-simulated-logging")
    with anyio.fail_after(20):
        await handlers.heard.wait()
    assert "message" in handlers.logs[0].data


async def test_an_unknown_resource_is_an_error(client: Any) -> None:
    with pytest.raises(RemoteError) as caught:
        await client.read_resource("demo://resource/nowhere")
    assert caught.value.code in (-32002, -32602)


async def test_a_call_with_bad_arguments_is_a_result_with_an_error(client: Any) -> None:
    assert (await client.call_tool("echo", {})).is_error is True


async def test_resources_are_listed_and_read(client: Any) -> None:
    resources = await client.list_resources()
    [document] = (await client.read_resource(resources[0].uri)).contents
    assert document.text
    templates = {template.uri_template for template in await client.list_resource_templates()}
    assert "demo://resource/dynamic/blob/{resourceId}" in templates
    [blob] = (await client.read_resource("demo://resource/dynamic/blob/1")).contents
    assert blob.blob


async def test_prompts_are_listed_and_got(client: Any) -> None:
    assert "args-prompt" in {prompt.name for prompt in await client.list_prompts()}
    got = await client.get_prompt("args-prompt", {"city": "Oslo"})
    assert got.messages[0].content.text == "What's weather in Oslo?"


async def test_arguments_are_completed(client: Any) -> None:
    reference = {"type": "ref/prompt", "name": "completable-prompt"}
    result = await client.complete(ref=reference, argument={"name": "department", "value": "E"})
    assert result.completion.values == ["Engineering"]
