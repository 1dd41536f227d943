"""A peer at work: who waits for whom, whose answer goes where, and what handlers may do."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kit.live import TEXT, App, FakeServer, live, names_back, server_with, text_of
from kit.rules import revision_fixture
from kit.samples import CALL, PARAMS
from kit.simulation import on_virtual_clock
from kit.steps import call
from kit.wire import (
    ALL,
    HANDSHAKE,
    INITIALIZED,
    RawEnd,
    cancelled_notification,
    encode_message,
    initialize,
    legacy,
    request,
    speaking_to,
    text_in,
)
from mcpgen_runtime import (
    REVISIONS,
    ClientHandlers,
    ConnectionClosedError,
    Context,
    MethodNotFoundError,
    OutgoingMessage,
    ProtocolError,
    RemoteError,
    RemoteProtocolError,
    RequestContext,
    Server,
    ToolError,
    connect,
    connect_sync,
)
from mcpgen_runtime.channel import RequestId
from mcpgen_runtime.errors import EndOfChannel
from mcpgen_runtime.runtime.peer import HELD_BYTES
from mcpgen_runtime.transports.memory import memory_pair

revision = revision_fixture(ALL)


@pytest.mark.slow
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
        assert await calls(100) - before < 100


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


async def test_a_flood_of_messages_lets_other_tasks_run() -> None:
    class Flood(FakeServer):
        """A channel whose peer has always said more."""

        count = 0

        async def receive(self) -> bytes:
            self.count += 1
            if self.closed or self.count == 10_000:
                raise EndOfChannel("over")
            return b'{"jsonrpc": "2.0", "method": "notifications/unknown"}'

    flood = Flood(None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(App(names_back).serve, flood)
        while not flood.count:
            await anyio.lowlevel.checkpoint()
        assert flood.count < 10_000
        await flood.close()


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
        await anyio.lowlevel.checkpoint()
        if self.send_error is not None:
            raise self.send_error
        await super().send(message)

    def close_request_stream(self, identifier: RequestId) -> bool:
        self.ended.append(identifier)
        return super().close_request_stream(identifier)


@pytest.mark.parametrize("failure", [OSError("gone"), ValueError("gone"), anyio.EndOfStream()])
async def test_an_unknown_transport_error_ends_the_connection(
    revision: str, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    server = Broken(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        server.receive_error = failure
        tasks.start_soon(server.answer_next, TEXT)
        with pytest.raises(ConnectionClosedError):
            await client.call_tool("any")
    logged = [(each.message, each.exc_info and each.exc_info[1]) for each in caplog.records]
    assert logged == [("the channel failed", failure)]


async def test_a_request_that_cannot_be_sent_fails_its_caller_alone(revision: str) -> None:
    server = Broken(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        server.send_error = OSError("full")
        with pytest.raises(OSError, match="full"):
            await client.call_tool("any")
        server.send_error = None

        tasks.start_soon(server.answer_next, TEXT)
        assert text_of(await client.call_tool("any")) == "done"


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


async def test_a_call_is_cancelled_on_a_transport_that_waits(revision: str) -> None:
    server = Broken(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "t")
        asked = await server.next()
        tasks.cancel_scope.cancel()
    assert server.heard[-1]["params"]["requestId"] == asked["id"]


SESSION = HANDSHAKE[-1]
LIMIT = 3


class Gate:
    """Handlers that wait until they are let through, and how many do."""

    def __init__(self) -> None:
        self.waiting = self.most = self.done = 0
        self._open = anyio.Event()
        self._news = anyio.Event()

    async def pass_through(self) -> None:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        self._tell()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1
            self.done += 1
            self._tell()

    async def reach(self, *, waiting: int = 0, done: int = 0) -> None:
        """Wait until so many wait, or have ended."""
        with anyio.fail_after(10):
            while self.waiting < waiting or self.done < done:
                await self._news.wait()

    def open(self) -> None:
        self._open.set()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


def gated_server(gate: Gate, limit: int = LIMIT) -> Server:
    """A server whose tools wait at the gate, on their own or for the client as well."""

    async def wait() -> str:
        await gate.pass_through()
        return "through"

    async def ask(ctx: Context) -> str:
        await gate.pass_through()
        await ctx.list_roots()
        return "told"

    return server_with(wait, ask, max_concurrent_requests=limit, drain=0)


@asynccontextmanager
async def at_the_limit(revision: str, tool: str = "wait") -> AsyncIterator[tuple[RawEnd, Gate]]:
    """A client whose server has as many handlers at work as it may."""
    gate = Gate()
    async with speaking_to(gated_server(gate), revision, {"roots": {}}) as end:
        for id in range(LIMIT):
            await end.send(call(revision, tool, id))
        await gate.reach(waiting=LIMIT)
        yield end, gate


async def test_a_server_serves_only_so_many_requests_at_once_and_pings(revision: str) -> None:
    async with at_the_limit(revision) as (end, gate):
        if revision in HANDSHAKE:
            assert (await end.ask("ping", id="ping"))["result"] == {}
        for id in range(LIMIT, 10 * LIMIT):
            await end.send(call(revision, "wait", id))
        await anyio.wait_all_tasks_blocked()
        assert gate.most == LIMIT
        gate.open()
        answers = [await end.receive() for _ in range(10 * LIMIT)]
        assert sorted(answer["id"] for answer in answers) == list(range(10 * LIMIT))
        assert all("result" in answer for answer in answers)
        assert gate.most == LIMIT


async def test_a_request_that_is_cancelled_frees_its_place(revision: str) -> None:
    async with at_the_limit(revision) as (end, gate):
        await end.send(cancelled_notification(1))
        await gate.reach(done=1)
        await end.send(call(revision, "wait", "next"))
        await gate.reach(waiting=LIMIT)
        gate.open()
        assert {(await end.receive())["id"] for _ in range(LIMIT)} == {0, 2, "next"}


@on_virtual_clock
async def test_the_end_of_a_connection_is_seen_while_handlers_wait() -> None:
    async with at_the_limit(SESSION) as (end, gate):
        for id in ("held", "next"):
            await end.send(call(SESSION, "wait", id))
            refused = json.loads(await end.channel.receive())
            assert (refused["id"], refused["error"]["code"]) == (id, -32603)
        await end.channel.close()
        await gate.reach(done=LIMIT)


async def test_answers_that_handlers_wait_for_are_read_at_the_limit() -> None:
    async with at_the_limit(SESSION, "ask") as (end, gate):
        await end.send(call(SESSION, "wait", "held"))  # reading stops at this one
        await anyio.wait_all_tasks_blocked()
        gate.open()
        asked = [await end.receive() for _ in range(LIMIT + 1)]
        roots = [message for message in asked if message.get("method") == "roots/list"]
        assert len(roots) == LIMIT
        for message in roots:
            await end.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
        told = [await end.receive() for _ in range(LIMIT)]
        assert sorted(message["id"] for message in told) == list(range(LIMIT))


async def test_requests_are_refused_while_handlers_wait_for_the_peer() -> None:
    gate = Gate()
    gate.open()
    async with speaking_to(gated_server(gate), SESSION, {"roots": {}}) as end:
        for id in range(LIMIT):
            await end.send(call(SESSION, "ask", id))
        asked = [await end.receive() for _ in range(LIMIT)]
        for name in ("one", "two"):
            refused = await end.ask("tools/call", {"name": "wait", "arguments": {}}, id=name)
            assert refused["error"]["code"] == -32603
            assert "max_concurrent_requests" in refused["error"]["message"]
            assert str(LIMIT) in refused["error"]["message"]
        for message in asked:
            await end.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
        for _ in range(LIMIT):
            assert "result" in await end.receive()
        again = await end.ask("tools/call", {"name": "wait", "arguments": {}}, id="again")
        assert text_in(again) == "through"


LONG = HELD_BYTES // 4


async def test_long_requests_of_one_client_are_bounded_in_bytes() -> None:
    gate = Gate()
    server = Server("gated", version="1", drain=0)

    @server.tool
    async def hold(text: str) -> str:
        await gate.pass_through()
        return "through"

    async with speaking_to(server, SESSION) as end:
        params = {"name": "hold", "arguments": {"text": "x" * LONG}}
        for id in range(7):
            await end.send(request(SESSION, "tools/call", params, id=id))
        await gate.reach(waiting=4)
        await anyio.wait_all_tasks_blocked()
        assert gate.most == 4
        gate.open()
        assert all(["result" in await end.receive() for _ in range(7)])


async def test_answers_that_nobody_reads_are_bounded_in_bytes() -> None:
    served: list[str] = []
    server = Server("talkative", version="1", drain=0)

    @server.tool
    async def talk() -> str:
        served.append("talk")
        return "x" * LONG

    async def ask() -> None:
        for id in range(10):
            await near.send(OutgoingMessage(encode_message(call(ALL[-1], "talk", id))))

    near, far = memory_pair(limit=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert len(served) <= 6  # one lies in the channel
        for _ in range(10):
            await near.receive()
        tasks.cancel_scope.cancel()


async def test_long_requests_of_one_server_are_bounded_in_bytes() -> None:
    server, handlers = FakeServer(SESSION), Waiting()
    async with connect(server, revision=SESSION, handlers=handlers):
        for id in range(7):
            await server.say(request(SESSION, "roots/list", meta={"a/b": "x" * LONG}, id=id))
        await handlers.gate.reach(waiting=4)
        await anyio.wait_all_tasks_blocked()
        assert handlers.gate.most == 4
        handlers.gate.open()
        assert all(["result" in await server.next() for _ in range(7)])


class Waiting(ClientHandlers):
    """Answers and hears when the gate is open."""

    def __init__(self) -> None:
        self.gate = Gate()

    async def list_roots(self, params: Any, ctx: Any) -> Any:
        await self.gate.pass_through()
        return {"roots": []}

    async def tool_list_changed(self, params: Any, ctx: Any) -> None:
        await self.gate.pass_through()


async def test_a_client_waiting_for_an_answer_refuses_excess_requests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "mcpgen_runtime")
    server, handlers = FakeServer(SESSION), Waiting()
    async with (
        connect(
            server, revision=SESSION, handlers=handlers, max_concurrent_requests=LIMIT
        ) as client,
        anyio.create_task_group() as tasks,
    ):
        results: list[Any] = []

        async def call_it() -> None:
            results.append(await client.call_tool("x"))

        for id in range(LIMIT):
            await server.say(request(SESSION, "roots/list", id=id))
        await handlers.gate.reach(waiting=LIMIT)
        await server.say(request(SESSION, "roots/list", id="held"))
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(call_it)
        heard = [await server.next(), await server.next()]
        refused = next(message for message in heard if message.get("id") == "held")
        asked = next(message for message in heard if message.get("method") == "tools/call")
        assert "max_concurrent_requests" in refused["error"]["message"]
        for _ in range(5):
            await server.notify("notifications/tools/list_changed", {})
        await server.answer(asked, {"content": [{"type": "text", "text": "done"}]})
        with anyio.fail_after(10):
            while not results:
                await anyio.lowlevel.checkpoint()
        assert text_of(results[0]) == "done"
        assert handlers.gate.most == LIMIT
        handlers.gate.open()
    dropped = [record for record in caplog.records if "max_concurrent_requests" in record.message]
    assert len(dropped) == 1


async def test_a_client_closes_while_its_handlers_and_requests_wait() -> None:
    server, handlers = FakeServer(SESSION), Waiting()
    with anyio.fail_after(10):
        async with connect(server, revision=SESSION, handlers=handlers, max_concurrent_requests=1):
            for id in range(5):
                await server.say(request(SESSION, "roots/list", id=id))
            await handlers.gate.reach(waiting=1)
            await anyio.wait_all_tasks_blocked()
    assert handlers.gate.done == 1


async def test_a_limit_that_lets_nothing_be_served_is_refused() -> None:
    with pytest.raises(ValueError, match="max_concurrent_requests: expected at least 1"):
        Server("x", max_concurrent_requests=0)
    with pytest.raises(ValueError, match="max_concurrent_requests"):
        connect_sync(Server("x"), max_concurrent_requests=0)


async def test_a_client_serves_only_so_many_requests_and_notifications_at_once() -> None:
    server, handlers = FakeServer(SESSION), Waiting()
    async with connect(server, revision=SESSION, handlers=handlers, max_concurrent_requests=LIMIT):
        for id in range(5 * LIMIT):
            await server.say(request(SESSION, "roots/list", id=id))
            await server.notify("notifications/tools/list_changed", {})
        await handlers.gate.reach(waiting=LIMIT)
        await anyio.wait_all_tasks_blocked()
        handlers.gate.open()
        await handlers.gate.reach(done=10 * LIMIT)
        assert handlers.gate.most == LIMIT
        assert all(["result" in await server.next() for _ in range(5 * LIMIT)])
