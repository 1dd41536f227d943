"""Clients that are asked something, by a request or by a result as their revision has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anyio

from kit.live import TEXT, FakeServer
from kit.wire import PER_REQUEST
from mcpgen_runtime import ClientHandlers, LocalProtocolError, RemoteProtocolError, connect

KEY = "the key"


class Answers(ClientHandlers):
    """Gives one answer to each question, or raises it, and keeps the questions."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    async def reply(self, params: Any, ctx: Any) -> Any:
        """Keep a question, and answer it."""
        self.asked.append(params)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass(frozen=True)
class Outcome:
    """A client's reaction to a question."""

    answer: Any
    code: int | None
    raised: Exception | None
    heard: list[dict[str, Any]]
    opening: list[dict[str, Any]]

    @property
    def refused(self) -> bool:
        """Whether it did not answer, whichever way it said so."""
        return self.answer is None

    @property
    def verdict(self) -> Any:
        """Its answer; else whether it refused the question, or kept an answer back."""
        if self.answer is not None:
            return self.answer
        if self.code == -32602 or isinstance(self.raised, RemoteProtocolError):
            return "question refused"
        kept_back = self.code == -32603 or isinstance(self.raised, LocalProtocolError)
        return "kept back" if kept_back else "failed"

    @property
    def declared(self) -> dict[str, Any]:
        """Capabilities that it declared when it opened the session."""
        params = self.opening[0]["params"]
        if "capabilities" in params:
            capabilities: dict[str, Any] = params["capabilities"]
            return capabilities
        return self.declared_each()[0]

    def declared_each(self) -> list[dict[str, Any]]:
        """Capabilities that it declared with each request, where requests declare them."""
        key = "io.modelcontextprotocol/clientCapabilities"
        return [each["params"]["_meta"][key] for each in [*self.opening, *self.heard]]


async def ask_client(
    revision: str,
    method: str,
    params: Any,
    handlers: ClientHandlers | None,
    capabilities: dict[str, Any] | None = None,
) -> Outcome:
    """Ask a client with these handlers; `params` may be `None` for none."""
    server = FakeServer(revision)
    opening = connect(server, revision=revision, handlers=handlers, capabilities=capabilities)
    asked: dict[str, Any] = {"method": method}
    if params is not None:
        asked["params"] = params
    async with opening as client:
        if revision in PER_REQUEST:
            return await _by_result(server, client, asked)
        await server.say({"jsonrpc": "2.0", "id": "asked", **asked})
        told = await server.next()
        assert told["id"] == "asked"
        code = told.get("error", {}).get("code")
        return Outcome(told.get("result"), code, None, server.heard, server.opening)


async def _by_result(server: FakeServer, client: Any, asked: dict[str, Any]) -> Outcome:
    raised: list[Exception] = []
    answers: list[Any] = []

    async def call() -> None:
        try:
            await client.call_tool("any")
        except Exception as error:
            raised.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        wanted = {"resultType": "input_required", "inputRequests": {KEY: asked}}
        await server.answer(await server.next(), wanted)
        retry = await server.next()
        answers.append(retry["params"]["inputResponses"][KEY])
        await server.answer(retry, TEXT)
    return Outcome(
        answers[0] if answers else None,
        None,
        raised[0] if raised else None,
        server.heard,
        server.opening,
    )
