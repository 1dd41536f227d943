"""Responses that are streams, written to an ASGI server in memory: bytes, order and moments.

Time passes as soon as nothing else happens, so moments are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_protocol.errors import ConnectionClosedError
from mcp_protocol.server.asgi.response_writer import SseResponse, until_disconnect
from package.client.simulation import ASYNCIO

START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    ],
}
LAST = {"type": "http.response.body", "body": b""}
COMMENT = b":\n\n"
KIB_64 = 2**16
PATIENCE = 8.0
"""Seconds that a client may leave events unread."""


@pytest.fixture
def anyio_backend() -> Any:
    return ASYNCIO


def part(body: bytes) -> dict[str, Any]:
    """A part of a body that others follow."""
    return {"type": "http.response.body", "body": body, "more_body": True}


class Wire:
    """The server's side of ASGI.

    Args:
        events: Moments and types of the messages that the application receives; the last is a
            disconnect, and raises `OSError` where its type is empty.

    Attributes:
        sent: The messages of the application.
        moments: When they were sent.
        turns: The number of messages at each turn of `watch`.
        is_gone: Whether the client is gone.
    """

    def __init__(self, *events: tuple[float, str]) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.moments: list[float] = []
        self.turns: list[int] = []
        self.is_gone = False
        self._events = [*events]
        self._reads: anyio.Event | None = None

    def stop_reading(self) -> None:
        """Have the application wait."""
        self._reads = anyio.Event()

    async def read_at(self, moment: float) -> None:
        """Read again from a moment on."""
        await anyio.sleep_until(moment)
        assert self._reads is not None
        self._reads.set()

    async def watch(self) -> None:
        """Count at each turn what was sent."""
        while True:
            self.turns.append(len(self.sent))
            await anyio.lowlevel.checkpoint()

    async def send(self, message: Mapping[str, Any]) -> None:
        """See ASGI."""
        if self._reads is not None:
            await self._reads.wait()
        if self.is_gone:
            raise BrokenPipeError("broken pipe")
        self.sent.append(message)
        self.moments.append(anyio.current_time())

    async def receive(self) -> Mapping[str, Any]:
        """See ASGI."""
        moment, kind = self._events[0]
        await anyio.sleep_until(moment)
        del self._events[0]
        if not kind:
            raise ConnectionResetError("reset")
        return {"type": kind}

    def bodies(self) -> list[tuple[float, bytes]]:
        """The parts of the body that are not empty, with their moments."""
        return [
            (moment, message["body"])
            for moment, message in zip(self.moments, self.sent, strict=True)
            if message.get("body")
        ]


class Aborts:
    """Counts how often a client was found to be gone."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


async def opened(wire: Wire, seconds: float = PATIENCE) -> tuple[SseResponse, Aborts]:
    """A response that was started."""
    response, aborts = SseResponse(wire.send, seconds), Aborts()
    response.on_abort = aborts
    await response.open()
    return response, aborts


async def test_a_stream_is_sent_byte_for_byte() -> None:
    wire = Wire()
    response = SseResponse(wire.send, PATIENCE)
    assert (response.started, response.is_open, response.last_write) == (False, False, 0.0)
    await response.open({"Mcp-Session-Id": "one"})
    assert (response.started, response.is_open) == (True, True)
    await response.write_event(b"{}")
    await response.write_event(b"", type="endpoint", id="a-1", retry=500)
    await response.write_comment()
    await response.close()
    assert (response.started, response.is_open) == (True, False)
    await response.close()
    fields = [*START["headers"], (b"mcp-session-id", b"one")]  # type: ignore[misc]  # a list
    assert wire.sent == [
        {**START, "headers": fields},
        part(b""),
        part(b"data: {}\n\n"),
        part(b"event: endpoint\nid: a-1\nretry: 500\ndata: \n\n"),
        part(COMMENT),
        LAST,
    ]


