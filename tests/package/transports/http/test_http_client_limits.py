"""Bounds on what a hostile server over HTTP makes a client keep, repeat and show."""

from __future__ import annotations

import gzip
import itertools
import json
import logging
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from kit.http_script import Script, SseScript
from kit.http_server import Asked, Handler, HttpServer, Reply
from kit.wire import STREAMABLE
from mcpgen_runtime import (
    HttpStatusError,
    McpError,
    RemoteProtocolError,
    ResponseLostError,
    connect,
)
from mcpgen_runtime.errors import FrameError
from mcpgen_runtime.runtime.time_limits import HTTP_TIMEOUTS
from mcpgen_runtime.transports.http.aiohttp_library import FRAMING_LIMIT, open_library
from mcpgen_runtime.transports.http.http_client import (
    POSTED,
    REDIRECTS,
    REFUSAL_LIMIT,
    HttpRequests,
)
from mcpgen_runtime.transports.http.streamable_http import EventStream

pytestmark = pytest.mark.processes

LIMIT = 100_000
HARM = "\x1b[2J\x9b\x85" + "x" * 5000
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def send_parts(*parts: Iterable[bytes] | bytes) -> Handler:
    """A handler that sends bytes as they are, for ever where a part has no end."""

    async def handler(asked: Asked, reply: Reply) -> None:
        for part in parts:
            for piece in (part,) if isinstance(part, bytes) else part:
                await reply.raw(piece)
        await reply.cut()

    return handler


