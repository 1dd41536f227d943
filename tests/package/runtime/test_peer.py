"""A peer at work: who waits for whom, whose answer goes where, and what handlers may do."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kit.live import TEXT, App, FakeServer, live, names_back, text_of
from kit.samples import CALL, PARAMS
from kit.wire import ALL, HANDSHAKE, INITIALIZED, initialize, request, speaking_to
from mcpgen_runtime import (
    REVISIONS,
    ClientHandlers,
    ConnectionClosedError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
    RequestContext,
    ToolError,
    connect,
)
from mcpgen_runtime.channel import OutgoingMessage, RequestId

every = pytest.mark.parametrize("revision", ALL)


@pytest.mark.slow
@every
async def test_nothing_grows_with_the_number_of_calls(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait(ctx: RequestContext) -> Any:
        await ctx.progress(1)
        if ctx.params.name == "waits":
            await anyio.lowlevel.checkpoint()
        if ctx.params.name == "fails":
            raise ValueError
        return await names_back(ctx)

    caplog.set_level(logging.CRITICAL, "mcpgen_runtime")  # a call fails a thousand times over
    async with live(App(wait), revision) as (client, record):

        async def calls(count: int) -> int:
            for _ in range(count):
                await client.call_tool("quick", on_progress=lambda *news: None)
                await client.call_tool("waits", timeout=10)
                with pytest.raises(RemoteError):
                    await client.call_tool("fails")
                with anyio.move_on_after(0):
                    await client.call_tool("quick")
            record.sent.clear()
            record.received.clear()
            gc.collect()
            return len(gc.get_objects())

        await calls(20)
        before = await calls(20)
        assert await calls(200) - before < 200


class Strange(BaseException):
    """Nothing that anybody expects."""


FAILURES: list[tuple[Callable[[], BaseException], int, str]] = [
    (lambda: ValueError("secret"), -32603, "internal error"),
    (lambda: StopIteration("secret"), -32603, "internal error"),
    (lambda: StopAsyncIteration("secret"), -32603, "internal error"),
    (lambda: SystemExit(3), -32603, "internal error"),
    (lambda: Strange("secret"), -32603, "internal error"),
    (lambda: BaseExceptionGroup("secret", [Strange("secret")]), -32603, "internal error"),
    (lambda: ToolError("secret"), -32603, "internal error"),
    (lambda: RemoteError(7, "secret"), -32603, "internal error"),
    (lambda: ProtocolError("told", code=17), 17, "told"),
    (lambda: MethodNotFoundError("x"), -32601, "method not found: x"),
    (lambda: ProtocolError("told", data=object()), -32603, "internal error"),
    (lambda: ProtocolError("\ud800"), -32603, "internal error"),
]


@every
@pytest.mark.parametrize(("failure", "code", "text"), FAILURES)
@pytest.mark.parametrize("waits", [False, True])
async def test_any_error_of_a_handler_is_one_answer_and_no_end(
    revision: str, failure: Callable[[], BaseException], code: int, text: str, waits: bool
) -> None:
    async def fail(ctx: RequestContext) -> Any:
        if ctx.params.name == "fail":
            if waits:
                await anyio.lowlevel.checkpoint()
            raise failure()
        return await names_back(ctx)

    async with speaking_to(App(fail), revision) as end:
        answer = await end.ask("tools/call", {**CALL, "name": "fail"})
        assert answer["error"] == {"code": code, "message": text}
        answer = await end.ask("tools/call", {**CALL, "name": "fine"})
        assert answer["result"]["content"][0]["text"] == "fine"


@pytest.mark.requirement("jsonrpc.notification-no-response", "jsonrpc.code-internal-error")
@every
async def test_a_failing_handler_answers_requests_and_no_notifications(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    class DeafApp(App):
        """An application whose handlers of notifications fail."""

        async def notified(self, ctx: RequestContext) -> None:
            raise LookupError("the secret of /home/user/server.py")

    async def fail(ctx: RequestContext) -> Any:
        raise LookupError("the secret of /home/user/server.py")

    caplog.set_level(logging.CRITICAL)
    names = REVISIONS[revision].client_notifications.keys() & PARAMS.keys()
    async with speaking_to(DeafApp(fail), revision) as end:
        for name in names:
            await end.send({"jsonrpc": "2.0", "method": name, "params": PARAMS[name]})
        answer = await end.ask("tools/list")
        assert answer["error"] == {"code": -32603, "message": "internal error"}
        assert end.heard == []


@every
async def test_a_handler_may_close_the_connection_it_is_called_on(revision: str) -> None:
    class Closes(ClientHandlers):
        async def logging_message(self, params: Any, ctx: RequestContext) -> None:
            await clients[0].close()

    clients: list[Any] = []
    server = FakeServer(revision)
    with anyio.fail_after(10):
        async with connect(server, revision=revision, handlers=Closes()) as client:
            clients.append(client)
            await server.notify("notifications/message", {"level": "info", "data": 1})
            with pytest.raises(ConnectionClosedError):
                await client.call_tool("any")


legacy = pytest.mark.parametrize("revision", HANDSHAKE)


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

    channel = FakeServer(None)  # a client's, too: it says what it is told to
    for message in (
        initialize(revision, {"roots": {}}),
        INITIALIZED,
        request(revision, "tools/call", CALL, id="last"),
    ):
        await channel.say(message)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(App(ask, drain=60).serve, channel)
            await asking.wait()
            await anyio.wait_all_tasks_blocked()
            await channel.hang_up()
    assert len(outcome) == 2
    assert channel.heard[-1]["id"] == "last"


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
