"""A thousand sessions that are opened and abandoned: the server's memory comes back."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import anyio
import pytest

from kit.faults import call_text, client_of
from kit.http_process import HttpProcess, http_process
from kit.raw_http import SECONDS, head, message_bytes, raw, session_fields
from kit.wire import PER_REQUEST, request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc says what is free"),
    pytest.mark.processes,
    pytest.mark.on_asyncio,
]

REVISION = "2025-11-25"
MANY = 1000
AT_ONCE = 10
MIB = 2**20

# Python's own allocator keeps the blocks of a mebibyte for as long as one object is left in them.
PLAIN_ALLOCATOR = {"PYTHONMALLOC": "malloc"}


def call(tool: str, key: str) -> object:
    params = {"name": tool, "arguments": {"key": key}}
    return request(REVISION, "tools/call", params, meta={"progressToken": key})


class Abandoned:
    """Sessions of one server that nobody comes back to.

    Attributes:
        opened: The header fields of each, in the order in which they were opened.
    """

    def __init__(self, port: int) -> None:
        self.opened: list[Mapping[str, str | None]] = []
        self._port = port

    async def open_many(self, count: int) -> None:
        """Open so many, some at a time."""
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                await self.open_one(number)

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(work)

    async def open_one(self, number: int) -> None:
        """Open a session, use it in one of three ways, and never come back to it."""
        fields = await session_fields(self._port, REVISION)
        self.opened.append(fields)
        async with raw(self._port) as connection:
            with anyio.fail_after(SECONDS):
                if number % 3 == 1:
                    message = call("mark", f"m{number}")
                    await connection.send(message_bytes(self._port, message, fields))
                    await connection.until(b"\r\n0\r\n\r\n")
                elif number % 3 == 2:
                    await connection.send(head(self._port, fields, method="GET"))
                    await connection.until(b"id: ")

    async def status(self, number: int, method: str) -> int:
        """The status of a `ping` or a `DELETE` of a session, which counts as using it."""
        fields = self.opened[number]
        ping = message_bytes(self._port, request(REVISION, "ping"), fields)
        async with raw(self._port) as connection:
            await connection.send(
                ping if method == "POST" else head(self._port, fields, method=method)
            )
            return await connection.status()


async def test_a_thousand_abandoned_sessions_give_their_memory_back() -> None:
    for idle in (3.0, 6.0, 12.0):  # on a busy machine it takes longer to have them all open at once
        limits = {"sessions": MANY, "idle": idle}
        with http_process(limits=limits, keep_alive=0.2, env=PLAIN_ALLOCATOR) as server:
            if await gives_memory_back(server):
                return
    raise AssertionError("they were never all open at once")


async def gives_memory_back(server: HttpProcess) -> bool:
    """Open them, see that memory is back once they are over; `False` if some were that too soon."""
    abandoned = Abandoned(server.port)
    async with client_of(server, PER_REQUEST[-1]) as client:
        await abandoned.open_many(60)  # what is made once, and kept
        for number in range(60):
            assert await abandoned.status(number, "DELETE") in (200, 204)
        abandoned.opened.clear()
        # What the allocator and what the operating system count, in bytes.
        before = [int(each) for each in (await call_text(client, "memory")).split()]
        await abandoned.open_many(MANY - 1)
        last = await session_fields(server.port, REVISION)
        async with raw(server.port) as connection:  # and vanish from a call that never ends
            await connection.send(message_bytes(server.port, call("work", "last"), last))
            await server.until("working last")
        held = [int(each) for each in (await call_text(client, "memory")).split()]
        if await abandoned.status(0, "POST") != 200:
            return False
        await server.until("cancelled last")
        after = [int(each) for each in (await call_text(client, "memory")).split()]
    taken = held[0] - before[0]
    assert taken > 5 * MIB  # they did take something
    assert after[0] - before[0] < 0.05 * taken
    assert after[1] < 1.2 * before[1]
    return True
