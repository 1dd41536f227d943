"""Tasks of workers that share a store: any of them serves a task, and one that is gone loses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.engine import Engine
from kit.limits import SetLimit
from kit.requestor import (
    ACCEPTED,
    RELATED,
    REVISION,
    Name,
    Requestor,
    Work,
    connect_requestor,
    requirement,
)
from kit.simulation import on_virtual_clock
from mcpgen_runtime import (
    Context,
    MemoryBus,
    MemorySessionStore,
    MemoryTaskStore,
    Principal,
    SharedState,
    StaticTokens,
    TaskRecord,
    TaskStore,
)
from package.server.shared.shared_servers import Workers, ended_task, eventually, run_workers

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


@requirement("tasks.get-request", "tasks.result-blocks")
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


@requirement("tasks.cancel-terminal-rejected")
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


@requirement("tasks.input-request-related-task")
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
        for _ in range(4):
            task_id = (await client.start("asks"))["taskId"]
            waiting = await client.begin("tasks/result", {"taskId": task_id})
            question = await client.called("elicitation/create")
            error = {"code": -1, "message": "not now"}
            await client.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
            assert (await client.response(waiting))["result"]["isError"]


@requirement("tasks.reject-foreign", "tasks.list-own-only", "tasks.bind-context")
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


WITH_CLAIMS = StaticTokens(
    {"alice-1": Principal("alice", scopes=["write"], claims={"team": ["red"]})}
)


def in_memory(tasks: TaskStore) -> SharedState:
    """A state with a store of tasks."""
    return SharedState(MemoryBus(), MemorySessionStore(), tasks=tasks)


@on_virtual_clock
async def test_a_task_is_cancelled_by_another_worker_before_anybody_asks_the_store() -> None:
    async with connect_random_workers(in_memory(MemoryTaskStore())) as (client, workers):
        for http in workers.each * 4:  # also at the one that runs it
            task_id = (await client.start("waits"))["taskId"]
            about = {"taskId": task_id}
            async with anyio.create_task_group() as waiting:
                for each in workers.each:
                    waiting.start_soon(partial(each.ask, REVISION, "tasks/result", about, id=9))
                await anyio.wait_all_tasks_blocked()
                began = anyio.current_time()
                await http.ask(REVISION, "tasks/cancel", about)
            await eventually(lambda: any(work.ended.is_set() for work in workers.servers))
            assert anyio.current_time() == began  # not only at the next look, in 0.2 s
            for work in workers.servers:
                work.ended = anyio.Event()


class Repeated(Work):
    """A server with tools whose lost calls run again."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[dict[str, Any]] = []
        self.message = f"by {id(self)}"

        @self.server.tool(runner=self.tasks.runner(restart="again"))
        async def repeats(name: str, ctx: Context) -> str:
            principal = ctx.principal
            self.runs.append(
                {
                    "name": name,
                    "session": ctx.session_id,
                    "revision": ctx.revision,
                    "capabilities": ctx.client_capabilities,
                    "subject": principal.subject,
                    "scopes": principal.scopes,
                    "claims": principal.claims,
                }
            )
            await self.go.wait()
            await self.tasks.report(ctx, self.message)
            return name

        @self.server.tool(runner=self.tasks.runner(restart="again"))
        async def asks_again(ctx: Context) -> str:
            answer = await ctx.elicit("Who?", Name)
            return answer.content.name if answer.content else ""


class Reached(MemoryTaskStore):
    """A store of tasks on the clock of the event loop, which workers that stopped do not reach."""

    def __init__(self) -> None:
        super().__init__(clock=anyio.current_time)
        self.stopped: set[str] = set()

    async def renew(self, record: TaskRecord) -> int | None:
        if record.worker in self.stopped:
            await anyio.sleep_forever()
        return await super().renew(record)

    async def claim(self, task_id: str, worker: str) -> TaskRecord | None:
        if worker in self.stopped:
            await anyio.sleep_forever()
        return await super().claim(task_id, worker)


async def stop_worker(workers: Workers, store: Reached, task_id: str) -> Any:
    """Have the worker of a task, the only one with a run, count as dead; gives its server."""
    record = await store.load(task_id)
    assert record is not None
    store.stopped.add(record.worker)
    [work] = started_at(workers)
    return work


def started_at(workers: Workers) -> list[Any]:
    """The servers with a run."""
    return [work for work in workers.servers if work.runs]


@on_virtual_clock
async def test_a_lost_task_runs_again_unasked() -> None:
    store = Reached()
    async with run_workers(in_memory(store), Repeated, auth=WITH_CLAIMS) as workers:
        workers.any.fields["authorization"] = "Bearer alice-1"
        async with connect_requestor(workers.any) as client:
            call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
            task_id = (await client.result("tools/call", call))["task"]["taskId"]
            old = await stop_worker(workers, store, task_id)
            await eventually(lambda: len(started_at(workers)) == 2)
            [new] = [work for work in started_at(workers) if work is not old]
            assert new.runs == old.runs
            [seen] = new.runs
            assert (seen["subject"], seen["claims"]) == ("alice", {"team": ["red"]})
            assert (seen["session"], seen["scopes"]) == (
                workers.any.fields["mcp-session-id"],
                {"write"},
            )
            old.go.set()
            new.go.set()
            # The client of the session hears of the second run, by the worker that has its stream.
            told = await client.until(lambda each: is_report(each, new.message))
            assert told["params"]["taskId"] == task_id
            result = await client.result("tasks/result", {"taskId": task_id})
            assert result["content"][0]["text"] == "Ada"


def is_report(message: Mapping[str, Any], text: str) -> bool:
    """Whether a message is the report of a worker."""
    if message.get("method") != "notifications/tasks/status":
        return False
    return bool(message["params"].get("statusMessage", "") == text)


@on_virtual_clock
async def test_a_lost_task_runs_without_its_session() -> None:
    store = Reached()
    async with run_workers(in_memory(store), Repeated) as workers:
        await workers.any.initialize(REVISION)
        call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
        created = await workers.any.ask(REVISION, "tools/call", call)
        task_id = created.result["task"]["taskId"]
        old = await stop_worker(workers, store, task_id)
        await workers.any.request("DELETE", None)
        await eventually(lambda: len(started_at(workers)) == 2)
        [new] = [work for work in started_at(workers) if work is not old]
        assert (new.runs[0]["session"], new.runs[0]["name"]) == (None, "Ada")
        new.go.set()
        record = await ended_task(store, task_id)
        assert (record.status, record.message) == ("completed", new.message)
