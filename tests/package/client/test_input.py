"""Input that a server asks a client for: who gives it, and when it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from mcp_protocol.client.async_client import ClientHandlers, connect
from mcp_protocol.client.client_settings import ClientLimits
from mcp_protocol.errors import RemoteProtocolError
from mcp_protocol.revisions import REVISIONS
from mcp_protocol.runtime.request_context import RequestContext
from mcp_protocol.server.toolkit.client_features.input_required import InputRequired
from mcp_protocol.server.toolkit.context import Context
from mcp_protocol.server.toolkit.server import Server
from package.live import TEXT, App, FakeServer, live, text_of
from package.samples import PARAMS
from package.scripted import connect_scripted
from package.wire import ALL, PER_REQUEST

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
    async with connect_scripted(revision, *[again] * 9, TEXT) as (client, server):
        assert client.input_rounds == ClientLimits().input_rounds
        client.input_rounds = 2
        with pytest.raises(RemoteProtocolError, match="asked for input 2 times"):
            await client.call_tool("any")
        assert len(server.heard) == 3
        client.input_rounds = 6
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
