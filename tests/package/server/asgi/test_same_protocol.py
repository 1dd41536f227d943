"""One session after another, over HTTP and in memory: what is said means the same.

Source: basic/transports (2026-07-28: what a transport has to keep).
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.asgi_client import asgi
from kit.asgi_stream import text_in
from kit.live import text_of
from kit.rules import revisions_holding
from kit.uvicorn_host import serve_on_uvicorn
from kit.wire import ALL, facts, request
from mcpgen_runtime import (
    ClientHandlers,
    Context,
    RemoteError,
    RequestContext,
    RequestTimeoutError,
    Server,
    connect,
)

pytestmark = [pytest.mark.parametrize("anyio_backend", ["asyncio"]), pytest.mark.processes]

TEXT = "counted to \u4e16\r\n\u2028"


class Everything:
    """A server with a little of everything.

    Attributes:
        server: It.
        started: Set once the call that never ends has begun.
        stopped: Set once the call that never ends was cancelled.
    """

    def __init__(self) -> None:
        self.server = Server("everything", drain=0)
        self.started = anyio.Event()
        self.stopped = anyio.Event()
        for tool in (self.count, self.wait, self.where):
            self.server.tool()(tool)
        self.server.resource("memo://{name}")(self.memo)

    async def count(self, ctx: Context, to: int) -> str:
        for value in range(1, to + 1):
            await ctx.progress(value, total=to)
        await ctx.error({"counted": to})
        return TEXT

    async def wait(self) -> str:
        try:
            self.started.set()
            await anyio.sleep_forever()
        finally:
            self.stopped.set()
        return "never"

    async def where(self, ctx: Context) -> str:
        return ",".join(root.uri for root in await ctx.list_roots())

    async def memo(self, name: str) -> str:
        return f"memo {name}"


class Handlers(ClientHandlers):
    """A client that keeps what it is told, and has one root."""

    def __init__(self) -> None:
        self.logs: list[Any] = []

    async def logging_message(self, params: Any, ctx: RequestContext) -> None:
        self.logs.append(params.data)

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        return {"roots": [{"uri": "file:///top"}]}


async def session(everything: Everything, target: Any, revision: str) -> list[Any]:
    """A session with a server, and all that came of it."""
    handlers = Handlers()
    progress: list[float] = []

    def told(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    async with connect(target, revision=revision, handlers=handlers) as client:
        client.ask_for_logs("error")
        counted = await client.call_tool("count", {"to": 3}, on_progress=told)
        read = await client.read_resource("memo://a")
        listed = {tool.name for tool in await client.list_tools()}
        rooted = await client.call_tool("where")
        with pytest.raises(RemoteError) as refused:
            await client.call_tool("unknown")
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "wait")
            with anyio.fail_after(10):
                await everything.started.wait()
            calls.cancel_scope.cancel()
        with anyio.fail_after(10):
            await everything.stopped.wait()
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("wait", timeout=0.05)
        return [
            client.revision,
            client.server_info["name"],
            text_of(counted),
            progress,
            handlers.logs,
            read.contents[0].text,
            listed,
            text_of(rooted),
            refused.value.code,
        ]


@pytest.mark.requirement(
    "custom-transport.same-semantics",
    "custom-transport.cancellation-defined",
    "http-compat.implement-old-revision",
)
@pytest.mark.parametrize("revision", ALL)
async def test_a_session_over_http_is_a_session_like_any_other(revision: str) -> None:
    near, far = Everything(), Everything()
    in_memory = await session(near, near.server, revision)
    app = far.server.asgi(sse_path="/sse")
    path = "/mcp" if facts(revision).transports.streamable_http else "/sse"
    async with serve_on_uvicorn(app) as url:
        over_http = await session(far, f"{url}{path}", revision)
        await app.close_streams()
    assert over_http == in_memory
    name, logs = "everything", [{"counted": 3}]
    assert in_memory[:5] == [revision, name, TEXT, [1, 2, 3], logs]
    assert in_memory[5:] == ["memo a", {"count", "wait", "where"}, "file:///top", -32602]


@pytest.mark.requirement("elicitation.complete-only-to-initiator")
@pytest.mark.parametrize("revision", revisions_holding("elicitation.complete-only-to-initiator"))
async def test_the_end_of_a_page_is_sent_to_the_session_that_asked(revision: str) -> None:
    server = Server("asking")

    @server.tool()
    async def go(ctx: Context) -> str:
        url = "https://x.example/connect"
        return (await ctx.elicit_url("Please connect", url, elicitation_id="mine")).action

    call = request(revision, "tools/call", {"name": "go", "arguments": {}})
    async with asgi(server) as http:
        other = http.another()
        for each in (other, http):
            await each.initialize(revision, {"elicitation": {"url": {}}})
        async with other.stream("GET") as theirs, http.stream("GET") as ours:
            async with http.stream("POST", call) as stream:
                question = await stream.message()
                assert question["params"]["elicitationId"] == "mine"
                answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
                assert (await http.post(answer)).status == 202
                assert text_in(await stream.message()) == "accept"
            assert await server.elicitation_complete("mine")
            told = await ours.message()
            assert told["method"] == "notifications/elicitation/complete"
            assert told["params"] == {"elicitationId": "mine"}
            server.remove_tool("go")
            assert (await theirs.message())["method"] == "notifications/tools/list_changed"
