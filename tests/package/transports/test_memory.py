"""Two channels in one process: order, limits and ends."""

from __future__ import annotations

import anyio
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from mcpgen_runtime import OutgoingMessage
from mcpgen_runtime.errors import EndOfChannel, FrameError
from mcpgen_runtime.transports.memory import BUFFERED_BYTES, MessageQueue, memory_pair


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
