"""A peer at work: who waits for whom, what handlers may do wrong, and how it all ends."""

from __future__ import annotations

import contextvars
import gc
import json
import logging
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from mcp_protocol.channel import RequestId
from mcp_protocol.client import ClientHandlers, connect
from mcp_protocol.errors import (
    ConnectionClosedError,
    FrameError,
    InvalidParamsError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    ResourceNotFoundError,
    ToolError,
)
from mcp_protocol.exchange import Exchange
from mcp_protocol.transports.memory import MemoryChannel, memory_pair
from package.live import TEXT, App, FakeServer, live, text_of
from package.rules import holding
from package.samples import PARAMS
from package.wire import ALL, HANDSHAKE, encoded, facts, request, speaking_to

every = pytest.mark.parametrize("revision", ALL)
legacy = pytest.mark.parametrize("revision", HANDSHAKE)
CALL = PARAMS["tools/call"]


async def names_back(exchange: Exchange) -> Any:
    """A tool's result that is the tool's name."""
    return {"content": [{"type": "text", "text": exchange.params.name}]}


@pytest.mark.requirement("stdio.shared-channel-correlation")
@every
async def test_answers_find_their_callers_in_whatever_order_they_come(revision: str) -> None:
    server = FakeServer(revision)
    got: dict[str, str] = {}

    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def call(name: str) -> None:
            got[name] = text_of(await client.call_tool(name))

        for number in range(50):
            tasks.start_soon(call, f"tool{number}")
        asked = [await server.next() for _ in range(50)]
        for message in reversed(asked):
            text = message["params"]["name"]
            await server.answer(message, {"content": [{"type": "text", "text": text}]})
    assert got == {f"tool{number}": f"tool{number}" for number in range(50)}


@every
async def test_many_calls_at_once_each_get_their_own_result(revision: str) -> None:
    async def later(exchange: Exchange) -> Any:
        await anyio.lowlevel.checkpoint()
        return await names_back(exchange)

    async with live(App(later), revision) as (client, _), anyio.create_task_group() as tasks:

        async def calls(lane: int) -> None:
            for number in range(10):
                name = f"{lane}.{number}"
                assert text_of(await client.call_tool(name)) == name

        for lane in range(50):
            tasks.start_soon(calls, lane)


@every
@pytest.mark.parametrize("blocks", ["waits", "thread"])
async def test_other_requests_are_answered_while_one_blocks(revision: str, blocks: str) -> None:
    from threading import Event

    freed, started = Event(), anyio.Event()

    async def block(exchange: Exchange) -> Any:
        if exchange.params.name == "block":
            started.set()
            if blocks == "waits":
                while not freed.is_set():
                    await anyio.lowlevel.checkpoint()
            else:
                await anyio.to_thread.run_sync(freed.wait, 10)
        return await names_back(exchange)

    async with speaking_to(App(block), revision) as end:
        await end.send(request(revision, "tools/call", {**CALL, "name": "block"}, id="slow"))
        with anyio.fail_after(10):
            await started.wait()
        name = "ping" if revision in HANDSHAKE else "server/discover"
        assert "result" in await end.ask(name)
        answer = await end.ask("tools/call", {**CALL, "name": "other"})
        assert answer["result"]["content"][0]["text"] == "other"
        assert end.heard == []
        freed.set()
        assert (await end.receive())["id"] == "slow"


class Strange(BaseException):
    """Nothing that anybody expects."""


FAILURES: list[tuple[Callable[[], BaseException], int, str]] = [
    (lambda: ValueError("secret"), -32603, "internal error"),
    (lambda: KeyError(), -32603, "internal error"),
    (lambda: RecursionError("secret"), -32603, "internal error"),
    (lambda: StopIteration("secret"), -32603, "internal error"),
    (lambda: StopAsyncIteration("secret"), -32603, "internal error"),
    (lambda: SystemExit(3), -32603, "internal error"),
    (lambda: Strange("secret"), -32603, "internal error"),
    (lambda: ExceptionGroup("secret", [ValueError("secret")]), -32603, "internal error"),
    (lambda: BaseExceptionGroup("secret", [Strange("secret")]), -32603, "internal error"),
    (lambda: ToolError("secret"), -32603, "internal error"),
    (lambda: ConnectionClosedError("secret"), -32603, "internal error"),
    (lambda: RemoteError(7, "secret"), -32603, "internal error"),
    (lambda: ProtocolError("told", code=17), 17, "told"),
    (lambda: InvalidParamsError("told"), -32602, "told"),
    (lambda: MethodNotFoundError("x"), -32601, "method not found: x"),
    (lambda: ProtocolError("told", data=object()), -32603, "internal error"),
    (lambda: ProtocolError("\ud800"), -32603, "internal error"),
]


