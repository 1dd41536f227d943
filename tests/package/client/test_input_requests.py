"""The three kinds of questions that a result may ask: how they leave, and who answers them.

Source: basic/patterns/mrtr#server-requirements-basic-workflow (2026-07-28).
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_protocol import Context, Server
from mcp_protocol.client.async_client import ClientHandlers
from package.live import TEXT, text_of
from package.respondent import ROOTS, SAMPLED, accept_result, connect_respondent, text_in
from package.rules import revisions_holding
from package.scripted import connect_scripted
from package.wire import facts

modern = pytest.mark.parametrize("revision", revisions_holding("mrtr.input-request-kinds"))

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
@modern
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
@modern
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
