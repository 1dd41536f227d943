"""Our client on servers of others, and on ours in hosts of others, in every revision there."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import pytest
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS

from interop.hearing import Person
from interop.processes import HERE, starting
from interop.revisions import ELICITATION, HANDSHAKE, RESUMING, STATELESS, STRUCTURED_OUTPUT
from mcpgen_runtime import RemoteError, connect, connect_sync

pytestmark = pytest.mark.interop

HTTP_SSE = (HANDSHAKE[0], HANDSHAKE[-1])
SESSIONS = HANDSHAKE[1:]


@dataclass(frozen=True)
class Foreign:
    """A server, and what it lacks of `our_server.py` in the revisions that it speaks there."""

    command: tuple[str, ...]
    revisions: tuple[str, ...]
    lacks: frozenset[str] = frozenset()
    path: str = ""


def python(script: str, *kind: str) -> tuple[str, ...]:
    return (sys.executable, str(HERE / script), *kind)


def node(script: str) -> tuple[str, ...]:
    return ("node", str(HERE / "npm" / script))


def hypercorn(loop: str) -> tuple[str, ...]:
    words = ("hypercorn", "--bind", "127.0.0.1:0", "--graceful-timeout", "3", "--worker-class")
    return (sys.executable, "-m", *words, loop, "interop.apps:ours")


ALL = (*SESSIONS, STATELESS)
OFFICIAL_LACKS = frozenset({"declared changes", "subscribe"})
JSON_LACKS = frozenset({"part", "progress", "log", "wait"})
FASTMCP_LACKS = frozenset({"refuse", "folders", "book_twice", "complete", "subscribe", "listen"})
TYPESCRIPT_LACKS = frozenset({"refuse", "book_twice"})
SERVERS = {
    "official": Foreign(python("official_server.py", "http"), ALL, OFFICIAL_LACKS),
    "official json": Foreign(
        python("official_server.py", "json"), SESSIONS, OFFICIAL_LACKS | JSON_LACKS | {"ask"}
    ),
    "official json results": Foreign(
        python("official_server.py", "json"), (STATELESS,), OFFICIAL_LACKS | JSON_LACKS
    ),
    "official alone": Foreign(
        python("official_server.py", "alone"), SESSIONS, OFFICIAL_LACKS | {"part", "ask", "wait"}
    ),
    "official sse": Foreign(python("official_server.py", "sse"), HTTP_SSE, OFFICIAL_LACKS),
    "fastmcp": Foreign(python("fastmcp_server.py", "http"), ALL, FASTMCP_LACKS),
    "fastmcp sse": Foreign(python("fastmcp_server.py", "sse"), HTTP_SSE, FASTMCP_LACKS),
    "v1": Foreign(node("server_v1.mjs"), SESSIONS, TYPESCRIPT_LACKS),
    "v1 sse": Foreign(node("server_v1.mjs"), HTTP_SSE, TYPESCRIPT_LACKS),
    "v2": Foreign(node("server_v2.mjs"), ALL, TYPESCRIPT_LACKS),
    "official pipes": Foreign(
        python("official_server.py"), (*SUPPORTED_PROTOCOL_VERSIONS,), OFFICIAL_LACKS
    ),
    **{
        f"ours on {loop}{suffix}": Foreign(hypercorn(loop), revisions, frozenset(), f"/{path}")
        for loop in ("asyncio", "trio")
        for suffix, revisions, path in (("", ALL, "mcp"), (" sse", HTTP_SSE, "sse"))
    },
}
BOTH = ("official json", "official alone")
"""Servers that also speak the revision without sessions, which other tests cover."""

VISITS = [(name, revision) for name, server in SERVERS.items() for revision in server.revisions]


@dataclass
class Visit:
    """Our client at work, what it heard, and the HTTP that went by."""

    client: Any
    server: str
    revision: str
    handlers: Person
    answers: list[httpx2.Response]

    def needs(self, *wanted: str) -> None:
        """Skip what the server does not have."""
        missing = SERVERS[self.server].lacks & {*wanted}
        if missing:
            pytest.skip(f"{self.server} lacks {', '.join(sorted(missing))}")

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text that a tool answers with."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error is not True, result
        text: str = result.content[0].text
        return text


@pytest.fixture(scope="module")
def target_of() -> Iterator[Callable[[str], Any]]:
    """URL or command of a server by name; it is started when first asked for."""
    with starting() as start:

        def target(name: str) -> Any:
            command, path = SERVERS[name].command, SERVERS[name].path
            if name.endswith("pipes"):
                return [*command]
            url = f"{start(*command)}{path}"
            return url.replace("/mcp", "/sse") if name.endswith("sse") else url

        yield target


@pytest.fixture(scope="module", params=VISITS, ids=" ".join)
async def visit(
    request: pytest.FixtureRequest, anyio_backend: str, target_of: Callable[[str], Any]
) -> AsyncIterator[Visit]:
    name, revision = request.param
    handlers, answers = Person(), []

    async def keep(response: httpx2.Response) -> None:
        answers.append(response)

    target = target_of(name)
    async with httpx2.AsyncClient(event_hooks={"response": [keep]}) as http:
        more: Any = {} if isinstance(target, list) else {"http_client": http}
        async with connect(target, revision=revision, handlers=handlers, **more) as client:
            yield Visit(client, name, revision, handlers, answers)


async def test_the_revision_asked_for_is_the_one_agreed(visit: Visit) -> None:
    assert visit.client.revision == visit.revision
    assert visit.client.server_info["name"] == visit.server.partition(" ")[0]
    assert visit.client.instructions == "Ask for a city."


async def test_tools_are_listed_and_called(visit: Visit) -> None:
    tools = {tool.name: tool for tool in await visit.client.list_tools()}
    assert tools["add"].input_schema["required"] == ["a", "b"]
    result = await visit.client.call_tool("add", {"a": 1, "b": 2})
    assert result.content[0].text == "3"
    if visit.revision in STRUCTURED_OUTPUT:
        assert result.structured_content == {"result": 3}


@pytest.mark.parametrize("area", ["north", " \xfc ", "=?base64?eA==?=", "", "a\nb"])
async def test_an_argument_that_a_header_repeats_arrives(visit: Visit, area: str) -> None:
    await visit.client.list_tools()
    assert await visit.text("district", city="Oslo", area=area) == f"{area} of Oslo"


async def test_calls_side_by_side_get_their_own_answers(visit: Visit) -> None:
    answers: dict[int, str] = {}

    async def call(number: int) -> None:
        answers[number] = await visit.text("add", a=number, b=number)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(call, number)
    assert answers == {number: str(2 * number) for number in range(20)}


async def test_progress_arrives_in_order(visit: Visit) -> None:
    visit.needs("progress")
    heard: list[Any] = []

    def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    await visit.client.call_tool("count", {"to": 3}, on_progress=hear)
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_a_log_message_arrives(visit: Visit) -> None:
    visit.needs("log")
    if visit.revision == STATELESS:
        visit.client.ask_for_logs("info")
    elif visit.client.supports("logging"):
        await visit.client.set_level("info")
    await visit.text("note", text="rain")
    text = {"msg": "rain", "extra": None} if visit.server.startswith("fastmcp") else "rain"
    await visit.handlers.logs.until(lambda log: log == ("warning", "notes", text))


async def test_a_tools_own_failure_is_a_result_with_its_text(visit: Visit) -> None:
    result = await visit.client.call_tool("fail")
    assert result.is_error is True
    if not visit.server.startswith("official"):  # it hides the text of what it did not expect
        assert "out of order" in result.content[0].text


async def test_an_error_of_the_server_arrives_with_code_and_data(visit: Visit) -> None:
    visit.needs("refuse")
    with pytest.raises(RemoteError) as caught:
        await visit.client.call_tool("refuse")
    error = caught.value
    assert (error.code, error.message, error.data) == (1050, "not today", {"retry": False})


async def test_resources_are_listed_and_read(visit: Visit) -> None:
    client = visit.client
    assert "city://list" in [resource.uri for resource in await client.list_resources()]
    [template] = await client.list_resource_templates()
    assert template.uri_template == "city://{name}/weather"
    [text] = (await client.read_resource("city://Oslo/weather")).contents
    assert text.text == "sun in Oslo"


async def test_a_resource_that_is_not_there_is_an_error(visit: Visit) -> None:
    with pytest.raises(RemoteError) as caught:
        await visit.client.read_resource("city://nowhere")
    assert caught.value.code in (-32002, -32602)


async def test_prompts_are_listed_and_got(visit: Visit) -> None:
    [prompt] = await visit.client.list_prompts()
    assert [argument.name for argument in prompt.arguments] == ["city"]
    got = await visit.client.get_prompt("greet", {"city": "Oslo"})
    assert [message.content.text for message in got.messages] == ["Greetings from Oslo"]


async def test_arguments_are_completed(visit: Visit) -> None:
    visit.needs("complete")
    reference = {"type": "ref/prompt", "name": "greet"}
    result = await visit.client.complete(ref=reference, argument={"name": "city", "value": "Os"})
    assert result.completion.values == ["Oslo", "Ostrava"]


async def test_the_model_is_asked(visit: Visit) -> None:
    visit.needs("ask")
    assert await visit.text("translate", text="sun") == "parrot says: <sun>"


async def test_roots_are_asked_for(visit: Visit) -> None:
    visit.needs("ask", "folders")
    assert await visit.text("folders") == "file:///maps"


async def test_the_user_is_asked_once_and_again(visit: Visit) -> None:
    visit.needs("ask")
    if visit.revision not in ELICITATION:
        pytest.skip("the revision has no elicitation")
    assert await visit.text("book") == "booked for Ada (3)"
    visit.needs("book_twice")
    assert await visit.text("book_twice") == "booked for Ada (3), then Ada (3)"


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(
    visit: Visit, anyio_backend: str
) -> None:
    visit.needs("wait")
    name = f"{anyio_backend} {visit.server} {visit.revision}"

    def leave(*progress: Any) -> None:
        scope.cancel()

    with anyio.fail_after(20), anyio.CancelScope() as scope:
        await visit.client.call_tool("wait", {"name": name}, on_progress=leave)
    assert scope.cancelled_caught
    assert await visit.text("was_cancelled", name=name) == "true"


async def test_changes_are_announced(visit: Visit) -> None:
    visit.needs("listen" if visit.revision == STATELESS else "declared changes")
    wanted = {"ToolsChanged", "PromptsChanged", "ResourcesChanged"}
    async with visit.client.listen(tools=True, prompts=True, resources=True) as changes:
        await visit.text("change")
        with anyio.fail_after(20):
            assert {type(await anext(changes)).__name__ for _ in wanted} == wanted


async def test_a_resource_that_was_subscribed_to_is_said_to_change(visit: Visit) -> None:
    visit.needs("listen" if visit.revision == STATELESS else "subscribe")
    uri = "city://list"
    async with visit.client.listen(uris=[uri]) as changes:
        await visit.text("update", uri=uri)
        with anyio.fail_after(20):
            assert (await anext(changes)).uri == uri


async def test_a_stream_that_the_server_closes_is_taken_up_again(visit: Visit) -> None:
    visit.needs("part")
    visit.answers.clear()
    assert await visit.text("part") == "met again"
    if visit.revision in RESUMING and not visit.server.endswith(("sse", "pipes")):
        assert [each for each in visit.answers if "last-event-id" in each.request.headers]


@pytest.mark.parametrize("name", SERVERS)
async def test_the_newest_that_both_speak_is_found(
    target_of: Callable[[str], Any], name: str
) -> None:
    async with connect(target_of(name)) as client:
        newest = STATELESS if name in BOTH else SERVERS[name].revisions[-1]
        assert client.revision == newest
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.content[0].text == "3"


@pytest.mark.parametrize("name", SERVERS)
def test_a_client_without_a_loop_finds_the_same(target_of: Callable[[str], Any], name: str) -> None:
    with connect_sync(target_of(name)) as client:
        assert "add" in [tool.name for tool in client.list_tools()]
        assert client.call_tool("add", {"a": 1, "b": 2}).content[0].text == "3"


@pytest.mark.parametrize("name", ["official", "fastmcp", "v1", "v2"])
async def test_a_session_is_deleted_in_the_end(target_of: Callable[[str], Any], name: str) -> None:
    answers: list[httpx2.Response] = []

    async def keep(response: httpx2.Response) -> None:
        answers.append(response)

    async with httpx2.AsyncClient(event_hooks={"response": [keep]}) as http:
        async with connect(target_of(name), revision=SESSIONS[-1], http_client=http) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
        [deleted] = [each for each in answers if each.request.method == "DELETE"]
        assert deleted.is_success
        headers = {**deleted.request.headers, "content-type": "application/json"}
        body = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
        headers.pop("content-length", None)
        assert (await http.post(target_of(name), json=body, headers=headers)).status_code == 404
