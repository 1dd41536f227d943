"""Input that a server asks a client for: the kinds of questions, who answers, and refusals.

Source: basic/patterns/mrtr#server-requirements-basic-workflow (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from kit.live import TEXT, App, FakeServer, live, text_of
from kit.respondent import ROOTS, SAMPLED, accept_result, connect_respondent, text_in
from kit.rules import revisions_holding
from kit.samples import PARAMS
from kit.scripted import connect_scripted
from kit.wire import ALL, PER_REQUEST, facts
from mcpgen_runtime import Context, Server
from mcpgen_runtime.client.async_client import ClientHandlers, connect
from mcpgen_runtime.client.client_settings import ClientLimits
from mcpgen_runtime.errors import RemoteProtocolError
from mcpgen_runtime.revisions import REVISIONS
from mcpgen_runtime.runtime.request_context import RequestContext
from mcpgen_runtime.server.toolkit.client_features.input_required import InputRequired

every = pytest.mark.parametrize("revision", ALL)
modern = pytest.mark.parametrize("revision", PER_REQUEST)


class Answers(ClientHandlers):
    """Answers what a server wants to know, and keeps the questions."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def elicit(self, params: Any, ctx: RequestContext) -> Any:
        self.asked.append((params.message, ctx.method.name, ctx.revision.name))
        return {"action": "accept", "content": {"city": "Oslo"}}

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        return {"roots": [{"uri": "file:///a"}]}


ELICIT = {
    "method": "elicitation/create",
    "params": {"mode": "form", **PARAMS["elicitation/create"]},
}


@modern
async def test_a_tool_gets_the_input_it_asks_for_and_then_a_result(revision: str) -> None:
    server = Server("curious")

    @server.tool()
    async def where(name: str, ctx: Context) -> Any:
        if ctx.request_state is None:
            return InputRequired({"city": ELICIT, "roots": {"method": "roots/list"}}, "round 1")
        if ctx.request_state == "round 1":
            assert ctx.input_responses["roots"] == {"roots": [{"uri": "file:///a"}]}
            return InputRequired(state=ctx.input_responses["city"]["content"]["city"])
        assert ctx.input_responses == {}
        return f"{name} in {ctx.request_state}"

    answers = Answers()
    async with live(server, revision, handlers=answers) as (client, record):
        result = await client.call_tool("where", {"name": "Ada"}, meta={"mine": 1})
        assert text_of(result) == "Ada in Oslo"
    assert answers.asked == [("Which city?", "elicitation/create", revision)]
    calls = [message for message in record.sent if message["method"] == "tools/call"]
    assert len({call["id"] for call in calls}) == 3
    assert [call["params"]["arguments"] for call in calls] == [{"name": "Ada"}] * 3
    assert [call["params"]["_meta"]["mine"] for call in calls] == [1] * 3
    assert ["requestState" in call["params"] for call in calls] == [False, True, True]
    assert ["inputResponses" in call["params"] for call in calls] == [False, True, False]


def wants(**more: Any) -> dict[str, Any]:
    """A result that wants input."""
    return {**more, "resultType": "input_required"}


