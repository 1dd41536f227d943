"""Clients over stdio that ask for more than they read: a server keeps a bounded part of it."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from kit.processes import PACKAGE_ROOT
from kit.wire import HANDSHAKE, INITIALIZED, encode_message, initialize, request
from mcpgen_runtime.protocol.jsonrpc import Result, parse
from mcpgen_runtime.runtime.peer import HELD_BYTES

pytestmark = pytest.mark.attack

MIB = 2**20
CALLS, LENGTH = 80, 6 * MIB
SERVER = f"""
import sys
from mcpgen_runtime import Context, Server

server = Server("web", "1")

@server.tool
async def big(ctx: Context) -> str:
    print("begun", file=sys.stderr, flush=True)
    return "x" * {LENGTH}

server.run(banner=False)
"""


@pytest.fixture
def server() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env={"PYTHONPATH": str(PACKAGE_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        yield process
        process.kill()


def test_answers_that_nobody_reads_take_bounded_memory(server: subprocess.Popen[bytes]) -> None:
    revision = HANDSHAKE[-1]
    assert server.stdin
    assert server.stdout
    assert server.stderr
    messages = [initialize(revision), INITIALIZED]
    messages += [request(revision, "tools/call", {"name": "big"}, id=id) for id in range(CALLS)]
    server.stdin.write(b"".join(encode_message(each) + b"\n" for each in messages))
    server.stdin.flush()
    begun = [server.stderr.readline()]
    while select.select([server.stderr], [], [], 3)[0]:
        begun.append(server.stderr.readline())
    assert begun[0] == b"begun\n"
    assert len(begun) <= HELD_BYTES / LENGTH + 2
    assert psutil.Process(server.pid).memory_info().rss < 500 * MIB
    server.stdout.readline()
    answers = [parse(server.stdout.readline().rstrip()) for _ in range(CALLS)]
    assert sorted(each.id for each in answers if isinstance(each, Result)) == list(range(CALLS))
