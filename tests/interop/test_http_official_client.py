"""The official SDK as client of our server, over HTTP, in every revision that it speaks there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import mcp
import mcp.types
import pytest
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import PromptReference, ResourceTemplateReference
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from interop.hearing import Heard
from interop.processes import ours
from interop.revisions import (
    ELICITATION,
    ELICITATION_IDS,
    PAGES,
    PYTHON_WAYS,
    RESUMING,
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
    """A client at work, what it heard, and the HTTP that went by."""

    client: mcp.Client
    transport: str
    revision: str
    heard: Heard
    logs: list[Any]
    answers: list[httpx2.Response] = field(default_factory=list)

    @property
    def modern(self) -> bool:
        return is_modern(self.revision)

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text that a tool answers with."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result
        return result.content[0].text

    async def notified(self, kind: type[Any]) -> Any:
        return await self.heard.until(lambda message: isinstance(message, kind))

    def headers(self, method: str) -> list[httpx2.Headers]:
        """The header fields of the requests with an HTTP method."""
        return [each.request.headers for each in self.answers if each.request.method == method]


async def fill_in(context: Any, params: Any) -> mcp.types.ElicitResult:
    if params.mode == "url":
        return mcp.types.ElicitResult(action="accept")
    return mcp.types.ElicitResult(action="accept", content={"name": "Ada", "nights": 3})


async def answer(context: Any, params: Any) -> mcp.types.CreateMessageResult:
    content = mcp.types.TextContent(text=f"<{params.messages[-1].content.text}>")
    return mcp.types.CreateMessageResult(role="assistant", content=content, model="parrot")


async def roots(context: Any) -> mcp.types.ListRootsResult:
    return mcp.types.ListRootsResult.model_validate({"roots": [{"uri": "file:///maps"}]})


@asynccontextmanager
async def visit(url: str, transport: str, revision: str) -> AsyncIterator[Visit]:
    heard, logs, answers = Heard(), Heard(), []

    async def keep(message: Any) -> None:
        heard.keep(message)

    async def keep_log(params: Any) -> None:
        logs.keep((params.level, params.logger, params.data))

    async def keep_answer(response: httpx2.Response) -> None:
        answers.append(response)

    modern = is_modern(revision)
    async with (
        httpx2.AsyncClient(timeout=30, event_hooks={"response": [keep_answer]}) as http,
        AsyncExitStack() as entered,
    ):
        way = (
            sse_client(url.replace("/mcp", "/sse"))
            if transport == "sse"
            else streamable_http_client(url, http_client=http)
        )
        client = mcp.Client(
            way,
            mode="auto" if modern else "legacy",
            message_handler=keep,
            logging_callback=keep_log,
            log_level="debug" if modern else None,
            elicitation_callback=fill_in,
            sampling_callback=answer,
            list_roots_callback=roots,
            cache=None,
        )
        with offer_revision(revision):
            await entered.enter_async_context(client)
        yield Visit(client, transport, revision, heard, logs, answers)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ours() as served:
        yield served


@pytest.fixture(scope="module", params=PYTHON_WAYS, ids="-".join)
async def visitor(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Visit]:
    async with visit(url, *request.param) as visiting:
        yield visiting


async def test_the_revision_asked_for_is_the_one_agreed(visitor: Visit) -> None:
    assert visitor.client.protocol_version == visitor.revision
    assert visitor.client.server_info is not None
    assert visitor.client.server_info.name == "ours"
    assert visitor.client.instructions == "Ask for a city."


async def test_tools_are_listed_and_called(visitor: Visit) -> None:
    tools = {tool.name: tool for tool in (await visitor.client.list_tools()).tools}
    assert tools["add"].input_schema["required"] == ["a", "b"]
    result = await visitor.client.call_tool("add", {"a": 1, "b": 2})
    assert result.content[0].text == "3"
    structured = {"result": 3} if visitor.revision in STRUCTURED_OUTPUT else None
    assert result.structured_content == structured


@pytest.mark.parametrize("area", ["north", " \xfc ", "=?base64?eA==?=", "", "a\nb"])
async def test_an_argument_that_a_header_repeats_arrives(visitor: Visit, area: str) -> None:
    await visitor.client.list_tools()
    assert await visitor.text("district", city="Oslo", area=area) == f"{area} of Oslo"


async def test_calls_side_by_side_get_their_own_answers(visitor: Visit) -> None:
    answers: dict[int, str] = {}

    async def call(number: int) -> None:
        answers[number] = await visitor.text("add", a=number, b=number)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(call, number)
    assert answers == {number: str(2 * number) for number in range(20)}


async def test_progress_arrives_in_order(visitor: Visit) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    await visitor.client.call_tool("count", {"to": 3}, progress_callback=hear)
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_a_log_message_arrives(visitor: Visit) -> None:
    if not visitor.modern:
        await visitor.client.set_logging_level("info")
    await visitor.text("note", text="rain")
    assert visitor.logs == [("warning", "notes", "rain")]


async def test_a_tools_own_failure_is_a_result_with_its_text(visitor: Visit) -> None:
    result = await visitor.client.call_tool("fail")
    assert result.is_error
    assert result.content[0].text == "out of order"


async def test_an_error_of_a_handler_arrives_with_code_and_data(visitor: Visit) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await visitor.client.call_tool("refuse")
    error = caught.value.error
    assert (error.code, error.message, error.data) == (1050, "not today", {"retry": False})


async def test_an_unknown_tool_is_a_protocol_error(visitor: Visit) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await visitor.client.call_tool("no-such-tool")
    assert caught.value.error.code == -32602


async def test_resources_are_listed_and_read(visitor: Visit) -> None:
    client = visitor.client
    listed = {resource.uri for resource in (await client.list_resources()).resources}
    assert listed == {"city://list", "city://map"}
    [template] = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "city://{name}/weather"
    [text] = (await client.read_resource("city://Oslo/weather")).contents
    assert (text.text, text.uri) == ("sun in Oslo", "city://Oslo/weather")
    [blob] = (await client.read_resource("city://map")).contents
    assert (blob.blob, blob.mime_type) == ("iVBORw==", "image/png")


async def test_a_resource_that_is_not_there_is_an_error(visitor: Visit) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await visitor.client.read_resource("city://nowhere")
    assert caught.value.error.code == (-32602 if visitor.modern else -32002)


async def test_prompts_are_listed_and_got(visitor: Visit) -> None:
    [prompt] = (await visitor.client.list_prompts()).prompts
    assert [argument.name for argument in prompt.arguments or ()] == ["city"]
    got = await visitor.client.get_prompt("greet", {"city": "Oslo"})
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
    result = await visitor.client.complete(reference, {"name": argument, "value": "Os"})
    assert result.completion.values == ["Oslo", "Ostrava"]


async def test_a_tool_has_the_clients_model_answer(visitor: Visit) -> None:
    assert await visitor.text("translate", text="sun") == "parrot says: <sun>"


async def test_a_tool_asks_for_the_clients_roots(visitor: Visit) -> None:
    assert await visitor.text("folders") == "file:///maps"


async def test_a_tool_asks_the_user_once_and_again(visitor: Visit) -> None:
    if visitor.revision not in ELICITATION:
        with pytest.raises(mcp.MCPError, match="elicitation"):
            await visitor.text("book")
        return
    assert await visitor.text("book") == "booked for Ada (3)"
    assert await visitor.text("book_twice") == "booked for Ada (3), then Ada (3)"
    assert await visitor.text("plan") == "Ada (3), <sun>, file:///maps"


async def test_a_tool_sends_the_user_to_a_page(visitor: Visit) -> None:
    if visitor.revision not in PAGES:
        with pytest.raises(mcp.MCPError):
            await visitor.text("sign_in")
        return
    assert await visitor.text("sign_in") == "accept"
    if visitor.revision in ELICITATION_IDS:
        done = await visitor.notified(mcp.types.ElicitCompleteNotification)
        assert done.params.elicitation_id.startswith("sign-in-")


async def test_a_tool_wants_the_user_to_go_to_a_page_first(visitor: Visit) -> None:
    name = f"{visitor.transport}-{visitor.revision}"
    if visitor.revision not in PAGES:
        with pytest.raises(mcp.MCPError, match=r"elicitation|ask for input"):
            await visitor.text("enter", name=name)
        return
    if visitor.revision in ELICITATION_IDS:
        with pytest.raises(mcp.MCPError) as caught:
            await visitor.text("enter", name=name)
        required = mcp.UrlElicitationRequiredError.from_error(caught.value.error)
        assert [page.elicitation_id for page in required.elicitations] == [f"fee-{name}"]
    assert await visitor.text("enter", name=name) == "welcome"


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(visitor: Visit) -> None:
    name = f"{visitor.transport}-{visitor.revision}"

    async def leave(progress: float, total: float | None, message: str | None) -> None:
        scope.cancel()

    with anyio.fail_after(20), anyio.CancelScope() as scope:
        await visitor.client.call_tool("wait", {"name": name}, progress_callback=leave)
    assert scope.cancelled_caught
    assert await visitor.text("was_cancelled", name=name) == "true"


CHANGES = (
    mcp.types.ToolListChangedNotification,
    mcp.types.PromptListChangedNotification,
    mcp.types.ResourceListChangedNotification,
)


async def test_changes_are_announced(visitor: Visit) -> None:
    if visitor.modern:
        async with visitor.client.listen(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as changes:
            await visitor.text("change")
            with anyio.fail_after(20):
                seen = {type(await anext(changes)).__name__ for _ in CHANGES}
        assert seen == {"ToolsListChanged", "PromptsListChanged", "ResourcesListChanged"}
    else:
        await visitor.text("change")
        for change in CHANGES:
            await visitor.notified(change)


async def test_a_resource_that_was_subscribed_to_is_said_to_change(visitor: Visit) -> None:
    uri = "city://list"
    if visitor.modern:
        async with visitor.client.listen(resource_subscriptions=[uri]) as changes:
            await visitor.text("update", uri=uri)
            with anyio.fail_after(20):
                assert (await anext(changes)).uri == uri
        return
    await visitor.client.subscribe_resource(uri)
    await visitor.text("update", uri=uri)
    update = await visitor.notified(mcp.types.ResourceUpdatedNotification)
    assert update.params.uri == uri
    await visitor.client.unsubscribe_resource(uri)
    visitor.heard.clear()
    await visitor.text("update", uri=uri)
    await visitor.text("change")
    await visitor.notified(mcp.types.ResourceListChangedNotification)
    assert not [each for each in visitor.heard if isinstance(each, type(update))]


async def test_a_stream_that_the_server_closes_is_taken_up_again(visitor: Visit) -> None:
    assert await visitor.text("part") == "met again"
    if visitor.revision in RESUMING and visitor.transport == "http":
        assert [each for each in visitor.headers("GET") if each.get("last-event-id")]


@pytest.mark.parametrize("revision", HANDSHAKE_PROTOCOL_VERSIONS)
async def test_a_session_is_deleted_when_its_client_leaves(url: str, revision: str) -> None:
    async with visit(url, "http", revision) as visiting:
        await visiting.text("add", a=1, b=1)
        [*_, posted] = visiting.headers("POST")
    [deleted] = [each for each in visiting.answers if each.request.method == "DELETE"]
    assert deleted.status_code in (200, 204)
    again = {name: value for name, value in posted.items() if name != "content-length"}
    async with httpx2.AsyncClient() as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await http.post(url, json=body, headers=again)).status_code == 404


async def test_without_sessions_nothing_but_posts_is_sent(url: str) -> None:
    async with visit(url, "http", *MODERN_PROTOCOL_VERSIONS) as visiting:
        await visiting.text("book")
    assert {each.request.method for each in visiting.answers} == {"POST"}
    assert "mcp-session-id" not in {name for each in visiting.answers for name in each.headers}


@pytest.mark.parametrize(
    ("mode", "agreed"),
    [("auto", MODERN_PROTOCOL_VERSIONS[-1]), ("legacy", HANDSHAKE_PROTOCOL_VERSIONS[-1])],
)
async def test_the_sdks_own_negotiation_ends_in_its_newest(
    url: str, mode: str, agreed: str
) -> None:
    async with mcp.Client(url, mode=mode) as client:
        assert client.protocol_version == agreed
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
