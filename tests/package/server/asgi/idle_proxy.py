"""A proxy that ends connections on which a server is silent for too long, as reverse proxies do."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import SocketAttribute, SocketStream

from mcp_protocol.framing.sse import encode_comment
from package.http_server import BROKEN

SECONDS = 20
"""How long anything may take before its test fails."""

_COMMENT = encode_comment()


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
