"""Plain functions that call the methods of their context, without `await`."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import anyio.from_thread
import pytest

from kit.wire import ALL
from mcpgen_runtime import Accepted, ClientHandlers, Context, Server, connect

NEWEST, MIDDLE = ALL[-1], "2025-06-18"
two = pytest.mark.parametrize("revision", [MIDDLE, NEWEST])


@dataclass
class Seat:
    row: int


class Guest(ClientHandlers):
    def __init__(self) -> None:
        self.logs: list[str] = []

    async def elicit(self, params: Any, ctx: Any) -> Any:
        return {"action": "accept", "content": {"row": 12}}

    async def logging_message(self, params: Any, ctx: Any) -> None:
        self.logs.append(params.data)


def plain() -> Server:
    server = Server("plain")

    @server.tool()
    def report(ctx: Context) -> str:
        ctx.info("without await")
        anyio.from_thread.run(ctx.info, "from a thread")
        ctx.progress(1, 2, "half")
        return ctx.revision

    @server.tool()
    def book(ctx: Context) -> int:
        answer: Any = ctx.elicit("Which row?", Seat)
        return answer.content.row if isinstance(answer, Accepted) else 0

    @server.tool()
    def book_two(ctx: Context) -> list[int]:
        questions = (ctx.elicit("Which row?", Seat), ctx.elicit("And for your guest?", Seat))
        answers: Any = ctx.ask_all(*questions)
        return [answer.content.row for answer in answers if isinstance(answer, Accepted)]

    @server.tool()
    def elsewhere(ctx: Context) -> str:
        with ThreadPoolExecutor(1) as pool:
            error = pool.submit(ctx.info, "lost?").exception()
        return f"raised: {isinstance(error, RuntimeError)}"

    return server


@two
async def test_a_plain_function_logs_reports_and_asks_without_await(revision: str) -> None:
    guest = Guest()
    steps: list[Any] = []
    async with connect(plain(), revision=revision, handlers=guest) as client:
        if revision == NEWEST:
            client.ask_for_logs("info")
        spoken = await client.call_tool(
            "report", returns=str, on_progress=lambda *step: steps.append(step)
        )
        assert spoken == revision
        assert await client.call_tool("book", returns=int) == 12
        assert await client.call_tool("book_two", returns=list[int]) == [12, 12]
        assert await client.call_tool("elsewhere", returns=str) == "raised: True"
    assert guest.logs == ["without await", "from a thread"]
    assert steps == [(1, 2, "half")]


@two
async def test_a_plain_function_runs_in_the_event_loop_if_asked_to(revision: str) -> None:
    server = Server("loop")

    @server.tool(threads=False)
    def here(ctx: Context) -> str:
        return f"{threading.current_thread().name} {ctx.revision}"

    @server.tool()
    def elsewhere() -> str:
        return threading.current_thread().name

    @server.tool(threads=False)
    async def coroutine() -> str:
        return threading.current_thread().name

    name = threading.current_thread().name
    async with connect(server, revision=revision) as client:
        assert await client.call_tool("here", returns=str) == f"{name} {revision}"
        assert await client.call_tool("coroutine", returns=str) == name
        assert await client.call_tool("elsewhere", returns=str) != name
