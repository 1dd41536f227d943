"""Stores of events, in memory and in an engine: what can be had again, by whom, and what ends."""

from __future__ import annotations

import anyio
import pytest

from kit.engine import Engine
from kit.limits import SetLimit
from mcpgen_runtime import EventStore, SharedState, StoredEvents
from package.server.shared.shared_servers import in_engine
from requirements import EVERY_REVISION

pytestmark = [pytest.mark.processes, pytest.mark.workers]


@pytest.fixture
def store(state: SharedState) -> EventStore:
    return state.events


async def after(store: EventStore, event: str | None, session: str = "s") -> list[bytes] | None:
    """The messages after an event."""
    stored = await store.after(session, event or "")
    return None if stored is None else [each.message for each in stored.events]


@pytest.mark.requirement(
    "http.event-id-unique", "http.event-id-per-stream-cursor", revisions=EVERY_REVISION
)
async def test_later_events_of_one_stream_can_be_had(store: EventStore) -> None:
    ids: list[str | None] = []
    for number in range(4):
        ids.append(await store.add("s", "a", b"a%d" % number, [7, "x"]))
        ids.append(await store.add("s", "b", b"b%d" % number))
    assert len(set(ids)) == len(ids)
    assert await after(store, ids[2]) == [b"a2", b"a3"]
    assert await after(store, ids[7]) == []
    stored = await store.after("s", str(ids[0]))
    assert stored is not None
    assert (stored.stream, [each.id for each in stored.events]) == ("a", ids[2::2])
    assert (stored.over, stored.requests) == (False, [7, "x"])


@pytest.mark.requirement("http.replay-no-other-stream", revisions=EVERY_REVISION)
async def test_another_stream_or_session_gets_nothing(
    store: EventStore, caplog: pytest.LogCaptureFixture
) -> None:
    event = await store.add("s", "a", b"one")
    other = await store.add("s", "b", b"two")
    assert await after(store, event, "other") is None
    assert other is not None
    assert await after(store, f"a-{other.rpartition('-')[2]}") is None
    for text in ("", "-", "a", "a-0", "a--1", "a-99", "a-\u0661", f"a-{'9' * 400}", "c-1"):
        assert await after(store, text) is None
    assert caplog.text == ""


async def test_a_stream_ends_once_and_keeps_its_last_event(store: EventStore) -> None:
    first = str(await store.add("s", "a", b"one", [1, "two"]))
    assert await store.after("s", first) == StoredEvents("a", [], first, False, [1, "two"])
    last = str(await store.finish("s", "a", b"end"))
    assert await store.finish("s", "a", b"another end") is None
    assert await store.finish("s", "a") is None
    assert await store.add("s", "a", b"late") is None
    stored = await store.after("s", first)
    assert stored is not None
    assert [(each.id, each.message) for each in stored.events] == [(last, b"end")]
    assert (stored.cursor, stored.over, [*stored.requests]) == (last, True, [])
    stored = await store.after("s", last)
    assert stored is not None
    assert ([*stored.events], stored.cursor, stored.over) == ([], last, True)
    stored = await store.wait("s", last)
    assert stored is None or not stored.events


async def test_waiting_gives_each_event_once(store: EventStore) -> None:
    cursor = str(await store.add("s", "a", b""))
    got: list[bytes] = []

    async def write() -> None:
        for number in range(20):
            await store.add("s", "b" if number % 2 else "a", b"%d" % number)
        await store.finish("s", "a", b"end")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        with anyio.fail_after(5):
            while (stored := await store.wait("s", cursor)) is not None:
                got += [each.message for each in stored.events]
                cursor = stored.cursor
                if stored.over:
                    break
    assert got == [b"%d" % number for number in range(0, 20, 2)] + [b"end"]


async def test_discarded_events_are_unknown(store: EventStore) -> None:
    ids = [await store.add("s", name, b"") for name in "abc"]
    await store.discard("s", "a")
    await store.discard("s", "never")
    assert [await after(store, each) for each in ids] == [None, [], []]
    await store.discard("s")
    await store.discard("never")
    assert [await after(store, each) for each in ids] == [None, None, None]


@in_engine
async def test_the_engine_keeps_the_newest_events(store: EventStore, set_limit: SetLimit) -> None:
    set_limit("pkg.server.shared.redis_engine.EVENTS", 10)
    set_limit("pkg.server.shared.redis_engine.EVENT_BYTES", 1000)
    ids = [await store.add("s", "a", b"%d" % number) for number in range(20)]
    assert await after(store, ids[8]) is None
    assert await after(store, ids[9]) == [b"%d" % number for number in range(10, 20)]
    ids = [await store.add("s", "b", bytes(400)) for _ in range(4)]
    counts = [None if (rest := await after(store, each)) is None else len(rest) for each in ids]
    assert counts == [None, 2, 1, 0]
    big = await store.add("s", "b", bytes(5000))
    assert await after(store, ids[-1]) == [bytes(5000)]
    assert await after(store, big) == []


@in_engine
async def test_streams_that_ended_leave_nothing_in_the_engine(
    store: EventStore, engine: Engine, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.shared.redis_engine.EVENTS", 10)
    for number in range(100):
        await store.add("s", f"a{number}", b"", [number])
        await store.finish("s", f"a{number}", b"end")
    fields = engine.ask("HLEN", "mcp:{tester}:streams:s")
    assert int(fields.strip(":\r\n")) <= 10
    assert int(engine.ask("PTTL", "mcp:{tester}:streams:s").strip(":\r\n")) > 0
    assert int(engine.ask("PTTL", "mcp:{tester}:events:s").strip(":\r\n")) > 0
    await store.discard("s")
    assert engine.ask("KEYS", "*").startswith("*0")


@in_engine
async def test_a_command_that_is_sent_twice_adds_one_event(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await store.add("s", "a", b"one")
    # Tokens of writes: equal ones are what a lost answer looks like.
    with monkeypatch.context() as same_token:
        same_token.setattr("os.urandom", bytes)
        ids = {await store.add("s", "a", b"two") for _ in range(2)}
    assert len(ids) == 1
    with monkeypatch.context() as same_token:
        same_token.setattr("os.urandom", lambda size: b"\1" * size)
        ends = [await store.finish("s", "a", b"end") for _ in range(2)]
    assert ends[0] is not None
    assert ends[0] == ends[1]
    assert await after(store, first) == [b"two", b"end"]
