"""Line channels over every kind of byte end: pipes that are waited for, threads, sockets."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.abc import ByteStream, Listener, SocketAttribute

from kit.simulation import ASYNCIO
from kit.wire import ALL, encode_message, request
from mcpgen_runtime.channel import OutgoingMessage
from mcpgen_runtime.errors import (
    ConnectionClosedError,
    EndOfChannel,
    FrameError,
    LocalProtocolError,
)
from mcpgen_runtime.server.chosen import Server
from mcpgen_runtime.transports.line_channel import (
    LineChannel,
    PolledSink,
    PolledSource,
    Sink,
    Source,
    ThreadedSink,
    ThreadedSource,
    open_sink,
    open_source,
)
from package.transports.streams import stream_channel
from requirements import EVERY_REVISION

pytestmark = pytest.mark.anyio

Ends = tuple[Callable[[int], Source], Callable[[int], Sink]]
KINDS: dict[str, Ends] = {
    "polled": (open_source, open_sink),
    "threaded": (ThreadedSource, ThreadedSink),
}
BIG = b'"%s"' % (b"x" * 500_000)


@pytest.fixture(params=KINDS)
def ends(request: pytest.FixtureRequest) -> Ends:
    return KINDS[request.param]


def pair(ends: Ends) -> tuple[LineChannel, LineChannel]:
    source, sink = ends
    (read_a, write_b), (read_b, write_a) = os.pipe(), os.pipe()
    return LineChannel(source(read_a), sink(write_a)), LineChannel(source(read_b), sink(write_b))


@pytest.fixture(params=[*KINDS, "unix socket", "tcp"])
async def channels(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[LineChannel, LineChannel]]:
    """Two connected channels."""
    if request.param in KINDS:
        a, b = pair(KINDS[request.param])
        yield a, b
        await a.close()
        await b.close()
        return
    if request.param == "tcp":
        listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(SocketAttribute.local_port)
        connected, client = await connect_streams(
            listener, lambda: anyio.connect_tcp("127.0.0.1", port)
        )
    else:
        path = tmp_path / "socket"
        listener = await anyio.create_unix_listener(path)
        connected, client = await connect_streams(listener, lambda: anyio.connect_unix(path))
    yield stream_channel(client), stream_channel(connected)
    for stream in (client, connected, listener):
        await stream.aclose()


async def connect_streams(
    listener: Listener[Any], connect: Callable[[], Awaitable[ByteStream]]
) -> tuple[ByteStream, ByteStream]:
    """Connect to the listener; return its end and the client's."""
    accepted: list[ByteStream] = []
    arrived = anyio.Event()

    async def keep(stream: ByteStream) -> None:
        accepted.append(stream)
        arrived.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, keep)
        client = await connect()
        await arrived.wait()
        tasks.cancel_scope.cancel()
    return accepted[0], client


@pytest.mark.requirement(
    "custom-transport.reuse-stdio-framing", "custom-transport.allowed", revisions=EVERY_REVISION
)
async def test_messages_pass_both_ways_until_one_end_closes(
    channels: tuple[LineChannel, LineChannel],
) -> None:
    a, b = channels
    await a.send(OutgoingMessage(b"1"))
    await a.send(OutgoingMessage(b"2", related_request_id="x"))
    assert [await b.receive(), await b.receive()] == [b"1", b"2"]
    await b.send(OutgoingMessage(b"3"))
    assert await a.receive() == b"3"
    await a.send(OutgoingMessage(b"last"))
    await a.close()
    await a.close()
    assert await b.receive() == b"last"
    for end in (b, a):
        with pytest.raises(EndOfChannel):
            await end.receive()
    with pytest.raises(ConnectionClosedError):
        await a.send(OutgoingMessage(b"1"))
    with pytest.raises(ConnectionClosedError):
        while True:
            await b.send(OutgoingMessage(b"1"))


async def test_large_messages_of_many_tasks_stay_whole(
    channels: tuple[LineChannel, LineChannel],
) -> None:
    a, b = channels
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(a.send, OutgoingMessage(BIG))
        for _ in range(8):
            assert await b.receive() == BIG


# Over anyio's TCP streams no sender waits on asyncio: the other end reads ahead without a limit.
@pytest.mark.parametrize("channels", [*KINDS, "unix socket"], indirect=True)
async def test_closing_wakes_the_tasks_that_wait(channels: tuple[LineChannel, LineChannel]) -> None:
    a, _b = channels

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
        await wait_all_tasks_blocked()
        await a.close()


