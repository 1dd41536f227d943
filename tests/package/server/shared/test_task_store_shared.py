"""Stores of tasks, in memory and in an engine: versions, leases and fences, pages and expiry."""

from __future__ import annotations

import json
import shlex
import time
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from kit.cached import Clock
from kit.engine import Engine
from kit.limits import SetLimit
from kit.requestor import requirement
from mcpgen_runtime import InvalidParamsError, MemoryTaskStore, SharedState, TaskRecord, TaskStore
from mcpgen_runtime.errors import InternalError
from package.runtime.test_task_store import shown, take_step
from package.server.shared.shared_servers import in_engine
from package.tables import table

pytestmark = [pytest.mark.processes, pytest.mark.workers]

REVISION = "2025-11-25"
LEASES = "mcp:{tester}:leases"
FACES = "\U0001f600" * 500  # of 4 bytes


class Leases:
    """Lets the leases that tasks have now run out."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._later = 0.0

    def now(self) -> float:
        """The clock of a store in memory."""
        return time.time() + self._later

    def run_out(self) -> None:
        """Let the leases run out, as they do after three seconds without a renewal."""
        self._later += 3.0
        for task_id in self._engine.ask("ZRANGE", LEASES, "0", "-1").split()[2::2]:
            self._engine.ask("DEL", f"mcp:{{tester}}:lease:{task_id}")
            self._engine.ask("ZADD", LEASES, "0", task_id)


@pytest.fixture
def leases(engine: Engine) -> Leases:
    return Leases(engine)


@pytest.fixture
def store(kind: str, state: SharedState, leases: Leases) -> TaskStore:
    store: TaskStore = state.tasks if kind == "redis" else MemoryTaskStore(clock=leases.now)
    return store


def record_of(task_id: str = "t", **members: Any) -> TaskRecord:
    """A new record."""
    now = time.time()
    members = {"owner": "", "ttl_ms": 60_000, "worker": "one", **members}
    return TaskRecord(task_id=task_id, created=now, updated=now, poll_interval_ms=1, **members)


@requirement("tasks.transitions-from-working", "tasks.transitions-from-input-required")
@requirement("tasks.terminal-is-final")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_a_task_ends_once(store: TaskStore, end: Any) -> None:
    first = record_of()
    await store.create(first)
    asking = first.next_version(status="input_required", input_requests={"a": {"method": "x"}})
    assert await store.change(asking)
    assert not await store.change(first.next_version(status="completed"))  # of an older version
    last = asking.next_version(status=end, result={"content": []})
    assert await store.change(last)
    for status in ("working", "input_required", "completed", "failed", "cancelled"):
        assert not await store.change(last.next_version(status=status))
    assert await store.renew(last) is None
    assert await store.claim("t", "two") is None
    assert await store.load("t") == last


async def test_a_record_that_has_not_changed_is_the_one_before(store: TaskStore) -> None:
    await store.create(record_of())
    first = await store.load("t")
    assert first is not None
    assert await store.load("t", first) is first
    changed = first.next_version(status="completed", result={})
    assert await store.change(changed)
    assert await store.load("t", first) == changed
    assert await store.load("never", first) is None


STEPS: dict[str, list[str]] = table("shared_task_steps")
"""Steps of a store, as in `test_task_store`; or leases `run out`."""


@pytest.mark.parametrize("case", STEPS)
async def test_each_store_does_as_recorded(
    case: str, store: TaskStore, leases: Leases, snapshot: SnapshotAssertion
) -> None:
    clock, seen = Clock(), list[str]()
    clock.now = time.time()
    for step in STEPS[case]:
        if step == "run out":
            leases.run_out()
        else:
            seen.append(f"{step} -> {shown(await take_step(store, clock, *shlex.split(step)))}")
    assert seen == snapshot


@requirement("tasks.ttl-expiry-delete", "tasks.cleanup")
async def test_the_time_to_live_ends_everything(store: TaskStore) -> None:
    record = record_of(owner="ada", ttl_ms=50)
    await store.create(record)
    with anyio.fail_after(5):
        while await store.load("t") is not None:
            await anyio.lowlevel.checkpoint()
    assert not await store.change(record.next_version(status="completed"))
    assert await store.renew(record) is None
    assert (await store.page("ada", None, 10)).records == ()


@requirement("tasks.list-own-only")
async def test_pages_have_the_tasks_of_an_owner_in_order(store: TaskStore, kind: str) -> None:
    for number in range(25):
        owner = "bob" if number % 5 == 4 else "ada"
        await store.create(record_of(f"t{number}", owner=owner))
    ids: list[str] = []
    cursor = None
    sizes: list[int] = []
    while True:
        page = await store.page("ada", cursor, 8)
        ids += [each.task_id for each in page.records]
        sizes.append(len(page.records))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert ids == [f"t{number}" for number in range(25) if number % 5 != 4]
    assert sizes == [8, 8, 4]
    for garbage in ("x" * 16, "", "0" * 16 + "\u0661", "0" * 201, "0" * 15):
        if kind == "redis" or garbage != "0" * 15:
            with pytest.raises(InvalidParamsError):
                await store.page("ada", garbage, 8)
    if kind == "redis":
        for valid in ("0" * 16, "0" * 200):
            assert len((await store.page("ada", valid, 8)).records) == 8


@in_engine
async def test_a_record_that_is_too_large_is_refused(store: TaskStore, set_limit: SetLimit) -> None:
    record = record_of()
    await store.create(record)
    changed = record.next_version(result={"a": "b" * 1000})
    limit = len(msgspec.json.encode(changed))
    set_limit("pkg.server.shared.redis_tasks.RECORD_BYTES", limit)
    with pytest.raises(InternalError, match=f"at most {limit} bytes, got {limit + 1}"):
        await store.change(msgspec.structs.replace(changed, result={"a": "b" * 1001}))
    assert await store.change(changed)


@in_engine
async def test_a_page_has_what_a_list_shows(store: TaskStore, snapshot: SnapshotAssertion) -> None:
    rows = json.dumps(table("listed_tasks")).replace("LONG", FACES + FACES[:1])
    for record in msgspec.json.decode(rows, type=list[TaskRecord]):
        await store.create(record)
    records = (await store.page("ada", None, 5)).records
    shown = [str(msgspec.to_builtins(each)).replace(FACES, "500 faces") for each in records]
    assert shown == snapshot


@in_engine
async def test_tasks_that_expired_leave_the_list_of_their_owner(
    store: TaskStore, engine: Engine
) -> None:
    for name in ("old", "older", "oldest"):
        await store.create(record_of(name, owner="ada", ttl_ms=500))
    with anyio.fail_after(5):
        while await store.load("oldest") is not None:
            await anyio.lowlevel.checkpoint()
    await store.create(record_of("new", owner="ada"))
    [key] = [each for each in engine.ask("KEYS", "*tasks*").split() if "tasks" in each]
    assert engine.ask("ZCARD", key) == ":2\r\n"  # each new one looks at the two oldest
    assert int(engine.ask("PTTL", key).strip(":\r\n")) > 0


@in_engine
async def test_a_lost_task_that_expired_is_forgotten(
    store: TaskStore, engine: Engine, leases: Leases
) -> None:
    await store.create(record_of(ttl_ms=20))
    with anyio.fail_after(5):
        while await store.load("t") is not None:
            await anyio.lowlevel.checkpoint()
    assert engine.ask("EXISTS", LEASES) == ":1\r\n"
    leases.run_out()
    assert (await store.page(None, None, 10)).records == ()
    assert engine.ask("EXISTS", LEASES) == ":0\r\n"


async def test_of_many_that_claim_a_task_one_gets_it(store: TaskStore, leases: Leases) -> None:
    got: list[TaskRecord | None] = []
    await store.create(record_of())
    leases.run_out()
    async with anyio.create_task_group() as tasks:

        async def claim(number: int) -> None:
            got.append(await store.claim("t", str(number)))

        for number in range(20):
            tasks.start_soon(claim, number)
    [claimed] = [each for each in got if each is not None]
    assert claimed.fence == 2
