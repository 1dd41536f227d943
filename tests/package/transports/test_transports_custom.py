"""Transports of one's own: what has `receive`, `send` and `close` carries the same protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from kit.live import handlers_with, text_of
from kit.wire import every, facts
from mcpgen_runtime import (
    Channel,
    ConnectionClosedError,
    Context,
    OutgoingMessage,
    RemoteError,
    RequestTimeoutError,
    Server,
    connect,
)
from mcpgen_runtime.errors import EndOfChannel


class Queues(Channel):
    """A transport as a user would write one: two streams of objects, one for each direction."""

    def __init__(self, sending: Any, receiving: Any) -> None:
        self._sending = sending
        self._receiving = receiving
        self.sent: list[tuple[str, int | str | None]] = []

    async def receive(self) -> bytes:
        try:
            message: bytes = await self._receiving.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise EndOfChannel("the queue is closed") from None
        return message

    async def send(self, message: OutgoingMessage) -> None:
        self.sent.append((message.method or "answer", message.related_request_id))
        try:
            await self._sending.send(message.data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionClosedError("the queue is closed") from None

    async def close(self) -> None:
        await self._sending.aclose()
        await self._receiving.aclose()


def queue_pair() -> tuple[Queues, Queues]:
    """Two connected ends."""
    there, at_the_far_end = anyio.create_memory_object_stream[bytes](8)
    back, at_the_near_end = anyio.create_memory_object_stream[bytes](8)
    return Queues(there, at_the_near_end), Queues(back, at_the_far_end)


@asynccontextmanager
async def connect_queues(
    server: Server, revision: str, **how: Any
) -> AsyncIterator[tuple[Any, Queues, Queues]]:
    """A client connected with a server over queues, and both ends."""
    near, far = queue_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, far)
        async with connect(near, revision=revision, **how) as client:
            yield client, near, far


def full_server(started: anyio.Event, stopped: anyio.Event) -> Server:
    """A server with a little of everything; the events tell of the tool `wait`."""
    server = Server("everything", drain=0)

    @server.tool()
    async def count(ctx: Context, to: int) -> str:
        for value in range(1, to + 1):
            await ctx.progress(value, total=to)
        await ctx.error({"counted": to})
        return "counted to \u4e16\r\n"

    @server.tool()
    async def wait() -> str:
        try:
            started.set()
            await anyio.sleep_forever()
        finally:
            stopped.set()
        return "never"

    @server.resource("memo://{name}")
    async def memo(name: str) -> str:
        return f"memo {name}"

    return server


@pytest.mark.requirement(
    "custom-transport.allowed",
    "custom-transport.same-semantics",
    "custom-transport.cancellation-defined",
)
@every
async def test_the_same_session_runs_over_a_binding(revision: str) -> None:
    logs: list[Any] = []
    progress: list[float] = []
    handlers = handlers_with(logging_message=lambda params: logs.append(params.data))
    started, stopped = anyio.Event(), anyio.Event()
    server = full_server(started, stopped)
    async with connect_queues(server, revision, handlers=handlers) as (client, _, _):
        client.ask_for_logs("error")
        result = await client.call_tool(
            "count", {"to": 3}, on_progress=lambda value, *_: progress.append(value)
        )
        assert text_of(result) == "counted to \u4e16\r\n"
        assert (progress, logs) == ([1, 2, 3], [{"counted": 3}])
        assert (await client.read_resource("memo://a")).contents[0].text == "memo a"
        assert {tool.name for tool in await client.list_tools()} == {"count", "wait"}
        with pytest.raises(RemoteError):
            await client.call_tool("unknown")
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "wait")
            with anyio.fail_after(10):
                await started.wait()
            calls.cancel_scope.cancel()
        with anyio.fail_after(10):
            await stopped.wait()
        with pytest.raises(RequestTimeoutError):
            await client.call_tool("wait", timeout=0.01)


@pytest.mark.requirement("custom-transport.directions")
@every
async def test_a_binding_is_told_which_request_a_message_belongs_to(revision: str) -> None:
    server = full_server(anyio.Event(), anyio.Event())
    async with connect_queues(server, revision) as (client, near, far), client.listen(tools=True):
        client.ask_for_logs("error")
        before = len(far.sent)
        await client.call_tool("count", {"to": 1}, on_progress=lambda *news: None)
        server.remove_tool("wait")
        await anyio.wait_all_tasks_blocked()
    told = far.sent[before:]
    call = told[0][1]
    assert call is not None
    assert told[:3] == [
        ("notifications/progress", call),
        ("notifications/message", call),
        ("answer", call),
    ]
    # In a session changes belong to no request; a subscription is one.
    assert told[3][0] == "notifications/tools/list_changed"
    assert (told[3][1] is None) is (facts(revision).behaviour.listen is None)
    assert {about for _, about in near.sent} == {None}
    assert "answer" not in {what for what, _ in near.sent}
    assert {what.partition("/")[0] for what, _ in far.sent} == {"notifications", "answer"}
