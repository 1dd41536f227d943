"""How a peer's connection ends, and what a transport that fails means for its calls."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from kit.live import TEXT, App, FakeServer, names_back, text_of
from kit.samples import CALL
from kit.wire import ALL, HANDSHAKE, encode_message, request
from mcpgen_runtime.channel import Channel, OutgoingMessage, RequestId
from mcpgen_runtime.client.async_client import connect
from mcpgen_runtime.errors import (
    ConnectionClosedError,
    FrameError,
    RemoteError,
    RemoteProtocolError,
)
from mcpgen_runtime.runtime.request_context import RequestContext
from mcpgen_runtime.transports.memory import MemoryChannel, memory_pair

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)


@every
async def test_inbound_requests_finish_after_the_client_has_closed(
    revision: str,
) -> None:
    finish, started = anyio.Event(), anyio.Event()

    async def work(ctx: RequestContext) -> Any:
        started.set()
        await finish.wait()
        return await names_back(ctx)

    channel = HalfClosed()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(App(work, drain=10).serve, channel)
        await channel.open(revision)
        await channel.say(request(revision, "tools/call", CALL, id="last"))
        await started.wait()
        channel.end()
        await anyio.wait_all_tasks_blocked()
        finish.set()
    assert channel.sent[-1]["id"] == "last"
    assert "result" in channel.sent[-1]
    assert channel.closed


@every
async def test_handlers_that_outlast_the_drain_time_are_cancelled(revision: str) -> None:
    started, cut = anyio.Event(), anyio.Event()

    async def work(ctx: RequestContext) -> Any:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cut.set()

    channel = HalfClosed()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(App(work, drain=0.01).serve, channel)
            await channel.open(revision)
            await channel.say(request(revision, "tools/call", CALL, id="last"))
            await started.wait()
            channel.end()
    assert cut.is_set()
    assert [message.get("id") for message in channel.sent].count("last") == 0


@legacy
async def test_a_request_to_a_client_that_says_no_more_fails_at_once(revision: str) -> None:
    outcome: list[str] = []
    asking = anyio.Event()

    async def ask(ctx: RequestContext) -> Any:
        for _ in range(2):
            try:
                asking.set()
                await ctx.request("roots/list")
            except ConnectionClosedError as error:
                outcome.append(str(error))
        return await names_back(ctx)

    channel = HalfClosed()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(App(ask, drain=60).serve, channel)
            await channel.open(revision, {"roots": {}})
            await channel.say(request(revision, "tools/call", CALL, id="last"))
            await asking.wait()
            await anyio.wait_all_tasks_blocked()
            channel.end()
    assert len(outcome) == 2
    assert channel.sent[-1]["id"] == "last"


class HalfClosed(Channel):
    """A server's channel whose client can say no more and still listen."""

    def __init__(self) -> None:
        self._ours, self._theirs = memory_pair()
        self._end = anyio.Event()
        self.sent: list[dict[str, Any]] = []
        self.closed = False

    async def open(self, revision: str, capabilities: Any = None) -> None:
        """Take part as a client of the revision."""
        from kit.wire import INITIALIZED, initialize

        if revision in HANDSHAKE:
            await self.say(initialize(revision, capabilities))
            await self.say(INITIALIZED)

    async def say(self, message: Any) -> None:
        """Say something as the client."""
        await self._ours.send(OutgoingMessage(encode_message(message)))

    def end(self) -> None:
        """Say no more."""
        self._theirs._incoming.close()

    async def receive(self) -> bytes:
        return await self._theirs.receive()

    async def send(self, message: OutgoingMessage) -> None:
        self.sent.append(json.loads(message.data))

    async def close(self) -> None:
        self.closed = True
        await self._theirs.close()


@every
async def test_closing_from_another_task_ends_all_calls_with_one_error(
    revision: str,
) -> None:
    server = FakeServer(revision)
    errors: list[Exception] = []
    async with connect(server, revision=revision) as client:

        async def call() -> None:
            try:
                await client.call_tool("never")
            except ConnectionClosedError as error:
                errors.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(call)
            for _ in range(5):
                await server.next()
            tasks.start_soon(client.close)
        with pytest.raises(ConnectionClosedError, match="the connection is closed"):
            await client.call_tool("after")
        await client.close()
    assert len({id(error) for error in errors}) == 5
    assert len(server.heard) == 5
    assert server.closed