@modern
async def test_a_state_is_sent_in_its_own_round_and_in_no_other(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def ask_twice() -> None:
            for more in ({"requestState": "first"}, {}):
                await server.answer(await server.next(), wants(inputRequests={}, **more))
            await server.answer(await server.next(), TEXT)

        tasks.start_soon(ask_twice)
        assert text_of(await client.call_tool("any")) == "done"
    sent = [call["params"].get("requestState") for call in server.heard]
    assert sent == [None, "first", None]


@modern
async def test_a_server_that_never_stops_asking_is_an_error(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def ask_again() -> None:
            for _ in range(ClientLimits().input_rounds + 1):
                await server.answer(await server.next(), wants(requestState="again"))

        tasks.start_soon(ask_again)
        with pytest.raises(RemoteProtocolError, match="asked for input"):
            await client.call_tool("any")


@pytest.mark.requirement("mrtr.repeatable")
@modern
async def test_how_often_a_server_may_ask_can_be_set(revision: str) -> None:
    again = wants(requestState="again")
    answers = (*[again] * 6, TEXT)
    limits = ClientLimits(input_rounds=2)
    async with connect_scripted(revision, *answers, limits=limits) as (client, server):
        with pytest.raises(RemoteProtocolError, match="asked for input 2 times"):
            await client.call_tool("any")
        assert len(server.heard) == 3
    limits = ClientLimits(input_rounds=6)
    async with connect_scripted(revision, *answers, limits=limits) as (client, _):
        assert text_of(await client.call_tool("any")) == "done"


@pytest.mark.requirement("mrtr.at-least-one-field")
@modern
async def test_a_server_that_wants_no_input_is_not_asked_again(
    revision: str,
) -> None:
    async with connect_scripted(revision, wants(), TEXT) as (client, server):
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("any")
    assert len(server.heard) == 1


@modern
async def test_input_that_the_client_never_offered_is_not_given(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            await server.answer(await server.next(), wants(inputRequests={"c": ELICIT}))

        tasks.start_soon(ask)
        with pytest.raises(RemoteProtocolError, match="this client has no elicitation"):
            await client.call_tool("any")
    assert len(server.heard) == 1


@modern
async def test_errors_of_a_handler_propagate_through_the_call(revision: str) -> None:
    class Refuses(ClientHandlers):
        async def elicit(self, params: Any, ctx: RequestContext) -> Any:
            raise LookupError("mine")

    server = FakeServer(revision)
    async with (
        connect(server, revision=revision, handlers=Refuses()) as client,
        anyio.create_task_group() as tasks,
    ):

        async def ask() -> None:
            await server.answer(await server.next(), wants(inputRequests={"c": ELICIT}))

        tasks.start_soon(ask)
        with pytest.raises(LookupError, match="mine"):
            await client.call_tool("any")


@modern
async def test_a_request_that_may_not_ask_for_input_does_not_get_any(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            await server.answer(await server.next(), wants(requestState="s"))

        tasks.start_soon(ask)
        with pytest.raises(RemoteProtocolError):
            await client.list_tools_page()
    assert len(server.heard) == 1


@every
async def test_a_client_declares_what_its_handlers_can_do(revision: str) -> None:
    seen: list[Mapping[str, Any]] = []

    async def look(ctx: RequestContext) -> Any:
        seen.append(ctx.peer_capabilities)
        return TEXT

    async with live(App(look), revision, handlers=Answers()) as (client, _):
        await client.call_tool("any")
    asked = REVISIONS[revision].server_requests.keys() | REVISIONS[revision].input_requests.keys()
    assert ("elicitation" in seen[0]) is ("elicitation/create" in asked)
    assert "roots" in seen[0]
    assert "sampling" not in seen[0]


asking = pytest.mark.parametrize("revision", revisions_holding("mrtr.input-request-kinds"))

FORM = {"type": "object", "properties": {"city": {"type": "string"}}}
ANSWERS: dict[str, Any] = {
    "elicitation/create": accept_result(city="Oslo"),
    "sampling/createMessage": SAMPLED,
    "roots/list": ROOTS,
}


def asking_server() -> Server:
    """A server whose tool asks in each of the three ways."""
    server = Server("asking")

    @server.tool()
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Which city?", FORM, key="city")
        sampled = await ctx.sample("What is the capital?", max_tokens=5, key="capital")
        roots = await ctx.list_roots(key="roots")
        return f"{answer.action} {sampled.content[0].text} {len(roots)}"

    return server


@pytest.mark.requirement("mrtr.input-request-kinds")
@asking
async def test_questions_leave_as_method_and_params_and_nothing_else(revision: str) -> None:
    async with connect_respondent(asking_server(), revision, ANSWERS) as client:
        assert text_in(await client.call("ask")) == "accept Paris 1"
        rounds = client.rounds
    questions = [each for result in rounds for each in result["inputRequests"].values()]
    assert [question["method"] for question in questions] == list(ANSWERS)
    keys = facts(revision).meta
    stamps = {keys.protocol_version, keys.client_info, keys.client_capabilities, keys.log_level}
    for question in questions:
        assert question.keys() <= {"method", "params"}
        assert stamps.isdisjoint((question.get("params") or {}).get("_meta", {}))
    assert questions[0]["params"]["message"] == "Which city?"
    assert questions[1]["params"]["maxTokens"] == 5


@pytest.mark.requirement("mrtr.input-request-kinds")
@asking
@pytest.mark.parametrize("with_params", [True, False])
async def test_each_kind_of_question_goes_to_its_own_handler(
    revision: str, with_params: bool
) -> None:
    class User(ClientHandlers):
        async def elicit(self, params: Any, ctx: Any) -> Any:
            assert params.message == "Which city?"
            return ANSWERS["elicitation/create"]

        async def create_message(self, params: Any, ctx: Any) -> Any:
            assert params.max_tokens == 5
            return ANSWERS["sampling/createMessage"]

        async def list_roots(self, params: Any, ctx: Any) -> Any:
            return ANSWERS["roots/list"]

    message = {"role": "user", "content": {"type": "text", "text": "What?"}}
    form = {"message": "Which city?", "requestedSchema": FORM}
    prompt = {"messages": [message], "maxTokens": 5}
    questions: dict[str, Any] = {
        "e": {"method": "elicitation/create", "params": form},
        "s": {"method": "sampling/createMessage", "params": prompt},
        "r": {"method": "roots/list"} | ({"params": {}} if with_params else {}),
    }
    wanted = {"resultType": "input_required", "inputRequests": questions}
    async with connect_scripted(revision, wanted, TEXT, handlers=User()) as (client, server):
        assert text_of(await client.call_tool("any")) == "done"
        _, retry = server.asked()
    assert retry["inputResponses"] == dict(zip("esr", ANSWERS.values(), strict=True))
