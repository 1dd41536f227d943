"""Silent calls on a server's real sockets, straight and through a proxy that bears no silence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import anyio
import pytest

from mcp_protocol.framing.sse import encode_comment
from package.asgi_client import BOTH, JSON, fields_of
from package.faults import EACH, Outcome, call_text, client_of
from package.http_process import SECONDS, HttpProcess, http_process
from package.server.asgi.idle_proxy import IdleProxy
from package.server.raw_http import head, raw
from package.wire import PER_REQUEST, SESSIONS, encode_message, facts, request

pytestmark = pytest.mark.anyio

POLLING = [revision for revision in SESSIONS if facts(revision).http.polling]
KEYS = count()
KEEP_ALIVE = 0.1
SILENCE_SECONDS = 1.0
"""Seconds for which the proxy lets the server be silent."""


@pytest.fixture(scope="module", params=["auto", "sse"])
def server(request: pytest.FixtureRequest) -> Iterator[HttpProcess]:
    with http_process(answers=request.param, keep_alive=KEEP_ALIVE, h11=True) as process:
        yield process


def silent_post(port: int, revision: str, key: str, **fields: str) -> bytes:
    """A silent call in a revision without sessions."""
    message = request(revision, "tools/call", {"name": "look", "arguments": {"key": key}})
    body = encode_message(message)
    every = fields_of(revision, message) | {"Content-Length": str(len(body))} | fields
    return head(port, every) + body


@pytest.mark.requirement("http.keepalive-comments", "http.x-accel-buffering")
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("revision", PER_REQUEST)
async def test_head_and_comments_come_before_the_answer_on_the_socket(
    revision: str, version: bytes, server: HttpProcess
) -> None:
    key = f"raw{next(KEYS)}"
    async with client_of(server, revision) as client, raw(server.port) as connection:
        message = silent_post(server.port, revision, key, Accept=BOTH)
        await connection.send(message.replace(b"HTTP/1.1", b"HTTP/" + version, 1))
        with anyio.fail_after(SECONDS):
            response = (await connection.until(b"\r\n\r\n")).lower().split(b"\r\n")
            assert b"content-type: text/event-stream" in response
            assert b"x-accel-buffering: no" in response
            assert (b"transfer-encoding: chunked" in response) == (version == b"1.1")
            for _ in range(3):
                await connection.until(encode_comment())
        assert not server.said(f"done {key}")
        await call_text(client, "release", key=key)
        if version == b"1.0":
            assert b'"result"' in await connection.closed()
        else:
            await connection.until(b'"result"')


async def test_the_proxy_gives_up_on_a_call_that_must_answer_in_json(
    server: HttpProcess,
) -> None:
    async with IdleProxy(server.port, SILENCE_SECONDS) as proxy, raw(proxy.port) as connection:
        await connection.send(silent_post(proxy.port, PER_REQUEST[-1], "json", Accept=JSON))
        assert await connection.closed() == b""
        assert proxy.given_up == 1


async def test_silent_calls_outlast_a_proxy_that_bears_no_silence(server: HttpProcess) -> None:
    async with IdleProxy(server.port, SILENCE_SECONDS) as proxy, anyio.create_task_group() as tasks:

        async def make(revision: str, key: str) -> None:
            async with client_of(server, revision, url=proxy.url) as client:
                assert await call_text(client, "look", key=key) == key

        keys = {revision: f"long{next(KEYS)}" for revision in EACH}
        for revision, key in keys.items():
            tasks.start_soon(make, revision, key)
        await proxy.until(long_answers=len(EACH))
        async with client_of(server, PER_REQUEST[-1]) as client:
            for key in keys.values():
                await call_text(client, "release", key=key)
        for key in keys.values():
            await server.until(f"done {key}")
    assert proxy.given_up == 0
    assert [server.said(f"working {key}") for key in keys.values()] == [1] * len(EACH)


@pytest.mark.requirement("http.prime-event")
@pytest.mark.parametrize("revision", POLLING)
async def test_a_client_resumes_a_silent_call_whose_connection_breaks(
    revision: str, server: HttpProcess
) -> None:
    key, outcome = f"cut{next(KEYS)}", Outcome()
    async with (
        IdleProxy(server.port, SILENCE_SECONDS) as proxy,
        client_of(server, revision, url=proxy.url) as client,
        client_of(server, revision) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(outcome.run, partial(client.call_tool, "look", {"key": key}))
        await proxy.until(commented=1)
        proxy.cut()
        await call_text(other, "release", key=key)
        assert await outcome.text() == key
    assert server.said(f"working {key}") == 1


@pytest.mark.parametrize("revision", EACH)
async def test_a_silent_call_is_cancelled_while_its_stream_is_open(
    revision: str, server: HttpProcess
) -> None:
    key = f"cancelled{next(KEYS)}"
    async with (
        IdleProxy(server.port, SILENCE_SECONDS) as proxy,
        client_of(server, revision, url=proxy.url) as client,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.call_tool, "look", {"key": key}))
            await proxy.until(commented=1)
            tasks.cancel_scope.cancel()
        await server.until(f"cancelled {key}")
        assert await call_text(client, "add", a=1, b=2) == "3"
