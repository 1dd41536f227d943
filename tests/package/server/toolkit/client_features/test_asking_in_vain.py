"""A handler asks a client that never answers, and gives up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from kit.requestor import Work, requestor
from kit.respondent import EVERYTHING, text_in
from kit.rules import revisions_holding
from kit.wire import HANDSHAKE, speaking_to
from mcpgen_runtime import Context, Server
from mcpgen_runtime.errors import RequestTimeoutError

FORM: dict[str, Any] = {"type": "object", "properties": {}}
SECONDS = 0.01

Ask = Callable[[Context], Awaitable[Any]]
ASKS: list[tuple[str, str, Ask]] = [
    ("roots.list-request", "roots/list", lambda ctx: ctx.list_roots(timeout=SECONDS)),
    (
        "sampling.standalone-request",
        "sampling/createMessage",
        lambda ctx: ctx.sample("hi", max_tokens=1, timeout=SECONDS),
    ),
    (
        "elicitation.standalone-request",
        "elicitation/create",
        lambda ctx: ctx.elicit("Who?", FORM, timeout=SECONDS),
    ),
    (
        "elicitation.url-params-2025-11",
        "elicitation/create",
        lambda ctx: ctx.elicit_url("Go", "https://x.example/", timeout=SECONDS),
    ),
]
CASES = [
    pytest.param(revision, method, ask, id=f"{revision}-{rule}")
    for rule, method, ask in ASKS
    for revision in revisions_holding(rule)
    if revision in HANDSHAKE
]


@pytest.mark.parametrize(("revision", "method", "ask"), CASES)
async def test_a_question_that_nobody_answers_is_cancelled_in_time(
    revision: str, method: str, ask: Ask
) -> None:
    server = Server("patient")

    @server.tool()
    async def wonder(ctx: Context) -> str:
        try:
            return str(await ask(ctx))
        except RequestTimeoutError:
            return "nobody answers"

    async with speaking_to(server, revision, EVERYTHING) as end:
        call = {"name": "wonder", "arguments": {}}
        await end.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        question = await end.receive()
        taken_back = await end.receive()
        answer = await end.receive()
    assert question["method"] == method
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    assert text_in(answer) == "nobody answers"


async def test_a_task_whose_question_nobody_answers_works_on() -> None:
    work = Work()
    gave_up = anyio.Event()

    @work.server.tool(runner=work.tasks)
    async def wonder(ctx: Context) -> str:
        try:
            return str(await ctx.elicit("Who?", FORM, timeout=SECONDS))
        except RequestTimeoutError as error:
            gave_up.set()
            await work.go.wait()
            return str(error)

    async with requestor("memory", work.server) as client:
        task_id = (await client.start("wonder"))["taskId"]
        await gave_up.wait()
        assert (await client.result("tasks/get", {"taskId": task_id}))["status"] == "working"
        work.go.set()
        result = await client.result("tasks/result", {"taskId": task_id})
    assert result["content"][0]["text"] == "elicitation/create: no answer within 0.01 s"
