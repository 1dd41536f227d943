"""Streamable HTTP without sessions: requests stand alone, and closing a stream cancels one."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen_runtime.client.async_client import ClientHandlers
from mcpgen_runtime.client.client_settings import Timeouts
from mcpgen_runtime.errors import RemoteError, RequestTimeoutError, ResponseLostError
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.transports.http.http_channel import HttpChannel
from mcpgen_runtime.transports.http.http_client import HttpRequests
from package.http_script import Script, connect_scripted, error, result
from package.http_server import Asked, Handler, HttpServer, Reply
from package.wire import PER_REQUEST, facts, outgoing_message, request

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture(params=PER_REQUEST)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def cut(asked: Asked, reply: Reply) -> None:
    """Break a stream off before the answer."""
    await reply.stream()
    await reply.part(b'id: 1\ndata: {"jsonrpc":')
    await reply.cut()


async def vanish(asked: Asked, reply: Reply) -> None:
    """Close the connection without a word."""
    await reply.cut()


async def half(asked: Asked, reply: Reply) -> None:
    """Break off within the body."""
    await reply.head(200, {"Content-Type": "application/json", "Content-Length": "100"})
    await reply.raw(b'{"jsonrpc":')
    await reply.cut()


async def end_stream(asked: Asked, reply: Reply) -> None:
    """End a stream properly, without the answer."""
    await reply.stream()
    await reply.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    await reply.end()


LOSSES = pytest.mark.parametrize("loss", [cut, vanish, half, end_stream])


@pytest.mark.requirement("http.no-sessions", "http.no-resumability")
async def test_a_session_id_is_ignored_and_nothing_is_opened_or_ended(revision: str) -> None:
    async def listing(asked: Asked, reply: Reply) -> None:
        await reply.json(result(asked), Mcp_Session_Id="abc")

    script = Script(revision)
    script.on["tools/list"] = listing
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        await client.call_tool("echo", {})
    assert server.order() == ["server/discover", "tools/list", "tools/call"]
    assert all("mcp-session-id" not in asked.fields for asked in server.asked)


@pytest.mark.requirement("http.version-header-every-post", "http.version-header-matches-body")
async def test_every_post_names_the_revision_as_its_body_does(revision: str) -> None:
    async with connect_scripted(Script(revision)) as (client, server):
        await client.list_tools()
        await client.read_resource("x://y")
        await client.request("tools/call", {"name": "echo"})
    key = facts(revision).meta.protocol_version
    for asked in server.asked:
        assert asked.fields["mcp-protocol-version"] == revision
        assert asked.message["params"]["_meta"][key] == revision


@pytest.mark.requirement("http.no-core-notifications")
async def test_a_notification_of_an_extension_names_the_revision_too(revision: str) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/own", "params": {}}
    async with HttpServer(Script(revision)) as server:
        channel = HttpChannel(server.url, REVISIONS, HttpRequests())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.run)
            await channel.send(outgoing_message(revision, request(revision, "tools/list")))
            await channel.send(outgoing_message(revision, note))
            await channel.close()
    (asked,) = server.of("notifications/own")
    assert asked.fields["mcp-protocol-version"] == revision


@pytest.mark.requirement("http.unknown-method-404-client")
async def test_a_404_with_a_body_is_a_method_that_is_not_known(revision: str) -> None:
    async def missing(asked: Asked, reply: Reply) -> None:
        await reply.json(error(asked, -32601, "Method not found"), status=404)

    script = Script(revision)
    script.on["prompts/list"] = missing
    async with connect_scripted(script) as (client, server):
        with pytest.raises(RemoteError) as caught:
            await client.list_prompts()
        await client.list_tools()
    assert caught.value.code == -32601
    assert server.order() == ["server/discover", "prompts/list", "tools/list"]


@pytest.mark.requirement("http.broken-stream-reissue", "http.no-resumability")
@pytest.mark.requirement("jsonrpc.reissue-with-new-id")
@LOSSES
async def test_safe_requests_are_retried_with_a_new_id(revision: str, loss: Handler) -> None:
    script = Script(revision)
    script.once["tools/list"] = [loss, loss]
    async with connect_scripted(script) as (client, server):
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
    asked = server.of("tools/list")
    assert len({each.id for each in asked}) == len(asked) == 3
    assert {each.verb for each in server.asked} == {"POST"}
    assert all("last-event-id" not in each.fields for each in server.asked)


@pytest.mark.requirement("http.broken-stream-reissue")
@LOSSES
async def test_unsafe_requests_are_not_retried(revision: str, loss: Handler) -> None:
    script = Script(revision)
    script.once["tools/call"] = [loss]
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        with pytest.raises(ResponseLostError, match="before the answer"):
            await client.call_tool("echo", {})
        assert len(server.of("tools/call")) == 1
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        first, second = server.of("tools/call")
    assert first.id != second.id


@pytest.mark.requirement("http.broken-stream-reissue")
@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint"])
async def test_a_tool_that_declares_itself_harmless_is_called_again(
    revision: str, hint: str
) -> None:
    async def listing(asked: Asked, reply: Reply) -> None:
        tool = {"name": "echo", "inputSchema": {"type": "object"}}
        await reply.json(result(asked, tools=[{**tool, "annotations": {hint: True}}]))

    script = Script(revision)
    script.on["tools/list"] = listing
    script.once["tools/call"] = [cut]
    async with connect_scripted(script) as (client, server):
        await client.list_tools()
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    assert len({asked.id for asked in server.of("tools/call")}) == 2


async def test_asking_again_comes_to_an_end(revision: str) -> None:
    script = Script(revision)
    script.on["tools/list"] = cut
    timeouts = Timeouts(retries=(0.0, 0.0, 0.0))
    async with connect_scripted(script, timeouts=timeouts) as (client, server):
        with pytest.raises(ResponseLostError):
            await client.list_tools()
    assert len(server.of("tools/list")) == 4


@pytest.mark.requirement("http.client-cancels-by-closing", "custom-transport.cancellation-defined")
@pytest.mark.parametrize("begun", [False, True], ids=["no head", "stream"])
async def test_cancelling_closes_the_connection_and_says_nothing(
    revision: str, begun: bool
) -> None:
    there = anyio.Event()

    async def call(asked: Asked, reply: Reply) -> None:
        if begun:
            await reply.stream()
            await reply.part(b":\n\n")
        there.set()
        await reply.gone()

    script = Script(revision)
    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {})
            await there.wait()
            tasks.cancel_scope.cancel()
        await server.until_left()
        await client.list_tools()
    assert server.order() == ["server/discover", "tools/call", "tools/list"]


@pytest.mark.requirement("http.timeout-closes-stream")
@pytest.mark.parametrize("begun", [False, True], ids=["no head", "stream"])
async def test_a_call_that_takes_too_long_is_cancelled_the_same_way(
    revision: str, begun: bool
) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        if begun:
            await reply.stream()
        await reply.gone()

    script = Script(revision)
    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, server):
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.2)
        await server.until_left()
    assert server.order() == ["server/discover", "tools/call"]


async def test_progress_comes_on_the_stream_before_the_answer(revision: str) -> None:
    heard: list[float] = []

    async def call(asked: Asked, reply: Reply) -> None:
        token = asked.message["params"]["_meta"]["progressToken"]
        await reply.stream()
        for step in range(6):
            params = {"progressToken": token, "progress": step}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await reply.event(note)
        await reply.event(result(asked))
        await reply.end()

    script = Script(revision)
    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, _):
        await client.call_tool("echo", {}, on_progress=lambda done, *_: heard.append(done))
    assert heard == [0, 1, 2, 3, 4, 5]


@pytest.mark.requirement("http.client-sends-no-responses", "custom-transport.directions")
async def test_requests_of_a_server_on_a_stream_are_not_answered(revision: str) -> None:
    class Handlers(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            raise AssertionError("there is no such request")

    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        await reply.event({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        await reply.event(result(asked))
        await reply.end()

    script = Script(revision)
    script.on["tools/call"] = call
    async with connect_scripted(script, handlers=Handlers()) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        await client.list_tools()
    for asked in server.asked:
        assert asked.what != "response"
        assert not {"result", "error"} & set(asked.message)


@pytest.mark.requirement("http.client-sends-no-responses")
async def test_input_is_given_by_asking_again(revision: str) -> None:
    class Handlers(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return {"roots": [{"uri": "file:///here"}]}

    async def wanting(asked: Asked, reply: Reply) -> None:
        wants = {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
        await reply.json({"jsonrpc": "2.0", "id": asked.id, "result": wants})

    script = Script(revision)
    script.once["tools/call"] = [wanting]
    async with connect_scripted(script, handlers=Handlers()) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    first, second = server.of("tools/call")
    assert first.id != second.id
    assert second.message["params"]["inputResponses"]["r"]["roots"][0]["uri"] == "file:///here"
    assert server.of("response") == []


@pytest.mark.requirement("http.no-sessions")
async def test_closing_ends_what_is_under_way_and_says_nothing(revision: str) -> None:
    there = anyio.Event()
    failures: list[Exception] = []

    async def call(asked: Asked, reply: Reply) -> None:
        there.set()
        await reply.gone()

    script = Script(revision)
    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, server):
        async with anyio.create_task_group() as tasks:

            async def calling() -> None:
                try:
                    await client.call_tool("echo", {})
                except Exception as error:
                    failures.append(error)

            tasks.start_soon(calling)
            await there.wait()
            await client.close()
        await server.until_left()
    assert [type(failure).__name__ for failure in failures] == ["ConnectionClosedError"]
    assert server.order() == ["server/discover", "tools/call"]