@every
async def test_a_server_that_hangs_up_fails_current_and_later_calls(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def hang_up() -> None:
            await server.next()
            await server.hang_up()

        tasks.start_soon(hang_up)
        for _ in range(2):
            with pytest.raises(ConnectionClosedError, match="the other end closed the channel"):
                await client.call_tool("never")
    assert len(server.heard) == 1


@every
async def test_an_answer_that_came_before_the_end_is_not_lost(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def answer_and_leave() -> None:
            call = await server.next()
            await server.answer(call, TEXT)
            await server.hang_up()

        tasks.start_soon(answer_and_leave)
        assert text_of(await client.call_tool("last")) == "done"


class Broken(FakeServer):
    """A channel whose transport fails in ways of its own."""

    def __init__(self, revision: str, failure: Exception, at: str) -> None:
        super().__init__(revision)
        self.failure = failure
        self.at = at
        self.broken = False

    async def receive(self) -> bytes:
        message = await super().receive()
        if self.broken and self.at == "receive":
            raise self.failure
        return message

    async def send(self, message: OutgoingMessage) -> None:
        if self.broken and self.at == "send":
            raise self.failure
        await super().send(message)


@every
@pytest.mark.parametrize("failure", [OSError("gone"), ValueError("gone"), anyio.EndOfStream()])
async def test_an_unknown_transport_error_ends_the_connection(
    revision: str, failure: Exception
) -> None:
    server = Broken(revision, failure, "receive")
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def fail() -> None:
            await server.answer(await server.next(), TEXT)

        server.broken = True
        tasks.start_soon(fail)
        with pytest.raises(ConnectionClosedError):
            await client.call_tool("any")


@every
async def test_a_request_that_cannot_be_sent_fails_its_caller_alone(revision: str) -> None:
    server = Broken(revision, OSError("full"), "send")
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        server.broken = True
        with pytest.raises(OSError, match="full"):
            await client.call_tool("any")
        server.broken = False

        async def answer() -> None:
            await server.answer(await server.next(), TEXT)

        tasks.start_soon(answer)
        assert text_of(await client.call_tool("any")) == "done"


@every
async def test_an_unreadable_frame_is_answered_and_the_next_is_served(
    revision: str,
) -> None:
    class Torn(MemoryChannel):
        async def receive(self) -> bytes:
            message = await super().receive()
            if message == b"torn":
                raise FrameError("half a frame", -32600)
            return message

    near, far = memory_pair()
    torn = Torn(far._incoming, far._outgoing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(App(names_back, drain=0).serve, torn)
        if revision in HANDSHAKE:
            from kit.wire import INITIALIZED, initialize

            await near.send(OutgoingMessage(encode_message(initialize(revision))))
            await near.receive()
            await near.send(OutgoingMessage(encode_message(INITIALIZED)))
        await near.send(OutgoingMessage(b"torn"))
        refusal = json.loads(await near.receive())
        assert refusal["error"]["code"] == -32600
        await near.send(
            OutgoingMessage(encode_message(request(revision, "tools/call", CALL, id="next")))
        )
        assert json.loads(await near.receive())["id"] == "next"
        await near.close()


class Streams(FakeServer):
    """A server whose channel records which requests' streams are closed."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.ended: list[RequestId] = []

    def close_request_stream(self, identifier: RequestId) -> bool:
        self.ended.append(identifier)
        return super().close_request_stream(identifier)


@every
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"error": {"code": -32603, "message": "no"}}, RemoteError),
        ({"result": {"content": 1}}, RemoteProtocolError),
    ],
)
async def test_the_stream_of_a_failed_request_is_closed(
    revision: str, answer: Any, error: type[Exception]
) -> None:
    server = Streams(revision)

    async def fail() -> None:
        with pytest.raises(error):
            await client.call_tool("t")

    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        request = await server.next()
        await server.say({"jsonrpc": "2.0", "id": request["id"], **answer})
    assert server.ended == [request["id"]]
