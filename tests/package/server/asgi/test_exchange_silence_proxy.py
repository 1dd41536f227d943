"""Silent calls on a server's real sockets, straight and through a proxy that bears no silence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from kit.asgi_client import BOTH, JSON, fields_of
from kit.faults import EACH, Outcome, call_text, client_of
from kit.http_process import SECONDS, HttpProcess, http_process
from kit.http_server import BROKEN
from kit.raw_http import message_bytes, raw
from kit.wire import PER_REQUEST, SESSIONS, facts, request
from mcpgen_runtime.framing.sse import encode_comment

pytestmark = pytest.mark.processes

POLLING = [revision for revision in SESSIONS if facts(revision).http.polling]
KEEP_ALIVE = 0.1
SILENCE_SECONDS = 1.0
"""Seconds for which the proxy lets the server be silent."""


class IdleProxy:
    """Passes bytes both ways; ends a connection whose server is silent within an answer.

    Args:
        server: The port of the server.

    Attributes:
        port: Where it listens.
        given_up: How many connections it ended because the server was silent.
        comments: How many parts of answers with comments came on each connection.
    """

    def __init__(self, server: int) -> None:
        self.port = 0
        self.given_up = 0
        self.comments = Counter[int]()
        self._server = server
        self._connections: dict[int, anyio.CancelScope] = {}
        self._news = anyio.Event()

    @property
    def url(self) -> str:
        """Where clients find the server's endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def until(self, connections: int, comments: int = 1) -> None:
        """Wait until so many connections have brought so many comments."""
        with anyio.fail_after(SECONDS):
            while sum(count >= comments for count in self.comments.values()) < connections:
                await self._news.wait()

    def cut(self) -> None:
        """End all connections that are open now."""
        for scope in self._connections.values():
            scope.cancel()

    async def serve(self, client: SocketStream) -> None:
        """Pass requests and answers until a side is gone, or the server is silent for too long."""
        number = len(self._connections)
        silence = anyio.CancelScope()

        async def pass_requests(server: SocketStream) -> None:
            with suppress(*BROKEN):
                async for data in client:
                    silence.deadline = anyio.current_time() + SILENCE_SECONDS
                    await server.send(data)
            scope.cancel()

        with anyio.CancelScope() as scope, suppress(*BROKEN, OSError):
            self._connections[number] = scope
            async with (
                client,
                await anyio.connect_tcp("127.0.0.1", self._server) as server,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(pass_requests, server)
                with silence, suppress(*BROKEN):
                    async for data in server:
                        is_whole = (
                            data.endswith(b"0\r\n\r\n") or b"content-length: " in data.lower()
                        )
                        now = anyio.current_time()
                        silence.deadline = math.inf if is_whole else now + SILENCE_SECONDS
                        self.comments[number] += encode_comment() in data
                        self._news.set()
                        self._news = anyio.Event()
                        await client.send(data)
                self.given_up += silence.cancelled_caught
                scope.cancel()


@asynccontextmanager
async def idle_proxy(server: HttpProcess) -> AsyncIterator[IdleProxy]:
    """A proxy on a port of its own."""
    proxy = IdleProxy(server.port)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    proxy.port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy.serve)
        yield proxy
        tasks.cancel_scope.cancel()


@pytest.fixture(scope="module", params=["auto", "sse"])
def server(request: pytest.FixtureRequest) -> Iterator[HttpProcess]:
    with http_process(answers=request.param, keep_alive=KEEP_ALIVE, h11=True) as process:
        yield process


def silent_post(port: int, revision: str, key: str, **fields: str) -> bytes:
    """A silent call in a revision without sessions."""
    message = request(revision, "tools/call", {"name": "look", "arguments": {"key": key}})
    return message_bytes(port, message, fields_of(revision, message) | fields)


@pytest.mark.requirement("http.keepalive-comments", "http.x-accel-buffering")
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_head_and_comments_come_before_the_answer_on_the_socket(
    revision: str, version: bytes, server: HttpProcess, key: str
) -> None:
    async with client_of(server, revision) as client, raw(server.port) as connection:
        message = silent_post(server.port, revision, key, Accept=BOTH)
        await connection.send(message.replace(b"HTTP/1.1", b"HTTP/" + version, 1))
        with anyio.fail_after(SECONDS):
            response = (await connection.until(b"\r\n\r\n")).lower().split(b"\r\n")
            assert b"content-type: text/event-stream" in response
            assert b"x-accel-buffering: no" in response
            assert (b"transfer-encoding: chunked" in response) == (version == b"1.1")
            for _ in range(3):
                await connection.until(encode_comment())
        assert not server.said(f"done {key}")
        await call_text(client, "release", key=key)
        if version == b"1.0":
            assert b'"result"' in await connection.closed()
        else:
            await connection.until(b'"result"')


async def test_the_proxy_gives_up_on_a_call_that_must_answer_in_json(
    server: HttpProcess,
) -> None:
    async with idle_proxy(server) as proxy, raw(proxy.port) as connection:
        await connection.send(silent_post(proxy.port, PER_REQUEST[-1], "json", Accept=JSON))
        assert await connection.closed() == b""
        assert proxy.given_up == 1


async def test_silent_calls_outlast_a_proxy_that_bears_no_silence(
    server: HttpProcess, key: str
) -> None:
    async with idle_proxy(server) as proxy, anyio.create_task_group() as tasks:

        async def make(revision: str, key: str) -> None:
            async with client_of(server, revision, url=proxy.url) as client:
                assert await call_text(client, "look", key=key) == key

        keys = {revision: f"{key} {revision}" for revision in EACH}
        for revision, key in keys.items():
            tasks.start_soon(make, revision, key)
        await proxy.until(len(EACH), 2 * round(SILENCE_SECONDS / KEEP_ALIVE))
        async with client_of(server, PER_REQUEST[-1]) as client:
            for key in keys.values():
                await call_text(client, "release", key=key)
        for key in keys.values():
            await server.until(f"done {key}")
    assert proxy.given_up == 0
    assert [server.said(f"working {key}") for key in keys.values()] == [1] * len(EACH)


@pytest.mark.requirement("http.prime-event")
@pytest.mark.parametrize("revision", POLLING)
async def test_a_client_resumes_a_silent_call_whose_connection_breaks(
    revision: str, server: HttpProcess, key: str
) -> None:
    outcome = Outcome()
    async with (
        idle_proxy(server) as proxy,
        client_of(server, revision, url=proxy.url) as client,
        client_of(server, revision) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome.run, partial(client.call_tool, "look", {"key": key}))
        await proxy.until(2)  # the stream of the session, and that of the call
        proxy.cut()
        await call_text(other, "release", key=key)
        assert await outcome.text() == key
    assert server.said(f"working {key}") == 1


@pytest.mark.parametrize("revision", EACH)
async def test_a_silent_call_is_cancelled_while_its_stream_is_open(
    revision: str, server: HttpProcess, key: str
) -> None:
    async with (
        idle_proxy(server) as proxy,
        client_of(server, revision, url=proxy.url) as client,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.call_tool, "look", {"key": key}))
            await proxy.until(1)
            tasks.cancel_scope.cancel()
        await server.until(f"cancelled {key}")
        assert await call_text(client, "add", a=1, b=2) == "3"
