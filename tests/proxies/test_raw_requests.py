"""Requests that no client library writes, against both parsers of uvicorn: h11 and httptools."""

from __future__ import annotations

import itertools
import json
import re
import socket
from collections.abc import Iterator

import pytest

from kit.http_process import HttpProcess, http_process
from mcpgen_runtime.server.asgi.uvicorn_adapter import HEAD_BYTES, PIPELINED

pytestmark = pytest.mark.proxies

SECONDS = 20
ACCEPTED = 16 * 2**20
"""More bytes than the buffers of two sockets and one read of the server have together."""

HOST = b"Host: 127.0.0.1\r\n"
POST = b"POST /fields HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
SECOND = b"GET /second HTTP/1.1\r\n" + HOST + b"\r\n"
FILLER = b"y" * 2**16


@pytest.fixture(scope="module", params=[True, False], ids=["h11", "httptools"])
def server(request: pytest.FixtureRequest) -> Iterator[HttpProcess]:
    with http_process(h11=request.param) as server:
        yield server


def connection(server: HttpProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)


def answer_to(server: HttpProcess, data: bytes) -> bytes:
    """All that a server sends until it closes the connection."""
    with connection(server) as peer:
        peer.sendall(data)
        return b"".join(iter(lambda: peer.recv(2**16), b""))


@pytest.mark.parametrize("length", [4, len(SECOND), 10**6])
@pytest.mark.parametrize("order", [1, -1])
def test_a_body_of_two_lengths_closes_its_connection(
    server: HttpProcess, length: int, order: int
) -> None:
    fields = [b"Transfer-Encoding: chunked\r\n", b"Content-Length: %d\r\n" % length][::order]
    answer = answer_to(server, b"".join([POST, *fields, b"\r\n2\r\n{}\r\n0\r\n\r\n", SECOND]))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close\r\n" in answer.lower()
    assert re.search(b"got both|Invalid HTTP request", answer)


def test_trailers_are_no_header_fields(server: HttpProcess) -> None:
    head = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\nX-Seen: 1\r\n\r\n")
    answer = answer_to(server, head + b"2\r\n{}\r\n0\r\nX-User: admin\r\n\r\n")
    names = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert ("x-seen" in names, "x-user" in names) == (True, False)


ENDLESS = {
    "target": (b"GET /", FILLER),
    "name of a field": (POST, FILLER),
    "value of a field": (POST + b"X: ", FILLER),
    "fields": (POST, b"a:b\r\n" * 10_000),
    "empty lines": (b"", b"\r\n" * 30_000),
    "size of a chunk": (CHUNKED, b"0" * 2**16),
    "extension of a chunk": (CHUNKED + b"2;", FILLER),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"a:b\r\n" * 10_000),
    "value of a trailer": (CHUNKED + b"2\r\n{}\r\n0\r\nX: ", FILLER),
    "requests": (b"", SECOND * (2 * PIPELINED)),
    "head after a request": (SECOND + POST + b"X: ", FILLER),
}


@pytest.mark.parametrize("part", ENDLESS)
def test_a_part_that_never_ends_ends_its_connection(server: HttpProcess, part: str) -> None:
    first, more = ENDLESS[part]
    assert len(more) > HEAD_BYTES / 2
    sent = 0
    with connection(server) as peer, pytest.raises((ConnectionError, TimeoutError)):
        peer.settimeout(2.0)
        for data in itertools.chain([first], itertools.repeat(more, ACCEPTED // len(more))):
            sent += len(data)
            peer.sendall(data)
    assert sent < ACCEPTED
    closing = SECOND.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert answer_to(server, closing).startswith(b"HTTP/1.1 404 ")
