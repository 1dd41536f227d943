"""Two channels in one process: order, limits and ends."""

from __future__ import annotations

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from mcp_protocol.channel import OutgoingMessage
from mcp_protocol.errors import ConnectionClosedError, EndOfChannel
from mcp_protocol.transports.memory import memory_pair
from requirements import EVERY_REVISION

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("custom-transport.allowed", revisions=EVERY_REVISION)
async def test_messages_are_received_in_the_order_of_sending() -> None:
    a, b = memory_pair()
    for message in (b"1", b"2", b"3"):
        await a.send(OutgoingMessage(message))
    assert [await b.receive() for _ in range(3)] == [b"1", b"2", b"3"]
    await b.send(OutgoingMessage(b"back", related_request_id=1))
    assert await a.receive() == b"back"


async def test_receiving_waits_until_something_is_sent() -> None:
    a, b = memory_pair()
    got: list[bytes] = []

    async def receive() -> None:
        got.append(await b.receive())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await wait_all_tasks_blocked()
        assert got == []
        await a.send(OutgoingMessage(b"1"))
    assert got == [b"1"]


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


async def test_closing_one_end_ends_the_other_after_what_was_sent() -> None:
    a, b = memory_pair()
    await a.send(OutgoingMessage(b"last"))
    await a.close()
    await a.close()
    assert await b.receive() == b"last"
    for end in (b, a):
        with pytest.raises(EndOfChannel):
            await end.receive()
        with pytest.raises(ConnectionClosedError):
            await end.send(OutgoingMessage(b"more"))


async def test_closing_wakes_who_waits_to_receive_and_to_send() -> None:
    a, b = memory_pair(limit=1)
    await a.send(OutgoingMessage(b"fills"))
    woken: list[type[Exception]] = []

    async def receive() -> None:
        try:
            await a.receive()
        except EndOfChannel as end:
            woken.append(type(end))

    async def send() -> None:
        try:
            await a.send(OutgoingMessage(b"too much"))
        except ConnectionClosedError as closed:
            woken.append(type(closed))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        tasks.start_soon(send)
        await wait_all_tasks_blocked()
        await b.close()
    assert set(woken) == {EndOfChannel, ConnectionClosedError}


async def test_a_receive_that_was_cancelled_loses_no_message() -> None:
    a, b = memory_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(b.receive)
        await wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    await checkpoint()
    await a.send(OutgoingMessage(b"1"))
    assert await b.receive() == b"1"
