"""The context of a function: state, progress, logs, the client, methods of one's own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio.from_thread
import pytest

from kit.live import handlers_with, server_with
from kit.respondent import accept_result, connect_respondent
from kit.wire import ALL, every, facts, legacy, modern, speaking_to, text_in
from mcpgen_runtime import Accepted, Context, MissingCapabilityError, Server, connect


@pytest.mark.requirement("logging.message-shape")
@every
async def test_a_context_knows_its_client_and_sends_progress_and_logs(revision: str) -> None:
    async def tell(ctx: Context) -> str:
        await ctx.progress(1, total=2, message="half")
        await ctx.debug("d")
        await ctx.info("i", logger="l")
        await ctx.warning({"w": 1})
        await ctx.error(None)
        await ctx.log("alert", "a")
        assert ctx.raw_params is not None
        assert b'"unknown":1' in bytes(ctx.raw_params).replace(b" ", b"")
        assert ctx.meta["progressToken"] == "p"
        info = ctx.client_info or {}
        return f"{info.get('name')} {dict(ctx.client_capabilities)} {ctx.revision}"

    level = facts(revision).meta.log_level
    meta = {"progressToken": "p"} | ({} if level is None else {level: "warning"})
    async with speaking_to(server_with(tell), revision) as end:
        if level is None:
            await end.ask("logging/setLevel", {"level": "warning"})
        params = {"name": "tell", "unknown": 1}
        answer = await end.ask("tools/call", params, meta=meta)
    assert answer["result"]["content"][0]["text"] == f"tester {{}} {revision}"
    progress, *logs = [message["params"] for message in end.heard]
    assert (progress["progressToken"], progress["progress"], progress["total"]) == ("p", 1, 2)
    assert [(log["level"], log["data"]) for log in logs] == [
        ("warning", {"w": 1}),
        ("error", None),
        ("alert", "a"),
    ]


def logger(**settings: Any) -> Server:
    async def log(level: Any, ctx: Context) -> str:
        await ctx.log(level, {"at": level})
        return "logged"

    return server_with(log, **settings)


async def call_logging_tool(
    revision: str, level: str, *, meta: Any = None, **settings: Any
) -> tuple[Any, list[str]]:
    """The answer of a tool that logs at a level, and the levels that were heard before it."""
    params = {"name": "log", "arguments": {"level": level}}
    async with speaking_to(logger(**settings), revision) as end:
        answer = await end.ask("tools/call", params, meta=meta)
        return answer, [message["params"]["level"] for message in end.heard]


@pytest.mark.requirement("logging.levels", "logging.declare-capability-initialize")
@every
async def test_what_is_no_level_or_not_declared_is_not_sent(revision: str) -> None:
    for level in ("WARN", "fatal", "verbose"):
        answer, heard = await call_logging_tool(revision, level)
        assert "error" in answer or answer["result"]["isError"] is True
        assert heard == []
    key = facts(revision).meta.log_level
    for meta in (None, None if key is None else {key: "debug"}):
        assert (await call_logging_tool(revision, "error", meta=meta, logging=False))[1] == []


@pytest.mark.requirement("logging.per-request-level", "logging.set-level-removed")
@modern
async def test_a_request_without_a_level_gets_no_log_messages(revision: str) -> None:
    assert (await call_logging_tool(revision, "emergency"))[1] == []
    key = facts(revision).meta.log_level
    assert key is not None
    assert (await call_logging_tool(revision, "error", meta={key: "error"}))[1] == ["error"]
    async with speaking_to(logger(), revision) as end:
        assert (await end.ask("logging/setLevel", {"level": "info"}))["error"]["code"] == -32601


@legacy
async def test_the_client_is_asked_by_typed_coroutines_and_by_name(revision: str) -> None:
    async def roots(ctx: Context) -> str:
        typed = await ctx.client.list_roots()
        named = await ctx.request("roots/list", timeout=5)
        return f"{len(typed.roots)} {named.roots[0].uri}"

    async def refused(ctx: Context) -> str:
        with pytest.raises(MissingCapabilityError, match="roots"):
            await ctx.client.list_roots()
        return "not asked"

    server = server_with(roots, refused)

    answers = {"roots/list": {"roots": [{"uri": "file:///a"}]}}
    async with connect_respondent(server, revision, answers, {"roots": {}}) as client:
        assert text_in(await client.call("roots")) == "1 file:///a"
        assert [method for method, _ in client.asked] == ["roots/list"] * 2
    async with connect_respondent(server, revision, answers, {}) as client:
        assert text_in(await client.call("refused")) == "not asked"


NEWEST = ALL[-1]
two = pytest.mark.parametrize("revision", ["2025-06-18", NEWEST])


@two
async def test_a_plain_function_logs_reports_and_asks_without_await(revision: str) -> None:
    server, logs = Server("plain"), list[str]()
    guest = handlers_with(
        elicit=accept_result(value=12), logging_message=lambda params: logs.append(params.data)
    )

    @server.tool()
    def report(ctx: Context) -> str:
        ctx.info("without await")
        anyio.from_thread.run(ctx.info, "from a thread")
        ctx.progress(1, 2, "half")
        return ctx.revision

    @server.tool()
    def book(ctx: Context) -> int:
        answer: Any = ctx.elicit("Which row?", int)
        return answer.content if isinstance(answer, Accepted) else 0

    @server.tool()
    def book_two(ctx: Context) -> list[int]:
        questions = (ctx.elicit("Which row?", int), ctx.elicit("And for your guest?", int))
        answers: Any = ctx.ask_all(*questions)
        return [answer.content for answer in answers if isinstance(answer, Accepted)]

    @server.tool()
    def elsewhere(ctx: Context) -> str:
        with ThreadPoolExecutor(1) as pool:
            error = pool.submit(ctx.info, "lost?").exception()
        return f"raised: {isinstance(error, RuntimeError)}"

    steps: list[Any] = []
    async with connect(server, revision=revision, handlers=guest) as client:
        if revision == NEWEST:
            client.ask_for_logs("info")
        spoken = await client.call_tool(
            "report", returns=str, on_progress=lambda *step: steps.append(step)
        )
        assert spoken == revision
        assert await client.call_tool("book", returns=int) == 12
        assert await client.call_tool("book_two", returns=list[int]) == [12, 12]
        assert await client.call_tool("elsewhere", returns=str) == "raised: True"
    assert logs == ["without await", "from a thread"]
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

    name = threading.current_thread().name
    async with connect(server, revision=revision) as client:
        assert await client.call_tool("here", returns=str) == f"{name} {revision}"
        assert await client.call_tool("elsewhere", returns=str) != name
