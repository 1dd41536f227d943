"""A hostile client of a real server process over pipes: the server answers on, in little memory."""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from kit.stdio_process import PATHS, Process, script
from kit.wire import HANDSHAKE, encode_message, initialize, request
from mcpgen_runtime.runtime.peer import HELD_BYTES

pytestmark = pytest.mark.attack

MIB = 2**20
CALLS, LENGTH = 80, 6 * MIB
FULL = Path("/dev/full")
both = pytest.mark.parametrize("backend", ["asyncio", "trio"])
CODE = """
import sys
import anyio
from typing import Any
from mcpgen_runtime import Server
server = Server("target", version="1", drain=0.1)

@server.tool()
async def echo(value: Any) -> Any:
    return {"value": value}

@server.tool()
async def wait() -> str:
    await anyio.sleep_forever()
    return ""

@server.tool(structured=False)
async def shout(size: int) -> str:
    print("begun", file=sys.stderr, flush=True)
    return "x" * size

server.run(backend=sys.argv[1])
"""


class Target(Process):
    """A server process whose memory is looked at."""

    def __init__(self, backend: str, revision: str, errors: int) -> None:
        super().__init__(revision, backend, script(CODE), errors)
        self.before = self.memory

    @property
    def memory(self) -> float:
        """MiB that the process takes now."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / MIB

    def is_alive(self) -> bool:
        """Whether it still answers, after whatever it has yet to say."""
        self.say(request(self.revision, "ping", id="alive"))
        while self.hear().get("id") != "alive":
            pass
        return True

    @contextmanager
    def watched(self) -> Iterator[list[float]]:
        """Gives the most memory that the process took meanwhile, in its first item."""
        most = [self.memory]
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.005):
                most[0] = max(most[0], self.memory)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield most
        finally:
            over.set()
            thread.join()


@contextmanager
def target(
    backend: str, revision: str = HANDSHAKE[-1], errors: int = subprocess.DEVNULL
) -> Iterator[Target]:
    started = Target(backend, revision, errors)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def call(tool: str, arguments: dict[str, Any], id: int | str = "call") -> dict[str, Any]:
    return request(HANDSHAKE[-1], "tools/call", {"name": tool, "arguments": arguments}, id=id)


DEEP = [
    {"jsonrpc": "DEEP", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": "DEEP", "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"a": "DEEP"}}},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "DEEP"}},
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "DEEP"}},
    call("echo", {"value": "DEEP"}),
]


@both
@pytest.mark.parametrize("message", DEEP, ids=range(len(DEEP)))
def test_a_line_nested_to_the_recursion_limit_is_answered(
    backend: str, message: dict[str, Any]
) -> None:
    text = json.dumps(message)
    with target(backend) as server:
        for depth in range(930, 1001):
            for deep in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
                server.say(text.replace('"DEEP"', deep).encode())
                assert server.hear_line()
        assert server.is_alive()


@both
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":"' + b"i" * 8_000_000 + b'","method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 8_000_000 + b'"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":"'
        + b"t" * 8_000_000
        + b'"}}}',
        b"[" + b"1," * 4_000_000 + b"1]",
    ],
    ids=["id", "method", "token", "array"],
)
@pytest.mark.parametrize("revision", HANDSHAKE[:2])
def test_a_line_of_megabytes_takes_a_short_answer_and_memory(
    backend: str, revision: str, line: bytes
) -> None:
    with target(backend, revision) as server:
        with server.watched() as most:
            begun = time.monotonic()
            server.say(line)
            assert len(server.hear_line()) < 4000
            assert time.monotonic() - begun < 5
        assert most[0] < server.before + 60
        assert server.is_alive()


@both
def test_a_flood_of_calls_starts_no_more_handlers_than_the_limit(backend: str) -> None:
    with target(backend) as server, server.watched() as most:
        flood = b"\n".join(encode_message(call("wait", {}, id=id)) for id in range(100_000))
        sender = threading.Thread(target=try_to_say, args=(server, flood))
        sender.start()
        sender.join(4)
        assert sender.is_alive()  # the server reads no more
        assert most[0] < server.before + 40
        server.process.kill()
        sender.join()


@both
def test_a_client_that_reads_nothing_makes_no_answers_pile_up(backend: str) -> None:
    with target(backend) as server, server.watched() as most:
        asked = encode_message(call("shout", {"size": 100_000}))
        sender = threading.Thread(target=try_to_say, args=(server, b"\n".join([asked] * 50_000)))
        sender.start()
        sender.join(4)
        assert sender.is_alive()
        assert most[0] < server.before + 120  # 256 answers of 100 kB, written and to be written
        server.process.kill()
        sender.join()


def try_to_say(server: Target, lines: bytes) -> None:
    try:
        server.say(lines)
    except OSError:
        return  # it was killed: that is how the test ends


def test_answers_that_nobody_reads_take_bounded_memory() -> None:
    with target("asyncio", errors=subprocess.PIPE) as server:
        assert server.process.stderr is not None
        big = [call("shout", {"size": LENGTH}, id=id) for id in range(CALLS)]
        server.say(b"\n".join(map(encode_message, big)))
        begun = [server.process.stderr.readline()]
        while select.select([server.process.stderr], [], [], 3)[0]:
            begun.append(server.process.stderr.readline())
        assert begun[0] == b"begun\n"
        assert len(begun) <= HELD_BYTES / LENGTH + 2
        assert server.memory < 500
        ids = [answer["id"] for _ in range(CALLS) if "result" in (answer := server.hear())]
        assert sorted(ids) == list(range(CALLS))


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
@both
def test_a_server_answers_though_its_trace_cannot_be_written(backend: str) -> None:
    done = subprocess.run(
        [*script(CODE), backend],
        input=encode_message(initialize(HANDSHAKE[0])) + b"\n",
        env={**os.environ, **PATHS, "MCP_TRACE": str(FULL)},
        capture_output=True,
        check=True,
        timeout=20,
    )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == HANDSHAKE[0]
    assert done.stderr.count(b"MCP_TRACE: nothing more is recorded in '/dev/full'") == 1
