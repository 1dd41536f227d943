"""Requests of a handler to its client: one code, whichever way the revision sends them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.from_thread
import pytest

from kit.live import server_with
from kit.respondent import EVERYTHING, ROOTS, SAMPLED, Answer, accept_result, connect_respondent
from kit.rules import revisions_holding
from kit.wire import HANDSHAKE, PER_REQUEST, every, legacy, modern, speaking_to, text_in
from mcpgen_runtime import (
    Accepted,
    Context,
    InputRequired,
    RemoteError,
    RequestTimeoutError,
    Server,
)

with_forms = pytest.mark.parametrize("revision", revisions_holding("elicitation.message-required"))


@dataclass
class City:
    name: str


ANSWERS: Mapping[str, Answer] = {
    "elicitation/create": lambda params: accept_result(name=params["message"].upper()),
    "sampling/createMessage": SAMPLED,
    "roots/list": ROOTS,
}


def asking_server() -> Server:
    """A server whose tools all ask for two cities, each in its way."""
    server = Server("asking")

    @server.tool(name="coroutine")
    async def two(ctx: Context) -> str:
        first = await ctx.elicit("oslo", City)
        assert isinstance(first, Accepted)
        second = await ctx.elicit(f"near {first.content.name}", City)
        assert isinstance(second, Accepted)
        return f"{first.content.name}, {second.content.name}"

    @server.tool()
    def thread(ctx: Context) -> str:
        first = anyio.from_thread.run(ctx.elicit, "oslo", City)
        assert isinstance(first, Accepted)
        ask = functools.partial(ctx.elicit, f"near {first.content.name}", City, key="second")
        second: Any = anyio.from_thread.run(ask)
        return f"{first.content.name}, {second.content.name}"

    def swallowing(kind: type[BaseException]) -> Any:
        async def tool(ctx: Context) -> str:
            try:
                return await two(ctx)
            except kind:
                return "swallowed"

        return tool

    server.add_tool(swallowing(Exception), "broad")
    server.add_tool(swallowing(BaseException), "bare")

    @server.tool()
    async def group(ctx: Context) -> str:
        cities: dict[str, str] = {}

        async def one(name: str) -> None:
            answer = await ctx.elicit(name, City)
            assert isinstance(answer, Accepted)
            cities[name] = answer.content.name

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "oslo")
            tasks.start_soon(one, "near OSLO")
        return f"{cities['oslo']}, {cities['near OSLO']}"

    return server


@pytest.mark.requirement("mrtr.only-way-to-ask", "mrtr.repeatable")
@with_forms
@pytest.mark.parametrize("how", ["coroutine", "thread", "broad", "bare", "group"])
async def test_a_tool_gets_its_answers_whichever_way_it_is_written(revision: str, how: str) -> None:
    async with connect_respondent(asking_server(), revision, ANSWERS) as client:
        assert text_in(await client.call(how)) == "OSLO, NEAR OSLO"
        assert [params["message"] for _, params in client.asked].count("oslo") == 1
        assert len(client.asked) == 2
        rounds = 1 if how == "group" else 2
        assert len(client.rounds) == (rounds if revision in PER_REQUEST else 0)


@with_forms
async def test_several_things_can_be_asked_at_once(revision: str) -> None:
    async def at_once(ctx: Context) -> str:
        name, model, roots = await ctx.ask_all(
            ctx.elicit("Who?", City, key="who"),
            ctx.sample("What?", max_tokens=5, key="what"),
            ctx.list_roots(key="where"),
        )
        return f"{name.content} {model.text} {roots[0].uri}"

    async with connect_respondent(server_with(at_once), revision, ANSWERS) as client:
        assert text_in(await client.call("at_once")) == "City(name='WHO?') Paris file:///top"
        assert sorted(method for method, _ in client.asked) == sorted(ANSWERS)
        if revision in PER_REQUEST:
            assert sorted(client.keys) == ["what", "where", "who"]
            assert len(client.rounds) == 1


@pytest.mark.requirement("mrtr.input-request-keys-unique")
@with_forms
async def test_a_question_asked_twice_has_two_answers_and_no_common_key(revision: str) -> None:
    async def fails() -> None:
        raise LookupError("mine")

    async def same(ctx: Context) -> str:
        both = await ctx.ask_all(*(ctx.elicit("Who?", City) for _ in range(2)))
        with pytest.raises(LookupError, match="mine"):
            await ctx.ask_all(ctx.elicit("Who?", City, key="k"), fails())
        with pytest.raises(ValueError, match="'k' is in use"):
            await ctx.elicit("Who else?", City, key="k")
        return " ".join(sorted(str(answer.content) for answer in both))

    answers = itertools.count()
    counting = {"elicitation/create": lambda params: accept_result(name=str(next(answers)))}
    async with connect_respondent(server_with(same), revision, counting) as client:
        assert text_in(await client.call("same")) == "City(name='0') City(name='1')"


@modern
async def test_a_question_that_changed_does_not_get_the_old_answer(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server, questions = Server("changing"), iter(["first", "second", "second"])
    numbers = itertools.count()

    @server.tool()
    async def ask(ctx: Context) -> str:
        return str((await ctx.elicit(next(questions), City, key="k")).content)

    @server.tool()
    async def restless(ctx: Context) -> str:
        await ctx.elicit(f"Number {next(numbers)}?", City)
        return "never"

    async with connect_respondent(server, revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "City(name='SECOND')"
        assert [params["message"] for _, params in client.asked] == ["first", "second"]
        assert "has changed" in caplog.text
        params = {"name": "restless", "arguments": {}}
        again: dict[str, Any] = {}
        for _ in range(3):
            answer = await client.end.ask(
                "tools/call", {**params, **again}, capabilities=EVERYTHING
            )
            again = client.answered(answer["result"])
    assert "is never answered" in caplog.text


@pytest.mark.requirement("mrtr.supported-methods")
@with_forms
async def test_a_prompt_and_a_resource_ask_like_a_tool(revision: str) -> None:
    server = Server("all")

    @server.prompt()
    async def greeting(who: str, ctx: Context) -> str | InputRequired:
        answer = await ctx.elicit("Which city?", City)
        return f"{who} in {answer.content}"

    @server.resource("x://{name}")
    def city(name: str, ctx: Context) -> str:
        return str(anyio.from_thread.run(ctx.elicit, name, City).content)

    async with connect_respondent(server, revision, ANSWERS) as client:
        got = await client.ask("prompts/get", {"name": "greeting", "arguments": {"who": "Ada"}})
        read = await client.ask("resources/read", {"uri": "x://oslo"})
    content = got["result"]["messages"][0]["content"]
    assert content["text"] == "Ada in City(name='WHICH CITY?')"
    assert read["result"]["contents"][0]["text"] == "City(name='OSLO')"


@legacy
async def test_a_refusal_by_the_client_reaches_the_tool(revision: str) -> None:
    async def ask(ctx: Context) -> str:
        try:
            return (await ctx.sample("hi", max_tokens=1)).text
        except RemoteError as error:
            return f"{error.code} {error.message}"

    refused = {"sampling/createMessage": {"code": -1, "message": "rejected"}}
    async with connect_respondent(server_with(ask), revision, refused) as client:
        assert text_in(await client.call("ask")) == "-1 rejected"


@pytest.mark.requirement("mrtr.unsupported-methods", "completion.no-input-required")
@every
async def test_methods_that_may_not_ask_for_input_fail(revision: str) -> None:
    server = Server("unable")
    server.add_prompt(lambda who, why: who, "greeting")

    @server.completion(prompt="greeting", argument="who")
    async def complete(value: str, ctx: Context) -> list[str]:
        await ctx.elicit("Who?", City)
        return []

    @server.completion(prompt="greeting", argument="why")
    async def returns_a_question(value: str) -> Any:
        return InputRequired(state="c")

    @server.method("x/ask")
    async def ask(ctx: Context) -> None:
        await ctx.list_roots()

    async with connect_respondent(server, revision, ANSWERS) as client:

        async def completed(name: str) -> Any:
            argument = {"name": name, "value": ""}
            ref = {"type": "ref/prompt", "name": "greeting"}
            return await client.ask("completion/complete", {"ref": ref, "argument": argument})

        assert (await completed("why"))["error"]["code"] == -32603
        if revision in PER_REQUEST:
            refused = [await completed("who"), await client.ask("x/ask", {})]
            assert [each["error"]["code"] for each in refused] == [-32603, -32603]
            assert "can't ask for input" in refused[0]["error"]["message"]
            listed = await client.ask("prompts/list", {})
            assert listed["result"]["resultType"] == "complete"


@with_forms
async def test_a_handler_may_give_up_its_question(revision: str) -> None:
    async def ask(ctx: Context) -> str:
        with anyio.move_on_after(0):
            await ctx.elicit("Who?", City)
        return "gave up"

    async with speaking_to(server_with(ask), revision, EVERYTHING) as end:
        answer = await end.ask("tools/call", {"name": "ask"}, capabilities=EVERYTHING)
    if revision in HANDSHAKE:
        assert text_in(answer) == "gave up"
    else:
        assert answer["result"]["resultType"] == "input_required"


SECONDS = 0.01

ASKS: list[tuple[str, str, Callable[[Context], Any]]] = [
    ("roots.list-request", "roots/list", lambda ctx: ctx.list_roots(timeout=SECONDS)),
    (
        "sampling.standalone-request",
        "sampling/createMessage",
        lambda ctx: ctx.sample("hi", max_tokens=1, timeout=SECONDS),
    ),
    (
        "elicitation.standalone-request",
        "elicitation/create",
        lambda ctx: ctx.elicit("Who?", City, timeout=SECONDS),
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
    revision: str, method: str, ask: Callable[[Context], Any]
) -> None:
    async def wonder(ctx: Context) -> str:
        try:
            return str(await ask(ctx))
        except RequestTimeoutError:
            return "nobody answers"

    async with speaking_to(server_with(wonder), revision, EVERYTHING) as end:
        call = {"name": "wonder", "arguments": {}}
        await end.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        question = await end.receive()
        taken_back = await end.receive()
        answer = await end.receive()
    assert question["method"] == method
    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    assert text_in(answer) == "nobody answers"


@with_forms
async def test_values_that_differ_between_rounds_can_be_kept(revision: str) -> None:
    made = itertools.count()

    async def make() -> list[int]:
        value = [next(made)]
        for _ in range(5):  # so that another task begins meanwhile
            await anyio.sleep(0)
        return value

    async def ask(ctx: Context) -> str:
        one, two = await ctx.ask_all(ctx.once("token", make), ctx.once("token", make))
        assert one == two
        other = await ctx.once("other", lambda: "plain")
        await ctx.elicit(f"Number {one[0]}?", City)
        one.append(-1)  # whatever a handler does with it
        return f"{two} {other} {await ctx.once('token', make)}"

    async def odd(ctx: Context) -> str:
        return str(await ctx.once("odd", lambda: {1, 2}))

    async with connect_respondent(server_with(ask, odd), revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "[0] plain [0]"
        again = text_in(await client.call("ask"))
        assert again in ("[1] plain [1]", "[2] plain [2]")
        assert (await client.call("odd"))["result"]["isError"]
