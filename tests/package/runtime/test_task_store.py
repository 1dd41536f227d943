"""Records of tasks in memory: their forms on the wire, shares, leases, pages and expiry."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kit.cached import Clock
from mcpgen_runtime import InvalidParamsError, MemoryTaskStore, TaskRecord
from mcpgen_runtime.errors import InternalError

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


async def test_a_record_that_shrinks_frees_its_bytes() -> None:
    store = MemoryTaskStore(20, Clock(), size=20_000)
    large = record(message="x" * 9_000)
    await store.create(large)
    with pytest.raises(InternalError):
        await store.create(record("u", message="x" * 9_000))
    assert await store.change(large.next_version(message="x"))
    await store.create(record("u", message="x" * 9_000))


async def test_records_of_up_to_4096_bytes_do_not_count_by_their_bytes() -> None:
    store = MemoryTaskStore(size=0)
    size = len(msgspec.json.encode(record(message="")))
    await store.create(record(message="x" * (4096 - size)))
    with pytest.raises(InternalError):
        await store.create(record("u", message="x" * (4097 - size)))


async def test_a_lease_lasts_three_seconds_from_its_renewal() -> None:
    clock = Clock()
    store = MemoryTaskStore(1, clock)
    made = record()
    await store.create(made)
    clock.now += 2.999
    assert await store.claim("t", "b") is None
    assert (await store.page(None, None, 10)).records == ()
    assert await store.renew(made) == 1
    clock.now += 2.999
    assert await store.claim("t", "b") is None
    clock.now += 0.002
    assert [each.task_id for each in (await store.page(None, None, 10)).records] == ["t"]
    claimed = await store.claim("t", "b")
    assert claimed is not None
    assert (claimed.worker, claimed.fence, claimed.version) == ("b", 2, 2)
    assert await store.claim("t", "c") is None
    assert await store.renew(made) is None
    assert await store.renew(claimed) == 2
    clock.now += 2.999
    assert await store.claim("t", "c") is None
    assert await store.claim("none", "c") is None
    clock.now += 0.001
    again = await store.claim("t", "c")
    assert again is not None
    ended = again.next_version(status="cancelled")
    assert await store.change(ended)
    clock.now += 3
    assert (await store.page(None, None, 10)).records == ()
    for gone in (ended, record("none")):
        assert await store.claim(gone.task_id, "d") is None
        assert await store.renew(gone) is None
        assert not await store.change(gone.next_version())


async def test_leases_run_out_in_the_order_of_their_renewal() -> None:
    clock = Clock()
    store = MemoryTaskStore(clock=clock)
    for name in ("a", "b"):
        await store.create(record(name))
    clock.now += 1
    assert await store.renew(record("a")) == 1
    clock.now += 2
    assert [each.task_id for each in (await store.page(None, None, 5)).records] == ["b"]
    clock.now += 1
    assert [each.task_id for each in (await store.page(None, None, 5)).records] == ["b", "a"]


@pytest.mark.parametrize(
    ("cursor", "valid"),
    [
        *(("0", True), ("2", True), ("0" * 19 + "1", True)),
        *(("3", False), ("0" * 20 + "1", False), ("", False), ("-1", False), ("\u0662", False)),
    ],
)
async def test_a_cursor_is_the_number_of_a_record(cursor: str, valid: bool) -> None:
    store = MemoryTaskStore(clock=Clock())
    for name in ("a", "b"):
        await store.create(record(name))
    if valid:
        assert (await store.page("me", cursor, 5)).records
    else:
        with pytest.raises(InvalidParamsError, match=r"^cursor: expected the nextCursor of a page"):
            await store.page("me", cursor, 5)


async def test_bytes_and_numbers_are_free_again_when_records_expire() -> None:
    clock = Clock()
    store = MemoryTaskStore(2, clock, size=20_000)

    def sized(task_id: str, size: int) -> TaskRecord:
        return record(task_id, created=clock.now, ttl_ms=1000, result={"x": "x" * size})

    first = sized("a", 9000)
    await store.create(first)
    for version in (2, 3):  # as large again, though there is less left than it takes
        longer = replace(first, version=version, result={"x": "x" * 10_400})
        assert await store.change(longer)
    with pytest.raises(InternalError, match="at most 2 tasks with 20000 bytes"):
        await store.create(sized("b", 10))
    with pytest.raises(InternalError):
        await store.change(longer.next_version(result={"x": "x" * 12_000}))
    assert await store.load("a") == longer
    clock.now += 2
    await store.create(sized("b", 9000))
    assert (len(store), await store.load("a")) == (1, None)