@pytest.mark.parametrize("is_started", [False, True])
async def test_a_stream_that_is_not_open_takes_no_events(is_started: bool) -> None:
    wire, aborts = Wire(), Aborts()
    response = SseResponse(wire.send, PATIENCE)
    response.on_abort = aborts
    if is_started:
        await response.open()
        await response.close()
    before = len(wire.sent)
    await response.close()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.watch)
        for turn in (1, 2):  # a loop that goes on regardless can be cancelled
            with pytest.raises(ConnectionClosedError, match="^the stream of events is closed$"):
                await response.write_event(b"{}")
            assert wire.turns == [before] * turn
        tasks.cancel_scope.cancel()
    assert aborts.count == 0


@pytest.mark.parametrize(
    ("read", "unread", "seconds"),
    [
        ((), 0, 8.0),
        ((), KIB_64, 9.0),
        ((), 3 * KIB_64, 11.0),
        ((2 * KIB_64,), KIB_64, 11.0),  # the last event that was taken may be in a buffer
        ((KIB_64, KIB_64), 2 * KIB_64, 11.0),
        ((5 * KIB_64, KIB_64 // 2), KIB_64, 9.5),
        ((5 * KIB_64, 0), KIB_64, 9.0),
    ],
)
async def test_a_client_has_a_second_more_for_each_64_kib_unread(
    read: Sequence[int], unread: int, seconds: float
) -> None:
    wire = Wire()
    response, aborts = await opened(wire)

    async def write(size: int) -> None:
        if size:
            await response.write_event(b"x" * (size - len(b"data: \n\n")))
        else:
            await response.write_comment()

    for size in read:
        await write(size)
    wire.stop_reading()
    sent = len(wire.sent)
    with pytest.raises(ConnectionClosedError) as caught:
        await write(unread)
    assert str(caught.value) == "the client read nothing for 8 s (Limits.send_seconds)"
    assert (anyio.current_time(), len(wire.sent)) == (seconds, sent)
    assert (response.is_open, aborts.count, response.on_abort) == (False, 1, None)
    with pytest.raises(ConnectionClosedError, match="is closed$"):
        await write(unread)
    response.abort()
    assert aborts.count == 1


async def test_a_client_that_reads_in_time_keeps_its_stream() -> None:
    wire = Wire()
    wire.stop_reading()
    response, aborts = SseResponse(wire.send, PATIENCE), Aborts()
    response.on_abort = aborts
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.read_at, 7.5)
        await response.open()
    assert (wire.moments, response.is_open, aborts.count) == ([7.5, 7.5], True, 0)
    assert response.last_write == 7.5


async def test_events_of_other_tasks_come_after_the_whole_head() -> None:
    wire = Wire()
    wire.stop_reading()
    response = SseResponse(wire.send, PATIENCE)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(response.open)
        tasks.start_soon(response.write_event, b"1")
        tasks.start_soon(response.write_event, b"2")
        tasks.start_soon(wire.read_at, 1.0)
    assert wire.sent == [START, part(b""), part(b"data: 1\n\n"), part(b"data: 2\n\n")]


async def test_a_task_that_only_writes_lets_others_run_meanwhile() -> None:
    wire = Wire()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.watch)
        response, _ = await opened(wire)
        for _ in range(40):
            await response.write_comment()
        tasks.cancel_scope.cancel()
    assert wire.turns == [15, 31]


async def test_a_stream_closed_while_others_run_takes_no_event() -> None:
    wire = Wire()
    response, aborts = await opened(wire)
    for _ in range(13):
        await response.write_comment()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(response.close)
        with pytest.raises(ConnectionClosedError, match="is closed$"):
            await response.write_comment()
    assert (wire.sent[-1], aborts.count) == (LAST, 0)


async def test_a_client_that_is_gone_is_told_to_the_writer_once() -> None:
    wire = Wire()
    response, aborts = await opened(wire)
    wire.is_gone = True
    with pytest.raises(ConnectionClosedError, match="^the client is gone: broken pipe$"):
        await response.write_comment()
    assert (response.is_open, aborts.count) == (False, 1)
    with pytest.raises(ConnectionClosedError, match="is closed$"):
        await response.write_comment()
    await response.close()
    assert aborts.count == 1


