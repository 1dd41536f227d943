"""Hostile HTTP clients against a server process: others are served, and memory stays bounded."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

import pytest

from kit.http_process import HttpProcess, http_process
from kit.raw_http import head, message_bytes
from kit.wire import INITIALIZED, SESSIONS, encode_message, initialize, request
from mcpgen_runtime import RemoteError, connect

pytestmark = pytest.mark.attack

REVISION = "2025-06-18"
WITH_BATCHES = "2025-03-26"
SECONDS = 20
MIB = 2**20
BOTH = "application/json, text/event-stream"
STANDARD = {"Content-Type": "application/json", "Accept": BOTH}


class Answer(NamedTuple):
    """One answer, and the id of the session that it opens."""

    status: int
    session: str | None
    body: bytes


class Client:
    """One client of Streamable HTTP, with a connection of its own."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self.fields: dict[str, str] = {}
        self._connection = HTTPConnection(
            "127.0.0.1", port, timeout=SECONDS, source_address=(address, 0)
        )

    def post(self, message: Any, path: str = "/mcp", fields: Mapping[str, str] = {}) -> Answer:
        """POST a message; writes all of it before it reads."""
        body = encode_message(message)
        self._connection.request("POST", path, body, {**STANDARD, **self.fields, **fields})
        response = self._connection.getresponse()
        return Answer(response.status, response.getheader("Mcp-Session-Id"), response.read())

    def open(self, revision: str = REVISION, capabilities: Mapping[str, Any] = {}) -> None:
        """Open a session."""
        answer = self.post(initialize(revision, capabilities))
        assert answer.session is not None, answer
        self.fields = {"Mcp-Session-Id": answer.session, "MCP-Protocol-Version": revision}
        assert self.post(INITIALIZED).status == 202

    def adds(self) -> bool:
        """Whether a call is served."""
        self.close()  # an idle connection may have been closed
        answer = self.post(call("add", a=1, b=2))
        return answer.status == 200 and b'"3"' in answer.body

    def close(self) -> None:
        self._connection.close()


def call(tool: str, id: int = 1, **arguments: Any) -> dict[str, Any]:
    return request(REVISION, "tools/call", {"name": tool, "arguments": arguments}, id=id)


@contextmanager
def run_server(**limits: Any) -> Iterator[tuple[HttpProcess, Client]]:
    """A server, and an honest client with a session."""
    with http_process(limits=limits, sse_path="/sse") as server:
        honest = Client(server.port)
        try:
            honest.open()
            yield server, honest
        finally:
            honest.close()


def peak(server: HttpProcess) -> float:
    """The most memory that a process ever had, in MiB."""
    text = Path(f"/proc/{server.pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert match is not None
    return int(match[1]) / 1024


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 413),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Accept": "text/plain"}, 413),
    ],
)
def test_a_client_that_writes_first_still_reads_the_refusal(
    fields: dict[str, str], status: int
) -> None:
    with run_server() as (server, honest):
        for size in (5 * MIB, 20 * MIB):
            client = Client(server.port)
            answer = client.post(b"x" * size, fields={**honest.fields, **fields})
            assert (answer.status, "error" in json.loads(answer.body)) == (status, True)
            client.close()
        assert honest.adds()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", [REVISION, "2026-07-28"])
async def test_the_packages_own_client_sees_it_too(revision: str) -> None:
    with http_process() as server:
        async with connect(server.url, revision=revision) as client:
            with pytest.raises(RemoteError, match=r"Limits\.body"):
                await client.call_tool("mark", {"key": "x" * (5 * MIB)})
            assert await client.call_tool("add", {"a": 1, "b": 2}) is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"], ids=["taken", "refused"])
def test_bodies_that_never_end_keep_nobody_out(host: str) -> None:
    with run_server(in_flight=50, reading=100) as (server, honest), ExitStack() as stack:
        for _ in range(300):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            half.sendall(head(server.port, {"Host": host, "Content-Length": "1000000"}) + b"{")
        begun = time.monotonic()
        assert honest.adds()
        assert time.monotonic() - begun < 5