@every
@pytest.mark.parametrize(("failure", "code", "text"), FAILURES)
@pytest.mark.parametrize("waits", [False, True])
async def test_whatever_a_handler_raises_is_one_answer_and_the_next_is_served(
    revision: str, failure: Callable[[], BaseException], code: int, text: str, waits: bool
) -> None:
    async def fail(exchange: Exchange) -> Any:
        if exchange.params.name == "fail":
            if waits:
                await anyio.lowlevel.checkpoint()
            raise failure()
        return await names_back(exchange)

    async with speaking_to(App(fail), revision) as end:
        answer = await end.ask("tools/call", {**CALL, "name": "fail"})
        assert answer["error"] == {"code": code, "message": text}
        answer = await end.ask("tools/call", {**CALL, "name": "fine"})
        assert answer["result"]["content"][0]["text"] == "fine"


@every
async def test_the_session_knows_the_code_for_a_resource_that_is_not_there(revision: str) -> None:
    async def missing(exchange: Exchange) -> Any:
        raise ResourceNotFoundError(exchange.params.uri)

    async with speaking_to(App(missing), revision) as end:
        answer = await end.ask("resources/read", {"uri": "memo://x"})
        assert answer["error"]["code"] == facts(revision).errors.resource_not_found
        assert answer["error"]["data"] == {"uri": "memo://x"}


@every
@pytest.mark.parametrize(
    "result", [5, "text", [], object(), {"content": 5}, {"content": [object()]}]
)
async def test_a_result_that_does_not_fit_is_an_internal_error(revision: str, result: Any) -> None:
    async def misfit(exchange: Exchange) -> Any:
        return result

    async with speaking_to(App(misfit), revision) as end:
        assert (await end.ask("tools/call", CALL))["error"]["code"] == -32603
        assert "result" in await end.ask("ping" if revision in HANDSHAKE else "server/discover")


@every
async def test_what_a_handler_sets_in_its_context_is_gone_in_the_next(revision: str) -> None:
    var = contextvars.ContextVar("var", default="clean")

    async def look(exchange: Exchange) -> Any:
        found = var.get()
        var.set("used")
        if exchange.params.name == "waits":
            await anyio.lowlevel.checkpoint()
            found += " " + var.get()
        return {"content": [{"type": "text", "text": found}]}

    async with live(App(look), revision) as (client, _):
        assert text_of(await client.call_tool("a")) == "clean"
        assert text_of(await client.call_tool("waits")) == "clean used"
        assert text_of(await client.call_tool("b")) == "clean"


@every
async def test_a_handler_runs_in_one_task_from_its_first_step_to_its_last(revision: str) -> None:
    async def scopes(exchange: Exchange) -> Any:
        before = anyio.get_current_task().id
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.lowlevel.checkpoint)
        with anyio.move_on_after(0) as scope:
            await anyio.sleep_forever()
        with anyio.fail_after(10):
            await anyio.lowlevel.checkpoint()
        async with anyio.Lock():
            await anyio.lowlevel.checkpoint()
        same = anyio.get_current_task().id == before
        return {"content": [{"type": "text", "text": f"{same} {scope.cancelled_caught}"}]}

    async with live(App(scopes), revision) as (client, _):
        for _ in range(3):
            assert text_of(await client.call_tool("a")) == "True True"


