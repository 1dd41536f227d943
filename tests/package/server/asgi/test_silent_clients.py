"""Clients that fall silent or do not read, on a server's real sockets; and one slow at home."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from mcpgen_runtime import Context, Server
from mcpgen_runtime.server.asgi.settings import Limits
from package.asgi_client import SESSION, asgi, fields_of
from package.faults import ONE_OF_EACH, Outcome, call_text, check_quiet, client_of
from package.http_process import SECONDS, HttpProcess, http_process
from package.http_server import BROKEN
from package.wire import HANDSHAKE, INITIALIZED, PER_REQUEST, encode_message, initialize, request

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.processes]

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


@pytest.fixture
def key() -> str:
    """An argument for the tool; no other test of this server uses it."""
    return f"k{next(KEYS)}"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    check_quiet(caplog)


async def dial(server: HttpProcess) -> SocketStream:
    """A connection."""
    return await anyio.connect_tcp("127.0.0.1", server.port)


def request_bytes(verb: str, body: bytes, fields: Mapping[str, str | None]) -> bytes:
    """A request, to the byte."""
    every = {
        "Host": "127.0.0.1",
        "Accept": "text/event-stream" if verb == "GET" else "application/json, text/event-stream",
        **fields,
    }
    if verb == "POST":
        every |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{verb} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in every.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def post_message(
    server: HttpProcess, message: Any, fields: Mapping[str, str | None]
) -> bytes:
    """Post a message over a connection of its own; all of the answer."""
    closing = {**fields, "Connection": "close"}
    async with await dial(server) as stream:
        await stream.send(request_bytes("POST", encode_message(message), closing))
        return await rest_of(stream)


async def rest_of(stream: SocketStream) -> bytes:
    """All bytes that arrive until the other side closes."""
    came = b""
    with anyio.fail_after(SECONDS):
        try:
            while True:
                came += await stream.receive()
        except BROKEN:
            return came


async def session_fields(server: HttpProcess, revision: str) -> dict[str, str | None]:
    """The header fields that name a session, where there are such."""
    if revision not in HANDSHAKE:
        return {}
    answer = await post_message(server, initialize(revision), {})
    match = re.search(rb"(?i)mcp-session-id: (\S+)", answer)
    assert match is not None, answer
    fields: dict[str, str | None] = {SESSION: match[1].decode(), "MCP-Protocol-Version": revision}
    assert b" 202 " in await post_message(server, INITIALIZED, fields)
    return fields


def call(revision: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """A call that wants to hear of progress."""
    params = {"name": tool, "arguments": arguments}
    number = next(KEYS)
    return request(revision, "tools/call", params, id=number, meta={"progressToken": number})


async def peak(client: Any) -> int:
    """The most memory that the server ever had, in KiB."""
    return int(await call_text(client, "peak"))


@SERVER_ALONE
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_many_half_requests_are_given_up_while_others_are_served(
    revision: str, server: HttpProcess
) -> None:
    fields = await session_fields(server, revision)
    message = call(revision, "add", a=1, b=2)
    whole = request_bytes(
        "POST", encode_message(message), {**fields, **fields_of(revision, message)}
    )
    of_head, of_body = (b"", whole[:40]), (whole[: whole.index(b"{")], whole[:-10])
    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:

        async def begin(part: bytes) -> None:
            async with await dial(server) as stream:
                await stream.send(part)
                if part in of_head:
                    assert await rest_of(stream) == b""
                else:
                    with anyio.fail_after(SECONDS):
                        assert b" 408 " in await stream.receive()

        for part in (*of_head, *of_body) * CROWD:
            tasks.start_soon(begin, part)
        for number in range(CROWD):
            assert await call_text(client, "add", a=number, b=1) == str(number + 1)


@SERVER_ALONE
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_one_who_does_not_read_is_cut_and_fills_no_memory(
    revision: str, server: HttpProcess, key: str
) -> None:
    fields = await session_fields(server, revision)
    message = call(revision, "flood", key=key, times=1500, width=100_000)
    async with client_of(server, revision) as client, await dial(server) as stream:
        before = await peak(client)
        posted = {**fields, **fields_of(revision, message)}
        await stream.send(request_bytes("POST", encode_message(message), posted))
        await server.until(f"working {key}")
        assert await call_text(client, "add", a=1, b=2) == "3"
        await server.until(f"(cancelled|done) {key}")
        assert server.said(f"done {key}") == (revision in HANDSHAKE)
        allowed = 64 if revision in HANDSHAKE else 0  # what the store of events may take
        assert await peak(client) - before < (allowed + 24) * MIB


@SERVER_ALONE
@pytest.mark.parametrize("revision", ONE_OF_EACH)
async def test_those_who_read_slowly_get_all(revision: str, server: HttpProcess) -> None:
    fields = await session_fields(server, revision)
    async with client_of(server, revision) as client, anyio.create_task_group() as tasks:

        async def read(tool: str, arguments: Mapping[str, int], end: bytes) -> None:
            message = call(revision, tool, **arguments)
            posted = {**fields, **fields_of(revision, message), "Connection": "close"}
            with small_reader(server) as slow:
                slow.sendall(request_bytes("POST", encode_message(message), posted))
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
