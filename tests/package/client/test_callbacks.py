"""Calls that are started and cancelled, functions for news, and middleware of a client."""

from __future__ import annotations

import logging
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.live import handlers_with, live, text_of
from kit.wire import CANCELLED, HANDSHAKE, PER_REQUEST, both_lifecycles, every, facts
from mcpgen_runtime import (
    ClientNext,
    ClientRequest,
    ConnectionClosedError,
    Context,
    LogMessage,
    RemoteError,
    RequestCancelledError,
    Server,
    connect,
    connect_sync,
    log_requests,
    replace,
)

CALL = "tools/call"


class Kitchen:
    """A server with slow tools, and what became of them."""

    def __init__(self) -> None:
        self.server = Server("kitchen", drain=0)
        self.stopped: list[str] = []

        @self.server.tool()
        async def cook(dish: str, ctx: Context) -> str:
            await ctx.progress(1, 2, "peeled")
            await ctx.info(f"{dish} is on the stove")
            try:
                await anyio.sleep_forever()
            finally:
                self.stopped.append(dish)
            return "never"

        @self.server.tool()
        async def serve(dish: str, ctx: Context) -> str:
            for step in (1, 2, 3):
                await ctx.info(f"{dish} {step}")
                await ctx.progress(step, 3)
            return f"{dish}, served"


@pytest.mark.requirement("cancellation.client-signals", "cancellation.stdio-notification")
@every
async def test_a_call_that_was_started_is_cancelled_on_the_server(revision: str) -> None:
    kitchen, cooking = Kitchen(), anyio.Event()
    async with live(kitchen.server, revision) as (client, record):
        call = client.start_call(
            client.call_tool, "cook", {"dish": "soup"}, on_progress=lambda *_: cooking.set()
        )
        await cooking.wait()
        assert not call.done
        call.cancel()
        with pytest.raises(RequestCancelledError):
            await call
        assert call.done
        assert text_of(await client.call_tool("serve", {"dish": "tea"})) == "tea, served"
        assert kitchen.stopped == ["soup"]
        call.cancel()  # no effect any more
        (request,) = [each for each in record.sent if each.get("params", {}).get("name") == "cook"]
        assert [each["requestId"] for each in record.sent_as(CANCELLED)] == [request["id"]]


@both_lifecycles
async def test_started_calls_run_at_once_and_give_results_and_errors(revision: str) -> None:
    kitchen = Kitchen()
    async with connect(kitchen.server, revision=revision) as client:
        tea = client.start_call(client.call_tool, "serve", {"dish": "tea"}, returns=str)
        pie = client.start_call(client.call_tool, "serve", {"dish": "pie"}, returns=str)
        bad = client.start_call(client.call_tool, "burn", {"dish": "pie"})
        never = client.start_call(client.call_tool, "serve", {"dish": "ice"})
        never.cancel()
        assert (await pie, await tea, await tea) == ("pie, served", "tea, served", "tea, served")
        with pytest.raises(RemoteError):
            await bad
        with pytest.raises(RequestCancelledError):
            await never


@both_lifecycles
def test_a_thread_cancels_the_call_of_another(revision: str) -> None:
    kitchen, cooking = Kitchen(), threading.Event()
    with connect_sync(kitchen.server, revision=revision) as client:
        soup = client.start_call(
            client.call_tool, "cook", {"dish": "soup"}, on_progress=lambda *_: cooking.set()
        )
        tea = client.start_call(client.call_tool, "serve", {"dish": "tea"}, returns=str)
        assert cooking.wait(10)
        with pytest.raises(TimeoutError):
            soup.result(timeout=0)
        threading.Thread(target=soup.cancel).start()
        with pytest.raises(RequestCancelledError):
            soup.result(timeout=10)
        assert tea.result() == "tea, served"
        client.call_tool("serve", {"dish": "pie"})  # after the cancellation
        assert (soup.done, tea.done, kitchen.stopped) == (True, True, ["soup"])
        open_call = client.start_call(client.call_tool, "cook", {"dish": "rice"})
        with pytest.raises(TypeError, match="a method of this client"):
            client.start_call(print, "rice")
    with pytest.raises(ConnectionClosedError):
        open_call.result()
    with pytest.raises(ConnectionClosedError):
        client.start_call(client.list_tools)


