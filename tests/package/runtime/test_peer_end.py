"""How a peer's connection ends, and what a transport that fails means for its calls."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from kit.live import TEXT, App, FakeServer, names_back, text_of
from kit.samples import CALL
from kit.wire import ALL, HANDSHAKE, INITIALIZED, encode_message, initialize, request
from mcpgen_runtime import (
    Channel,
    ConnectionClosedError,
    RemoteError,
    RemoteProtocolError,
    RequestContext,
    connect,
)
from mcpgen_runtime.channel import OutgoingMessage, RequestId
from mcpgen_runtime.errors import EndOfChannel

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)


class HalfClosed(Channel):
    """A server's channel whose client asks for a tool, then can say no more and still listens."""

    def __init__(self, revision: str) -> None:
        self._ours, self._theirs = anyio.create_memory_object_stream[bytes](10)
        messages = [request(revision, "tools/call", CALL, id="last")]
        if revision in HANDSHAKE:
            messages = [initialize(revision, {"roots": {}}), dict(INITIALIZED), *messages]
        for message in messages:
            self._ours.send_nowait(encode_message(message))
        self.sent: list[dict[str, Any]] = []
        self.closed = False

    def end(self) -> None:
        """Say no more."""
        self._ours.close()

    async def receive(self) -> bytes:
        try:
            return await self._theirs.receive()
        except anyio.EndOfStream:
            raise EndOfChannel("closed") from None

    async def send(self, message: OutgoingMessage) -> None:
        self.sent.append(json.loads(message.data))

    async def close(self) -> None:
        self.closed = True
        self._theirs.close()


@every
async def test_inbound_requests_finish_after_the_client_has_closed(revision: str) -> None:
    finish, started = anyio.Event(), anyio.Event()

    async def work(ctx: RequestContext) -> Any:
        started.set()
        await finish.wait()
        return await names_back(ctx)

    channel = HalfClosed(revision)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(App(work, drain=10).serve, channel)
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

    channel = HalfClosed(revision)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(App(work, drain=0.01).serve, channel)
            await started.wait()
            channel.end()
    assert cut.is_set()
    assert "last" not in [message.get("id") for message in channel.sent]


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

    channel = HalfClosed(revision)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(App(ask, drain=60).serve, channel)
            await asking.wait()
            await anyio.wait_all_tasks_blocked()
            channel.end()
    assert len(outcome) == 2
    assert channel.sent[-1]["id"] == "last"


@every
async def test_closing_from_another_task_ends_all_calls_with_an_error_each(revision: str) -> None:
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

        async def answer_one_and_hang_up() -> None:
            await server.answer(await server.next(), TEXT)
            await server.next()
            await server.hang_up()

        tasks.start_soon(answer_one_and_hang_up)
        assert text_of(await client.call_tool("first")) == "done"
        for _ in range(2):
            with pytest.raises(ConnectionClosedError, match="the other end closed the channel"):
                await client.call_tool("never")
    assert len(server.heard) == 2


class Broken(FakeServer):
    """A channel whose transport fails in ways of its own, and records closed request streams."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.receive_error: Exception | None = None
        self.send_error: Exception | None = None
        self.ended: list[RequestId] = []

    async def receive(self) -> bytes:
        message = await super().receive()
        if self.receive_error is not None:
            raise self.receive_error
        return message

    async def send(self, message: OutgoingMessage) -> None:
        if self.send_error is not None:
            raise self.send_error
        await super().send(message)

    def close_request_stream(self, identifier: RequestId) -> bool:
        self.ended.append(identifier)
        return super().close_request_stream(identifier)


@every
@pytest.mark.parametrize("failure", [OSError("gone"), ValueError("gone"), anyio.EndOfStream()])
async def test_an_unknown_transport_error_ends_the_connection(
    revision: str, failure: Exception
) -> None:
    server = Broken(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        server.receive_error = failure
        tasks.start_soon(server.answer_next, TEXT)
        with pytest.raises(ConnectionClosedError):
            await client.call_tool("any")


@every
async def test_a_request_that_cannot_be_sent_fails_its_caller_alone(revision: str) -> None:
    server = Broken(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        server.send_error = OSError("full")
        with pytest.raises(OSError, match="full"):
            await client.call_tool("any")
        server.send_error = None

        tasks.start_soon(server.answer_next, TEXT)
        assert text_of(await client.call_tool("any")) == "done"


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
    server = Broken(revision)

    async def fail() -> None:
        with pytest.raises(error):
            await client.call_tool("t")

    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        asked = await server.next()
        await server.say({"jsonrpc": "2.0", "id": asked["id"], **answer})
    assert server.ended == [asked["id"]]