async def test_the_end_for_a_client_that_is_gone_is_no_error() -> None:
    wire = Wire()
    response, aborts = await opened(wire)
    wire.is_gone = True
    await response.close()
    assert (response.is_open, aborts.count) == (False, 1)


@pytest.mark.parametrize(
    ("read_at", "ended_at", "aborts"), [(7.0, 7.0, 0), (8.5, 8.0, 1)], ids=["in time", "too late"]
)
async def test_the_end_of_a_cancelled_stream_waits_for_the_reader(
    read_at: float, ended_at: float, aborts: int
) -> None:
    wire = Wire()
    response, counted = await opened(wire)
    wire.stop_reading()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.read_at, read_at)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await response.close()
            ended = anyio.current_time()
    assert (ended, response.is_open, counted.count) == (ended_at, False, aborts)
    assert (wire.sent[-1] == LAST) == (not aborts)


DISCONNECT, MORE = "http.disconnect", "http.request"


@pytest.mark.parametrize(
    ("keep_alive", "events", "commented"),
    [
        (10.0, [(35.0, DISCONNECT)], [10.0, 20.0, 30.0]),
        (10.0, [(4.0, MORE), (35.0, DISCONNECT)], [10.0, 20.0, 30.0]),
        (10.0, [(9.0, DISCONNECT)], []),
        (10.0, [(12.0, "")], [10.0]),
        (None, [(99.0, DISCONNECT)], []),
    ],
)
async def test_a_silent_stream_gets_comments_until_the_client_leaves(
    keep_alive: float | None, events: Sequence[tuple[float, str]], commented: Sequence[float]
) -> None:
    wire = Wire(*events)
    response, aborts = await opened(wire)
    await until_disconnect(wire.receive, response, keep_alive)
    assert wire.bodies() == [(moment, COMMENT) for moment in commented]
    assert anyio.current_time() == events[-1][0]
    assert (response.is_open, aborts.count) == (False, 1)


async def test_an_event_puts_the_next_comment_off() -> None:
    wire = Wire((45.0, DISCONNECT))
    response, _ = await opened(wire)

    async def write_at(moment: float) -> None:
        await anyio.sleep_until(moment)
        await response.write_event(b"{}")

    async with anyio.create_task_group() as tasks:
        for moment in (3.0, 7.0, 30.0):
            tasks.start_soon(write_at, moment)
        await until_disconnect(wire.receive, response, 10.0)
    assert [moment for moment, body in wire.bodies() if body == COMMENT] == [17.0, 27.0, 40.0]


async def test_a_comment_that_cannot_be_written_ends_the_watch() -> None:
    wire = Wire((99.0, DISCONNECT))
    response, aborts = await opened(wire)
    wire.is_gone = True
    await until_disconnect(wire.receive, response, 10.0)
    assert (anyio.current_time(), aborts.count) == (10.0, 1)


async def tell(moments: list[float]) -> None:
    """Record the moment of a call."""
    moments.append(anyio.current_time())


@pytest.mark.parametrize(
    ("is_started", "since", "called"),
    [(False, None, [10.0, 20.0]), (False, -4.0, [6.0, 16.0]), (True, None, [])],
)
async def test_silence_before_a_stream_is_told_after_each_period(
    is_started: bool, since: float | None, called: Sequence[float]
) -> None:
    wire, moments = Wire((25.0, DISCONNECT)), list[float]()
    response = SseResponse(wire.send, PATIENCE, since)
    if is_started:
        await response.open()
        await response.close()
    await until_disconnect(wire.receive, response, 10.0, lambda: tell(moments))
    assert moments == called
    assert wire.bodies() == []


async def test_silence_that_nobody_is_told_of_is_waited_for() -> None:
    wire = Wire((25.0, DISCONNECT))
    response = SseResponse(wire.send, PATIENCE)
    await until_disconnect(wire.receive, response, 10.0)
    assert (anyio.current_time(), wire.sent) == (25.0, [])
