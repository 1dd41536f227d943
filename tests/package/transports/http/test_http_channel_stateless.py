"""Streamable HTTP without sessions: requests stand alone, and closing a stream cancels one."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.faults import Outcome
from kit.http_script import Script, connect_scripted, error, result
from kit.http_server import Asked, Handler, Reply
from kit.rules import revision_fixture
from kit.wire import PER_REQUEST
from mcpgen_runtime import (
    ClientHandlers,
    ConnectionClosedError,
    RemoteError,
    RequestTimeoutError,
    ResponseLostError,
)

pytestmark = pytest.mark.processes

revision = revision_fixture(PER_REQUEST)


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
@pytest.mark.parametrize("loss", [cut, vanish, half, end_stream])
async def test_safe_requests_alone_are_retried_with_a_new_id(revision: str, loss: Handler) -> None:
    script = Script(revision)
    script.once = {"tools/list": [loss, loss], "tools/call": [loss]}
    async with connect_scripted(script) as (client, server):
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
        with pytest.raises(ResponseLostError, match="before the answer"):
            await client.call_tool("echo", {})
        assert len(server.of("tools/call")) == 1
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    lists, calls = server.of("tools/list"), server.of("tools/call")
    assert [len({each.id for each in asked}) for asked in (lists, calls)] == [3, 2]
    assert {each.verb for each in server.asked} == {"POST"}
    assert all("last-event-id" not in each.fields for each in server.asked)


@pytest.mark.requirement("http.client-cancels-by-closing", "custom-transport.cancellation-defined")
@pytest.mark.requirement("http.timeout-closes-stream")
@pytest.mark.parametrize("begun", [False, True], ids=["no head", "stream"])
async def test_giving_up_a_call_closes_its_connection_and_says_nothing(
    revision: str, begun: bool
) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        if begun:
            await reply.stream()
            await reply.part(b":\n\n")
        there.set()
        await reply.gone()

    there = anyio.Event()
    script = Script(revision)
    script.on["tools/call"] = call
    async with connect_scripted(script) as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "echo", {})
            await there.wait()
            tasks.cancel_scope.cancel()
        await server.until_left(1)
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("echo", {}, timeout=0.2)
        await server.until_left(2)
        await client.list_tools()
    assert server.order() == ["server/discover", "tools/call", "tools/call", "tools/list"]


class Roots(ClientHandlers):
    """Says where its roots are.

    Attributes:
        asked: How often.
    """

    asked = 0

    async def list_roots(self, params: Any, ctx: Any) -> Any:
        self.asked += 1
        return {"roots": [{"uri": "file:///here"}]}


@pytest.mark.requirement("http.client-sends-no-responses", "custom-transport.directions")
async def test_requests_of_a_server_on_a_stream_are_not_answered(revision: str) -> None:
    async def call(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        await reply.event({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        await reply.event(result(asked))
        await reply.end()

    script, roots = Script(revision), Roots()
    script.on["tools/call"] = call
    async with connect_scripted(script, handlers=roots) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
        await client.list_tools()
    assert server.order() == ["server/discover", "tools/call", "tools/list"]
    assert roots.asked == 0


@pytest.mark.requirement("http.client-sends-no-responses")
async def test_input_is_given_by_asking_again(revision: str) -> None:
    async def wanting(asked: Asked, reply: Reply) -> None:
        wants = {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
        await reply.json({"jsonrpc": "2.0", "id": asked.id, "result": wants})

    script = Script(revision)
    script.once["tools/call"] = [wanting]
    async with connect_scripted(script, handlers=Roots()) as (client, server):
        assert (await client.call_tool("echo", {})).content[0].text == "done"
    first, second = server.of("tools/call")
    assert first.id != second.id
    assert second.message["params"]["inputResponses"]["r"]["roots"][0]["uri"] == "file:///here"
    assert server.of("response") == []


@pytest.mark.requirement("http.no-sessions")
async def test_closing_ends_what_is_under_way_and_says_nothing(revision: str) -> None:
    outcome = Outcome()
    script = Script(revision)
    script.on["tools/call"] = lambda _, reply: reply.gone()
    async with connect_scripted(script) as (client, server), anyio.create_task_group() as tasks:
        tasks.start_soon(outcome.run, lambda: client.call_tool("echo", {}))
        await server.until("tools/call")
        await client.close()
        await outcome.failed(ConnectionClosedError)
        await server.until_left()
        assert server.order() == ["server/discover", "tools/call"]
