"""Calls of a proxy that wait for answers: whose they are, and how long they wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http, asgi
from kit.issuer import bearer
from kit.limits import SetLimit
from mcpgen_runtime import Context, Server, StaticTokens
from package.proxy.test_proxy import NEWEST, SESSION, Seat

CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}
QUESTIONS = ("Which row?", "And then?")


def theatre(*questions: str, ended: Callable[[], object] = lambda: None) -> Server:
    """A server whose tool asks questions at once."""
    server = Server("theatre")

    @server.tool()
    async def book(ctx: Context) -> str:
        rows: list[int] = []

        async def ask(text: str) -> None:
            answer: Any = await ctx.elicit(text, Seat)
            rows.append(answer.content.row)

        try:
            async with anyio.create_task_group() as tasks:
                for text in questions:
                    tasks.start_soon(ask, text)
        finally:
            ended()
        return f"rows {sorted(rows)}"

    return server


async def book(http: Http, result: Any = None, row: int = 1) -> Any:
    """The response to a call, or to its retry, which answers one question of a result."""
    params: dict[str, Any] = {"name": "book", "arguments": {}}
    if result is not None:
        key = next(iter(result["inputRequests"]))
        answer = {"action": "accept", "content": {"row": row}}
        params |= {"inputResponses": {key: answer}, "requestState": result["requestState"]}
    with anyio.fail_after(10):
        reply = await http.ask(NEWEST, "tools/call", params, capabilities=CAPABILITIES)
    return reply.messages[-1]


async def test_a_question_that_a_retry_leaves_open_is_asked_again() -> None:
    async with asgi(Server.proxy(theatre(*QUESTIONS), revision=SESSION)) as http:
        first = (await book(http))["result"]
        second = (await book(http, first, row=4))["result"]
        third = (await book(http, second, row=5))["result"]
    assert third["content"][0]["text"] == "rows [4, 5]"


async def test_a_call_is_continued_by_its_own_user_alone() -> None:
    tokens = StaticTokens({"alice-1": "alice", "bob-1": "bob"})
    async with asgi(Server.proxy(theatre(*QUESTIONS), revision=SESSION), auth=tokens) as http:
        http.fields["authorization"] = bearer("alice-1")
        question = (await book(http))["result"]
        http.fields["authorization"] = bearer("bob-1")
        assert (await book(http, question))["error"]["code"] == -32602
        http.fields["authorization"] = bearer("alice-1")
        assert "result" in await book(http, question)


@pytest.mark.parametrize("questions", [QUESTIONS, QUESTIONS[:1]], ids=["two", "one"])
async def test_a_call_that_waited_for_too_long_is_an_error(
    questions: tuple[str, ...], set_limit: SetLimit
) -> None:
    set_limit("pkg.proxy.waiting_calls.WAITING_SECONDS", 0.2)
    ended = anyio.Event()
    server = theatre(*questions, ended=ended.set)
    async with asgi(Server.proxy(server, revision=SESSION)) as http:
        question = (await book(http))["result"]
        with anyio.fail_after(10):
            await ended.wait()
        assert "took too long" in (await book(http, question))["error"]["message"]


@pytest.mark.parametrize("most", [0, 1])
async def test_of_too_many_waiting_calls_the_oldest_is_cancelled(
    most: int, set_limit: SetLimit
) -> None:
    set_limit("pkg.proxy.waiting_calls.MOST_CALLS", most)
    ended = anyio.Event()
    async with asgi(Server.proxy(theatre("Which row?", ended=ended.set), revision=SESSION)) as http:
        question = (await book(http))["result"]
        if most:
            answered = (await book(http, question, row=3))["result"]
            assert answered["content"][0]["text"] == "rows [3]"
        else:
            with anyio.fail_after(10):
                await ended.wait()
        gone = (await book(http, question))["error"]
        assert (gone["code"], "which waits here" in gone["message"]) == (-32602, True)


async def test_a_state_of_other_arguments_continues_no_call() -> None:
    async with asgi(Server.proxy(theatre("Which row?"), revision=SESSION)) as http:
        question = (await book(http))["result"]
        params = {"name": "book", "arguments": {"a": 1}, "requestState": question["requestState"]}
        reply = await http.ask(NEWEST, "tools/call", params, capabilities=CAPABILITIES)
        assert reply.messages[-1]["error"]["code"] == -32602
        again = (await book(http, {**question, "inputRequests": {"question-9": None}}))["result"]
        assert again["inputRequests"].keys() == question["inputRequests"].keys() == {"question-1"}
