"""Each kind of entry of an engine has bytes for all clients, and a share for each."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import anyio
import pytest

from kit.engine import Engine
from kit.limits import SetLimit
from mcpgen_runtime import SessionRecord, SharedState, SharedStateFullError, TaskRecord
from mcpgen_runtime.errors import InternalError

pytestmark = [pytest.mark.processes, pytest.mark.workers]

KIB = 2**10


@pytest.fixture
def kind() -> str:
    """States are in an engine."""
    return "redis"


def number(engine: Engine, *words: str) -> int:
    """The reply to a command that gives a number."""
    return int(engine.ask(*words).strip(":\r\n"))


def session_of(client: str, size: int = 10 * KIB, **members: Any) -> SessionRecord:
    """The record of a session."""
    return SessionRecord("2025-06-18", {"x": "y" * size}, None, client=client, **members)


async def sessions_there(state: SharedState, *names: str) -> list[str]:
    """Those of some sessions that have a record."""
    return [name for name in names if await state.sessions.load(name, 60.0) is not None]


@pytest.fixture
def small(set_limit: SetLimit) -> None:
    """Room for 100 KiB of each kind."""
    for kind in ("SESSION", "STORED_EVENT", "TASK", "INBOX", "CHANGES"):
        set_limit(f"pkg.server.shared.redis_ledger.{kind}_BYTES", 100 * KIB)


@pytest.mark.usefixtures("small")
async def test_sessions_of_one_client_make_room_for_its_own(state: SharedState) -> None:
    await state.sessions.create("honest", session_of("bob"), 60.0)
    await state.sessions.create("used", session_of("eve"), 60.0)
    confirmed = session_of("eve", is_confirmed=True, version=2)
    assert await state.sessions.change("used", confirmed)
    names = [f"s{at:02}" for at in range(20)]
    for name in names:
        await state.sessions.create(name, session_of("eve"), 60.0)
    # Bob has 10, so eve may have 40 with 40 left; what she has confirmed and used outlives.
    assert await sessions_there(state, "honest", "used", *names) == [
        "honest",
        "used",
        *names[-3:],
    ]
    await state.sessions.create("late", session_of("carol"), 60.0)
    assert await sessions_there(state, "honest", "used", "late") == ["honest", "used", "late"]


@pytest.mark.usefixtures("small")
async def test_the_confirmed_session_used_least_recently_makes_room(state: SharedState) -> None:
    names = [f"s{at}" for at in range(4)]
    for at, name in enumerate(names):
        await state.sessions.create(name, session_of("eve"), 60.0 + at)
        confirmed = session_of("eve", is_confirmed=True, version=2)
        assert await state.sessions.change(name, confirmed)
    assert await state.sessions.load("s0", 90.0) is not None
    await state.sessions.create("new", session_of("eve"), 60.0)
    assert await sessions_there(state, *names, "new") == ["s0", "s2", "s3", "new"]


@pytest.mark.usefixtures("small")
async def test_a_client_is_refused_where_others_have_all(state: SharedState) -> None:
    for at in range(8):
        await state.sessions.create(f"s{at}", session_of(f"client {at}"), 60.0)
    with pytest.raises(SharedStateFullError, match="too many bytes"):
        await state.sessions.create("late", session_of("late", 60 * KIB), 60.0)
    grown = session_of("client 0", 60 * KIB, version=2)
    with pytest.raises(SharedStateFullError, match="too many bytes"):
        await state.sessions.change("s0", grown)
    assert await state.sessions.load("s0", 60.0) == session_of("client 0")


@pytest.mark.usefixtures("small")
async def test_ended_sessions_leave_nothing(state: SharedState, engine: Engine) -> None:
    await state.sessions.create("s", session_of("eve"), 60.0)
    await state.events.add("s", "a", b"one")
    await state.sessions.end("s")
    assert engine.ask("KEYS", "*") == "*0\r\n"
    await state.sessions.create("s", session_of("eve"), 0.001)
    with anyio.fail_after(5):
        while number(engine, "HEXISTS", "mcp:{tester}:ledger:session", "=s"):
            await state.sessions.create("a", session_of("eve"), 60.0)
    assert number(engine, "ZCARD", "mcp:{tester}:due:session") == 1


@pytest.mark.parametrize("what", ["session", "task", "event"])
async def test_a_command_that_is_sent_twice_counts_once(
    state: SharedState, what: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tokens of writes: equal ones are what a lost answer looks like.
    monkeypatch.setattr("os.urandom", bytes)
    counted: list[str] = []
    task = task_of("t")
    for _ in range(2):
        if what == "session":
            await state.sessions.create("s", session_of("eve"), 60.0)
        elif what == "task":
            await state.tasks.create(task)
        else:
            await state.events.add("s", "a", b"one")
        [key] = [each for each in engine.ask("KEYS", "*").split() if ":ledger:" in each]
        counted.append(engine.ask("HGET", key, "#"))
    assert counted[0] == counted[1]


def task_of(task_id: str, client: str = "eve", size: int = 10 * KIB, **members: Any) -> TaskRecord:
    """A task whose result has a size."""
    now = time.time()
    members = {"owner": client, "ttl_ms": 60_000, "result": {"x": "y" * size}, **members}
    return TaskRecord(
        task_id=task_id,
        client=client,
        created=now,
        updated=now,
        poll_interval_ms=1,
        status=members.pop("status", "working"),
        **members,
    )


@pytest.mark.usefixtures("small")
async def test_tasks_of_one_client_leave_room_for_those_of_others(state: SharedState) -> None:
    for at in range(4):
        await state.tasks.create(task_of(f"t{at}"))
    with pytest.raises(InternalError, match="expected tasks of at most 102400 bytes"):
        await state.tasks.create(task_of("more"))
    grown = task_of("t0", size=30 * KIB, version=2, status="completed")
    with pytest.raises(InternalError, match="no more of one client than are free for others"):
        await state.tasks.change(grown)
    failed = task_of("t0", size=0, version=2, status="failed")
    assert await state.tasks.change(failed)
    await state.tasks.create(task_of("bob's", client="bob"))
    assert await state.tasks.load("more") is None


@pytest.mark.usefixtures("small")
async def test_many_small_tasks_have_bytes_too_and_their_end_fits(state: SharedState) -> None:
    names = [f"t{at}" for at in range(20)]
    stored: list[str] = []
    for name in names:
        with suppress(InternalError):
            await state.tasks.create(task_of(name, size=0))
            stored.append(name)
    assert len(stored) == 12  # 4 KiB each, half of 100
    for name in stored:
        end = task_of(name, size=2 * KIB, version=2, status="completed")
        assert await state.tasks.change(end)


@pytest.mark.usefixtures("small")
async def test_tasks_that_expired_make_room(state: SharedState, engine: Engine) -> None:
    for at in range(4):
        await state.tasks.create(task_of(f"t{at}", ttl_ms=1))
    with anyio.fail_after(5):
        while number(engine, "ZCARD", "mcp:{tester}:due:task") != 1:
            with suppress(InternalError):
                await state.tasks.create(task_of("more", size=30 * KIB))


@pytest.mark.usefixtures("small")
async def test_events_of_one_client_make_room_for_its_own(state: SharedState) -> None:
    for name, client in (("s0", "eve"), ("s1", "eve"), ("s2", "eve"), ("s3", "bob")):
        await state.sessions.create(name, session_of(client, 0), 60.0)
    firsts: dict[str, str | None] = {}
    for name in ("s3", "s0", "s1", "s2"):
        firsts[name] = await state.events.add(name, "a", b"")
        await state.events.add(name, "a", bytes(18 * KIB))
    assert await state.events.after("s0", str(firsts["s0"])) is None
    for name in ("s1", "s2", "s3"):
        assert await state.events.after(name, str(firsts[name])) is not None
    with pytest.raises(SharedStateFullError, match="too many bytes"):
        await state.events.add("s2", "a", bytes(90 * KIB))


@pytest.mark.parametrize(
    ("message", "requests", "fits"),
    [
        (16 * 2**20, [], True),
        (16 * 2**20 + 1, [], False),
        (0, ["x" * 1024] * 7, True),
        (0, ["x" * 1024] * 8, False),
    ],
)
async def test_an_event_has_so_many_bytes(
    state: SharedState, message: int, requests: list[str], fits: bool
) -> None:
    if fits:
        assert await state.events.add("s", "a", bytes(message), requests)
        return
    with pytest.raises(SharedStateFullError, match="expected"):
        await state.events.add("s", "a", bytes(message), requests)


@pytest.mark.usefixtures("small")
async def test_letters_of_one_client_leave_room_for_those_of_others(
    state: SharedState, engine: Engine
) -> None:
    assert not await state.bus.send("nobody", b"letter", "eve")
    assert engine.ask("KEYS", "*") == "*0\r\n"
    await state.bus.beat("one")
    for _ in range(4):
        assert await state.bus.send("one", bytes(10 * KIB), "eve")
    with pytest.raises(SharedStateFullError, match="too many messages to read"):
        await state.bus.send("one", bytes(10 * KIB), "eve")
    assert await state.bus.send("one", b"honest", "bob")
    assert list(await state.bus.receive("one")) == [bytes(10 * KIB)] * 4 + [b"honest"]
    assert await state.bus.send("one", bytes(40 * KIB), "eve")


@pytest.mark.usefixtures("small")
async def test_stored_changes_have_so_many_bytes(state: SharedState, engine: Engine) -> None:
    first = (await state.bus.changes(None)).cursor
    for at in range(30):
        await state.bus.publish(b"%d" % at + bytes(10 * KIB))
        kept = number(engine, "XLEN", "mcp:{tester}:changes")
    assert kept == 9
    news = await state.bus.changes(first)
    assert news.gap
    await state.bus.publish(bytes(200 * KIB))
    assert number(engine, "XLEN", "mcp:{tester}:changes") == 1
    await state.bus.publish(b"later")
    assert number(engine, "XLEN", "mcp:{tester}:changes") == 1
    assert engine.ask("GET", "mcp:{tester}:changes:size") == "$2\r\n13\r\n"


async def test_used_ids_of_one_kind_make_no_room_for_others(
    state: SharedState, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.shared.redis_engine.STORED_IDS", 10)
    assert state.ended is not None
    assert await state.used.use(b"proof", 60.0)
    for at in range(30):
        assert await state.ended.use(b"%02d" % at, 1000.0)
    assert await state.used.is_used(b"proof")
    there = [at for at in range(30) if await state.ended.is_used(b"%02d" % at)]
    assert there == [*range(20, 30)]


async def test_scripts_reach_an_engine_that_has_forgotten_them(
    state: SharedState, engine: Engine
) -> None:
    for proof in (b"one", b"two"):
        assert engine.ask("SCRIPT", "FLUSH") == "+OK\r\n"
        assert await state.used.use(proof, 60.0)
