"""Stores of events, in memory and in an engine: what can be had again, by whom, and what ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from kit.engine import Engine
from kit.limits import SetLimit
from mcpgen_runtime import EventStore, MemoryEventStore
from mcpgen_runtime.server.asgi import event_store
from mcpgen_runtime.server.shared.state import state_of
from requirements import EVERY_REVISION

pytestmark = [pytest.mark.processes, pytest.mark.workers]

kinds = pytest.mark.parametrize("kind", ["memory", "redis"])


@asynccontextmanager
async def store_of(kind: str, engine: Engine) -> AsyncIterator[EventStore]:
    """A store of a kind."""
    if kind == "memory":
        yield MemoryEventStore()
        return
    state = state_of("tester", engine.url)
    async with state.opened():
        yield state.events


async def after(store: EventStore, event: str | None, session: str = "s") -> list[bytes] | None:
    """The messages after an event."""
    stored = await store.after(session, event or "")
    return None if stored is None else [each.message for each in stored.events]


@pytest.mark.requirement(
    "http.event-id-unique", "http.event-id-per-stream-cursor", revisions=EVERY_REVISION
)
@kinds
async def test_later_events_of_one_stream_can_be_had(kind: str, engine: Engine) -> None:
    async with store_of(kind, engine) as store:
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
@kinds
async def test_another_stream_or_session_gets_nothing(kind: str, engine: Engine) -> None:
    async with store_of(kind, engine) as store:
        event = await store.add("s", "a", b"one")
        other = await store.add("s", "b", b"two")
        assert await after(store, event, "other") is None
        assert other is not None
        assert await after(store, f"a-{other.rpartition('-')[2]}") is None
        for text in ("", "-", "a", "a-0", "a--1", "a-99", "a-\u0661", f"a-{'9' * 400}", "c-1"):
            assert await after(store, text) is None


@kinds
async def test_a_stream_ends_once(kind: str, engine: Engine) -> None:
    async with store_of(kind, engine) as store:
        first = await store.add("s", "a", b"one", [1])
        assert await store.finish("s", "a", b"end") is not None
        assert await store.finish("s", "a", b"another end") is None
        assert await store.add("s", "a", b"late") is None
        stored = await store.after("s", str(first))
        assert stored is not None
        assert [each.message for each in stored.events] == [b"end"]
        assert (stored.over, list(stored.requests)) == (True, [])
        stored = await store.wait("s", stored.cursor)
        assert stored is None or not stored.events


@kinds
async def test_waiting_gives_each_event_once(kind: str, engine: Engine) -> None:
    async with store_of(kind, engine) as store:
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


@kinds
async def test_waiting_for_nothing_returns(
    kind: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "WAIT_SECONDS", 0.05)
    async with store_of(kind, engine) as store:
        event = str(await store.add("s", "a", b"one"))
        with anyio.fail_after(5):
            stored = await store.wait("s", event)
        assert stored is not None
        assert (list(stored.events), stored.over, stored.cursor) == ([], False, event)


@kinds
async def test_discarded_events_are_unknown(kind: str, engine: Engine) -> None:
    async with store_of(kind, engine) as store:
        ids = [await store.add("s", name, b"") for name in "abc"]
        await store.discard("s", "a")
        await store.discard("s", "never")
        assert [await after(store, each) for each in ids] == [None, [], []]
        await store.discard("s")
        await store.discard("never")
        assert [await after(store, each) for each in ids] == [None, None, None]


async def test_the_engine_keeps_the_newest_events(engine: Engine, set_limit: SetLimit) -> None:
    set_limit("pkg.server.shared.redis_engine.EVENTS", 10)
    set_limit("pkg.server.shared.redis_engine.EVENT_BYTES", 1000)
    async with store_of("redis", engine) as store:
        ids = [await store.add("s", "a", b"%d" % number) for number in range(20)]
        assert await after(store, ids[8]) is None
        assert await after(store, ids[9]) == [b"%d" % number for number in range(10, 20)]
        ids = [await store.add("s", "b", bytes(400)) for _ in range(4)]
        counts = [None if (rest := await after(store, each)) is None else len(rest) for each in ids]
        assert counts == [None, 2, 1, 0]
        big = await store.add("s", "b", bytes(5000))
        assert await after(store, ids[-1]) == [bytes(5000)]
        assert await after(store, big) == []


async def test_streams_that_ended_leave_nothing_in_the_engine(
    engine: Engine, set_limit: SetLimit
) -> None:
    set_limit("pkg.server.shared.redis_engine.EVENTS", 10)
    async with store_of("redis", engine) as store:
        for number in range(100):
            await store.add("s", f"a{number}", b"", [number])
            await store.finish("s", f"a{number}", b"end")
        fields = engine.ask("HLEN", "mcp:{tester}:streams:s")
        assert int(fields.strip(":\r\n")) <= 10
        assert int(engine.ask("PTTL", "mcp:{tester}:streams:s").strip(":\r\n")) > 0
        assert int(engine.ask("PTTL", "mcp:{tester}:events:s").strip(":\r\n")) > 0
        await store.discard("s")
        assert engine.ask("KEYS", "*").startswith("*0")


async def test_a_command_that_is_sent_twice_adds_one_event(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store_of("redis", engine) as store:
        first = await store.add("s", "a", b"one")
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
