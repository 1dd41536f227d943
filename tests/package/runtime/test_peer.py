"""A peer at work: who waits for whom, whose answer goes where, and what handlers may do."""

from __future__ import annotations

import contextvars
import gc
import logging
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kit.live import App, FakeServer, live, names_back, text_of
from kit.rules import revisions_holding
from kit.samples import CALL, PARAMS
from kit.wire import ALL, HANDSHAKE, request, speaking_to
from mcpgen_runtime import (
    REVISIONS,
    ClientHandlers,
    ConnectionClosedError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    RequestContext,
    ToolError,
    connect,
)

every = pytest.mark.parametrize("revision", ALL)


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
@pytest.mark.parametrize("blocks", ["waits", "thread"])
async def test_other_requests_are_answered_while_one_blocks(revision: str, blocks: str) -> None:
    freed, started = threading.Event(), anyio.Event()

    async def block(ctx: RequestContext) -> Any:
        if ctx.params.name == "block":
            started.set()
            if blocks == "waits":
                while not freed.is_set():
                    await anyio.lowlevel.checkpoint()
            else:
                await anyio.to_thread.run_sync(freed.wait, 10)
        return await names_back(ctx)

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


@pytest.mark.requirement("jsonrpc.batch-receive", "stdio.batch-line")
@pytest.mark.parametrize("revision", revisions_holding("stdio.batch-line"))
async def test_the_messages_of_a_batch_are_served_side_by_side(revision: str) -> None:
    finish = anyio.Event()

    async def work(ctx: RequestContext) -> Any:
        if ctx.params.name == "slow":
            await finish.wait()
        return await names_back(ctx)

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
@pytest.mark.parametrize(
    "result", [5, "text", [], object(), {"content": 5}, {"content": [object()]}]
)
async def test_a_result_that_does_not_fit_is_an_internal_error(revision: str, result: Any) -> None:
    async def misfit(ctx: RequestContext) -> Any:
        return result

    async with speaking_to(App(misfit), revision) as end:
        assert (await end.ask("tools/call", CALL))["error"]["code"] == -32603
        assert "result" in await end.ask("ping" if revision in HANDSHAKE else "server/discover")


@every
async def test_context_variables_of_a_handler_do_not_reach_the_next(revision: str) -> None:
    var = contextvars.ContextVar("var", default="clean")

    async def look(ctx: RequestContext) -> Any:
        text = var.get()
        var.set("used")
        if ctx.params.name == "waits":
            await anyio.lowlevel.checkpoint()
            text += " " + var.get()
        return {"content": [{"type": "text", "text": text}]}

    async with live(App(look), revision) as (client, _):
        assert text_of(await client.call_tool("a")) == "clean"
        assert text_of(await client.call_tool("waits")) == "clean used"
        assert text_of(await client.call_tool("b")) == "clean"


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