async def test_a_message_with_a_newline_is_refused_without_harm(
    ends: Ends,
) -> None:
    a, b = pair(ends)
    with pytest.raises(LocalProtocolError):
        await a.send(OutgoingMessage(b"{\n}"))
    await a.send(OutgoingMessage(b"{}"))
    assert await b.receive() == b"{}"
    await a.close()
    await b.close()


async def test_a_begun_message_is_finished_after_its_task_is_cancelled(ends: Ends) -> None:
    a, b = pair(ends)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.send, OutgoingMessage(BIG))
        await wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.send, OutgoingMessage(b"next"))
        assert await b.receive() == BIG
        assert await b.receive() == b"next"
    await a.close()
    await b.close()


async def test_closing_lets_a_message_that_was_begun_go_out(ends: Ends) -> None:
    a, b = pair(ends)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.send, OutgoingMessage(BIG))
        await wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.close)
        assert await b.receive() == BIG
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


async def test_a_source_closed_while_unread_gives_what_the_pipe_holds() -> None:
    read_end, write_end = os.pipe()
    source = open_source(read_end)
    os.write(write_end, b"1")
    source.stop_waiting()
    assert [await source.read(), await source.read()] == [b"1", b""]
    await source.close()
    os.close(write_end)


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
    assert await source.read() == b""
    await source.close()


async def test_bytes_that_come_while_nobody_reads_stay_in_the_pipe(ends: Ends) -> None:
    a, b = pair(ends)
    await a.send(OutgoingMessage(b"1"))
    assert await b.receive() == b"1"
    await a.send(OutgoingMessage(b"2"))
    await wait_all_tasks_blocked()
    await a.send(OutgoingMessage(b"3"))
    assert [await b.receive(), await b.receive()] == [b"2", b"3"]
    await a.close()
    await b.close()


