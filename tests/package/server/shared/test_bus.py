"""A bus among workers: changes to all in one order, and letters to one."""

from __future__ import annotations

import anyio
import pytest

from kit.engine import Engine
from kit.limits import SetLimit
from kit.simulation import ASYNCIO
from mcpgen_runtime import Bus, MemoryBus, SharedState
from mcpgen_runtime.server.shared import bus as bus_module
from mcpgen_runtime.server.shared.state import state_of
from package.server.shared.shared_servers import in_engine

pytestmark = [pytest.mark.processes, pytest.mark.workers]


@pytest.fixture
def bus(state: SharedState) -> Bus:
    return state.bus


async def read(bus: Bus, cursor: str | None, count: int) -> tuple[str, list[bytes]]:
    """The next cursor, and `count` changes after a cursor, without a gap."""
    got: list[bytes] = []
    with anyio.fail_after(5):
        while len(got) < count:
            news = await bus.changes(cursor)
            assert not news.gap
            got += news.changes
            cursor = news.cursor
    assert cursor is not None
    return cursor, got


async def test_each_reader_gets_all_changes_in_their_order(bus: Bus) -> None:
    cursors = [(await bus.changes(None)).cursor for _ in range(2)]
    sent = [b"%d" % number for number in range(50)]
    for change in sent:
        await bus.publish(change)
    for cursor in cursors:
        assert (await read(bus, cursor, 50))[1] == sent


@pytest.fixture
def few_changes(set_limit: SetLimit) -> None:
    set_limit("pkg.server.shared.bus.KEPT_CHANGES", 100)


async def test_a_late_reader_gets_a_gap(few_changes: None, bus: Bus) -> None:
    cursor = (await bus.changes(None)).cursor
    for number in range(1000):
        await bus.publish(b"%d" % number)
    with anyio.fail_after(5):
        news = await bus.changes(cursor)
    assert news.gap
    await bus.publish(b"later")
    assert (await read(bus, news.cursor, 1))[1][-1:] == [b"later"]


async def test_a_letter_reaches_one_inbox_once(bus: Bus) -> None:
    await bus.beat("one")
    await bus.beat("two")
    assert await bus.send("one", b"first")
    assert await bus.send("one", b"second")
    assert list(await bus.receive("one")) == [b"first", b"second"]
    begun = anyio.current_time()
    for name in ("one", "two"):
        assert list(await bus.receive(name)) == []
    assert anyio.current_time() - begun > 1.8  # a second each


async def test_servers_of_other_names_share_nothing(engine: Engine) -> None:
    one, other = state_of("one", engine.url), state_of("other", engine.url)
    async with one.opened(), other.opened():
        cursor = (await one.bus.changes(None)).cursor
        await other.bus.publish(b"change")
        assert not (await one.bus.changes(cursor)).changes


@in_engine
async def test_an_engine_that_is_emptied_leaves_a_gap(bus: Bus, engine: Engine) -> None:
    cursor = (await bus.changes(None)).cursor
    engine.ask("FLUSHALL")
    await bus.publish(b"after")
    with anyio.fail_after(5):
        assert (await bus.changes(cursor)).gap


async def test_a_bus_in_memory_keeps_so_many_messages() -> None:
    bus, kept, letters = MemoryBus(), bus_module.KEPT_CHANGES, bus_module.LETTERS
    first = (await bus.changes(None)).cursor
    for number in range(kept):
        await bus.publish(b"%d" % number)
    news = await bus.changes(first)
    assert (news.gap, len(news.changes)) == (False, kept)
    await bus.publish(b"one more")
    assert (await bus.changes(first)).gap
    await bus.beat("one")
    for number in range(letters + 1):
        assert await bus.send("one", b"%d" % number)
    assert list(await bus.receive("one")) == [b"%d" % number for number in range(1, letters + 1)]


@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
async def test_a_worker_counts_as_alive_for_three_seconds() -> None:
    bus = MemoryBus()
    assert not await bus.send("one", b"letter")
    await bus.beat("one")
    for seconds, is_alive in ((0.0, True), (2.5, True), (0.5, False), (0.5, False)):
        await anyio.sleep(seconds)
        assert await bus.send("one", b"letter") is is_alive
    await bus.beat("two")
    await anyio.sleep(2.5)
    await bus.beat("one")
    assert [await bus.send(worker, b"letter") for worker in ("one", "two")] == [True, True]
