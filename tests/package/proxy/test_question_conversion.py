"""Requests of a server to a client through a proxy, and the calls that wait for answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import anyio
import pytest

from kit.asgi_client import Http, asgi
from kit.issuer import bearer
from kit.limits import SetLimit
from kit.live import server_with
from kit.wire import ALL, HANDSHAKE, speaking_to
from mcpgen_runtime import REVISIONS, Context, Server, StaticTokens
from package.proxy.bridge_traffic import CLIENT, Far, Script, ask_tool, empty_result
from package.proxy.test_proxy import NEWEST, SESSION, Seat

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
CHOICES = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]
TITLED = {"type": "string", "title": "Color", "oneOf": CHOICES, "default": "r", "x-own": {}}
AS_ENUM = {
    "type": "string",
    "title": "Color",
    "default": "r",
    "x-own": {},
    "enum": ["r", "g"],
    "enumNames": ["Red", "Green"],
}
CONTENT = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
AS_LINE = {"type": "text", "text": "[audio: audio/wav, 3 bytes]"}
REPLY = {"role": "assistant", "model": "m", "content": CONTENT[0], "x-own": 1.0}


def form(**properties: Any) -> dict[str, Any]:
    return {
        "message": "?",
        "requestedSchema": {"type": "object", "properties": properties},
        "x-own": None,
    }


def messages(*contents: Any) -> dict[str, Any]:
    each = [{"role": "user", "content": content} for content in contents]
    return {"messages": each, "maxTokens": 9, "x-own": {}}


def row_of(method: str, revision: str) -> Any:
    spoken = REVISIONS[revision]
    return spoken.server_requests.get(method) or spoken.input_requests.get(method)


def pairs(method: str, first: str, first_near: str = ALL[0]) -> list[Any]:
    """All pairs of revisions with a request, those of the server from the first one with a form."""
    return [
        pytest.param(near, far, id=f"{near} asked by {far}")
        for near, far in product(ALL[ALL.index(first_near) :], ALL[ALL.index(first) :])
        if row_of(method, near) and row_of(method, far)
    ]


async def ask(
    method: str, params: Mapping[str, Any], reply: Mapping[str, Any], near: str, far: str
) -> tuple[Any, Any, Any]:
    """The params that the client got, the answer that the server got, and the final response."""
    server = Far(far)
    server.script = Script({"result": empty_result(far)}, {"method": method, "params": params})
    async with speaking_to(Server.proxy(server, revision=far), near, CLIENT) as client:
        got, response = await ask_tool(client, dict(reply))
    return got, server.reply, response


ACCEPTED = {"action": "accept", "content": {"x": "r"}, "x-own": {}}


@pytest.mark.parametrize(("near", "far"), pairs(ELICIT, "2025-11-25"))
async def test_a_titled_choice_reaches_every_client_in_its_own_form(near: str, far: str) -> None:
    got, reply, response = await ask(ELICIT, form(x=TITLED), ACCEPTED, near, far)
    assert "result" in response, response
    assert got == (form(x=TITLED) if near >= "2025-11-25" else form(x=AS_ENUM))
    assert reply == ACCEPTED


@pytest.mark.parametrize(("near", "far"), pairs(ELICIT, "2025-11-25"))
async def test_a_url_reaches_clients_that_can_open_one(near: str, far: str) -> None:
    asked = {"mode": "url", "message": "?", "url": "https://example.com/"}
    if far == "2025-11-25":
        asked["elicitationId"] = "e1"
    got, reply, response = await ask(ELICIT, asked, {"action": "accept"}, near, far)
    assert "result" in response, response
    identifier = got.pop("elicitationId", None)
    asked.pop("elicitationId", None)
    assert (got, reply) == (asked, {"action": "accept"})
    assert near != "2025-11-25" or identifier


@pytest.mark.parametrize(("near", "far"), pairs(SAMPLE, "2025-11-25"))
async def test_messages_of_several_blocks_become_several_messages(near: str, far: str) -> None:
    got, reply, response = await ask(SAMPLE, messages(CONTENT), REPLY, near, far)
    assert "result" in response, response
    assert got == (messages(CONTENT) if near >= "2025-11-25" else messages(*CONTENT))
    assert reply == REPLY


@pytest.mark.parametrize(("near", "far"), pairs(SAMPLE, "2025-03-26"))
async def test_content_that_an_older_revision_lacks_becomes_a_line(
    near: str, far: str, caplog: pytest.LogCaptureFixture
) -> None:
    got, _, _ = await ask(SAMPLE, messages(AUDIO), REPLY, near, far)
    assert got == messages(AUDIO if near >= "2025-03-26" else AS_LINE)
    assert ("messages[].content.type=audio is degraded" in caplog.text) == (near < "2025-03-26")


@pytest.mark.parametrize(("near", "far"), pairs(SAMPLE, "2024-11-05", "2025-11-25"))
async def test_a_reply_of_several_blocks_suits_every_server(near: str, far: str) -> None:
    several = {**REPLY, "content": CONTENT}
    asked = messages(CONTENT[0])
    _, reply, response = await ask(SAMPLE, asked, several, near, far)
    assert "result" in response, response
    joined = {**REPLY, "content": {"type": "text", "text": "a\n\nb"}}
    assert reply == (several if far >= "2025-11-25" else joined)


class Asking(Far):
    """A server that asks so many times; the state of a request counts."""

    rounds = 0

    def answer(self, identifier: Any) -> dict[str, Any]:
        count = int(self.params.get("requestState", "0"))
        if count == self.rounds:
            return {"id": identifier, "result": empty_result(ALL[-1])}
        asked = {"inputRequests": {"q": {"method": ROOTS}}, "requestState": str(count + 1)}
        return {"id": identifier, "result": {"resultType": "input_required", **asked}}


@pytest.mark.parametrize("far", [each for each in ALL if each not in HANDSHAKE])
@pytest.mark.parametrize("rounds", [0, 15, 16])
async def test_a_server_asks_only_so_often_in_one_call(far: str, rounds: int) -> None:
    server = Asking(far)
    server.rounds = rounds
    async with speaking_to(Server.proxy(server, revision=far), HANDSHAKE[-1], CLIENT) as client:
        _, response = await ask_tool(client, {"roots": []})
    if rounds < 16:
        assert response["result"]["content"] == []
    else:
        assert response["error"]["message"].endswith(" asked for input too often")


CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}
QUESTIONS = ("Which row?", "And then?")


def theatre(*questions: str, ended: Callable[[], object] = lambda: None) -> Server:
    """A server whose tool asks questions at once."""

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

    return server_with(book)


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
