"""The counters that all clients of one application share, each by itself."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import anyio
import pytest

from mcp_protocol.server.asgi.quotas import MemoryQuota, Quotas, StreamMemory, StreamQuota
from mcp_protocol.server.asgi.response_writer import SseResponse
from mcp_protocol.server.asgi.settings import Limits

pytestmark = pytest.mark.anyio


async def never() -> MutableMapping[str, Any]:
    """Receive nothing from a client that stays connected."""
    await anyio.sleep_forever()
    raise AssertionError


async def drop(message: MutableMapping[str, Any]) -> None:
    """Send nothing."""


async def test_a_stream_that_opens_while_the_application_ends_is_ended() -> None:
    streams = StreamQuota(limit=1)
    streams.close()
    with anyio.fail_after(10):
        assert not await streams.hold(never, SseResponse(drop, 1), None, anyio.CancelScope())


def test_so_many_streams_are_open_at_a_time() -> None:
    streams = StreamQuota(limit=2)
    assert [streams.enter() for _ in range(3)] == [True, True, False]
    streams.leave()
    assert (len(streams), streams.enter(), len(streams)) == (1, True, 2)


async def test_memory_is_reserved_up_to_the_limit_and_returned_once() -> None:
    memory = MemoryQuota(limit=10)
    stream = StreamMemory(lambda: None)
    assert await memory.reserve(4)
    assert await memory.reserve(6, stream)
    assert not await memory.reserve(1, stream)
    memory.release(2, stream)
    assert (memory.size, stream.size) == (8, 4)
    for _ in range(2):
        memory.close(stream)
        memory.release(3, stream)
        assert memory.size == 4
    memory.release(4)
    assert memory.size == 0


async def test_the_largest_other_stream_ends_if_that_makes_room() -> None:
    memory = MemoryQuota(limit=10)
    ended: list[str] = []
    small, large = StreamMemory(lambda: ended.append("s")), StreamMemory(lambda: ended.append("l"))
    await memory.reserve(3, small)
    await memory.reserve(7, large)
    assert not await memory.reserve(7, large)
    assert not await memory.reserve(7)  # more than 7 have to be free for 7
    assert ended == []
    assert await memory.reserve(6)
    assert (ended, memory.size) == (["l"], 9)


async def test_an_idle_session_ends_only_for_bytes_that_lack_room() -> None:
    memory = MemoryQuota(limit=10)
    asked: list[int] = []

    async def end_idle_session(size: int) -> None:
        asked.append(size)
        memory.release(5)

    memory.end_idle_session = end_idle_session
    assert await memory.reserve(10)
    assert await memory.reserve(3)
    assert (asked, memory.size) == ([3], 8)


@pytest.mark.parametrize(
    ("served", "has_room", "looks"), [(4, True, False), (5, True, True), (10, False, True)]
)
def test_disconnected_clients_are_looked_for_from_half_the_limit_on(
    served: int, has_room: bool, looks: bool
) -> None:
    quotas = Quotas(Limits(in_flight=10))
    looked: list[None] = []
    quotas.find_disconnected.append(lambda: looked.append(None))
    quotas.in_flight = served
    assert (quotas.has_room(), bool(looked)) == (has_room, looks)
