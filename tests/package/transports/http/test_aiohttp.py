"""The HTTP library on asyncio: connections side by side, exact limits, proxies, credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpgen_runtime.errors import (
    ConnectFailedError,
    ConnectionClosedError,
    FrameError,
    ResponseLostError,
)
from mcpgen_runtime.transports.http.aiohttp_library import FRAMING_LIMIT, open_library
from mcpgen_runtime.transports.http.http_client import POSTED, HttpRequests
from package.http_server import Asked, Handler, HttpServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def requests_to(
    handler: Handler, **how: Any
) -> AsyncIterator[tuple[HttpRequests, HttpServer]]:
    """Requests, and the server that they are sent to."""
    async with HttpServer(handler) as server:
        requests = HttpRequests(**how, open_library=open_library)
        try:
            with anyio.fail_after(20):
                yield requests, server
        finally:
            await requests.close()


async def test_streams_are_open_side_by_side() -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.gone()

    async with requests_to(handler, connect_timeout=2) as (requests, server):
        responses = [await requests.open("POST", server.url, POSTED, b"{}") for _ in range(3)]
        assert server.connections == 3
        for response in responses:
            await response.close()


async def test_a_connection_is_used_again() -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200, b"{}")

    async with requests_to(handler) as (requests, server):
        for _ in range(3):
            response = await requests.open("POST", server.url, POSTED, b"{}")
            assert await requests.read(response) == b"{}"
            await requests.discard(await requests.open("POST", server.url, POSTED, b"{}"))
    assert server.connections == 1


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize(("size", "fits"), [(999, True), (1000, True), (1001, False)])
async def test_a_body_is_as_long_as_the_limit(size: int, fits: bool, in_parts: bool) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        if in_parts:
            await reply.stream()
            await reply.part(b"x" * (size - 1))
            await first_read.wait()
            await reply.part(b"y")
            await reply.end()
        else:
            await reply.whole(200, b"x" * (size - 1) + b"y")

    first_read = anyio.Event()
    async with requests_to(handler, limit=1000) as (requests, server):
        response = await requests.open("POST", server.url, POSTED, b"{}")
        first_read.set()
        if fits:
            assert await requests.read(response) == b"x" * (size - 1) + b"y"
        else:
            with pytest.raises(FrameError, match="at most 1000 bytes"):
                await requests.read(response)


def head(size: int) -> bytes:
    """The head of a response, of so many bytes."""
    begin, end = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: ", b"\r\n\r\n"
    return begin + b"x" * (size - len(begin) - len(end)) + end


async def test_a_head_is_as_long_as_the_limit() -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.raw(head(FRAMING_LIMIT))

    async with requests_to(handler) as (requests, server):
        for _ in range(2):
            response = await requests.open("POST", server.url, POSTED, b"{}")
            assert await requests.read(response) == b""
    assert server.connections == 1


async def test_a_head_that_goes_on_after_the_limit_is_given_up() -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.raw(head(2 * FRAMING_LIMIT)[: FRAMING_LIMIT + 1])
        await reply.gone()

    async with requests_to(handler) as (requests, server):
        with pytest.raises(ResponseLostError):
            await requests.open("POST", server.url, POSTED, b"{}")


async def test_a_field_with_several_values_is_one() -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200\r\nA: 1\r\na: 2\r\nContent-Length: 0\r\n\r\n")

    async with requests_to(handler) as (requests, server):
        response = await requests.open("POST", server.url, POSTED, b"{}")
        assert (response.header("A"), response.header("b")) == ("1, 2", None)
        assert (response.status, response.reason, response.url) == (200, "", server.url)
        await response.close()


@pytest.mark.parametrize(
    ("proxy", "reason"),
    [
        ("http://127.0.0.1:0", "a proxy needs a host and a port"),
        ("http://", "a proxy needs a host and a port"),
        ("ftp://127.0.0.1:1", "Unknown scheme 'ftp' of a proxy"),
        ("http://127.0.0.1:65536", "Port out of range 0-65535"),
    ],
)
@pytest.mark.parametrize("variable", ["https_proxy", "all_proxy"])
async def test_a_proxy_that_cannot_be_used_is_named(
    variable: str, proxy: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, proxy)
    monkeypatch.setenv("no_proxy", "inside.example")
    requests = HttpRequests(open_library=open_library)
    with pytest.raises(ConnectFailedError) as caught:
        await requests.open("POST", "https://server.invalid/a?b", POSTED, b"{}")
    await requests.close()
    assert str(caught.value) == (
        "no connection to https://server.invalid/a: "
        f"proxies and certificates of the environment: {reason}"
    )


async def test_a_host_without_a_proxy_is_reached_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200)

    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with requests_to(handler) as (requests, server):
        await requests.discard(await requests.open("POST", server.url, POSTED, b"{}"))


async def test_closed_requests_send_nothing_more() -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200)

    async with requests_to(handler) as (requests, server):
        await requests.discard(await requests.open("POST", server.url, POSTED, b"{}"))
        await requests.close()
        await requests.close()
        with pytest.raises(ConnectionClosedError, match="the HTTP client is closed"):
            await requests.open("POST", server.url, POSTED, b"{}")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("credentials", "field"),
    [
        ("user:p%40ss@", "Basic dXNlcjpwQHNz"),
        ("user@", "Basic dXNlcjo="),
        (":p@", "Basic OnA="),
        ("", None),
    ],
)
async def test_credentials_of_a_url_are_sent_in_a_field(
    credentials: str, field: str | None
) -> None:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200)

    async with requests_to(handler) as (requests, server):
        url = server.url.replace("//", f"//{credentials}")
        await requests.discard(await requests.open("POST", url, POSTED, b"{}"))
    (asked,) = server.asked
    assert asked.fields.get("authorization") == field
    assert asked.fields["accept-encoding"] == "identity"
    assert "user-agent" not in asked.fields
