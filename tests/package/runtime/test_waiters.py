"""A task that waits for a response: settled once, with notifications in their order before."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from mcpgen_runtime.runtime.concurrency import event_type
from mcpgen_runtime.runtime.pending_requests import Waiter

pytestmark = [pytest.mark.anyio, pytest.mark.on_asyncio]


async def test_a_waiter_is_settled_once() -> None:
    waiter = Waiter(event_type())
    assert not waiter.settled
    first = ValueError("first")
    waiter.settle(failure=first)
    waiter.settle(failure=ValueError("second"))
    assert (waiter.settled, waiter.response, waiter.failure) == (True, None, first)
    with anyio.fail_after(5):
        await waiter.wait()


@pytest.mark.parametrize("waits", [False, True])
async def test_notifications_before_the_end_are_handled_in_order(waits: bool) -> None:
    heard: list[tuple[object, ...]] = []

    def hear(*arguments: object) -> None:
        heard.append(arguments)

    async def hear_later(*arguments: object) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(arguments)

    waiter = Waiter(event_type(), hear_later if waits else hear)
    ended: list[int] = []

    async def wait() -> None:
        await waiter.wait()
        ended.append(len(heard))

    waiter.deliver(1, None, "early")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert heard == [(1, None, "early")]
        waiter.deliver(2)
        waiter.deliver(3)
        await anyio.wait_all_tasks_blocked()
        assert heard[1:] == [(2,), (3,)]
        assert ended == []
        waiter.deliver(4)
        waiter.settle()
        waiter.deliver(5)
    assert heard[3:] == [(4,)]
    assert ended == [4]


async def test_without_a_function_notifications_are_dropped() -> None:
    waiter = Waiter(event_type())
    waiter.deliver(1)
    assert waiter.notifications is None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waiter.wait)
        await anyio.wait_all_tasks_blocked()
        waiter.settle()
        waiter.settle()


@pytest.mark.parametrize(("count", "first"), [(1024, 0), (1025, 1), (1030, 6)])
async def test_the_oldest_of_too_many_notifications_are_dropped(count: int, first: int) -> None:
    heard: list[int] = []
    waiter = Waiter(event_type(), heard.append)
    for number in range(count):
        waiter.deliver(number)
    waiter.settle()
    await waiter.wait()
    assert heard == list(range(first, count))


async def test_an_exception_of_the_function_ends_the_waiting() -> None:
    def refuse(number: int) -> None:
        raise ValueError(number)

    waiter = Waiter(event_type(), refuse)
    waiter.deliver(1)
    with pytest.raises(ValueError, match="1"):
        await waiter.wait()
