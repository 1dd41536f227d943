"""The uvicorn settings of the package: joined writes, and header fields of proxies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import pytest

from mcp_protocol import Server
from mcp_protocol.server.asgi.routes import RouteRequest
from mcp_protocol.server.asgi.uvicorn_adapter import JoinedWrites
from package.server.raw_http import head, raw

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Starting:
    """The `task_status` of a server."""

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.port = 0

    def started(self, value: str | None = None) -> None:
        self.port = urlsplit(value or "").port or 0
        self.event.set()


class Recorded(asyncio.Transport):
    """A transport that keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        parts = [bytes(part) for part in list_of_data]
        assert all(parts)  # from Python 3.12 on, asyncio's own never writes an empty one
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def joined_writes() -> tuple[JoinedWrites, Recorded]:
    transport = Recorded()
    return JoinedWrites(transport, asyncio.get_running_loop()), transport


async def test_the_head_and_what_follows_are_one_write() -> None:
    writer, transport = joined_writes()
    for _ in range(2):
        writer.write(HEAD)
        writer.write(b"{}")
    assert transport.writes == [HEAD + b"{}"] * 2


async def test_a_head_leaves_in_its_turn_also_alone() -> None:
    writer, transport = joined_writes()
    writer.write(HEAD)
    assert transport.writes == []
    await anyio.lowlevel.checkpoint()
    assert transport.writes == [HEAD]
    writer.write(b"{}")
    assert transport.writes == [HEAD, b"{}"]


async def test_a_head_without_a_body_leaves_alone() -> None:
    writer, transport = joined_writes()
    writer.write(HEAD)
    writer.write(b"")
    assert transport.writes == [HEAD]


async def test_a_head_leaves_before_the_end_of_the_connection() -> None:
    writer, transport = joined_writes()
    writer.write(HEAD)
    writer.close()
    assert (transport.writes, writer.is_closing()) == ([HEAD], True)


@pytest.mark.parametrize("trusted", [None, "127.0.0.1", "192.0.2.1"])
async def test_a_proxy_is_believed_only_if_the_environment_names_it(
    trusted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted is None:
        monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    else:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    server = Server("behind a proxy")

    @server.custom_route("/who")
    async def who(request: RouteRequest) -> str:
        return str(request.client and request.client[0])

    starting, addresses = Starting(), list[bytes]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server.run_async, http="127.0.0.1:0", task_status=starting))
        await starting.event.wait()
        async with raw(starting.port) as connection:
            asked = head(starting.port, {"X-Forwarded-For": "203.0.113.9"}, method="GET")
            await connection.send(asked.replace(b"/mcp", b"/who", 1))
            addresses.append((await connection.answer())[2])
        tasks.cancel_scope.cancel()
    assert addresses == [b"203.0.113.9" if trusted == "127.0.0.1" else b"127.0.0.1"]
