"""Streams of events, written to an ASGI server in memory: bytes, order and exact moments."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from kit.asgi_wire import LAST, START, Wire, part
from kit.simulation import on_virtual_clock
from mcpgen_runtime import ConnectionClosedError
from mcpgen_runtime.server.asgi.http_response import SseResponse, until_disconnect

pytestmark = [pytest.mark.processes, on_virtual_clock]

COMMENT = b":\n\n"
KIB_64 = 2**16
SEND_SECONDS = 8.0
"""Seconds that a client may leave events unread."""


@pytest.fixture
def aborts() -> list[float]:
    """When a client was found to be gone."""
    return []


async def opened(wire: Wire, aborts: list[float]) -> SseResponse:
    """A response that was started."""
    response = SseResponse(wire.send, SEND_SECONDS)
    response.on_abort = lambda: aborts.append(anyio.current_time())
    await response.open()
    return response


async def test_a_stream_is_sent_byte_for_byte() -> None:
    wire = Wire()
    response = SseResponse(wire.send, SEND_SECONDS)
    await response.open({"Mcp-Session-Id": "one"})
    await response.write_event(b"{}")
    await response.write_event(b"", type="endpoint", id="a-1", retry=500)
    await response.write_comment()
    for _ in range(2):
        await response.close()
    assert wire.sent == [
        {**START, "headers": [*START["headers"], (b"mcp-session-id", b"one")]},
        part(b""),
        part(b"data: {}\n\n"),
        part(b"event: endpoint\nid: a-1\nretry: 500\ndata: \n\n"),
        part(COMMENT),
        LAST,
    ]


@pytest.mark.parametrize(
    ("read", "unread", "seconds"),
    [
        ((), 0, 8.0),
        ((), KIB_64, 9.0),
        ((), 3 * KIB_64, 11.0),
        ((2 * KIB_64,), KIB_64, 11.0),  # the last event that was taken may be in a buffer
        ((5 * KIB_64, KIB_64 // 2), KIB_64, 9.5),
        ((5 * KIB_64, 0), KIB_64, 9.0),
    ],
)
async def test_a_client_has_a_second_more_for_each_64_kib_unread(
    read: Sequence[int], unread: int, seconds: float, aborts: list[float]
) -> None:
    wire = Wire()
    response = await opened(wire, aborts)

    async def write(size: int) -> None:
        if size:
            await response.write_event(b"x" * (size - len(b"data: \n\n")))
        else:
            await response.write_comment()

    for size in read:
        await write(size)
    wire.stop_reading()
    sent = len(wire.sent)
    with pytest.raises(ConnectionClosedError, match=r"read nothing for 8 s \(Limits.send_seconds"):
        await write(unread)
    with pytest.raises(ConnectionClosedError, match=r"is closed$"):
        await write(unread)
    assert (aborts, len(wire.sent)) == ([seconds], sent)


@pytest.mark.parametrize("writes", [False, True])
async def test_a_client_that_is_gone_is_told_once(writes: bool, aborts: list[float]) -> None:
    wire = Wire()
    response = await opened(wire, aborts)
    wire.is_gone = True
    if writes:
        with pytest.raises(ConnectionClosedError, match=r"^the client is gone: broken pipe$"):
            await response.write_comment()
        with pytest.raises(ConnectionClosedError, match=r"is closed$"):
            await response.write_comment()
    for _ in range(2):
        await response.close()
    assert (response.is_open, len(aborts)) == (False, 1)


@pytest.mark.parametrize(
    ("read_at", "ended_at", "is_cut"), [(7.0, 7.0, False), (8.5, 8.0, True)], ids=["in time", "not"]
)
async def test_the_end_of_a_cancelled_stream_waits_for_the_reader(
    read_at: float, ended_at: float, is_cut: bool, aborts: list[float]
) -> None:
    wire = Wire()
    response = await opened(wire, aborts)
    wire.stop_reading()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.read_at, read_at)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await response.close()
            ended = anyio.current_time()
    assert (ended, response.is_open, bool(aborts)) == (ended_at, False, is_cut)
    assert (wire.sent[-1] == LAST) is not is_cut


DISCONNECT, MORE = "http.disconnect", "http.request"


@pytest.mark.parametrize(
    ("keep_alive", "events", "commented"),
    [
        (10.0, [(35.0, DISCONNECT)], [10.0, 20.0, 30.0]),
        (10.0, [(4.0, MORE), (35.0, DISCONNECT)], [10.0, 20.0, 30.0]),
        (10.0, [(9.0, DISCONNECT)], []),
        pytest.param(10.0, [(12.0, "")], [10.0], id="the connection is reset"),
        (None, [(99.0, DISCONNECT)], []),
    ],
)
async def test_a_silent_stream_gets_comments_until_the_client_leaves(
    keep_alive: float | None,
    events: Sequence[tuple[float, str]],
    commented: Sequence[float],
    aborts: list[float],
) -> None:
    wire = Wire(*events)
    response = await opened(wire, aborts)
    await until_disconnect(wire.receive, response, keep_alive)
    assert wire.bodies() == [(moment, COMMENT) for moment in commented]
    assert (response.is_open, aborts) == (False, [events[-1][0]])


async def test_an_event_puts_the_next_comment_off(aborts: list[float]) -> None:
    wire = Wire((45.0, DISCONNECT))
    response = await opened(wire, aborts)

    async def write_at(moment: float) -> None:
        await anyio.sleep_until(moment)
        await response.write_event(b"{}")

    async with anyio.create_task_group() as tasks:
        for moment in (3.0, 7.0, 30.0):
            tasks.start_soon(write_at, moment)
        await until_disconnect(wire.receive, response, 10.0)
    assert [moment for moment, body in wire.bodies() if body == COMMENT] == [17.0, 27.0, 40.0]
