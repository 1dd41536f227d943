"""Sessions and HTTP+SSE over real sockets, served by uvicorn."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import httpx2
import pytest
import uvicorn

from mcpgen_runtime import Context, Server
from mcpgen_runtime.framing.sse_decoder import EventDecoder
from mcpgen_runtime.server.asgi.settings import Limits
from package.asgi_client import BOTH, SESSION, SSE
from package.server.raw_http import SECONDS, Raw, head, raw
from package.wire import INITIALIZED, initialize, request

REVISION = "2025-11-25"
pytestmark = [pytest.mark.parametrize("anyio_backend", ["asyncio"]), pytest.mark.processes]


def tools() -> Server:
    server = Server("tester")

    @server.tool()
    async def polled(ctx: Context) -> str:
        await ctx.close_stream()
        await ctx.info("said meanwhile")
        return "polled"

    @server.tool()
    async def asks(ctx: Context) -> str:
        return str(len((await ctx.request("roots/list")).roots))

    return server


@asynccontextmanager
async def serve_app(server: Server, **options: Any) -> AsyncIterator[str]:
    """Serve on a free port; gives the address."""
    app = server.asgi(**options)
    host = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.serve, [listener])
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                await app.close_streams()
                host.should_exit = True


class Events:
    """The events of a response, as they come."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.decoder = EventDecoder()
        self._chunks = response.aiter_raw()
        self._ready: list[Any] = []

    async def next(self) -> Any:
        """The next event; raises `StopAsyncIteration` at the end."""
        with anyio.fail_after(10):
            while not self._ready:
                self._ready += self.decoder.feed(await anext(self._chunks))
        return self._ready.pop(0)

    async def message(self) -> Any:
        """The next message."""
        while True:
            event = await self.next()
            if event.data:
                return json.loads(event.data)


@asynccontextmanager
async def open_session(client: httpx2.AsyncClient) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with a session."""
    client.headers["accept"] = BOTH
    reply = await client.post("/mcp", json=initialize(REVISION, {"roots": {}}))
    client.headers[SESSION] = reply.headers[SESSION]
    client.headers["mcp-protocol-version"] = REVISION
    assert (await client.post("/mcp", json=INITIALIZED)).status_code == 202
    yield client
    assert (await client.delete("/mcp")).status_code == 200


def call(name: str) -> dict[str, Any]:
    return request(REVISION, "tools/call", {"name": name, "arguments": {}})


async def test_a_client_polls_for_the_result_of_a_call() -> None:
    async with (
        serve_app(tools(), retry=0.01) as url,
        httpx2.AsyncClient(base_url=url) as client,
        open_session(client),
    ):
        async with client.stream("POST", "/mcp", json=call("polled")) as response:
            events = Events(response)
            assert (await events.next()).data == b""
            with pytest.raises(StopAsyncIteration):
                await events.message()
            assert events.decoder.retry == 10
            last = {"last-event-id": events.decoder.last_id or ""}
        async with client.stream("GET", "/mcp", headers=last) as response:
            events = Events(response)
            assert (await events.message())["method"] == "notifications/message"
            assert (await events.message())["result"]["content"][0]["text"] == "polled"
            with pytest.raises(StopAsyncIteration):
                await events.next()


async def test_a_call_asks_its_client_on_its_own_stream() -> None:
    async with (
        serve_app(tools()) as url,
        httpx2.AsyncClient(base_url=url) as client,
        open_session(client),
        client.stream("POST", "/mcp", json=call("asks")) as response,
    ):
        events = Events(response)
        question = await events.message()
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
        assert (await client.post("/mcp", json=answer)).status_code == 202
        assert (await events.message())["result"]["content"][0]["text"] == "0"


async def test_a_client_cut_off_during_a_call_returns_for_the_result() -> None:
    async with (
        serve_app(tools()) as url,
        httpx2.AsyncClient(base_url=url) as client,
        open_session(client),
    ):
        async with client.stream("POST", "/mcp", json=call("asks")) as response:
            events = Events(response)
            question = await events.message()
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
        assert (await client.post("/mcp", json=answer)).status_code == 202
        last = {"last-event-id": events.decoder.last_id or ""}
        async with client.stream("GET", "/mcp", headers=last) as response:
            result = (await Events(response).message())["result"]
            assert result["content"][0]["text"] == "0"


async def test_both_endpoints_of_the_older_transport_work_over_sockets() -> None:
    server = tools()
    async with (
        serve_app(server, sse_path="/sse") as url,
        httpx2.AsyncClient(base_url=url) as client,
        client.stream("GET", "/sse") as response,
    ):
        events = Events(response)
        endpoint = (await events.next()).data.decode()
        reply = await client.post(endpoint, json=initialize("2024-11-05"))
        assert (reply.status_code, reply.content) == (202, b"")
        assert (await events.message())["result"]["protocolVersion"] == "2024-11-05"


async def test_five_hundred_streams_are_open_at_once_over_sockets() -> None:
    server = tools()
    async with (
        serve_app(server, limits=Limits(sessions=500)) as url,
        httpx2.AsyncClient(base_url=url) as client,
        AsyncExitStack() as stack,
    ):
        port = httpx2.URL(url).port
        assert port is not None
        streams: list[Raw] = []
        for _ in range(500):
            reply = await client.post("/mcp", json=initialize(REVISION))
            fields = {SESSION: reply.headers[SESSION]}
            await client.post("/mcp", json=INITIALIZED, headers=fields)
            stream = await stack.enter_async_context(raw(port))
            await stream.send(head(port, {**fields, "Accept": SSE}, method="GET"))
            streams.append(stream)
        server.remove_tool("asks")
        with anyio.fail_after(SECONDS):
            for stream in streams:
                await stream.until(b"notifications/tools/list_changed")
