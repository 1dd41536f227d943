"""Tasks whose workers are gone: the others find them, though no client asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcpgen_runtime import (
    Context,
    MemoryBus,
    MemorySessionStore,
    MemoryTaskStore,
    Principal,
    SharedState,
    StaticTokens,
)
from mcpgen_runtime.runtime import task_store
from mcpgen_runtime.server.shared import redis_tasks
from mcpgen_runtime.server.toolkit import tasks as tasks_module
from package.requestor import ACCEPTED, REVISION, Name, Work, connect_requestor
from package.server.shared.engine import Engine
from package.server.shared.shared_servers import Workers, ended_task, eventually, run_workers
from package.server.shared.test_task_stores import kinds, record_of, short_leases, store_of

pytestmark = [pytest.mark.processes, pytest.mark.workers]

__all__ = ["short_leases"]
TOKENS = StaticTokens({"alice-1": Principal("alice", scopes=["write"], claims={"team": ["red"]})})


class Repeated(Work):
    """A server with tools whose lost calls run again.

    Attributes:
        runs: What the function has seen of its client, for each run here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[dict[str, Any]] = []

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
            await self.tasks.report(ctx, f"by {self.tasks._worker}")
            return name

        @self.server.tool(runner=self.tasks.runner(restart="again"))
        async def asks_again(ctx: Context) -> str:
            answer = await ctx.elicit("Who?", Name)
            return answer.content.name if answer.content else ""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that run out soon, and are looked for often."""
    monkeypatch.setattr(tasks_module, "_RENEW_SECONDS", 0.05)
    monkeypatch.setattr(tasks_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(tasks_module, "_FIND_SECONDS", 0.05)
    monkeypatch.setattr(redis_tasks, "_LEASE_MS", 500)
    monkeypatch.setattr(task_store, "LEASE_SECONDS", 0.5)


def state_of(kind: str, engine: Engine) -> str | SharedState:
    """A state of a kind."""
    if kind == "redis":
        return engine.url
    return SharedState(MemoryBus(), MemorySessionStore(), tasks=MemoryTaskStore())


async def stop_worker(workers: Workers) -> tuple[Any, str]:
    """Have the worker of the only running task count as dead; gives its server, and the task."""
    [(work, call)] = [
        (work, call) for work in workers.servers for call in work.tasks._running.values()
    ]

    async def never() -> None:
        """Renew no lease, and look for none."""
        await anyio.sleep_forever()

    call.renew = work.tasks.claim = never
    return work, call.record.task_id


def started_at(workers: Workers, tool: str) -> list[Any]:
    """The servers with a run of a tool."""
    return [work for work in workers.servers if work.runs]


@kinds
async def test_a_lost_task_runs_again_unasked(kind: str, engine: Engine, quick: None) -> None:
    async with run_workers(state_of(kind, engine), Repeated, auth=TOKENS) as workers:
        workers.any.fields["authorization"] = "Bearer alice-1"
        async with connect_requestor(workers.any) as client:
            call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
            task_id = (await client.result("tools/call", call))["task"]["taskId"]
            old, _ = await stop_worker(workers)
            await eventually(lambda: len(started_at(workers, "repeats")) == 2)
            [new] = [work for work in started_at(workers, "repeats") if work is not old]
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
            told = await client.until(lambda each: is_report(each, new.tasks._worker))
            assert told["params"]["taskId"] == task_id
            result = await client.result("tasks/result", {"taskId": task_id})
            assert result["content"][0]["text"] == "Ada"


def is_report(message: Mapping[str, Any], worker: str) -> bool:
    """Whether a message is the report of a worker."""
    if message.get("method") != "notifications/tasks/status":
        return False
    text: str = message["params"].get("statusMessage", "")
    return text == f"by {worker}"


@kinds
async def test_a_lost_task_asks_its_client_again(kind: str, engine: Engine, quick: None) -> None:
    async with (
        run_workers(state_of(kind, engine), Repeated) as workers,
        connect_requestor(workers.any) as c,
    ):
        task_id = (await c.start("asks_again"))["taskId"]
        await c.until(lambda each: "input_required" in str(each))
        await stop_worker(workers)
        await eventually(
            lambda: sum(task_id in work.tasks._running for work in workers.servers) > 1
        )
        waiting = await c.begin("tasks/result", {"taskId": task_id})
        await c.answer(await c.called("elicitation/create"), ACCEPTED)
        assert (await c.response(waiting))["result"]["content"][0]["text"] == "Ada"


@kinds
async def test_a_lost_task_fails_unasked(kind: str, engine: Engine, quick: None) -> None:
    async with (
        run_workers(state_of(kind, engine), Work) as workers,
        connect_requestor(workers.any) as client,
    ):
        await client.start("waits")
        _, task_id = await stop_worker(workers)
        store = workers.servers[0].tasks.store
        record = await ended_task(store, task_id)
        assert (record.status, record.fence) == ("failed", 2)
        assert "may have been acted on" in (record.message or "")


@kinds
async def test_a_lost_task_runs_without_its_session(kind: str, engine: Engine, quick: None) -> None:
    async with run_workers(state_of(kind, engine), Repeated) as workers:
        await workers.any.initialize(REVISION)
        call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
        created = await workers.any.ask(REVISION, "tools/call", call)
        old, task_id = await stop_worker(workers)
        await workers.any.request("DELETE", None)
        await eventually(lambda: len(started_at(workers, "repeats")) == 2)
        [new] = [work for work in started_at(workers, "repeats") if work is not old]
        assert (new.runs[0]["session"], new.runs[0]["name"]) == (None, "Ada")
        new.go.set()
        store = new.tasks.store
        record = await ended_task(store, task_id)
        assert (record.status, record.message) == ("completed", f"by {new.tasks._worker}")
        assert created.result["task"]["taskId"] == task_id


@kinds
async def test_a_task_is_lost_until_it_ended(kind: str, engine: Engine, short_leases: None) -> None:
    async with store_of(kind, engine) as store:
        kept, ended, other = (record_of(each) for each in ("kept", "ended", "other"))
        for record in (kept, ended, other):
            await store.create(record)
        assert await store.change(ended.next_version(status="completed"))
        lost: set[str] = set()
        with anyio.fail_after(5):
            while not lost:
                renewed = anyio.current_time()
                assert await store.renew(kept) is not None
                page = await store.page(None, None, 10)
                if anyio.current_time() - renewed < task_store.LEASE_SECONDS / 2:  # none is late
                    lost = {each.task_id for each in page.records}
                await anyio.lowlevel.checkpoint()
        assert lost == {"other"}
        claimed = await store.claim("other", "two")
        assert claimed is not None
        assert await store.change(claimed.next_version(status="failed"))
        assert await store.change(kept.next_version(status="cancelled"))
        if kind == "redis":
            assert engine.ask("EXISTS", "mcp:{tester}:leases") == ":0\r\n"
        assert (await store.page(None, None, 10)).records == ()


@kinds
async def test_a_page_of_lost_tasks_is_bounded(
    kind: str, engine: Engine, short_leases: None
) -> None:
    async with store_of(kind, engine) as store:
        for number in range(5):
            await store.create(record_of(str(number)))
        seen: list[int] = []
        with anyio.fail_after(5):
            while sum(seen) < 5:
                page = await store.page(None, None, 2)
                seen.append(len(page.records))
                for record in page.records:
                    claimed = await store.claim(record.task_id, "two")
                    assert claimed is not None
                    assert await store.change(claimed.next_version(status="failed"))
        assert max(seen) == 2


async def test_a_lost_task_that_expired_is_forgotten(engine: Engine, short_leases: None) -> None:
    async with store_of("redis", engine) as store:
        await store.create(record_of(ttl_ms=20))
        with anyio.fail_after(5):
            while engine.ask("EXISTS", "mcp:{tester}:leases") == ":1\r\n":
                assert (await store.page(None, None, 10)).records == ()
