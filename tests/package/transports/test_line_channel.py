"""Channels: of lines over pipes that are waited for, threads and sockets, and in one process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint
from hypothesis import example, given
from hypothesis import strategies as st

from kit.simulation import ASYNCIO
from mcpgen_runtime import Channel, ConnectionClosedError, LocalProtocolError, OutgoingMessage
from mcpgen_runtime.channel import TooLong
from mcpgen_runtime.errors import INVALID_REQUEST, EndOfChannel, FrameError
from mcpgen_runtime.transports.line_channel import (
    CHUNK,
    LineChannel,
    LineReader,
    PolledSource,
    Sink,
    Source,
    ThreadedSink,
    ThreadedSource,
    frame_line,
    open_sink,
    open_source,
)
from mcpgen_runtime.transports.memory import BUFFERED_BYTES, MessageQueue, memory_pair
from requirements import EVERY_REVISION

Ends = tuple[Callable[[int], Source], Callable[[int], Sink]]
KINDS: dict[str, Ends] = {
    "polled": (open_source, open_sink),
    "threaded": (ThreadedSource, ThreadedSink),
}
Both = tuple[Channel, Channel]
BIG = b'"%s"' % (b"x" * 500_000)


def lines_of(wire: bytes, limit: int) -> list[bytes | TooLong]:
    """The messages of a stream, from its whole text."""
    lines = [line.removesuffix(b"\r") for line in wire.split(b"\n")]
    return [
        TooLong(limit) if len(line) > limit else line
        for line in lines
        if line and (not line.isspace() or len(line) > limit)
    ]


pieces = st.sampled_from([b"1", b"xx", b"12345", b"\n", b"\r\n", b"\r", b" ", b"\t"])


@pytest.mark.requirement("stdio.newline-delimited", revisions=EVERY_REVISION)
@given(
    wire=st.lists(pieces | st.binary(max_size=12)).map(b"".join),
    cuts=st.lists(st.integers(0, 400)),
    limit=st.integers(1, 20),
)
@example(wire=b"12345\n123456\r\n12345\r\n1234567890123\n1\n", cuts=[8, 20], limit=5)
@example(wire=b"\r\n\n1\r\n   \n\t\r\n2\n\n3", cuts=[1, 5, 6], limit=30)
@example(wire='{"text":"\u00e9\U0001f600"}\n'.encode(), cuts=[10, 12], limit=30)
def test_messages_come_out_whole_wherever_the_stream_is_cut(
    wire: bytes, cuts: list[int], limit: int
) -> None:
    reader = LineReader(limit)
    read: list[bytes | TooLong] = []
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    for start, stop in pairwise(places):
        read += reader.feed(wire[start:stop])
    assert read + reader.end() == lines_of(wire, limit)
    assert reader.end() == []


def test_a_line_over_the_limit_is_reported_early_and_not_stored() -> None:
    reader = LineReader(limit=5)
    (error,) = reader.feed(b"1234567")
    assert error == TooLong(5)
    assert "at most 5 bytes" in str(error.error())
    assert error.error().code == INVALID_REQUEST
    assert reader.feed(b"890") == reader.end() == []
    assert reader.feed(b"1\n2\n") == [b"2"]


def test_feeding_byte_by_byte_takes_linear_time() -> None:
    reader, begun = LineReader(), time.process_time()
    for _ in range(300_000):
        reader.feed(b"x")
    assert reader.feed(b"\n") == [b"x" * 300_000]
    assert time.process_time() - begun < 3


@pytest.mark.requirement("stdio.no-embedded-newline", revisions=EVERY_REVISION)
def test_a_message_with_a_raw_newline_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="came a newline at byte 1"):
        frame_line(b"{\n}")


@pytest.fixture(params=KINDS)
def ends(request: pytest.FixtureRequest) -> Ends:
    return KINDS[request.param]


def pair(ends: Ends) -> tuple[LineChannel, LineChannel]:
    source, sink = ends
    (read_a, write_b), (read_b, write_a) = os.pipe(), os.pipe()
    return LineChannel(source(read_a), sink(write_a)), LineChannel(source(read_b), sink(write_b))


def socket_pair() -> Both:
    """Two channels that are the ends of one socket."""
    ours, theirs = (each.detach() for each in socket.socketpair())
    return (
        LineChannel(open_source(ours), open_sink(os.dup(ours))),
        LineChannel(open_source(theirs), open_sink(os.dup(theirs))),
    )


@pytest.fixture(params=[*KINDS, "socket", "memory"])
async def channels(request: pytest.FixtureRequest) -> AsyncIterator[Both]:
    """Two connected channels."""
    others: dict[str, Callable[[], Both]] = {
        "socket": socket_pair,
        "memory": partial(memory_pair, limit=3),
    }
    a, b = others.get(request.param, lambda: pair(KINDS[request.param]))()
    yield a, b
    await a.close()
    await b.close()


@pytest.mark.requirement(
    "custom-transport.reuse-stdio-framing", "custom-transport.allowed", revisions=EVERY_REVISION
)
async def test_messages_pass_both_ways_until_one_end_closes(channels: Both) -> None:
    a, b = channels
    await a.send(OutgoingMessage(b"1"))
    await a.send(OutgoingMessage(b"2", related_request_id="x"))
    assert [await b.receive(), await b.receive()] == [b"1", b"2"]
    for message in (b"3", b"never read"):
        await b.send(OutgoingMessage(message))
    assert await a.receive() == b"3"
    for message in (b"late", b"last"):
        await a.send(OutgoingMessage(message))
    await a.close()
    await a.close()
    assert [await b.receive(), await b.receive()] == [b"late", b"last"]
    for end in (b, a):
        with pytest.raises(EndOfChannel):
            await end.receive()
    with pytest.raises(ConnectionClosedError, match="the channel is closed"):
        await a.send(OutgoingMessage(b"1"))
    with pytest.raises(ConnectionClosedError):
        while True:
            await b.send(OutgoingMessage(b"1"))


async def test_large_messages_of_many_tasks_stay_whole(channels: Both) -> None:
    a, b = channels
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(a.send, OutgoingMessage(BIG))
        for _ in range(8):
            assert await b.receive() == BIG


@pytest.mark.parametrize("closed", [0, 1], ids=["this end", "the other"])
async def test_closing_wakes_the_tasks_that_wait(channels: Both, closed: int) -> None:
    a = channels[0]

    async def receive() -> None:
        with pytest.raises(EndOfChannel):
            await a.receive()

    async def send() -> None:
        with pytest.raises(ConnectionClosedError):
            while True:
                await a.send(OutgoingMessage(BIG))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        tasks.start_soon(send)
        assert await channels[1].receive() == BIG
        await wait_all_tasks_blocked()
        await channels[closed].close()


@pytest.mark.parametrize("closes", [False, True])
async def test_a_begun_message_is_finished_after_its_task_is_cancelled(
    ends: Ends, closes: bool
) -> None:
    a, b = pair(ends)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.send, OutgoingMessage(BIG))
        await wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    async with anyio.create_task_group() as tasks:
        if closes:
            tasks.start_soon(a.close)
        else:
            tasks.start_soon(a.send, OutgoingMessage(b"next"))
        assert [await b.receive() for _ in range(2 - closes)] == [BIG, b"next"][: 2 - closes]
    await a.close()
    with pytest.raises(EndOfChannel):
        await b.receive()
    await b.close()


@pytest.mark.parametrize("open_end", [open_source, ThreadedSource])
async def test_a_source_that_is_cut_gives_what_is_there_and_then_ends(
    open_end: Callable[[int], PolledSource | ThreadedSource],
) -> None:
    read_end, write_end = os.pipe()
    source = open_end(read_end)
    got: list[bytes] = []

    async def read() -> None:
        got.append(await source.read())

    os.write(write_end, b"1")
    await read()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await wait_all_tasks_blocked()
        source.stop_waiting()
    assert got == [b"1", b""]
    assert await source.read() == b""
    await source.close()
    assert await source.read() == b""
    os.close(write_end)


async def test_a_terminal_that_hangs_up_is_the_end_of_a_source(ends: Ends) -> None:
    ours, theirs = os.openpty()
    source = ends[0](ours)
    os.close(theirs)
    assert await source.read() == b""
    await source.close()


async def test_a_thread_reads_a_few_chunks_ahead(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(10 * CHUNK))
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    source = ThreadedSource(os.dup(fd))
    assert len(await source.read()) == CHUNK
    while (offset := os.lseek(fd, 0, os.SEEK_CUR)) < 5 * CHUNK:
        await checkpoint()
    for _ in range(100):
        await checkpoint()
    assert os.lseek(fd, 0, os.SEEK_CUR) == offset == 5 * CHUNK
    await source.close()
    assert await source.read() == b""
    os.close(fd)


async def test_a_read_that_is_cancelled_loses_nothing(ends: Ends) -> None:
    read_end, write_end = os.pipe()
    source = ends[0](read_end)
    os.write(write_end, b"1")
    assert await source.read() == b"1"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.read)
        await wait_all_tasks_blocked()
        os.write(write_end, b"2")
        tasks.cancel_scope.cancel()
    assert await source.read() == b"2"
    os.close(write_end)
    assert [await source.read(), await source.read()] == [b"", b""]
    await source.close()


async def test_ends_that_were_never_used_close_too_and_others_can_follow(ends: Ends) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for is_used in (False, True, True):
        a, b = pair(ends)
        if is_used:
            await a.send(OutgoingMessage(b"1"))
            assert await b.receive() == b"1"
        for channel in (a, b, a, b):
            await channel.close()
        assert is_used or len(list(Path("/proc/self/fd").iterdir())) == before


BATCHES = {
    "5 6 7": [5, 13],
    "5+ 6+ 7": [18],
    "5+ 2043": [2048],
    "5+ 2044": [5, 2044],
    "5 2048 1": [5, 2048, 1],
    "5 2049 1": [5, 2049, 1],
    "65536 1 2": [4096] * 16 + [3],
}
"""Sizes of messages, with `+` if more are to follow, and those of the writes."""


@pytest.mark.on_asyncio
@pytest.mark.parametrize(("sizes", "written"), BATCHES.items())
async def test_small_messages_of_one_turn_are_written_together_once_there_is_room(
    sizes: str, written: list[int]
) -> None:
    reading, writing = os.pipe2(os.O_DIRECT)  # keeps writes apart, and parts of 4096 bytes
    source, sink, same = open_source(reading), open_sink(writing), os.dup(writing)
    for size in sizes.split():
        await sink.write(bytes(int(size.rstrip("+"))), more=size.endswith("+"))
    read = [len(await source.read())]
    while sum(read) < sum(written):
        read.append(len(await source.read()))
    assert read == written
    assert not os.get_blocking(same)
    await sink.close()
    assert os.get_blocking(same)
    os.close(same)
    assert await source.read() == b""
    await source.close()


async def test_a_channel_whose_receiving_ended_drops_what_is_unread(ends: Ends) -> None:
    a, b = pair(ends)
    for message in (b"1", b"2"):
        await a.send(OutgoingMessage(message))
    assert await b.receive() == b"1"
    b.end_receiving()
    with pytest.raises(EndOfChannel):
        await b.receive()
    await a.close()
    await b.drain()
    await b.close()


@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
async def test_closing_waits_half_a_second_for_a_slow_reader(ends: Ends) -> None:
    async def write_in_vain() -> None:
        with pytest.raises(ConnectionClosedError):
            await sink.write(BIG, more=False)

    reading, writing = os.pipe()
    sink = ends[1](writing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(sink.write, BIG, more=False))
        await wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_in_vain)
        await wait_all_tasks_blocked()
        before = anyio.current_time()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await sink.close()
        assert anyio.current_time() - before == pytest.approx(0.5)
    os.close(reading)


async def test_sending_waits_while_the_other_end_has_too_much_unread() -> None:
    a, b = memory_pair(limit=2)
    sent: list[bytes] = []

    async def send(message: bytes) -> None:
        await a.send(OutgoingMessage(message))
        sent.append(message)

    async with anyio.create_task_group() as tasks:
        for message in (b"1", b"2", b"3", b"4"):
            tasks.start_soon(send, message)
        await wait_all_tasks_blocked()
        assert len(sent) == 2
        received = [await b.receive() for _ in range(4)]
    assert sorted(received) == sorted(sent) == [b"1", b"2", b"3", b"4"]


async def test_a_receive_that_was_cancelled_loses_no_message() -> None:
    a, b = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(b.receive)
        await wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    await checkpoint()
    await a.send(OutgoingMessage(b"1"))
    assert await b.receive() == b"1"


async def contents(queue: MessageQueue) -> list[bytes | str]:
    """The items of a closed queue, and the reason of its end."""
    got: list[bytes | str] = []
    while True:
        try:
            got.append(await queue.get())
        except FrameError as error:
            got.append(str(error))
        except EndOfChannel as end:
            return [*got, str(end)]


async def test_an_error_takes_its_turn_even_in_a_full_queue() -> None:
    queue = MessageQueue(1)
    assert await queue.put(b"1")
    queue.put_error(FrameError("too long", -32700))
    queue.close("enough")
    queue.close("once more")
    queue.put_error(FrameError("too late", -32700))
    assert not await queue.put(b"2")
    first, second, reason = await contents(queue)
    assert (first, "too long" in str(second)) == (b"1", True)
    assert "enough" in str(reason)


async def test_a_cleared_queue_is_empty_and_open() -> None:
    queue = MessageQueue()
    for _ in range(2):
        await queue.put(bytes(BUFFERED_BYTES - 1))
        await queue.put(b"1")
        queue.clear()
    await queue.put(b"2")
    queue.close()
    message, reason = await contents(queue)
    assert message == b"2"
    assert "the other end closed the channel" in str(reason)


async def test_messages_are_taken_on_arrival_unless_others_wait() -> None:
    def take(message: bytes) -> bool:
        seen.append(message)
        return message != b"2"

    seen: list[bytes] = []
    queue = MessageQueue()
    queue.take = take
    for message in (b"1", b"2", b"3"):
        assert await queue.put(message)
    queue.close("end")
    assert (await contents(queue))[:-1] == [b"2", b"3"]
    assert seen == [b"1", b"2"]


async def test_a_writer_waits_for_room_in_bytes() -> None:
    queue, half = MessageQueue(), b"x" * (BUFFERED_BYTES // 2)
    put: list[int] = []

    async def write() -> None:
        for number in range(5):
            await queue.put(half)
            put.append(number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        for read in range(4):
            await wait_all_tasks_blocked()
            assert put == list(range(read + 2))
            assert await queue.get() == half
