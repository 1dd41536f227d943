"""Requests of a server to a client through a proxy, between all pairs of revisions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from kit.live import RawServer
from kit.wire import ALL, HANDSHAKE, speaking_to
from mcpgen_runtime import REVISIONS, Server
from mcpgen_runtime.facts import Method
from mcpgen_runtime.server.toolkit.foreign_results import lost_members

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
SEVERAL = {"type": "array", "items": {"anyOf": CHOICES}, "minItems": 1, "default": ["g"]}
FILLED = {"type": "integer", "minimum": 1, "default": 3, "x-own": []}
CONTENT = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
AS_LINE = {"type": "text", "text": "[audio: audio/wav, 3 bytes]"}
TOOL = {"name": "add", "inputSchema": {"type": "object"}}
REPLY = {"role": "assistant", "model": "m", "content": CONTENT[0], "x-own": 1.0}

EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}


def form(**properties: Any) -> dict[str, Any]:
    return {
        "message": "?",
        "requestedSchema": {"type": "object", "properties": properties},
        "x-own": None,
    }


def messages(*contents: Any) -> dict[str, Any]:
    each = [{"role": "user", "content": content} for content in contents]
    return {"messages": each, "maxTokens": 9, "x-own": {}}


def row_of(method: str, revision: str) -> Method | None:
    spoken = REVISIONS[revision]
    return spoken.server_requests.get(method) or spoken.input_requests.get(method)


def pairs(method: str, first: str, first_near: str = ALL[0]) -> list[Any]:
    """All pairs of revisions with a request, those of the server from the first one with a form."""
    return [
        pytest.param(near, far, id=f"{near} asked by {far}")
        for near, far in product(ALL[ALL.index(first_near) :], ALL[ALL.index(first) :])
        if row_of(method, near) and row_of(method, far)
    ]


_DONE = {"content": [], "resultType": "complete"}


class Asking(RawServer):
    """A server that asks one question when a tool is called, and keeps the answer."""

    def __init__(self, method: str, params: Mapping[str, Any], rounds: int = 1) -> None:
        super().__init__({"tools": {}})
        self._question = {"method": method, "params": params}
        self._rounds = rounds
        self._call: Any = None
        self.reply: Any = None

    async def take(self, message: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": message.get("id"), "result": dict(_DONE)}
        match message:
            case {"id": "q"}:
                self.reply = message.get("result", message)
                answer["id"] = self._call
            case {"method": "tools/call", "params": {"_meta": {**meta}} as params} if (
                "io.modelcontextprotocol/protocolVersion" in meta
            ):
                count = int(params.get("requestState", "0"))
                if "inputResponses" in params:
                    self.reply = params["inputResponses"]["q"]
                if count < self._rounds:
                    asked = {"inputRequests": {"q": self._question}}
                    state = {"resultType": "input_required", "requestState": str(count + 1)}
                    answer["result"] = {**asked, **state}
            case {"method": "tools/call", "id": identifier}:
                self._call = identifier
                answer = {"id": "q", **self._question}
            case {"id": identifier}:
                answer = {"id": identifier, "error": {"code": -32601, "message": "no"}}
            case _:
                return
        await self.send(answer)


async def ask(
    method: str,
    params: Mapping[str, Any],
    reply: Mapping[str, Any],
    near: str,
    far: str,
    rounds: int = 1,
) -> tuple[Any, Any, Any]:
    """The params that the client got, the answer that the server got, and the final response."""
    server, got = Asking(method, params, rounds), None
    proxy = Server.proxy(server, revision=far)
    async with speaking_to(proxy, near, EVERYTHING) as client:
        call: dict[str, Any] = {"name": "t", "arguments": {}}
        if near not in HANDSHAKE:
            response = await client.ask("tools/call", call, id=7, capabilities=EVERYTHING)
            result = response.get("result", {})
            if result.get("resultType") == "input_required":
                [(key, question)] = result["inputRequests"].items()
                got = question.get("params", {})
                call |= {"inputResponses": {key: reply}}
                if "requestState" in result:
                    call["requestState"] = result["requestState"]
                response = await client.ask("tools/call", call, id=8, capabilities=EVERYTHING)
            return got, server.reply, response
        call_message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
        await client.send(call_message)
        while (message := await client.receive()).get("id") != 7 or "method" in message:
            if "method" in message:
                got = message.get("params", {})
                await client.send({"jsonrpc": "2.0", "id": message["id"], "result": reply})
        return got, server.reply, message


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


@pytest.mark.parametrize("far", [each for each in ALL if each not in HANDSHAKE])
@pytest.mark.parametrize("rounds", [0, 15, 16])
async def test_a_server_asks_only_so_often_in_one_call(far: str, rounds: int) -> None:
    _, reply, response = await ask(ROOTS, {}, {"roots": []}, HANDSHAKE[-1], far, rounds)
    assert reply == (None if rounds == 0 else {"roots": []})
    if rounds < 16:
        assert response["result"]["content"] == []
    else:
        assert response["error"]["message"].endswith(" asked for input too often")


@pytest.mark.parametrize(
    ("new", "lost"),
    [
        ({"content": {"text": "a"}}, {}),
        ({"content": [{"text": "a"}]}, {}),  # several blocks where there was one
        ({"content": {}}, {"content.text": "lost"}),
        ({"content": {"type": "text"}}, {"content.type=None": "degraded"}),
        ({}, {"content": "lost"}),
    ],
)
def test_a_member_of_another_shape_is_not_lost(new: dict[str, Any], lost: dict[str, str]) -> None:
    assert lost_members({"content": {"text": "a"}}, new) == lost
