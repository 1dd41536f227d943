"""Results that ask for input, as a client meets them: it answers, and asks again.

Source: basic/patterns/mrtr; server/tools#input-required-tool-results (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kit.rules import revisions_holding
from kit.samples import RESULTS
from kit.scripted import ScriptedServer, connect_scripted
from kit.wire import facts, meta_of
from mcpgen_runtime.client.async_client import ClientHandlers
from mcpgen_runtime.errors import RemoteProtocolError

pytestmark = pytest.mark.on_asyncio

REVISIONS = revisions_holding("tools.call-retry-new-id")

retrying = pytest.mark.parametrize("revision", REVISIONS)
each = pytest.mark.parametrize(
    ("ask", "method", "params"),
    [
        pytest.param(
            lambda client: client.call_tool("t", {"n": [1, 1.5, None]}),
            "tools/call",
            {"name": "t", "arguments": {"n": [1, 1.5, None]}},
            marks=pytest.mark.requirement(
                "tools.call-retry-carries-responses", "tools.call-retry-new-id"
            ),
            id="tool",
        ),
        pytest.param(
            lambda client: client.read_resource("x://a"),
            "resources/read",
            {"uri": "x://a"},
            marks=pytest.mark.requirement("resources.read-retry"),
            id="resource",
        ),
        pytest.param(
            lambda client: client.get_prompt("p", {"who": "Oslo"}),
            "prompts/get",
            {"name": "p", "arguments": {"who": "Oslo"}},
            marks=pytest.mark.requirement("prompts.get-retry"),
            id="prompt",
        ),
    ],
)
Ask = Callable[[Any], Any]

ELICITATION = {
    "method": "elicitation/create",
    "params": {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}},
}
ROOTS = {"method": "roots/list"}
OPAQUE = '{"a": 1}\n \u00e9'
"""A state that looks like JSON, with a newline at its end: a client has no business with it."""


class Helpful(ClientHandlers):
    """Answers what servers want to know, and keeps what they asked."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    async def elicit(self, params: Any, ctx: Any) -> Any:
        self.questions.append(params.message)
        return {"action": "accept", "content": {"city": "Oslo", "n": 1.5}}

    async def list_roots(self, params: Any, ctx: Any) -> Any:
        return {"roots": [{"uri": "file:///home"}]}


def input_required_result(state: str | None = None, **requests: Any) -> dict[str, Any]:
    """A result that asks for input."""
    result: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        result["inputRequests"] = requests
    return result if state is None else {**result, "requestState": state}


def ids(server: ScriptedServer) -> list[Any]:
    return [request["id"] for request in server.heard]


@pytest.mark.requirement(
    "mrtr.responses-shape",
    "mrtr.retry-original-params",
    "mrtr.state-opaque",
    "mrtr.state-echo",
    "mrtr.retry-new-id",
)
@retrying
@each
async def test_a_retry_has_answers_and_state_under_a_new_id(
    revision: str, ask: Ask, method: str, params: dict[str, Any]
) -> None:
    final = RESULTS[method]
    assert final is not None
    handlers = Helpful()
    first = input_required_result(OPAQUE, k=ELICITATION, r=ROOTS)
    async with connect_scripted(revision, first, final, handlers=handlers) as (client, server):
        result = await ask(client)
    assert not hasattr(result, "input_requests")
    assert handlers.questions == ["Which?"]
    responses = {
        "k": {"action": "accept", "content": {"city": "Oslo", "n": 1.5}},
        "r": {"roots": [{"uri": "file:///home"}]},
    }
    retry = {**params, "inputResponses": responses, "requestState": OPAQUE}
    assert server.asked() == [params, retry]
    assert {request["method"] for request in server.heard} == {method}
    assert len(set(ids(server))) == 2


@pytest.mark.requirement(
    "mrtr.state-echo", "mrtr.state-not-invented", "mrtr.client-immediate-retry"
)
@retrying
@each
async def test_state_and_answers_are_sent_back_only_if_requested(
    revision: str, ask: Ask, method: str, params: dict[str, Any]
) -> None:
    final = RESULTS[method]
    assert final is not None
    rounds = (
        input_required_result("s1", k=ELICITATION),
        input_required_result("s2"),
        input_required_result(k=ELICITATION),
        input_required_result("s3"),
    )
    async with connect_scripted(revision, *rounds, final, handlers=Helpful()) as (client, server):
        await ask(client)
    added = [
        {name: value for name, value in sent.items() if name not in params}
        for sent in server.asked()
    ]
    answers = {"inputResponses": {"k": {"action": "accept", "content": {"city": "Oslo", "n": 1.5}}}}
    assert added == [
        {},
        {**answers, "requestState": "s1"},
        {"requestState": "s2"},
        answers,
        {"requestState": "s3"},
    ]
    assert len(set(ids(server))) == 5


@pytest.mark.requirement("mrtr.retry-has-meta")
@retrying
@each
async def test_a_retry_has_all_that_a_request_needs(
    revision: str, ask: Ask, method: str, params: dict[str, Any]
) -> None:
    final = RESULTS[method]
    assert final is not None
    needed = set(meta_of(revision)) - {facts(revision).meta.client_info}
    async with connect_scripted(revision, input_required_result("s"), final) as (client, server):
        await ask(client)
    assert all(needed <= request["params"]["_meta"].keys() for request in server.heard)


@retrying
@each
async def test_a_server_that_never_stops_asking_is_left(
    revision: str, ask: Ask, method: str, params: dict[str, Any]
) -> None:
    async with connect_scripted(revision, *[input_required_result("s")] * 20) as (client, server):
        with pytest.raises(RemoteProtocolError, match=f"{method}: the server asked for input"):
            await ask(client)
    assert len(server.heard) < 20


@retrying
@each
async def test_input_that_the_client_did_not_offer_fails_that_call(
    revision: str, ask: Ask, method: str, params: dict[str, Any]
) -> None:
    final = RESULTS[method]
    assert final is not None
    async with connect_scripted(revision, input_required_result(k=ELICITATION), final) as (
        client,
        server,
    ):
        with pytest.raises(RemoteProtocolError, match="this client has no elicitation"):
            await ask(client)
        await ask(client)
    assert server.asked() == [params, params]