@pytest.mark.requirement("logging.message-shape")
@every
async def test_functions_get_logs_and_progress_until_they_are_removed(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    kitchen, handled = Kitchen(), list[str]()
    handlers = handlers_with(logging_message=lambda params: handled.append(params.data))
    logged, later, steps = list[str](), list[Any](), list[float]()

    async def log(message: LogMessage) -> None:
        await anyio.lowlevel.checkpoint()
        logged.append(f"{message.level} {message.data}")

    async def failing(message: LogMessage) -> None:
        raise ValueError(message.data)

    async with live(kitchen.server, revision, handlers=handlers) as (client, record):
        client.on_log(failing)
        client.on_log(log)
        with client.on_log(later.append), client.on_progress(lambda value, *_: steps.append(value)):
            own = list[float]()
            await client.call_tool(
                "serve", {"dish": "tea"}, on_progress=lambda value, *_: own.append(value)
            )
            await client.call_tool("serve", {"dish": "pie"})
            await anyio.wait_all_tasks_blocked()  # messages in order may come after the result
        await client.call_tool("serve", {"dish": "ice"})
        await anyio.wait_all_tasks_blocked()
        assert logged == [f"info {dish} {n}" for dish in ("tea", "pie", "ice") for n in (1, 2, 3)]
        assert [f"info {each.data}" for each in later] == logged[:6]
        assert handled == [line.removeprefix("info ") for line in logged]
        assert (own, steps) == ([1, 2, 3], [1, 2, 3] * 2)
        tokens = ["progressToken" in params.get("_meta", {}) for params in record.sent_as(CALL)]
        assert tokens == [True, True, False]
    failures = [line for line in caplog.messages if line.endswith(" failed")]
    assert len(failures) == 9
    assert "failing" in failures[0]


async def test_a_function_removed_while_it_runs_gets_no_more() -> None:
    running, may_end, logged = anyio.Event(), anyio.Event(), list[Any]()

    async def log(message: LogMessage) -> None:
        logged.append(message.data)
        running.set()
        await may_end.wait()

    async with live(Kitchen().server, HANDSHAKE[-1]) as (client, _):
        with client.on_log(log):
            await client.call_tool("serve", {"dish": "tea"})
            await running.wait()
            await anyio.wait_all_tasks_blocked()
        may_end.set()
        await anyio.wait_all_tasks_blocked()
    assert logged == ["tea 1"]


async def test_requests_ask_for_logs_while_a_function_wants_them() -> None:
    revision = PER_REQUEST[-1]
    key = facts(revision).meta.log_level
    async with live(Kitchen().server, revision) as (client, record):
        registration = client.on_log(print, level="error")
        await client.call_tool("serve", {"dish": "tea"})
        registration.remove()
        registration.remove()
        await client.call_tool("serve", {"dish": "tea"})
        client.ask_for_logs("notice")
        with client.on_log(print):
            await client.call_tool("serve", {"dish": "tea"})
        await client.call_tool("serve", {"dish": "tea"})
        client.ask_for_logs("error")  # as the first function did, which is removed
        with client.on_log(print):
            pass
        await client.call_tool("serve", {"dish": "tea"})
        levels = [params["_meta"].get(key) for params in record.sent_as(CALL)]
    assert levels == ["error", None, "notice", "notice", "error"]


@both_lifecycles
def test_plain_functions_of_a_blocking_client_may_use_the_client(revision: str) -> None:
    logged, done = list[str](), threading.Event()

    def log(message: LogMessage) -> None:
        logged.append(f"{message.data}, {len(client.list_tools())} tools")
        if len(logged) == 3:
            done.set()

    with connect_sync(Kitchen().server, revision=revision) as client:
        steps = list[float]()
        client.on_log(log)
        with client.on_progress(lambda value, *_: steps.append(value)):
            client.call_tool("serve", {"dish": "tea"})
        assert done.wait(10)
    assert logged == [f"tea {n}, 2 tools" for n in (1, 2, 3)]
    assert steps == [1, 2, 3]


def shop() -> Server:
    server = Server("shop")

    @server.tool()
    async def order(item: str) -> str:
        return f"ordered {item}"

    @server.resource("shop://items")
    def items() -> str:
        return "apple, pear"

    return server


@both_lifecycles
async def test_requests_pass_the_middleware_in_order_and_changed(revision: str) -> None:
    passed: list[Any] = []
    own: dict[str, Any] = {"roots": {"listChanged": True}}
    async with live(shop(), revision, capabilities=own) as (client, record):

        @client.middleware
        async def outer(request: ClientRequest, next: ClientNext) -> Any:
            passed.append((request.method, request.target, request.is_notification))
            assert request.request_id is None
            assert (request.revision, request.transport) == (revision, "Recorded")
            result = await next(request.with_meta({"com.example/trace": "1"}))
            if not request.is_notification:
                assert request.request_id == record.sent[-1]["id"]
            return result

        @client.middleware
        async def inner(request: ClientRequest, next: ClientNext) -> Any:
            passed.append("inner")
            if request.method != "tools/call":
                return await next(request)
            params = replace(request.params, arguments={"item": "pear"})
            result = await next(request.with_params(params))
            text = result.content[0].text.upper()
            return replace(result, content=[replace(result.content[0], text=text)])

        result = await client.call_tool("order", {"item": "apple"}, meta={"own": 2})
        assert text_of(result) == "ORDERED PEAR"
        await client.read_resource("shop://items")
        assert b"order" in bytes(await client.request_raw("tools/list"))
        sent = record.sent[-3:]
        if revision in HANDSHAKE:
            await client.notify("notifications/roots/list_changed")
            sent.append(record.sent[-1])
    assert passed[:6] == [
        *(("tools/call", "order", False), "inner"),
        *(("resources/read", "shop://items", False), "inner"),
        *(("tools/list", None, False), "inner"),
    ]
    assert passed[6:] == (
        [("notifications/roots/list_changed", None, True), "inner"] if revision in HANDSHAKE else []
    )
    assert all(message["params"]["_meta"]["com.example/trace"] == "1" for message in sent)
    assert sent[0]["params"]["_meta"]["own"] == 2
    assert sent[0]["params"]["arguments"] == {"item": "pear"}


async def test_a_middleware_may_answer_a_request_that_is_then_not_sent() -> None:
    async with live(shop(), PER_REQUEST[-1]) as (client, record):
        calls = list[str]()

        @client.middleware
        async def count(request: ClientRequest, next: ClientNext) -> Any:
            calls.append(request.method)
            if request.target == "none":
                raise RemoteError(-32602, "not even asked")
            return await next(request)

        before = len(record.sent)
        with pytest.raises(RemoteError, match="not even asked"):
            await client.call_tool("none")
        assert len(record.sent) == before
        with pytest.raises(TypeError, match="coroutine function"):
            client.middleware(print)
    assert calls == ["tools/call"]


@both_lifecycles
def test_server_middleware_logs_requests_of_a_blocking_client(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        connect_sync(shop(), revision=revision) as client,
        caplog.at_level(logging.INFO, "mcpgen_runtime.requests"),
    ):
        client.middleware(log_requests())
        client.call_tool("order", {"item": "pear"})
        with pytest.raises(RemoteError):
            client.call_tool("none")
    logged: Any = [each for each in caplog.records if each.name == "mcpgen_runtime.requests"]
    assert [(each.mcp_method, each.mcp_target, each.mcp_outcome) for each in logged] == [
        ("tools/call", "order", "ok"),
        ("tools/call", "none", "error"),
    ]
    assert logged[1].mcp_error_code == -32602
    assert logged[1].mcp_request_id == logged[0].mcp_request_id + 1
