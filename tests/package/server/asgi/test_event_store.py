"""The store of events in memory: what can be had again, and what it forgets to stay small."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen_runtime.server.asgi.event_store import MemoryEventStore, StoredEvents
from package.client.simulation import ASYNCIO
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes


async def after(store: MemoryEventStore, event: Any) -> list[bytes] | None:
    replay = await store.after("s", event)
    return None if replay is None else [each.message for each in replay.events]


@pytest.mark.requirement(
    "http.event-id-unique", "http.event-id-per-stream-cursor", revisions=EVERY_REVISION
)
async def test_later_events_of_the_same_stream_are_replayed() -> None:
    store = MemoryEventStore()
    ids: list[Any] = []
    for number in range(4):
        ids.append(await store.add("s", "a", b"a%d" % number))
        ids.append(await store.add("s", "b", b"b%d" % number))
    assert len(set(ids)) == len(ids)
    assert await after(store, ids[2]) == [b"a2", b"a3"]
    assert await after(store, ids[7]) == []
    replay = await store.after("s", ids[0])
    assert replay is not None
    assert (replay.stream, [each.id for each in replay.events]) == ("a", [ids[2], ids[4], ids[6]])


async def test_a_stream_keeps_its_newest_events() -> None:
    store = MemoryEventStore(events=2)
    ids: list[Any] = [await store.add("s", "a", b"%d" % number) for number in range(4)]
    assert await after(store, ids[0]) is None  # what came right after it is gone
    assert await after(store, ids[1]) == [b"2", b"3"]
    assert await after(store, ids[3]) == []


async def test_a_stream_may_keep_one_event() -> None:
    store = MemoryEventStore(events=1)
    ids: list[Any] = [await store.add("s", "a", b"%d" % number) for number in range(3)]
    assert [await after(store, each) for each in ids] == [None, [b"2"], []]
    for limits in ({"events": 0}, {"size": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            MemoryEventStore(**limits)


async def test_the_oldest_streams_make_room_for_the_newest() -> None:
    store = MemoryEventStore(size=10_000)
    ids: list[Any] = [await store.add("s", f"stream{number}", bytes(2000)) for number in range(10)]
    assert len(store) == 4
    assert await after(store, ids[0]) is None
    assert await after(store, ids[9]) == []


async def test_events_without_a_message_take_room_too() -> None:
    store = MemoryEventStore(size=10_000)
    for number in range(1000):
        await store.add("s", f"stream{number}", b"")
    assert len(store) < 100


async def test_a_stream_larger_than_the_store_keeps_its_end() -> None:
    store = MemoryEventStore(size=3000)
    ids: list[Any] = [await store.add("s", "a", bytes(1000)) for _ in range(10)]
    assert await after(store, ids[-2]) == [bytes(1000)]
    assert await after(store, ids[0]) is None
    big = await store.add("s", "a", bytes(5000))
    assert await after(store, ids[-1]) == [bytes(5000)]
    assert await after(store, big) == []


async def test_no_id_is_given_twice_though_its_stream_was_forgotten() -> None:
    store = MemoryEventStore(size=500)
    before = [await store.add("s", "a", bytes(100)), await store.add("s", "a", bytes(100))]
    await store.add("s", "b", bytes(400))
    later: Any = await store.add("s", "a", b"new")
    assert later not in before
    assert [await after(store, each) for each in before] == [None, None]


async def test_a_stream_that_is_discarded_is_gone_and_makes_room() -> None:
    store = MemoryEventStore(size=1000)
    first: Any = await store.add("s", "a", bytes(500))
    await store.discard("s", "a")
    await store.discard("s", "a")
    await store.discard("s", "never")
    assert (await store.after("s", first), len(store)) == (None, 0)
    ids: list[Any] = [await store.add("s", name, b"") for name in "bcde"]
    assert [await after(store, each) for each in ids] == [[], [], [], []]


@given(st.text() | st.from_regex(r"a-?(0{,19}[012]|[0-9]{,30})", fullmatch=True))
async def test_any_text_at_all_is_taken_for_an_id(text: str) -> None:
    store = MemoryEventStore()
    assert await store.add("s", "a", b"one") == "a-1"
    known = re.fullmatch("a-0{,17}1", text)  # zeros more or less, but no number without end
    assert await after(store, text) == ([] if known else None)


async def test_a_store_holds_a_thousand_events_and_64_mib() -> None:
    store = MemoryEventStore()
    ids: list[Any] = [await store.add("s", "a", b"") for _ in range(1002)]
    assert await after(store, ids[0]) is None
    assert await after(store, ids[1]) == [b""] * 1000
    store = MemoryEventStore()
    mebibyte = bytes(2**20 - 200)  # an event counts 200 bytes besides its message
    for number in range(65):
        await store.add("s", f"stream{number}", mebibyte)
    assert len(store) == 64


async def test_a_store_of_one_byte_holds_the_newest_event() -> None:
    store = MemoryEventStore(size=1)
    ids: list[Any] = [await store.add("s", "a", b"one") for _ in range(2)]
    assert [await after(store, each) for each in ids] == [[b"one"], []]


async def test_the_number_in_an_id_has_18_digits_at_most() -> None:
    store = MemoryEventStore()
    await store.add("s", "a", b"one")
    assert await after(store, f"a-{1:018}") == []
    assert await after(store, f"a-{1:019}") is None


async def test_a_stream_ends_once_and_keeps_its_last_event() -> None:
    store = MemoryEventStore()
    first: Any = await store.add("s", "a", b"one", [1, "two"])
    before = await store.after("s", first)
    assert before == StoredEvents("a", [], first, False, [1, "two"])
    last: Any = await store.finish("s", "a", b"last")
    after_first = await store.after("s", first)
    assert after_first is not None
    assert [(each.id, each.message) for each in after_first.events] == [(last, b"last")]
    assert (after_first.cursor, after_first.over, after_first.requests) == (last, True, ())
    assert await store.add("s", "a", b"late") is None
    assert await store.finish("s", "a") is None
    assert await store.after("s", last) == StoredEvents("a", [], last, True, ())


async def test_the_newest_stream_of_those_that_make_room_stays() -> None:
    """A stream is as old as its newest event; one that fits exactly drops nothing."""
    store = MemoryEventStore(size=1200)
    ids: list[Any] = [await store.add("s", name, bytes(200)) for name in "abc"]
    assert len(store) == 3
    ids.append(await store.add("s", "a", b""))  # now the oldest is b
    assert [await after(store, each) for each in ids] == [[b""], None, [], []]
    store = MemoryEventStore(size=800)
    ids = [await store.add("s", "a", bytes(200)) for _ in range(2)]
    assert await after(store, ids[0]) == [bytes(200)]
    ids.append(await store.add("s", "a", b""))
    assert [await after(store, each) for each in ids] == [[bytes(200), b""], [b""], []]
    ids.append(await store.add("s", "a", bytes(401)))
    assert [await after(store, each) for each in ids] == [None, None, [bytes(401)], []]


async def test_a_session_is_discarded_with_all_of_its_streams() -> None:
    store = MemoryEventStore()
    for session, stream in (("s", "a"), ("s", "b"), ("t", "c")):
        await store.add(session, stream, b"one")
    await store.discard("s")
    await store.discard("s")
    assert (len(store), await store.after("t", "c-3") is not None) == (1, True)
    await store.add("s", "a", b"again")
    await store.discard("s", "a")
    await store.discard("t")
    assert len(store) == 0


@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
@pytest.mark.parametrize(
    ("change", "events", "is_over", "seconds"),
    [
        ("add", [b"new"], False, 0.5),
        ("finish", [b"last"], True, 0.5),
        ("discard", None, None, 1),
        ("add elsewhere", [], False, 1),
    ],
)
async def test_a_reader_waits_for_an_event_or_the_end_for_a_second(
    change: str, events: list[bytes] | None, is_over: bool | None, seconds: float
) -> None:
    store, moment = MemoryEventStore(), anyio.Event()
    cursor: Any = await store.add("s", "a", b"one")
    asyncio.get_running_loop().call_at(0.5, moment.set)

    async def change_later() -> None:
        await moment.wait()
        match change:
            case "add":
                await store.add("s", "a", b"new")
            case "finish":
                await store.finish("s", "a", b"last")
            case "discard":
                await store.discard("s")
            case _:
                await store.add("s", "b", b"other")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(change_later)
        result = await store.wait("s", cursor)
    assert anyio.current_time() == seconds
    if events is None:
        assert result is None
    else:
        assert result is not None
        assert ([each.message for each in result.events], result.over) == (events, is_over)
        assert await store.wait("s", "a-9") is None  # at once
        assert anyio.current_time() == seconds
    if is_over:
        assert (await store.wait("s", cursor)) == result
        assert anyio.current_time() == seconds
