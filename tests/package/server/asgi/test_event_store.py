"""The store of events in memory: what can be had again, and what it forgets to stay small."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kit.simulation import on_virtual_clock
from mcpgen_runtime import MemoryEventStore
from requirements import EVERY_REVISION

pytestmark = pytest.mark.processes


async def after(store: MemoryEventStore, event: Any) -> list[bytes] | None:
    replay = await store.after("s", event)
    return None if replay is None else [each.message for each in replay.events]


OVERHEAD = 200  # bytes that an event counts besides its message


class Model:
    """Events as a store with limits keeps them, in the simplest way."""

    def __init__(self, events: int, size: int) -> None:
        self.streams: dict[str, list[tuple[str, int]]] = {}
        self.known: dict[str, list[str]] = {}
        self._events, self._size = events, size

    def add(self, stream: str, event: str, size: int) -> None:
        kept = self.streams[stream] = [*self.streams.pop(stream, []), (event, size + OVERHEAD)]
        self.known.setdefault(stream, []).append(event)
        if len(kept) > self._events:
            self._drop_first(stream)
        while self._is_too_much() and len(self.streams) > 1:
            self.discard(next(iter(self.streams)))
        while self._is_too_much() and len(kept) > 1:
            self._drop_first(stream)

    def _drop_first(self, stream: str) -> None:
        first, _ = self.streams[stream].pop(0)
        del self.known[stream][: self.known[stream].index(first)]

    def discard(self, stream: str) -> None:
        self.streams.pop(stream, None)
        self.known.pop(stream, None)

    def after(self, stream: str, event: str) -> list[str] | None:
        if event not in self.known.get(stream, ()):
            return None
        ids = [each for each, _ in self.streams[stream]]
        return ids[ids.index(event) + 1 :] if event in ids else ids

    def _is_too_much(self) -> bool:
        sizes = (size for each in self.streams.values() for _, size in each)
        return sum(sizes) > self._size


steps = st.tuples(st.sampled_from("abc"), st.sampled_from([None, 0, 200, 201, 1000]))
"""A stream, and the size of an event of it; none to discard it."""


@pytest.mark.requirement(
    "http.event-id-unique", "http.event-id-per-stream-cursor", revisions=EVERY_REVISION
)
@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 800, 1200]), st.lists(steps, max_size=12))
@example(9, 1200, [("a", 200), ("b", 200), ("c", 200), ("a", 0)])  # a stream is as old as its end
@example(9, 800, [("a", 200), ("a", 200), ("a", 0), ("a", 401)])
@example(9, 500, [("a", 100), ("a", 100), ("b", 400), ("a", 3)])
@example(9, 1000, [("a", 500), ("a", None), ("a", None), *((name, 0) for name in "bcab")])
async def test_what_is_kept_is_that_of_a_simple_model(
    events: int, size: int, steps: list[tuple[str, int | None]]
) -> None:
    store, model = MemoryEventStore(events=events, size=size), Model(events, size)
    ids: list[tuple[str, str]] = []
    for stream, length in steps:
        if length is None:
            await store.discard("s", stream)
            model.discard(stream)
            continue
        event = await store.add("s", stream, bytes(length))
        assert event is not None
        ids.append((stream, event))
        model.add(stream, event, length)
        assert len(store) == len(model.streams)
        for each, before in ids:
            replay = await store.after("s", before)
            kept = None if replay is None else [later.id for later in replay.events]
            assert kept == model.after(each, before)
    assert len(set(ids)) == len(ids)
    await store.add("t", "c", b"")
    await store.discard("s")
    assert len(store) == 1


@pytest.mark.parametrize("limits", [{"events": 0}, {"size": 0}])
def test_a_limit_below_one_is_a_mistake(limits: Any) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        MemoryEventStore(**limits)


@given(st.text() | st.from_regex(r"a-?(0{,19}[012]|[0-9]{,30})", fullmatch=True))
@example(f"a-{1:018}")
@example(f"a-{1:019}")
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


@on_virtual_clock
@pytest.mark.parametrize(
    ("change", "expected", "seconds"),
    [
        (lambda store: store.add("s", "a", b"new"), ([b"new"], False), 0.5),
        (lambda store: store.finish("s", "a", b"last"), ([b"last"], True), 0.5),
        (lambda store: store.discard("s"), None, 1),
        (lambda store: store.add("t", "b", b"other"), ([], False), 1),
    ],
    ids=["add", "finish", "discard", "add elsewhere"],
)
async def test_a_reader_waits_for_an_event_or_the_end_for_a_second(
    change: Any, expected: Any, seconds: float
) -> None:
    store = MemoryEventStore()
    cursor: Any = await store.add("s", "a", b"one")

    async def change_later() -> None:
        await anyio.sleep_until(0.5)
        await change(store)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(change_later)
        result = await store.wait("s", cursor)
    assert await store.wait("s", "a-9") is None  # at once
    if result is None:
        assert expected is None
    else:
        assert ([each.message for each in result.events], result.over) == expected
        if result.over:
            assert (await store.wait("s", cursor)) == result
    assert anyio.current_time() == seconds
