"""A call that became a task: its server may ask on any stream that the client has open.

Source: basic/utilities/tasks#input-required-status (2025-11-25).
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kit.http_script import Script, connect_scripted, initialize_result
from kit.http_server import Asked, Reply
from kit.rules import revisions_holding
from mcpgen_runtime import ClientHandlers

pytestmark = pytest.mark.processes

RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
QUESTION = {
    "jsonrpc": "2.0",
    "id": "q",
    "method": "elicitation/create",
    "params": {
        "message": "Which city?",
        "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "_meta": RELATED,
    },
}
WORKING = {
    "taskId": "t1",
    "status": "working",
    "createdAt": "2025-11-25T00:00:00Z",
    "lastUpdatedAt": "2025-11-25T00:00:00Z",
    "ttl": 60000,
}


class Asking(Script):
    """A server that makes a task of a call, and asks for the task on one of the open streams.

    Args:
        stream: The request on whose stream it asks: `GET`, or another method.
    """

    def __init__(self, revision: str, stream: str) -> None:
        super().__init__(revision, "abc")
        self.task = anyio.Event()
        self.answered = anyio.Event()
        self.on = {"tools/call": self.make_task, "response": self.take}
        self.on[stream] = self.get if stream == "GET" else self.ask

    async def _initialize(self, asked: Asked, reply: Reply) -> None:
        result = initialize_result(self.revision)
        tasks: dict[str, Any] = {"requests": {"tools": {"call": {}}}}
        result["capabilities"] = {**result["capabilities"], "tasks": tasks}
        message = {"jsonrpc": "2.0", "id": asked.id, "result": result}
        await reply.json(message, 200, **self.session_fields())

    async def make_task(self, asked: Asked, reply: Reply) -> None:
        await reply.json({"jsonrpc": "2.0", "id": asked.id, "result": {"task": WORKING}})
        self.task.set()

    async def get(self, asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await self.task.wait()
        await reply.event(QUESTION)
        await reply.gone()

    async def ask(self, asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.event(QUESTION)
        await self.answered.wait()
        completed = {**WORKING, "status": "completed"}
        await reply.event({"jsonrpc": "2.0", "id": asked.id, "result": completed})
        await reply.end()

    async def take(self, asked: Asked, reply: Reply) -> None:
        await reply.whole(202)
        self.answered.set()


@pytest.mark.requirement("http.tasks-any-stream")
@pytest.mark.parametrize("revision", revisions_holding("http.tasks-any-stream"))
@pytest.mark.parametrize("stream", ["GET", "tasks/get"])
async def test_a_question_of_a_task_is_answered_on_any_stream(revision: str, stream: str) -> None:
    questions: list[Any] = []

    class User(ClientHandlers):
        async def elicit(self, params: Any, ctx: Any) -> Any:
            questions.append((params.message, dict(ctx.meta)))
            return {"action": "accept", "content": {"city": "Oslo"}}

    async with connect_scripted(Asking(revision, stream), handlers=User()) as (client, server):
        if stream == "GET":
            await server.until("GET")
        call = {"name": "plan", "arguments": {}, "task": {"ttl": 60000}}
        made = await client.request("tools/call", call)
        assert made.task.task_id == "t1"
        if stream != "GET":
            assert (await client.request("tasks/get", {"taskId": "t1"})).status == "completed"
        (answer,) = await server.until("response")
    assert questions == [("Which city?", RELATED)]
    content = {"action": "accept", "content": {"city": "Oslo"}}
    assert answer.message == {"jsonrpc": "2.0", "id": "q", "result": content}
    assert answer.fields["mcp-session-id"] == "abc"