def repeat(piece: bytes) -> Iterable[bytes]:
    """A piece for ever, in larger ones."""
    return itertools.repeat(piece * (32_768 // len(piece)))


@asynccontextmanager
async def requests_to(
    handler: Handler, *, with_httpx2: bool = False
) -> AsyncIterator[tuple[HttpRequests, Any, HttpServer]]:
    """A requester, the address of a server, and the server."""
    async with HttpServer(handler) as server, httpx2.AsyncClient() as client:
        own = client if with_httpx2 else None
        requests = HttpRequests(client=own, limit=LIMIT, open_library=open_library)
        try:
            with anyio.fail_after(20):
                yield requests, server.url, server
        finally:
            await requests.close()


async def test_an_event_that_is_too_long_ends_its_request_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        for text in (b"x" * (LIMIT + 1), b"{}"):
            await reply.part(b"data: %b\n\n" % text)
        await reply.end()

    async def hear(message: bytes) -> None:
        heard.append(message)

    heard: list[bytes] = []
    async with requests_to(answer) as (requests, url, _):
        for id, error in ((1, FrameError), (None, ResponseLostError)):
            stream = EventStream(requests, None, hear, id, HTTP_TIMEOUTS)
            with pytest.raises(error):
                await stream.follow(await requests.open("GET", url, {}))
            assert heard == ([] if id else [b"{}"])
    assert "an event without a request was dropped" in caplog.text


ENDLESS_HEADS = {
    "a line": (b"HTTP/1.1 200 ", repeat(b"x")),
    "fields": (OK, repeat(b"a: b\r\n")),
    "a field": (OK + b"a: ", repeat(b"b")),
    "a field in lines": (OK + b"a: ", repeat(b"b\r\n ")),
    "blank": (repeat(b"\r\n"),),
    "no HTTP": (repeat(b"\x1b[2J"),),
    "informational": (repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),),
    "early hints": (repeat(b"HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n"),),
}


@pytest.mark.parametrize("head", ENDLESS_HEADS)
async def test_the_head_of_a_response_is_taken_up_to_a_limit(head: str, anyio_backend: str) -> None:
    if anyio_backend == "trio" and head in ("informational", "early hints"):
        pytest.skip("httpx2 has no such limit")
    async with requests_to(send_parts(*ENDLESS_HEADS[head])) as (requests, url, _):
        tracemalloc.start()
        try:
            with pytest.raises(ResponseLostError) as caught:
                await requests.open("POST", url, POSTED, b"{}")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700
    if anyio_backend == "asyncio" and head != "no HTTP":
        assert f"more than {FRAMING_LIMIT} bytes" in str(caught.value)
    assert peak < 60 * FRAMING_LIMIT


async def test_a_few_informational_responses_are_passed_over() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000
    async with requests_to(send_parts(early, OK, b"Content-Length: 2\r\n\r\n{}")) as (
        requests,
        url,
        _,
    ):
        response = await requests.open("POST", url, POSTED, b"{}")
        assert await requests.read(response) == b"{}"


ENDLESS_BODIES = {
    "chunked": (b"Transfer-Encoding: chunked\r\n\r\n", repeat(b"400\r\n%b\r\n" % (b"a" * 1024))),
    "of a length": (b"Content-Length: 99999999999\r\n\r\n", repeat(b"a")),
    "to the end": (b"\r\n", repeat(b"a")),
}


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("body", ENDLESS_BODIES)
async def test_the_body_of_an_answer_is_taken_up_to_a_limit(body: str, with_httpx2: bool) -> None:
    handler = send_parts(OK, *ENDLESS_BODIES[body])
    async with requests_to(handler, with_httpx2=with_httpx2) as (requests, url, _):
        response = await requests.open("POST", url, POSTED, b"{}")
        with pytest.raises(FrameError, match=f"at most {LIMIT} bytes"):
            await requests.read(response)


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS_FRAMES = {
    "an extension": (CHUNKED + b"4;", repeat(b"a")),
    "a size": (CHUNKED, repeat(b"0")),
    "a trailer": (CHUNKED + b"0\r\na: ", repeat(b"b")),
    "trailers": (CHUNKED + b"0\r\n", repeat(b"a: b\r\n")),
}


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("frame", ENDLESS_FRAMES)
async def test_framing_of_a_body_is_read_up_to_a_limit(
    frame: str, with_httpx2: bool, anyio_backend: str
) -> None:
    handler = send_parts(OK, *ENDLESS_FRAMES[frame])
    async with requests_to(handler, with_httpx2=with_httpx2) as (requests, url, _):
        response = await requests.open("POST", url, POSTED, b"{}")
        with pytest.raises(ResponseLostError) as caught:
            await requests.read(response)
    assert len(str(caught.value)) < 500
    by_aiohttp = anyio_backend == "asyncio" and not with_httpx2
    limit = f"more than {FRAMING_LIMIT} bytes" if by_aiohttp else "Receive buffer too long"
    assert limit in str(caught.value)


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("body", ENDLESS_BODIES)
async def test_the_body_of_a_refusal_is_taken_up_to_a_limit(body: str, with_httpx2: bool) -> None:
    handler = send_parts(b"HTTP/1.1 500 No\r\n", *ENDLESS_BODIES[body])
    async with requests_to(handler, with_httpx2=with_httpx2) as (requests, url, _):
        with pytest.raises(HttpStatusError) as caught:
            await requests.open("POST", url, POSTED, b"{}")
    assert len(caught.value.body) <= REFUSAL_LIMIT


async def test_redirects_are_followed_a_few_times() -> None:
    numbers = itertools.count()

    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(307, Location=f"/{next(numbers)}{'x' * 5000}")

    async with requests_to(handler) as (requests, url, server):
        with pytest.raises(McpError, match="more than 5 redirects") as caught:
            await requests.open("POST", url, POSTED, b"{}")
        assert len(server.asked) == REDIRECTS
    assert len(str(caught.value)) < 500


def send_compressed(coding: str, body: bytes) -> Handler:
    async def handler(asked: Asked, reply: Reply) -> None:
        await reply.whole(200, body, Content_Type="application/json", Content_Encoding=coding)

    return handler


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_compressed_body_that_bursts_is_taken_up_to_a_limit(coding: str) -> None:
    body = (gzip.compress if coding == "gzip" else zlib.compress)(bytes(20 * LIMIT))
    handler = send_compressed(coding, body)
    async with requests_to(handler, with_httpx2=True) as (requests, url, server):
        response = await requests.open("POST", url, POSTED, b"{}")
        with pytest.raises(FrameError, match=f"at most {LIMIT} bytes"):
            await requests.read(response)
        assert server.asked[0].fields["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "zstd", "gzip, br", "x" * 5000])
async def test_a_body_that_is_compressed_without_bound_is_refused(coding: str) -> None:
    handler = send_compressed(coding, gzip.compress(gzip.compress(b"{}")))
    async with requests_to(handler, with_httpx2=True) as (requests, url, _):
        with pytest.raises(RemoteProtocolError, match="expected gzip, deflate, came ") as caught:
            await requests.open("POST", url, POSTED, b"{}")
    assert len(str(caught.value)) < 500


def whole(status: int, body: bytes = b"", **fields: str) -> Handler:
    """A handler with one response, whose fields may have any characters."""
    lines = [f"HTTP/1.1 {status} {fields.pop('reason', 'Test')}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("latin-1")
    return send_parts(head + body)


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
REFUSALS = {
    "reason": whole(400, reason=HARM),
    "body": whole(400, HARM.encode(), Content_Type="text/plain"),
    "content type": whole(200, b"{}", Content_Type=f"text/{HARM}"),
    "coding": whole(200, b"{}", Content_Type="application/json", Content_Encoding=HARM),
    "redirect": whole(302, Location=f"https://elsewhere/{HARM}"),
    "session": whole(400, Mcp_Session_Id=HARM),
    "type of an event": send_parts(EVENTS + f"event: {HARM}\ndata: x\n\n".encode()),
    "no HTTP": send_parts(HARM.encode("latin-1") + b"\r\n\r\n"),
    "no answer": whole(200, json.dumps([HARM]).encode(), Content_Type="application/json"),
}


@pytest.mark.parametrize("with_httpx2", [False, True])
@pytest.mark.parametrize("where", REFUSALS)
async def test_an_error_shows_server_text_on_one_short_line(
    where: str, with_httpx2: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="mcpgen_runtime")
    script = Script(STREAMABLE[0])
    async with HttpServer(script) as server, httpx2.AsyncClient() as own:
        client = own if with_httpx2 else None
        with anyio.fail_after(20):
            async with connect(server.url, revision=STREAMABLE[0], http_client=client) as session:
                script.on["tools/call"] = REFUSALS[where]
                with pytest.raises(McpError) as caught:
                    await session.call_tool("echo", {})
    shown = [str(caught.value), *(record.getMessage() for record in caplog.records)]
    assert [text for text in shown if not text.isprintable()] == []
    assert max(map(len, shown)) < 1000


@pytest.mark.parametrize(
    ("type", "data"),
    [("x" + HARM[:3] + HARM[5:], "/messages"), ("endpoint", f"http://elsewhere/{HARM[:3]}x")],
    ids=["type", "endpoint"],
)
async def test_an_error_of_the_older_transport_shows_events_safely(type: str, data: str) -> None:
    async def get(asked: Asked, reply: Reply) -> None:
        await reply.stream()
        await reply.part(f"event: {type}\ndata: {data}{'x' * 5000}\n\n".encode())
        await reply.gone()

    script = SseScript(STREAMABLE[0])
    script.on["GET"] = get
    async with HttpServer(script) as server:
        with anyio.fail_after(20), pytest.raises(RemoteProtocolError) as caught:
            async with connect(server.url, transport="sse"):
                raise AssertionError("it was opened")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700
