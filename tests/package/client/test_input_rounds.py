"""Results that ask for input, as a client meets them: it answers, and asks again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer, text_of
from kit.respondent import ROOTS, SAMPLED, accept_result
from kit.rules import revisions_holding
from kit.samples import PARAMS, RESULTS
from kit.scripted import connect_scripted
from kit.wire import facts, legacy, meta_of
from mcpgen_runtime import ClientHandlers, RemoteProtocolError, connect

modern = pytest.mark.parametrize("revision", revisions_holding("mrtr.result-type-known-set"))
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

FORM = {"method": "elicitation/create", "params": PARAMS["elicitation/create"]}
ACCEPTED = accept_result(city="Oslo")
OPAQUE = '{"a": 1}\n \u00e9'
"""A state that looks like JSON, with a newline at its end: a client has no business with it."""


class User(ClientHandlers):
    """Answers when it may, and keeps the questions."""

    def __init__(self, *, may: bool = True) -> None:
        self.questions: list[Any] = []
        self.asked, self.may = anyio.Event(), anyio.Event()
        if may:
            self.may.set()

    async def elicit(self, params: Any, ctx: Any) -> Any:
        self.questions.append((params.message, ctx.method.name, ctx.revision.name))
        self.asked.set()
        await self.may.wait()
        return ACCEPTED

    async def create_message(self, params: Any, ctx: Any) -> Any:
        assert params.max_tokens == 5
        return SAMPLED

    async def list_roots(self, params: Any, ctx: Any) -> Any:
        return ROOTS


def wants(state: str | None = None, **requests: Any) -> dict[str, Any]:
    """A result that wants input."""
    made: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        made["inputRequests"] = requests
    return made if state is None else {**made, "requestState": state}


@pytest.mark.requirement(
    "mrtr.responses-shape",
    "mrtr.retry-original-params",
    "mrtr.state-opaque",
    "mrtr.state-echo",
    "mrtr.state-not-invented",
    "mrtr.retry-new-id",
    "mrtr.client-immediate-retry",
    "mrtr.retry-has-meta",
    "mrtr.repeatable",
    "mrtr.input-request-kinds",
)
@modern
@each
async def test_a_retry_has_answers_and_state_if_requested_under_a_new_id(
    revision: str, ask: Ask, method: str, params: dict[str, Any]
) -> None:
    sampling = {
        "method": "sampling/createMessage",
        "params": PARAMS["sampling/createMessage"],
    }
    rounds = (
        wants(OPAQUE, k=FORM, r={"method": "roots/list"}, s=sampling),
        wants("s2"),
        wants(k=FORM, r={"method": "roots/list", "params": {}}),
        wants("s3"),
        RESULTS[method] or {},
    )
    user = User()
    async with connect_scripted(revision, *rounds, handlers=user) as (client, server):
        result = await ask(client)
    assert not hasattr(result, "input_requests")
    assert user.questions == [("Which city?", "elicitation/create", revision)] * 2
    answers = {"k": ACCEPTED, "r": ROOTS}
    assert server.asked() == [
        params,
        {**params, "inputResponses": {**answers, "s": SAMPLED}, "requestState": OPAQUE},
        {**params, "requestState": "s2"},
        {**params, "inputResponses": answers},
        {**params, "requestState": "s3"},
    ]
    assert {request["method"] for request in server.heard} == {method}
    assert len({request["id"] for request in server.heard}) == 5
    needed = set(meta_of(revision)) - {facts(revision).meta.client_info}
    assert all(needed <= request["params"]["_meta"].keys() for request in server.heard)


@modern
@each
async def test_input_that_the_client_did_not_offer_fails_that_call(
    revision: str, ask: Ask, method: str, params: dict[str, Any]
) -> None:
    async with connect_scripted(revision, wants(k=FORM), RESULTS[method] or {}) as (client, server):
        with pytest.raises(RemoteProtocolError, match="this client has no elicitation"):
            await ask(client)
        await ask(client)
    assert server.asked() == [params, params]


@pytest.mark.requirement("mrtr.result-type-known-set", "mrtr.result-type-unknown-invalid")
@modern
@pytest.mark.parametrize("kind", ["foo", "task", "Complete", "", 5, None, ["complete"]])
async def test_a_result_of_a_kind_that_nobody_agreed_on_is_none(revision: str, kind: Any) -> None:
    async with connect_scripted(revision, {**TEXT, "resultType": kind}, TEXT) as (client, _):
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("any")
        assert text_of(await client.call_tool("any")) == "done"


@pytest.mark.requirement("mrtr.result-type-absent", "mrtr.result-type-known-set")
@modern
async def test_a_result_that_says_no_kind_is_complete(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision) as client, anyio.create_task_group() as tasks:

        async def answer() -> None:
            asked = await server.next()
            await server.say({"jsonrpc": "2.0", "id": asked["id"], "result": dict(TEXT)})

        tasks.start_soon(answer)
        assert text_of(await client.call_tool("any")) == "done"


@legacy
async def test_where_results_have_no_kind_the_word_means_nothing(revision: str) -> None:
    async with connect_scripted(revision, {**TEXT, "resultType": "input_required"}) as (client, _):
        assert text_of(await client.call_tool("any")) == "done"


@pytest.mark.requirement("mrtr.input-request-kinds")
@modern
@pytest.mark.parametrize(
    "result",
    [
        pytest.param(wants(), marks=pytest.mark.requirement("mrtr.at-least-one-field")),
        wants(k={"method": "foo/bar"}),
        wants(k={"method": "tools/list", "params": {}}),
        wants(k={"method": "elicitation/create"}),
        wants(k={"params": {}}),
        wants(k="text"),
    ],
)
async def test_a_question_of_another_kind_fails_the_call(revision: str, result: Any) -> None:
    user = User()
    async with connect_scripted(revision, result, TEXT, handlers=user) as (client, server):
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("any")
        assert len(server.heard) == 1
    assert user.questions == []


@pytest.mark.requirement("mrtr.unsupported-methods")
@modern
@pytest.mark.parametrize("method", ["tools/list", "resources/list", "completion/complete"])
async def test_a_request_that_may_not_be_asked_back_is_not_sent_again(
    revision: str, method: str
) -> None:
    async with connect_scripted(revision, wants("s", k=FORM), TEXT) as (client, server):
        with pytest.raises(RemoteProtocolError):
            await client.request(method, PARAMS[method])
        assert len(server.heard) == 1


@pytest.mark.requirement("mrtr.client-fulfils-first", "elicitation.input-key-echoed")
@modern
async def test_nothing_is_sent_before_all_is_answered(revision: str) -> None:
    user = User(may=False)
    both = wants(a={"method": "roots/list"}, b=FORM)
    async with (
        connect_scripted(revision, both, TEXT, handlers=user) as (client, server),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call_tool, "any")
        await user.asked.wait()
        await anyio.wait_all_tasks_blocked()
        assert len(server.heard) == 1
        user.may.set()
    assert server.asked()[1]["inputResponses"] == {"a": ROOTS, "b": ACCEPTED}
    assert len(server.heard) == 2


@pytest.mark.requirement("mrtr.retry-scope")
@modern
async def test_answers_and_state_are_for_their_own_request(revision: str) -> None:
    server = FakeServer(revision)
    async with connect(server, revision=revision, handlers=User()) as client:
        async with anyio.create_task_group() as tasks:
            for name in ("one", "two", "plain"):
                tasks.start_soon(client.call_tool, name)
            asked = {}
            for _ in range(3):
                call = await server.next()
                asked[call["params"]["name"]] = call
            for name in ("two", "one"):
                await server.answer(asked[name], wants(f"state of {name}", **{name: FORM}))
            for _ in range(2):
                retry = await server.next()
                name = retry["params"]["name"]
                assert retry["params"]["requestState"] == f"state of {name}"
                assert retry["params"]["inputResponses"] == {name: ACCEPTED}
                await server.answer(retry, TEXT)
            await server.answer(asked["plain"], TEXT)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "one")
            later = await server.next()
            await server.answer(later, TEXT)
    for request in (later, asked["plain"]):
        assert not {"inputResponses", "requestState"} & request["params"].keys()
