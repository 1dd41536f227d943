"""FastMCP as client of our server, over HTTP, in every revision that it speaks there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import mcp.types
import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from interop.hearing import Heard
from interop.processes import ours
from interop.revisions import (
    ELICITATION,
    PAGES,
    PYTHON_WAYS,
    STRUCTURED_OUTPUT,
    is_modern,
    offer_revision,
)

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.on_asyncio,
]


@dataclass
class Visit:
    """A client at work, and what it heard."""

    client: Client[Any]
    transport: str
    revision: str
    heard: Heard
    logs: Heard
    progress: list[Any]

    @property
    def modern(self) -> bool:
        return is_modern(self.revision)

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text that a tool answers with."""
        return (await self.client.call_tool(tool, arguments)).content[0].text


async def fill_in(message: str, kind: Any, params: Any, context: Any) -> Any:
    return ElicitResult(action="accept") if kind is None else kind(name="Ada", nights=3)


@asynccontextmanager
async def visit(url: str, transport: str, revision: str) -> AsyncIterator[Visit]:
    heard, logs = Heard(), Heard()
    progress: list[Any] = []

    async def keep(message: Any) -> None:
        heard.keep(message)

    async def keep_log(params: Any) -> None:
        logs.keep((params.level, params.logger, params.data))

    async def keep_progress(value: float, total: float | None, message: str | None) -> None:
        progress.append((value, total))

    sse = transport == "sse"
    way = SSETransport(url.replace("/mcp", "/sse")) if sse else StreamableHttpTransport(url)
    client = Client(
        way,
        mode="auto" if is_modern(revision) else "legacy",
        message_handler=keep,
        log_handler=keep_log,
        progress_handler=keep_progress,
        elicitation_handler=fill_in,
        sampling_handler=lambda messages, params, context: f"<{messages[-1].content.text}>",
        roots=["file:///maps"],
    )
    async with AsyncExitStack() as entered:
        with offer_revision(revision):
            await entered.enter_async_context(client)
        yield Visit(client, transport, revision, heard, logs, progress)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ours() as served:
        yield served


@pytest.fixture(scope="module", params=PYTHON_WAYS, ids="-".join)
async def visitor(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Visit]:
    async with visit(url, *request.param) as visiting:
        yield visiting


async def test_the_revision_asked_for_is_the_one_agreed(visitor: Visit) -> None:
    client = visitor.client
    assert client.protocol_version == visitor.revision
    assert client.server_info is not None
    assert client.server_info.name == "ours"
    assert client.instructions == "Ask for a city."


async def test_tools_are_listed_and_called(visitor: Visit) -> None:
    tools = {tool.name: tool for tool in await visitor.client.list_tools()}
    assert tools["add"].input_schema["required"] == ["a", "b"]
    result = await visitor.client.call_tool("add", {"a": 1, "b": 2})
    assert result.content[0].text == "3"
    if visitor.revision in STRUCTURED_OUTPUT:
        assert result.data == 3


async def test_an_argument_that_a_header_repeats_arrives(visitor: Visit) -> None:
    await visitor.client.list_tools()
    assert await visitor.text("district", city="Oslo", area=" \xfc ") == " \xfc  of Oslo"


async def test_progress_arrives_in_order(visitor: Visit) -> None:
    await visitor.text("count", to=3)
    assert visitor.progress == [(1, 3), (2, 3), (3, 3)]


async def test_a_log_message_arrives(visitor: Visit) -> None:
    if not visitor.modern:
        await visitor.client.set_logging_level("info")
    await visitor.text("note", text="rain")
    assert visitor.logs == [("warning", "notes", "rain")]


async def test_a_tools_own_failure_is_raised_with_its_text(visitor: Visit) -> None:
    with pytest.raises(ToolError, match="out of order"):
        await visitor.client.call_tool("fail")


async def test_an_error_of_a_handler_arrives_with_code_and_data(visitor: Visit) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await visitor.client.call_tool("refuse")
    error = caught.value.error
    assert (error.code, error.message, error.data) == (1050, "not today", {"retry": False})


async def test_resources_are_listed_and_read(visitor: Visit) -> None:
    client = visitor.client
    listed = {str(resource.uri) for resource in await client.list_resources()}
    assert listed == {"city://list", "city://map"}
    [template] = await client.list_resource_templates()
    assert template.uri_template == "city://{name}/weather"
    [text] = await client.read_resource("city://Oslo/weather")
    assert text.text == "sun in Oslo"
    [blob] = await client.read_resource("city://map")
    assert (blob.blob, blob.mime_type) == ("iVBORw==", "image/png")


async def test_prompts_are_listed_and_got_and_completed(visitor: Visit) -> None:
    client = visitor.client
    [prompt] = await client.list_prompts()
    assert [argument.name for argument in prompt.arguments or ()] == ["city"]
    got = await client.get_prompt("greet", {"city": "Oslo"})
    assert [message.content.text for message in got.messages] == ["Greetings from Oslo"]
    reference = mcp.types.PromptReference(name="greet")
    completed = await client.complete(reference, {"name": "city", "value": "Os"})
    assert completed.values == ["Oslo", "Ostrava"]


async def test_a_tool_asks_the_clients_model_and_for_its_roots(visitor: Visit) -> None:
    assert (await visitor.text("translate", text="sun")).endswith("says: <sun>")
    assert (await visitor.text("folders")).startswith("file:///maps")


async def test_a_tool_asks_the_user_once_and_again(visitor: Visit) -> None:
    if visitor.revision not in ELICITATION:
        with pytest.raises(mcp.MCPError, match="elicitation"):
            await visitor.text("book")
        return
    assert await visitor.text("book") == "booked for Ada (3)"
    assert await visitor.text("book_twice") == "booked for Ada (3), then Ada (3)"
    assert await visitor.text("plan") == "Ada (3), <sun>, file:///maps"
    if visitor.revision in PAGES:
        assert await visitor.text("sign_in") == "accept"


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(visitor: Visit) -> None:
    name = f"{visitor.transport}-{visitor.revision}"

    async def leave(progress: float, total: float | None, message: str | None) -> None:
        scope.cancel()

    with anyio.fail_after(20), anyio.CancelScope() as scope:
        await visitor.client.call_tool("wait", {"name": name}, progress_handler=leave)
    assert scope.cancelled_caught
    assert await visitor.text("was_cancelled", name=name) == "true"


@pytest.mark.parametrize("kind", ["Tool", "Prompt", "Resource"])
async def test_changes_are_announced(visitor: Visit, kind: str) -> None:
    if visitor.modern:
        pytest.skip("FastMCP does not listen")
    await visitor.text("change")
    wanted = getattr(mcp.types, f"{kind}ListChangedNotification")
    await visitor.heard.until(lambda message: isinstance(message, wanted))


async def test_a_stream_that_the_server_closes_is_taken_up_again(visitor: Visit) -> None:
    assert await visitor.text("part") == "met again"


async def test_its_own_negotiation_ends_in_its_newest(url: str) -> None:
    async with Client(url) as client:
        assert client.protocol_version == MODERN_PROTOCOL_VERSIONS[-1]
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
