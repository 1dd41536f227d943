"""Tasks of workers that share a store: any of them serves a task, and one that is gone loses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kit.engine import Engine
from kit.limits import SetLimit
from kit.requestor import ACCEPTED, RELATED, REVISION, Requestor, Work, connect_requestor
from mcpgen_runtime import (
    MemoryTaskStore,
    SharedState,
    StaticTokens,
)
from package.server.shared.shared_servers import Workers, eventually, run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

ABOUT = ("tasks/get", "tasks/result", "tasks/cancel")
TOKENS = StaticTokens({"alice-1": "alice", "bob-1": "bob"})


@asynccontextmanager
async def connect_random_workers(
    shared: str | SharedState,
) -> AsyncIterator[tuple[Requestor, Workers]]:
    """A client whose requests reach random workers, in a session of the revision with tasks."""
    async with run_workers(shared, Work) as workers, connect_requestor(workers.any) as client:
        workers.use_session()
        yield client, workers


async def about(workers: Workers, method: str, task_id: str) -> list[Any]:
    """The response to a request about a task, at each worker."""
    replies = [await http.ask(REVISION, method, {"taskId": task_id}) for http in workers.each]
    return [reply.messages[-1] for reply in replies]


@pytest.mark.requirement("tasks.get-request", "tasks.result-blocks", revisions=(REVISION,))
async def test_any_worker_serves_a_task(engine: Engine) -> None:
    async with connect_random_workers(engine.url) as (client, workers):
        task_id = (await client.start("waits"))["taskId"]
        for each in await about(workers, "tasks/get", task_id):
            assert each["result"]["status"] == "working"
        waiting = [await client.begin("tasks/result", {"taskId": task_id}) for _ in range(6)]
        for work in workers.servers:
            work.go.set()
        for identifier in waiting:
            response = await client.response(identifier)
            assert response["result"]["content"][0]["text"] == "done"
        for each in await about(workers, "tasks/get", task_id):
            assert each["result"]["status"] == "completed"


@pytest.mark.requirement("tasks.cancel-terminal-rejected", revisions=(REVISION,))
@pytest.mark.parametrize("number", range(3))
async def test_any_worker_cancels_a_task(number: int, engine: Engine) -> None:
    async with connect_random_workers(engine.url) as (client, workers):
        task_id = (await client.start("waits"))["taskId"]
        params = {"taskId": task_id}
        reply = await workers.each[number].ask(REVISION, "tasks/cancel", params)
        assert reply.result["status"] == "cancelled"
        await eventually(lambda: any(work.ended.is_set() for work in workers.servers))
        for each in await about(workers, "tasks/cancel", task_id):
            assert each["error"]["code"] == -32602
        for each in await about(workers, "tasks/result", task_id):
            assert "was cancelled" in each["error"]["message"]


@pytest.mark.requirement("tasks.input-request-related-task", revisions=(REVISION,))
async def test_answers_reach_a_task_by_any_worker(engine: Engine) -> None:
    async with connect_random_workers(engine.url) as (client, _):
        for _ in range(4):
            task_id = (await client.start("asks"))["taskId"]
            waiting = await client.begin("tasks/result", {"taskId": task_id})
            for _ in range(2):
                question = await client.called("elicitation/create")
                assert question["params"]["_meta"][RELATED] == {"taskId": task_id}
                await client.answer(question, ACCEPTED)
            response = await client.response(waiting)
            assert response["result"]["content"][0]["text"] == "Ada and Ada"


@pytest.mark.requirement(
    "tasks.reject-foreign", "tasks.list-own-only", "tasks.bind-context", revisions=(REVISION,)
)
async def test_a_task_of_another_owner_is_unknown_everywhere(engine: Engine) -> None:
    async with run_workers(engine.url, Work, auth=TOKENS) as workers:
        bob = workers.any.another()
        bob.fields["authorization"] = "Bearer bob-1"
        await bob.initialize(REVISION)
        workers.any.fields["authorization"] = "Bearer alice-1"
        await workers.any.initialize(REVISION)
        call = {"name": "waits", "arguments": {}, "task": {}}
        created = await workers.any.ask(REVISION, "tools/call", call)
        task_id = created.result["task"]["taskId"]
        for _ in range(5):
            for method in ABOUT:
                reply = await bob.ask(REVISION, method, {"taskId": task_id})
                unknown = await bob.ask(REVISION, method, {"taskId": "x"})
                assert reply.error["code"] == unknown.error["code"] == -32602
            assert (await bob.ask(REVISION, "tasks/list")).result == {"tasks": []}
            [listed] = (await workers.any.ask(REVISION, "tasks/list")).result["tasks"]
            assert listed["taskId"] == task_id


class Large(Work):
    """A server with a tool whose result is large."""

    def __init__(self) -> None:
        super().__init__()
        self.server.tool("large", runner=self.tasks)(lambda: "x" * 5000)


async def test_a_result_that_is_too_large_fails_its_task(
    engine: Engine, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.shared.redis_tasks.RECORD_BYTES", 2000)
    async with run_workers(engine.url, Large) as workers, connect_requestor(workers.any) as client:
        task_id = (await client.start("large"))["taskId"]
        task = await client.reaches(task_id, "failed")
        assert "at most 2000 bytes" in task["statusMessage"]


async def test_a_store_of_the_user_s_own_is_kept(engine: Engine) -> None:
    own = MemoryTaskStore()
    async with run_workers(engine.url, lambda: Work(store=own)) as workers:
        assert all(work.tasks.store is own for work in workers.servers)
