"""Handlers of a peer: the forms they may have, and the errors they may make."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from kit.live import App, FakeServer, live, names_back, text_of
from kit.samples import CALL
from kit.wire import ALL, HANDSHAKE, facts, speaking_to
from mcpgen_runtime.client.async_client import ClientHandlers, connect
from mcpgen_runtime.errors import (
    ConnectionClosedError,
    InvalidParamsError,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    ResourceNotFoundError,
    ToolError,
)
from mcpgen_runtime.runtime.request_context import RequestContext

every = pytest.mark.parametrize("revision", ALL)


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


@every
async def test_the_session_knows_the_code_for_a_missing_resource(revision: str) -> None:
    async def missing(ctx: RequestContext) -> Any:
        raise ResourceNotFoundError(ctx.params.uri)

    async with speaking_to(App(missing), revision) as end:
        answer = await end.ask("resources/read", {"uri": "memo://x"})
        assert answer["error"]["code"] == facts(revision).errors.resource_not_found
        assert answer["error"]["data"] == {"uri": "memo://x"}


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
async def test_a_handler_runs_in_one_task_from_start_to_end(revision: str) -> None:
    async def scopes(ctx: RequestContext) -> Any:
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
