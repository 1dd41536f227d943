"""State in memory, which the applications of one event loop share: on asyncio and on trio."""

from __future__ import annotations

import json

import pytest

from kit.asgi_client import SESSION
from kit.wire import CHANGED, SESSIONS, request
from mcpgen_runtime import Limits, MemoryBus, MemorySessionStore, SharedState
from package.server.shared.shared_servers import run_session

pytestmark = [pytest.mark.processes, pytest.mark.workers]

newest = pytest.mark.parametrize("revision", SESSIONS[-1:])


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops, since no library of an engine is needed."""
    name: str = request.param
    return name


def in_memory() -> SharedState:
    return SharedState(MemoryBus(), MemorySessionStore())


@newest
async def test_applications_of_one_loop_serve_one_session(revision: str) -> None:
    async with run_session(in_memory(), revision) as workers:
        for http in workers.each:
            reply = await http.ask(revision, "tools/call", {"name": "about", "arguments": {}})
            seen = json.loads(reply.result["content"][0]["text"])
            assert seen["session"] == workers.any.fields[SESSION]
        assert (await workers.each[0].delete()).status == 200
        for http in workers.each:
            assert (await http.ask(revision, "ping")).status == 404


@newest
async def test_subscriptions_by_any_worker_count_at_each(revision: str) -> None:
    uris = ["note://" + "x" * 5000 + str(number) for number in range(4)]
    async with run_session(in_memory(), revision, limits=Limits(session_bytes=20_000)) as workers:
        statuses = [
            (await http.ask(revision, "resources/subscribe", {"uri": uri})).status
            for http, uri in zip([*workers.each, workers.each[0]], uris, strict=True)
        ]
        assert statuses == [200, 200, 200, 503]


@newest
async def test_answers_and_changes_pass_between_applications(revision: str) -> None:
    async with run_session(in_memory(), revision) as workers:
        call = request(revision, "tools/call", {"name": "greet", "arguments": {}})
        async with workers.each[0].stream("POST", call) as stream:
            question = await stream.message()
            answer = {"action": "accept", "content": {"name": "Ada"}}
            message = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
            assert (await workers.each[1].post(message)).status == 202
            assert (await stream.messages())[-1]["result"]["content"][0]["text"] == "Hello, Ada"
        async with workers.each[2].stream("GET") as stream:
            workers.servers[0].server.tool("added")(lambda: "added")
            assert (await stream.message())["method"] == CHANGED["toolsListChanged"]
