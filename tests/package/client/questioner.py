"""Clients that are asked something, by a request or by a result as their revision has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anyio

from kit.live import TEXT, FakeServer
from kit.wire import PER_REQUEST
from mcpgen_runtime.client.async_client import ClientHandlers, connect

KEY = "the key"


@dataclass(frozen=True)
class Outcome:
    """A client's reaction to a question.

    Attributes:
        answer: What it answered, as wire object; `None` if it did not.
        code: Code of the error that it answered with, where it answers errors.
        raised: What the call raised on whose behalf it was asked, where it does not.
        heard: All that the client sent, but for the opening.
        opening: What it sent to open the session.
    """

    answer: Any
    code: int | None
    raised: Exception | None
    heard: list[dict[str, Any]]
    opening: list[dict[str, Any]]

    @property
    def refused(self) -> bool:
        """Whether it did not answer, whichever way it said so."""
        return self.answer is None


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


def declared_capabilities(outcome: Outcome) -> dict[str, Any]:
    """Capabilities that the client declared when it opened the session."""
    params = outcome.opening[0]["params"]
    if "capabilities" in params:
        capabilities: dict[str, Any] = params["capabilities"]
        return capabilities
    in_meta: dict[str, Any] = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    return in_meta
