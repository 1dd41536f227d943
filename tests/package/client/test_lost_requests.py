"""Requests whose answers are lost: only what is safe to repeat is sent again."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import pytest

from kit.live import FakeServer
from kit.simulation import on_virtual_clock
from kit.wire import both_lifecycles
from mcpgen_runtime import OutgoingMessage, RemoteError, ResponseLostError, connect
from mcpgen_runtime.errors import RequestLost

pytestmark = on_virtual_clock
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, "annotations": annotations}
    for name, annotations in (
        ("reads", {"readOnlyHint": True}),
        ("sets", {"idempotentHint": True}),
        ("adds", {"readOnlyHint": False, "idempotentHint": False}),
        ("unknown", {}),
    )
]


class LosesAnswers(FakeServer):
    """A server that lists its tools; of other requests it refuses some, and loses all answers."""

    def __init__(self, revision: str, refusals: list[bool] | None = None) -> None:
        super().__init__(revision)
        self._refusals = refusals

    async def receive(self) -> bytes:
        message = await super().receive()
        lost = json.loads(message).get("lost")
        if lost is not None:
            raise RequestLost(lost, ResponseLostError("cut"))
        return message

    async def send(self, message: OutgoingMessage) -> None:
        known = len(self.heard)
        await super().send(message)
        for request in self.heard[known:]:
            if request["method"] == "tools/list":
                await self.answer(request, {"tools": TOOLS, "ttlMs": 0, "cacheScope": "private"})
            elif self._refusals is None:
                await self.say({"lost": request["id"]})
            elif self._refusals:
                data = {"begun": self._refusals.pop()}
                refusal = {"code": -32603, "message": "too much at once", "data": data}
                await self.say({"jsonrpc": "2.0", "id": request["id"], "error": refusal})
            else:
                await self.answer(request, {"content": [], "contents": []})


SENT: list[tuple[str, Callable[[Any], Awaitable[Any]], bool]] = [
    ("reads", lambda client: client.call_tool("reads"), True),
    ("sets", lambda client: client.call_tool("sets"), True),
    ("adds", lambda client: client.call_tool("adds"), False),
    ("unknown", lambda client: client.call_tool("unknown"), False),
    ("read", lambda client: client.read_resource("x://a"), True),
    ("custom", lambda client: client.request_raw("acme/pay", {"name": "reads"}), False),
]


@both_lifecycles
@pytest.mark.parametrize("refused", [None, "unbegun", "begun"])
@pytest.mark.parametrize(("ask", "safe"), [row[1:] for row in SENT], ids=[row[0] for row in SENT])
async def test_a_lost_or_refused_request_is_repeated_only_where_that_is_safe(
    revision: str, ask: Callable[[Any], Awaitable[Any]], safe: bool, refused: str | None
) -> None:
    server = LosesAnswers(revision, [refused == "begun"] * 2 if refused else None)
    repeated = safe or refused == "unbegun"
    async with connect(server, revision=revision) as client:
        await client.list_tools()
        error = RemoteError if refused else ResponseLostError
        with nullcontext() if refused and repeated else pytest.raises(error, match=r"cut|too much"):
            await ask(client)
        sent = [said for said in server.heard if said["method"] != "tools/list"]
    assert (len(sent) > 1) == repeated
    assert len(sent) == 3 or not (refused and repeated)
