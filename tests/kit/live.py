"""Whole clients and servers as tests see them: what passes is recorded, or said by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio

from kit.samples import EVERY_SERVER_CAPABILITY, URI
from kit.wire import PER_REQUEST, describe_as, encode_message, opening_result
from mcpgen_runtime import (
    REVISIONS,
    Channel,
    ClientHandlers,
    OutgoingMessage,
    RequestContext,
    Server,
    connect,
)
from mcpgen_runtime.channel import TooLong
from mcpgen_runtime.errors import EndOfChannel
from mcpgen_runtime.facts import Revisions
from mcpgen_runtime.server.chosen import new_connection
from mcpgen_runtime.server.serving import Service, serve
from mcpgen_runtime.transports.memory import memory_pair


class Recorded(Channel):
    """A channel that keeps what passes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []

    async def receive(self) -> bytes:
        message = await self._channel.receive()
        self.received.append(json.loads(message))
        return message

    async def send(self, message: OutgoingMessage) -> None:
        self.sent.append(json.loads(message.data))
        await self._channel.send(message)

    async def close(self) -> None:
        await self._channel.close()

    def sent_as(self, method: str) -> list[dict[str, Any]]:
        """Params of what went out under a method."""
        return [message["params"] for message in self.sent if message.get("method") == method]

    def received_as(self, method: str) -> list[dict[str, Any]]:
        """Params of what came in under a method."""
        return [message["params"] for message in self.received if message.get("method") == method]


@asynccontextmanager
async def live(
    server: Any, revision: str | None = None, **how: Any
) -> AsyncIterator[tuple[Any, Recorded]]:
    """A client connected with a server in memory, and the record of the client's channel."""
    near, far = memory_pair()
    record = Recorded(near)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        async with connect(record, revision=revision, **how) as client:
            yield client, record


async def open_and_close(opening: AbstractAsyncContextManager[Any]) -> None:
    """Open a connection, and close it."""
    async with opening:
        pass


async def expect_refusal(opening: AbstractAsyncContextManager[Any]) -> None:
    """Open a connection that is refused; to be within `pytest.raises`."""
    async with opening:
        raise AssertionError("it was opened")


TOO_LONG = b"a message of more than 10 bytes"
"""A message that the channel of a `FakeServer` drops, with an error."""


