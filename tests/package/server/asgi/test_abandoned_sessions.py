"""A thousand sessions that are opened and abandoned: the server's memory comes back."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
import pytest

from package.asgi_client import SESSION
from package.faults import call_text, client_of
from package.http_process import HttpProcess, http_process
from package.server.raw_http import SECONDS, Raw, head, raw
from package.wire import INITIALIZED, PER_REQUEST, encode_message, initialize, request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc says what is free"),
    pytest.mark.processes,
]

REVISION = "2025-11-25"
MANY = 1000
AT_ONCE = 10
MIB = 2**20

# Python's own allocator keeps the blocks of a mebibyte for as long as one object is left in them.
PLAIN_ALLOCATOR = {"PYTHONMALLOC": "malloc"}


@pytest.fixture
def anyio_backend() -> str:
    """Nothing of the package runs in this process."""
    return "asyncio"


class Abandoned:
    """Sessions of one server that nobody comes back to.

    Attributes:
        opened: Their ids, in the order in which they were opened.
    """

    def __init__(self, server: HttpProcess) -> None:
        self.opened: list[str] = []
        self._server = server

    async def open_many(self, count: int) -> None:
        """Open so many, some at a time."""
        numbers = iter(range(count))

        async def work() -> None:
            async with raw(self._server.port) as connection:
                for number in numbers:
                    await self._open_one(connection, number)

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(work)

    async def _open_one(self, connection: Raw, number: int) -> None:
        """Open a session, use it in one of three ways, and never come back to it."""
        fields = await self._handshake(connection)
        if number % 3 == 1:
            await self._post(connection, call("mark", f"m{number}"), fields)
            assert await connection.status() == 200
            with anyio.fail_after(SECONDS):
                await connection.until(b"\r\n0\r\n\r\n")
        elif number % 3 == 2:
            async with raw(self._server.port) as listening:
                await listening.send(head(self._server.port, fields, method="GET"))
                assert await listening.status() == 200
                with anyio.fail_after(SECONDS):
                    await listening.until(b"id: ")

    async def leave_a_call(self, key: str) -> None:
        """Open one more, and vanish from a call that would go on for ever."""
        async with raw(self._server.port) as connection:
            fields = await self._handshake(connection)
            await self._post(connection, call("work", key), fields)
            await self._server.until(f"working {key}")

    async def knows(self, identifier: str) -> bool:
        """Whether the server still has a session. Asking counts as using it."""
        async with raw(self._server.port) as connection:
            await self._post(connection, request(REVISION, "ping"), fields_of(identifier))
            return await connection.status() == 200

    async def end_all(self) -> None:
        """Have the server end them now."""
        for identifier in self.opened:
            async with raw(self._server.port) as connection:
                fields = fields_of(identifier)
                await connection.send(head(self._server.port, fields, method="DELETE"))
                assert await connection.status() in (200, 204)
        self.opened.clear()

    async def _handshake(self, connection: Raw) -> Mapping[str, str]:
        await self._post(connection, initialize(REVISION), {})
        with anyio.fail_after(SECONDS):
            status, headers, _ = await connection.answer()
        assert status == 200
        fields = fields_of(headers[SESSION])
        await self._post(connection, INITIALIZED, fields)
        assert (await connection.answer())[0] == 202
        self.opened.append(headers[SESSION])
        return fields

    async def _post(self, connection: Raw, message: object, fields: Mapping[str, str]) -> None:
        body = encode_message(message)
        sized = {**fields, "Content-Length": str(len(body))}
        await connection.send(head(self._server.port, sized) + body)


def fields_of(identifier: str) -> dict[str, str]:
    return {SESSION: identifier, "MCP-Protocol-Version": REVISION}


def call(tool: str, key: str) -> object:
    params = {"name": tool, "arguments": {"key": key}}
    return request(REVISION, "tools/call", params, meta={"progressToken": key})


async def test_a_thousand_abandoned_sessions_give_their_memory_back() -> None:
    for idle in (3.0, 6.0, 12.0):  # on a busy machine it takes longer to have them all open at once
        limits = {"sessions": MANY, "idle": idle}
        with http_process(limits=limits, keep_alive=0.2, env=PLAIN_ALLOCATOR) as server:
            if await gives_memory_back(server):
                return
    raise AssertionError("they were never all open at once")


async def gives_memory_back(server: HttpProcess) -> bool:
    """Open them, see that memory is back once they are over; `False` if some were that too soon."""
    abandoned = Abandoned(server)
    async with client_of(server, PER_REQUEST[-1]) as client:
        await abandoned.open_many(60)  # what is made once, and kept
        await abandoned.end_all()
        before = await memory(client)
        await abandoned.open_many(MANY - 1)
        await abandoned.leave_a_call("last")
        held = await memory(client)
        if not await abandoned.knows(abandoned.opened[0]):
            return False
        await server.until("cancelled last")
        after = await memory(client)
    assert held.allocated - before.allocated > 5 * MIB  # they did take something
    assert after.allocated - before.allocated < 0.05 * (held.allocated - before.allocated)
    assert after.resident < 1.2 * before.resident
    return True


class Memory(NamedTuple):
    """Memory of a process in bytes: as its allocator and as the operating system count it."""

    allocated: int
    resident: int


async def memory(client: Any) -> Memory:
    """The current memory of the server."""
    return Memory(*map(int, (await call_text(client, "memory")).split()))
