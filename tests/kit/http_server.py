"""A raw HTTP/1.1 server over real sockets that says what a test wants, to the byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from mcpgen_runtime.framing.sse import encode_event

BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Cut(Exception):
    """The connection is to end here, with nothing more said."""


@dataclass
class Asked:
    """One HTTP request as it came."""

    verb: str
    target: str
    pairs: list[tuple[str, str]]
    body: bytes
    at: float
    fields: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.fields = {name.lower(): value for name, value in self.pairs}

    @property
    def message(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def what(self) -> str:
        """The method of the message in a POST, `response` for one without; else the verb."""
        if self.verb != "POST":
            return self.verb
        return str(self.message.get("method", "response"))

    @property
    def id(self) -> Any:
        """The id of the message."""
        return self.message.get("id")


class Reply:
    """The response to one request, said bit by bit."""

    def __init__(self, stream: SocketStream, on_gone: Callable[[], None]) -> None:
        self._stream = stream
        self._on_gone = on_gone

    async def raw(self, data: bytes) -> None:
        """Bytes on the connection as they are."""
        await self._stream.send(data)

    async def head(self, status: int, fields: Mapping[str, str]) -> None:
        """The head of a response."""
        lines = [f"HTTP/1.1 {status} Test", *(f"{name}: {fields[name]}" for name in fields)]
        await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def whole(self, status: int, body: bytes = b"", **fields: str) -> None:
        """A response at once."""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        await self.head(status, {"Content-Length": str(len(body)), **named})
        if body:
            await self.raw(body)

    async def json(self, message: Any, status: int = 200, **fields: str) -> None:
        """A response of JSON at once."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.whole(status, body, **{"Content_Type": "application/json", **fields})

    async def stream(self, **fields: str) -> None:
        """Begin a stream of events."""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        await self.head(
            200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **named}
        )

    async def part(self, data: bytes) -> None:
        """Bytes of the stream."""
        if data:
            await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def event(self, message: Any = None, **how: Any) -> None:
        """One event: a message as JSON, or bytes, or no data; see `encode_event`."""
        if message is None:
            message = b""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.part(encode_event(data, **how))

    async def end(self) -> None:
        """End the stream properly."""
        await self.raw(b"0\r\n\r\n")

    async def cut(self) -> None:
        """End the connection."""
        raise Cut

    async def gone(self) -> None:
        """Wait until the client has closed the connection."""
        try:
            while True:
                await self._stream.receive()
        except BROKEN:
            self._on_gone()


Handler: TypeAlias = Callable[[Asked, Reply], Awaitable[None]]


class HttpServer:
    """Listens on a port of its own, from `async with` on, unless it is killed meanwhile."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.asked: list[Asked] = []
        self.left = 0
        self.connections = 0
        self._port = 0
        self._stack = AsyncExitStack()
        self._news = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def url(self) -> str:
        """The URL of the endpoint."""
        return f"http://127.0.0.1:{self._port}/mcp"

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        await self._stack.aclose()

    async def start(self) -> None:
        """Listen; after `kill`, on the same port again."""
        listeners = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=self._port)
        self._port = listeners.extra(SocketAttribute.local_port)
        self._scope = anyio.CancelScope()

        async def serve(scope: anyio.CancelScope, ended: anyio.Event) -> None:
            async with listeners:
                with scope:
                    await listeners.serve(self._connected)
            ended.set()

        self._ended = anyio.Event()
        self._tasks.start_soon(serve, self._scope, self._ended)

    async def until_dead(self) -> None:
        """Wait until nobody listens any more."""
        await self._ended.wait()

    def kill(self) -> None:
        """End all connections, and listen no more."""
        self._scope.cancel()

    async def until(self, *what: str, times: int = 1) -> list[Asked]:
        """Wait until requests of some kind came so often; these."""
        while True:
            requests = [asked for asked in self.asked if asked.what in what]
            if len(requests) >= times:
                return requests
            with anyio.fail_after(20):
                await self._news.wait()

    async def until_left(self, times: int = 1) -> None:
        """Wait until clients have gone so often."""
        while self.left < times:
            with anyio.fail_after(20):
                await self._news.wait()

    def of(self, *what: str) -> list[Asked]:
        """The requests of some kind that came until now."""
        return [asked for asked in self.asked if asked.what in what]

    def order(self) -> list[str]:
        """Kinds of the requests, in order."""
        return [asked.what for asked in self.asked]

    def _count_left(self) -> None:
        self.left += 1
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _connected(self, stream: SocketStream) -> None:
        self.connections += 1
        async with stream:
            try:
                buffered = BufferedByteReceiveStream(stream)
                while True:
                    asked = await read_request(buffered)
                    self.asked.append(asked)
                    self._tell()
                    await self.handler(asked, Reply(stream, self._count_left))
            except (*BROKEN, anyio.IncompleteRead, Cut):
                pass


async def read_request(stream: BufferedByteReceiveStream) -> Asked:
    """The next request on a connection."""
    head = (await stream.receive_until(b"\r\n\r\n", 256 * 1024)).decode("latin-1")
    first, *lines = head.split("\r\n")
    verb, target, _ = first.split(" ")
    pairs = [
        (name, value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines)
    ]
    length = int({name.lower(): value for name, value in pairs}.get("content-length", 0))
    body = await stream.receive_exactly(length) if length else b""
    return Asked(verb, target, pairs, body, anyio.current_time())


@contextmanager
def unused_port() -> Iterator[int]:
    """A port that nobody listens on, nor will."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
