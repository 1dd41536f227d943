"""A client on the wire that answers what it is asked, in the way of its revision."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from kit.wire import HANDSHAKE, RawEnd, facts, request, speaking_to

EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""Capabilities of a client that supports every request of a server."""

SAMPLED: Mapping[str, Any] = {
    "role": "assistant",
    "content": {"type": "text", "text": "Paris"},
    "model": "m",
    "stopReason": "endTurn",
}
ASK = "sampling/createMessage"
HI = {"role": "user", "content": {"type": "text", "text": "hi"}}
TOOL = {"name": "clock", "description": "Tells the time", "inputSchema": {"type": "object"}}
USE = {"type": "tool_use", "id": "u1", "name": "clock", "input": {"zone": "UTC"}}

ROOTS: Mapping[str, Any] = {"roots": [{"uri": "file:///top", "name": "Top"}]}


def accept_result(**content: Any) -> dict[str, Any]:
    """The answer of a user who filled in a form."""
    return {"action": "accept", "content": content}


Answer: TypeAlias = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]


class Respondent:
    """Calls what a server offers, and answers what it wants to know for that."""

    def __init__(
        self, end: RawEnd, answers: Mapping[str, Answer], capabilities: Mapping[str, Any]
    ) -> None:
        self.end = end
        self.answers = answers
        self.capabilities = capabilities
        self.asked: list[tuple[str, Any]] = []
        self.keys: list[str] = []
        self.rounds: list[dict[str, Any]] = []
        self._last = 0

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool; gives the last answer, a result or an error."""
        return await self.ask("tools/call", {"name": tool, "arguments": dict(arguments or {})})

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send any request; gives the last answer."""
        answer = await self._ask(method, params)
        while answer.get("result", {}).get("resultType") == "input_required":
            answer = await self._ask(method, {**params, **self.answered(answer["result"])})
        return answer

    def answered(self, result: dict[str, Any]) -> dict[str, Any]:
        """Params that a retry adds: responses to all input requests, and the request state."""
        self.rounds.append(result)
        added: dict[str, Any] = {"inputResponses": {}}
        for key, wanted in result.get("inputRequests", {}).items():
            self.keys.append(key)
            added["inputResponses"][key] = self._answer(wanted)
        if "requestState" in result:
            added["requestState"] = result["requestState"]
        return added

    def _answer(self, wanted: Mapping[str, Any]) -> Any:
        params = wanted.get("params")
        self.asked.append((wanted["method"], params))
        answer = self.answers[wanted["method"]]
        return answer(params) if callable(answer) else answer

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._last += 1
        revision = self.end.revision
        await self.end.send(
            request(revision, method, params, id=self._last, capabilities=self.capabilities)
        )
        while True:
            message = await self.end.receive()
            if "method" in message and "id" in message:
                result = self._answer(message)
                kind = "error" if "code" in result else "result"
                await self.end.send({"jsonrpc": "2.0", "id": message["id"], kind: result})
            elif message.get("id") == self._last:
                return message


@asynccontextmanager
async def connect_respondent(
    server: Any,
    revision: str,
    answers: Mapping[str, Answer] | None = None,
    capabilities: Mapping[str, Any] = EVERYTHING,
) -> AsyncIterator[Respondent]:
    """A client of a revision that has opened a server."""
    opening = capabilities if revision in HANDSHAKE else None
    async with speaking_to(server, revision, opening) as end:
        yield Respondent(end, answers or {}, capabilities)


def refusal_code(revision: str) -> int:
    """The code by which a revision says that a capability is missing."""
    return facts(revision).errors.missing_capability or -32600
