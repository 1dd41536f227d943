"""The bodies that an application reads: whatever becomes of one, none is counted afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_protocol.server.asgi.request import Disconnected, RejectedBody, RequestBodies
from mcp_protocol.server.asgi.settings import Limits

pytestmark = pytest.mark.anyio

PART = 40_000
LIMITS = Limits(body=4 * PART, bodies=10 * PART)


def part(size: int = PART, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


async def read(bodies: RequestBodies, *messages: MutableMapping[str, Any]) -> bytes | RejectedBody:
    """The body that some messages have; it comes in pieces, and never ends if none is the last."""
    waiting = iter(messages)

    async def receive() -> MutableMapping[str, Any]:
        await anyio.lowlevel.checkpoint()
        for message in waiting:
            return message
        await anyio.sleep_forever()
        raise AssertionError("sleeps for ever")

    with anyio.CancelScope() as scope:
        return await bodies.read(scope, receive)
    return bodies.rejection(scope)


async def test_a_long_body_is_counted_until_it_is_released() -> None:
    bodies = RequestBodies(LIMITS)
    body = await read(bodies, part(), part(more=False))
    assert isinstance(body, bytes)
    assert (len(body), bodies.size) == (2 * PART, 2 * PART)
    bodies.release(body)
    assert bodies.size == 0


async def test_a_short_body_is_not_counted() -> None:
    bodies = RequestBodies(LIMITS)
    body = await read(bodies, part(64), part(64, more=False))
    assert isinstance(body, bytes)
    assert bodies.size == 0
    bodies.release(body)
    assert bodies.size == 0


async def test_an_incomplete_body_is_counted_as_it_comes() -> None:
    bodies = RequestBodies(LIMITS)
    sizes = []

    async def receive() -> MutableMapping[str, Any]:
        await anyio.lowlevel.checkpoint()
        sizes.append(bodies.size)
        return part(more=len(sizes) < 4)

    body = await bodies.read(anyio.CancelScope(), receive)
    assert isinstance(body, bytes)
    assert sizes == [0, 0, 2 * PART, 3 * PART]
    assert bodies.size == 4 * PART


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("last", "status"),
    [(part(2 * PART + 1), 413), ({"type": "http.disconnect"}, None)],
    ids=["too long", "disconnected"],
)
async def test_a_body_that_does_not_end_well_is_not_counted(
    last: dict[str, Any], status: int | None
) -> None:
    bodies = RequestBodies(LIMITS)
    if status is None:
        with pytest.raises(Disconnected):
            await read(bodies, part(), part(), last)
    else:
        rejected = await read(bodies, part(), part(), last)
        assert isinstance(rejected, RejectedBody)
        assert (rejected.response.status, rejected.unread) == (status, True)
    assert bodies.size == 0


class Slow:
    """A body that comes part by part, when told; its outcome once there is one."""

    def __init__(self, bodies: RequestBodies) -> None:
        self._bodies = bodies
        self._send, self._parts = anyio.create_memory_object_stream[dict[str, Any]](9)
        self.outcome: bytes | RejectedBody | None = None

    async def run(self) -> None:
        with anyio.CancelScope() as scope, self._send, self._parts:
            self.outcome = await self._bodies.read(scope, self._parts.receive)
        if scope.cancelled_caught:
            self.outcome = self._bodies.rejection(scope)

    async def comes(self, **how: Any) -> None:
        self._send.send_nowait(part(**how))
        await anyio.wait_all_tasks_blocked()

    @property
    def status(self) -> int | None:
        return self.outcome.response.status if isinstance(self.outcome, RejectedBody) else None


@pytest.fixture
async def slow() -> AsyncIterator[Callable[[RequestBodies], Slow]]:
    """Begins bodies that come part by part."""
    async with anyio.create_task_group() as tasks:

        def begin(bodies: RequestBodies) -> Slow:
            body = Slow(bodies)
            tasks.start_soon(body.run)
            return body

        yield begin
        tasks.cancel_scope.cancel()


async def test_the_body_longest_without_a_part_makes_room(
    slow: Callable[[RequestBodies], Slow],
) -> None:
    bodies = RequestBodies(Limits(body=9 * PART, bodies=6 * PART))
    first, second, third = (slow(bodies) for _ in range(3))
    for body in (first, second, third):
        await body.comes(size=2 * PART)
    assert bodies.size == 6 * PART  # as many as fit
    await first.comes(size=0)
    await third.comes()
    assert [body.status for body in (first, second, third)] == [None, 503, None]
    assert bodies.size == 5 * PART
    await third.comes(more=False)
    assert isinstance(third.outcome, bytes)
    assert bodies.size == 6 * PART


async def test_a_body_without_room_is_refused_when_no_other_waits(
    slow: Callable[[RequestBodies], Slow],
) -> None:
    bodies = RequestBodies(Limits(body=9 * PART, bodies=3 * PART))
    held = await read(bodies, part(2 * PART, more=False))
    assert isinstance(held, bytes)
    body = slow(bodies)
    for _ in range(2):
        await body.comes()
    assert body.status == 503
    assert isinstance(body.outcome, RejectedBody)
    assert (body.outcome.unread, body.outcome.full) == (True, True)
    whole = await read(bodies, part(2 * PART, more=False))
    assert isinstance(whole, RejectedBody)
    assert (whole.response.status, whole.unread, whole.full) == (503, False, True)
    assert bodies.size == 2 * PART


async def test_only_so_many_bodies_are_read_at_once(
    slow: Callable[[RequestBodies], Slow],
) -> None:
    bodies = RequestBodies(Limits(reading=2))
    first, second = (slow(bodies) for _ in range(2))
    for body in (first, second, first):
        await body.comes()
    third = slow(bodies)
    await third.comes()
    assert [body.status for body in (first, second, third)] == [None, 503, None]
    await first.comes(more=False)
    assert isinstance(first.outcome, bytes)


@pytest.mark.parametrize(("size", "counted"), [(65536, 0), (65537, 65537)])
async def test_a_body_of_more_than_64_kib_is_counted(size: int, counted: int) -> None:
    bodies = RequestBodies(LIMITS)
    body = await read(bodies, part(size, more=False))
    assert isinstance(body, bytes)
    assert bodies.size == counted
    bodies.release(body)
    assert bodies.size == 0
