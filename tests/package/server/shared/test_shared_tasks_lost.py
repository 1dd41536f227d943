"""Tasks whose workers are gone: the others find them, though no client asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kit.requestor import REVISION, Name, Work, connect_requestor
from kit.simulation import on_virtual_clock
from mcpgen_runtime import (
    Context,
    MemoryBus,
    MemorySessionStore,
    MemoryTaskStore,
    Principal,
    SharedState,
    StaticTokens,
)
from package.server.shared.shared_servers import Workers, ended_task, eventually, run_workers

pytestmark = [pytest.mark.processes, pytest.mark.workers]

TOKENS = StaticTokens({"alice-1": Principal("alice", scopes=["write"], claims={"team": ["red"]})})


def in_memory() -> SharedState:
    """A state whose leases run out on the clock of the event loop."""
    tasks = MemoryTaskStore(clock=anyio.current_time)
    return SharedState(MemoryBus(), MemorySessionStore(), tasks=tasks)


class Repeated(Work):
    """A server with tools whose lost calls run again."""

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


def started_at(workers: Workers) -> list[Any]:
    """The servers with a run."""
    return [work for work in workers.servers if work.runs]


@on_virtual_clock
async def test_a_lost_task_runs_again_unasked() -> None:
    async with run_workers(in_memory(), Repeated, auth=TOKENS) as workers:
        workers.any.fields["authorization"] = "Bearer alice-1"
        async with connect_requestor(workers.any) as client:
            call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
            task_id = (await client.result("tools/call", call))["task"]["taskId"]
            old, _ = await stop_worker(workers)
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


@on_virtual_clock
async def test_a_lost_task_runs_without_its_session() -> None:
    async with run_workers(in_memory(), Repeated) as workers:
        await workers.any.initialize(REVISION)
        call = {"name": "repeats", "arguments": {"name": "Ada"}, "task": {}}
        created = await workers.any.ask(REVISION, "tools/call", call)
        old, task_id = await stop_worker(workers)
        await workers.any.request("DELETE", None)
        await eventually(lambda: len(started_at(workers)) == 2)
        [new] = [work for work in started_at(workers) if work is not old]
        assert (new.runs[0]["session"], new.runs[0]["name"]) == (None, "Ada")
        new.go.set()
        store = new.tasks.store
        record = await ended_task(store, task_id)
        assert (record.status, record.message) == ("completed", f"by {new.tasks._worker}")
        assert created.result["task"]["taskId"] == task_id
