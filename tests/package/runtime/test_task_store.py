"""Records of tasks in memory: their forms on the wire, shares, leases, pages and expiry."""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from kit.cached import Clock
from mcpgen_runtime import InvalidParamsError, MemoryTaskStore, TaskPage, TaskRecord
from mcpgen_runtime.errors import InternalError
from package.tables import table

pytestmark = pytest.mark.on_asyncio
NOW = 1_000_000.0


def record(task_id: str = "t", **members: Any) -> TaskRecord:
    """A new record."""
    defaults = {"owner": "me", "created": NOW, "updated": NOW + 1.5, "ttl_ms": None}
    return TaskRecord(task_id=task_id, **{"poll_interval_ms": 7, **defaults, **members})


HEAD = {
    "taskId": "t",
    "createdAt": "1970-01-12T13:46:40.000Z",
    "lastUpdatedAt": "1970-01-12T13:46:41.500Z",
}
NEW = {**HEAD, "ttlMs": None, "pollIntervalMs": 7}
CORE = {**HEAD, "ttl": None, "pollInterval": 7}
ERROR = {"isError": True}


@pytest.mark.parametrize(
    ("members", "wire", "core"),
    [
        ({}, {"status": "working"}, {"status": "working"}),
        (
            {"status": "input_required", "input_requests": {"a": 1}},
            {"status": "input_required", "inputRequests": {"a": 1}},
            ...,
        ),
        (
            {"status": "completed", "result": {"a": 1}, "message": "m"},
            {"status": "completed", "result": {"a": 1}, "statusMessage": "m"},
            ...,
        ),
        (
            {"status": "failed", "error": {"code": 1}, "message": ""},
            {"status": "failed", "error": {"code": 1}, "statusMessage": ""},
            ...,
        ),
        ({"status": "cancelled"}, {"status": "cancelled"}, ...),
        (
            {"status": "completed", "result": ERROR},
            {"status": "completed", "result": ERROR},
            {"status": "failed", "statusMessage": "the tool reported an error"},
        ),
        (
            {
                "status": "completed",
                "message": "m",
                "result": {**ERROR, "content": [{"data": "x"}, {"text": ""}, {"text": "no"}]},
            },
            ...,
            {"status": "failed", "statusMessage": "no"},
        ),
    ],
)
def test_a_record_has_a_form_on_the_wire_of_each_revision(
    members: Any, wire: Any, core: Any
) -> None:
    made = record(**members)
    if wire is not ...:
        assert made.wire() == {**NEW, **wire}
        seed = {name: value for name, value in wire.items() if name.startswith("status")}
        assert made.seed() == {**NEW, **seed}
    if core is ...:
        core = {"status": made.status}
        core |= {} if made.message is None else {"statusMessage": made.message}
    assert made.core_wire() == {**CORE, **core}


def test_a_record_expires_after_its_time_to_live() -> None:
    assert record().expires == float("inf")
    made = record(ttl_ms=1500)
    assert made.expires == NOW + 1.5
    assert (made.wire()["ttlMs"], made.core_wire()["ttl"]) == (1500, 1500)


STEPS: dict[str, Any] = table("task_store_steps")
"""Steps of a store in memory with a `limit` and a `size`: time passes (`later`), or a method is
called. A record is given by its id and members; `size` is that of its JSON."""


@pytest.mark.parametrize("case", STEPS)
async def test_a_store_in_memory_does_as_recorded(case: str, snapshot: SnapshotAssertion) -> None:
    plan, clock, seen = STEPS[case], Clock(), list[str]()
    store = MemoryTaskStore(plan.get("limit", 10), clock, size=plan.get("size", 10**6))
    for step in plan["steps"]:
        try:
            outcome = await take_step(store, clock, *shlex.split(step))
        except (InternalError, InvalidParamsError) as error:
            outcome = error
        seen.append(f"{step} -> {shown(outcome)}")
    assert seen == snapshot


async def take_step(store: Any, clock: Clock, method: str, *words: str) -> Any:
    """The outcome of a step."""
    if method == "later":
        clock.pass_ms(1000 * float(words[0]))
        return len(store) if "count" in words else "..."
    if method == "page":
        owner, cursor, limit = (None if each == "-" else each for each in words)
        return await store.page(owner, cursor, int(limit or 0))
    if method in ("load", "claim"):
        return await getattr(store, method)(*words)
    members = {key: json.loads(text) for key, text in (each.split("=") for each in words[1:])}
    size = members.pop("size", 0)
    made = record(words[0], **{"created": clock.now, "message": "", **members})
    made = replace(made, message="x" * max(0, size - len(msgspec.json.encode(made))))
    return await getattr(store, method)(made)


def shown(value: Any) -> str:
    """An outcome; of records the id, version, fence and worker."""
    match value:
        case TaskRecord():
            return f"{value.task_id} {value.version} {value.fence} {value.worker}".strip()
        case TaskPage():
            return f"{[*map(shown, value.records)]}, {value.next_cursor}"
        case _:
            return f"{value}"
