"""Tasks of workers that share a store: any of them serves a task, and one that is gone loses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kit.engine import Engine
from kit.limits import SetLimit
from kit.requestor import ACCEPTED, RELATED, REVISION, Name, Requestor, Work, connect_requestor
from mcpgen_runtime import (
    Context,
    MemoryBus,
    MemorySessionStore,
    MemoryTaskStore,
    SharedState,
    StaticTokens,
)
from mcpgen_runtime.runtime import task_store
from mcpgen_runtime.server.shared import redis_tasks
from mcpgen_runtime.server.toolkit import task_calls
from mcpgen_runtime.server.toolkit import tasks as tasks_module
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


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that renew leases often."""
    monkeypatch.setattr(tasks_module, "_RENEW_SECONDS", 0.05)
    monkeypatch.setattr(tasks_module, "POLL_SECONDS", 0.02)


@pytest.fixture
def short_lease(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that run out soon; a worker that is not paused renews them in time."""
    monkeypatch.setattr(redis_tasks, "_LEASE_MS", 500)
    monkeypatch.setattr(task_store, "LEASE_SECONDS", 0.5)


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that learn of each other's changes by the bus alone."""
    for module, name in (
        (tasks_module, "POLL_SECONDS"),
        (tasks_module, "_RENEW_SECONDS"),
        (task_calls, "POLL_SECONDS"),
        (task_store, "LEASE_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 30.0)
    monkeypatch.setattr(redis_tasks, "_LEASE_MS", 30_000)


def running_call(workers: Workers) -> Any:
    """The only call that runs as a task."""
    [call] = [call for work in workers.servers for call in work.tasks._running.values()]
    return call


def pause(workers: Workers) -> Any:
    """Have the worker of the only running task renew no lease; gives the call."""

    async def never() -> None:
        await anyio.sleep_forever()

    call = running_call(workers)
    call.renew = never
    return call


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


async def test_tasks_pass_between_applications_in_memory() -> None:
    state = SharedState(MemoryBus(), MemorySessionStore(), tasks=MemoryTaskStore())
    async with connect_random_workers(state) as (client, _):
        task_id = (await client.start("asks"))["taskId"]
        waiting = await client.begin("tasks/result", {"taskId": task_id})
        for _ in range(2):
            await client.answer(await client.called("elicitation/create"), ACCEPTED)
        assert (await client.response(waiting))["result"]["content"][0]["text"] == "Ada and Ada"


@pytest.mark.requirement("tasks.cancel-terminal-rejected", revisions=(REVISION,))
@pytest.mark.parametrize("number", range(3))
async def test_any_worker_cancels_a_task(number: int, engine: Engine, quick: None) -> None:
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
    async with connect_random_workers(engine.url) as (client, workers):
        places: set[bool] = set()
        for _ in range(4):
            task_id = (await client.start("asks"))["taskId"]
            waiting = await client.begin("tasks/result", {"taskId": task_id})
            for _ in range(2):
                question = await client.called("elicitation/create")
                assert question["params"]["_meta"][RELATED] == {"taskId": task_id}
                asking = question["id"].partition(".")[0]
                places.add(asking == session_worker(workers, task_id))
                await client.answer(question, ACCEPTED)
            response = await client.response(waiting)
            assert response["result"]["content"][0]["text"] == "Ada and Ada"
        assert places == {True, False}


def session_worker(workers: Workers, task_id: str) -> str:
    """Id of the worker that runs a task."""
    [app] = [
        http.app
        for http, work in zip(workers.each, workers.servers, strict=True)
        if task_id in work.tasks._running
    ]
    states: Any = app
    [state] = states._states.values()
    identifier: str = state.worker.id
    return identifier


@pytest.mark.parametrize("method", ABOUT[:2])
async def test_a_task_of_a_lost_worker_fails(
    method: str, engine: Engine, short_lease: None
) -> None:
    async with connect_random_workers(engine.url) as (client, workers):
        task_id = (await client.start("waits"))["taskId"]
        call = pause(workers)
        [other] = [
            http
            for http, work in zip(workers.each, workers.servers, strict=True)
            if not work.tasks._running
        ][:1]
        params = {"taskId": task_id}
        with anyio.fail_after(5):
            message: Any = {"result": {"status": "working"}}
            while message.get("result", {}).get("status") == "working":
                message = (await other.ask(REVISION, method, params)).messages[-1]
        if method == "tasks/get":
            assert message["result"]["status"] == "failed"
            assert "may have been acted on" in message["result"]["statusMessage"]
        else:
            assert "may have been acted on" in message["error"]["message"]
        # The worker goes on, and its result is not taken.
        for work in workers.servers:
            work.go.set()
        await eventually(lambda: call.is_over)
        for each in await about(workers, "tasks/get", task_id):
            assert each["result"]["status"] == "failed"


async def test_a_worker_that_lost_its_task_stops_it(engine: Engine, short_lease: None) -> None:
    async with connect_random_workers(engine.url) as (client, workers):
        await client.start("waits")
        call = running_call(workers)
        store = workers.servers[0].tasks.store
        engine.ask("DEL", f"mcp:{{work}}:lease:{call.record.task_id}")
        claimed = await store.claim(call.record.task_id, "another")
        assert claimed is not None
        await eventually(lambda: any(work.ended.is_set() for work in workers.servers))
        assert not await call.change(message="still here")
        stored = await store.load(claimed.task_id)
        assert stored == claimed


class Repeated(Work):
    """A server with tools whose lost calls run again."""

    def __init__(self) -> None:
        super().__init__()
        again = self.tasks.runner(restart="again")
        self.runs: list[str] = []

        @self.server.tool(runner=again)
        async def repeats(name: str) -> str:
            self.runs.append(name)
            await self.go.wait()
            return f"{name} by {self.tasks._worker}"

        @self.server.tool(runner=again)
        async def repeats_questions(ctx: Context) -> str:
            answer = await ctx.elicit("Who?", Name)
            await self.go.wait()
            return answer.content.name if answer.content else ""


kinds = pytest.mark.parametrize("kind", ["memory", "redis"])


def state_of(kind: str, engine: Engine) -> str | SharedState:
    """A state of a kind."""
    if kind == "redis":
        return engine.url
    return SharedState(MemoryBus(), MemorySessionStore(), tasks=MemoryTaskStore())


def runners(workers: Workers, task_id: str) -> list[Any]:
    """The servers that run a task, as far as they know."""
    return [work for work in workers.servers if task_id in work.tasks._running]


async def lose(workers: Workers, task_id: str) -> tuple[Any, Any]:
    """Have the worker of a task count as dead; gives the server there, and that which took it."""
    [old] = runners(workers, task_id)
    call = old.tasks._running[task_id]

    async def never() -> None:
        """Renew no lease."""

    call.renew = never
    [other] = [
        http for http, work in zip(workers.each, workers.servers, strict=True) if work is not old
    ][:1]
    with anyio.fail_after(5):
        while len(runners(workers, task_id)) < 2:
            reply = await other.ask(REVISION, "tasks/get", {"taskId": task_id})
            assert reply.result["status"] in ("working", "input_required")
    [new] = [work for work in runners(workers, task_id) if work is not old]
    return old, new


@kinds
async def test_a_lost_task_runs_again_by_another_worker(
    kind: str, engine: Engine, short_lease: None
) -> None:
    async with (
        run_workers(state_of(kind, engine), Repeated) as workers,
        connect_requestor(workers.any) as c,
    ):
        workers.use_session()
        call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
        task_id = (await c.result("tools/call", call))["task"]["taskId"]
        old, new = await lose(workers, task_id)
        before = old.tasks._running[task_id]
        # The old run ends first, and neither its report nor its end is taken.
        assert not await before.change(message="still here")
        old.go.set()
        await eventually(lambda: before.is_over)
        stored = await new.tasks.store.load(task_id)
        assert (stored.status, stored.message, stored.fence) == ("working", None, 2)
        new.go.set()
        result = await c.result("tasks/result", {"taskId": task_id})
        assert result["content"][0]["text"] == f"Ada by {new.tasks._worker}"
        assert (old.runs, new.runs) == (["Ada"], ["Ada"])


@kinds
async def test_a_task_that_runs_again_asks_again(
    kind: str, engine: Engine, short_lease: None
) -> None:
    async with (
        run_workers(state_of(kind, engine), Repeated) as workers,
        connect_requestor(workers.any) as c,
    ):
        workers.use_session()
        task_id = (await c.start("repeats_questions"))["taskId"]
        waiting = await c.begin("tasks/result", {"taskId": task_id})
        await c.called("elicitation/create")
        _, new = await lose(workers, task_id)
        await c.answer(await c.called("elicitation/create"), ACCEPTED)
        new.go.set()
        assert (await c.response(waiting))["result"]["content"][0]["text"] == "Ada"


async def test_a_task_runs_a_bounded_number_of_times(
    engine: Engine, short_lease: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks_module, "RUNS", 1)
    async with (
        run_workers(engine.url, Repeated) as workers,
        connect_requestor(workers.any) as client,
    ):
        workers.use_session()
        call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
        task_id = (await client.result("tools/call", call))["task"]["taskId"]
        pause(workers)
        with anyio.fail_after(5):
            task = {"status": "working"}
            while task["status"] == "working":
                task = await client.result("tasks/get", {"taskId": task_id})
        assert "may have been acted on" in task["statusMessage"]


@kinds
async def test_news_of_tasks_reach_their_workers_at_once(
    kind: str, engine: Engine, no_polling: None
) -> None:
    async with connect_random_workers(state_of(kind, engine)) as (client, workers):
        # Answers by any worker, and the end for a worker that waits.
        for _ in range(4):
            task_id = (await client.start("asks"))["taskId"]
            waiting = await client.begin("tasks/result", {"taskId": task_id})
            for _ in range(2):
                await client.answer(await client.called("elicitation/create"), ACCEPTED)
            assert (await client.response(waiting))["result"]["content"][0]["text"] == "Ada and Ada"
        # A cancellation by any worker.
        for http in workers.each:
            task_id = (await client.start("waits"))["taskId"]
            [work] = runners(workers, task_id)
            await http.ask(REVISION, "tasks/cancel", {"taskId": task_id})
            await eventually(work.ended.is_set)
            work.ended = anyio.Event()


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
