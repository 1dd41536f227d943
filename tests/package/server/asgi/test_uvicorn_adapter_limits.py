"""Clients that send too much or keep a server waiting, over real sockets: they alone are let go."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import anyio
import pytest

from kit.http_process import HttpProcess, http_process
from kit.raw_http import SECONDS, Raw, head, raw, whole
from kit.wire import PER_REQUEST, encode_message, request

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.processes,
    pytest.mark.on_asyncio,
]

REVISION = PER_REQUEST[-1]
LIMITS = {
    "body": 100_000,
    "streams": 1,
    "head_seconds": 0.4,
    "body_seconds": 0.4,
    "send_seconds": 0.4,
}
MIB = 1024


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    with http_process(limits=LIMITS) as process:
        yield process
        process.send(signal.SIGTERM)
        anyio.run(process.ended)


async def call(connection: Raw, tool: str, **arguments: object) -> str:
    """Call a tool on a connection that is kept."""
    params = {"name": tool, "arguments": arguments}
    await connection.send(whole(connection.port, REVISION, "tools/call", params))
    status, _, answer = await connection.answer()
    assert status == 200, answer
    text: str = answer["result"]["content"][0]["text"]
    return text


def deaf_client(server: HttpProcess) -> socket.socket:
    """A connection whose own end keeps little."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", server.port))
    return made


@pytest.mark.requirement("headers.names-case-insensitive", revisions=(REVISION,))
@pytest.mark.parametrize("spelled", [str.lower, str.upper, str.title, str.swapcase])
async def test_names_of_fields_are_read_without_case(server: HttpProcess, spelled: object) -> None:
    assert callable(spelled)
    body = encode_message(
        request(REVISION, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
    )
    fields = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "add",
    }
    async with raw(server.port) as connection:
        text = head(server.port, {}).replace(b"Content-Type: application/json\r\n", b"")[:-2]
        lines = "".join(f"{spelled(name)}: {value}\r\n" for name, value in fields.items())
        await connection.send(text + lines.encode() + b"\r\n" + body)
        status, _, answer = await connection.answer()
    assert (status, answer["result"]["content"][0]["text"]) == (200, "2")


@pytest.mark.parametrize(
    "begun", [b"", b"P", b"POST /mcp HTTP/1.1\r\n", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"]
)
async def test_half_a_head_and_then_silence_is_closed(server: HttpProcess, begun: bytes) -> None:
    async with raw(server.port) as connection, raw(server.port) as other:
        if begun:
            await connection.send(begun)
        assert await call(other, "add", a=1, b=2) == "3"
        await connection.closed()
        assert await call(other, "add", a=2, b=2) == "4"


async def test_answers_come_in_the_order_of_requests_sent_at_once(server: HttpProcess) -> None:
    ids = list(range(20))
    async with raw(server.port) as connection:
        params = {"name": "add", "arguments": {"a": 1, "b": 2}}
        requests = (whole(server.port, REVISION, "tools/call", params, id=each) for each in ids)
        await connection.send(b"".join(requests))
        assert [(await connection.answer())[2]["id"] for _ in ids] == ids


async def test_a_client_that_never_reads_is_cut_and_costs_no_memory(server: HttpProcess) -> None:
    key = f"deaf-{anyio.current_time()}"
    flood = {"name": "flood", "arguments": {"key": key, "times": 10**6, "width": 10_000}}
    message = whole(server.port, REVISION, "tools/call", flood, meta={"progressToken": 1})
    deaf = deaf_client(server)
    try:
        async with raw(server.port) as other:
            before = int(await call(other, "peak"))
            deaf.sendall(message)
            await server.until(f"working {key}")
            assert await call(other, "add", a=1, b=2) == "3"
            await server.until(f"cancelled {key}")
            assert int(await call(other, "peak")) - before < 20 * MIB
        read = 0
        deaf.settimeout(SECONDS)
        try:
            while data := deaf.recv(1 << 16):
                read += len(data)
        except ConnectionResetError:
            pass
        assert read < 20 * MIB * 1024
    finally:
        deaf.close()
