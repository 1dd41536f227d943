"""Requests over real sockets: spelled in any case, sent at once, and never ended."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from kit.http_process import HttpProcess, http_process
from kit.raw_http import Raw, raw, whole
from kit.wire import PER_REQUEST

pytestmark = [pytest.mark.processes, pytest.mark.on_asyncio]

REVISION = PER_REQUEST[-1]


@pytest.fixture(scope="module")
def server() -> Iterator[HttpProcess]:
    with http_process(limits={"head_seconds": 0.4}) as process:
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


@pytest.mark.requirement("headers.names-case-insensitive", revisions=(REVISION,))
@pytest.mark.parametrize("spelled", [bytes.lower, bytes.upper, bytes.title, bytes.swapcase])
async def test_names_of_fields_are_read_without_case(server: HttpProcess, spelled: Any) -> None:
    params = {"name": "add", "arguments": {"a": 1, "b": 1}}
    fields, _, body = whole(server.port, REVISION, "tools/call", params).partition(b"\r\n\r\n")
    names = re.compile(rb"^[\w-]+(?=: )", re.MULTILINE)
    fields = names.sub(lambda name: spelled(name[0]), fields)
    async with raw(server.port) as connection:
        await connection.send(fields + b"\r\n\r\n" + body)
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
