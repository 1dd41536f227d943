"""Silent calls on a server's real sockets, straight and through a proxy that bears no silence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import count
from types import TracebackType
from typing import Self

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from mcpgen_runtime.framing.sse import encode_comment
from package.asgi_client import BOTH, JSON, fields_of
from package.faults import EACH, Outcome, call_text, client_of
from package.http_process import SECONDS, HttpProcess, http_process
from package.http_server import BROKEN
from package.server.raw_http import head, raw
from package.wire import PER_REQUEST, SESSIONS, encode_message, facts, request

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

POLLING = [revision for revision in SESSIONS if facts(revision).http.polling]
KEYS = count()
_COMMENT = encode_comment()
KEEP_ALIVE = 0.1
SILENCE_SECONDS = 1.0
"""Seconds for which the proxy lets the server be silent."""


class IdleProxy:
    """Passes bytes both ways, from `async with` on. Listens on a port of its own.

    Args:
        server: The port of the server.
        seconds: How long the server may be silent after a request or within an answer.

    Attributes:
        port: Where it listens.
        given_up: How many connections it ended because the server was silent.
        commented: How many POSTs got a comment.
        long_answers: How many got one more than twice as long after it as the server may be silent.
    """

    def __init__(self, server: int, seconds: float) -> None:
        self.port = 0
        self.given_up = 0
        self.commented = 0
        self.long_answers = 0
        self._server = server
        self._seconds = seconds
        self._stack = AsyncExitStack()
        self._news = anyio.Event()
        self._connections: set[anyio.CancelScope] = set()

    @property
    def url(self) -> str:
        """Where clients find the server's endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        self.port = listener.extra(SocketAttribute.local_port)

        async def serve() -> None:
            async with listener:
                await listener.serve(self._connected)

        self._tasks.start_soon(serve)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tasks.cancel_scope.cancel()
        await self._stack.aclose()

    async def until(self, *, commented: int = 0, long_answers: int = 0) -> None:
        """Wait until there were so many."""
        with anyio.fail_after(SECONDS):
            while self.commented < commented or self.long_answers < long_answers:
                await self._news.wait()

    def cut(self) -> None:
        """End all connections that are open now."""
        for scope in list(self._connections):
            scope.cancel()

    async def _connected(self, client: SocketStream) -> None:
        with anyio.CancelScope() as scope, suppress(*BROKEN, OSError):
            self._connections.add(scope)
            try:
                server = await anyio.connect_tcp("127.0.0.1", self._server)
                async with client, server:
                    await self._pass(client, server)
            finally:
                self._connections.discard(scope)

    async def _pass(self, client: SocketStream, server: SocketStream) -> None:
        """Pass requests and answers until a side is gone, or the server is silent for too long."""
        exchange = _Exchange()

        async def pass_requests() -> None:
            with suppress(*BROKEN):
                async for data in client:
                    exchange.asked(data, self._seconds)
                    await server.send(data)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            scope = tasks.cancel_scope
            tasks.start_soon(pass_requests)
            with exchange.silence, suppress(*BROKEN):
                async for data in server:
                    self.commented += exchange.answered(data, self._seconds)
                    self.long_answers += exchange.becomes_long(2 * self._seconds)
                    self._tell()
                    await client.send(data)
            if exchange.silence.cancelled_caught:
                self.given_up += 1
                self._tell()
            scope.cancel()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class _Exchange:
    """The request that a connection carries now, and its answer.

    Attributes:
        silence: Cancelled when the server has been silent for too long.
    """

    def __init__(self) -> None:
        self.silence = anyio.CancelScope()
        self._began: float | None = None
        self._commented = False

    def asked(self, data: bytes, seconds: float) -> None:
        """Take note of bytes of the client."""
        now = anyio.current_time()
        if data.startswith((b"POST ", b"GET ", b"DELETE ")):
            self._began = now if data.startswith(b"POST ") else None
            self._commented = False
        self.silence.deadline = now + seconds

    def answered(self, data: bytes, seconds: float) -> bool:
        """Take note of bytes of the server; whether they are the first comment for a POST."""
        whole = data.endswith(b"0\r\n\r\n") or b"content-length: " in data.lower()
        self.silence.deadline = math.inf if whole else anyio.current_time() + seconds
        first = self._began is not None and _COMMENT in data and not self._commented
        self._commented = self._commented or first
        return first

    def becomes_long(self, seconds: float) -> bool:
        """Whether comments have come for a POST for so long; `True` once."""
        if self._began is None or not self._commented:
            return False
        if anyio.current_time() < self._began + seconds:
            return False
        self._began = None
        return True


@pytest.fixture(scope="module", params=["auto", "sse"])
def server(request: pytest.FixtureRequest) -> Iterator[HttpProcess]:
    with http_process(answers=request.param, keep_alive=KEEP_ALIVE, h11=True) as process:
        yield process


def silent_post(port: int, revision: str, key: str, **fields: str) -> bytes:
    """A silent call in a revision without sessions."""
    message = request(revision, "tools/call", {"name": "look", "arguments": {"key": key}})
    body = encode_message(message)
    every = fields_of(revision, message) | {"Content-Length": str(len(body))} | fields
    return head(port, every) + body


@pytest.mark.requirement("http.keepalive-comments", "http.x-accel-buffering")
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_head_and_comments_come_before_the_answer_on_the_socket(
    revision: str, version: bytes, server: HttpProcess
) -> None:
    key = f"raw{next(KEYS)}"
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
    async with IdleProxy(server.port, SILENCE_SECONDS) as proxy, raw(proxy.port) as connection:
        await connection.send(silent_post(proxy.port, PER_REQUEST[-1], "json", Accept=JSON))
        assert await connection.closed() == b""
        assert proxy.given_up == 1


async def test_silent_calls_outlast_a_proxy_that_bears_no_silence(server: HttpProcess) -> None:
    async with IdleProxy(server.port, SILENCE_SECONDS) as proxy, anyio.create_task_group() as tasks:

        async def make(revision: str, key: str) -> None:
            async with client_of(server, revision, url=proxy.url) as client:
                assert await call_text(client, "look", key=key) == key

        keys = {revision: f"long{next(KEYS)}" for revision in EACH}
        for revision, key in keys.items():
            tasks.start_soon(make, revision, key)
        await proxy.until(long_answers=len(EACH))
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
    revision: str, server: HttpProcess
) -> None:
    key, outcome = f"cut{next(KEYS)}", Outcome()
    async with (
        IdleProxy(server.port, SILENCE_SECONDS) as proxy,
        client_of(server, revision, url=proxy.url) as client,
        client_of(server, revision) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome.run, partial(client.call_tool, "look", {"key": key}))
        await proxy.until(commented=1)
        proxy.cut()
        await call_text(other, "release", key=key)
        assert await outcome.text() == key
    assert server.said(f"working {key}") == 1


@pytest.mark.parametrize("revision", EACH)
async def test_a_silent_call_is_cancelled_while_its_stream_is_open(
    revision: str, server: HttpProcess
) -> None:
    key = f"cancelled{next(KEYS)}"
    async with (
        IdleProxy(server.port, SILENCE_SECONDS) as proxy,
        client_of(server, revision, url=proxy.url) as client,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.call_tool, "look", {"key": key}))
            await proxy.until(commented=1)
            tasks.cancel_scope.cancel()
        await server.until(f"cancelled {key}")
        assert await call_text(client, "add", a=1, b=2) == "3"