@every
async def test_nothing_grows_with_the_number_of_calls(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait(exchange: Exchange) -> Any:
        await exchange.progress(1)
        if exchange.params.name == "waits":
            await anyio.lowlevel.checkpoint()
        if exchange.params.name == "fails":
            raise ValueError
        return await names_back(exchange)

    caplog.set_level(logging.CRITICAL, "mcp_protocol")  # a call fails a thousand times over
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


@every
async def test_what_is_being_served_is_finished_when_the_client_says_no_more(
    revision: str,
) -> None:
    finish, started = anyio.Event(), anyio.Event()

    async def work(exchange: Exchange) -> Any:
        started.set()
        await finish.wait()
        return await names_back(exchange)

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
async def test_what_does_not_finish_in_time_is_cut_off(revision: str) -> None:
    started, cut = anyio.Event(), anyio.Event()

    async def work(exchange: Exchange) -> Any:
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

    async def ask(exchange: Exchange) -> Any:
        for _ in range(2):
            try:
                asking.set()
                await exchange.request("roots/list")
            except ConnectionClosedError as error:
                outcome.append(str(error))
        return await names_back(exchange)

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


class HalfClosed:
    """A server's channel whose client can say no more and still listen."""

    def __init__(self) -> None:
        self._ours, self._theirs = memory_pair()
        self._end = anyio.Event()
        self.sent: list[dict[str, Any]] = []
        self.closed = False

    async def open(self, revision: str, capabilities: Any = None) -> None:
        """Take part as a client of the revision."""
        from package.wire import INITIALIZED, initialize

        if revision in HANDSHAKE:
            await self.say(initialize(revision, capabilities))
            await self.say(INITIALIZED)

    async def say(self, message: Any) -> None:
        """Say something as the client."""
        await self._ours.send(encoded(message))

    def end(self) -> None:
        """Say no more."""
        self._theirs._incoming.close()

    async def receive(self) -> bytes:
        return await self._theirs.receive()

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        self.sent.append(json.loads(message))

    async def close(self) -> None:
        self.closed = True
        await self._theirs.close()


@every
async def test_closing_from_another_task_ends_every_call_with_one_plain_error(
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
async def test_a_server_that_hangs_up_fails_the_calls_and_those_that_follow(revision: str) -> None:
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

    async def send(self, message: bytes, about: RequestId | None = None) -> None:
        if self.broken and self.at == "send":
            raise self.failure
        await super().send(message, about)


@every
@pytest.mark.parametrize("failure", [OSError("gone"), ValueError("gone"), anyio.EndOfStream()])
async def test_a_transport_that_fails_in_its_own_way_is_the_end_of_the_connection(
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
async def test_a_request_that_can_not_be_sent_fails_for_its_caller_alone(revision: str) -> None:
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
async def test_a_frame_that_can_not_be_read_is_answered_and_the_next_is_served(
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
            from package.wire import INITIALIZED, initialize

            await near.send(encoded(initialize(revision)))
            await near.receive()
            await near.send(encoded(INITIALIZED))
        await near.send(b"torn")
        refusal = json.loads(await near.receive())
        assert refusal["error"]["code"] == -32600
        await near.send(encoded(request(revision, "tools/call", CALL, id="next")))
        assert json.loads(await near.receive())["id"] == "next"
        await near.close()


@pytest.mark.requirement("jsonrpc.batch-receive", "stdio.batch-line")
@pytest.mark.parametrize("revision", holding("stdio.batch-line"))
async def test_the_messages_of_a_batch_are_served_side_by_side(revision: str) -> None:
    finish = anyio.Event()

    async def work(exchange: Exchange) -> Any:
        if exchange.params.name == "slow":
            await finish.wait()
        return await names_back(exchange)

    async with speaking_to(App(work), revision) as end:
        calls = [
            request(revision, "tools/call", {**CALL, "name": name}, id=name)
            for name in ("slow", "quick", "slow2")
        ]
        calls[2]["params"]["name"] = "slow"
        stop = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        ping = request(revision, "ping", id="ping")
        await end.send([*calls, {**stop, "params": {"requestId": "slow2"}}, ping])
        assert [(await end.receive())["id"] for _ in range(2)] == ["quick", "ping"]
        finish.set()
        assert (await end.receive())["id"] == "slow"
        assert (await end.ask("ping"))["result"] == {}


@every
async def test_a_raw_result_keeps_what_no_type_knows(revision: str) -> None:
    server = FakeServer(revision)
    unknown = {**TEXT, "future": {"a": [1.0, None]}, "_meta": {"x": 1}}
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def answer() -> None:
            await server.answer(await server.next(), unknown)

        tasks.start_soon(answer)
        raw = await client.request_raw("tools/call", {"name": "any", "arguments": {"b": 1.0}})
    assert json.loads(bytes(raw)).items() >= unknown.items()
    assert server.heard[0]["params"]["arguments"] == {"b": 1.0}


@legacy
async def test_both_sides_ask_each_other_at_once(revision: str) -> None:
    class Roots(ClientHandlers):
        async def list_roots(self, params: Any, ctx: Exchange) -> Any:
            assert ctx.revision.name == revision
            return {"roots": [{"uri": "file:///a"}]}

    async def ask_back(exchange: Exchange) -> Any:
        roots = (await exchange.request("roots/list")).roots
        return {"content": [{"type": "text", "text": roots[0].uri}]}

    async with (
        live(App(ask_back), revision, handlers=Roots()) as (client, _),
        anyio.create_task_group() as tasks,
    ):

        async def calls() -> None:
            for _ in range(5):
                assert text_of(await client.call_tool("roots")) == "file:///a"

        for _ in range(20):
            tasks.start_soon(calls)


@every
async def test_a_handler_may_close_the_connection_it_is_called_on(revision: str) -> None:
    class Closes(ClientHandlers):
        async def logging_message(self, params: Any, ctx: Exchange) -> None:
            await clients[0].close()

    clients: list[Any] = []
    server = FakeServer(revision)
    with anyio.fail_after(10):
        async with connect(server, revision=revision, handlers=Closes()) as client:
            clients.append(client)
            await server.notify("notifications/message", {"level": "info", "data": 1})
            with pytest.raises(ConnectionClosedError):
                await client.call_tool("any")
