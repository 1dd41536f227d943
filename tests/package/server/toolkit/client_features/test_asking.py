"""Requests of a handler to its client: one code, whichever way the revision sends them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.from_thread
import pytest

from kit.respondent import (
    EVERYTHING,
    ROOTS,
    SAMPLED,
    Answer,
    Respondent,
    accept_result,
    connect_respondent,
    refusal_code,
    text_in,
)
from kit.rules import revisions_holding
from kit.wire import ALL, HANDSHAKE, PER_REQUEST
from mcpgen_runtime import Accepted, Context, InputRequired, Server
from mcpgen_runtime.errors import MissingCapabilityError, RemoteError

every = pytest.mark.parametrize("revision", ALL)
modern = pytest.mark.parametrize("revision", PER_REQUEST)
with_forms = pytest.mark.parametrize("revision", revisions_holding("elicitation.message-required"))
tools = pytest.mark.parametrize("how", ["coroutine", "thread", "broad", "bare", "group"])


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

    @server.tool()
    async def broad(ctx: Context) -> str:
        try:
            return await two(ctx)
        except Exception:
            return "swallowed"

    @server.tool()
    async def bare(ctx: Context) -> str:
        try:
            return await two(ctx)
        except BaseException as error:
            if isinstance(error, MissingCapabilityError):
                raise
            return "swallowed"

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
@tools
async def test_a_tool_gets_its_answers_whichever_way_it_is_written(revision: str, how: str) -> None:
    async with connect_respondent(asking_server(), revision, ANSWERS) as client:
        assert text_in(await client.call(how)) == "OSLO, NEAR OSLO"
        assert [params["message"] for _, params in client.asked].count("oslo") == 1
        assert len(client.asked) == 2
        assert bool(client.rounds) is (revision in PER_REQUEST)


@modern
async def test_a_handler_does_nothing_more_once_it_is_left(revision: str) -> None:
    server = Server("broad")
    after: list[str] = []

    @server.tool()
    async def ask(ctx: Context) -> str:
        try:
            await ctx.elicit("Who?", City)
        except Exception:
            after.append("caught")
        after.append("went on")
        return "done"

    async with connect_respondent(server, revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "done"
    assert after == ["went on"]


@modern
async def test_questions_of_tasks_started_together_take_one_round(revision: str) -> None:
    async with connect_respondent(asking_server(), revision, ANSWERS) as client:
        await client.call("group")
        assert len(client.rounds) == 1
        await client.call("coroutine")
        assert len(client.rounds) == 3


@every
@tools
async def test_undeclared_capabilities_are_not_requested(revision: str, how: str) -> None:
    async with connect_respondent(asking_server(), revision, {}, {"roots": {}}) as client:
        answer = await client.call(how)
        assert client.asked == []
        assert client.rounds == []
    if how in ("coroutine", "thread", "bare"):
        assert answer["error"]["code"] == refusal_code(revision)
        assert answer["error"]["data"]["requiredCapabilities"] == {"elicitation": {}}


def several() -> Server:
    """A server with tools that ask for several things at once."""
    server = Server("several")

    @server.tool()
    async def at_once(ctx: Context) -> str:
        name, model, roots = await ctx.ask_all(
            ctx.elicit("Who?", City, key="who"),
            ctx.sample("What?", max_tokens=5, key="what"),
            ctx.list_roots(key="where"),
        )
        return f"{name.content} {model.text} {roots[0].uri}"

    @server.tool()
    async def same(ctx: Context) -> str:
        both = await ctx.ask_all(*(ctx.elicit("Who?", City) for _ in range(2)))
        return " ".join(str(answer.content) for answer in both)

    @server.tool()
    async def failing(ctx: Context) -> str:
        async def fails() -> None:
            raise LookupError("mine")

        try:
            await ctx.ask_all(ctx.elicit("Who?", City), fails())
        except LookupError as error:
            return str(error)
        return "not raised"

    @server.tool()
    async def twice(ctx: Context) -> str:
        await ctx.elicit("Who?", City, key="k")
        try:
            await ctx.elicit("Who else?", City, key="k")
        except ValueError as error:
            return str(error)
        return "not raised"

    return server


@with_forms
async def test_several_things_can_be_asked_at_once(revision: str) -> None:
    async with connect_respondent(several(), revision, ANSWERS) as client:
        assert text_in(await client.call("at_once")) == "City(name='WHO?') Paris file:///top"
        assert sorted(method for method, _ in client.asked) == sorted(ANSWERS)
        if revision in PER_REQUEST:
            assert sorted(client.keys) == ["what", "where", "who"]
            assert len(client.rounds) == 1


@with_forms
async def test_a_question_asked_twice_has_two_answers(revision: str) -> None:
    answers = itertools.count()
    counting = {"elicitation/create": lambda params: accept_result(name=str(next(answers)))}
    async with connect_respondent(several(), revision, counting) as client:
        assert text_in(await client.call("same")) in (
            "City(name='0') City(name='1')",
            "City(name='1') City(name='0')",
        )
        assert len(client.asked) == 2


@with_forms
async def test_an_error_in_one_of_several_requests_propagates(revision: str) -> None:
    async with connect_respondent(several(), revision, ANSWERS) as client:
        assert text_in(await client.call("failing")) == "mine"


@pytest.mark.requirement("mrtr.input-request-keys-unique")
@with_forms
async def test_a_key_is_for_one_question_of_a_request(revision: str) -> None:
    async with connect_respondent(several(), revision, ANSWERS) as client:
        assert "'k' is in use" in text_in(await client.call("twice"))


def changing_server(questions: Any) -> Server:
    """A server that asks the next question each time its tool runs, always under one key."""
    server = Server("changing")

    @server.tool()
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit(next(questions), City, key="k")
        return str(answer.content)

    return server


@modern
async def test_a_question_that_changed_does_not_get_the_old_answer(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = changing_server(iter(["first", "second", "second"]))
    async with connect_respondent(server, revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "City(name='SECOND')"
        assert [params["message"] for _, params in client.asked] == ["first", "second"]
    assert "has changed" in caplog.text


@modern
async def test_a_question_that_always_changes_is_warned_of(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("restless")
    numbers = itertools.count()

    @server.tool()
    async def ask(ctx: Context) -> str:
        await ctx.elicit(f"Number {next(numbers)}?", City)
        return "never"

    async with connect_respondent(server, revision, ANSWERS) as client:
        params = {"name": "ask", "arguments": {}}
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


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_refusal_by_the_client_reaches_the_tool(revision: str) -> None:
    server = Server("refused")

    @server.tool()
    async def ask(ctx: Context) -> str:
        try:
            return (await ctx.sample("hi", max_tokens=1)).text
        except RemoteError as error:
            return f"{error.code} {error.message}"

    refused = {"sampling/createMessage": {"code": -1, "message": "rejected"}}
    async with connect_respondent(server, revision, refused) as client:
        assert text_in(await client.call("ask")) == "-1 rejected"


@pytest.mark.requirement("mrtr.unsupported-methods")
@modern
async def test_methods_that_may_not_ask_for_input_fail(revision: str) -> None:
    server = Server("unable")

    @server.prompt()
    def greeting(who: str) -> str:
        return who

    @server.completion(prompt="greeting", argument="who")
    async def complete(value: str, ctx: Context) -> list[str]:
        await ctx.elicit("Who?", City)
        return []

    @server.method("x/ask")
    async def ask(ctx: Context) -> None:
        await ctx.list_roots()

    params = {
        "ref": {"type": "ref/prompt", "name": "greeting"},
        "argument": {"name": "who", "value": ""},
    }
    async with connect_respondent(server, revision, ANSWERS) as client:
        completed = await client.ask("completion/complete", params)
        custom = await client.ask("x/ask", {})
        listed = await client.ask("prompts/list", {})
    assert completed["error"]["code"] == custom["error"]["code"] == -32603
    assert "can't ask for input" in completed["error"]["message"]
    assert listed["result"]["resultType"] == "complete"


@with_forms
async def test_the_asking_can_be_given_up(revision: str) -> None:
    server = Server("impatient")

    @server.tool()
    async def ask(ctx: Context) -> str:
        with anyio.move_on_after(0):
            await ctx.elicit("Who?", City)
        return "gave up"

    async with connect_respondent(server, revision, ANSWERS) as client:
        answer: Any = await _first_answer(client)
    if revision in HANDSHAKE:
        assert answer["result"]["content"][0]["text"] == "gave up"
    else:
        assert answer["result"]["resultType"] == "input_required"


async def _first_answer(client: Respondent) -> Any:
    return await client.end.ask(
        "tools/call", {"name": "ask", "arguments": {}}, capabilities=EVERYTHING
    )
