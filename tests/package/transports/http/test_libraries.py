"""Behaviour common to both HTTP libraries: httpx2, and aiohttp on asyncio where it was chosen."""

from __future__ import annotations

import errno
import gc
import os
import socket
import warnings
from typing import Any

import anyio
import pytest

from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.client.chosen import ChosenApplication
from mcpgen_runtime.errors import (
    ConnectFailedError,
    ConnectionClosedError,
    LocalProtocolError,
    ResponseLostError,
)
from mcpgen_runtime.transports.http.aiohttp_library import open_library
from mcpgen_runtime.transports.http.http_client import POSTED, HttpRequests, OpenLibrary
from package.http_script import Script, connect_scripted
from package.http_server import Asked, HttpServer, Reply
from package.wire import STREAMABLE

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

NEWEST = STREAMABLE[-1]


@pytest.fixture(params=["httpx2", "aiohttp"], autouse=True)
def opener(
    request: pytest.FixtureRequest, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> OpenLibrary | None:
    """Opens the library that all clients use."""
    if request.param == "httpx2":
        monkeypatch.setattr(ChosenApplication, "http_library", None)
        return None
    if anyio_backend == "trio":
        pytest.skip("aiohttp lacks trio")
    return open_library


async def test_cookies_are_not_kept(opener: OpenLibrary | None) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200, b"{}", Set_Cookie="tracked=1; Path=/")

    async with HttpServer(handler) as server:
        requests = HttpRequests(open_library=opener)
        for _ in range(2):
            response = await requests.open("POST", server.url, POSTED, b"{}")
            await requests.read(response)
        await requests.close()
    assert [asked.fields.get("cookie") for asked in server.asked] == [None, None]


@pytest.mark.parametrize("requests_before", [0, 1])
async def test_a_closed_client_sends_nothing(
    requests_before: int, opener: OpenLibrary | None
) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200, b"{}")

    async with HttpServer(handler) as server:
        requests = HttpRequests(open_library=opener)
        for _ in range(requests_before):
            await requests.read(await requests.open("POST", server.url, POSTED, b"{}"))
        await requests.close()
        with pytest.raises(ConnectionClosedError, match="closed"):
            await requests.open("POST", server.url, POSTED, b"{}")
    assert len(server.asked) == requests_before


async def test_a_large_request_that_the_server_does_not_accept_is_lost(
    opener: OpenLibrary | None,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # which accepts no connection
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        requests = HttpRequests(silence=0.3, open_library=opener)
        with anyio.fail_after(20), pytest.raises(ResponseLostError, match=r"within 0\.3 s"):
            await requests.open("POST", url, POSTED, bytes(32_000_000))
        await requests.close()


async def test_a_large_request_arrives_whole_with_its_length(
    opener: OpenLibrary | None,
) -> None:
    body = bytes(range(256)) * 8192

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200, b"{}", Content_Type="application/json")

    async with HttpServer(handler) as server:
        requests = HttpRequests(open_library=opener)
        response = await requests.open("POST", server.url, POSTED, body)
        assert await requests.read(response) == b"{}"
        await requests.close()
    (asked,) = server.asked
    assert asked.body == body
    assert asked.fields["content-length"] == str(len(body))


@pytest.mark.parametrize("reading", ["in time", "late"])
async def test_parts_before_wrong_framing_are_read(
    reading: str, opener: OpenLibrary | None
) -> None:
    if reading == "late" and opener is None:
        pytest.skip("httpx2 receives only what is read")
    parts, first_read, client_left = list[bytes](), anyio.Event(), anyio.Event()

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.part(b"first")
        await first_read.wait()
        await reply.raw(b"6\r\nsecond\r\nno size\r\n")
        await reply.gone()
        client_left.set()

    async def take(part: bytes) -> None:
        parts.append(bytes(part))
        first_read.set()
        if reading == "late":
            await client_left.wait()

    async with HttpServer(handler) as server:
        requests = HttpRequests(open_library=opener)
        response = await requests.open("POST", server.url, POSTED, b"{}")
        with anyio.fail_after(20), pytest.raises(ResponseLostError, match="broke"):
            await response.each_part(take)
        await requests.close()
    assert parts == [b"first", b"second"]


async def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with HttpServer(Script(NEWEST)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/mcp"))
        monkeypatch.delenv("no_proxy", raising=False)
        async with connect("http://server.invalid/mcp", revision=NEWEST) as client:
            assert await client.list_tools()
    assert {asked.target for asked in proxy.asked} == {"http://server.invalid/mcp"}


async def test_credentials_of_the_url_are_sent_as_a_field() -> None:
    async with HttpServer(Script(NEWEST)) as server:
        url = server.url.replace("//", "//user:p%40ss@")
        async with connect(url, revision=NEWEST) as client:
            assert await client.list_tools()
    assert {asked.fields["authorization"] for asked in server.asked} == {"Basic dXNlcjpwQHNz"}


async def test_a_field_that_is_not_ascii_is_refused_without_its_value() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        async with connect_scripted(Script(NEWEST), headers={"X-Own": "s\xe9cret"}):
            raise AssertionError("it was opened")
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_option_that_the_system_refuses_is_the_reason_told(
    monkeypatch: pytest.MonkeyPatch, opener: OpenLibrary | None
) -> None:
    if opener is None:
        pytest.skip("httpx2 leaves the socket to the garbage collector")

    def refuse(raw: socket.socket, *option: Any) -> None:
        if option[:2] == (socket.SOL_SOCKET, socket.SO_KEEPALIVE):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        set_option(raw, *option)

    set_option = socket.socket.setsockopt
    async with HttpServer(Script(NEWEST)) as server:
        monkeypatch.setattr(socket.socket, "setsockopt", refuse)
        with pytest.raises(ConnectFailedError, match=os.strerror(errno.EPERM)):
            async with connect(server.url, revision=NEWEST):
                pass
        assert server.asked == []


async def test_a_channel_that_is_cancelled_leaves_nothing_open() -> None:
    async def silent(asked: Asked, reply: Reply) -> None:
        await reply.gone()

    script = Script(NEWEST)
    script.on["tools/call"] = silent
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with HttpServer(script) as server:
            with anyio.CancelScope() as scope:
                async with (
                    connect(server.url, revision=NEWEST) as client,
                    anyio.create_task_group() as tasks,
                ):
                    arguments: dict[str, object] = {}
                    tasks.start_soon(client.call_tool, "echo", arguments)
                    await server.until("tools/call")
                    scope.cancel()
            await server.until_left()
        gc.collect()
