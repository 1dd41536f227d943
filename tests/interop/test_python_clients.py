"""The official SDK and FastMCP as clients of our server, in every revision, over HTTP and pipes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import fastmcp
import httpx2
import mcp
import mcp.types
import pytest
from fastmcp.exceptions import ToolError
from mcp.types import PromptReference, ResourceTemplateReference
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from interop.processes import ENVIRONMENT, OURS
from interop.python_clients import Visit, visit
from interop.revisions import (
    ELICITATION,
    ELICITATION_IDS,
    PAGES,
    PYTHON_WAYS,
    RESUMING,
    STRUCTURED_OUTPUT,
)

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.on_asyncio,
]

SERVER = mcp.StdioServerParameters(
    command=OURS[0], args=[*OURS[1:]], env={"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}
)
HTTP = [("official", *way) for way in PYTHON_WAYS]
PIPES = [
    ("official", "pipes", name)
    for name in (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
]
FASTMCP = [("fastmcp", *way) for way in PYTHON_WAYS]


@pytest.fixture(scope="module", params=[*HTTP, *PIPES, *FASTMCP], ids="-".join)
async def visitor(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Visit]:
    target = SERVER if "pipes" in request.param else url
    async with visit(target, *request.param) as visiting:
        yield visiting


official = pytest.mark.parametrize("visitor", [*HTTP, *PIPES], indirect=True, ids="-".join)
over_http = pytest.mark.parametrize("visitor", [*HTTP, *FASTMCP], indirect=True, ids="-".join)


async def test_the_revision_asked_for_is_the_one_agreed(visitor: Visit) -> None:
    assert visitor.client.protocol_version == visitor.revision
    assert visitor.client.server_info is not None
    assert visitor.client.server_info.name == "ours"
    assert visitor.client.instructions == "Ask for a city."


async def test_tools_are_listed_and_called(visitor: Visit) -> None:
    tools = {tool.name: tool for tool in await visitor.items("tools")}
    assert tools["add"].description == "The sum of two numbers."
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

    await visitor.client.call_tool("count", {"to": 3}, **{visitor.progress: hear})
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_a_log_message_arrives(visitor: Visit) -> None:
    if not visitor.modern:
        await visitor.client.set_logging_level("info")
    await visitor.text("note", text="rain")
    assert visitor.logs == [("warning", "notes", "rain")]


async def test_a_tools_own_failure_is_told_with_its_text(visitor: Visit) -> None:
    if isinstance(visitor.client, fastmcp.Client):
        with pytest.raises(ToolError, match="out of order"):
            await visitor.client.call_tool("fail")
        return
    result = await visitor.client.call_tool("fail")
    assert (result.is_error, result.content[0].text) == (True, "out of order")


@pytest.mark.parametrize(
    ("method", "name", "code", "data"),
    [
        ("call_tool", "refuse", (1050, 1050), {"retry": False}),
        ("call_tool", "no-such-tool", (-32602, -32602), None),
        ("read_resource", "city://nowhere", (-32002, -32602), {"uri": "city://nowhere"}),
    ],
)
async def test_an_error_arrives_with_code_and_data(
    visitor: Visit, method: str, name: str, code: tuple[int, int], data: Any
) -> None:
    with pytest.raises(mcp.MCPError) as caught:
        await getattr(visitor.client, method)(name)
    error = caught.value.error
    assert (error.code, error.data) == (code[visitor.modern], data)


async def test_prints_of_a_tool_do_not_reach_the_client(visitor: Visit) -> None:
    assert await visitor.text("shout", text="{}") == "shouted"
    assert await visitor.text("add", a=2, b=2) == "4"


async def test_resources_are_listed_and_read(visitor: Visit) -> None:
    listed = {str(resource.uri) for resource in await visitor.items("resources")}
    assert listed == {"city://list", "city://map"}
    [template] = await visitor.items("resource_templates")
    assert template.uri_template == "city://{name}/weather"
    text = await visitor.read("city://Oslo/weather")
    assert (text.text, str(text.uri)) == ("sun in Oslo", "city://Oslo/weather")
    blob = await visitor.read("city://map")
    assert (blob.blob, blob.mime_type) == ("iVBORw==", "image/png")


async def test_prompts_are_listed_and_got(visitor: Visit) -> None:
    [prompt] = await visitor.items("prompts")
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
    completion = getattr(result, "completion", result)
    assert completion.values == ["Oslo", "Ostrava"]


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


async def test_a_tool_sends_the_user_to_a_page(visitor: Visit) -> None:
    if visitor.revision not in PAGES:
        with pytest.raises(mcp.MCPError):
            await visitor.text("sign_in")
        return
    assert await visitor.text("sign_in") == "accept"
    if visitor.revision in ELICITATION_IDS:
        done = await visitor.notified(mcp.types.ElicitCompleteNotification)
        assert done.params.elicitation_id.startswith("sign-in-")


@official
async def test_a_tool_wants_the_user_to_go_to_a_page_first(visitor: Visit) -> None:
    if visitor.revision not in PAGES:
        with pytest.raises(mcp.MCPError, match=r"elicitation|ask for input"):
            await visitor.text("enter", name=visitor.name)
        return
    if visitor.revision in ELICITATION_IDS:
        with pytest.raises(mcp.MCPError) as caught:
            await visitor.text("enter", name=visitor.name)
        required = mcp.UrlElicitationRequiredError.from_error(caught.value.error)
        assert [page.elicitation_id for page in required.elicitations] == [f"fee-{visitor.name}"]
    assert await visitor.text("enter", name=visitor.name) == "welcome"


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(visitor: Visit) -> None:
    async def leave(progress: float, total: float | None, message: str | None) -> None:
        scope.cancel()

    with anyio.fail_after(20), anyio.CancelScope() as scope:
        await visitor.client.call_tool("wait", {"name": visitor.name}, **{visitor.progress: leave})
    assert scope.cancelled_caught
    assert await visitor.text("was_cancelled", name=visitor.name) == "true"


CHANGES = (
    mcp.types.ToolListChangedNotification,
    mcp.types.PromptListChangedNotification,
    mcp.types.ResourceListChangedNotification,
)


async def test_changes_are_announced(visitor: Visit) -> None:
    if not visitor.modern:
        await visitor.text("change")
        for change in CHANGES:
            await visitor.notified(change)
    elif isinstance(visitor.client, fastmcp.Client):
        pytest.skip("FastMCP does not listen")
    else:
        async with visitor.client.listen(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as changes:
            await visitor.text("change")
            with anyio.fail_after(20):
                seen = {type(await anext(changes)).__name__ for _ in CHANGES}
        assert seen == {"ToolsListChanged", "PromptsListChanged", "ResourcesListChanged"}


@official
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


@over_http
async def test_a_stream_that_the_server_closes_is_taken_up_again(visitor: Visit) -> None:
    assert await visitor.text("part") == "met again"
    is_official = isinstance(visitor.client, mcp.Client)
    if is_official and visitor.revision in RESUMING and visitor.transport == "http":
        assert [each for each in visitor.headers("GET") if each.get("last-event-id")]


@pytest.mark.parametrize("revision", HANDSHAKE_PROTOCOL_VERSIONS)
async def test_a_session_is_deleted_when_its_client_leaves(url: str, revision: str) -> None:
    async with visit(url, "official", "http", revision) as visiting:
        await visiting.text("add", a=1, b=1)
        [*_, posted] = visiting.headers("POST")
    [deleted] = [each for each in visiting.answers if each.request.method == "DELETE"]
    assert deleted.status_code in (200, 204)
    again = {name: value for name, value in posted.items() if name != "content-length"}
    async with httpx2.AsyncClient() as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await http.post(url, json=body, headers=again)).status_code == 404


async def test_without_sessions_nothing_but_posts_is_sent(url: str) -> None:
    async with visit(url, "official", "http", *MODERN_PROTOCOL_VERSIONS) as visiting:
        await visiting.text("book")
    assert {each.request.method for each in visiting.answers} == {"POST"}
    assert "mcp-session-id" not in {name for each in visiting.answers for name in each.headers}


NEWEST, NEWEST_HANDSHAKE = MODERN_PROTOCOL_VERSIONS[-1], HANDSHAKE_PROTOCOL_VERSIONS[-1]


@pytest.mark.parametrize(
    ("client", "pipes", "options", "agreed"),
    [
        pytest.param(mcp.Client, False, {"mode": "auto"}, NEWEST, id="official-http"),
        pytest.param(mcp.Client, True, {"mode": "auto"}, NEWEST, id="official-pipes"),
        pytest.param(mcp.Client, False, {"mode": "legacy"}, NEWEST_HANDSHAKE, id="handshake-http"),
        pytest.param(mcp.Client, True, {"mode": "legacy"}, NEWEST_HANDSHAKE, id="handshake-pipes"),
        pytest.param(fastmcp.Client, False, {}, NEWEST, id="fastmcp-http"),
    ],
)
async def test_a_peers_own_negotiation_ends_in_its_newest(
    url: str, client: Any, pipes: bool, options: dict[str, str], agreed: str
) -> None:
    async with client(SERVER if pipes else url, **options) as opened:
        assert opened.protocol_version == agreed
        assert (await opened.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"
