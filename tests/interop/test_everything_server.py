"""Our client on the npm package that shows everything a server can do, over pipes and sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from interop.hearing import Person
from interop.processes import EVERYTHING, LOOPBACK, starting
from interop.revisions import HANDSHAKE
from mcpgen_runtime import RemoteError, connect

pytestmark = pytest.mark.interop

PATHS = {"streamableHttp": "mcp", "sse": "sse"}
WAYS = [
    *(("stdio", revision) for revision in HANDSHAKE),
    *(("streamableHttp", revision) for revision in HANDSHAKE[1:]),
    *(("sse", revision) for revision in (HANDSHAKE[0], HANDSHAKE[-1])),
]
FULL_FORMS = HANDSHAKE[-1]


@pytest.fixture(scope="module")
def target_of() -> Iterator[Callable[[str], Any]]:
    """The target to connect to, by the server's transport; the server starts on first use."""
    with starting() as start:

        def target(way: str) -> Any:
            if way == "stdio":
                return ["node", EVERYTHING, way]
            return start("node", "--require", LOOPBACK, EVERYTHING, way) + PATHS[way]

        yield target


@pytest.fixture(scope="module", params=WAYS, ids=" ".join)
async def session(
    request: pytest.FixtureRequest, anyio_backend: str, target_of: Callable[[str], Any]
) -> AsyncIterator[tuple[Any, Person]]:
    handlers = Person()
    way, revision = request.param
    more: dict[str, Any] = {"roots": {"listChanged": True}}
    if revision == FULL_FORMS:
        more["elicitation"] = {"form": {}, "url": {}}
    async with connect(
        target_of(way), revision=revision, handlers=handlers, capabilities=more
    ) as connected:
        assert connected.revision == revision
        yield connected, handlers


@pytest.fixture
def client(session: tuple[Any, Person]) -> Any:
    """The face of one revision; untyped, because the tests hold for all of them."""
    return session[0]


@pytest.mark.parametrize("way", ["stdio", *PATHS])
async def test_a_server_of_unknown_age_is_met_in_its_newest_revision(
    target_of: Callable[[str], Any], way: str
) -> None:
    async with connect(target_of(way)) as client:
        assert client.revision == HANDSHAKE[-1]


async def test_a_lock_of_one_transport_holds_in_the_others(
    target_of: Callable[[str], Any], tmp_path: Path
) -> None:
    lock: dict[str, Any] = {"lock": tmp_path / "mcp.lock.json", "lock_name": "everything"}
    async with connect(target_of("stdio"), on_new_server="record", **lock):
        pass
    for way in ("stdio", *PATHS):
        async with connect(target_of(way), **lock) as client:
            assert len(await client.list_tools()) > 10
            assert await client.list_prompts()
            assert await client.list_resources()
            assert await client.list_resource_templates()
            result = await client.call_tool("echo", {"message": "hello"})
            assert result.content[0].text == "Echo: hello"
            assert client.instructions
            assert client.lock_differences == ()


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


async def test_a_log_message_arrives(session: tuple[Any, Person]) -> None:
    client, handlers = session
    await client.set_level("debug")
    await client.call_tool("toggle-simulated-logging")
    await handlers.logs.until(lambda log: "message" in log[2])
    await client.call_tool("toggle-simulated-logging")


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


async def test_the_model_is_asked(client: Any) -> None:
    result = await client.call_tool("trigger-sampling-request", {"prompt": "weather?"})
    assert "weather?>" in result.content[0].text


async def test_roots_are_asked_for_beside_any_request(client: Any) -> None:
    """The server asks on the stream that belongs to no request."""
    assert "file:///maps" in (await client.call_tool("get-roots-list")).content[0].text


async def test_roots_that_changed_are_asked_for_again(session: tuple[Any, Person]) -> None:
    client, handlers = session
    await client.call_tool("get-roots-list")
    handlers.roots.append("file:///plans")
    await client.roots_list_changed()
    wanted = f"Roots updated: {len(handlers.roots)} "
    await handlers.logs.until(lambda log: str(log[2]).startswith(wanted))
    assert "file:///plans" in (await client.call_tool("get-roots-list")).content[0].text


async def test_the_user_is_asked_with_every_kind_of_field(client: Any) -> None:
    if client.revision in HANDSHAKE[:2]:
        tools = {tool.name for tool in await client.list_tools()}
        assert "trigger-elicitation-request" not in tools
        return
    result = await client.call_tool("trigger-elicitation-request")
    if client.revision != FULL_FORMS:  # whose forms have no lists: the client says so
        assert "-32602: elicitation/create: params: Expected" in result.content[0].text
        return
    assert "- Name: Ada" in result.content[1].text
    assert "- Favorite Integer: 42" in result.content[1].text


async def test_the_user_is_sent_to_a_page(client: Any) -> None:
    if client.revision != FULL_FORMS:
        pytest.skip("the revision sends no user to a page")
    arguments = {"url": "https://city.example/sign-in"}
    result = await client.call_tool("trigger-url-elicitation", arguments)
    assert '"action": "accept"' in result.content[1].text
    with pytest.raises(RemoteError) as caught:
        await client.call_tool("trigger-url-elicitation", {**arguments, "errorPath": True})
    assert caught.value.code == -32042
    assert caught.value.data["elicitations"][0]["mode"] == "url"


async def test_a_resource_that_was_subscribed_to_is_said_to_change(client: Any) -> None:
    uri = "demo://resource/dynamic/text/1"
    async with client.listen(uris=[uri]) as changes:
        await client.call_tool("toggle-subscriber-updates")
        with anyio.fail_after(20):
            assert (await anext(changes)).uri == uri
    await client.call_tool("toggle-subscriber-updates")