def test_clients_that_leave_while_they_are_asked_keep_nobody_out() -> None:
    with run_server(in_flight=50, abandoned=20) as (server, honest):
        leavings = [Client(server.port) for _ in range(4)]
        for leaving in leavings:
            leaving.open(capabilities={"elicitation": {}})
        for leaving in leavings:
            for number in range(40):
                message = call("ask", number, key=f"{number}")
                with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
                    connection.sendall(message_bytes(server.port, message, leaving.fields))
                    connection.recv(100)
            leaving.close()
        deadline = time.monotonic() + SECONDS
        while not honest.adds():
            assert time.monotonic() < deadline
        server.wait_for("cancelled .*")  # one that was abandoned first


@pytest.mark.parametrize("transport", ["Streamable HTTP", "HTTP+SSE"])
def test_an_array_of_millions_costs_no_more_than_its_own_bytes(transport: str) -> None:
    body = b"[" + b"1," * 2_000_000 + b"1]"
    with run_server() as (server, honest), ExitStack() as stack:
        before = peak(server)
        client = Client(server.port)
        path = "/mcp"
        if transport == "Streamable HTTP":
            client.open(WITH_BATCHES)
        else:
            events = HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
            stack.callback(events.close)
            events.request("GET", "/sse", headers={"Accept": "text/event-stream"})
            response = events.getresponse()
            data = next(line[6:] for line in response if line.startswith(b"data: "))
            path = urljoin("/sse", data.strip().decode())
            assert client.post(initialize(SESSIONS[0]), path).status == 202
        begun = time.monotonic()
        answer = client.post(body, path)
        assert (answer.status, len(answer.body) < 1000) == (400, True)
        assert time.monotonic() - begun < 5
        assert peak(server) - before < 60
        assert honest.adds()
        client.close()


def test_responses_that_nobody_reads_take_bounded_memory() -> None:
    with run_server(unread=32 * MIB) as (server, honest), ExitStack() as stack:
        before = peak(server)
        statuses = set[bytes]()
        for number in range(150):
            message = call("text", number, width=5 * MIB)
            connection = socket.create_connection(("127.0.0.1", server.port), SECONDS)
            stack.enter_context(connection)
            connection.sendall(message_bytes(server.port, message, honest.fields))
            statuses.add(connection.recv(12))
        assert statuses == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
        assert peak(server) - before < 80
        assert not honest.adds()  # the network of these connections
        another = Client(server.port, "127.0.0.2")
        another.open()
        assert another.adds()
        another.close()
        stack.close()
        deadline = time.monotonic() + SECONDS
        while not honest.adds():
            assert time.monotonic() < deadline


@pytest.mark.parametrize("confirmed", [False, True])
def test_descriptions_of_clients_take_bounded_bytes_of_sessions(confirmed: bool) -> None:
    dense = {"experimental": {"x": {"y": "?"}}}
    text = encode_message(initialize(REVISION, dense)).replace(
        b'"?"', b"[" + b"[]," * 20_000 + b"[]]"
    )
    with run_server(session_bytes=8 * MIB) as (server, honest):
        before = peak(server)
        client = Client(server.port)
        for _ in range(60):
            answer = client.post(text, fields={})
            assert answer.status == 200, answer
            if confirmed:
                fields = {"Mcp-Session-Id": str(answer.session)}
                assert client.post(INITIALIZED, fields=fields).status == 202
        assert client.post(text + b" " * MIB).status == 413
        assert peak(server) - before < 50
        assert honest.adds()
        client.close()


def test_sessions_opened_without_end_end_no_others() -> None:
    with run_server(sessions=300) as (server, honest):
        flood = Client(server.port)
        for _ in range(1000):
            assert flood.post(initialize(REVISION)).status == 200
        assert honest.adds()
        newcomer = Client(server.port)
        newcomer.open()
        assert newcomer.adds()
        newcomer.close()
        flood.close()
