"""One stream over several connections, in memory: what is stored, sent and sent again, and when.

Time passes as soon as nothing else happens, so moments are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from mcpgen_runtime.server.asgi.event_store import EventStore, MemoryEventStore, StoredEvent
from mcpgen_runtime.server.asgi.http_response import SseResponse
from mcpgen_runtime.server.asgi.resumable_stream import ResumableStream
from package.asgi_wire import LAST, START, Wire, part
from package.client.simulation import ASYNCIO
from package.server.asgi.test_response_writer import SEND_SECONDS
from package.server.asgi.test_resuming import Broken

pytestmark = pytest.mark.processes

OPENED = [START, part(b"")]


@pytest.fixture
def anyio_backend() -> Any:
    return ASYNCIO


class EndingStore(MemoryEventStore):
    """A store that ends a stream while it stores an event, and counts last events.

    Attributes:
        stream: The stream to end, if any.
        finished: Number of last events.
    """

    stream: ResumableStream | None = None
    finished = 0

    async def add(self, *arguments: Any) -> str | None:
        """See `EventStore.add`."""
        if self.stream is not None:
            self.stream.stop()
        return await super().add(*arguments)

    async def finish(self, *arguments: Any) -> str | None:
        """See `EventStore.finish`."""
        self.finished += 1
        return await super().finish(*arguments)


def new_stream(
    store: EventStore | None = None, *, polling: bool = False, retry: float = 1.0
) -> ResumableStream:
    """A stream of the session `session`."""
    return ResumableStream("session", "s", store, polling, retry, lambda _: (7,))


async def connect(stream: ResumableStream, wire: Wire) -> SseResponse:
    """Open a stream on a connection."""
    response = SseResponse(wire.send, SEND_SECONDS)
    await stream.open(response)
    return response


def event(text: str, id: int | None = None) -> dict[str, Any]:
    """An event as it is sent."""
    field = "" if id is None else f"id: s-{id}\n"
    return part(f"{field}data: {text}\n\n".encode())


def state_of(stream: ResumableStream) -> tuple[bool, ...]:
    """Whether it is connected, attended and over."""
    return stream.connected, stream.attended, stream.over


async def test_a_stream_is_lost_once_its_only_connection_is() -> None:
    stream, wire = new_stream(), Wire()
    assert state_of(stream) == (False, False, False)
    response = await connect(stream, wire)
    assert state_of(stream) == (True, True, False)
    stranger = SseResponse(wire.send, SEND_SECONDS)
    stream.disconnect(stranger)
    await stream.close(stranger)
    assert stream.connected
    stream.disconnect(response)
    assert (state_of(stream), response.is_open) == ((False, False, False), False)
    stream.followed_until = anyio.current_time()
    assert not stream.attended
    stream.followed_until += 0.001
    assert stream.attended


async def test_a_message_is_stored_without_a_turn_of_the_loop() -> None:
    stream = new_stream(MemoryEventStore())
    for step in (stream.put(b"{}"), stream.drop_connection(), stream.end()):
        with pytest.raises(StopIteration):
            step.send(None)
    assert stream.over


async def test_a_stream_whose_client_left_as_it_opened_is_lost() -> None:
    stream, wire = new_stream(), Wire()
    wire.is_gone = True
    await connect(stream, wire)
    assert state_of(stream) == (False, False, False)


@pytest.mark.parametrize(
    ("store", "before", "while_open", "after_break"),
    [(None, False, True, False), (MemoryEventStore, True, True, True)],
)
async def test_a_message_is_lost_if_neither_sent_nor_stored(
    store: Callable[[], EventStore] | None,
    before: bool,
    while_open: bool,
    after_break: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream, wire = new_stream(None if store is None else store()), Wire()
    assert await stream.put(b"1") == before
    response = await connect(stream, wire)
    assert await stream.put(b"2") == while_open
    wire.is_gone = True
    assert await stream.put(b"3") == after_break
    assert (stream.connected, response.is_open) == (False, False)
    stream.stop()
    assert stream.over
    assert not await stream.put(b"4")
    assert wire.sent == [*OPENED, event("2", None if store is None else 2)]
    assert caplog.records == []


async def test_with_a_store_that_fails_a_message_can_only_be_sent() -> None:
    stream, wire = new_stream(Broken()), Wire()
    assert not await stream.put(b"1")
    await connect(stream, wire)
    assert await stream.put(b"2")
    assert not stream.over
    await stream.end()
    assert (stream.over, wire.sent) == (True, [*OPENED, event("2"), LAST])


async def test_a_stream_that_another_process_ended_takes_nothing() -> None:
    store, wire = MemoryEventStore(), Wire()
    stream = new_stream(store)
    await connect(stream, wire)
    stream.held = anyio.CancelScope()
    await store.finish("session", "s", b"1")
    assert not await stream.put(b"2")
    assert (stream.over, stream.held.cancel_called) == (True, True)
    assert wire.sent == [*OPENED, LAST]
    await stream.end()
    stored = await store.after("session", "s-1")
    assert stored is not None
    assert stored.events == []


@pytest.mark.parametrize(
    ("polling", "retry", "first"),
    [
        (False, 1.0, b"id: s-1\n"),
        (True, 1.0, b"id: s-1\nretry: 1000\ndata: \n\nid: s-2\n"),
        (True, 2.5, b"id: s-1\nretry: 2500\ndata: \n\nid: s-2\n"),
        (True, 0.0001, b"id: s-1\nretry: 1\ndata: \n\nid: s-2\n"),
    ],
)
async def test_a_stream_begins_with_what_it_continues_and_its_id(
    polling: bool, retry: float, first: bytes
) -> None:
    store, wire = MemoryEventStore(), Wire()
    stream = new_stream(store, polling=polling, retry=retry)
    before = [StoredEvent("o-1", b"old"), StoredEvent("o-2", b"")]
    await stream.open(SseResponse(wire.send, SEND_SECONDS), {}, [b"1", b"2"], before)
    old = part(b"id: o-1\ndata: old\n\n")
    second = event("2", 3 if polling else 2)
    assert wire.sent == [START, old, part(first + b"data: 1\n\n"), second]
    assert await stream.put(b"3")
    stored = await store.after("session", "s-1")
    assert stored is not None
    assert (stored.requests, stored.over) == ((7,), False)


async def test_without_a_store_a_stream_begins_with_no_event() -> None:
    stream, wire = new_stream(polling=True), Wire()
    await connect(stream, wire)
    await stream.close_connection()
    assert (wire.sent, stream.connected) == (OPENED, True)
    assert not await stream.resume(SseResponse(wire.send, SEND_SECONDS), "s-1")


@pytest.mark.parametrize("polling", [False, True])
async def test_a_connection_is_closed_only_where_clients_come_back(polling: bool) -> None:
    stream, wire = new_stream(MemoryEventStore(), polling=polling), Wire()
    await connect(stream, wire)
    await stream.put(b"1")
    before = len(wire.sent)
    await stream.close_connection()
    assert wire.sent[before:] == (
        [part(b"id: s-2\nretry: 1000\ndata: \n\n"), LAST] if polling else []
    )
    assert (stream.connected, stream.over) == (not polling, False)


@pytest.mark.parametrize(("told", "ends"), [(False, False), (True, False), (True, True)])
async def test_the_end_of_a_stream_is_stored_once(told: bool, ends: bool) -> None:
    store, wire = EndingStore(), Wire()
    stream = new_stream(store)
    await connect(stream, wire)
    stream.held = anyio.CancelScope()
    if told:
        await stream.put(b"1")
    if ends:
        await stream.end(b"2")
    for _ in range(2):
        await stream.end()
        stored = await store.after("session", "s-1")
        assert stored is not None
        assert stored.over
        assert [each.message for each in stored.events] == [b"2" if ends else b""][: int(told)]
    assert (stream.over, stream.held.cancel_called, store.finished) == (True, True, 1)
    last = [{**event("2", 2), "more_body": False}] if ends else [LAST]
    assert wire.sent == [*OPENED, *[event("1", 1)][: int(told)], *last]


@pytest.mark.parametrize(
    ("last", "is_over", "again"),
    [
        ("s-9", False, None),
        ("s-2", True, None),
        ("s-1", True, [*OPENED, event("2", 2), LAST]),
        ("s-1", False, [*OPENED, event("2", 2), event("3", 3)]),
        ("s-2", False, [*OPENED, event("3", 3)]),
    ],
)
async def test_a_stream_is_resumed_if_more_came_or_may_come(
    last: str, is_over: bool, again: list[Any] | None
) -> None:
    stream, first, second = new_stream(MemoryEventStore()), Wire(), Wire()
    await connect(stream, first)
    await stream.put(b"1")
    await stream.put(b"2")
    before = list(first.sent)
    if is_over:
        await stream.end()
    response = SseResponse(second.send, SEND_SECONDS)
    assert await stream.resume(response, last) == (again is not None)
    await stream.put(b"3")
    assert second.sent == (again or [])
    taken = again is not None or is_over
    assert first.sent == [*before, *([LAST] if taken else [event("3", 3)])]
    assert stream.connected == (not is_over)


@pytest.mark.parametrize(
    ("read_at", "taken_at", "old"), [(0.4, 0.4, [event("1", 1), LAST]), (0.6, 0.5, [])]
)
@pytest.mark.parametrize("resumes", [False, True])
async def test_a_write_to_the_old_connection_has_half_a_second(
    read_at: float, taken_at: float, old: list[Any], resumes: bool
) -> None:
    stream, first, second = new_stream(MemoryEventStore()), Wire(), Wire()
    await connect(stream, first)
    await stream.put(b"0")
    first.stop_reading()
    written: list[bool] = []

    async def put() -> None:
        written.append(await stream.put(b"1"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(put)
        tasks.start_soon(first.read_at, read_at)
        await first.waiting.wait()
        if resumes:
            assert await stream.resume(SseResponse(second.send, SEND_SECONDS), "s-1")
        else:
            await stream.drop_connection()
        assert anyio.current_time() == taken_at
    assert written == [True]
    assert first.sent[3:] == [part(b"id: s-2\ndata: 1\n\n"), LAST][: len(old)]
    assert second.sent == ([*OPENED, event("1", 2)] if resumes else [])
    assert stream.connected == resumes


@pytest.mark.parametrize("store", [None, MemoryEventStore])
async def test_a_write_ends_with_its_connection(store: Callable[[], EventStore] | None) -> None:
    stream, wire = new_stream(None if store is None else store()), Wire()
    response = await connect(stream, wire)
    wire.stop_reading()
    written: list[bool] = []

    async def put() -> None:
        written.append(await stream.put(b"1"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(put)
        await wire.waiting.wait()
        stream.disconnect(response)
    assert (anyio.current_time(), written) == (0.0, [store is not None])


async def test_a_stream_that_ends_while_it_stores_sends_nothing() -> None:
    store, wire = EndingStore(), Wire()
    stream = new_stream(store)
    response = await connect(stream, wire)
    store.stream = stream
    assert not await stream.put(b"1")
    await stream.close(response)
    await stream.end()
    assert (wire.sent, store.finished) == ([*OPENED, LAST], 0)