class FakeServer(Channel):
    """A channel to a server that says what it is told to, and nothing if its revision is `None`.

    It answers the opening by itself, and records the rest.
    """

    wait_seconds = 10.0

    def __init__(
        self,
        revision: str | None,
        capabilities: Mapping[str, Any] = EVERY_SERVER_CAPABILITY,
    ) -> None:
        self.revision = revision
        self.capabilities = capabilities
        self.opening: list[dict[str, Any]] = []
        self.heard: list[dict[str, Any]] = []
        self.closed = False
        self._taken = 0
        self._ours, self._theirs = memory_pair()
        self._news = anyio.Event()

    async def receive(self) -> bytes:
        if self.closed:
            raise EndOfChannel("closed")
        message = await self._theirs.receive()
        if message == TOO_LONG:
            raise TooLong(10).error()
        return message

    async def send(self, message: OutgoingMessage) -> None:
        decoded = json.loads(message.data)
        if decoded.get("method") in ("initialize", "server/discover", "notifications/initialized"):
            self.opening.append(decoded)
            await self.agree_to_open(decoded)
        else:
            self.heard.append(decoded)
            self._news.set()
            await self.respond(decoded)

    async def respond(self, message: dict[str, Any]) -> None:
        """React to a message after the opening; subclasses answer it."""

    async def close(self) -> None:
        self.closed = True
        await self._theirs.close()

    async def hang_up(self) -> None:
        """Be gone."""
        await self._ours.close()

    async def say(self, message: Any) -> None:
        """Send a message as it is."""
        await self._ours.send(OutgoingMessage(encode_message(message)))

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        await self.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def answer(self, request: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Send the result of a request; where results have a type, it is the last word."""
        assert self.revision is not None
        if REVISIONS[self.revision].result_types:
            result = {"resultType": "complete", **result}
        await self.say({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def answer_next(self, result: Mapping[str, Any]) -> None:
        """Wait for the next request, and send its result."""
        await self.answer(await self.next(), result)

    async def next(self) -> dict[str, Any]:
        """Wait for what the client says next."""
        with anyio.fail_after(self.wait_seconds):
            while len(self.heard) <= self._taken:
                self._news = anyio.Event()
                await self._news.wait()
        self._taken += 1
        return self.heard[self._taken - 1]

    async def agree_to_open(self, message: Mapping[str, Any]) -> None:
        """Answer a message of the opening; subclasses answer otherwise."""
        if self.revision is not None and "id" in message:
            await self.answer(message, opening_result(self.revision, self.capabilities))


class RawServer:
    """A server on the wire: it answers the opening by itself, and `take` has the rest."""

    def __init__(self, capabilities: Mapping[str, Any] = EVERY_SERVER_CAPABILITY) -> None:
        self._capabilities = capabilities

    async def serve(self, channel: Channel) -> None:
        """Answer until the channel ends."""
        self._channel = channel
        with suppress(EndOfChannel):
            while True:
                message = json.loads(await channel.receive())
                match message:
                    case {"method": "initialize", "params": {"protocolVersion": version}}:
                        result = opening_result(version, self._capabilities)
                    case {"method": "server/discover"}:
                        result = opening_result(PER_REQUEST[-1], self._capabilities)
                        result["supportedVersions"] = list(REVISIONS)
                    case _:
                        await self.take(message)
                        continue
                await self.send({"id": message["id"], "result": result})

    async def take(self, message: dict[str, Any]) -> None:
        """Handle a message."""
        raise NotImplementedError

    async def send(self, message: Mapping[str, Any] | bytes) -> None:
        """Send a message; bytes as they are."""
        if not isinstance(message, bytes):
            message = encode_message({"jsonrpc": "2.0", **message})
        await self._channel.send(OutgoingMessage(message))


def text_of(result: Any) -> str:
    """The text of a tool's result."""
    text: str = result.content[0].text
    return text


async def tool_names(client: Any) -> list[str]:
    """The names of the tools that a client lists."""
    return [tool.name for tool in await client.list_tools()]


TEXT: Mapping[str, Any] = {"content": [{"type": "text", "text": "done"}]}
"""The result of a tool that returns a text."""


async def names_back(ctx: RequestContext) -> Any:
    """A tool's result that is the tool's name."""
    return {"content": [{"type": "text", "text": ctx.params.name}]}


class App:
    """An application made of one function, and served as a server of some revisions."""

    def __init__(
        self,
        answer: Callable[[RequestContext], Awaitable[Any]],
        revisions: Revisions = REVISIONS,
        capabilities: Mapping[str, Any] = EVERY_SERVER_CAPABILITY,
        *,
        drain: float = 0,
    ) -> None:
        self._answer = answer
        describe = describe_as(capabilities, "app")
        self.service = Service(self, revisions, describe, new_connection, drain=drain)
        self.noted: list[str] = []

    async def handle(self, ctx: RequestContext) -> Any:
        return await self._answer(ctx)

    async def notified(self, ctx: RequestContext) -> None:
        self.noted.append(ctx.method.name)

    async def serve(self, channel: Channel) -> None:
        await serve(self.service, channel)


def server_with(*tools: Callable[..., Any], **settings: Any) -> Server:
    """A server whose tools are these functions."""
    server = Server("tester", **settings)
    for tool in tools:
        server.tool()(tool)
    return server


def handlers_with(**answers: Any) -> ClientHandlers:
    """Handlers of a client that return these answers; a function makes its answer of the params."""

    def handler(answer: Any) -> Callable[..., Awaitable[Any]]:
        async def handle(self: ClientHandlers, params: Any, ctx: RequestContext) -> Any:
            return answer(params) if callable(answer) else answer

        return handle

    members = {name: handler(answer) for name, answer in answers.items()}
    made: ClientHandlers = type("Handlers", (ClientHandlers,), members)()
    return made


def sample_server(**options: Any) -> Server:
    """A server with one of everything, which serves the params of `kit.samples`."""
    server = Server("samples", "1", **options)

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.resource(URI)
    def one() -> str:
        return "one"

    @server.prompt()
    def greeting(who: str = "you", how: str = "well") -> str:
        return f"{who}, {how}"

    @server.completion(prompt="greeting", argument="who")
    def names(text: str) -> list[str]:
        return ["Oslo"]

    return server