async def test_how_a_descriptor_is_served_depends_on_what_it_can(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    read_end, write_end = os.pipe()
    with ours, theirs, (tmp_path / "file").open("w+") as file:
        opened = [
            open_source(os.dup(ours.fileno())),
            open_source(read_end),
            open_sink(write_end),
            open_source(os.dup(file.fileno())),
            open_sink(os.dup(file.fileno())),
        ]
        assert [type(end) for end in opened] == [
            PolledSource,
            PolledSource,
            PolledSink,
            ThreadedSource,
            ThreadedSink,
        ]
        for end in opened:
            await end.close()


@contextmanager
def recording_socket() -> Iterator[tuple[int, socket.socket]]:
    """A descriptor to write to, and a socket that receives each write as one record."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.setblocking(False)
        yield os.dup(ours.fileno()), theirs


def records(recorder: socket.socket) -> list[list[bytes]]:
    """The lines of each write so far."""
    writes = []
    with suppress(BlockingIOError):
        while record := recorder.recv(1_000_000):
            writes.append(record.splitlines())
    return writes


AT_ONCE = 32


@pytest.mark.skipif(not hasattr(socket, "SOCK_SEQPACKET"), reason="needs sockets with records")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on trio each answer is written at once
async def test_requests_that_came_together_are_answered_by_few_writes() -> None:
    revision = ALL[-1]
    server = Server("together")

    @server.tool()
    async def echo(text: str) -> str:
        return text

    requests = [
        request(revision, "tools/call", {"name": "echo", "arguments": {"text": "x"}}, id=id)
        for id in range(AT_ONCE)
    ]
    read_end, write_end = os.pipe()
    with recording_socket() as (fd, recorder):
        channel = LineChannel(open_source(read_end), open_sink(fd))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, channel)
            os.write(write_end, b"".join(encode_message(each) + b"\n" for each in requests))
            await anyio.wait_readable(recorder)
            writes = records(recorder)
            while sum(map(len, writes)) < AT_ONCE:
                await anyio.wait_readable(recorder)
                writes += records(recorder)
            os.write(write_end, encode_message(requests[0]) + b"\n")
            await anyio.wait_readable(recorder)
            (answer,) = records(recorder)
            os.close(write_end)
    answers = [each for written in [*writes, answer] for each in written]
    assert [json.loads(each)["id"] for each in answers] == [*range(AT_ONCE), 0]
    assert len(writes) <= AT_ONCE / 2


@pytest.mark.skipif(not hasattr(socket, "SOCK_SEQPACKET"), reason="needs sockets with records")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_messages_of_one_turn_leave_by_two_writes_in_order() -> None:
    messages = [b"%d" % number for number in range(AT_ONCE)]
    read_end, write_end = os.pipe()
    with recording_socket() as (fd, recorder):
        channel = LineChannel(open_source(read_end), open_sink(fd))
        async with anyio.create_task_group() as tasks:
            for message in messages:
                tasks.start_soon(channel.send, OutgoingMessage(message))
        await wait_all_tasks_blocked()
        assert records(recorder) == [messages[:1], messages[1:]]
        await channel.send(OutgoingMessage(b"a"))
        await channel.send(OutgoingMessage(b"b"))
        await channel.close()
        assert records(recorder) == [[b"a"], [b"b"]]
    os.close(write_end)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_batch_that_blocks_the_pipe_needs_no_further_write() -> None:
    messages = [b"%d" % number * 10_000 for number in range(1, 9)]
    for_reading, for_writing = os.pipe()
    filler = b"x" * 60_000
    a, b = LineChannel(open_source(os.dup(0)), open_sink(for_writing)), open_source(for_reading)
    async with anyio.create_task_group() as tasks:
        for message in (filler, *messages):
            tasks.start_soon(a.send, OutgoingMessage(message))
        await wait_all_tasks_blocked()
        reader = LineChannel(b, open_sink(os.dup(1)))
        assert [await reader.receive() for _ in range(9)] == [filler, *messages]
    await a.close()
    await reader.close()


async def test_ends_that_were_never_used_close_too(ends: Ends) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    a, b = pair(ends)
    for channel in (a, b, a, b):
        await channel.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_a_closed_sink_leaves_the_blocking_mode_to_others(ends: Ends) -> None:
    reading, writing = os.pipe()
    other = os.dup(writing)  # as a shell that has the same pipe
    try:
        _, sink = ends
        await sink(writing).close()
        assert os.get_blocking(other)
    finally:
        os.close(other)
        os.close(reading)


class Memory:
    """A source of given bytes, and a sink that keeps what is written."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)
        self.written: list[tuple[bytes, bool]] = []

    async def read(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""

    def interrupt(self) -> None:
        """Nobody waits."""

    async def write(self, data: bytes, *, more: bool) -> None:
        self.written.append((data, more))

    async def close(self) -> None:
        """Nothing is open."""


async def received(channel: LineChannel) -> list[bytes | str]:
    """The messages that a channel still gives; errors by their types."""
    got: list[bytes | str] = []
    while True:
        try:
            got.append(await channel.receive())
        except FrameError:
            got.append("too long")
        except EndOfChannel:
            return got


async def test_unread_messages_are_dropped_when_receiving_ends() -> None:
    ends = Memory(b"1\n2\n3\n", b"4\n")
    channel = LineChannel(ends, ends)
    assert await channel.receive() == b"1"
    channel.end_receiving()
    assert await received(channel) == []


async def test_responses_are_written_together_while_requests_wait() -> None:
    ends = Memory(b"1\n2\n", b"3\n")
    channel = LineChannel(ends, ends)
    for number in range(1, 4):
        await channel.receive()
        await channel.send(OutgoingMessage(b"%d" % number))
    assert ends.written == [(b"1\n", True), (b"2\n", False), (b"3\n", False)]


async def test_a_source_is_drained_to_its_end() -> None:
    ends = Memory(b"1\n", b"2\n")
    await LineChannel(ends, ends).drain()
    assert await ends.read() == b""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("second", "waiting"), [(1047, 0), (1048, 0), (1049, 2049)])
async def test_messages_of_one_turn_wait_for_its_end_up_to_2_kib(second: int, waiting: int) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    sink = open_sink(writing)
    await sink.write(b"a" * 1000, more=True)
    await sink.write(b"b" * second, more=True)
    with suppress(BlockingIOError):
        got = b""
        got = os.read(reading, 4096)
    assert len(got) == waiting
    await wait_all_tasks_blocked()
    with suppress(BlockingIOError):
        got += os.read(reading, 4096)
    assert got == b"a" * 1000 + b"b" * second
    await sink.close()
    os.close(reading)


@pytest.mark.parametrize("anyio_backend", [ASYNCIO])
async def test_closing_waits_half_a_second_for_a_slow_reader(ends: Ends) -> None:
    reading, writing = os.pipe()
    sink = ends[1](writing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(sink.write, BIG, more=False))
        await wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    before = anyio.current_time()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await sink.close()
    assert anyio.current_time() - before == pytest.approx(0.5)
    os.close(reading)
