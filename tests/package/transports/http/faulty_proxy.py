"""A proxy that does what bad ones do: it cuts, falls silent, holds back, and sends requests again.

It reads requests as HTTP/1.1 and passes each on over a connection of its own; a plan says what
happens to it. Answers pass as they come, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from kit.http_server import BROKEN, Asked, read_request

SECONDS = 20


@dataclass(frozen=True)
class Fault:
    """A fault in one request and its answer.

    Attributes:
        up: How many bytes of the request pass, below zero how many do not; `None` for all.
        down: How many bytes of the answer pass; `None` for all.
        then: What follows the last byte of that: the end of both connections, or nothing at all.
        held: Whether the answer is kept until `FaultyProxy.release`, or until it is whole.
        replayed: Whether the server gets the request twice, and which of the answers the client.
    """

    up: int | None = None
    down: int | None = None
    then: Literal["cut", "silence"] = "cut"
    held: bool = False
    replayed: Literal["first counts", "second counts"] | None = None


FAULTLESS = Fault()

Plan: TypeAlias = Callable[[Asked], Fault]


def faultless(asked: Asked) -> Fault:
    """The plan of a good proxy."""
    return FAULTLESS


class FaultyProxy:
    """Listens on a port of its own, from `async with` on.

    Args:
        port: The port of the server.

    Attributes:
        plan: Says what happens to the requests from now on.
        asked: The requests that came, in order.
    """

    def __init__(self, port: int) -> None:
        self.plan: Plan = faultless
        self.asked: list[Asked] = []
        self._struck = 0
        self._server = port
        self._port = 0
        self._stack = AsyncExitStack()
        self._news = anyio.Event()
        self._released = anyio.Event()

    @property
    def url(self) -> str:
        """Where clients find the server's endpoint."""
        return f"http://127.0.0.1:{self._port}/mcp"

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        self._port = listener.extra(SocketAttribute.local_port)

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

    def release(self) -> None:
        """Let go of what is held back, and hold back nothing of those answers any more."""
        self._released.set()
        self._released = anyio.Event()

    async def struck(self, times: int = 1) -> None:
        """Wait until so many requests or answers were cut, kept or came to a halt."""
        while self._struck < times:
            with anyio.fail_after(SECONDS):
                await self._news.wait()

    async def _connected(self, client: SocketStream) -> None:
        """Serve one connection: one request after the other, until either side is gone."""
        async with client, anyio.create_task_group() as tasks:
            buffered = BufferedByteReceiveStream(client)
            last = anyio.CancelScope()
            try:
                while True:
                    asked = await read_request(buffered)
                    last.cancel()  # its answer is whole, or there would be no other request
                    last = anyio.CancelScope()
                    self.asked.append(asked)
                    exchange = _Exchange(self, client, self.plan(asked))
                    tasks.start_soon(exchange.run, asked, last, tasks)
            except (*BROKEN, anyio.IncompleteRead):
                tasks.cancel_scope.cancel()

    async def connect(self) -> SocketStream:
        """A connection to the server."""
        return await anyio.connect_tcp("127.0.0.1", self._server)

    def strike(self) -> None:
        """Take note that a fault has shown."""
        self._struck += 1
        self._news.set()
        self._news = anyio.Event()

    @property
    def released(self) -> anyio.Event:
        """Set once what is held back now may go."""
        return self._released


class _Exchange:
    """One request and its answer."""

    def __init__(self, proxy: FaultyProxy, client: SocketStream, fault: Fault) -> None:
        self._proxy = proxy
        self._client = client
        self._fault = fault
        self._held: list[bytes] | None = [] if fault.held else None
        self._writing = anyio.Lock()

    async def run(self, asked: Asked, scope: anyio.CancelScope, connection: TaskGroup) -> None:
        """Pass it on; ends the connection of the client when that is to end."""
        with scope:
            try:
                await self._pass_on(raw(asked))
            except (*BROKEN, OSError):
                pass
            connection.cancel_scope.cancel()

    async def _pass_on(self, request: bytes) -> None:
        fault = self._fault
        if fault.replayed == "second counts":
            async with await self._proxy.connect() as before:
                await before.send(request)
                await before.receive()
            self._proxy.strike()
        async with await self._proxy.connect() as server, anyio.create_task_group() as tasks:
            await server.send(request[: fault.up])
            if fault.up is not None:
                self._proxy.strike()
                if fault.then == "cut":
                    return
            if fault.replayed == "first counts":
                tasks.start_soon(self._replay, request)
            if self._held is not None:
                tasks.start_soon(self._release, self._proxy.released)
            await self._answer(server)
            tasks.cancel_scope.cancel()

    async def _answer(self, server: SocketStream) -> None:
        left = self._fault.down
        async for part in server:
            if left is not None and len(part) >= left:
                await self._client.send(part[:left])
                await self._come_to_an_end()
                return
            if left is not None:
                left -= len(part)
            async with self._writing:
                if self._held is None:
                    await self._client.send(part)
                else:
                    if not self._held:
                        self._proxy.strike()
                    self._held.append(part)
        await self._flush()

    async def _release(self, released: anyio.Event) -> None:
        await released.wait()
        await self._flush()

    async def _flush(self) -> None:
        async with self._writing:
            held, self._held = self._held, None
            if held:
                await self._client.send(b"".join(held))

    async def _come_to_an_end(self) -> None:
        self._proxy.strike()
        if self._fault.then == "silence":
            await anyio.sleep_forever()

    async def _replay(self, request: bytes) -> None:
        async with await self._proxy.connect() as again:
            await again.send(request)
            self._proxy.strike()
            async for _ in again:
                pass


def raw(asked: Asked) -> bytes:
    """A request as it is written."""
    lines = [f"{asked.verb} {asked.target} HTTP/1.1", *(f"{n}: {v}" for n, v in asked.pairs)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + asked.body
