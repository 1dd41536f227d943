"""Kinds of result, and questions in them, as a client meets them.

Source: basic/index#resulttype, basic/patterns/mrtr (2026-07-28).
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.live import TEXT, FakeServer, text_of
from kit.rules import revisions_holding
from kit.samples import PARAMS
from kit.scripted import connect_scripted
from kit.wire import HANDSHAKE
from mcpgen_runtime.client.async_client import ClientHandlers, connect
from mcpgen_runtime.errors import RemoteProtocolError
from mcpgen_runtime.runtime.request_context import RequestContext

modern = pytest.mark.parametrize("revision", revisions_holding("mrtr.result-type-known-set"))

FORM = {"method": "elicitation/create", "params": PARAMS["elicitation/create"]}
ACCEPTED = {"action": "accept", "content": {"city": "Oslo"}}


def wants(state: str | None = None, **requests: Any) -> dict[str, Any]:
    """A result that wants input."""
    made: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        made["inputRequests"] = requests
    return made if state is None else {**made, "requestState": state}


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


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_where_results_have_no_kind_the_word_means_nothing(revision: str) -> None:
    async with connect_scripted(revision, {**TEXT, "resultType": "input_required"}) as (client, _):
        assert text_of(await client.call_tool("any")) == "done"


@pytest.mark.requirement("mrtr.at-least-one-field")
@modern
async def test_a_question_without_a_question_is_an_error(revision: str) -> None:
    async with connect_scripted(revision, wants(), TEXT) as (client, server):
        with pytest.raises(RemoteProtocolError, match="not for what"):
            await client.call_tool("any")
        assert len(server.heard) == 1


@pytest.mark.requirement("mrtr.input-request-kinds")
@modern
@pytest.mark.parametrize(
    "asked",
    [
        {"method": "foo/bar"},
        {"method": "tools/list", "params": {}},
        {"method": "elicitation/create"},
        {"params": {}},
        "text",
    ],
)
async def test_a_question_of_another_kind_fails_the_call(revision: str, asked: Any) -> None:
    class Eager(ClientHandlers):
        async def elicit(self, params: Any, ctx: RequestContext) -> Any:
            raise AssertionError("it was asked")

    opening = connect_scripted(revision, wants(k=asked), TEXT, handlers=Eager())
    async with opening as (client, server):
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("any")
        assert len(server.heard) == 1


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


class Slow(ClientHandlers):
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.may = anyio.Event()

    async def elicit(self, params: Any, ctx: RequestContext) -> Any:
        self.asked.set()
        await self.may.wait()
        return ACCEPTED

    async def list_roots(self, params: Any, ctx: RequestContext) -> Any:
        return {"roots": []}


@pytest.mark.requirement("mrtr.client-fulfils-first", "elicitation.input-key-echoed")
@modern
async def test_nothing_is_sent_before_all_is_answered(revision: str) -> None:
    slow = Slow()
    both = wants(a={"method": "roots/list"}, b=FORM)
    async with (
        connect_scripted(revision, both, TEXT, handlers=slow) as (client, server),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call_tool, "any")
        await slow.asked.wait()
        await anyio.wait_all_tasks_blocked()
        assert len(server.heard) == 1
        slow.may.set()
    assert server.asked()[1]["inputResponses"] == {"a": {"roots": []}, "b": ACCEPTED}
    assert len(server.heard) == 2


@pytest.mark.requirement("mrtr.retry-scope")
@modern
async def test_answers_and_state_are_for_their_own_request(revision: str) -> None:
    slow = Slow()
    slow.may.set()
    server = FakeServer(revision)
    async with connect(server, revision=revision, handlers=slow) as client:
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
    assert not {"inputResponses", "requestState"} & later["params"].keys()
    assert not {"inputResponses", "requestState"} & asked["plain"]["params"].keys()
