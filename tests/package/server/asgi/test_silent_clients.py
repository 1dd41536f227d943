"""Clients that fall silent or do not read, on a server's real sockets; and one slow at home."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

import anyio
import pytest

from kit.asgi_client import asgi, fields_of
from kit.faults import ONE_OF_EACH, Outcome, call_text, client_of
from kit.http_process import SECONDS, HttpProcess, http_process
from kit.raw_http import message_bytes, raw, session_fields
from kit.wire import HANDSHAKE, PER_REQUEST, request
from mcpgen_runtime import Context, Limits, Server

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.usefixtures("quiet")]

KEYS = count()
SERVER_ALONE = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""For tests whose clients are sockets: the package is at work in the server alone."""

SEND_SECONDS = 0.5
LIMITS = {"head_seconds": 0.3, "body_seconds": 0.3, "send_seconds": SEND_SECONDS}
LONG, PART = 12 * 2**20, 2**16
CROWD = 20
MIB = 2**10  # in KiB


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    with http_process(limits=LIMITS, keep_alive=0.1) as process:
        yield process


async def call_bytes(server: HttpProcess, revision: str, tool: str, **arguments: Any) -> bytes:
    """A call that wants to hear of progress, in a session of its own where there are such."""
    params, number = {"name": tool, "arguments": arguments}, next(KEYS)
    message = request(revision, "tools/call", params, id=number, meta={"progressToken": number})
    fields = await session_fields(server.port, revision)
    return message_bytes(server.port, message, fields | fields_of(revision, message))


@SERVER_ALONE
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_many_half_requests_are_given_up_while_others_are_served(
    revision: str, server: HttpProcess
) -> None:
    whole = await call_bytes(server, revision, "add", a=1, b=2)
    of_head, of_body = (b"", whole[:40]), (whole[: whole.index(b"{")], whole[:-10])
    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:

        async def begin(part: bytes) -> None:
            async with raw(server.port) as connection:
                await connection.send(part)
                if part in of_head:
                    assert await connection.closed() == b""
                else:
                    assert await connection.status() == 408

        for part in (*of_head, *of_body) * CROWD:
            tasks.start_soon(begin, part)
        for number in range(CROWD):
            assert await call_text(client, "add", a=number, b=1) == str(number + 1)


@SERVER_ALONE
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_one_who_does_not_read_is_cut_and_fills_no_memory(
    revision: str, server: HttpProcess, key: str
) -> None:
    flood = await call_bytes(server, revision, "flood", key=key, times=1500, width=100_000)
    async with client_of(server, revision) as client, raw(server.port) as connection:
        before = int(await call_text(client, "peak"))  # the most memory ever, in KiB
        await connection.send(flood)
        await server.until(f"working {key}")
        assert await call_text(client, "add", a=1, b=2) == "3"
        await server.until(f"(cancelled|done) {key}")
        assert server.said(f"done {key}") == (revision in HANDSHAKE)
        allowed = 64 if revision in HANDSHAKE else 0  # what the store of events may take
        assert int(await call_text(client, "peak")) - before < (allowed + 24) * MIB


@SERVER_ALONE
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_those_who_read_slowly_get_all(revision: str, server: HttpProcess) -> None:
    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:

        async def read(tool: str, arguments: Mapping[str, int], end: bytes) -> None:
            message = await call_bytes(server, revision, tool, **arguments)
            with small_reader(server) as slow:
                slow.sendall(message.replace(b"Host:", b"Connection: close\r\nHost:", 1))
                came, last, due = 0, b"", anyio.current_time()
                while part := await part_of(slow):
                    came, last = came + len(part), part
                    due += PART / LONG * 3 * SEND_SECONDS
                    while anyio.current_time() < due:
                        assert await call_text(client, "add", a=1, b=2) == "3"
            assert came > LONG
            assert last.endswith(end)

        tasks.start_soon(read, "text", {"width": LONG}, b"}")
        tasks.start_soon(read, "count", {"to": 1, "width": LONG}, b"\r\n0\r\n\r\n")
        tasks.start_soon(read, "count", {"to": 99, "width": LONG // 98}, b"\r\n0\r\n\r\n")


def small_reader(server: HttpProcess) -> socket.socket:
    """A connection whose own end keeps little."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PART)
    made.connect(("127.0.0.1", server.port))
    return made


async def part_of(connection: socket.socket) -> bytes:
    """The next bytes, at most a small part; empty once the other side has closed."""
    with anyio.fail_after(SECONDS):
        await anyio.wait_readable(connection)
    return connection.recv(PART)


async def test_a_long_event_that_nobody_reads_ends_its_stream() -> None:
    kit, go = Server("tester"), anyio.Event()
    long = "n" * 2**20

    @kit.tool()
    async def tell(ctx: Context) -> str:
        await ctx.progress(1)
        await go.wait()
        await ctx.progress(2, None, long)
        return "told"

    revision = PER_REQUEST[-1]
    tool, meta = {"name": "tell"}, {"progressToken": 1}
    async with (
        asgi(kit, limits=Limits(send_seconds=0.02)) as http,
        http.asking(revision, "tools/call", tool, meta=meta) as stream,
    ):
        await stream.message()
        stream.stop_reading()
        go.set()
        with anyio.fail_after(SECONDS):  # and not a time for the whole event
            await stream.finished.wait()


@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_a_slow_client_goes_on_with_its_other_calls(
    revision: str, server: HttpProcess, key: str
) -> None:
    outcome, gate = Outcome(), anyio.Event()
    heard: list[float] = []

    async def slow(value: float, *more: object) -> None:
        heard.append(value)
        await gate.wait()

    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:
        arguments = {"key": key, "times": 3000, "width": 1000}
        flood = partial(client.call_tool, "flood", arguments, on_progress=slow)
        tasks.start_soon(outcome.run, flood)
        await server.until(f"done {key}")
        assert await call_text(client, "add", a=1, b=2) == "3"
        gate.set()
        assert await outcome.text() == key
    assert heard[0] == 1
    assert heard[-1] == 3000
    assert heard == sorted(heard)
